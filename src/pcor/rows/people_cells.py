"""PeopleCells: which cells each person has rows in, and from where to where their metrics reach.

Private: everything. It is what a number of people needs: a person is counted once, whatever rows
they have, and is as extreme as the most extreme of them. In memory there is a line for each row; an
engine tells one for each person and cell.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, repr=False)
class PeopleCells:
    """Lines, in any order.

    Attributes:
        people: a number that stands for the person of each line, from 0 on.
        cells: the number of the cell.
        lowest: the least metric of the person's rows in it.
        highest: the largest.
    """

    people: NDArray[np.int64]
    cells: NDArray[np.int64]
    lowest: NDArray[np.float64]
    highest: NDArray[np.float64]

    def count(self, covered: NDArray[np.bool_], low: float, high: float) -> int:
        """Return how many people have a row in a covered cell that is in a range open on one side.

        Args:
            covered: for each cell, whether its rows count.
            low: their metrics are at least this,
            high: and at most this; one of the two is infinite.
        """
        inside = covered[self.cells] & (self.highest >= low) & (self.lowest <= high)
        seen = np.zeros(int(self.people.max(initial=-1)) + 1, dtype=bool)
        seen[self.people[inside]] = True
        return int(seen.sum())

    def with_row(self, person: int | None, cell: int, value: float) -> PeopleCells:
        """Return it with one row more, of somebody new where no person is given."""
        if person is None:
            person = int(self.people.max(initial=-1)) + 1
        columns = zip(
            (self.people, self.cells, self.lowest, self.highest),
            (person, cell, value, value),
            strict=True,
        )
        return PeopleCells(*(np.append(column, more) for column, more in columns))
