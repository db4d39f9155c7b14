"""Differential privacy for everyone but V: exact distributions against every one-row neighbour.

Here, unlike in test_privacy.py, neighbours may change COE. No sampling: the scores of all contexts
are listed and the chances computed, so nothing can flicker. Then the same check is shown to reject
the relaxed searches, which is the point of this mode, and a price that is too low.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy import stats

import pcor
from pcor.audit import exact_log_chances, largest_log_ratio
from pcor.errors import ParameterError
from pcor.mechanism.ordered_selection import draw_first
from pcor.mechanism.selection import SystemRandomSource
from pcor.releasing.plan import Plan
from pcor.releasing.run import best_first
from pcor.releasing.settings import plan
from pcor.search import margin
from pcor.search.margin import MarginOrder, margin_scores, score_range
from pcor.search.validity import Validity
from tests.helpers.margins import DETECTORS, MECHANISMS, ON_THE_EDGE
from tests.helpers.neighbours import SCHEMA, Row, small

ROUNDING = 1e-9
FALSE_ALARM = 1e-9


some = settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@st.composite
def tables(draw: st.DrawFn) -> list[Row]:
    """Draw V and some rows on both sides of it."""
    row = st.tuples(st.sampled_from("abc"), st.sampled_from("xy"), st.integers(0, 20).map(float))
    return [("a", "x", 15.0), *draw(st.lists(row, max_size=10))]


def every_neighbour(rows: list[Row]) -> Iterator[list[Row]]:
    """Yield the table without any one row but V, and with one more in any cell, in and out of R."""
    for row in sorted(set(rows[1:])):
        position = rows.index(row, 1)
        yield rows[:position] + rows[position + 1 :]
    for job in ("a", "b", "c"):
        for city in ("x", "y"):
            for pay in (0.0, 12.0, 15.0, 18.0, 30.0):
                yield [*rows, (job, city, pay)]


def worst(rows: list[Row], detector: pcor.Detector, **options: Any) -> float:
    """Return the largest log ratio of any answer's chance between the table and its neighbours."""

    def chances(table_rows: list[Row]) -> dict[pcor.Context | None, float]:
        table = small(table_rows, detector).table
        return exact_log_chances(table, 0, 1, detector=detector, **options)

    here = chances(rows)
    return max(largest_log_ratio(here, chances(there)) for there in every_neighbour(rows))


@some
@given(tables(), st.sampled_from(sorted(DETECTORS)), st.sampled_from([1, 3, 20]))
def test_no_neighbour_moves_a_chance_by_more_than_epsilon(
    rows: list[Row], name: str, steepness: int
) -> None:
    for mechanism in MECHANISMS:
        found = worst(
            rows, DETECTORS[name], guarantee="dp", steepness=steepness, selection=mechanism
        )
        assert found <= 1 + ROUNDING, mechanism


@some
@given(tables())
def test_overlap_is_priced_alike(rows: list[Row]) -> None:
    chosen = pcor.Context(SCHEMA, {"job": ["a", "b"], "city": ["x"]})
    found = worst(rows, DETECTORS["tail"], guarantee="dp", utility=pcor.Overlap(chosen))
    assert found <= 1 + ROUNDING


class TenTimes(pcor.PopulationSize):
    """Ten for each row, and honest about it: priced as one, it moved a chance by exp(6.67)."""

    sensitivity = 10

    def score(self, population: pcor.Population) -> int:
        return 10 * population.size

    def cell_weights(self, table: pcor.Table) -> Any:
        return 10 * super().cell_weights(table)


class TenCells(pcor.PopulationSize):
    """The same by the cells alone, and silent about it."""

    def cell_weights(self, table: pcor.Table) -> Any:
        return 10 * super().cell_weights(table)


class ShareOfAnother(pcor.Overlap):
    """Counts against the chosen context what the proof counts for it."""

    def score(self, population: pcor.Population) -> int:
        return -super().score(population)


@pytest.mark.parametrize(
    "utility", [TenTimes(), TenCells(), ShareOfAnother(pcor.Context.full(SCHEMA))], ids=str
)
def test_a_utility_derived_from_one_that_is_proven_is_not_taken_for_it(utility: Any) -> None:
    """The proof is about counts of rows; what a derived class counts is its own affair."""
    with pytest.raises(ParameterError, match=f"not {type(utility).__name__}: .* proof"):
        worst(ON_THE_EDGE, DETECTORS["tail"], guarantee="dp", utility=utility)


