"""Every context of a schema, each with its population and all of its outliers. For the owner only.

Private: everything here. Unlike COE this has no queried record: there are prod(2^|A| - 1) contexts,
and in each the detector judges everybody, by its kernel for that (``Detector.all_records``) or one
context after the other. The verdicts are those of ``detector.verdicts``; tests hold every kernel to
that on every context of random tables.

Contexts are numbered from 0, the sets of the first attribute's values changing fastest.
"""

from __future__ import annotations

import hashlib
import json
from functools import partial
from math import prod

import numpy as np
import pyarrow as pa

from pcor.detectors import Detector
from pcor.detectors.all_records import ContextOutliers, SortedRows, by_rule
from pcor.errors import TooLarge, counted
from pcor.public.context import Context, Words
from pcor.public.schema import Schema
from pcor.rows.table import Table
from pcor.support.threads import one_by_one

# More contexts than this no longer fit the kernels' whole numbers.
MOST_CONTEXTS = 1 << 48

# Contexts that a core judges in one go: many enough to be worth beginning, few enough that no core
# is left with much to do when the others are done.
SMALLEST_SLICE, LARGEST_SLICE = 64, 1024


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
        rows = table.rows
        order = np.argsort(rows.metric, kind="stable")
        self.rows = len(order)
        self.keys = _keys(table).take(pa.array(order))
        sizes = [len(attribute.values) for attribute in table.schema.attributes]
        self._sorted = SortedRows(
            codes=np.ascontiguousarray(rows.cells[rows.cell[order]].T.astype(np.uint8)),
            tops=np.array([(1 << size) - 1 for size in sizes]),
            values=rows.metric[order],
            centre=table.cells.centre,
        )
        kernel = detector.all_records(self._sorted)
        self.compiled = kernel is not None
        self._judge = kernel or partial(by_rule, detector, self._sorted)

    def __repr__(self) -> str:
        return f"<EveryContext of {self._schema.name!r}: PRIVATE, for the owner only>"

    def judge(self, first: int, count: int) -> ContextOutliers:
        """Return ``count`` contexts from number ``first`` on, judged on all cores by a kernel."""
        if not self.compiled:  # somebody else's code may not like threads
            return self._judge(first, count)
        size = max(SMALLEST_SLICE, min(LARGEST_SLICE, count // 8))
        starts = range(first, first + count, size)
        done: dict[int, ContextOutliers] = {}

        def work(place: int) -> None:
            start = starts[place]
            done[place] = self._judge(start, min(size, first + count - start))

        one_by_one(len(starts), work)
        return ContextOutliers.joined([done[place] for place in range(len(starts))])

    def masks(self, first: int, count: int) -> Words:
        """Return the contexts' bits as 64-bit words: shape (count, words)."""
        words = np.zeros((count, (self._schema.width + 63) // 64), dtype=np.uint64)
        rest = np.arange(first, first + count, dtype=np.int64)
        for top, offset in zip(self._sorted.tops, self._schema.offsets, strict=True):
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
        for column in (self._sorted.values.tobytes(), self._sorted.codes.tobytes(), keys):
            digest.update(hashlib.sha256(column).digest())
        return digest.hexdigest()


def _keys(table: Table) -> pa.Array:
    given = table.rows.keys
    if given is None or isinstance(given, np.ndarray):
        return pa.array(np.arange(len(table.rows.metric)) if given is None else given)
    keys = [table.key_of(row) for row in range(len(given))]
    whole = all(isinstance(key, int) and -(1 << 63) <= key < 1 << 63 for key in keys)
    return pa.array(keys if whole else [str(key) for key in keys])
