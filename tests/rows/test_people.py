"""Whose rows are whose in memory: who is refused, which rows count, and how many people that is."""

from __future__ import annotations

import logging
import traceback
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pcor
from pcor.errors import ParameterError, SourceError, TooLarge
from pcor.releasing.settings import PEOPLE_LIMIT, plan
from tests.helpers import naive
from tests.helpers.neighbours import DETECTORS, every_search
from tests.helpers.people import ATTRIBUTES, BULK, PersonRow, declared, encoded
from tests.helpers.strategies import few

rows_of_people = st.lists(
    st.tuples(
        st.sampled_from("abc"),
        st.sampled_from("xy"),
        st.sampled_from([1.0, 2.5, 1e9, -3.25, 0.1]),
        st.sampled_from("PQRS"),
    ),
    min_size=1,
    max_size=30,
)


def personal(rows: list[PersonRow]) -> list[naive.PersonalRow]:
    """Return rows with codes in the place of values."""
    jobs, cities = ATTRIBUTES["job"], ATTRIBUTES["city"]
    return [(who, (jobs.index(job), cities.index(city)), pay) for job, city, pay, who in rows]


def counted(table: pcor.Table) -> list[tuple[tuple[int, ...], float]]:
    """Return the codes and the metric of each row that counts, sorted."""
    rows = table.rows
    codes = map(tuple, rows.cells[rows.cell].tolist())
    return sorted(zip(codes, rows.metric.tolist(), strict=True))


@few
@given(rows_of_people, st.integers(1, 4), st.randoms())
def test_the_rows_that_are_kept_are_those_of_the_definition(
    rows: list[PersonRow], bound: int, order: Any
) -> None:
    expected = sorted((codes, pay) for _, codes, pay in naive.kept(personal(rows), bound))
    order.shuffle(rows)
    table = encoded(rows, declared("keep", bound))
    assert counted(table) == expected
    assert int(table.cells.cell_counts.sum()) == len(expected)


@few
@given(rows_of_people, st.integers(1, 3))
def test_every_record_is_found_and_held_once(rows: list[PersonRow], bound: int) -> None:
    """Wherever it stands, and whether rows that hold the same count or not."""
    table, backwards = (encoded(r, declared("keep", bound)) for r in (rows, rows[::-1]))
    kept = naive.kept(personal(rows), bound)
    for key, row in enumerate(personal(rows)):
        record = table.record(key)
        assert record.counted == (row in kept)
        assert record.counted == backwards.record(len(rows) - 1 - key).counted
        held = table.holding(record)
        more = [] if record.counted else [row[1:]]
        assert counted(held) == sorted([*((c, p) for _, c, p in kept), *more])
        assert int(held.cells.cell_counts.sum()) == len(kept) + len(more)
        assert held.holding(record) is held
        assert held.rows.metric[held.row_of(record)] == record.value
        assert held.record(key).value == record.value
        assert table.not_one_row([key]) == held.not_one_row([key]) == []


def test_a_table_that_holds_one_record_holds_another_instead() -> None:
    rows: list[PersonRow] = [("a", "x", float(pay), "P") for pay in range(6)]
    table = encoded(rows, declared("keep", 1))
    first, second = [key for key in range(6) if not table.record(key).counted][:2]
    held = table.holding(table.record(first)).holding(table.record(second))
    assert int(held.cells.cell_counts.sum()) == 2
    assert held.rows.metric[held.row_of(table.record(second))] == float(second)


def test_a_row_stands_for_its_twin_also_where_cells_are_others() -> None:
    rows: list[PersonRow] = [("a", "x", 1.0, "P")] * 3
    table = encoded(rows, declared("keep", 1))
    changed = table.with_cells(table.cells)
    assert all(changed.record(key).counted for key in range(3))


def test_all_rows_of_a_person_leave_at_once() -> None:
    table = encoded(BULK, declared(most=200))
    person = int(table.people[-1])
    without = table.without_rows(table.rows.of_person(person))
    left = [row for row in BULK if row[3] != BULK[-1][3]]
    assert counted(without) == counted(encoded(left, declared(most=200)))
    assert person not in without.people


def test_rows_of_unknown_people_are_not_taken_for_people_of_their_own() -> None:
    table = encoded(BULK, declared(most=200))
    other = table.with_cells(table.cells)
    with pytest.raises(SourceError, match="not known whose"):
        _ = other.people
    with pytest.raises(ParameterError, match="people are counted one by one"):
        other.people_in([63])
    plain = pcor.Table(
        pa.table({"job": ["a", "b"], "pay": [1.0, 2.0]}),
        pcor.Schema(metric="pay", attributes={"job": ["a", "b"]}),
    )
    assert plain.people.tolist() == [0, 1]


# -- who is refused --------------------------------------------------------------------------------


