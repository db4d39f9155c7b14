"""Tables that nobody owns: made here, of the shape of those that people have."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

# How many values the attributes of the census-like table have.
CENSUS_SIZES = (16, 14, 7, 7, 5, 2, 2)


def census(rows: int = 46_000, seed: int = 0) -> pa.Table:
    """Return people with seven attributes, skewed and dependent, and the hours that they work.

    Every attribute leans on the one before it; frequent values are several hundred times as
    frequent as rare ones.
    """
    numbers = np.random.default_rng(seed)
    columns: dict[str, np.ndarray] = {}
    before = np.zeros(rows, dtype=np.int64)
    for place, size in enumerate(CENSUS_SIZES):
        shares = 1.0 / np.arange(1, size + 1) ** 2.2
        drawn = numbers.choice(size, rows, p=shares / shares.sum())
        leaning = numbers.random(rows) < 0.35
        before = np.where(leaning, (drawn + before) % size, drawn)
        columns[f"a{place}"] = before
    hours = 40 + numbers.normal(0, 4, rows) + 3 * (columns["a1"] % 3) - 5 * (columns["a6"] == 1)
    odd = numbers.random(rows) < 0.01
    hours = np.where(odd, numbers.uniform(1, 99, rows), hours)
    return pa.table(columns | {"hours": np.round(np.clip(hours, 1, 99))})


def wide(rows: int = 200_000, attributes: int = 20, values: int = 50, seed: int = 1) -> pa.Table:
    """Return a table of many attributes with many values each, and amounts with a long tail."""
    numbers = np.random.default_rng(seed)
    shares = 1.0 / np.arange(1, values + 1)
    columns = {
        f"a{n}": numbers.choice(values, rows, p=shares / shares.sum()) for n in range(attributes)
    }
    return pa.table(columns | {"amount": np.round(numbers.lognormal(10, 0.5, rows), 2)})
