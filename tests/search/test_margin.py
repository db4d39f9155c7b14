"""Differential privacy for everyone but V: exact distributions against every one-row neighbour.

Here, unlike in test_privacy.py, neighbours may change COE. No sampling: the scores of all contexts
are listed and the chances computed, so nothing can flicker. Then the same check is shown to reject
the relaxed searches, which is the point of this mode, and a price that is too low.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st
from scipy import stats

import pcor
from pcor.audit import exact_log_chances, largest_log_ratio
from pcor.errors import ParameterError, TooLarge
from pcor.mechanism.ordered_selection import draw_first
from pcor.mechanism.selection import SystemChooser
from pcor.releasing.plan import Plan
from pcor.releasing.run import best_first
from pcor.releasing.settings import plan
from pcor.search import margin
from pcor.search.margin import MarginOrder, margin_scores, needed, score_range
from pcor.search.validity import Validity
from pcor.service.page.words import plan_in_words
from tests.helpers.neighbours import SCHEMA, Row, small

ROUNDING = 1e-9
FALSE_ALARM = 1e-9

DETECTORS: dict[str, pcor.CountDetector] = {
    "tail": pcor.Tail(0.3, min_population=3),
    "lower tail": pcor.Tail(0.2, tail="lower", min_population=2),
    "neighbourhood": pcor.Neighbourhood(3.0, 0.25, min_population=3),
    "rare bin": pcor.RareBin([5.0, 20.0], 0.7, min_population=1),
}
MECHANISMS = ("exponential", "permute_and_flip")

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


# Three in the tail of eleven: with one row less among the others V is no outlier any more.
ON_THE_EDGE: list[Row] = [
    ("a", "x", 15.0),
    ("a", "x", 16.0),
    ("b", "x", 17.0),
    *[("a", "x", 1.0), ("b", "y", 2.0), ("c", "x", 3.0), ("c", "y", 4.0)] * 2,
]


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
    settled = plan(table.schema, 1, detector=detector, guarantee="dp", steepness=4)
    order = best_first(settled, Validity(table, table.record(0), detector))
    assert isinstance(order, MarginOrder)
    return order, settled, table


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
        patch.setattr(margin, "LARGEST_LIST", 24 if listed else -1)
        patch.setattr(margin, "FIRST_STEP", step)
        patch.setattr(margin, "LARGEST_STEP", step)
        order, _, table = order_of(rows, DETECTORS[name])
        expected = scores_by_hand(table, DETECTORS[name], 4)
        while not order.finished:
            met = set(order.masks()) if order.met() else set()
            # At every moment the bounds cover what is not met: as many, and no better.
            bounds = order.remaining()
            for least in sorted(expected.values()):
                left = sum(score >= least for mask, score in expected.items() if mask not in met)
                assert left <= sum(run.count for run in bounds if run.utility >= least)
            order.advance()
        scores = [run.utility for run in order.met() for _ in range(run.count)]
        assert dict(zip(order.masks(), scores, strict=True)) == expected
        assert scores == sorted(scores, reverse=True)


@pytest.mark.parametrize("listed", [True, False])
@pytest.mark.parametrize(("factor", "accepted"), [(1, True), (2, False)])
def test_releases_have_the_exact_chances_and_no_others(
    listed: bool, factor: int, accepted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Chi-square of 4,000 draws, false alarms one in 1e9; twice the exponent must be rejected."""
    monkeypatch.setattr(margin, "LARGEST_LIST", 24 if listed else -1)
    detector = DETECTORS["tail"]
    _, settled, table = order_of(ON_THE_EDGE, detector)
    chances = {
        context: math.exp(log)
        for context, log in exact_log_chances(
            table, 0, 1, detector=detector, guarantee="dp", steepness=4
        ).items()
        if context is not None
    }
    contexts, uniform = list(chances), SystemChooser().uniform
    counts = dict.fromkeys(contexts, 0)
    validity = Validity(table, table.record(0), detector)
    for _ in range(4_000):
        order = best_first(settled, validity)
        assert order is not None
        place = draw_first(order, factor * settled.bill.eta, uniform, settled.selection)
        assert place is not None
        counts[pcor.Context.from_mask(table.schema, order.mask(place))] += 1
    expected = [4_000 * chances[context] for context in contexts]
    p = stats.chisquare([counts[context] for context in contexts], expected).pvalue
    assert (p > FALSE_ALARM) == accepted


