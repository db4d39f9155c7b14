"""Motor claims of an insurer, made up, as they leave a claims system: the tutorial's table.

They have the rough edges that a newcomer meets: some amounts are missing, some regions are codes
of an older system, the age is in years, and one column is of no use. One claim in four is a
write-off and costs 6,200 to 8,800. Only urban drivers under 25 had no write-off in 2019, but for
one: ``CLAIM`` is nothing special in the whole table, and stands out among them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pcor.public.context import Context
from pcor.public.schema import Schema
from pcor.rows.table import Table

CLAIM = 107_431  # the claim that has to be explained
CLAIM_AMOUNT = 7_480.50

_ROWS = 20_000
_FIRST = 100_001  # the id of the first claim
_SEED = 20190634  # a seed for which the widest valid context of the claim is the story's
_LAST_AGE = 93
_GARAGES = 40

# For each value its share of the rows, and how much dearer its claims are.
Kinds = Mapping[Any, tuple[float, float]]
_REGIONS: Kinds = {
    "urban": (0.400, 0.95),
    "suburban": (0.290, 1.00),
    "rural": (0.180, 1.10),
    "coastal": (0.080, 1.05),
    "elsewhere": (0.048, 1.20),
    "R9": (0.001, 1.00),  # this and the next: codes that nobody has listed
    "ferry": (0.001, 1.00),
}
_BANDS: Kinds = {  # by the first age of each
    17: (0.16, 0.95),
    25: (0.22, 1.00),
    35: (0.30, 1.05),
    50: (0.20, 1.10),
    65: (0.12, 1.05),
}
_VEHICLES: Kinds = {
    "small": (0.36, 0.90),
    "family": (0.38, 1.00),
    "van": (0.16, 1.10),
    "sports": (0.10, 1.30),
}
_YEARS: Kinds = {
    2018: (0.22, 1.00),
    2019: (0.25, 0.95),
    2020: (0.26, 1.05),
    2021: (0.27, 1.10),
}


def claims() -> pa.Table:
    """Return 20,000 claims as they leave the claims system.

    Only the generator's raw uniform numbers are used, so no change in a library's distributions
    can change the table.
    """
    uniform = np.random.Generator(np.random.PCG64(_SEED)).random((_ROWS, 9))
    region, dear_region = _pick(_REGIONS, uniform[:, 0])
    band, dear_age = _pick(_BANDS, uniform[:, 1])
    vehicle, dear_vehicle = _pick(_VEHICLES, uniform[:, 2])
    year, dear_year = _pick(_YEARS, uniform[:, 3])
    age = _ages(band, uniform[:, 4])
    planted = CLAIM - _FIRST
    region[planted], age[planted], vehicle[planted], year[planted] = "urban", 22, "small", 2019
    amount = _amounts(
        factor=dear_region * dear_age * dear_vehicle * dear_year,
        mild=(region == "urban") & (age < 25) & (year == 2019),
        write_off=uniform[:, 5] < 0.25,
        uniform=uniform[:, 6],
    )
    amount[planted] = CLAIM_AMOUNT
    unknown = uniform[:, 7] < 0.0007
    unknown[planted] = False
    return pa.table(
        {
            "claim": np.arange(_FIRST, _FIRST + _ROWS),
            "year": year,
            "region": region,
            "age": age,
            "vehicle": vehicle,
            "garage": [f"G{int(number * _GARAGES):02d}" for number in uniform[:, 8]],
            "amount": pa.array(amount, mask=unknown),
        }
    )


def claims_csv() -> str:
    """Return ``claims`` as the text of a CSV file: money with its cents, nothing where unknown."""
    columns = claims().to_pydict()
    columns["amount"] = ["" if a is None else f"{a:.2f}" for a in columns["amount"]]
    rows = zip(*columns.values(), strict=True)
    return "\n".join([",".join(columns), *(",".join(map(str, row)) for row in rows), ""])


def claims_schema(*, any_set: bool = False) -> Schema:
    """Return what the tutorial declares about the claims: 18 values of 4 attributes.

    Args:
        any_set: whether a context may have any set of values and the detector is LOF, as in the
            paper, for comparison.
    """
    family = {"region": "one", "age": "range", "vehicle": "one", "year": "range"}
    listed = [name for name, (share, _) in _REGIONS.items() if share > 0.01]
    return Schema(
        metric={"column": "amount", "missing": "drop", "unit": "dollars"},
        attributes={
            "region": {"values": listed, "other": "elsewhere"},
            "age": {"edges": [-math.inf, *list(_BANDS)[1:], math.inf]},
            "vehicle": list(_VEHICLES),
            "year": list(_YEARS),
        },
        id="claim",
        name="claims",
        rows="claims",
        contexts=None if any_set else family,
        release=None if any_set else {"detector": "grubbs"},
    )


def claims_table(*, any_set: bool = False) -> Table:
    """Return ``claims`` encoded and ready for a release; ``any_set`` as for its schema."""
    return Table(claims(), claims_schema(any_set=any_set))


def claims_context() -> Context:
    """Return the context of the story: urban drivers under 25 in 2019."""
    schema = claims_schema()
    return Context.parse(schema, "region is urban; age is under 25; year is 2019")


def _pick(kinds: Kinds, uniform: NDArray[np.float64]) -> tuple[Any, NDArray[np.float64]]:
    """Draw a value for every row by the shares, and say how dear it is."""
    shares, dear = np.array(list(kinds.values())).T
    code = np.searchsorted(np.cumsum(shares)[:-1], uniform, side="right")
    return np.array(list(kinds))[code], dear[code]


def _ages(band: NDArray[np.int64], uniform: NDArray[np.float64]) -> NDArray[np.int64]:
    """Draw an age in years; within a band each is as likely as any other."""
    starts = np.array([*_BANDS, _LAST_AGE])
    ends = starts[np.searchsorted(starts, band) + 1]
    ages: NDArray[np.int64] = band + (uniform * (ends - band)).astype(np.int64)
    return ages


def _amounts(
    *,
    factor: NDArray[np.float64],
    mild: NDArray[np.bool_],
    write_off: NDArray[np.bool_],
    uniform: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Draw amounts in whole cents: a Lomax tail by inverse transform, light where it is mild."""
    shape, typical = np.where(mild, 30.0, 2.6), np.where(mild, 900.0, 3_000.0)
    tail = typical * factor * (shape - 1) * ((1 - uniform) ** (-1 / shape) - 1)
    amounts = np.where(write_off & ~mild, 6_200 + 2_600 * uniform, 180 + tail)
    return np.round(amounts, 2).astype(np.float64)
