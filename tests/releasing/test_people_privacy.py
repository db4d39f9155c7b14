"""The guarantee by person: exact distributions against all removals and many arrivals of a person.

No sampling here, as in ``test_privacy``. The price is reached, so that nothing is wasted, and the
same check rejects the price of a single row.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

import pcor
from pcor.public import unit
from pcor.public.accounting import release_cost
from pcor.releasing.settings import plan
from pcor.rows.people import row_order
from tests.helpers import margins
from tests.helpers.neighbours import DETECTORS, Small, every_search, worst_ratio
from tests.helpers.people import (
    ATTRIBUTES,
    BOUND,
    BULK,
    PersonRow,
    arrivals,
    declared,
    encoded,
    person_neighbours,
    removals,
    small_of_people,
)
from tests.helpers.small_tables import EPSILON, ROUNDING, OnlyWithoutB, lowest

SCHEMA = declared()
KEEP = declared("keep", 2)
unhurried = settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@st.composite
def careers(draw: st.DrawFn) -> list[PersonRow]:
    """Draw V, far out, and people with 1 up to so many rows; some of them V's own."""
    row = st.tuples(st.sampled_from("abc"), st.sampled_from("xy"), st.integers(0, 12).map(float))
    rows: list[PersonRow] = [("a", "x", 40.0, "V")]
    rows += [(*own, "V") for own in draw(st.lists(row, max_size=BOUND - 1))]
    for person in range(draw(st.integers(2, 5))):
        of_one = draw(st.lists(row, min_size=1, max_size=BOUND))
        rows += [(*own, f"P{person}") for own in of_one]
    return rows


def same_coe(
    rows: list[PersonRow], others: list[list[PersonRow]], detector: pcor.Detector
) -> tuple[Small, list[Small]]:
    """Return a table and those with the same COE; none if COE is empty."""
    here = small_of_people(rows, detector, SCHEMA)
    found = (small_of_people(other, detector, SCHEMA) for other in others if here.coe)
    return here, [there for there in found if there.coe == here.coe]