# -- the request -----------------------------------------------------------------------------------

LARGER = pcor.Schema(
    metric="pay", attributes={"job": list(range(12)), "city": list(range(5))}, id="id"
)


def test_what_a_context_needs_to_win_holds_on_a_table_that_has_it() -> None:
    """One context with exactly that many people and that margin, and everything else invalid."""
    settled = plan(LARGER, 2, detector=pcor.Tail(0.5), guarantee="dp")
    wanted = settled.needed(0.9)
    assert wanted is not None
    score = wanted.people * 2
    chance = 1 - settled.space * math.exp(-float(settled.bill.eta) * score)
    assert chance >= 0.9
    less = needed(settled.bill.eta, pcor.Tail(0.5), 50, settled.space, 0.5)
    assert less.people < wanted.people
    assert "at least 0.9;" in str(wanted)
    assert f"of at least {wanted.people + 20:,} rows" in str(wanted)  # 21 is the least
    assert plan(LARGER, 2).needed() is None
    for wrong in (0, 1, True, "likely", float("nan"), Fraction(10**400 - 1, 10**400)):
        with pytest.raises(ParameterError, match="chance must be a number"):
            settled.needed(wrong)  # type: ignore[arg-type]


def test_what_overlap_needs_is_said_too() -> None:
    """A context of many people that shares none with the chosen one does not win."""
    rows: list[Row] = [("a", "x", 40.0), *[("b", "y", 1.0)] * 3000]
    detector = pcor.Tail(0.9, min_population=2)
    chosen = pcor.Context(SCHEMA, {"job": ["c"], "city": ["x"]})
    settled = plan(SCHEMA, 1, detector=detector, guarantee="dp", utility=pcor.Overlap(chosen))
    wanted = settled.needed()
    assert wanted is not None
    assert f"shares at least {wanted.people} rows with the chosen context" in str(wanted)
    table = small(rows, detector).table
    chances = pcor.audit.exact_distribution(
        table, 0, 1, detector=detector, guarantee="dp", utility=pcor.Overlap(chosen)
    )
    valid = {c for c in chances if pcor.is_outlier(table, 0, c, detector)}
    assert valid
    assert sum(chances[c] for c in valid) < 0.9


def margins(
    rows: list[Row], detector: pcor.CountDetector
) -> dict[pcor.Context, tuple[int, Fraction]]:
    """Count, by the definitions, each context's rows and its margin; V is the first row."""
    counted = {}
    for mask in small(rows, detector).table.record(0).space.masks():
        context = pcor.Context.from_mask(SCHEMA, mask)
        inside = [
            r for r in rows if r[0] in context.values["job"] and r[1] in context.values["city"]
        ]
        unusual = detector.in_region(np.array([pay for _, _, pay in inside]), rows[0][2])
        margin = detector.share_exact * len(inside) - int(unusual.sum())
        counted[context] = (len(inside), margin)
    return counted


@st.composite
def crowds(draw: st.DrawFn) -> list[Row]:
    """Draw V and crowds of equal rows, so that V may stand out by much, by little or nowhere."""
    crowd = st.tuples(
        st.sampled_from("abc"), st.sampled_from("xy"), st.sampled_from([1.0, 14.0, 15.0, 20.0])
    )
    sizes = draw(st.lists(st.tuples(crowd, st.integers(1, 60)), max_size=6))
    return [("a", "x", 15.0), *[row for row, size in sizes for _ in range(size)]]


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    crowds(),
    st.sampled_from(sorted(DETECTORS)),
    st.sampled_from([1, 5, 40]),
    st.sampled_from(MECHANISMS),
)
def test_where_the_condition_of_the_sentence_holds_so_does_its_chance(
    rows: list[Row], name: str, epsilon: int, mechanism: str
) -> None:
    detector = DETECTORS[name]
    options: dict[str, Any] = {"detector": detector, "guarantee": "dp", "selection": mechanism}
    wanted = plan(SCHEMA, epsilon, **options).needed()
    assert wanted is not None
    counted = margins(rows, detector)
    holds = any(
        n >= max(wanted.rows, detector.min_population) and margin >= wanted.margin
        for n, margin in counted.values()
    )
    event("the condition holds" if holds else "it does not")
    if holds:
        assert valid_chance(rows, epsilon, **options) >= wanted.chance


