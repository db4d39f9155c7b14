"""HeldRow: the cells of rows in an engine, and one row more that is known here.

Private: everything. A queried record is public and always counted, also where of its person other
rows are (``people``). The engine is asked as for anybody; the record is added to its answers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pcor.public.context import Words
from pcor.public.grid import MetricGrid
from pcor.rows.cell_table import CellTable
from pcor.rows.cells import Cells, Distribution, Range, Rule
from pcor.rows.remote import RemoteCellTable


class HeldRow(Cells):
    """The cells of an engine with one row more.

    Args:
        remote: the others.
        required: the bits of the row's attribute values.
        places: the positions of those bits.
        value: its metric.
    """

    def __init__(
        self, remote: RemoteCellTable, required: Words, places: NDArray[np.int64], value: float
    ) -> None:
        larger = remote.without_pairs().with_row(required, places, value)
        apart = value - remote.centre
        here = (larger.cell_required == required).all(axis=1)
        grown = len(larger.cell_counts) - len(remote.cell_counts)
        super().__init__(
            cell_required=larger.cell_required,
            cell_counts=larger.cell_counts,
            cell_sums=np.append(remote.cell_sums, np.zeros(grown)) + here * apart,
            cell_squares=np.append(remote.cell_squares, np.zeros(grown)) + here * apart**2,
            centre=remote.centre,
            cell_numbers=larger.cell_numbers,
            cell_places=larger.cell_places,
        )
        self._remote, self._row = remote, (required, places, value)
        self._required, self._value, self._here = required, value, here

    def in_memory(self) -> CellTable:
        """Return all pairs, with the row."""
        return self._remote.in_memory().with_row(*self._row)

    def with_row(self, required: Words, places: NDArray[np.int64], value: float) -> Cells:
        """Return all of it in memory, with another row."""
        return self.in_memory().with_row(required, places, value)

    def visible(self, value: float, rule: Rule) -> CellTable:
        """Return the pairs in the rule's window, which the row may widen; and the row."""
        window = self._remote.window(value, rule, [self._value])
        part = self._remote.seen_through(window, value)
        whole = {column.name: getattr(self, column.name) for column in fields(Cells)}
        ask = None if part.ask is None else self.distribution
        return replace(part.with_row(*self._row), **whole, ask=ask)

    def distribution(self, mask: Words) -> Distribution:
        """Return the distinct metric values of a population, rising, and their counts."""
        values, counts = self._remote.distribution(mask)
        if (self._required & ~mask).any():
            return values, counts
        place = int(np.searchsorted(values, self._value))
        if place < len(values) and values[place] == self._value:
            return values, counts + (np.arange(len(values)) == place)
        return np.insert(values, place, self._value), np.insert(counts, place, 1)

    def rows_between(self, low: float, high: float) -> NDArray[np.int64]:
        """Return how many rows of each cell have a metric in a closed range."""
        counts = self._grown(self._remote.rows_between(low, high))
        return counts + self._here if low <= self._value <= high else counts

    def above(self, value: float) -> NDArray[np.float64]:
        """Return of each cell's rows above a metric count, sum, squares; and how many equal it."""
        found = self._grown(self._remote.above(value))
        apart = self._value - self.centre
        beyond, same = float(self._value > value), float(self._value == value)
        more = np.array([beyond, beyond * apart, beyond * apart**2, same])
        return np.asarray(found + more[:, np.newaxis] * self._here, dtype=np.float64)

    def prepare(
        self,
        values: Sequence[float],
        rule: Rule,
        counted: Sequence[Range] = (),
        grid: MetricGrid | None = None,
    ) -> None:
        """Read what a rule needs to judge several metrics, in as few passes as the engine can."""
        self._remote.prepare(values, rule, counted, grid, held=[self._value])

    def read_grid(self, grid: MetricGrid) -> None:
        """Read how many rows of each cell belong to each point of a grid."""
        self._remote.read_grid(grid)

    def on_grid(self, grid: MetricGrid, mask: Words) -> NDArray[np.int64]:
        """Return how many rows of a population belong to each point of a grid."""
        counts = self._remote.on_grid(grid, mask)
        if not (self._required & ~mask).any():
            counts[grid.places(np.array([self._value]))] += 1
        return counts

    def read_all(self) -> None:
        """Read all pairs where the rows may change; refuse if an engine may not hand them over."""
        self._remote.read_all()

    def _grown(self, found: NDArray[Any]) -> NDArray[Any]:
        """Return numbers by cell with a 0 for the row's cell, where it is a new one."""
        shape = (*found.shape[:-1], len(self._here) - found.shape[-1])
        return np.concatenate([found, np.zeros(shape, found.dtype)], axis=-1)