@pytest.mark.parametrize("search", ["direct", "uniform", "breadth_first", "widest_first"])
def test_the_relaxed_searches_fail_the_same_check(search: str) -> None:
    """One person changes COE, and a context that was possible is not."""
    samples = {} if search == "direct" else {"samples": 2}
    found = worst(ON_THE_EDGE, DETECTORS["tail"], guarantee="ocdp", search=search, **samples)
    assert found == math.inf
    assert worst(ON_THE_EDGE, DETECTORS["tail"], guarantee="dp") <= 1 + ROUNDING


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_an_understated_price_fails_the_same_check(
    mechanism: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A price by the margin alone, without what the row adds to the population; and half of it."""
    honest = worst(ON_THE_EDGE, DETECTORS["tail"], guarantee="dp", selection=mechanism)
    assert honest <= 1 + ROUNDING
    monkeypatch.setattr("pcor.releasing.terms.score_range", lambda d, s: score_range(d, s) // 2)
    assert worst(ON_THE_EDGE, DETECTORS["tail"], guarantee="dp", selection=mechanism) > 1.2


def test_the_price_is_reached() -> None:
    """The range is not larger than it must be.

    With one more in the record's cell and region, the wide contexts gain a person and the record's
    own cell loses a margin of seven tenths.
    """
    rows: list[Row] = [("a", "x", 15.0), *[("b", "y", 1.0)] * 200]
    found = worst(rows, DETECTORS["tail"], guarantee="dp", steepness=20, selection="exponential")
    assert 0.99 < found <= 1 + ROUNDING


# -- the order -------------------------------------------------------------------------------------


@given(
    st.lists(st.tuples(*[st.integers(0, 40)] * 2), min_size=1, max_size=20),
    st.sampled_from(sorted(DETECTORS)),
    st.integers(1, 30),
)
def test_the_score_is_positive_exactly_where_the_context_is_valid(
    people: list[tuple[int, int]], name: str, steepness: int
) -> None:
    detector = DETECTORS[name]
    n = np.array([a + b for a, b in people])
    c = np.array([b for _, b in people])
    scores = margin_scores(detector, steepness, n, n, c)
    share = detector.share_exact
    for score, rows, inside in zip(scores.tolist(), n.tolist(), c.tolist(), strict=True):
        valid = rows >= detector.min_population and share * rows - inside > 0
        assert (score > 0) == valid
        exact = min(
            rows * share.denominator,
            (rows - detector.min_population + 1) * share.denominator,
            steepness * (share * rows - inside) * share.denominator,
        )
        assert score == exact


def order_of(rows: list[Row], detector: pcor.CountDetector) -> tuple[MarginOrder, Plan, pcor.Table]:
    table = small(rows, detector).table
    planned = plan(table.schema, 1, detector=detector, guarantee="dp", steepness=4)
    order = best_first(planned, Validity(table, table.record(0), detector))
    assert isinstance(order, MarginOrder)
    return order, planned, table


def scores_by_hand(
    table: pcor.Table, detector: pcor.CountDetector, steepness: int
) -> dict[int, int]:
    """Score every context of V through its population."""
    value = table.record(0).value
    found = {}
    for mask in table.record(0).space.masks():
        values, counts = table.distribution(mask)
        n, c = counts.sum(), counts[detector.in_region(values, value)].sum()
        score = margin_scores(detector, steepness, *(np.array([x]) for x in (n, n, c)))
        found[mask] = int(score[0])
    return found


@settings(max_examples=40, deadline=None)
@given(tables(), st.sampled_from(sorted(DETECTORS)), st.booleans(), st.sampled_from([1, 2, 200]))
def test_every_context_is_met_once_by_falling_score(
    rows: list[Row], name: str, listed: bool, step: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(margin, "LARGEST_LIST", 1 << 24 if listed else -1)
        patch.setattr(margin, "FIRST_STEP", step)
        patch.setattr(margin, "LARGEST_STEP", step)
        order, _, table = order_of(rows, DETECTORS[name])
        expected = scores_by_hand(table, DETECTORS[name], 4)
        while not order.finished:
            ranked = set(order.masks()) if order.ranked() else set()
            # At every moment the bounds cover what is not met: as many, and no better.
            bounds = order.remaining()
            for least in sorted(expected.values()):
                left = sum(score >= least for mask, score in expected.items() if mask not in ranked)
                assert left <= sum(run.count for run in bounds if run.utility >= least)
            order.advance()
        scores = [run.utility for run in order.ranked() for _ in range(run.count)]
        assert dict(zip(order.masks(), scores, strict=True)) == expected
        assert scores == sorted(scores, reverse=True)


@pytest.mark.parametrize("listed", [True, False])
@pytest.mark.parametrize(("factor", "accepted"), [(1, True), (2, False)])
def test_releases_have_the_exact_chances_and_no_others(
    listed: bool, factor: int, accepted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Chi-square of 4,000 draws, false alarms one in 1e9; twice the exponent must be rejected."""
    monkeypatch.setattr(margin, "LARGEST_LIST", 1 << 24 if listed else -1)
    detector = DETECTORS["tail"]
    _, planned, table = order_of(ON_THE_EDGE, detector)
    chances = {
        context: math.exp(log)
        for context, log in exact_log_chances(
            table, 0, 1, detector=detector, guarantee="dp", steepness=4
        ).items()
        if context is not None
    }
    contexts, uniform = list(chances), SystemRandomSource().uniform
    counts = dict.fromkeys(contexts, 0)
    validity = Validity(table, table.record(0), detector)
    for _ in range(4_000):
        order = best_first(planned, validity)
        assert order is not None
        place = draw_first(order, factor * planned.bill.eta, uniform, planned.selection)
        assert place is not None
        counts[pcor.Context.from_mask(table.schema, order.mask(place))] += 1
    expected = [4_000 * chances[context] for context in contexts]
    p = stats.chisquare([counts[context] for context in contexts], expected).pvalue
    assert (p > FALSE_ALARM) == accepted


# -- who is meant ---------------------------------------------------------------------------------


NUMBERED: dict[str, Any] = {
    "metric": "pay",
    "attributes": {"job": ["a", "b", "c"], "city": ["x", "y"]},
}


def test_without_an_id_a_row_before_the_record_decides_who_is_asked_so_dp_is_refused() -> None:
    detector = DETECTORS["tail"]
    rows: list[Row] = [("b", "y", 1.0), ("a", "x", 15.0), *[("c", "x", 2.0)] * 6]
    public = pcor.Schema(**NUMBERED, positions="public")

    def table(kept: list[Row]) -> pcor.Table:
        columns = zip(("job", "city", "pay"), zip(*kept, strict=True), strict=True)
        return pcor.Table(pa.table({name: list(cells) for name, cells in columns}), public)

    def chances(kept: list[Row]) -> dict[pcor.Context | None, float]:
        return exact_log_chances(table(kept), 1, 1, detector=detector, guarantee="dp")

    after, before = rows[:-1], rows[1:]
    assert largest_log_ratio(chances(rows), chances(after)) <= 1 + ROUNDING
    assert largest_log_ratio(chances(rows), chances(before)) == math.inf
    with pytest.raises(ParameterError, match=r"needs a schema with an id.*positions = \"public\""):
        plan(pcor.Schema(**NUMBERED), 1, detector=detector, guarantee="dp")
    audited = pcor.audit.exposure(table(rows), 1, 1, detector=detector, guarantee="dp")
    assert audited.to_dict()["rows_before"] == 1
    assert "which the rows before it (1) decide" in audited.verdict
    assert "which the schema declares public" in audited.verdict


@pytest.mark.parametrize("guarantee", ["ocdp", "dp"])
@pytest.mark.parametrize("positions", [{"id": "key"}, {"positions": "public"}])
def test_a_promise_about_a_row_number_leaves_out_whoever_stands_before_it(
    guarantee: str, positions: dict[str, Any]
) -> None:
    schema = pcor.Schema(**NUMBERED, **positions)
    promise = plan(schema, 1, detector=pcor.Tail(0.1), guarantee=guarantee).promise
    for text in (str(promise), promise.to_dict()["text"], promise.to_html()):
        said = "anyone whose row stands before the record" in text
        assert said == ("id" not in positions)
    assert ("the same place" in promise.claim) == ("id" not in positions)
