"""Whether rows elsewhere give what the same rows give in memory."""

from __future__ import annotations

from typing import Any

import numpy as np

import pcor


def same_coe(one: pcor.Table, other: pcor.Table, key: int, detector: Any) -> bool:
    a, b = (pcor.matching_contexts(t, key, detector) for t in (one, other))
    return np.array_equal(a.masks, b.masks) and np.array_equal(a.populations, b.populations)


def cells(table: pcor.Table) -> dict[tuple[int, ...], int]:
    """Return the rows of each cell by its codes."""
    places = table.cells.cell_places.tolist()
    return dict(zip(map(tuple, places), table.cells.cell_counts.tolist(), strict=True))
