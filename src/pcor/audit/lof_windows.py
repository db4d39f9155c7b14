"""LOF's own way to find the one-row changes that change COE: window by window.

Private: everything here. LOF sees nothing of a context but the 2k rows on each side of V
(``pcor._kernels.lof``), and contexts that share that window share the answer. A walk over the free
values meets each distinct window once (``pcor._kernels.lof_walk``) and tries all one-row changes
there; what it finds is a set of cubes for each row. Exact, and equal to the generic path of
``pcor.audit.neighbours`` on every context.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pcor.audit.cubes import Cubes, Indices
from pcor.detectors.base import FactorRule
from pcor.search.coe import Progress
from pcor.search.validity import Validity
from pcor.support.threads import one_by_one

if TYPE_CHECKING:
    from pcor._kernels.lof_walk import Sides

# The walk is shared out in 2^6 parts by its first values.
_SPLIT = 6

# As in pcor._kernels.lof_bounds, which is not imported before it is needed.
_MOST_NEIGHBOURS = 100

# The free values a row needs are half a word, and an index of that many bits is never enumerated.
_MOST_FREE = 31


class Change(NamedTuple):
    """One kind of row, and where removing or adding one changes the verdict."""

    number: int
    lost: Cubes
    gained: Cubes


class WalkResult(NamedTuple):
    """What a walk brings back: leaves, and for each change the leaf and what was changed."""

    leaves: Cubes
    was: NDArray[np.bool_]
    leaf: NDArray[np.int64]
    number: NDArray[np.int64]


def walkable_rule(validity: Validity) -> FactorRule | None:
    """Return the detector's rule, if it is a local outlier factor that the walk can follow."""
    rule = validity.detector.factor_rule
    space = validity.record.space
    walkable = space.binary and len(space.steps) <= _MOST_FREE and not space.schema.limited
    return rule if rule is not None and rule.k <= _MOST_NEIGHBOURS and walkable else None


def removal_changes(
    validity: Validity, rule: FactorRule, progress: Progress | None
) -> Iterator[tuple[int, float, Change]]:
    """Yield the cell, the metric and the changes of each removal that changes COE.

    By rising metric, then by cell.
    """
    from pcor._kernels.lof_removal import removal_flips

    windows = Windows(validity, rule)
    found = windows.walk(lambda part: removal_flips(*windows.start, part, windows.rule), progress)
    for change in _by_number(found):
        pair = windows.first_pairs[change.number]
        yield int(windows.cells.pair_cells[pair]), float(windows.cells.values[pair]), change


def insertion_changes(
    validity: Validity, rule: FactorRule, values: Sequence[float], progress: Progress | None
) -> Iterator[Change]:
    """Yield for each metric that changes COE if a row with it is added, where it would.

    Only contexts that cover the added row count; the caller knows its cell.
    """
    from pcor._kernels.lof_insertion import insertion_flips

    windows = Windows(validity, rule)
    added = np.array(values, dtype=np.float64)
    found = windows.walk(
        lambda part: insertion_flips(*windows.start, part, windows.rule, added), progress
    )
    return _by_number(found)


Flips = tuple[Indices, Indices, NDArray[np.bool_], NDArray[np.int32], NDArray[np.int32]]