def test_somebody_with_too_many_rows_is_refused_without_a_name_a_count_or_an_id(
    caplog: pytest.LogCaptureFixture,
) -> None:
    rows = [*BULK, *[("b", "y", 7134459.25, "CANARY-PERSON")] * 1234]
    with caplog.at_level(logging.DEBUG), pytest.raises(SourceError) as refused:
        encoded(rows, declared())
    said = caplog.text + "".join(traceback.format_exception_only(refused.value))
    assert "has a person with more rows than rows_per_person = 3 allows" in said
    for private in ("CANARY", "1234", "1,234", "7134459", str(len(rows)), "80"):
        assert private not in said


def test_rows_that_are_dropped_are_nobodys() -> None:
    """They take no place among the rows of a person, and may be without one."""
    columns = {
        "job": ["a", "a", "elsewhere", None, "a"],
        "pay": [1.0, 2.0, 3.0, 4.0, None],
        "who": ["P", "P", "P", None, None],
    }
    domain = {"values": ["a", "b"], "outside": "drop"}
    metric = {"column": "pay", "missing": "drop"}
    schema = pcor.Schema(metric, {"job": domain}, person="who", rows_per_person=2)
    assert pcor.Table(pa.table(columns), schema).cells.cell_counts.tolist() == [2]
    with pytest.raises(SourceError, match="column 'who' has a row without a person"):
        pcor.Table(pa.table(columns | {"who": ["P", None, "P", "P", "P"]}), schema)


@pytest.mark.parametrize("over", ["error", "keep"])
def test_a_person_that_is_not_a_number_or_not_one_value_is_refused(over: str) -> None:
    columns: dict[str, Any] = {"id": [0, 1], "job": ["a", "b"], "city": ["x", "y"], "pay": [1, 2]}
    with pytest.raises(SourceError, match="a row without a person"):
        pcor.Table(pa.table(columns | {"who": [1.0, float("nan")]}), declared(over))
    with pytest.raises(SourceError, match="does not hold single values"):
        pcor.Table(pa.table(columns | {"who": [["P"], ["Q"]]}), declared(over))


# -- how many people -------------------------------------------------------------------------------


@few
@given(rows_of_people)
def test_people_are_counted_once(rows: list[PersonRow]) -> None:
    table = encoded(rows, declared(most=30))
    masks = [int(bits) for bits in np.arange(1, 32)]
    expected = [
        naive.people(
            personal(rows),
            [
                {code for code in range(3) if mask >> code & 1},
                {c for c in (0, 1) if mask >> 3 + c & 1},
            ],
        )
        for mask in masks
    ]
    assert table.people_in(masks).tolist() == expected


@pytest.mark.parametrize("search", every_search(3), ids=lambda search: search.name)
def test_every_search_prefers_contexts_with_many_people(search: pcor.Search) -> None:
    """The final draw is by their number: at a large epsilon a best candidate wins."""
    table = encoded(BULK, declared(most=2))
    asked: dict[str, Any] = {"detector": DETECTORS["grubbs"], "search": search}
    chances = pcor.audit.exact_distribution(table, 0, 1000, utility="people", **asked)
    best = max(chances, key=lambda context: chances[context])
    if search.draws_directly:
        counts = dict(zip(chances, table.people_in([c.mask for c in chances]), strict=True))
        assert counts[best] == max(counts.values())
    assert sum(chances.values()) == pytest.approx(1)


def test_people_are_not_counted_where_nobody_says_whose_rows_are_whose() -> None:
    schema = pcor.Schema(metric="pay", attributes=ATTRIBUTES, id="id")
    with pytest.raises(ParameterError, match="or take utility 'population', which counts rows"):
        plan(schema, 1, utility="people")
    with pytest.raises(ParameterError, match="not People: its proof holds only for counts of rows"):
        plan(declared(), 1, utility="people", guarantee="dp", detector="tail")


def test_people_are_not_counted_in_more_contexts_than_can_be_listed() -> None:
    large = pcor.Schema(
        metric="pay",
        attributes={"job": list(range(20)), "city": ["x", "y"]},
        person="who",
        rows_per_person=2,
    )
    assert large.most_contexts > PEOPLE_LIMIT
    with pytest.raises(TooLarge, match="limit of 262,144; use search='widest_first'"):
        plan(large, 1, utility="people", search="direct")
    assert plan(large, 1, utility="people").search.name == "widest_first"
    assert plan(large, 1, utility="people", search="direct", limit=1 << 20).search.draws_directly
    assert plan(declared(), 1, utility="people").search.name == "direct"
    medium = pcor.Schema("pay", {"job": list(range(13))}, person="who", rows_per_person=2)
    for detector, search in (("grubbs", "direct"), (pcor.Estimator(min), "widest_first")):
        assert plan(medium, 1, detector=detector, utility="people").search.name == search
