"""Facts: what may be asked, what it costs, how far off it is, and what a release says of it."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

import pcor
from pcor.audit.exact import selection_chances
from pcor.errors import ParameterError
from pcor.ledger import Ledger
from pcor.mechanism.selection import SystemRandomSource
from pcor.public.grid import MetricGrid
from pcor.releasing.certificate import JSON_SCHEMA
from pcor.releasing.fact_draws import rank_scores
from pcor.releasing.facts import (
    Fact,
    PlannedCount,
    PlannedQuantile,
    accuracies,
    in_words,
    plausible,
)
from pcor.releasing.request import Request
from tests.helpers import naive
from tests.helpers.fact_ratios import APART, SCHEMA
from tests.helpers.neighbours import DETECTORS, small
from tests.helpers.scripted_draws import FALSE_ALARM
from tests.helpers.small_tables import NESTED

TENTH = Fraction(1, 10)
TAIL = pcor.Tail(0.4, min_population=3)
ALL = ["count", "rank", "median", "quantile:0.9"]
GIVEN: dict[str, Any] = {"detector": TAIL, "facts": ALL}


@pytest.fixture(scope="module")
def table() -> pcor.Table:
    return small(APART, TAIL, SCHEMA).table


def quantile(share: object, epsilon: object = "0.9", points: int = 21) -> PlannedQuantile:
    grid = MetricGrid(0, points - 1, 1)
    return PlannedQuantile("quantile", Fraction(str(epsilon)), 1, Fraction(str(share)), grid)


# -- what may be asked -----------------------------------------------------------------------------


def test_facts_have_one_spelling_and_order() -> None:
    given = ("rank, count", ["rank", "count"], ("count", "rank"), "count,rank")
    assert {pcor.Settings(facts=facts).facts for facts in given} == {"count,rank"}
    assert pcor.Settings(facts=["quantile:.9500", "median"]).facts == "median,quantile:0.95"
    assert pcor.Settings(facts=[]) == pcor.Settings()
    with pytest.raises(ParameterError, match="facts is empty: name what to release, count, rank"):
        pcor.Settings(facts=" ")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"facts": "mean"}, "unknown facts 'mean'"),
        ({"facts": 5}, "unknown facts 5"),
        ({"facts": ["count", "count"]}, "'count' is asked for twice"),
        ({"facts": "median,quantile:0.5"}, "'median' is asked for twice"),
        ({"facts": "rank,rank:low"}, "ask for one rank"),
        ({"facts": "quantile:1"}, "lies between 0 and 1"),
        ({"facts": "quantile:0.00001"}, "at most 4 digits"),
        ({"facts": "quantile:x"}, "the share of a quantile must be a positive"),
        ({"facts": "count", "facts_share": 1}, "facts_share must lie between 0 and 1"),
        ({"facts": "count", "facts_share": "x"}, "facts_share must be a positive"),
        ({"facts_share": "1/3"}, "facts_share goes with facts"),
    ],
)
def test_what_is_no_fact_is_refused(options: dict[str, Any], said: str) -> None:
    with pytest.raises(ParameterError, match=said):
        pcor.plan(SCHEMA, 1, **options)


def test_a_quantile_without_a_grid_is_refused_with_what_to_declare() -> None:
    schema = pcor.Schema("pay", {"job": ["a", "b"]})
    with pytest.raises(ParameterError, match=r"\[metric\] low, high and step"):
        pcor.plan(schema, 1, facts="median")
    assert pcor.plan(schema, 1, facts="count,rank").facts


def test_an_epsilon_too_small_for_a_quantile_is_refused_before_the_charge(
    table: pcor.Table,
) -> None:
    """Scores are whole numbers of 64 bits, and the ends of an interval lie far out."""
    budget = pcor.Budget(1)
    options: dict[str, Any] = GIVEN | {"facts": "quantile:0.9999", "budget": budget}
    with pytest.raises(ParameterError, match=r"epsilon is too small for 'quantile:0\.9999'"):
        pcor.release(table, 0, "1e-18", **options)
    assert budget.left == 1
    pcor.release(table, 0, "2e-12", **options)  # nearly as small as it may be


# -- what it costs ---------------------------------------------------------------------------------


@given(st.fractions(Fraction(1, 100), 5), st.sampled_from([None, "1/4", 0.9]), st.integers(1, 4))
@settings(max_examples=25)
def test_the_total_is_what_was_typed(epsilon: Fraction, share: object, asked: int) -> None:
    plan = pcor.plan(SCHEMA, epsilon, facts=ALL[:asked], facts_share=share)
    part = epsilon * Fraction(str(share or "1/3"))
    assert plan.bill.epsilon == epsilon == sum(step.cost for step in plan.bill.steps)
    assert [fact.epsilon for fact in plan.facts] == [part / asked] * asked
    # The draw of the context has the rest, and the exponent that the rest pays for.
    assert plan.bill.eta == pcor.plan(SCHEMA, epsilon - part).bill.eta


def test_with_a_delta_the_facts_pay_their_part_of_epsilon() -> None:
    options: dict[str, Any] = {"search": "depth_first", "delta": "1e-6"}
    plan = pcor.plan(SCHEMA, 3, facts="count", **options)
    assert plan.bill.draw == 2
    assert plan.bill.eta == pcor.plan(SCHEMA, 2, **options).bill.eta
    assert (plan.promise.epsilon, plan.promise.delta) == (Fraction(3), Fraction(1, 10**6))


def test_a_request_without_facts_is_as_it_was_and_one_with_them_is_another() -> None:
    def body(**options: Any) -> dict[str, Any]:
        plan = pcor.plan(SCHEMA, 1, **options)
        return Request.of(plan, 0, dataset="d", analyst="a").to_dict()

    assert {"facts", "facts_share"}.isdisjoint(body())
    assert body(facts=ALL) == body(facts=ALL[::-1], facts_share="1/3")
    assert body(facts=ALL)["facts"] == ALL
    assert body(facts=ALL, facts_share="1/2")["facts_share"] == "0.5"


def test_the_side_of_a_rank_is_the_detectors_and_never_the_rows() -> None:
    def side(detector: object, facts: str = "rank") -> str | None:
        fact = pcor.plan(SCHEMA, 1, detector=detector, facts=facts).facts[0]  # type: ignore[arg-type]
        assert isinstance(fact, PlannedCount)
        return fact.side

    assert side(pcor.Tail(tail="lower")) == "low"
    assert side(pcor.LOF()) == side(pcor.Grubbs(tail="upper")) == "high"
    assert side(pcor.LOF(), "rank:low") == "low"


# -- how far off it is -----------------------------------------------------------------------------


@given(st.fractions(Fraction(1, 50), 3), st.integers(1, 30))
@settings(max_examples=30)
def test_a_count_lies_in_its_interval_in_95_of_100_cases(epsilon: Fraction, number: int) -> None:
    """Computed: over all noise that matters, whether the interval has the true number."""
    fact = PlannedCount("count", epsilon, 1)
    rate, reach = float(fact.rate), 4 * fact.width + 50
    shape = math.tanh(rate / 2)  # (1 - a) / (1 + a) with a = exp(-rate)
    missed = 0.0
    for noise in range(-reach, reach + 1):
        told = fact.fact(number + noise)
        assert 1 <= told.low <= told.value <= told.high
        if not told.low <= number <= told.high:
            missed += shape * math.exp(-rate * abs(noise))
    beyond = 2 * math.exp(-rate * (reach + 1)) / (1 + math.exp(-rate))
    assert missed + beyond <= 0.05 + 1e-12


HEAPS = st.lists(st.integers(0, 20), min_size=1, max_size=40)


def missed(fact: PlannedQuantile, rows: NDArray[np.int64]) -> float:
    """Return the chance that the interval does not have the true quantile, exactly."""
    wanted = fact.share * int(rows.sum())
    true = next(i for i, upto in enumerate(np.cumsum(rows).tolist()) if upto >= wanted)
    below, above = (
        selection_chances(
            rank_scores(rows, fact, target).tolist(), eta=fact.eta, mechanism="exponential"
        )
        for target in fact.targets[1:]
    )
    return float(below[true + 1 :].sum() + above[:true].sum())


@given(HEAPS, st.sampled_from(["0.5", "0.9", "0.05", "0.25"]), st.sampled_from([1, 40, 400]))
@settings(max_examples=60)
def test_a_quantile_lies_in_its_interval_in_95_of_100_cases(
    places: list[int], share: str, times: int
) -> None:
    """Computed, whatever the rows are; the draw itself can only widen the interval."""
    rows = np.bincount(places, minlength=21) * times
    for epsilon in ("0.3", "6"):
        assert missed(quantile(share, epsilon), rows) <= 0.05 + 1e-12


def farther_off(facts: list[PlannedQuantile], rows: NDArray[np.int64], most: int) -> list[float]:
    """Return the chance of each told quantile, sorted, to be more rows off, exactly."""
    n, up_to = int(rows.sum()), np.cumsum(rows)
    # Of the draws, which are independent, how many are at most each point: shape (counts, points).
    counts = np.zeros((len(facts) + 1, len(rows)))
    counts[0] = 1.0
    for fact in facts:
        scores = rank_scores(rows, fact, 0).tolist()
        chance = np.cumsum(selection_chances(scores, eta=fact.eta, mechanism="exponential"))
        counts[1:] = counts[1:] * (1 - chance) + counts[:-1] * chance
        counts[0] *= 1 - chance
    chances = []
    for place, fact in enumerate(facts, 1):
        told = np.diff(counts[place:].sum(axis=0), prepend=0.0)  # that it is this point
        off = np.maximum(up_to - rows - float(fact.share * n), float(fact.share * n) - up_to)
        chances.append(float(told[off > most].sum()))
    return chances


@pytest.mark.parametrize("number", [1, 2, 5])
def test_sorted_quantiles_are_as_exact_as_the_plan_says(number: int) -> None:
    facts = [quantile(Fraction(5000 + 2 * j, 10000), "0.3", 1000) for j in range(1, number + 1)]
    (said,) = {sentence.split("at most ")[1] for sentence in accuracies(facts)}
    most, alone = int(said.split(" rows")[0]), max(one.width(Fraction(1, 20)) for one in facts)

    def worst(off: int) -> float:
        # All are at the first point, after which there are so many rows, and points as far off.
        rows = np.zeros(1000, dtype=np.int64)
        rows[:2] = 5000 + 2 * number, off + 1
        rows[-1] = 10000 - rows.sum()
        return max(farther_off(facts, rows, off))

    assert worst(most) <= 0.05
    # Counted as if nothing were sorted, the last of five would be farther off too often.
    assert (worst(alone) > 0.05) == (number == 5)


def test_the_interval_of_a_quantile_is_not_wider_than_it_must_be() -> None:
    """Half at the first point, half at the last: the lower end may be drawn at any but the first.

    All of these are as far from the wanted rank as can be, and together nearly have the chance
    that is allowed on this side.
    """
    fact = quantile("0.5", "0.3", points=1001)
    rows = np.zeros(1001, dtype=np.int64)
    rows[0] = rows[-1] = fact.shift * 40
    assert 0.022 < missed(fact, rows) <= 0.025


@given(HEAPS, st.sampled_from([Fraction(n, 20) for n in range(1, 20)]), st.integers(-9, 9))
def test_the_scores_of_a_quantile_are_those_of_its_twin(
    places: list[int], share: Fraction, target: int
) -> None:
    fact = quantile(share)
    rows = np.bincount(places, minlength=21).astype(np.int64)
    twin = naive.rank_scores(places, 21, share, target)
    scores = rank_scores(rows, fact, target).tolist()
    assert [Fraction(score, share.denominator) for score in scores] == twin
    assert max(scores) == 0


def test_a_number_that_noise_made_impossible_does_not_seem_sure() -> None:
    planned = PlannedCount("rank", Fraction(1, 10), most=1, side="high")
    fact = planned.fact(-100)
    assert (fact.value, fact.low, fact.high) == (1, 1, 1 + planned.width)


def test_where_rows_of_a_person_are_left_out_the_sentence_says_so() -> None:
    told = Fact("count", 90, 80, 100, Fraction(1))
    people: dict[str, Any] = {"person": "who", "rows_per_person": 3, "over": "keep"}
    schema = pcor.Schema(metric="pay", attributes={"job": ["a", "b"]}, rows="claims", **people)
    assert in_words([told], schema, pcor.LOF()) == (
        "about 90 claims (80 to 100); of each person at most 3 claims are counted"
    )


def test_people_are_called_people_and_a_certificate_says_what_was_counted() -> None:
    people: dict[str, Any] = {"person": "who", "rows_per_person": 3}
    schema = pcor.Schema(metric="pay", attributes={"job": ["a", "b"]}, rows="claims", **people)
    cost = Fraction(1, 10)
    told = [Fact("count", 90, 80, 100, cost, True), Fact("rank", 3, 1, 13, cost, True)]
    assert in_words(told, schema, pcor.LOF()) == (
        "about 90 people (80 to 100), about 3 (1 to 13) of them as high"
    )
    assert in_words(told[1:], schema, pcor.LOF()) == "about 3 (1 to 13) people as high"
    assert told[0].to_dict()["counts"] == "people"
    assert [Fact.from_dict(fact.to_dict()) for fact in told] == told
    assert [fact.label for fact in told] == ["count of people", "rank of people"]
    older = told[0].to_dict()
    del older["counts"]  # from before people were counted
    assert in_words([Fact.from_dict(older)], schema, pcor.LOF()) == "about 90 claims (80 to 100)"


def test_a_plan_says_that_people_are_counted_for_the_price_of_one() -> None:
    people: dict[str, Any] = {"person": "who", "rows_per_person": 8}
    schema = pcor.Schema(metric="pay", attributes={"job": ["a", "b"]}, **people)
    rows = pcor.Schema(metric="pay", attributes={"job": ["a", "b"]})
    by_person, by_row = (pcor.plan(one, 1, facts="count").accuracy[0] for one in (schema, rows))
    assert by_person == by_row.replace("the count", "the count of people")


@pytest.mark.parametrize(("factor", "accepted"), [("1", True), ("0.7", False), ("1.3", False)])
def test_a_quantile_is_drawn_with_the_stated_chances(factor: str, accepted: bool) -> None:
    """20,000 draws, chi-square with a false-alarm rate of 1e-9."""
    stated = quantile("0.5", "0.9")
    drawn_by = quantile("0.5", Fraction("0.9") * Fraction(factor))
    rows = np.array([1, 0, 5, 0, 0, 8, 2, *[0] * 10, 9, 1, 3, 4], dtype=np.int64)
    scores, chooser = rank_scores(rows, stated, 0).tolist(), SystemRandomSource()
    draws = [
        chooser.select(scores, eta=drawn_by.eta, mechanism="exponential") for _ in range(20_000)
    ]
    expected = selection_chances(scores, eta=stated.eta, mechanism="exponential") * len(draws)
    assert expected.min() > 5
    p = stats.chisquare(np.bincount(draws, minlength=21), expected).pvalue
    assert (p > FALSE_ALARM) == accepted


def test_facts_do_not_contradict_one_another_and_intervals_only_grow() -> None:
    given_ = [
        Fact("count", 5, 1, 9, TENTH),
        Fact("rank", 8, 6, 12, TENTH),
        Fact("median", 30, 20, 40, TENTH),
        Fact("quantile:0.9", 10, 5, 15, TENTH),
    ]
    made = plausible(given_)
    assert [fact.value for fact in made] == [5, 5, 10, 30]
    for before, after in zip(given_, made, strict=True):
        assert after.low <= min(before.low, after.value)
        assert after.high >= max(before.high, after.value)


def test_a_plan_says_what_accuracy_epsilon_buys() -> None:
    plan = pcor.plan(SCHEMA, 3, facts=["count"], facts_share=Fraction(1, 30))
    assert plan.accuracy == ["the count within 30 of the truth in 95 of 100 cases"]
    assert "Expect the count within 30 of the truth in 95 of 100 cases." in str(plan)
    assert plan.to_dict()["facts"][0]["epsilon"] == "0.1"
    assert "within 30" in plan._repr_html_()


# -- a release -------------------------------------------------------------------------------------


def test_a_release_has_its_facts_everywhere(table: pcor.Table) -> None:
    released = pcor.release(table, 0, 2, **GIVEN)
    assert [fact.name for fact in released.facts] == ALL
    assert all(fact.low <= fact.value <= fact.high for fact in released.facts)
    assert {fact.confidence for fact in released.facts} == {0.95}
    assert sum(fact.epsilon for fact in released.facts) == Fraction(2, 3)
    certificate = json.loads(released.to_json())
    jsonschema.validate(certificate, json.loads(JSON_SCHEMA.read_text(encoding="utf-8")))
    assert [fact["value"] for fact in certificate["facts"]] == [f.value for f in released.facts]
    assert f"about {released.facts[0].value:,} people (" in str(released)
    assert "of them as high; " in str(released)
    assert "Numbers about the group" in released.to_html()
    assert "with epsilon = 2/3 and without a condition on COE" in str(released.promise)
    again = pcor.Release.from_dict(certificate, released.plan)
    assert (again, str(again)) == (released, str(released))
    # Whoever pastes the end of the sentence means the context.
    end = str(released)[str(released).index("among ") :]
    assert pcor.Context.parse(SCHEMA, end) == released.context


def test_of_what_metrics_a_quantile_is_the_true_one_is_said_wherever_its_interval_is() -> None:
    """All pays lie between two points of the grid, or beyond its end: no interval has them."""
    rounding = "rounded to steps of 50 between 0 and 500"
    for pay, said in ((224.0, "half are below about 200 (200 to 200)"), (824.0, "500 or more")):
        schema = pcor.Schema(
            metric={"column": "pay", "low": 0, "high": 500, "step": 50},
            attributes={"job": ["a", "b"]},
            id="id",
        )
        rows = [("a", "x", 99999.0), *[("a", "x", pay)] * 30]
        one = pcor.release(small(rows, TAIL, schema).table, 0, 1000, detector=TAIL, facts="median")
        assert said in str(one)
        assert pcor.Context.parse(schema, str(one)[str(one).index("among ") :]) == one.context
        assert rounding in one.plan.accuracy[0]
        for page in (one.to_html(), one.to_letter()):
            assert f"each pay is first {rounding}: whatever lies beyond" in page
    assert "500 or more to 500 or more" in one.to_html()
    assert "<td>500 or more</td><td>500 or more and 500 or more</td>" in one.to_letter()


def test_a_release_without_facts_says_nothing_of_them(table: pcor.Table) -> None:
    released = pcor.release(table, 0, 2, detector=TAIL)
    assert released.facts == []
    assert not {"facts", "facts_share"} & set(released.to_dict())
    assert "facts" not in released.to_dict()["promise"]


def test_a_certificate_with_other_facts_is_not_of_this_plan(table: pcor.Table) -> None:
    released = pcor.release(table, 0, 2, **GIVEN)
    for facts in (None, "count"):
        other = pcor.plan(SCHEMA, 2, detector=TAIL, facts=facts)
        with pytest.raises(ParameterError, match="not made by this plan"):
            pcor.Release.from_dict(released.to_dict(), other)


def test_without_the_metric_the_sentence_has_the_facts_and_not_the_metric(
    table: pcor.Table,
) -> None:
    released = pcor.release(table, 0, 2, show_metric=False, **GIVEN)
    assert "(40)" not in str(released)
    assert "as high" in str(released)


def test_a_ledger_repeats_the_same_facts_for_free(table: pcor.Table, tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "books.db")
    ledger.set_budget("people", 5)
    first, again = (ledger.release(table, 0, 2, dataset="people", **GIVEN) for _ in range(2))
    assert first.facts == again.facts
    assert ledger.left("people") == 3
    ledger.release(table, 0, 2, dataset="people", detector=TAIL, facts="count")  # another question
    assert ledger.left("people") == 1


def test_a_batch_has_facts_for_every_record(table: pcor.Table) -> None:
    results = pcor.release_many(table, [0, 1], 6, guarantee="dp", **GIVEN)
    assert [[fact.name for fact in one.facts] for one in results.releases] == [ALL, ALL]


def test_an_audit_counts_the_facts_part_of_epsilon() -> None:
    """Beyond the total no more is given away than by the context beyond its own part."""
    grubbs = DETECTORS["grubbs"]
    table = small(NESTED, grubbs, SCHEMA).table
    with_facts = pcor.audit.exposure(table, 0, 3, detector=grubbs, facts="count")
    alone = pcor.audit.exposure(table, 0, 2, detector=grubbs)
    assert [one.delta for one in with_facts.exposed] == [one.delta for one in alone.exposed]
    assert alone.exposed
    assert with_facts.plan.bill.epsilon == 3