def valid_chance(rows: list[Row], epsilon: object, **options: Any) -> float:
    """Return how likely a release names a context in which V is an outlier, exactly."""
    case = small(rows, options["detector"])
    chances = pcor.audit.exact_distribution(case.table, 0, epsilon, **options)
    return sum(chances[context] for context in chances if context in case.coe)


def test_the_sentence_says_the_margin_without_which_it_says_nothing() -> None:
    """V is an outlier by a hair in one context of eight; chance hardly ever names that one."""
    rows: list[Row] = [("a", "x", 15.0), *[("a", "x", 1.0)] * 3]
    rows += [("b", "x", 20.0), ("a", "y", 20.0), ("c", "x", 20.0)]
    detector = DETECTORS["tail"]
    case = small(rows, detector)
    assert len(case.coe) == 1
    assert valid_chance(rows, "0.2", detector=detector, guarantee="dp") < 0.2
    release = pcor.release(case.table, 0, "0.2", detector=detector, guarantee="dp")
    wanted = release.plan.needed()
    assert wanted is not None
    assert all(margin < wanted.margin for _, margin in margins(rows, detector).values())
    condition = f"of at least {wanted.rows:,} rows by a margin of at least {wanted.margin:,}"
    certificate = release.to_dict()
    for said in (str(release), certificate["sentence"]):
        assert (
            f"{condition} (if not, this says nothing), then with a chance of at least 0.99" in said
        )
    for said in (
        certificate["promise"]["validity"],
        certificate["promise"]["text"],
        release.to_html(),
        release.plan._repr_html_(),
        plan_in_words(release.plan, 0).returns,
    ):
        assert f"{condition} (" in said
        assert "with a chance of at least 0.99; if not, nothing is said of it" in said
    assert "likely, not certainly" not in release.to_html()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"detector": "lof"}, "not possible with detector 'lof'.*tail, neighbourhood, rare_bin"),
        ({"detector": "grubbs"}, "not possible with detector 'grubbs'"),
        ({"search": "breadth_first"}, "search must be 'auto' or 'direct'"),
        ({"accounting": "paper"}, "tight accounting"),
        ({"delta": 1e-6}, "no delta"),
        ({"steepness": 0}, "steepness must be a whole number"),
        ({"steepness": True}, "steepness must be a whole number"),
        ({"steepness": 10**9}, "too fine for guarantee 'dp'"),
        ({"detector": pcor.Tail(0.00001)}, "1/100000 with steepness 400,000 is too fine"),
        ({"guarantee": "pure"}, "unknown guarantee 'pure'; allowed: dp, ocdp"),
        ({"guarantee": "ocdp", "steepness": 5}, "steepness goes with guarantee='dp'"),
        ({"utility": "overlap"}, "overlap"),
    ],
)
def test_what_cannot_be_had_is_refused_with_the_reason(
    options: dict[str, Any], message: str
) -> None:
    usual: dict[str, Any] = {"detector": pcor.Tail(0.1), "guarantee": "dp"}
    with pytest.raises(ParameterError, match=message):
        pcor.plan(LARGER, 1, **(usual | options))


WIDE = pcor.Schema(metric="pay", attributes={"job": list(range(40))}, positions="public")


def test_a_space_too_large_to_list_is_refused_from_public_facts() -> None:
    asked: dict[str, Any] = {"detector": pcor.Tail(0.1), "guarantee": "dp"}
    with pytest.raises(TooLarge, match="549,755,813,888"):
        pcor.plan(WIDE, 1, **asked)
    pcor.plan(WIDE, 1, search=pcor.Direct(limit=1 << 40), **asked)
    assert pcor.plan(WIDE, 1, limit=1 << 40, **asked).search == pcor.Direct(limit=1 << 40)


