"""EncodedRows: the rows that fit a schema, one by one, in memory. Private: everything."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray


@dataclass(frozen=True, repr=False)
class PeopleGroups:
    """People whose rows are in the same cells, as kernels read them. Private.

    Attributes:
        starts: where the cells of each group begin, and where those of the last end.
        cells: of all groups, one after the other.
        counts: how many people are in each group.
    """

    starts: NDArray[np.int64]
    cells: NDArray[np.int64]
    counts: NDArray[np.int64]


@dataclass(frozen=True, repr=False)
class EncodedRows:
    """The rows that fit the schema, in the order of the source. Private.

    Attributes:
        cell: for each row, the number of its cell.
        cells: for each cell, its value of each attribute as a place in the domain.
        metric: finite numbers.
        keys: the id column as Arrow has it; or the 0-based row numbers of the source, ``None``
            where they are simply 0, 1, 2, ...
        people: for each row, a number that stands for its person; ``None`` where the schema does
            not say whose rows are whose.
        left_out: rows that fit, of people with more rows than are counted; ``None`` where there is
            no such row. They can be looked up, and nothing else.
    """

    cell: NDArray[np.int32]
    cells: NDArray[np.int64]
    metric: NDArray[np.float64]
    keys: pa.Array | NDArray[np.int64] | None
    people: NDArray[np.int32] | None = None
    left_out: EncodedRows | None = None

    def taken(self, rows: NDArray[np.int64]) -> EncodedRows:
        """Return some of the rows, in this order; their cells are numbered anew."""
        present, cell = np.unique(self.cell[rows], return_inverse=True)
        keys: Any = rows
        if self.keys is not None:
            numbers = isinstance(self.keys, np.ndarray)
            keys = self.keys[rows] if numbers else self.keys.take(pa.array(rows))
        people = None if self.people is None else self.people[rows]
        return EncodedRows(
            cell.astype(np.int32), self.cells[present], self.metric[rows], keys, people
        )

    @cached_property
    def groups(self) -> PeopleGroups:
        """The people by the cells that their rows are in: all that a context can tell of them."""
        if self.people is None:
            raise ValueError("nobody said whose rows are whose")
        size = len(self.cells)
        person, cell = np.divmod(np.unique(self.people.astype(np.int64) * size + self.cell), size)
        first = np.flatnonzero(np.concatenate([[True], person[1:] != person[:-1]]))
        lengths = np.diff(np.append(first, len(person)))
        starts, cells, counts = [np.zeros(1, np.int64)], [cell[:0]], [cell[:0]]
        for length in np.unique(lengths):
            of_length = cell[first[lengths == length, np.newaxis] + np.arange(length)]
            alike, several = np.unique(of_length, axis=0, return_counts=True)
            starts.append(np.full(len(alike), length))
            cells.append(alike.reshape(-1))
            counts.append(several)
        return PeopleGroups(
            np.cumsum(np.concatenate(starts)), *map(np.concatenate, (cells, counts))
        )

    def of_person(self, person: int) -> NDArray[np.int64]:
        """Return the places of all rows of one person."""
        if self.people is None:
            return np.array([person], dtype=np.int64)
        return np.flatnonzero(self.people == person)

    def twin(self, other: EncodedRows, row: int) -> int | None:
        """Return the place of a row that holds the same as one of another table's, of its person.

        Two such rows are the same to every context, so one stands for the other.
        """
        if self.people is None or other.people is None:
            return None
        own = self.of_person(int(other.people[row]))
        same = self.metric[own] == other.metric[row]
        same &= (self.cells[self.cell[own]] == other.cells[other.cell[row]]).all(axis=1)
        found = own[same]
        return int(found[0]) if len(found) else None

    def with_person(self, codes: NDArray[np.int64], metric: NDArray[np.float64]) -> EncodedRows:
        """Return the rows and, as the last, those of a new person; they have no keys.

        Args:
            codes: their values of each attribute as places in the domains.
            metric: their metrics.
        """
        cells, cell = np.unique(np.vstack([self.cells, codes]), axis=0, return_inverse=True)
        cell = cell.reshape(-1)
        keys: Any = np.arange(len(self.metric)) if self.keys is None else self.keys
        if isinstance(keys, np.ndarray):
            keys = np.append(keys, np.full(len(metric), -1))
        else:
            keys = pa.concat_arrays([keys, pa.nulls(len(metric), keys.type)])
        people = None
        if self.people is not None:
            people = np.append(self.people, np.full(len(metric), self.people.max() + 1, np.int32))
        number = np.append(cell[self.cell], cell[len(self.cells) :]).astype(np.int32)
        metrics = np.append(self.metric, metric)
        return EncodedRows(number, cells, metrics, keys, people, self.left_out)

    def joined(self, other: EncodedRows, row: int) -> EncodedRows:
        """Return the rows and, as the last, one of those left out; a new cell is the last, too."""
        codes = other.cells[other.cell[row]]
        found = np.flatnonzero((self.cells == codes).all(axis=1))
        cell = int(found[0]) if len(found) else len(self.cells)
        cells = self.cells if len(found) else np.vstack([self.cells, codes])
        keys: Any = np.arange(len(self.metric)) if self.keys is None else self.keys
        more: Any = np.arange(len(other.metric)) if other.keys is None else other.keys
        numbers = isinstance(keys, np.ndarray)
        keys = (
            np.append(keys, more[row]) if numbers else pa.concat_arrays([keys, more[row : row + 1]])
        )
        people = None
        if self.people is not None and other.people is not None:
            people = np.append(self.people, other.people[row])
        return EncodedRows(
            np.append(self.cell, np.int32(cell)),
            cells,
            np.append(self.metric, other.metric[row]),
            keys,
            people,
            None
            if len(other.metric) == 1
            else other.taken(np.delete(np.arange(len(other.metric)), row)),
        )
