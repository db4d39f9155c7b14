"""Draw facts: the true numbers of the context that was drawn, and the noise they leave with.

Private: everything but what ``draw_facts`` returns. What facts need of the rows is read before the
charge and from the same state of the rows as the draw (``run.look``): it does not depend on the
context, which is known only later. V's own row is public and counted like the others.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pcor.mechanism.noise import draw_discrete_laplace
from pcor.mechanism.randomness import RandomSource
from pcor.public.grid import MetricGrid
from pcor.releasing.facts import Fact, PlannedCount, PlannedFact, PlannedQuantile, plausible
from pcor.rows.cells import Range
from pcor.rows.people_cells import PeopleCells
from pcor.rows.table import Record, Table


def fact_ranges(facts: Sequence[PlannedFact], records: Sequence[Record]) -> list[Range]:
    """Return the ranges whose rows will be counted for several records."""
    return [_extreme(side, record.value) for side in _sides(facts) for record in records]


def _sides(facts: Sequence[PlannedFact]) -> list[str]:
    """Return the sides of the ranks among some facts."""
    ranks = [fact for fact in facts if isinstance(fact, PlannedCount) and not fact.people]
    return [fact.side for fact in ranks if fact.side]


def fact_grid(facts: Sequence[PlannedFact]) -> MetricGrid | None:
    """Return the grid at whose points rows will be counted, if a fact needs that."""
    grids = (fact.grid for fact in facts if isinstance(fact, PlannedQuantile))
    return next(grids, None)  # a metric has one grid at most


def count_people(facts: Sequence[PlannedFact]) -> bool:
    """Tell whether a fact is a number of people, who are counted once, whatever rows they have."""
    return any(isinstance(fact, PlannedCount) and fact.people for fact in facts)


def _extreme(side: str, value: float) -> Range:
    """Return the metrics that are at least as extreme as one."""
    return (value, math.inf) if side == "high" else (-math.inf, value)


@dataclass(frozen=True, repr=False)
class FactRows:
    """What facts need of the rows, whatever context will be drawn. Private.

    Attributes:
        table: the rows, with the record among those that are counted.
        extreme: for each side of a rank, the rows of each cell that are as extreme as the record.
        value: the record's own metric.
        people: which cells each person has rows in, where people are counted.
    """

    table: Table
    extreme: dict[str, NDArray[np.int64]]
    value: float
    people: PeopleCells | None

    @classmethod
    def read(cls, facts: Sequence[PlannedFact], table: Table, record: Record) -> FactRows:
        """Read it. Before the charge; draws nothing."""
        table = table.holding(record)
        grid = fact_grid(facts)
        if grid is not None:
            table.cells.read_grid(grid)
        extreme = {
            side: table.cells.rows_between(*_extreme(side, record.value)) for side in _sides(facts)
        }
        people = table.people_cells(record) if count_people(facts) else None
        return cls(table, extreme, record.value, people)

    def number(self, fact: PlannedCount, mask: int) -> int:
        """Return the true count or rank in a context."""
        if self.people is not None:
            ends = _extreme(fact.side, self.value) if fact.side else (-math.inf, math.inf)
            return self.people.count(self.table.covered_cells(mask), *ends)
        cells = self.table.cells
        weights = cells.cell_counts if fact.side is None else self.extreme[fact.side]
        return int(cells.totals(self.table.words([mask]), weights)[0])

    def scores(self, fact: PlannedQuantile, mask: int) -> list[list[int]]:
        """Return the score of each point of the grid, for each draw of a quantile."""
        rows = self.table.cells.on_grid(fact.grid, self.table.words([mask])[0])
        return [rank_scores(rows, fact, target).tolist() for target in fact.targets]


def rank_scores(rows: NDArray[np.int64], fact: PlannedQuantile, target: int) -> NDArray[np.int64]:
    """Return, for each point of a grid, minus how far its ranks are from the wanted one.

    The rows at or below a point, and those below it, say which ranks are its own: L to R. All
    points together have all ranks from 0 to n; the first one also has whatever is less, the last
    one whatever is more. So some point has the wanted rank, q * n + target, and a score of 0. In
    units of 1 / c for q = a / c: whole numbers.

    Args:
        rows: how many belong to each point.
        fact: which quantile.
        target: how many rows above the quantile; below it, if negative.
    """
    a, c = fact.share.as_integer_ratio()
    upper = np.cumsum(rows)
    wanted = a * int(upper[-1]) + c * target
    above = c * (upper - rows) - wanted  # how far the point's least rank is above the wanted one
    below = wanted - c * upper
    above[0] = below[-1] = 0
    scores: NDArray[np.int64] = -np.maximum(np.maximum(above, below), 0)
    return scores


def draw_facts(
    facts: Sequence[PlannedFact], rows: FactRows, mask: int, chooser: RandomSource
) -> list[Fact]:
    """Return the facts of a context, with noise, and made not to contradict one another."""
    drawn = [_drawn(fact, rows, mask, chooser) for fact in facts]
    return plausible(drawn, fact_grid(facts))


def _drawn(fact: PlannedFact, rows: FactRows, mask: int, chooser: RandomSource) -> Fact:
    if isinstance(fact, PlannedCount):
        noise = draw_discrete_laplace(fact.rate, chooser.uniform)
        return fact.fact(rows.number(fact, mask) + noise)
    return fact.fact(
        [
            chooser.select(scores, eta=fact.eta, mechanism="exponential")
            for scores in rows.scores(fact, mask)
        ]
    )
