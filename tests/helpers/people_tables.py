"""Small tables with people of one to four rows, and audits of them compared with rebuilt tables.

V has key 0. The slow twin takes all rows of a person out of the source, but those that are queried,
or puts those of a new person in, encodes the table anew, and asks for COE and for the exact
distribution of the release.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from itertools import product
from typing import Any, NamedTuple

import pyarrow as pa
import pytest

import pcor
from pcor.audit import Exposed, Exposure, exact_log_chances, exposure
from tests.helpers.divergence import naive_divergence

EPSILON = 0.7
ROUNDING = 1e-9
MOST = 4

SCHEMA = pcor.Schema(
    metric="pay",
    attributes={"job": ["a", "b", "c"], "city": ["x", "y"]},
    id="id",
    person="who",
    rows_per_person=MOST,
)

# Every rule there is, on populations of a few rows.
RULES: dict[str, pcor.Detector] = {
    "lof": pcor.LOF(k=2, threshold=1.3, min_population=4),
    "lof, one neighbour": pcor.LOF(k=1, threshold=1.2, min_population=2),
    "lof, nobody to spare": pcor.LOF(k=2, threshold=1.3, min_population=8),
    "lof, all ties": pcor.LOF(k=2, threshold=1.3, min_population=4, ties="all"),
    "grubbs": pcor.Grubbs(alpha=0.3, min_population=4),
    "grubbs, upper": pcor.Grubbs(alpha=0.2, tail="upper", min_population=3),
    "histogram": pcor.Histogram(rare=0.3, min_population=4),
    "tail": pcor.Tail(share=0.2, min_population=5),
    "neighbourhood": pcor.Neighbourhood(radius=2.0, share=0.25, min_population=3),
    "rare bin": pcor.RareBin([5.0, 20.0], 0.3, min_population=3),
    "one's own": pcor.Estimator(lambda values: values > 3 * values.mean(), min_population=3),
}

# job, city, pay
Cell = tuple[str, str, float]


class PersonRow(NamedTuple):
    """A row of the source."""

    key: int
    who: str
    cell: Cell


def people_table(rows: list[PersonRow], schema: pcor.Schema = SCHEMA) -> pcor.Table:
    """Encode rows."""
    columns: dict[str, Any] = {
        "id": [row.key for row in rows],
        "who": [row.who for row in rows],
        "job": [row.cell[0] for row in rows],
        "city": [row.cell[1] for row in rows],
        "pay": [row.cell[2] for row in rows],
    }
    return pcor.Table(pa.table(columns), schema)


def random_people(seed: int, people: int = 7) -> list[PersonRow]:
    """Draw V, far out, and people with one to four rows; some like others, some of V's own."""
    numbers = random.Random(seed)  # noqa: S311 (a table for a test)

    def some(count: int) -> list[Cell]:
        return [
            (numbers.choice("abc"), numbers.choice("xy"), float(numbers.randint(0, 12)))
            for _ in range(count)
        ]

    of_people = [some(numbers.randint(1, MOST)) for _ in range(numbers.randint(3, people))]
    of_people += [list(numbers.choice(of_people)) for _ in range(numbers.randint(0, 2))]
    rows = [(f"p{n}", cell) for n, cells in enumerate(of_people) for cell in cells]
    rows += [("v", cell) for cell in some(numbers.randint(0, MOST - 1))]
    numbers.shuffle(rows)
    own = ("v", ("a", "x", numbers.choice([40.0, 14.0])))
    return [PersonRow(key, *row) for key, row in enumerate([own, *rows])]


def coe(table: pcor.Table, detector: pcor.Detector, record: int = 0) -> frozenset[pcor.Context]:
    return frozenset(pcor.matching_contexts(table, record, detector).contexts)


def without(rows: list[PersonRow], who: str, queried: Sequence[int] = (0,)) -> list[PersonRow]:
    """Return the source without all rows of a person but those that are queried."""
    return [row for row in rows if row.who != who or row.key in queried]


# Who comes or goes: "removed" or "added", the rows, and those of theirs that stay.
Kind = tuple[str, tuple[Cell, ...], tuple[Cell, ...]]


def changed_sources(
    rows: list[PersonRow], metrics: list[float], queried: Sequence[int] = (0,)
) -> dict[Kind, list[PersonRow]]:
    """Return the source without each person, and with each newcomer that an audit looks at."""
    found = {kind: without(rows, who[0], queried) for kind, who in kinds_of(rows, queried).items()}
    for job, city, pay, size in product("abc", "xy", metrics, (1, MOST)):
        new = [PersonRow(-1, "new", (job, city, pay))] * size
        found["added", ((job, city, pay),) * size, ()] = [*rows, *new]
    return found


def kinds_of(rows: list[PersonRow], queried: Sequence[int] = (0,)) -> dict[Kind, list[str]]:
    """Return the people who can go, those who are alike together."""
    found: dict[Kind, list[str]] = {}
    for who in dict.fromkeys(row.who for row in rows):
        own = [row for row in rows if row.who == who]
        going = tuple(sorted(row.cell for row in own if row.key not in queried))
        stay = tuple(sorted(row.cell for row in own if row.key in queried))
        if going:
            found.setdefault(("removed", going, stay), []).append(who)
    return found


def kind_of(one: Exposed) -> Kind:
    """Return who an audit speaks of."""

    def cells(rows: Any) -> tuple[Cell, ...]:
        return tuple(sorted((str(r.values["job"]), str(r.values["city"]), r.metric) for r in rows))

    return one.kind, cells(one.rows), cells(one.kept)


def check_people(
    rows: list[PersonRow], detector: pcor.Detector, metrics: list[float], **options: Any
) -> Counter[str]:
    """Compare an audit with its twin; return how many people of each kind are exposed."""
    table = people_table(rows)
    found = exposure(table, 0, EPSILON, detector=detector, insert=metrics, **options)
    return check_found(found, rows, detector, metrics, **options)


def check_found(
    found: Exposure,
    rows: list[PersonRow],
    detector: pcor.Detector,
    metrics: list[float],
    queried: Sequence[int] = (0,),
    **options: Any,
) -> Counter[str]:
    """Compare what an audit found with its twin."""
    here, record = people_table(rows), int(found.record)
    options = {"detector": detector, **options}
    seen = {kind_of(one): one for one in (*found.exposed, *found.newcomers)}
    assert len(seen) == len(found.exposed) + len(found.newcomers)
    kinds, old = kinds_of(rows, queried), coe(here, detector, record)
    before = exact_log_chances(here, record, EPSILON, **options)
    exposed: Counter[str] = Counter()
    for kind, source in changed_sources(rows, metrics, queried).items():
        there = people_table(source)
        new = coe(there, detector, record)
        assert (kind in seen) == (new != old), kind
        if kind in seen:
            one = seen[kind]
            after = exact_log_chances(there, record, EPSILON, **options)
            delta, ratio = naive_divergence(before, after, EPSILON)
            assert one.delta == pytest.approx(delta, abs=ROUNDING), kind
            assert one.ratio == pytest.approx(ratio, abs=ROUNDING), kind
            assert (one.lost, one.gained) == (len(old - new), len(new - old))
            assert one.people == len(kinds.get(kind, [""]))
            exposed[one.kind] += one.people
            exposed["several rows"] += one.kind == "removed" and len(one.rows) > 1
            exposed["own"] += bool(one.kept)
    assert found.people == sum(map(len, kinds.values()))
    assert found.exposed_people == exposed["removed"]
    assert found.contexts == len(old)
    return exposed
