"""Nasty tables for the kernels: heavy ties, tiny and empty cells, numbers of very different size.

Up to 200 values in up to 100 attributes. What is expected comes from plain loops over the rows and
from ``Detector.is_outlier``.
"""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import pyarrow as pa
from hypothesis import settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import pcor
from pcor.public.context import Words
from pcor.rows.cell_table import CellTable
from pcor.search.validity import Validity

EXAMPLES = int(os.environ.get("PCOR_KERNEL_EXAMPLES", "75"))
often = settings(max_examples=EXAMPLES, deadline=None)
sometimes = settings(max_examples=max(1, EXAMPLES // 3), deadline=None)


# Sizes of the attributes: few values; as many as fit one word, and one more; two and three words.
SMALL = [(1,), (2,), (4,), (2, 2), (3, 2), (3, 3), (2, 3, 2), (2, 2, 2, 2), (6, 4), (1, 7, 1)]
WIDE = [(63, 1), (64,), (65,), (33, 33), (2,) * 33, (128,), (129,), (43, 43, 43), (1,) * 70 + (3,)]
WIDEST = [(20,) * 10, (2,) * 100, (200,), (1,) * 190 + (5, 5)]

Generator = np.random.Generator
Metric = Callable[[Generator, int], NDArray[np.float64]]


def crowd(rng: Generator, n: int) -> NDArray[np.float64]:
    """Small whole numbers, a few of them far out, so that one may hide another."""
    numbers = rng.integers(0, 10, n).astype(float)
    numbers[rng.integers(0, n, rng.integers(0, 6))] = rng.choice([-150, -40, 25, 40, 150, 1000])
    numbers[rng.integers(0, n, rng.integers(0, 3))] = rng.choice([-30, 18, 25, 60])
    return numbers


METRICS: dict[str, Metric] = {
    "equal": lambda rng, n: np.full(n, rng.choice([0.0, 7.0, -0.1, 1e15])),
    "nearly equal": lambda rng, n: 7.0 + (rng.integers(0, n, n) == 0),
    "few": lambda rng, n: rng.integers(0, 4, n).astype(float),
    "crowd": crowd,
    "mirrored crowd": lambda rng, n: -crowd(rng, n),
    "two crowds": lambda rng, n: crowd(rng, n) + 500.0 * rng.integers(0, 2, n),
    "evenly spaced": lambda rng, n: rng.permutation(n).astype(float),
    "whole": lambda rng, n: rng.integers(-50, 50, n).astype(float),
    "tenths": lambda rng, n: rng.integers(-50, 50, n) / 10,
    "doubling": lambda rng, n: np.ldexp(1.0, rng.integers(-40, 40, n)),
    "skewed": lambda rng, n: rng.lognormal(0, 2, n),
    "heavy tail": lambda rng, n: np.round(rng.lognormal(8, 3, n)),
    "powers of ten": lambda rng, n: 10.0 ** rng.choice([0, 0, 0, 1, 2, 2, 3, 7, 8], n),
    "mirrored powers of ten": lambda rng, n: -(10.0 ** rng.choice([0, 0, 0, 1, 2, 3, 7, 8], n)),
    "normal": lambda rng, n: rng.normal(0, 1, n),
    "huge offset": lambda rng, n: rng.choice([-1e15, 1e15, 1e9]) + crowd(rng, n),
    "one out of scale": lambda rng, n: crowd(rng, n) + 1e20 * (rng.integers(0, n, n) == 0),
    "hardly apart": lambda rng, n: np.where(
        rng.integers(0, 3, n) > 0, rng.integers(0, 4, n) * 1e-20, -rng.integers(1, 4, n)
    ),
    "largest": lambda rng, n: 1e98 * crowd(rng, n) / 10,
    # Their squares are no numbers, or have few digits left.
    "underflow": lambda rng, n: crowd(rng, n) * 10.0 ** rng.integers(-170, -150),
}


@dataclass(frozen=True)
class Case:
    """Rows as plain Python, one of them, and some contexts that cover it."""

    sizes: tuple[int, ...]
    codes: list[tuple[int, ...]]
    metric: list[float]
    row: int
    masks: list[int] = field(default_factory=list)

    @cached_property
    def offsets(self) -> list[int]:
        return [sum(self.sizes[:i]) for i in range(len(self.sizes))]

    @cached_property
    def table(self) -> pcor.Table:
        columns = {f"a{i}": [code[i] for code in self.codes] for i in range(len(self.sizes))}
        domains = {f"a{i}": list(range(size)) for i, size in enumerate(self.sizes)}
        rows = pa.table(columns | {"pay": pa.array(self.metric, pa.float64())})
        return pcor.Table(rows, pcor.Schema(metric="pay", attributes=domains))

    @cached_property
    def cells(self) -> CellTable:
        return self.table.cells.in_memory()

    @cached_property
    def words(self) -> Words:
        return self.table.words(self.masks)

    @property
    def value(self) -> float:
        return self.metric[self.row]

    @cached_property
    def required(self) -> list[int]:
        """The bits of each row."""
        return [self.bits_of(code) for code in self.codes]

    def bits_of(self, code: Sequence[int]) -> int:
        return sum(1 << offset + c for offset, c in zip(self.offsets, code, strict=True))

    def covered(self, mask: int) -> list[int]:
        return [i for i, required in enumerate(self.required) if required & ~mask == 0]

    def distribution(self, mask: int) -> tuple[list[float], list[int]]:
        counted = Counter(self.metric[i] for i in self.covered(mask))
        values = sorted(counted)
        return values, [counted[value] for value in values]

    def verdict(self, mask: int, detector: pcor.Detector) -> bool:
        values, counts = self.distribution(mask)
        return detector.is_outlier(
            np.array(values), np.array(counts, dtype=np.int64), self.metric[self.row]
        )

    def verdicts(self, detector: pcor.Detector, masks: Sequence[int] | None = None) -> list[bool]:
        return [self.verdict(mask, detector) for mask in (self.masks if masks is None else masks)]

    def validity(self, detector: pcor.Detector) -> Validity:
        return Validity(self.table, self.table.record(self.row), detector)

    def at_factor(self, lof: pcor.LOF, mask: int) -> list[pcor.LOF]:
        """Return the rule with the record's factor in a context as its threshold, and just below.

        A factor that is off by its last bit would fall on the other side of one of the two.
        """
        values, counts = self.distribution(mask)
        if sum(counts) <= lof.k:
            return []
        factors = lof.factors(np.array(values), np.array(counts))
        factor = float(factors[values.index(self.value)])
        return [replace(lof, threshold=one) for one in (factor, math.nextafter(factor, 0))]


@st.composite
def cases(
    draw: st.DrawFn,
    shapes: Sequence[tuple[int, ...]] = (*SMALL, *SMALL, *WIDE, *WIDEST),
    most: int = 120,
) -> Case:
    """Draw what kind of table it is; the rows themselves follow from a seed, for speed."""
    sizes = draw(st.sampled_from(shapes))
    n = draw(st.integers(1, 12) | st.integers(20, most))
    kind = draw(st.sampled_from(sorted(METRICS)))
    away = draw(st.sampled_from([0.02, 0.3, 1.0]))  # how often a row leaves the record's values
    declared = draw(st.booleans())  # whether all declared values may occur
    extreme = draw(st.sampled_from(["highest", "lowest", "next to highest", "any"]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    occur = np.array(sizes) if declared else (np.array(sizes) + 1) // 2
    home = rng.integers(0, occur)
    cells = np.where(rng.random((n, len(sizes))) < away, rng.integers(0, occur, (n, len(sizes))), 0)
    codes = [tuple(int(c) for c in row) for row in (cells + home) % occur]
    metric = METRICS[kind](rng, n)
    order = np.argsort(metric, kind="stable")
    place = {"highest": -1, "lowest": 0, "next to highest": max(-n, -2)}.get(extreme)
    row = int(rng.integers(n) if place is None else order[place])
    case = Case(sizes, codes, [float(value) for value in metric], row)
    return replace(case, masks=list(some_contexts(case, rng)))


def some_contexts(case: Case, rng: Generator, count: int = 12) -> Iterator[int]:
    """Yield the smallest and the largest context of the record, and some between."""
    width, own = sum(case.sizes), case.required[case.row]
    yield own
    yield (1 << width) - 1
    for share in rng.choice([0.2, 0.5, 0.9, 0.98], count - 2):
        chosen = np.flatnonzero(rng.random(width) < share)
        yield own | sum(1 << int(position) for position in chosen)


SHARES = [0.0025, 0.02, 0.1, 0.25, 0.5, 0.9]
ALPHAS = [1e-6, 0.05, 0.5, 0.9, 0.99]
least = st.sampled_from([1, 3, 10, 21])

grubbs = st.builds(
    pcor.Grubbs,
    alpha=st.sampled_from(ALPHAS),
    tail=st.sampled_from(["both", "upper", "lower"]),
    min_population=least,
)
histograms = st.builds(
    pcor.Histogram,
    rare=st.sampled_from(SHARES),
    include_maximum=st.booleans(),
    min_population=least,
)


@st.composite
def lofs(draw: st.DrawFn) -> pcor.LOF:
    k = draw(st.sampled_from([1, 2, 3, 5, 20]))
    smallest = st.sampled_from([1, k, k + 1, 2 * k, 2 * k + 1, 2 * k + 2, 4 * k + 9, 10_000])
    threshold = draw(st.sampled_from([0.5, 1.0, 1.1, 1.5, 2.0]))
    return pcor.LOF(k=k, threshold=threshold, min_population=draw(smallest))


detectors = lofs() | grubbs | histograms


def check_cells(case: Case, cells: CellTable, masks: Sequence[int]) -> None:
    """Compare what cells say of contexts with plain loops over all rows."""
    words = case.table.words(masks)
    covered = [case.covered(mask) for mask in masks]
    assert cells.populations(words).tolist() == [len(rows) for rows in covered]
    for mask, word in zip(masks, words, strict=True):
        values, counts = cells.distribution(word)
        assert (values.tolist(), counts.tolist()) == case.distribution(mask)


# At most 2^8 contexts contain a record; the free values may lie in several words.
SPACES = [*SMALL, (1,) * 64 + (2, 2), (1,) * 130 + (3, 2), (2,) + (1,) * 62 + (3, 3), (2,) * 8]


def split(cells: CellTable) -> CellTable:
    """One pair for each row."""
    places = np.repeat(np.arange(len(cells.counts)), cells.counts)
    ones = np.ones(len(places), dtype=np.int32)
    return replace(
        cells,
        required=cells.required[places],
        values=cells.values[places],
        counts=ones,
        pair_cells=cells.pair_cells[places],
    )


def merged(cells: CellTable) -> CellTable:
    """One pair for all rows of a cell with the same metric."""
    counted: Counter[tuple[float, int]] = Counter()
    for value, cell, count in zip(cells.values, cells.pair_cells, cells.counts, strict=True):
        counted[float(value), int(cell)] += int(count)
    keys = sorted(counted)
    numbers = np.array([cell for _, cell in keys], dtype=np.int32)
    return replace(
        cells,
        required=cells.cell_required[numbers],
        values=np.array([value for value, _ in keys]),
        counts=np.array([counted[key] for key in keys], dtype=np.int32),
        pair_cells=numbers,
    )


def tied(values: int, k: int) -> Validity:
    """Return V between piles of ties, more than k on each side, and rows that do not matter.

    A bound gives up on so many candidates; only the far rows need the values.
    """
    pile = 2 * k - 1
    value = [0] * (2 * pile + 1) + list(range(1, values))
    pay = [0.0] + [-1.0] * pile + [1.0] * pile + [-100.0 - far for far in range(1, values)]
    schema = pcor.Schema(metric="pay", attributes={"value": list(range(values))})
    table = pcor.Table(pa.table({"value": value, "pay": pay}), schema)
    return Validity(table, table.record(0), pcor.LOF(k=k, min_population=3))
