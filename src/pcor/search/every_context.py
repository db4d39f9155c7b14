"""Every context of a schema, each with its population and all of its outliers. For the owner only.

Private: everything here. Unlike COE this has no queried record: there are prod(2^|A| - 1) contexts,
and in each the detector judges everybody. No context is filtered or judged from scratch:
``pcor._kernels.every_context`` walks from one to the next over rows that were sorted once, and a
kernel judges all records of a context together. The verdicts are those of ``detector.verdicts``;
tests hold every kernel to that on every context of random tables.

Contexts are numbered from 0, the sets of the first attribute's values changing fastest.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from fractions import Fraction
from math import prod
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pcor.detectors import LOF, Detector, Grubbs, Histogram
from pcor.detectors.base import Verdicts
from pcor.detectors.grubbs import TAILS, critical_values
from pcor.errors import TooLarge, counted, others_code
from pcor.public.context import Context
from pcor.public.schema import Schema
from pcor.rows.cells import Words
from pcor.rows.table import Table
from pcor.support.threads import one_by_one

# More contexts than this no longer fit the kernels' whole numbers.
MOST_CONTEXTS = 1 << 48

# Contexts that a core judges in one go: many enough to be worth beginning, few enough that no core
# is left with much to do when the others are done.
SMALLEST_SLICE, LARGEST_SLICE = 64, 1024

Places = NDArray[np.int32]


class Judged(NamedTuple):
    """Consecutive contexts. Private.

    Attributes:
        populations: how many rows each covers.
        ends: how many outliers there are up to and with each.
        places: the outliers of all, those of a context by rising metric; a row is named by its
            place in the order of the metric.
    """

    populations: NDArray[np.int64]
    ends: NDArray[np.int64]
    places: Places


def count_contexts(schema: Schema) -> int:
    """Return how many contexts a schema has: a non-empty set of values for each attribute."""
    return prod((1 << len(attribute.values)) - 1 for attribute in schema.attributes)


def number_of(context: Context) -> int:
    """Return the number of a context among all of its schema."""
    number, masks = 0, context.schema.attribute_masks
    for own, offset in zip(reversed(masks), reversed(context.schema.offsets), strict=True):
        number = number * (own >> offset) + ((context.mask & own) >> offset) - 1
    return number


class EveryContext:
    """All contexts of a table under a detector; ``judge`` asks for some of them.

    Attributes:
        size: how many there are; at most ``MOST_CONTEXTS``.
        compiled: whether a kernel judges them. Otherwise the detector is asked for each.
        rows: how many rows the table has.
        keys: the records' ids (or 0-based row numbers) by rising metric: whole numbers, or text
            where one of them is text.
    """

    def __init__(self, table: Table, detector: Detector) -> None:
        self.size = count_contexts(table.schema)
        if self.size > MOST_CONTEXTS:
            raise TooLarge(
                f"the schema has {counted(self.size)} contexts; all of them can be listed up to "
                f"{MOST_CONTEXTS:,}"
            )
        self.detector = detector
        self._schema = table.schema
        rows = table._rows
        order = np.argsort(rows.metric, kind="stable")
        self.rows = len(order)
        self.keys = _keys(table).take(pa.array(order))
        self._values = rows.metric[order]
        self._centre = table.view.centre
        self._codes = np.ascontiguousarray(rows.cells[rows.cell[order]].T.astype(np.uint8))
        sizes = [len(attribute.values) for attribute in table.schema.attributes]
        self._tops = np.array([(1 << size) - 1 for size in sizes])
        kernel = self._kernel()
        self.compiled = kernel is not None
        self._judge = kernel or self._by_the_rule

    def __repr__(self) -> str:
        return f"<EveryContext of {self._schema.name!r}: PRIVATE, for the owner only>"

    def judge(self, first: int, count: int) -> Judged:
        """Return ``count`` contexts from number ``first`` on, judged on all cores by a kernel."""
        if not self.compiled:  # somebody else's code may not like threads
            return self._judge(first, count)
        size = max(SMALLEST_SLICE, min(LARGEST_SLICE, count // 8))
        starts = range(first, first + count, size)
        done: dict[int, Judged] = {}

        def work(place: int) -> None:
            start = starts[place]
            done[place] = self._judge(start, min(size, first + count - start))

        one_by_one(len(starts), work)
        return _joined([done[place] for place in range(len(starts))])

    def masks(self, first: int, count: int) -> Words:
        """Return the contexts' bits as 64-bit words: shape (count, words)."""
        words = np.zeros((count, (self._schema.width + 63) // 64), dtype=np.uint64)
        rest = np.arange(first, first + count, dtype=np.int64)
        for top, offset in zip(self._tops, self._schema.offsets, strict=True):
            rest, digit = np.divmod(rest, top)
            bits = (digit + 1).astype(np.uint64)
            word, shift = divmod(offset, 64)
            words[:, word] |= bits << np.uint64(shift)
            if shift and word + 1 < words.shape[1]:
                words[:, word + 1] |= bits >> np.uint64(64 - shift)
        return words

    def fingerprint(self) -> str:
        """Return a hash of all rows with their keys."""
        keys = json.dumps(self.keys.to_pylist()).encode()
        digest = hashlib.sha256()
        for column in (self._values.tobytes(), self._codes.tobytes(), keys):
            digest.update(hashlib.sha256(column).digest())
        return digest.hexdigest()

    def _walk(self, first: int, count: int) -> Iterator[Places]:
        """Yield the places that each of some contexts covers."""
        from pcor._kernels.every_context import begin, step

        digits, kept, sizes = begin(first, self._codes, self._tops)
        for number in range(count):
            if number:
                step(self._codes, self._tops, digits, kept, sizes)
            yield kept[0, : sizes[0]]

    def _kernel(self) -> Callable[[int, int], Judged] | None:
        """Return what judges with a kernel; a class derived from ours may have another rule."""
        detector = self.detector
        if type(detector) is LOF and detector.ties == "lower":
            return lambda first, count: self._by_lof(detector, first, count)
        if type(detector) is Grubbs:
            critical = critical_values(self.rows, detector.alpha, detector.tail)
            return lambda first, count: self._by_grubbs(detector, critical, first, count)
        if type(detector) is Histogram:
            share = Fraction(repr(float(detector.rare)))
            # In Python's whole numbers: a share of many digits would overflow 64 bits.
            most = [n * share.numerator // share.denominator for n in range(self.rows + 1)]
            table = np.array(most, dtype=np.int64)
            return lambda first, count: self._by_histogram(detector, table, first, count)
        return None

    def _by_lof(self, detector: LOF, first: int, count: int) -> Judged:
        from pcor._kernels.lof_all import lof_in_contexts

        # With no more rows than k nobody is judged, however large k is.
        rule = (min(detector.k, self.rows), float(detector.threshold), detector.min_population)
        populations, ends = np.empty((2, count), dtype=np.int64)
        columns = (self._codes, self._tops, self._values)
        places = lof_in_contexts(first, *columns, rule, populations, ends)
        return Judged(populations, ends, places)

    def _by_histogram(
        self, detector: Histogram, most: NDArray[np.int64], first: int, count: int
    ) -> Judged:
        from pcor._kernels.histogram_all import histogram_in_contexts

        rule = (detector.include_maximum, detector.min_population)
        populations, ends = np.empty((2, count), dtype=np.int64)
        columns = (self._codes, self._tops, self._values, most)
        places = histogram_in_contexts(first, *columns, rule, populations, ends)
        return Judged(populations, ends, places)

    def _by_grubbs(
        self, detector: Grubbs, critical: NDArray[np.float64], first: int, count: int
    ) -> Judged:
        from pcor._kernels.grubbs_all import grubbs_in_contexts

        rule = (TAILS.index(detector.tail), self._centre, detector.min_population)
        populations, ends = np.empty((2, count), dtype=np.int64)
        columns = (self._codes, self._tops, self._values, critical)
        places, unsure = grubbs_in_contexts(first, *columns, rule, populations, ends)
        parts, done = [], 0
        for number in np.flatnonzero(unsure).tolist():
            parts.append(_part(Judged(populations, ends, places), done, number))
            parts.append(self._by_the_rule(first + number, 1))
            done = number + 1
        parts.append(_part(Judged(populations, ends, places), done, count))
        return _joined(parts)

    def _by_the_rule(self, first: int, count: int) -> Judged:
        """Ask the detector itself, once for each context."""
        covered = [0] * count
        found = [np.zeros(0, dtype=np.int32)] * count
        for number, own in enumerate(self._walk(first, count)):
            covered[number] = len(own)
            if len(own) >= max(1, self.detector.min_population):
                found[number] = own[self._verdicts(self._values[own])]
        ends = np.cumsum([len(places) for places in found], dtype=np.int64)
        return Judged(np.array(covered, dtype=np.int64), ends, np.concatenate(found))

    def _verdicts(self, population: NDArray[np.float64]) -> Verdicts:
        """Return the verdict on each row of a population, which rises."""
        starts = np.flatnonzero(np.concatenate([[True], population[1:] != population[:-1]]))
        counts = np.diff(np.append(starts, len(population)))
        with others_code(f"the detector {self.detector.name!r}"):
            verdicts = self.detector.verdicts(population[starts], counts)
            return np.repeat(verdicts, counts)


def _part(judged: Judged, start: int, stop: int) -> Judged:
    before = int(judged.ends[start - 1]) if start else 0
    ends = judged.ends[start:stop]
    until = int(ends[-1]) if len(ends) else before
    return Judged(judged.populations[start:stop], ends - before, judged.places[before:until])


def _joined(parts: list[Judged]) -> Judged:
    """Put consecutive contexts together."""
    if len(parts) == 1:
        return parts[0]
    before = np.cumsum([0, *(len(part.places) for part in parts)])
    return Judged(
        np.concatenate([part.populations for part in parts]),
        np.concatenate([p.ends + done for p, done in zip(parts, before[:-1], strict=True)]),
        np.concatenate([part.places for part in parts]),
    )


def _keys(table: Table) -> pa.Array:
    given = table._rows.keys
    if given is None or isinstance(given, np.ndarray):
        return pa.array(np.arange(len(table._rows.metric)) if given is None else given)
    keys = [table._key(row) for row in range(len(given))]
    whole = all(isinstance(key, int) and -(1 << 63) <= key < 1 << 63 for key in keys)
    return pa.array(keys if whole else [str(key) for key in keys])
