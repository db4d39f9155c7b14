"""Several records at once: whom a list exposes, against exact distributions of lists."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import product
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

import pcor
from pcor.audit import Exposure, exact_log_chances, exposures, joint_delta, joint_exposure
from pcor.audit.divergence import ERROR
from pcor.errors import ParameterError
from tests.helpers.neighbours import DETECTORS, SCHEMA, Row

EPSILON = 0.7
RECORDS = (0, 1)
Logs = Mapping[Any, float]


def table(rows: Mapping[int, Row]) -> pcor.Table:
    """Encode rows by id."""
    columns: dict[str, list[Any]] = {"id": list(rows), "job": [], "city": [], "pay": []}
    for job, city, pay in rows.values():
        for name, value in (("job", job), ("city", city), ("pay", pay)):
            columns[name].append(value)
    return pcor.Table(pa.table(columns), SCHEMA)


@st.composite
def tables(draw: st.DrawFn) -> dict[int, Row]:
    """Draw two records far out, and a few ordinary rows; some of them alike, or like a record."""
    row = st.tuples(st.sampled_from("abc"), st.sampled_from("xy"), st.integers(0, 12).map(float))
    first: Row = ("a", "x", 40.0)
    records: list[Row] = [first, draw(st.sampled_from([("b", "y", 30.0), first]))]
    rows = draw(st.lists(row, min_size=4, max_size=8))
    alike = draw(st.lists(st.sampled_from([*records, *rows]), max_size=2))
    return dict(enumerate([*records, *rows, *alike]))


def list_chances(rows: Mapping[int, Row], **options: Any) -> Logs:
    """Return the logarithms of the chances of both answers together: draws are independent."""
    here = table(rows)
    each = [exact_log_chances(here, record, EPSILON, **options) for record in RECORDS]
    return {(a, b): each[0][a] + each[1][b] for a, b in product(*each)}


def delta_of(here: Logs, there: Logs, epsilon: float) -> float:
    """Add up the definition, in both directions."""

    def excess(p: Logs, q: Logs) -> float:
        factor = math.exp(epsilon)
        return math.fsum(
            max(0.0, math.exp(p[a]) - factor * (math.exp(q[a]) if a in q else 0.0)) for a in p
        )

    return max(excess(here, there), excess(there, here))


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(tables(), st.sampled_from(sorted(DETECTORS)))
def test_the_bound_over_a_list_holds_for_the_product_of_the_exact_distributions(
    rows: dict[int, Row], name: str
) -> None:
    options: dict[str, Any] = {"detector": DETECTORS[name]}
    found = joint_exposure(exposures(table(rows), RECORDS, EPSILON, insert=[], **options))
    bounds = {(*one.values.values(), one.metric): one for one in found.exposed}
    people = {key: row for key, row in rows.items() if key not in RECORDS}
    here = list_chances(rows, **options)
    for key, row in people.items():
        there = list_chances({k: r for k, r in rows.items() if k != key}, **options)
        delta = delta_of(here, there, 2 * EPSILON)
        assert delta <= (bounds[row].delta if row in bounds else 0.0) + 2 * ERROR
    for kind, one in bounds.items():
        assert one.people == list(people.values()).count(kind)  # type: ignore[arg-type]
    assert found.exposed_people <= len(people)
    event(f"exposed: {min(len(bounds), 3)}")


def audited(record: int, delta: float, **changes: Any) -> Exposure:
    """Return what an audit found that exposes one person by so much."""
    plan = pcor.plan(SCHEMA, "0.2", detector="grubbs")
    values: dict[str, Any] = {"job": "c", "city": "y"}
    exposed = pcor.audit.Exposed("removed", values, 7.0, 1, 1, 0, delta, None)
    return Exposure(record, plan, 5, 9, (exposed,), **changes)


def test_two_records_are_worth_more_together_than_each_by_itself() -> None:
    found = joint_exposure([audited(1, 0.45), audited(2, 0.5)])
    assert found.exposed_people == 1
    assert found.largest_delta == pytest.approx(0.725)
    assert found.exposed[0].records == (1, 2)
    assert "epsilon 0.4 in all, would expose 1 person" in found.verdict
    assert "the bound on delta over all answers is 0.725" in found.verdict
    assert found.to_dict()["exposed"][0]["delta"] == found.largest_delta


def test_the_bound_is_reached_where_an_answer_gives_away_all_or_nothing() -> None:
    """With chance delta_i the answer is one that is impossible without the person."""
    deltas = (0.45, 0.5)
    each = [{"away": math.log(d), "same": math.log(1 - d)} for d in deltas]
    here = {(a, b): each[0][a] + each[1][b] for a, b in product(*each)}
    assert delta_of(here, {("same", "same"): 0.0}, 0.0) == pytest.approx(joint_delta(deltas))
    assert joint_delta(deltas) == pytest.approx(0.725)


def test_tiny_deltas_of_a_long_list_are_not_lost_to_rounding() -> None:
    assert joint_delta([1e-18] * 1000) == pytest.approx(1e-15)
    assert joint_delta([0.1, 1.0, 0.2]) == 1.0


def test_a_queried_record_is_nobody_who_is_exposed() -> None:
    """Each audit counts the other record among the people; the list gives up both."""
    own: dict[str, Any] = {"values": {"job": "c", "city": "y"}, "metric": 7.0}
    found = joint_exposure([audited(1, 0.45), audited(2, 0.5, **own)])
    assert found.exposed_people == 1
    assert found.largest_delta == pytest.approx(0.725)
    alone = joint_exposure([audited(1, 0.45), Exposure(2, audited(1, 0).plan, 5, 9, **own)])
    assert alone.exposed == ()
    assert "would expose nobody" in alone.verdict


def test_newcomers_are_told_of_at_metrics_that_every_audit_looked_at() -> None:
    def with_newcomer(record: int, metrics: tuple[float, ...]) -> Exposure:
        values: dict[str, Any] = {"job": "c", "city": "y"}
        come = tuple(
            pcor.audit.Exposed("added", values, metric, 1, 1, 0, 0.5, None) for metric in metrics
        )
        return audited(record, 0.1, tried=6 * len(metrics), newcomers=come, metrics=metrics)

    found = joint_exposure([with_newcomer(1, (2.0, 3.0)), with_newcomer(2, (3.0, 4.0))])
    assert [(one.metric, one.delta) for one in found.newcomers] == [(3.0, 0.75)]
    assert joint_exposure([with_newcomer(1, (2.0,)), audited(2, 0.1)]).newcomers == ()


def test_under_dp_a_list_exposes_nobody_and_epsilons_add_up() -> None:
    rows = {0: ("a", "x", 40.0), 1: ("b", "y", 30.0), **dict.fromkeys(range(2, 9), ("c", "x", 1.0))}
    rule = pcor.Tail(0.4, min_population=3)
    each = exposures(table(rows), RECORDS, "0.3", detector=rule, guarantee="dp")
    found = joint_exposure(each)
    assert (found.exposed_people, found.largest_delta) == (0, 0.0)
    assert "by more than a factor exp(0.6)" in found.verdict


def test_nothing_and_audits_of_different_tables_are_refused() -> None:
    with pytest.raises(ParameterError, match="at least one"):
        joint_exposure([])
    other = pcor.Schema(metric="pay", attributes={"job": ["a", "b"]}, id="id")
    elsewhere = Exposure(1, pcor.plan(other, "0.2", detector="grubbs"), 1, 1)
    with pytest.raises(ParameterError, match="one table"):
        joint_exposure([audited(1, 0.1), elsewhere])


def test_what_is_private_is_not_in_a_repr() -> None:
    found = joint_exposure([audited(1, 0.45), audited(2, 0.5)])
    assert repr(found) + repr(found.exposed[0]) == (
        "<JointExposure: PRIVATE, for the owner only><JointlyExposed: PRIVATE, for the owner only>"
    )
    assert str(found).startswith(pcor.public.guarantee.OWNER_ONLY)
