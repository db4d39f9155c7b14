"""The guarantee in families: exact output distributions against every one-row neighbour.

As in ``test_privacy``, nothing is sampled. The last tests choose the family from the rows, and see
the same check say no.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from hypothesis import event, given
from hypothesis import strategies as st

import pcor
from tests.helpers.neighbours import (
    DETECTORS,
    Row,
    every_search,
    f_neighbours,
    one_row_neighbours,
    small,
    worst_ratio,
)
from tests.helpers.small_tables import EPSILON, LARGE, ROUNDING, lowest, tables, unhurried


def schema_of(**family: Any) -> pcor.Schema:
    domains = {"job": ["a", "b", "c"], "city": ["x", "y"]}
    return pcor.Schema(metric="pay", attributes=domains, id="id", **family)


FAMILIES = {
    "ranges": schema_of(contexts={"job": "range"}),
    "one value": schema_of(contexts={"job": "one", "city": "one"}),
    "groups": schema_of(groups={"job": {"first": ["a", "b"]}}),
    "one clause": schema_of(max_clauses=1),
    "one item": schema_of(max_named=1, contexts={"city": "one"}),
    "mixed": schema_of(contexts={"job": "range"}, max_clauses=1, max_named=1),
}


@unhurried
@given(
    tables(),
    st.sampled_from(sorted(DETECTORS)),
    st.sampled_from(sorted(FAMILIES)),
    st.sampled_from([0, 2]),
)
def test_no_search_in_a_family_moves_a_chance_by_more_than_epsilon(
    rows: list[Row], name: str, family: str, brevity: int
) -> None:
    detector = DETECTORS[name]
    here, others = f_neighbours(rows, detector, FAMILIES[family])
    event(f"f-neighbours: {min(len(others), 5)}{'+' if len(others) > 5 else ''}")
    if not others:
        return
    searches = every_search(2)
    searches += [replace(s, start=lowest(here)) for s in searches if s.takes_start]  # type: ignore[call-arg]
    for search in searches:
        worst = worst_ratio(
            here, others, epsilon=EPSILON, detector=detector, search=search, brevity=brevity
        )
        assert worst <= EPSILON + ROUNDING, search


@unhurried
@given(tables(), st.sampled_from(sorted(FAMILIES)), st.sampled_from([0, 2]))
def test_dp_in_a_family_holds_for_every_neighbour(
    rows: list[Row], family: str, brevity: int
) -> None:
    detector, schema = pcor.Tail(0.3, min_population=3), FAMILIES[family]
    here = small(rows, detector, schema)
    others = [small(other, detector, schema) for other in one_row_neighbours(rows)]
    options = {"epsilon": EPSILON, "detector": detector, "guarantee": "dp", "brevity": brevity}
    assert worst_ratio(here, others, **options) <= EPSILON + ROUNDING


def test_whoever_is_exposed_in_a_family_is_exposed_without_one() -> None:
    """A neighbour that changes the valid contexts of a family changes all of them."""
    detector = DETECTORS["grubbs"]
    here = small(LARGE, detector).coe
    changed = 0
    for schema in FAMILIES.values():
        inside = small(LARGE, detector, schema).coe
        for other in one_row_neighbours(LARGE):
            if small(other, detector, schema).coe != inside:
                changed += 1
                assert small(other, detector).coe != here
    assert changed > 5


def test_a_family_that_is_read_off_the_rows_is_caught() -> None:
    """The only row of job c goes, and every context with c can no longer be drawn."""
    detector = pcor.Tail(0.3, min_population=3)
    rows: list[Row] = [("a", "x", 40.0), *[("a", "x", 1.0)] * 6, ("c", "x", 2.0)]
    schema = FAMILIES["one clause"]

    def worst(read_off: bool) -> float:
        chances = []
        for table in (rows, rows[:-1]):
            found = small(table, detector, schema)
            logs = pcor.audit.exact_log_chances(
                found.table, 0, EPSILON, detector=detector, guarantee="dp"
            )
            if read_off:
                seen = {job for job, _, _ in table}
                logs = {
                    context: log
                    for context, log in logs.items()
                    if context is None or set(context.values["job"]) <= seen
                }
            chances.append(logs)
        return pcor.audit.largest_log_ratio(*chances)

    assert worst(read_off=False) <= EPSILON + ROUNDING
    assert worst(read_off=True) == math.inf
