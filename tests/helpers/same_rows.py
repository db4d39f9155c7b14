"""Whether rows elsewhere give what the same rows give in memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import pcor
from pcor.releasing.fact_draws import FactRows
from pcor.releasing.facts import PlannedCount, PlannedFact


def same_coe(one: pcor.Table, other: pcor.Table, key: int, detector: Any) -> bool:
    a, b = (pcor.matching_contexts(t, key, detector) for t in (one, other))
    return np.array_equal(a.masks, b.masks) and np.array_equal(a.populations, b.populations)


def fact_numbers(rows: FactRows, facts: Sequence[PlannedFact], mask: int) -> list[object]:
    """Return what the noise of each fact is added to, or its scores."""
    return [
        rows.number(fact, mask) if isinstance(fact, PlannedCount) else rows.scores(fact, mask)
        for fact in facts
    ]


def cells(table: pcor.Table) -> dict[tuple[int, ...], int]:
    """Return the rows of each cell by its codes."""
    places = table.cells.cell_places.tolist()
    return dict(zip(map(tuple, places), table.cells.cell_counts.tolist(), strict=True))
