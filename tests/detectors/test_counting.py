"""Detectors that count: against exact fractions, in every way to ask, and what one row can change.

Verdicts are comparisons of whole numbers, so nothing here has a tolerance. Tables are the nasty
ones of tests/kernels/test_verdicts.py: heavy ties, tiny and empty cells, numbers of very different
size.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pcor
from pcor.detectors import detector_factory, detector_names, get_detector
from pcor.detectors.counting import LARGEST_DENOMINATOR
from pcor.errors import ParameterError
from pcor.testing import check_detector
from tests.helpers import naive
from tests.helpers.brute_force import MetricOf, compare_with_brute_force, mirrored, with_ties
from tests.helpers.kernel_cases import (
    SPACES,
    Case,
    cases,
    merged,
    often,
    some_contexts,
    sometimes,
    split,
)


class Rule(NamedTuple):
    """A detector, and its region and verdicts in plain Python."""

    detector: pcor.CountDetector
    region: naive.Region

    def verdicts(self, case: Case, masks: Sequence[int]) -> list[bool]:
        return [self.verdict(case, mask) for mask in masks]

    def verdict(self, case: Case, mask: int) -> bool:
        covered = case.covered(mask)
        if case.row not in covered or len(covered) < self.detector.min_population:
            return False
        inside = sum(self.region(case.metric[i], case.value) for i in covered)
        return inside < Fraction(repr(self.detector.share)) * len(covered)


KINDS = {kind.name: kind for kind in (pcor.Tail, pcor.Neighbourhood, pcor.RareBin)}
SHARES = [0.000001, 0.05, 0.1, 0.25, 0.3, 0.5, 0.75, 0.9, 0.999999]
RADII = [0, 0.1, 0.3, 1, 2.0, 10, 1e-20, 1e15, 1e98]
GRIDS: list[list[float]] = [
    [0],
    [15, 100],
    [-40, -0.1, 0, 0.3, 7, 8],
    [1e15 - 1, 1e15 + 5, 1e15 + 9],
    [float(edge) for edge in range(-60, 1200, 3)],
    [edge / 10 for edge in range(-60, 60, 5)],
    [10.0**edge for edge in range(-9, 100)],
]
least = st.sampled_from([1, 3, 10, 21])


@st.composite
def rules(draw: st.DrawFn) -> Rule:
    common: dict[str, Any] = {
        "share": draw(st.sampled_from(SHARES)),
        "min_population": draw(least),
    }
    kind = draw(st.sampled_from(sorted(KINDS)))
    if kind == "tail":
        side = draw(st.sampled_from(["upper", "lower"]))
        return Rule(pcor.Tail(tail=side, **common), naive.tail(side))
    if kind == "neighbourhood":
        radius = draw(st.sampled_from(RADII))
        return Rule(pcor.Neighbourhood(radius, **common), naive.neighbourhood(radius))
    edges = draw(st.sampled_from(GRIDS))
    return Rule(pcor.RareBin(edges, **common), naive.same_bin(edges))


# -- by hand --------------------------------------------------------------------------------------


@pytest.mark.parametrize("detector", [pcor.Tail(), pcor.Neighbourhood(1), pcor.RareBin([50])])
def test_one_of_twenty_is_no_twentieth_less_but_one_of_21_is(detector: pcor.Detector) -> None:
    twenty = replace(detector, min_population=20)
    assert twenty.flags([0] * 19 + [100]).tolist() == [False] * 20
    assert twenty.flags([0] * 20 + [100]).tolist() == [False] * 20 + [True]
    assert twenty.flags([0] * 40 + [100] * 2).tolist() == [False] * 40 + [True] * 2


def test_a_tail_has_all_that_are_as_far_out() -> None:
    # Of ten: 9 has 1 row from it on, 8 has 3, 7 has 4; less than 0.35 of ten are 3.
    population = [1, 2, 3, 4, 5, 6, 7, 8, 8, 9]
    upper = pcor.Tail(share=0.35, min_population=1)
    assert set(np.array(population)[upper.flags(population)]) == {8, 9}
    lower = pcor.Tail(share=0.35, tail="lower", min_population=1)
    assert set(np.array(population)[lower.flags(population)]) == {1, 2, 3}


def test_a_neighbourhood_has_its_ends() -> None:
    # Within 2 of 10 are 8, 10 and 12, of 4 only itself, of 15 only itself.
    detector = pcor.Neighbourhood(2, share=0.4, min_population=1)
    assert detector.flags([4, 8, 10, 12, 15]).tolist() == [True, False, False, False, True]


def test_a_neighbourhood_is_that_of_the_rounded_difference() -> None:
    # 0.8 - 0.3 is 0.5, but 0.8 - 0.5 is more than 0.3; and 0.8 - 0.5 is 0.30000000000000004.
    values, counts = np.array([0.3, 0.8]), np.array([1, 1])
    assert pcor.Neighbourhood(0.5).region_totals(values, counts).tolist() == [2, 2]
    values = np.array([0.5, 0.8])
    assert pcor.Neighbourhood(0.3).region_totals(values, counts).tolist() == [1, 1]


def test_a_bin_has_its_lower_edge_and_both_ends_are_open() -> None:
    detector = pcor.RareBin([0, 10], share=0.3, min_population=1)
    assert detector.region_totals(
        np.array([-99.0, -1.0, 0.0, 9.0, 10.0, 99.0]), np.array([1, 2, 3, 4, 5, 6])
    ).tolist() == [3, 3, 7, 7, 11, 11]


def test_the_share_is_the_number_that_was_written() -> None:
    # 0.1 as a float is a little more than a tenth: one of ten would be less than its share.
    assert pcor.Tail(share=0.1).share_exact == Fraction(1, 10)
    assert not pcor.Tail(share=0.1, min_population=10).flags(range(10)).any()
    assert pcor.Tail(share=np.float64(0.05)).share_exact == Fraction(1, 20)
    assert pcor.Tail(share=2**-19).share_exact == Fraction(1, 2**19)


def test_a_million_million_rows_do_not_overflow() -> None:
    values, detector = np.array([0.0, 1.0]), pcor.Tail(share=0.999999)
    # c is a share of n exactly, then one row less than that.
    for below, expected in [(10**6, False), (10**6 + 1, True)]:
        counts = np.array([below, 999_999 * 10**6])
        assert detector.verdicts(values, counts).tolist() == [False, expected]


# -- every way to ask -----------------------------------------------------------------------------

populations = st.one_of(
    st.lists(st.integers(0, 6).map(float), min_size=1, max_size=60),
    st.lists(st.integers(-20, 20).map(lambda i: i / 10), min_size=1, max_size=40),
    st.lists(st.floats(-1e100, 1e100), min_size=1, max_size=20),
)


@often
@given(populations, rules())
def test_flags_are_those_of_exact_fractions(population: list[float], rule: Rule) -> None:
    detector = replace(rule.detector, min_population=1)
    twin = naive.counting(rule.region, share=repr(detector.share))
    assert detector.flags(population).tolist() == twin(population)


@often
@given(populations, rules(), st.data())
def test_the_region_of_one_value_and_of_all_is_the_same(
    population: list[float], rule: Rule, data: st.DataObject
) -> None:
    values, counts = np.unique(population, return_counts=True)
    totals = rule.detector.region_totals(values, counts)
    value = data.draw(st.sampled_from(population))
    inside = rule.detector.in_region(np.array(population), value)
    assert inside.tolist() == [rule.region(x, value) for x in population]
    assert totals[values.tolist().index(value)] == inside.sum()


@often
@given(cases(), rules())
def test_all_ways_to_ask_about_contexts_agree(case: Case, rule: Rule) -> None:
    detector, expected = rule.detector, rule.verdicts(case, case.masks)
    validity = case.validity(detector)
    assert validity(case.masks).tolist() == expected
    assert case.verdicts(detector) == expected
    for some in (case.cells, split(case.cells), merged(case.cells)):
        assert detector.batch(some, case.value, case.words).tolist() == expected
        assert validity.judge(some, case.words).tolist() == expected


@often
@given(cases(), rules(), st.data())
def test_parts_of_the_cells_give_the_verdicts_of_the_whole(
    case: Case, rule: Rule, data: st.DataObject
) -> None:
    outer = data.draw(st.sampled_from(case.masks))
    contained = [mask & outer for mask in case.masks]
    words = case.table.words(contained)
    inside = case.cells.inside(case.table.words([outer])[0])
    expected = rule.verdicts(case, contained)
    assert rule.detector.batch(inside, case.value, words).tolist() == expected
    assert case.validity(rule.detector).judge(inside, words).tolist() == expected


@often
@given(cases(), rules())
def test_the_verdicts_on_neighbours_are_those_of_exact_fractions(case: Case, rule: Rule) -> None:
    validity = case.validity(rule.detector)
    neighbours = validity.record.space.neighbours(case.masks[-1])[:25]
    found = validity.of_neighbours(case.masks[-1])[:25]
    assert found.tolist() == rule.verdicts(case, neighbours)


@often
@given(cases(), rules())
def test_the_rows_of_each_cell_in_the_region_are_those_of_plain_loops(
    case: Case, rule: Rule
) -> None:
    whole = case.cells
    for some in (whole, whole.near(case.words[0]), whole.inside(case.words[-1])):
        found = rule.detector.region_counts(some, case.value)
        cells = [
            int.from_bytes(row.astype("<u8").tobytes(), "little") for row in some.cell_required
        ]
        rows = list(zip(case.metric, case.required, strict=True))
        expected = [
            sum(n == cell and rule.region(x, case.value) for x, n in rows) for cell in cells
        ]
        assert found.dtype == np.int64
        assert found.tolist() == expected
        moments = rule.detector.cell_moments(some, case.value)
        assert moments.tolist() == [some.cell_counts.tolist(), expected]


@sometimes
@given(cases(SPACES, most=60), rules())
def test_matching_contexts_and_outliers_are_those_of_exact_fractions(
    case: Case, rule: Rule
) -> None:
    found = pcor.matching_contexts(case.table, case.row, rule.detector)
    masks = list(case.table.record(case.row).space.masks())
    valid = [m for m, yes in zip(masks, rule.verdicts(case, masks), strict=True) if yes]
    assert sorted(context.mask for context in found.contexts) == sorted(valid)
    for mask in case.masks[:3]:
        context = pcor.Context.from_mask(case.table.schema, mask)
        assert pcor.outliers(case.table, context, rule.detector) == [
            i for i in case.covered(mask) if rule.verdict(replace(case, row=i), mask)
        ]


@pytest.mark.parametrize(
    ("make", "region", "metric_of"),
    [
        (pcor.Tail, naive.tail("upper"), with_ties),
        (lambda **more: pcor.Tail(tail="lower", **more), naive.tail("lower"), mirrored),
        (lambda **more: pcor.Neighbourhood(2, **more), naive.neighbourhood(2), with_ties),
        (lambda **more: pcor.RareBin([0, 10, 50], **more), naive.same_bin([0, 10, 50]), with_ties),
    ],
    ids=["upper tail", "lower tail", "neighbourhood", "rare bin"],
)
def test_coe_is_that_of_brute_force(make: Any, region: naive.Region, metric_of: MetricOf) -> None:
    compare_with_brute_force(
        metric_of,
        {
            make(share=share, min_population=smallest): naive.counting(region, share=repr(share))
            for share, smallest in [(0.05, 10), (0.1, 21), (0.25, 3)]
        },
    )


def test_the_comparisons_meet_both_answers() -> None:
    ranked: Counter[tuple[str, bool]] = Counter()

    # Always the same draws: how often something is met is no property that must hold for all.
    @settings(max_examples=300, deadline=None, derandomize=True, database=None)
    @given(cases(), rules())
    def count(case: Case, rule: Rule) -> None:
        answers = set(case.validity(rule.detector)(case.masks).tolist())
        ranked.update((rule.detector.name, answer) for answer in answers)

    count()
    # In six free runs of 300 tables each, every kind had a yes in 13 to 34 of them.
    assert all(ranked[name, answer] >= 5 for name in KINDS for answer in (True, False)), ranked


# -- what one row can change ----------------------------------------------------------------------


def margins(case: Case, detector: pcor.CountDetector) -> list[int]:
    """Return a*n - b*c of each context, share = a/b, as a guarantee for everybody would read it."""
    cells, share = case.cells, detector.share_exact
    inside = cells.totals(case.words, detector.region_counts(cells, case.value))
    rows = cells.populations(case.words)
    return [
        share.numerator * int(n) - share.denominator * int(c)
        for n, c in zip(rows, inside, strict=True)
    ]


@often
@given(cases(), rules(), st.data())
def test_a_row_moves_no_margin_by_more_than_stated_and_only_one_way(
    case: Case, rule: Rule, data: st.DataObject
) -> None:
    code = tuple(data.draw(st.integers(0, size - 1)) for size in case.sizes)
    metric = data.draw(st.sampled_from(case.metric) | st.floats(-1e3, 1e3))
    seed = data.draw(st.integers(0, 2**32 - 1))
    masks = [*case.masks, *some_contexts(case, np.random.default_rng(seed))]
    without = replace(case, masks=masks)
    # Read from right to left, the row is removed.
    with_it = replace(without, codes=[*case.codes, code], metric=[*case.metric, metric])
    a, b = rule.detector.share_exact.as_integer_ratio()
    step = a - b if rule.region(metric, case.value) else a
    before, after = margins(without, rule.detector), margins(with_it, rule.detector)
    changes = [there - here for here, there in zip(before, after, strict=True)]
    assert changes == [0 if case.bits_of(code) & ~mask else step for mask in masks]
    assert max(abs(change) for change in changes) <= max(a, b - a)


@often
@given(cases(), rules())
def test_a_context_is_valid_where_the_margin_is_positive_and_there_are_enough_rows(
    case: Case, rule: Rule
) -> None:
    rows = case.table.populations(case.masks)
    enough = rows >= rule.detector.min_population
    expected = [
        bool(e and m > 0) for e, m in zip(enough, margins(case, rule.detector), strict=True)
    ]
    assert case.validity(rule.detector)(case.masks).tolist() == expected


# -- settings and the contract --------------------------------------------------------------------

SOME = [
    pcor.Tail(),
    pcor.Tail(share=0.3, tail="lower", min_population=1),
    pcor.Neighbourhood(5),
    pcor.Neighbourhood(0, share=0.2, min_population=3),
    pcor.RareBin([0]),
    pcor.RareBin((-1000, 3, 10), share=0.5, min_population=2),
]


@pytest.mark.parametrize("detector", SOME, ids=repr)
def test_a_counting_detector_keeps_the_contract(detector: pcor.Detector) -> None:
    check_detector(detector, rounds=30)


@pytest.mark.parametrize("detector", SOME, ids=repr)
def test_a_description_holds_all_it_is_made_of(detector: pcor.Detector) -> None:
    described = json.loads(json.dumps(detector.describe()))
    assert described == detector.describe()
    assert KINDS[described.pop("name")](**described) == detector


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("tail", pcor.Tail(share=0.05, tail="upper", min_population=21)),
        ("tail:share=0.01,tail=lower", pcor.Tail(share=0.01, tail="lower")),
        ("neighbourhood:radius=1000", pcor.Neighbourhood(1000)),
        ("neighbourhood:radius=0.5,share=0.1", pcor.Neighbourhood(0.5, share=0.1)),
        ("rare_bin:edges=0|1000|5000", pcor.RareBin([0, 1000, 5000])),
        ("rare_bin:edges=-1.5 | 2e3,share=0.1", pcor.RareBin((-1.5, 2000.0), share=0.1)),
        ("rare_bin:edges=1000", pcor.RareBin([1000])),
    ],
)
def test_the_command_line_can_say_it(name: str, expected: pcor.Detector) -> None:
    assert get_detector(name) == expected
    kind = name.partition(":")[0]
    assert kind in detector_names()
    assert detector_factory(kind) is KINDS[kind]


def test_edges_are_kept_as_plain_numbers() -> None:
    assert pcor.RareBin(list(np.arange(3))).edges == (0.0, 1.0, 2.0)
    assert hash(pcor.RareBin([0, 1])) == hash(pcor.RareBin("0|1"))


EDGES = "edges must be one or more finite numbers in rising order"
RADIUS = "radius must be a finite number of at least 0"
SHARE = "share must be a number between 0 and 1, not included"


@pytest.mark.parametrize(
    ("kind", "settings_", "sentence"),
    [
        *((pcor.Tail, {"share": bad}, SHARE) for bad in (0.0, 1.0, -0.1, math.nan, "0.05", 1)),
        (pcor.Tail, {"share": 1 / 3}, "share must have at most 6 digits after the point"),
        (pcor.Tail, {"share": 1e-7}, "at most 6 digits after the point"),
        (pcor.Tail, {"tail": "both"}, "unknown tail 'both'.*allowed: lower, upper"),
        (pcor.Tail, {"min_population": 0}, "min_population must be a whole number"),
        *(
            (pcor.Neighbourhood, {"radius": bad}, RADIUS)
            for bad in (-1, -1e-9, math.inf, math.nan, "5", None, True, 10**400)
        ),
        (pcor.Neighbourhood, {"radius": 1, "share": 2.0}, SHARE),
        *(
            (pcor.RareBin, {"edges": bad}, EDGES)
            for bad in ([], "", "0||1", "a|b", [0, 0], [1, 0], [0, math.inf], [math.nan], None)
        ),
        *((pcor.RareBin, {"edges": bad}, EDGES) for bad in ([None], [[0, 1]], [10**400], "1|0")),
    ],
)
def test_settings_out_of_range_are_refused(
    kind: Any, settings_: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(ParameterError, match=sentence):
        kind(**settings_)


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("neighbourhood", "'neighbourhood' needs radius: write neighbourhood:radius=..."),
        ("rare_bin", "'rare_bin' needs edges: write rare_bin:edges=..."),
        ("tail:radius=3", "'tail' has no setting 'radius'; it has: share"),
    ],
)
def test_a_setting_that_is_missing_or_foreign_is_named(name: str, sentence: str) -> None:
    with pytest.raises(ParameterError, match=sentence):
        get_detector(name)


def test_the_finest_share_is_one_in_a_million() -> None:
    assert pcor.Tail(share=0.000001).share_exact.denominator == LARGEST_DENOMINATOR


def test_a_counting_detector_without_a_region_says_so() -> None:
    with pytest.raises(NotImplementedError, match=r"must define in_region\(\)"):
        pcor.CountDetector().in_region(np.zeros(1), 0.0)
    with pytest.raises(NotImplementedError, match=r"must define region_totals\(\)"):
        pcor.CountDetector().flags([0.0] * 21)


@given(
    st.floats(-1e9, 1e9) | st.sampled_from([0.0, -1.0, 1e16]),
    st.floats(0, 1e9) | st.sampled_from([1.0, 0.1]),
)
def test_the_ends_of_a_neighbourhood_are_the_last_numbers_in_it(
    value: float, radius: float
) -> None:
    rule = pcor.Neighbourhood(radius)
    low, high = rule.region_ends(value) or (0, 0)
    inside = rule.in_region(np.array([low, high]), value)
    outside = rule.in_region(
        np.array([np.nextafter(low, -np.inf), np.nextafter(high, np.inf)]), value
    )
    assert inside.all()
    assert not outside.any()


@given(st.lists(st.integers(-5, 5), min_size=1, max_size=4, unique=True), st.floats(-8, 8))
def test_the_ends_of_a_bin_are_the_last_numbers_in_it(edges: list[int], value: float) -> None:
    rule = pcor.RareBin(sorted(edges))
    low, high = rule.region_ends(value) or (0, 0)
    around = np.array([np.nextafter(low, -np.inf), low, value, high, np.nextafter(high, np.inf)])
    expected = [np.isinf(low), True, True, True, np.isinf(high)]
    assert rule.in_region(around, value).tolist() == expected
