"""LOF's own way to find who changes COE by coming or going: window by window.

Private: everything here. LOF sees nothing of a context but the 2k rows on each side of V
(``pcor._kernels.lof``), and contexts that share that window share the answer. A walk over the free
values meets each distinct window once (``pcor._kernels.lof_walk``) and tries all changes there, of
one row or of all rows of a person; what it finds is a set of cubes for each. Exact, and equal to
``pcor.audit.rejudged`` on every context.
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

    rows, kinds = _rows_by_kind(validity, _enough(rule))
    windows = Windows(validity, rule, rows, _enough(rule))
    found = windows.walk(lambda part: removal_flips(*windows.start, part, windows.rule), progress)
    for change in _by_number(found):
        yield *kinds[change.number], change


def departure_changes(
    validity: Validity,
    rule: FactorRule,
    taken: Sequence[Sequence[int]],
    progress: Progress | None,
) -> Iterator[Change]:
    """Yield for each person who changes COE by leaving with all of their rows, where they do.

    Args:
        validity: the record, the detector and the table, its rows in memory.
        rule: the local outlier factor.
        taken: the places of the rows of each person to be tried; V is not among them.
        progress: called with (parts done, parts in all) now and then.
    """
    from pcor._kernels.lof_people import people_flips

    most = max(map(len, taken), default=1)
    enough = _enough(rule, most)
    windows = Windows(validity, rule, _rows_by_person(validity, taken, enough), enough)
    found = windows.walk(
        lambda part: people_flips(*windows.start, part, windows.rule, most), progress
    )
    return _by_number(found)


def insertion_changes(
    validity: Validity,
    rule: FactorRule,
    values: Sequence[float],
    copies: int,
    progress: Progress | None,
) -> Iterator[Change]:
    """Yield for each metric that changes COE if rows with it are added, where they would.

    Only contexts that cover the added rows count; the caller knows their cell.
    """
    from pcor._kernels.lof_insertion import insertion_flips

    rows, _ = _rows_by_kind(validity, _enough(rule))
    windows = Windows(validity, rule, rows, _enough(rule))
    added = np.array(values, dtype=np.float64)
    found = windows.walk(
        lambda part: insertion_flips(*windows.start, part, windows.rule, added, copies), progress
    )
    return _by_number(found)


class NumberedRows(NamedTuple):
    """The rows other than V near it, by rising metric: what is removed at once has one number."""

    values: NDArray[np.float64]
    required: Indices
    numbers: NDArray[np.int64]


def _enough(rule: FactorRule, most: int = 1) -> int:
    """Return how many rows on each side of V tell all about a removal of at most so many.

    Those that LOF looks at and as many more; or enough to see whether so many can be spared.
    """
    return max(2 * rule.k + most, rule.smallest + most - 1)


def _rows_by_kind(validity: Validity, enough: int) -> tuple[NumberedRows, list[tuple[int, float]]]:
    """Number rows by cell and metric; return the cell and metric of each number too."""
    v, space = validity.record.value, validity.record.space
    near_v = validity.table.cells.in_memory().nearest(v, enough + 1)
    order = np.lexsort((near_v.pair_cells, near_v.values))
    values, cells = near_v.values[order], near_v.pair_cells[order]
    new = np.concatenate([[True], (values[1:] != values[:-1]) | (cells[1:] != cells[:-1])])
    required = space.indices_of(near_v.required)[order]
    counts = near_v.counts[order].astype(np.int64)
    at = near_v.place(v)
    # V stands for itself in the middle: one row less of its own cell and metric.
    counts[at + int(np.argmax((required[at:] == 0) & (values[at:] == v)))] -= 1
    rows = np.repeat(np.arange(len(order)), np.minimum(counts, enough))
    kinds = list(zip(cells[new].tolist(), values[new].tolist(), strict=True))
    numbers = np.cumsum(new) - 1
    return NumberedRows(values[rows], required[rows], numbers[rows]), kinds


def _rows_by_person(
    validity: Validity, taken: Sequence[Sequence[int]], enough: int
) -> NumberedRows:
    """Number rows by person; those of people who are not tried have the number -1."""
    from pcor._kernels.coverage import nearest_places

    table, v = validity.table, validity.record.value
    rows, cell_required = table.rows, table.cells.cell_required
    numbers = np.full(len(rows.metric), -1, dtype=np.int64)
    for number, places in enumerate(taken):
        numbers[list(places)] = number
    order = np.argsort(rows.metric, kind="stable")
    order = order[order != table.row_of(validity.record)]
    at = int(np.searchsorted(rows.metric[order], v))
    ones = np.ones(len(order), dtype=np.int32)
    order = order[nearest_places(rows.cell[order], ones, at, enough, len(cell_required))]
    required = validity.record.space.indices_of(cell_required)[rows.cell[order]]
    return NumberedRows(rows.metric[order], required, numbers[order])


Flips = tuple[Indices, Indices, NDArray[np.bool_], NDArray[np.int32], NDArray[np.int32]]


class Windows:
    """A record's rows as the walk reads them.

    Attributes:
        start: what a part of the walk needs to know before which part it is.
        rule: k, the threshold, and the smallest population.
    """

    def __init__(
        self, validity: Validity, rule: FactorRule, rows: NumberedRows, enough: int
    ) -> None:
        self.space = validity.record.space
        self.rule = tuple(rule)  # the kernels are compiled for plain tuples
        free = len(self.space.steps)
        self.split = _SPLIT if free > 2 * _SPLIT else 0
        self.start = (self._sides(validity.record.value, rows, enough), free, self.split)

    def _sides(self, v: float, rows: NumberedRows, enough: int) -> Sides:
        from pcor._kernels.lof_walk import Sides

        at = int(np.searchsorted(rows.values, v))
        near = rows.required[max(0, at - 2 * enough) : at + 2 * enough]
        self.order = _commonest_first(near, len(self.space.steps))
        required = _renumbered(rows.required, self.order)
        below, above = np.arange(at)[::-1], np.arange(at, len(rows.values))
        return Sides(
            v,
            *(rows.values[below], required[below], rows.numbers[below]),
            *(rows.values[above], required[above], rows.numbers[above]),
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
