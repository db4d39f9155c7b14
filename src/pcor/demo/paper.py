"""Synthetic data of the paper's shape. Nobody in it exists.

``salaries`` is like the paper's salary table: 9 job titles, 8 employers, 8 years, 51,000 rows,
heavy upper tails, and a few records planted so that they are hidden: ordinary in the whole table
and unusual in a context that is known. ``ten_people`` is Table 1 of the paper with made-up pay.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pcor.public.context import Context
from pcor.public.schema import Schema, Value
from pcor.rows.table import Table

ROWS = 51_000
_SEED = 20210620  # the opening of SIGMOD 2021; any other would do

# job title -> share of the rows, lowest pay, typical excess over it, weight of the tail
# (shape of a Lomax distribution: smaller is heavier).
_JOBS: dict[str, tuple[float, int, int, float]] = {
    "Professor": (0.40, 118_000, 52_000, 5.0),
    "Associate Professor": (0.28, 104_000, 30_000, 6.0),
    "Assistant Professor": (0.11, 100_000, 14_000, 6.0),
    "Director": (0.07, 101_000, 34_000, 4.0),
    "Manager": (0.05, 100_000, 12_000, 6.0),
    "Lecturer": (0.04, 100_000, 9_000, 6.0),
    "Librarian": (0.02, 100_000, 7_000, 6.0),
    "Dean": (0.02, 140_000, 60_000, 4.0),
    "Executive": (0.01, 150_000, 110_000, 3.0),
}
_EMPLOYERS: dict[str, float] = {
    "Ashfield University": 1.04,
    "Birch Lake College": 0.97,
    "Cedar Valley University": 1.00,
    "Dunmore University": 1.02,
    "Eastport Polytechnic": 0.98,
    "Fairhaven University": 1.01,
    "Granite Bay College": 0.96,
    "Harrow Hill University": 1.03,
}
_YEARS = tuple(range(2006, 2014))


@dataclass(frozen=True)
class Planted:
    """A hidden outlier: a record and a context in which it is unusual."""

    record: int
    values: dict[str, list[Value]]
    salary: int

    @property
    def context(self) -> Context:
        """The context it was planted in."""
        named = {
            a.name: self.values.get(a.name, list(a.values)) for a in salary_schema().attributes
        }
        return Context(salary_schema(), named)


PLANTED: tuple[Planted, ...] = (
    Planted(29_876, {"job_title": ["Manager"], "year": [2012, 2013]}, 198_120),
    Planted(4_211, {"job_title": ["Librarian"]}, 187_400),
    Planted(17_003, {"job_title": ["Lecturer"], "employer": ["Birch Lake College"]}, 166_250),
    Planted(38_540, {"job_title": ["Librarian"]}, 231_900),
    Planted(50_118, {"job_title": ["Assistant Professor"], "year": [2006, 2007]}, 214_730),
)


def salary_schema(*, any_set: bool = False) -> Schema:
    """Return the schema of ``salaries``.

    Args:
        any_set: whether a context may have any set of values and the detector is LOF, as in the
            paper; otherwise contexts are those that people would say, and it is Grubbs' test.
    """
    family = {"job_title": "one", "employer": "one", "year": "range"}
    return Schema(
        metric={"column": "salary", "unit": "dollars"},
        attributes={
            "job_title": {"values": list(_JOBS), "label": "job title"},
            "employer": list(_EMPLOYERS),
            "year": list(_YEARS),
        },
        id="employee",
        name="synthetic-salaries",
        rows="employees",
        contexts=None if any_set else family,
        release=None if any_set else {"detector": "grubbs"},
    )


def salaries(rows: int = ROWS) -> pa.Table:
    """Return the first ``rows`` synthetic salaries; planted records are there from 51,000 on.

    Only the generator's raw uniform numbers are used, so no change in a library's distributions
    can change the table.
    """
    numbers = np.random.Generator(np.random.PCG64(_SEED))
    uniform = numbers.random((ROWS, 4))[:rows]
    shares = np.cumsum([share for share, *_ in _JOBS.values()])
    job = np.minimum(np.searchsorted(shares, uniform[:, 0], side="right"), len(_JOBS) - 1)
    employer = (uniform[:, 1] ** 1.3 * len(_EMPLOYERS)).astype(np.int64)
    year = (uniform[:, 2] ** 0.8 * len(_YEARS)).astype(np.int64)
    columns = {
        "employee": np.arange(1, rows + 1),
        "job_title": np.array(list(_JOBS))[job],
        "employer": np.array(list(_EMPLOYERS))[employer],
        "year": np.array(_YEARS)[year],
        "salary": _pay(job, employer, year, uniform[:, 3]),
    }
    for planted in PLANTED:
        if planted.record <= rows:
            firsts = {name: values[0] for name, values in planted.values.items()}
            for name, value in (firsts | {"salary": planted.salary}).items():
                columns[name][planted.record - 1] = value
    return pa.table(columns)


def salary_table(*, any_set: bool = False) -> Table:
    """Return ``salaries`` encoded and ready for a release; ``any_set`` as for its schema."""
    return Table(salaries(), salary_schema(any_set=any_set))


def ten_people() -> pa.Table:
    """Return the ten rows of the paper's Table 1, with salaries made up by us."""
    rows = [
        (1, "Medical Doctor", "Montreal", "Business", 210_000),
        (2, "Lawyer", "Toronto", "Business", 140_000),
        (3, "CEO", "Ottawa", "Diplomatic", 150_000),
        (4, "Lawyer", "Toronto", "Business", 145_000),
        (5, "Lawyer", "Ottawa", "Diplomatic", 138_000),
        (6, "Medical Doctor", "Toronto", "Historic", 205_000),
        (7, "Lawyer", "Ottawa", "Business", 142_000),
        (8, "Lawyer", "Ottawa", "Diplomatic", 390_000),
        (9, "CEO", "Montreal", "Historic", 400_000),
        (10, "Medical Doctor", "Toronto", "Diplomatic", 215_000),
    ]
    names = ("record", "job_title", "city", "district", "salary")
    return pa.table({name: [row[i] for row in rows] for i, name in enumerate(names)})


def ten_people_schema() -> Schema:
    """Return the schema of ``ten_people``, domains in the paper's order."""
    return Schema(
        metric="salary",
        attributes={
            "job_title": ["CEO", "Medical Doctor", "Lawyer"],
            "city": ["Montreal", "Ottawa", "Toronto"],
            "district": ["Business", "Historic", "Diplomatic"],
        },
        id="record",
        name="ten-people",
    )


def _pay(
    job: NDArray[np.int64],
    employer: NDArray[np.int64],
    year: NDArray[np.int64],
    uniform: NDArray[np.float64],
) -> NDArray[np.int64]:
    """Lowest pay plus a Lomax excess, by inverse transform, scaled by employer and year."""
    _, lowest, excess, shape = np.array(list(_JOBS.values())).T[:, job]
    tail = excess * (shape - 1) * ((1 - uniform) ** (-1 / shape) - 1)
    factor = np.array(list(_EMPLOYERS.values()))[employer] * (1 + 0.015 * year)
    pay: NDArray[np.int64] = np.maximum(np.round((lowest + tail) * factor), 100_000).astype(
        np.int64
    )
    return pay
