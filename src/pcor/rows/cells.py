"""Cells: what is asked of the rows of a table, wherever they are.

Private: everything. Rows with the same attribute values form a cell; rows of a cell with the same
metric form a pair. A context covers whole cells, so whatever adds up is a sum over cells, and those
are always at hand. Pairs are not: they are in memory (``CellTable``), or an engine is asked for
those that a detector looks at (``RemoteCellTable``).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from pcor.public.context import Words
from pcor.public.grid import MetricGrid
from pcor.public.window import Window
from pcor.support.threads import in_slices

if TYPE_CHECKING:
    from pcor.rows.cell_table import CellTable

# So many contexts and cells are worth bitmaps of the cells: ten times as fast, once they are there.
_MANY, _MANY_CELLS = 1000, 256

Distribution = tuple[NDArray[np.float64], NDArray[np.int64]]
# From the least metric to the largest, both included.
Range = tuple[float, float]


class Rule(Protocol):
    """What cells use of a detector: which rows it looks at."""

    wants_tails: ClassVar[bool]

    @property
    def window_rows(self) -> int | None:
        """How many rows on each side of a metric its verdict looks at; ``None`` for all of them."""
        ...

    def window_on(self, value: float, low: float, high: float) -> Window:
        """Return which pairs are needed to judge a metric; ``low`` and ``high`` are of all rows."""
        ...

    def region_ends(self, value: float) -> Range | None:
        """Return the range whose rows it counts to judge a metric, if it counts those of one."""
        ...


@dataclass(frozen=True, repr=False)
class Cells(ABC):
    """The cells of a table, with queries on their pairs.

    Attributes:
        cell_required: the required bits of each cell, shape (cells, words): a context covers the
            cell if it has all of them.
        cell_counts: the rows of each cell.
        cell_sums: the sum of each cell's metrics less ``centre``.
        cell_squares: the sum of their squares.
        centre: what sums are measured from, so that nothing cancels.
        cell_numbers: which cells of the whole table these are.
        cell_places: the positions of each cell's values, one column per attribute.
    """

    cell_required: Words
    cell_counts: NDArray[np.int64]
    cell_sums: NDArray[np.float64]
    cell_squares: NDArray[np.float64]
    centre: float
    cell_numbers: NDArray[np.int64]
    cell_places: NDArray[np.int64]

    def __post_init__(self) -> None:
        # A utility of the user's own is shown them. Were it to write into one, by a slip, every
        # later release of the table would count other rows than there are.
        for column in vars(self).values():
            if isinstance(column, np.ndarray):
                column.setflags(write=False)

    @abstractmethod
    def distribution(self, mask: Words) -> Distribution:
        """Return the distinct metric values of a population, rising, and their counts."""

    @abstractmethod
    def rows_between(self, low: float, high: float) -> NDArray[np.int64]:
        """Return how many rows of each cell have a metric in a closed range."""

    @abstractmethod
    def above(self, value: float) -> NDArray[np.float64]:
        """Return of each cell's rows above a metric count, sum, squares; and how many equal it.

        Sums are about the centre. Shape (4, cells).
        """

    @abstractmethod
    def visible(self, value: float, rule: Rule) -> CellTable:
        """Return all cells, with all pairs that can matter when a rule judges one metric."""

    @abstractmethod
    def in_memory(self) -> CellTable:
        """Return all cells with all of their pairs.

        Raises:
            TooLarge: an engine may not hand over that many.
        """

    def value_totals(self, weights: NDArray[np.int64], width: int) -> NDArray[Any]:
        """Return the summed weights of the cells that have each value, by its position."""
        if np.array_equal(weights, self.cell_counts):
            return np.append(self._rows_of_values, np.zeros(width - len(self._rows_of_values)))
        several = self.cell_places.shape[1]
        return np.bincount(self.cell_places.ravel(), np.repeat(weights, several), width)

    @cached_property
    def _rows_of_values(self) -> NDArray[Any]:
        """How many rows have each value, up to the last that any has; every record needs them."""
        several = self.cell_places.shape[1]
        return np.bincount(self.cell_places.ravel(), np.repeat(self.cell_counts, several))

    @abstractmethod
    def with_row(self, required: Words, places: NDArray[np.int64], value: float) -> Cells:
        """Return the same with one row more.

        Args:
            required: the bits of its attribute values.
            places: the positions of those bits.
            value: its metric.
        """

    @abstractmethod
    def prepare(
        self,
        values: Sequence[float],
        rule: Rule,
        counted: Sequence[Range] = (),
        grid: MetricGrid | None = None,
    ) -> None:
        """Read what a rule needs to judge several metrics, where it is not at hand.

        Besides, ``counted`` are ranges whose rows will be counted, and ``grid`` is the one at whose
        points they will be.
        """

    @abstractmethod
    def read_grid(self, grid: MetricGrid) -> None:
        """Read how many rows of each cell belong to each point of a grid, where not at hand."""

    @abstractmethod
    def on_grid(self, grid: MetricGrid, mask: Words) -> NDArray[np.int64]:
        """Return how many rows of a population belong to each point of a grid."""

    @abstractmethod
    def read_all(self) -> None:
        """Make sure that whatever is asked from now on is answered from one state of the rows.

        Raises:
            TooLarge: an engine may not hand over that many pairs, whatever the record.
        """

    def populations(self, masks: Words) -> NDArray[np.int64]:
        """Return how many rows each context covers."""
        return self.totals(masks, self.cell_counts)

    def totals(self, masks: Words, weights: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the summed weights of the cells that each context covers."""
        from pcor._kernels.coverage import totals

        out = np.empty(len(masks), dtype=np.int64)
        if self._worth_bitmaps(len(masks)) and weights.min() >= 0:
            self._totals_of_many(masks, weights, out)
            return out
        in_slices(len(masks), lambda s: totals(masks[s], self.cell_required, weights, out[s]), 64)
        return out

    def _worth_bitmaps(self, contexts: int) -> bool:
        """Tell whether getting bitmaps ready pays for so many contexts."""
        from pcor._kernels.bitmaps import affordable

        cells, words = self.cell_required.shape
        return contexts >= _MANY and cells >= _MANY_CELLS and affordable(cells, words)

    def _totals_of_many(
        self, masks: Words, weights: NDArray[np.int64], out: NDArray[np.int64]
    ) -> None:
        from pcor._kernels.bitmaps import bitmaps, planes_of, totals_of_many

        order = np.argsort(-weights, kind="stable")  # few bits in most chunks
        needing = bitmaps(self.cell_required, order)
        planes = planes_of(weights, order, len(needing))
        free = np.bitwise_or.reduce(self.cell_required, axis=0)
        in_slices(len(masks), lambda s: totals_of_many(masks[s], needing, planes, free, out[s]))

    def several_totals(self, masks: Words, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return several summed weights of the covered cells: shape (kinds, contexts)."""
        from pcor._kernels.coverage import cell_totals

        out = np.empty((len(weights), len(masks)))
        in_slices(
            len(masks), lambda s: cell_totals(masks[s], self.cell_required, weights, out[:, s]), 64
        )
        return out

    @property
    def moments(self) -> NDArray[np.float64]:
        """Count, sum and sum of squares (about the centre) of each cell: shape (3, cells)."""
        return np.array([self.cell_counts, self.cell_sums, self.cell_squares])

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
        from pcor._kernels.coverage import neighbour_totals

        whole, changes = neighbour_totals(
            mask, self.cell_required, self.cell_places, weights, width
        )
        return whole, changes


def cell_bits(places: NDArray[np.int64], width: int) -> Words:
    """Return the bits at these places, for each row of them: the required bits of a cell."""
    required = np.zeros((len(places), (width + 63) // 64), dtype=np.uint64)
    for column in places.T:
        word, bit = np.divmod(column, 64)
        required[np.arange(len(places)), word] |= np.uint64(1) << bit.astype(np.uint64)
    return required
