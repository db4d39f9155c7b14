"""What a release for everyone but the record promises, what it needs, and what is refused."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

import pcor
from pcor.errors import ParameterError, TooLarge
from pcor.releasing.settings import plan
from pcor.search.margin import needed
from pcor.service.page.words import returns
from tests.helpers.margins import DETECTORS, MECHANISMS, ON_THE_EDGE
from tests.helpers.neighbours import SCHEMA, Row, small

LARGER = pcor.Schema(
    metric="pay", attributes={"job": list(range(12)), "city": list(range(5))}, id="id"
)


def test_what_a_context_needs_to_win_holds_on_a_table_that_has_it() -> None:
    """One context with exactly that many people and that margin, and everything else invalid."""
    planned = plan(LARGER, 2, detector=pcor.Tail(0.5), guarantee="dp")
    wanted = planned.needed(0.9)
    assert wanted is not None
    score = wanted.people * 2
    chance = 1 - planned.space * math.exp(-float(planned.bill.eta) * score)
    assert chance >= 0.9
    less = needed(planned.bill.eta, pcor.Tail(0.5), 50, planned.space, 0.5)
    assert less.people < wanted.people
    assert "at least 0.9;" in str(wanted)
    assert f"of at least {wanted.people + 20:,} rows" in str(wanted)  # 21 is the least
    assert plan(LARGER, 2).needed() is None
    for wrong in (0, 1, True, "likely", float("nan"), Fraction(10**400 - 1, 10**400)):
        with pytest.raises(ParameterError, match="chance must be a number"):
            planned.needed(wrong)  # type: ignore[arg-type]


def test_a_detector_that_stands_in_for_the_schemas_is_said() -> None:
    """Not where one is named, nor where that of the schema counts, nor under another guarantee."""
    declared = SCHEMA.to_dict()
    grubbs = pcor.Schema.from_dict(declared | {"release": {"detector": "grubbs"}})
    planned = plan(grubbs, 1, guarantee="dp")
    assert "does not take the schema's detector 'grubbs'" in planned.note
    assert "tail stands in for it" in planned.note
    assert planned.to_dict()["note"] == planned.note
    assert planned == planned.settings.plan(grubbs, 1)  # a note makes no other plan
    counting = pcor.Schema.from_dict(declared | {"release": {"detector": "tail:share=0.2"}})
    for other in (
        plan(grubbs, 1, detector="tail", guarantee="dp"),
        plan(counting, 1, guarantee="dp"),
        plan(SCHEMA, 1, guarantee="dp"),
        plan(grubbs, 1),
    ):
        assert other.stand_in == ""


def test_what_overlap_needs_is_said_too() -> None:
    """A context of many people that shares none with the chosen one does not win."""
    rows: list[Row] = [("a", "x", 40.0), *[("b", "y", 1.0)] * 3000]
    detector = pcor.Tail(0.9, min_population=2)
    chosen = pcor.Context(SCHEMA, {"job": ["c"], "city": ["x"]})
    planned = plan(SCHEMA, 1, detector=detector, guarantee="dp", utility=pcor.Overlap(chosen))
    wanted = planned.needed()
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
        returns(release.plan, 0),
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
    """Not widest_first, which dp refuses; and each interface names what it has."""
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
    assert "is unusually high" in str(relaxed)
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


def test_what_a_context_needs_counts_its_words_where_rows_are_shared() -> None:
    """With brevity and overlap it is the shared rows that words take from."""
    schema = pcor.Schema(
        metric="m", attributes={"a": ["x", "y"], "b": ["p", "q"]}, positions="public"
    )
    chosen = pcor.Context(schema, {"b": "p"})
    planned = pcor.plan(schema, 1, guarantee="dp", utility=pcor.Overlap(chosen), brevity=1990)
    wanted = planned.needed()
    assert wanted is not None
    assert wanted.rows_in_words == (
        f"{wanted.rows:,} rows that shares at least {wanted.people:,} rows, and 1,990 more for "
        "each thing that its words name, with the chosen context"
    )
    least = wanted.people + 1990  # "a is x" names one thing
    for shared, sure in ((least, True), (600, False)):
        cells = {
            ("x", "p", 0.0): shared,
            ("x", "q", 0.0): 4000 - shared,
            ("y", "p", 100.0): 399,  # so that the record stands out in x and not among all
            ("y", "q", 0.0): 3601,
        }
        rows = [cell for cell, count in cells.items() for _ in range(count)]
        rows[0] = ("x", "p", 50.0)
        columns = zip(("a", "b", "m"), zip(*rows, strict=True), strict=True)
        table = pcor.Table(pa.table({name: list(column) for name, column in columns}), schema)
        chances = pcor.audit.exact_distribution(
            table, 0, 1, guarantee="dp", utility=pcor.Overlap(chosen), brevity=1990
        )
        valid = sum(
            chance
            for context, chance in chances.items()
            if pcor.is_outlier(table, 0, context, planned.detector)
        )
        assert (valid >= 0.99) is sure
