"""Hospital stays, made up: patients with several rows, and how long each stay was.

30,000 stays of 15,000 patients, each of whom came up to four times. How many days somebody stays
depends on the treatment, on how they came, and on their age. ``STAY`` is a planned hip replacement
of 24 days: long for that, and not rare among emergencies.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pcor.public.schema import Schema
from pcor.rows.table import Table

STAY = 12_345  # the stay that has to be explained
STAY_DAYS = 24
MOST_STAYS = 4  # of one patient

_ROWS = 30_000
_PATIENTS = 15_000
_SEED = 20240229
_LONGEST = 90

# Treatment -> share of the stays, usual days, and the share of them that are planned.
_TREATMENTS: dict[str, tuple[float, float, float]] = {
    "birth": (0.22, 3.5, 0.60),
    "appendix": (0.14, 4.0, 0.10),
    "cataract": (0.16, 1.5, 0.97),
    "heart bypass": (0.10, 11.0, 0.55),
    "hip replacement": (0.20, 8.0, 0.75),
    "pneumonia": (0.18, 9.0, 0.05),
}
_AGES: dict[int, float] = {18: 0.24, 40: 0.20, 60: 0.26, 75: 0.30}  # by the first age of each band
_YEARS = (2020, 2021, 2022, 2023)


def stays() -> pa.Table:
    """Return 30,000 stays in hospital.

    Only the generator's raw uniform numbers are used, so no change in a library's distributions
    can change the table.
    """
    uniform = np.random.Generator(np.random.PCG64(_SEED)).random((_ROWS, 7))
    shares, usual, planned = np.array(list(_TREATMENTS.values())).T
    kind = np.searchsorted(np.cumsum(shares)[:-1], uniform[:, 0], side="right")
    band = np.searchsorted(np.cumsum(list(_AGES.values()))[:-1], uniform[:, 1], side="right")
    came_planned = uniform[:, 2] < planned[kind]
    days = _days(
        usual[kind] * (0.8 + 0.15 * band) * np.where(came_planned, 0.7, 1.3), uniform[:, 5:]
    )
    columns: dict[str, Any] = {
        "stay": np.arange(1, _ROWS + 1),
        "patient": [f"P{number:05d}" for number in _whose()],
        "treatment": np.array(list(_TREATMENTS))[kind],
        "admission": np.where(came_planned, "planned", "emergency"),
        "age": np.array(list(_AGES))[band] + (uniform[:, 3] * 15).astype(np.int64),
        "year": np.array(_YEARS)[(uniform[:, 4] * len(_YEARS)).astype(np.int64)],
        "days": days,
    }
    planted = {
        "treatment": "hip replacement",
        "admission": "planned",
        "age": 52,
        "year": 2022,
        "days": STAY_DAYS,
    }
    for name, value in planted.items():
        columns[name][STAY - 1] = value
    return pa.table(columns)


def stays_schema() -> Schema:
    """Return what is public about the stays: 16 values of 4 attributes, and how often one comes."""
    return Schema(
        metric={"column": "days", "unit": "days", "low": 0, "high": _LONGEST, "step": 1},
        attributes={
            "treatment": list(_TREATMENTS),
            "admission": ["planned", "emergency"],
            "age": {"edges": [*_AGES, 120]},
            "year": list(_YEARS),
        },
        id="stay",
        person="patient",
        rows_per_person=MOST_STAYS,
        name="stays",
        rows="stays",
        contexts={"treatment": "one", "admission": "one", "age": "range", "year": "range"},
        max_clauses=3,
    )


def stays_table() -> Table:
    """Return ``stays`` encoded and ready for a release."""
    return Table(stays(), stays_schema())


def _whose() -> NDArray[np.int64]:
    """Return the patient of each stay: a third of them came four times, the others once."""
    places, often = np.arange(_ROWS), _PATIENTS // 3
    return np.where(places < MOST_STAYS * often, places % often, often + places % (2 * often))


def _days(typical: NDArray[np.float64], uniform: NDArray[np.float64]) -> NDArray[np.int64]:
    """Draw whole days, at least one, from the mean of two exponential numbers."""
    spread = -np.log((1 - uniform * 0.999).prod(axis=1)) / 2
    days: NDArray[np.int64] = np.clip(np.round(typical * spread), 1, _LONGEST).astype(np.int64)
    return days