class Windows:
    """A record's rows as the walk reads them.

    Attributes:
        cells: the nearest rows of each cell; pairs of one metric by cell.
        first_pairs: the first pair of each number; pairs that are alike have one number.
        start: what a part of the walk needs to know before which part it is.
        rule: k, the threshold, and the smallest population.
    """

    def __init__(self, validity: Validity, rule: FactorRule) -> None:
        self.space = validity.record.space
        self.rule = tuple(rule)  # the kernels are compiled for plain tuples
        # On each side one row more than LOF looks at, or enough to see whether one can be spared.
        wanted = max(2 * rule.k + 1, rule.smallest)
        self.cells = validity.table.cells.in_memory().nearest(validity.record.value, wanted + 1)
        free = len(self.space.steps)
        self.split = _SPLIT if free > 2 * _SPLIT else 0
        self.start = (self._sides(validity.record.value, wanted), free, self.split)

    def _sides(self, v: float, wanted: int) -> Sides:
        from pcor._kernels.lof_walk import Sides

        near_v = self.cells
        order = np.lexsort((near_v.pair_cells, near_v.values))
        values, cells = near_v.values[order], near_v.pair_cells[order]
        new = np.concatenate([[True], (values[1:] != values[:-1]) | (cells[1:] != cells[:-1])])
        self.first_pairs = order[new]
        numbers = np.cumsum(new) - 1
        required = self.space.indices_of(near_v.required)[order]
        counts = near_v.counts[order].astype(np.int64)
        at = near_v.place(v)
        # V stands for itself in the middle: one row less of its own cell and metric.
        counts[at + int(np.argmax((required[at:] == 0) & (values[at:] == v)))] -= 1
        rows = np.repeat(np.arange(len(order)), np.minimum(counts, wanted))
        below, above = rows[rows < at][::-1], rows[rows >= at]
        near = np.concatenate([required[below[: 2 * wanted]], required[above[: 2 * wanted]]])
        self.order = _commonest_first(near, len(self.space.steps))
        required = _renumbered(required, self.order)
        return Sides(
            v,
            *(values[below], required[below], numbers[below]),
            *(values[above], required[above], numbers[above]),
        )

    def walk(self, flips: Callable[[int], Flips], progress: Progress | None) -> WalkResult:
        """Run all parts of the walk and put together what they find."""
        parts = 1 << self.split
        found: list[Flips | None] = [None] * parts
        step = parts if progress is None else max(1, parts // 8)
        for first in range(0, parts, step):

            def work(place: int, first: int = first) -> None:
                found[first + place] = flips(first + place)

            one_by_one(step, work)
            if progress is not None:
                progress(first + step, parts)
        return self._joined([part for part in found if part is not None])

    def _joined(self, parts: list[Flips]) -> WalkResult:
        offsets = np.cumsum([0] + [len(bases) for bases, *_ in parts])[:-1]
        back = np.argsort(self.order)
        leaves = Cubes(
            _renumbered(np.concatenate([part[0] for part in parts]), back),
            _renumbered(np.concatenate([part[1] for part in parts]), back),
        )
        return WalkResult(
            leaves,
            np.concatenate([part[2] for part in parts]),
            np.concatenate([part[3] + first for part, first in zip(parts, offsets, strict=True)]),
            np.concatenate([part[4] for part in parts]).astype(np.int64),
        )


def _commonest_first(required: Indices, free: int) -> NDArray[np.int64]:
    """Return the free values, those first that most of the rows near V need.

    Leaves come early then: what is decided last is seldom seen in a window.
    """
    bits = required[:, np.newaxis] >> np.arange(free, dtype=np.uint64) & np.uint64(1)
    return np.argsort(-bits.sum(axis=0).astype(np.int64), kind="stable")


def _renumbered(sets: Indices, order: NDArray[np.int64]) -> Indices:
    """Return sets of free values in which the i-th is what ``order[i]`` was."""
    renumbered = np.zeros_like(sets)
    for place, old in enumerate(order):
        renumbered |= (sets >> np.uint64(old) & np.uint64(1)) << np.uint64(place)
    return renumbered


def _by_number(found: WalkResult) -> Iterator[Change]:
    """Yield the changes of each number, rising."""
    order = np.argsort(found.number, kind="stable")
    numbers, counts = np.unique(found.number, return_counts=True)
    for number, end, count in zip(numbers, np.cumsum(counts), counts, strict=True):
        leaf = found.leaf[order[end - count : end]]
        was = found.was[leaf]
        lost, gained = found.leaves.chosen(leaf[was]), found.leaves.chosen(leaf[~was])
        yield Change(int(number), lost, gained)