def neighbours(rows: list[PersonRow], most: int = 24) -> list[list[PersonRow]]:
    """Return all removals of a person, and some of the arrivals: all along their list."""
    more = list(arrivals(rows))
    return [*removals(rows), *more[:: max(1, len(more) // most)]]


TOGETHER: list[PersonRow] = [("a", "y", float(pay), "new") for pay in range(BOUND)]
DETECTOR = DETECTORS["grubbs"]


@unhurried
@given(careers(), st.sampled_from(sorted(DETECTORS)))
def test_no_search_moves_a_chance_by_more_than_epsilon_for_all_rows_of_a_person(
    rows: list[PersonRow], name: str
) -> None:
    detector = DETECTORS[name]
    here, others = same_coe(rows, neighbours(rows), detector)
    event(f"neighbours with the same COE: {min(len(others), 5)}")
    for search in every_search(2):
        for accounting in ("tight", "paper"):
            worst = worst_ratio(
                here,
                others,
                epsilon=EPSILON,
                detector=detector,
                search=search,
                accounting=accounting,
            )
            assert worst <= EPSILON + ROUNDING, (search, accounting)


@unhurried
@given(careers(), st.sampled_from(["people", "overlap", OnlyWithoutB()]))
def test_nor_does_another_utility(rows: list[PersonRow], utility: Any) -> None:
    detector = DETECTORS["lof"]
    here, others = same_coe(rows, neighbours(rows), detector)
    for search in (pcor.Direct(), pcor.BreadthFirst(samples=2)):
        if utility == "overlap":
            search = pcor.BreadthFirst(samples=2)
        options: dict[str, Any] = {"detector": detector, "search": search, "utility": utility}
        worst = worst_ratio(here, others, epsilon=EPSILON, **options)
        assert worst <= EPSILON + ROUNDING, search


@unhurried
@given(careers(), st.sampled_from(sorted(margins.DETECTORS)), st.sampled_from(margins.MECHANISMS))
def test_differential_privacy_holds_for_every_person_whatever_becomes_of_coe(
    rows: list[PersonRow], name: str, mechanism: str
) -> None:
    rows = [("a", "x", 15.0, "V"), *rows[1:]]
    options: dict[str, Any] = {
        "detector": margins.DETECTORS[name],
        "guarantee": "dp",
        "selection": mechanism,
        "epsilon": EPSILON,
    }
    here = Small(encoded(rows, SCHEMA), frozenset())
    others = [Small(encoded(other, SCHEMA), frozenset()) for other in person_neighbours(rows)]
    assert worst_ratio(here, others, **options) <= EPSILON + ROUNDING


@unhurried
@given(careers())
def test_no_person_needs_more_than_delta(rows: list[PersonRow]) -> None:
    detector = DETECTORS["lof"]
    here, others = same_coe(rows, neighbours(rows), detector)
    for there in others[:6]:
        search = pcor.BreadthFirst(samples=3, start=lowest(here))
        options: dict[str, Any] = {"delta": 1e-3, "search": search, "detector": detector}
        for one, other in ((here, there), (there, here)):
            assert slack(one, other, **options) <= 1e-3 + 1e-12


def slack(here: Small, there: Small, **options: Any) -> float:
    """Return the smallest delta with which the bound holds from one table to the other."""
    chances = [
        {
            answer: math.exp(log)
            for answer, log in pcor.audit.exact_log_chances(s.table, 0, 0.5, **options).items()
        }
        for s in (here, there)
    ]
    return sum(
        max(0.0, chance - math.exp(0.5) * chances[1].get(answer, 0.0))
        for answer, chance in chances[0].items()
    )


# -- the price is reached, and less would not do ---------------------------------------------------


def worst_of(rows: list[PersonRow], others: list[list[PersonRow]], **options: Any) -> float:
    here, there = same_coe(rows, others, DETECTOR)
    assert len(here.coe) > 1
    assert len(there) == len(others)
    return worst_ratio(here, there, epsilon=EPSILON, detector=DETECTOR, **options)


@pytest.mark.parametrize("mechanism", margins.MECHANISMS)
@pytest.mark.parametrize("whose", ["new", "V"])
def test_the_price_is_reached_by_another_person_and_by_the_record_s_own(
    mechanism: str, whose: str
) -> None:
    """The other rows of V's person are protected, and count for as many as they are."""
    more = [(*row[:3], whose) for row in TOGETHER[: BOUND - (whose == "V")]]
    found = worst_of(BULK, [[*BULK, *more]], search=pcor.Direct(), selection=mechanism)
    assert 0.95 * len(more) / BOUND < found <= EPSILON * len(more) / BOUND + ROUNDING


def of_one_row(*args: Any) -> Any:
    """Price as if each row were protected by itself."""
    return release_cost(*args[:5])


FEWER = [row for row in BULK if not row[3].startswith("B") or int(row[3][1:]) < 8]
# All rows of a person arrive where few others are, or where many are.
ARRIVED = [[*FEWER, *TOGETHER], [*FEWER, *[("b", "x", 3.0, "new")] * BOUND]]


@pytest.mark.parametrize("search", every_search(6), ids=lambda search: search.name)
def test_the_price_of_one_row_fails_the_same_check(
    search: pcor.Search, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, _ = same_coe(FEWER, [], DETECTOR)
    if search.takes_start:
        search = replace(search, samples=2, start=lowest(here))  # type: ignore[call-arg]
    options: dict[str, Any] = {"search": search, "selection": "exponential"}
    assert worst_of(FEWER, ARRIVED, **options) <= EPSILON + ROUNDING
    monkeypatch.setattr("pcor.releasing.terms.release_cost", of_one_row)
    assert worst_of(FEWER, ARRIVED, **options) > 1.1 * EPSILON


def test_so_does_the_slack(monkeypatch: pytest.MonkeyPatch) -> None:
    here, others = same_coe(FEWER, ARRIVED, DETECTOR)
    search = pcor.BreadthFirst(samples=2, start=lowest(here))
    options: dict[str, Any] = {"delta": 1e-3, "search": search, "detector": DETECTOR}

    def largest() -> float:
        pairs = [pair for there in others for pair in ((here, there), (there, here))]
        return max(slack(*pair, **options) for pair in pairs)

    assert largest() <= 1e-3
    monkeypatch.setattr("pcor.releasing.terms.release_cost", of_one_row)
    assert largest() > 1e-2


def test_the_price_of_pure_dp_is_reached_and_that_of_one_row_fails(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """All rows of the person in the record's cell and region.

    The wide contexts gain them all, and the record's own cell loses seven tenths for each.
    """
    rows: list[PersonRow] = [("a", "x", 15.0, "V")]
    rows += [("b", "y", 1.0, f"P{place}") for place in range(400)]
    more: list[PersonRow] = [("a", "x", 15.0, "new")] * BOUND
    options: dict[str, Any] = {
        "detector": margins.DETECTORS["tail"],
        "guarantee": "dp",
        "steepness": 20,
        "selection": "exponential",
    }
    tables = [Small(encoded(r, SCHEMA), frozenset()) for r in (rows, [*rows, *more])]

    def worst() -> float:
        return worst_ratio(tables[0], tables[1:], epsilon=EPSILON, **options)

    assert 0.95 < worst() <= EPSILON + ROUNDING
    monkeypatch.setattr(unit.PrivacyUnit, "row_changes", 1)
    assert worst() > 1.3 * EPSILON


@pytest.mark.parametrize("guarantee", ["ocdp", "dp"])
def test_exponents_are_divided_by_the_rows_that_can_change(guarantee: str) -> None:
    def eta(schema: pcor.Schema, **options: Any) -> Fraction:
        return plan(schema, 1, guarantee=guarantee, detector="tail", **options).bill.eta

    by_row = pcor.Schema(metric="pay", attributes=ATTRIBUTES, id="id")
    assert eta(declared(most=8)) == eta(by_row) / 8
    assert eta(declared("keep", 8)) == eta(by_row) / 16
    assert eta(declared(most=1)) == eta(by_row)
    if guarantee == "ocdp":
        assert eta(declared(most=8), utility="people") == 1
        assert eta(declared("keep", 8), utility="people") == Fraction(1, 2)
        assert eta(declared(most=8), utility=OnlyWithoutB()) == Fraction(1, 16)


# -- keep: protected rows can take the place of public ones ----------------------------------------


def ordered(job: str, city: str, low: float = 0.0) -> list[PersonRow]:
    """Return rows of V's person in a cell, in the order in which they are kept."""
    pays = np.arange(low, low + 5, 0.125)
    codes = [ATTRIBUTES["job"].index(job), ATTRIBUTES["city"].index(city)]
    hashed = row_order(np.tile(codes, (len(pays), 1)), pays)
    return [(job, city, float(pays[place]), "V") for place in np.argsort(hashed)]


@pytest.mark.parametrize("queried", [1, 2])
@pytest.mark.parametrize("mechanism", margins.MECHANISMS)
def test_several_queried_rows_of_one_person_are_paid_for_where_rows_are_chosen(
    queried: int, mechanism: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Besides V so many public rows of V's person, which two protected ones displace."""
    public, hidden = ordered("a", "y")[-queried:], ordered("b", "x")[:2]
    before = [ordered("a", "x", 40.0)[-1], *public, *BULK[1:]]
    here, there = (small_of_people(r, DETECTOR, KEEP) for r in (before, [*before, *hidden]))
    assert here.coe == there.coe
    assert len(here.coe) > 1
    small = pcor.Context(KEEP, {"job": ["a"], "city": ["x", "y"]})
    held = [case.table.holding(case.table.record(0)) for case in (here, there)]
    sizes = [int(table.populations([small.mask])[0]) for table in held]
    assert sizes[0] - sizes[1] == queried

    def worst() -> float:
        options: dict[str, Any] = {"search": pcor.Direct(), "selection": mechanism}
        return worst_ratio(here, [there], epsilon=EPSILON, detector=DETECTOR, **options)

    reached = (2 + queried) / 4
    assert 0.95 * reached < worst() <= EPSILON * reached + ROUNDING
    monkeypatch.setattr(unit.PrivacyUnit, "changes", 1)
    assert worst() > 1.3 * EPSILON


@unhurried
@given(careers(), st.integers(1, 3))
def test_whatever_is_queried_of_a_person_the_rest_of_their_rows_is_protected(
    rows: list[PersonRow], queried: int
) -> None:
    """Of V's person so many rows stay, the others leave at once; likewise with another person."""
    detector = margins.DETECTORS["tail"]
    rows = [("a", "x", 15.0, "V"), *rows[1:]]
    kept = [rows[0], *[row for row in rows[1:] if row[3] == "V"][:queried]]
    lasting = [*kept, *[row for row in rows if row[3] != "V"]]
    options: dict[str, Any] = {"detector": detector, "guarantee": "dp", "epsilon": EPSILON}
    here = Small(encoded(rows, KEEP), frozenset())
    others = [Small(encoded(r, KEEP), frozenset()) for r in (lasting, *removals(rows))]
    assert worst_ratio(here, others, **options) <= EPSILON + ROUNDING
