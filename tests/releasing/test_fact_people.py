"""Facts by person: exact joint distributions of context and facts, all rows of a person at once."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

import pcor
from pcor.releasing import facts as facts_module
from tests.helpers.fact_ratios import GRID, joint_ratio
from tests.helpers.people import ATTRIBUTES, BOUND, PersonRow, arrivals, encoded, removals
from tests.helpers.small_tables import ROUNDING

# Everybody at one of two pays, far apart; V's own person has another row.
ROWS: list[PersonRow] = [
    ("a", "x", 40.0, "V"),
    ("c", "y", 5.0, "V"),
    *[("a", "x", 5.0, f"A{place // BOUND}") for place in range(5 * BOUND)],
    *[("b", "y", 36.0, f"B{place // BOUND}") for place in range(3 * BOUND)],
]
# Nearly all of epsilon is for the facts, so that they alone can break it.
OPTIONS: dict[str, Any] = {
    "detector": pcor.Tail(share=0.5, min_population=1),
    "guarantee": "dp",
    "facts_share": "0.95",
}
EPSILONS = {"count": 1, "rank": 1, "median": 6}
# A number of rows for the price of one of people; or of people, for less than one of them.
_OF_ROWS: list[dict[str, Any]] = [{"people": False}, {"most": Fraction(7, 10)}]
TOO_CHEAP = {"count": _OF_ROWS, "rank": _OF_ROWS, "median": [{"most": BOUND - 1}]}


def declared(over: str, most: int = BOUND) -> pcor.Schema:
    return pcor.Schema(
        metric=GRID | {"low": -40, "high": 80},
        attributes=ATTRIBUTES,
        id="id",
        person="who",
        rows_per_person=most,
        over=over,
    )


def worst(fact: str, over: str) -> float:
    """Return the largest log ratio over all removals of a person and arrivals with all rows."""
    schema = declared(over)
    full = [rows for rows in arrivals(ROWS) if len(rows) == len(ROWS) + BOUND]
    others = [*removals(ROWS), *full]
    if over == "keep":  # more of one person than are kept, in the place of others
        others += [[*ROWS, *[("b", "y", 5.0, who)] * (BOUND + 2)] for who in ("new", "V")]
    here = encoded(ROWS, schema)
    tables = (encoded(other, schema) for other in others)
    return max(joint_ratio(here, t, EPSILONS[fact], facts=[fact], **OPTIONS) for t in tables)


@pytest.mark.parametrize("fact", EPSILONS)
def test_no_person_moves_a_fact_by_more_than_epsilon(
    fact: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert 0.9 * EPSILONS[fact] < worst(fact, "error") <= EPSILONS[fact] + ROUNDING
    planned = facts_module._planned
    for wrong in TOO_CHEAP[fact]:
        with monkeypatch.context() as patched:
            patched.setattr(
                facts_module,
                "_planned",
                lambda *given, wrong=wrong: replace(planned(*given), **wrong),
            )
            assert worst(fact, "error") > EPSILONS[fact]


def test_rows_that_take_the_place_of_others_are_paid_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """All rows of somebody above the median leave for as many below it, in one context.

    That moves most of a draw (``test_each_draw_of_a_quantile_costs_a_third_and_not_less``), not of
    all three at once. To charge as if rows only arrived is too little.
    """
    schema, epsilon = declared("keep"), 12
    rows = [*ROWS[:2], *ROWS[2 : 2 + 4 * BOUND], *ROWS[-3 * BOUND :]]
    rows += [("b", "y", 36.0, "B3")] * BOUND
    more: list[PersonRow] = [("b", "y", -39.0, "B3")] * BOUND
    here, there = encoded(rows, schema), encoded(rows + more, schema)
    assert not there.record(len(rows) - 1).counted
    asked = OPTIONS | {"facts": ["median"]}
    assert 0.5 * epsilon < joint_ratio(here, there, epsilon, **asked) <= epsilon
    planned = facts_module._planned

    def too_cheap(*given: Any) -> facts_module.PlannedFact:
        fact = planned(*given)
        assert isinstance(fact, facts_module.PlannedQuantile)
        return replace(fact, replaced=False)

    monkeypatch.setattr(facts_module, "_planned", too_cheap)
    assert joint_ratio(here, there, epsilon, **asked) > epsilon


def test_a_record_that_is_held_in_addition_is_counted() -> None:
    """Of its person another row is kept: the context has both, and they are one person's."""
    rows: list[PersonRow] = [("a", "x", pay, "V") for pay in (40.0, 35.0)]
    rows += [("a", "x", pay, f"Q{pay}") for pay in (1.0, 2.0, 3.0)]
    table = encoded(rows, declared("keep", 1))
    (key,) = (key for key in (0, 1) if not table.record(key).counted)
    asked = OPTIONS | {"facts": ["count", "rank:low"]}
    # No noise: it is not 0 with a chance below exp(-1000).
    released = pcor.release(table, key, 10**4, **asked)
    numbers = (4, 4)
    assert tuple(fact.value for fact in released.facts) == numbers
    chances = pcor.audit.exact_answers(table, key, 10**4, most=8, **asked)
    assert all(chances[answer] < -1000 for answer in chances if answer and answer[1] != numbers)


@pytest.mark.parametrize("fact", EPSILONS)
def test_nor_where_only_so_many_of_their_rows_are_kept(fact: str) -> None:
    assert worst(fact, "keep") <= EPSILONS[fact] + ROUNDING
