"""Small tables, all their one-row neighbours, and the largest log ratio between them.

The queried record V is row 0 and is in every table: it is public. Neighbours come by removing any
other row and by adding a row in any cell at any of a few metric values; those with the same COE
are the f-neighbours that OCDP speaks of (paper, Definition 2.4).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

import pcor
from pcor.search import SEARCHES
from pcor.search.base import SamplingSearch

SCHEMA = pcor.Schema(metric="pay", attributes={"job": ["a", "b", "c"], "city": ["x", "y"]}, id="id")

# job, city, pay
Row = tuple[str, str, float]

# Rules under which tiny populations have outliers; defaults need 21 rows.
DETECTORS: dict[str, pcor.Detector] = {
    "grubbs": pcor.Grubbs(alpha=0.3, min_population=4),
    "lof": pcor.LOF(k=2, threshold=1.3, min_population=4),
    "histogram": pcor.Histogram(rare=0.3, min_population=4),
}


def every_search(samples: int) -> list[pcor.Search]:
    """Return one of each search there is, so that a new one is tested wherever all are."""
    return [
        kind(samples=samples) if issubclass(kind, SamplingSearch) else kind()
        for kind in SEARCHES.values()
    ]


@dataclass(frozen=True)
class Small:
    """A small table with its COE."""

    table: pcor.Table
    coe: frozenset[pcor.Context]


def small(rows: list[Row], detector: pcor.Detector, schema: pcor.Schema = SCHEMA) -> Small:
    """Encode rows; the id is the position, V is 0."""
    columns = {
        "id": list(range(len(rows))),
        "job": [job for job, _, _ in rows],
        "city": [city for _, city, _ in rows],
        "pay": [pay for _, _, pay in rows],
    }
    table = pcor.Table(pa.table(columns), schema)
    return Small(table, frozenset(pcor.matching_contexts(table, 0, detector).contexts))


def one_row_neighbours(rows: list[Row]) -> Iterator[list[Row]]:
    """Yield every table with one row less (never V), and with one row more."""
    for row in sorted(set(rows[1:])):
        position = rows.index(row, 1)
        yield rows[:position] + rows[position + 1 :]
    pays = sorted({pay for _, _, pay in rows})
    for job in ("a", "b", "c"):
        for city in ("x", "y"):
            for pay in (pays[0], pays[len(pays) // 2], pays[-1]):
                yield [*rows, (job, city, pay)]


def f_neighbours(
    rows: list[Row], detector: pcor.Detector, schema: pcor.Schema = SCHEMA
) -> tuple[Small, list[Small]]:
    """Return a table and its neighbours with the same COE; none if COE is empty."""
    here = small(rows, detector, schema)
    if not here.coe:
        return here, []
    others = (small(other, detector, schema) for other in one_row_neighbours(rows))
    return here, [there for there in others if there.coe == here.coe]


def worst_ratio(here: Small, others: list[Small], **options: Any) -> float:
    """Return the largest log ratio of any output's chance between a table and its neighbours."""
    chances = pcor.audit.exact_log_chances(here.table, 0, **options)
    return max(
        (
            pcor.audit.largest_log_ratio(
                chances, pcor.audit.exact_log_chances(there.table, 0, **options)
            )
            for there in others
        ),
        default=0.0,
    )
