"""CellTable: cells and pairs in memory, as kernels read them, or the part some contexts can cover.

Private: everything. It can be narrowed to what the one-bit neighbours of a context can cover, or
to what lies inside an outer context: fewer pairs, the same answers for those contexts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pcor.public.context import Words
from pcor.public.grid import MetricGrid
from pcor.rows.cells import Cells, Distribution, Range, Rule

_CELL_COLUMNS = [field.name for field in fields(Cells) if field.name != "centre"]
_PAIR_COLUMNS = ["required", "values", "counts", "pair_cells"]


@dataclass(frozen=True, repr=False)
class CellTable(Cells):
    """Cells, and their pairs sorted by metric.

    Attributes:
        required: the required bits of each pair's cell, shape (pairs, words).
        values: the metric of each pair, rising.
        counts: the rows of each pair.
        pair_cells: the cell of each pair, as a place among the whole table's.
        ask: tells the whole distribution of a population, where only some pairs are here.
    """

    required: Words
    values: NDArray[np.float64]
    counts: NDArray[np.int32]
    pair_cells: NDArray[np.int32]
    ask: Callable[[Words], Distribution] | None = None

    @classmethod
    def of_one_cell(cls, values: NDArray[np.float64]) -> CellTable:
        """Return one cell that every context covers, with these metrics; they rise strictly."""
        rows = len(values)
        return cls(
            cell_required=np.zeros((1, 1), dtype=np.uint64),
            cell_counts=np.array([rows]),
            cell_sums=np.array([values.sum()]),
            cell_squares=np.array([(values**2).sum()]),
            centre=0.0,
            cell_numbers=np.zeros(1, dtype=np.int64),
            cell_places=np.zeros((1, 1), dtype=np.int64),
            required=np.zeros((rows, 1), dtype=np.uint64),
            values=values,
            counts=np.ones(rows, dtype=np.int32),
            pair_cells=np.zeros(rows, dtype=np.int32),
        )

    def visible(self, value: float, rule: Rule) -> CellTable:
        """Return all of it, or the nearest pairs of each cell where the rule looks at no others."""
        rows = rule.window_rows
        return self if rows is None else self.nearest(value, rows)

    def in_memory(self) -> CellTable:
        """Return it as it is."""
        return self

    def prepare(
        self,
        values: Sequence[float],
        rule: Rule,
        counted: Sequence[Range] = (),
        grid: MetricGrid | None = None,
    ) -> None:
        """Do nothing: all rows are in memory."""

    def read_grid(self, grid: MetricGrid) -> None:
        """Do nothing: all rows are in memory."""

    def on_grid(self, grid: MetricGrid, mask: Words) -> NDArray[np.int64]:
        """Return how many rows of a population belong to each point of a grid."""
        values, counts = self.distribution(mask)
        return np.bincount(grid.places(values), counts, minlength=grid.size).astype(np.int64)

    def read_all(self) -> None:
        """Do nothing: all rows are in memory, and do not change."""

    @property
    def pairs(self) -> tuple[Words, NDArray[np.float64], NDArray[np.int32]]:
        """The pairs as kernels read them."""
        return self.required, self.values, self.counts

    @cached_property
    def centred(self) -> NDArray[np.float64]:
        """The metric of each pair less the centre."""
        return self.values - self.centre

    def place(self, value: float) -> int:
        """Return the first pair with this metric."""
        return int(np.searchsorted(self.values, value))

    def alike(self, required: Words, value: float) -> NDArray[np.int64]:
        """Return the pairs of one cell with one metric: several where each row is a pair.

        Args:
            required: the required bits of the cell.
            value: the metric.
        """
        end = int(np.searchsorted(self.values, value, side="right"))
        pairs = np.arange(self.place(value), end)
        alike: NDArray[np.int64] = pairs[(self.required[pairs] == required).all(axis=1)]
        return alike

    def by_cell(
        self, pairs: slice | NDArray[np.bool_], weights: NDArray[Any]
    ) -> NDArray[np.float64]:
        """Return, for each cell here, the summed weights of those of some pairs in it."""
        # A pair names its cell by the place among the whole table's, in a narrowed table too.
        size = int(self.cell_numbers.max(initial=-1)) + 1
        totals = np.bincount(self.pair_cells[pairs], weights, minlength=size)
        return totals[self.cell_numbers].astype(np.float64, copy=False)

    def cell_extremes(
        self, values: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the first and the last of each cell's ``values``, one for each pair and rising.

        They are infinite, inward, where a cell has no pairs.
        """
        size = int(self.cell_numbers.max(initial=-1)) + 1
        lows, highs = np.full(size, np.inf), np.full(size, -np.inf)
        # Of several pairs of a cell the one that is assigned last stays.
        lows[self.pair_cells[::-1]] = values[::-1]
        highs[self.pair_cells] = values
        return lows[self.cell_numbers], highs[self.cell_numbers]

    def rows_between(self, low: float, high: float) -> NDArray[np.int64]:
        """Return how many rows of each cell have a metric in a closed range."""
        first, last = self.place(low), int(np.searchsorted(self.values, high, side="right"))
        inside = slice(first, max(first, last))
        return self.by_cell(inside, self.counts[inside]).astype(np.int64)

    def above(self, value: float) -> NDArray[np.float64]:
        """Return of each cell's rows above a metric count, sum, squares; and how many equal it.

        Sums are about the centre. Shape (4, cells).
        """
        end = int(np.searchsorted(self.values, value, side="right"))
        same, above = slice(self.place(value), end), slice(end, None)
        counts, centred = self.counts[above], self.centred[above]
        return np.array(
            [
                self.by_cell(above, counts),
                self.by_cell(above, counts * centred),
                self.by_cell(above, counts * centred**2),
                self.by_cell(same, self.counts[same]),
            ]
        )

    def distribution(self, mask: Words) -> Distribution:
        """Return the distinct metric values of a population, rising, and their counts."""
        from pcor._kernels.coverage import covered_places

        if self.ask is not None:
            return self.ask(mask)
        kept = covered_places(mask, self.required)
        values, counts = self.values[kept], self.counts[kept].astype(np.int64)
        if len(values) == 0:
            return values, counts
        first = np.flatnonzero(np.concatenate([[True], values[1:] != values[:-1]]))
        return values[first], np.add.reduceat(counts, first)

    def nearest(self, value: float, wanted: int) -> CellTable:
        """Return only the pairs with the nearest rows of each cell on each side of a metric.

        Enough for a rule that looks at no more than ``wanted`` rows on each side, whatever context
        they are in; how many pairs that is depends on the cells and not on the rows.
        """
        from pcor._kernels.coverage import nearest_places

        pairs = nearest_places(
            self.pair_cells, self.counts, self.place(value), wanted, len(self.cell_required)
        )
        return self if len(pairs) == len(self.values) else self._narrowed(pairs)

    def nearest_in(self, masks: Words, value: float, wanted: int) -> CellTable:
        """Return only the pairs with the nearest rows of some context on each side of a metric.

        Enough to judge the value in these contexts by a rule that looks at no more than ``wanted``
        rows on each side of it.
        """
        from pcor._kernels.coverage import covered_places

        seen, at = np.zeros(len(self.values), dtype=bool), self.place(value)
        for mask in masks:
            pairs = covered_places(mask, self.required)
            middle = int(np.searchsorted(pairs, at))
            # Above stands the judged row, too: one row more.
            for side, rows in ((pairs[:middle][::-1], wanted), (pairs[middle:], wanted + 1)):
                counts = self.counts[side]
                seen[side[np.cumsum(counts) - counts < rows]] = True
        return self._narrowed(np.flatnonzero(seen))

    def near(self, mask: Words) -> CellTable:
        """Return what the context and its one-bit neighbours can cover."""
        from pcor._kernels.coverage import nearly_covered_places

        pairs = nearly_covered_places(mask, self.required)
        if 2 * len(pairs) > len(self.required):
            return self  # most of it: copying would cost more than it saves
        return self._narrowed(pairs, nearly_covered_places(mask, self.cell_required))

    def inside(self, mask: Words) -> CellTable:
        """Return what contexts contained in this one can cover."""
        from pcor._kernels.coverage import covered_places

        return self._narrowed(
            covered_places(mask, self.required), covered_places(mask, self.cell_required)
        )

    def without_row(self, required: Words, value: float) -> CellTable:
        """Return the table with one row less; there must be one of this cell and metric in it.

        Args:
            required: the bits of its attribute values.
            value: its metric.
        """
        pair = int(self.alike(required, value)[0])
        cell = int(self.pair_cells[pair])
        counts = self.counts.copy()
        counts[pair] -= 1
        changed = replace(self, counts=counts)
        if counts[pair] == 0:
            # A pair of no rows would still be a minimum or maximum; a cell of none harms nobody.
            kept = np.delete(np.arange(len(counts)), pair)
            changed = changed._narrowed(kept)
        return changed._recounted(cell, -1)

    def with_row(self, required: Words, places: NDArray[np.int64], value: float) -> CellTable:
        """Return the table with one row more.

        Args:
            required: the bits of its attribute values.
            places: the positions of those bits.
            value: its metric.
        """
        found = self.cell_numbers[(self.cell_required == required).all(axis=1)]
        larger = self if len(found) else self._with_cell(required, places)
        cell = int(found[0]) if len(found) else int(larger.cell_numbers[-1])
        pair = self.place(value)
        return replace(
            larger,
            required=np.insert(larger.required, pair, required, axis=0),
            values=np.insert(larger.values, pair, value),
            counts=np.insert(larger.counts, pair, 1),
            pair_cells=np.insert(larger.pair_cells, pair, cell),
        )._recounted(cell, 1)

    def _with_cell(self, required: Words, places: NDArray[np.int64]) -> CellTable:
        """Return the table with a cell that has no rows yet, numbered after all others."""
        return replace(
            self,
            cell_required=np.append(self.cell_required, required[np.newaxis], axis=0),
            cell_counts=np.append(self.cell_counts, 0),
            cell_sums=np.append(self.cell_sums, 0.0),
            cell_squares=np.append(self.cell_squares, 0.0),
            cell_numbers=np.append(self.cell_numbers, self.cell_numbers.max(initial=-1) + 1),
            cell_places=np.append(self.cell_places, places[np.newaxis], axis=0),
        )

    def _recounted(self, cell: int, change: int) -> CellTable:
        """Return the table with the totals of one cell brought in line with its pairs.

        Sums are added up anew: what a subtraction leaves is rounded by the size of the whole. In a
        table of the nearest pairs they are those of its pairs, which no rule that looks at so many
        rows on each side asks for.
        """
        here = self.cell_numbers == cell
        pairs = self.pair_cells == cell
        weighted = self.counts[pairs] * self.centred[pairs]
        return replace(
            self,
            cell_counts=np.where(here, self.cell_counts + change, self.cell_counts),
            cell_sums=np.where(here, weighted.sum(), self.cell_sums),
            cell_squares=np.where(here, weighted @ self.centred[pairs], self.cell_squares),
        )

    def _narrowed(
        self, pairs: NDArray[np.int64], cells: NDArray[np.int64] | None = None
    ) -> CellTable:
        """Return some of the pairs, with some of the cells or all of them."""
        columns = [] if cells is None else _CELL_COLUMNS
        of_cells = {name: getattr(self, name)[cells] for name in columns}
        of_pairs = {name: getattr(self, name)[pairs] for name in _PAIR_COLUMNS}
        return replace(self, **of_cells, **of_pairs)
