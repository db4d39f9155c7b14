"""LOF's own way to find who changes COE by coming or going: window by window.

Private: everything here. LOF sees nothing of a context but the 2k rows on each side of V
(``pcor._kernels.lof``), and contexts that share that window share the answer. A walk over the steps
of the space, the one that finds COE, meets each distinct window once (``pcor._kernels.lof_leaves``)
and tries all changes there, of one row or of all rows of a person; what it finds is a set of boxes
for each. Exact, and equal to ``pcor.audit.rejudged`` on every context.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pcor.detectors.base import FactorRule
from pcor.public.space import Indices
from pcor.search.boxes import Boxes, indices_of, steps_of
from pcor.search.coe import Progress
from pcor.search.subtrees import Box, bound_rule, counts_of_others, parts_of, side_rows
from pcor.search.validity import Validity
from pcor.support.threads import one_by_one


class Change(NamedTuple):
    """One kind of row, and where removing or adding one changes the verdict."""

    number: int
    lost: Boxes
    gained: Boxes


class WalkResult(NamedTuple):
    """What a walk brings back: leaves, and for each change the leaf and what was changed."""

    leaves: Boxes
    was: NDArray[np.bool_]
    leaf: NDArray[np.int64]
    number: NDArray[np.int64]


def walkable_rule(validity: Validity) -> FactorRule | None:
    """Return the detector's rule, if it is a local outlier factor that the walk can follow."""
    space = validity.record.space
    return None if space.schema.limited else bound_rule(validity, space)


def removal_changes(
    validity: Validity, rule: FactorRule, progress: Progress | None
) -> Iterator[tuple[int, float, Change]]:
    """Yield the cell, the metric and the changes of each removal that changes COE.

    By rising metric, then by cell.
    """
    from pcor._kernels.lof_departures import departure_flips

    rows, kinds = _rows_by_kind(validity, _enough(rule, 1))
    windows = Windows(validity, rule, rows)
    found = windows.walk(
        lambda box: departure_flips(*windows.start, box, windows.numbers, 1), progress
    )
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
    from pcor._kernels.lof_departures import departure_flips

    if not taken:
        return iter(())
    most = max(map(len, taken))
    rows = _rows_by_person(validity, taken, _enough(rule, most))
    windows = Windows(validity, rule, rows)
    found = windows.walk(
        lambda box: departure_flips(*windows.start, box, windows.numbers, most), progress
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

    rows, _ = _rows_by_kind(validity, _enough(rule, 0))
    windows = Windows(validity, rule, rows)
    added = np.array(values, dtype=np.float64)
    found = windows.walk(lambda box: insertion_flips(*windows.start, box, added, copies), progress)
    return _by_number(found)


Numbers = NDArray[np.int64]


class NumberedRows(NamedTuple):
    """The rows other than V near it, by rising metric: what is removed at once has one number."""

    values: NDArray[np.float64]
    required: Indices
    numbers: Numbers


def _enough(rule: FactorRule, most: int) -> int:
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
    counts = counts_of_others(v, values, required, near_v.counts[order])
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


LeafLists = tuple[Indices, Indices, NDArray[np.bool_], NDArray[np.int32], NDArray[np.int32]]


class Windows:
    """A record's rows as the walk reads them.

    Attributes:
        start: what is the same for every box: the rows, the steps, and the rule.
        numbers: those of the rows of each side.
    """

    def __init__(self, validity: Validity, rule: FactorRule, rows: NumberedRows) -> None:
        self._space = validity.record.space
        required = self._space.step_bits(rows.required)
        sides = side_rows(validity.record.value, rows.values, required)
        at = len(sides.values_below)
        self.numbers = np.ascontiguousarray(rows.numbers[:at][::-1]), rows.numbers[at:]
        # The kernels are compiled for plain tuples.
        self.start = sides, steps_of(self._space), (rule.k, rule.threshold, rule.smallest)

    def walk(self, find: Callable[[Box], LeafLists], progress: Progress | None) -> WalkResult:
        """Walk over all contexts, in parts, and put together what is found."""
        rows, _, (k, _, _) = self.start
        parts = parts_of(self._space, rows, k, 0, self._space.size)
        found: list[LeafLists | None] = [None] * len(parts)
        step = len(parts) if progress is None else max(1, len(parts) // 8)
        for first in range(0, len(parts), step):
            some = range(first, min(first + step, len(parts)))

            def work(place: int, some: range = some) -> None:
                found[some[place]] = find(parts[some[place]])

            one_by_one(len(some), work)
            if progress is not None:
                progress(some.stop, len(parts))
        return self._joined([part for part in found if part is not None])

    def _joined(self, parts: list[LeafLists]) -> WalkResult:
        offsets = np.cumsum([0] + [len(bases) for bases, *_ in parts])[:-1]
        bases = np.concatenate([part[0] for part in parts])
        return WalkResult(
            Boxes(
                self._space,
                indices_of(bases, self._space),
                np.concatenate([part[1] for part in parts]),
            ),
            np.concatenate([part[2] for part in parts]),
            np.concatenate([part[3] + first for part, first in zip(parts, offsets, strict=True)]),
            np.concatenate([part[4] for part in parts]).astype(np.int64),
        )


def _by_number(found: WalkResult) -> Iterator[Change]:
    """Yield the changes of each number, rising."""
    order = np.argsort(found.number, kind="stable")
    numbers, counts = np.unique(found.number, return_counts=True)
    for number, end, count in zip(numbers, np.cumsum(counts), counts, strict=True):
        leaf = found.leaf[order[end - count : end]]
        was = found.was[leaf]
        lost, gained = found.leaves.chosen(leaf[was]), found.leaves.chosen(leaf[~was])
        yield Change(int(number), lost, gained)