@pytest.mark.parametrize("search", ["auto", "direct"])
def test_what_helps_against_too_many_contexts_is_what_dp_allows_at_that_door(search: str) -> None:
    """Not widest_first, which dp refuses; and each door names what it has."""
    with pytest.raises(TooLarge) as refused:
        pcor.plan(WIDE, 1, detector=pcor.Tail(0.1), guarantee="dp", search=search)
    said = str(refused.value), refused.value.at("cli"), refused.value.at("service")
    assert not any("widest_first" in words for words in said)
    assert ["raise limit=" in words for words in said] == [True, False, False]
    assert ["raise --limit" in words for words in said] == [False, True, False]
    assert "register it with a larger limit" in said[2]


def test_no_limit_is_recommended_where_none_helps() -> None:
    wider = pcor.Schema(metric="pay", attributes={"job": list(range(80))}, id="id")
    with pytest.raises(TooLarge) as refused:
        pcor.plan(wider, 1, detector=pcor.Tail(0.1), guarantee="dp")
    for words in (str(refused.value), refused.value.at("cli"), refused.value.at("service")):
        assert "fewer values" in words
        assert "raise" not in words
        assert "larger limit" not in words


def test_a_space_far_too_large_to_list_is_drawn_from_where_the_owner_raises_the_limit() -> None:
    job = [n % 40 for n in range(80_000)]
    pay = [100.0, *(float(n % 50) for n in range(1, 80_000))]
    table = pcor.Table(pa.table({"job": job, "pay": pay}), WIDE)
    release = pcor.release(table, 0, 1, pcor.Tail(0.1), guarantee="dp", limit=1 << 40)
    # Each job left out costs 2,000 people, exp(-54): with all but such a chance it is all of them.
    assert release.context == pcor.Context.full(WIDE)


def test_the_release_says_what_it_promises_and_what_it_does_not() -> None:
    table = small(ON_THE_EDGE, DETECTORS["tail"]).table
    budget = pcor.Budget(1)
    release = pcor.release(table, 0, 1, detector=DETECTORS["tail"], guarantee="dp", budget=budget)
    assert budget.left == 0
    certificate = release.to_dict()
    assert certificate["promise"]["guarantee"] == certificate["guarantee"] == "dp"
    text = certificate["promise"]["text"]
    assert "differential privacy for everyone but the queried record" in text
    assert "Relaxed" not in text
    assert "OCDP" not in release.to_json() + repr(release)
    needs = certificate["needed"]
    assert needs["text"] in text
    assert needs["text"] in release.to_html()
    assert f"of at least {needs['rows']:,} rows by a margin of" in certificate["sentence"]
    relaxed = pcor.release(table, 0, 1, detector=DETECTORS["tail"])
    assert "is an outlier" in str(relaxed)
    assert "OCDP" in relaxed.promise.claim


def test_a_record_that_is_no_outlier_anywhere_still_gets_an_answer() -> None:
    """Whether there is a valid context depends on everybody; so "none" is no answer here."""
    rows: list[Row] = [("a", "x", 5.0), *[("a", "x", 9.0), ("b", "y", 9.0)] * 10]
    detector = DETECTORS["tail"]
    table = small(rows, detector).table
    assert len(pcor.matching_contexts(table, 0, detector)) == 0
    release = pcor.release(table, 0, 1, detector=detector, guarantee="dp")
    assert release.context.mask in table.record(0).space


def test_neighbouring_tables_of_very_different_sizes_get_the_same_plan() -> None:
    detector = pcor.Tail(0.1)
    one = pa.table({"id": [0], "job": [0], "city": [0], "pay": [1.0]})
    numbers = list(range(5_000))
    many = pa.table({"id": numbers, "job": [0] * 5_000, "city": [0] * 5_000, "pay": numbers})
    plans = [
        pcor.plan(pcor.Table(rows, LARGER).schema, 1, detector=rule, guarantee=guarantee).to_dict()
        for guarantee, rule in (("dp", detector), ("ocdp", "lof"))
        for rows in (one, many)
    ]
    assert plans[0] == plans[1]
    assert plans[2] == plans[3]
    assert Fraction(plans[0]["epsilon_exact"]) == 1


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
