"""View: the cells and pairs of a table as kernels read them, or the part some contexts can cover.

Private: everything. Rows with the same attribute values form a cell; rows of a cell with the same
metric form a pair. A context covers whole cells. A view can be narrowed to what the one-bit
neighbours of a context can cover, or to what lies inside an outer context: fewer pairs, the same
answers for those contexts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pcor.support.threads import in_slices

Words = NDArray[np.uint64]


@dataclass(frozen=True, repr=False)
class View:
    """Pairs sorted by metric, and cells.

    Attributes:
        needs: the bits of each pair's attribute values, shape (pairs, words).
        values: the metric of each pair, rising.
        counts: the rows of each pair.
        cell_needs: the bits of each cell, shape (cells, words).
        cell_counts: the rows of each cell.
        cell_sums: the sum of each cell's metrics less ``centre``.
        cell_squares: the sum of their squares.
        centre: what sums are measured from, so that nothing cancels.
        cells: which cells of the whole table these are.
        pair_cells: the cell of each pair, as a place among the whole table's.
        cell_places: the positions of each cell's values, one column per attribute.
        ask: tells the whole distribution of a population, for a view that has only some pairs.
    """

    needs: Words
    values: NDArray[np.float64]
    counts: NDArray[np.int32]
    cell_needs: Words
    cell_counts: NDArray[np.int64]
    cell_sums: NDArray[np.float64]
    cell_squares: NDArray[np.float64]
    centre: float
    cells: NDArray[np.int64]
    pair_cells: NDArray[np.int32]
    cell_places: NDArray[np.int64]
    ask: Callable[[Words], tuple[NDArray[np.float64], NDArray[np.int64]]] | None = None

    @cached_property
    def centred(self) -> NDArray[np.float64]:
        """The metric of each pair less the centre."""
        return self.values - self.centre

    def place(self, value: float) -> int:
        """Return the first pair with this metric."""
        return int(np.searchsorted(self.values, value))

    def alike(self, needs: Words, value: float) -> NDArray[np.int64]:
        """Return the pairs of one cell with one metric: several where each row is a pair.

        Args:
            needs: the bits of the cell.
            value: the metric.
        """
        end = int(np.searchsorted(self.values, value, side="right"))
        pairs = np.arange(self.place(value), end)
        found: NDArray[np.int64] = pairs[(self.needs[pairs] == needs).all(axis=1)]
        return found

    def by_cell(
        self, pairs: slice | NDArray[np.bool_], weights: NDArray[Any]
    ) -> NDArray[np.float64]:
        """Return, for each cell of this view, the summed weights of those of some pairs in it."""
        # A pair names its cell by the place among the whole table's, in a narrowed view too.
        size = int(self.cells.max(initial=-1)) + 1
        totals = np.bincount(self.pair_cells[pairs], weights, minlength=size)
        return totals[self.cells].astype(np.float64, copy=False)

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

    def populations(self, masks: Words) -> NDArray[np.int64]:
        """Return how many rows each context covers."""
        return self.totals(masks, self.cell_counts)

    def totals(self, masks: Words, weights: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the summed weights of this view's cells that each context covers."""
        from pcor._kernels.covering import totals

        out = np.empty(len(masks), dtype=np.int64)
        in_slices(len(masks), lambda s: totals(masks[s], self.cell_needs, weights, out[s]), 64)
        return out

    def several_totals(self, masks: Words, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return several summed weights of the covered cells: shape (kinds, contexts)."""
        from pcor._kernels.covering import cell_totals

        out = np.empty((len(weights), len(masks)))
        in_slices(
            len(masks), lambda s: cell_totals(masks[s], self.cell_needs, weights, out[:, s]), 64
        )
        return out

    @property
    def moments(self) -> NDArray[np.float64]:
        """Count, sum and sum of squares (about the centre) of each cell: shape (3, cells)."""
        return np.array([self.cell_counts, self.cell_sums, self.cell_squares])

    def distribution(self, mask: Words) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Return the distinct metric values of a population, rising, and their counts."""
        from pcor._kernels.covering import covered_places

        if self.ask is not None:
            return self.ask(mask)
        kept = covered_places(mask, self.needs)
        values, counts = self.values[kept], self.counts[kept].astype(np.int64)
        if len(values) == 0:
            return values, counts
        first = np.flatnonzero(np.concatenate([[True], values[1:] != values[:-1]]))
        return values[first], np.add.reduceat(counts, first)

    def neighbour_totals(
        self, mask: Words, weights: NDArray[np.int64], width: int
    ) -> NDArray[np.int64]:
        """Return, for each position, the summed weights that flipping it would leave covered."""
        whole, changes = self._flipped(mask, weights[np.newaxis], width)
        totals: NDArray[np.int64] = whole[0] + changes[0]
        return totals

    def neighbour_moments(
        self, mask: Words, weights: NDArray[np.float64], width: int
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return several summed weights of a context, and of the neighbour at each position.

        What a neighbour drops is subtracted, so its error is one of the whole's size.
        """
        whole, changes = self._flipped(mask, weights, width)
        return whole, whole[:, np.newaxis] + changes

    def _flipped(self, mask: Words, weights: NDArray[Any], width: int) -> tuple[Any, Any]:
        from pcor._kernels.covering import neighbour_totals

        whole, changes = neighbour_totals(mask, self.cell_needs, self.cell_places, weights, width)
        return whole, changes

    def nearest(self, value: float, wanted: int) -> View:
        """Return only the pairs with the nearest rows of each cell on each side of a metric.

        Enough for a rule that looks at no more than ``wanted`` rows on each side, whatever context
        they are in; how many pairs that is depends on the cells and not on the rows.
        """
        from pcor._kernels.covering import nearest_places

        pairs = nearest_places(
            self.pair_cells, self.counts, self.place(value), wanted, len(self.cell_needs)
        )
        return self._narrowed(pairs, np.arange(len(self.cells)))

    def near(self, mask: Words) -> View:
        """Return what the context and its one-bit neighbours can cover."""
        from pcor._kernels.covering import nearly_covered_places

        pairs = nearly_covered_places(mask, self.needs)
        if 2 * len(pairs) > len(self.needs):
            return self  # most of it: copying would cost more than it saves
        return self._narrowed(pairs, nearly_covered_places(mask, self.cell_needs))

    def inside(self, mask: Words) -> View:
        """Return what contexts contained in this one can cover."""
        from pcor._kernels.covering import covered_places

        return self._narrowed(
            covered_places(mask, self.needs), covered_places(mask, self.cell_needs)
        )

    def without_row(self, needs: Words, value: float) -> View:
        """Return the view with one row less; there must be one of this cell and metric in it.

        Args:
            needs: the bits of its attribute values.
            value: its metric.
        """
        pair = int(self.alike(needs, value)[0])
        cell = int(self.pair_cells[pair])
        counts = self.counts.copy()
        counts[pair] -= 1
        changed = replace(self, counts=counts)
        if counts[pair] == 0:
            # A pair of no rows would still be a minimum or maximum; a cell of none harms nobody.
            kept = np.delete(np.arange(len(counts)), pair)
            changed = changed._narrowed(kept, np.arange(len(self.cells)))
        return changed._recounted(cell, -1)

    def with_row(self, needs: Words, places: NDArray[np.int64], value: float) -> View:
        """Return the view with one row more.

        Args:
            needs: the bits of its attribute values.
            places: the positions of those bits.
            value: its metric.
        """
        found = self.cells[(self.cell_needs == needs).all(axis=1)]
        view = self if len(found) else self._with_cell(needs, places)
        cell = int(found[0]) if len(found) else int(view.cells[-1])
        pair = self.place(value)
        return replace(
            view,
            needs=np.insert(view.needs, pair, needs, axis=0),
            values=np.insert(view.values, pair, value),
            counts=np.insert(view.counts, pair, 1),
            pair_cells=np.insert(view.pair_cells, pair, cell),
        )._recounted(cell, 1)

    def _with_cell(self, needs: Words, places: NDArray[np.int64]) -> View:
        """Return the view with a cell that has no rows yet, numbered after all others."""
        return replace(
            self,
            cell_needs=np.append(self.cell_needs, needs[np.newaxis], axis=0),
            cell_counts=np.append(self.cell_counts, 0),
            cell_sums=np.append(self.cell_sums, 0.0),
            cell_squares=np.append(self.cell_squares, 0.0),
            cells=np.append(self.cells, self.cells.max(initial=-1) + 1),
            cell_places=np.append(self.cell_places, places[np.newaxis], axis=0),
        )

    def _recounted(self, cell: int, change: int) -> View:
        """Return the view with the totals of one cell brought in line with its pairs.

        Sums are added up anew: what a subtraction leaves is rounded by the size of the whole. In a
        view of the nearest pairs they are those of its pairs, which no rule with a reach asks for.
        """
        here = self.cells == cell
        pairs = self.pair_cells == cell
        weighted = self.counts[pairs] * self.centred[pairs]
        return replace(
            self,
            cell_counts=np.where(here, self.cell_counts + change, self.cell_counts),
            cell_sums=np.where(here, weighted.sum(), self.cell_sums),
            cell_squares=np.where(here, weighted @ self.centred[pairs], self.cell_squares),
        )

    def _narrowed(self, pairs: NDArray[np.int64], cells: NDArray[np.int64]) -> View:
        return View(
            self.needs[pairs],
            self.values[pairs],
            self.counts[pairs],
            self.cell_needs[cells],
            self.cell_counts[cells],
            self.cell_sums[cells],
            self.cell_squares[cells],
            self.centre,
            self.cells[cells],
            self.pair_cells[pairs],
            self.cell_places[cells],
            self.ask,
        )


def cell_bits(places: NDArray[np.int64], width: int) -> Words:
    """Return the bits at these places, for each row of them: what a cell needs."""
    needs = np.zeros((len(places), (width + 63) // 64), dtype=np.uint64)
    for column in places.T:
        word, bit = np.divmod(column, 64)
        needs[np.arange(len(places)), word] |= np.uint64(1) << bit.astype(np.uint64)
    return needs
