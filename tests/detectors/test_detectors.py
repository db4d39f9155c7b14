"""Each detector against its worked examples, its slow twin, and its own promises."""

from __future__ import annotations

import itertools
import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from sklearn.covariance import EllipticEnvelope
from sklearn.ensemble import IsolationForest
from sklearn.neighbors import LocalOutlierFactor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import OneClassSVM

import pcor
from pcor.detectors import detector_names, get_detector, register_detector
from pcor.detectors.base import Counts, Detector, Values, Verdicts
from pcor.detectors.grubbs import critical_value
from pcor.detectors.histogram import bin_numbers
from pcor.errors import ParameterError, UnknownName
from pcor.testing import check_detector
from tests.helpers import naive

Numbers = Sequence[float]


def distinct(population: Numbers) -> tuple[Values, Counts]:
    values, counts = np.unique(np.array(population, dtype=float), return_counts=True)
    return values, counts.astype(np.int64)


def factor(detector: pcor.LOF, population: Numbers, value: float) -> float:
    values, counts = distinct(population)
    return float(detector.factors(values, counts)[np.searchsorted(values, value)])


def flagged(detector: Detector, population: Numbers) -> set[float]:
    return {
        value for value, flag in zip(population, detector.flags(population), strict=True) if flag
    }


def agrees(detector: Detector, twin: naive.Rule, population: Numbers) -> None:
    """Compare every row's verdict with the twin's, where rounding does not decide."""
    flags = detector.flags(population).tolist()
    for value, ours, theirs in zip(population, flags, twin(population), strict=True):
        assert theirs is None or ours == theirs, value


# -- populations ----------------------------------------------------------------------------------

# Whole numbers of every shape that has ever broken a detector.
whole_populations = st.one_of(
    st.lists(st.integers(0, 6), min_size=1, max_size=60),  # heavy ties
    st.builds(lambda value, n: [value] * n, st.integers(-9, 9), st.integers(1, 40)),  # all equal
    st.lists(st.integers(-50, 50), min_size=1, max_size=5),  # tiny
    st.lists(st.integers(-(2**20), 2**20), min_size=1, max_size=60),  # spread, both signs
    st.builds(  # a crowd and a few far away
        lambda crowd, far: crowd + far,
        st.lists(st.integers(0, 12), min_size=15, max_size=50),
        st.lists(st.sampled_from([-900, -40, 25, 40, 900, 10**6]), min_size=1, max_size=3),
    ),
)
# Multiplying by a power of two is exact, so the twins stay exact from 1e-295 to 1e96.
exponents = st.sampled_from([0, 0, 0, -1000, -500, -40, -10, 10, 40, 300])
populations = st.builds(
    lambda numbers, exponent: [math.ldexp(number, exponent) for number in numbers],
    whole_populations,
    exponents,
)
neighbour_counts = st.sampled_from([1, 2, 3, 5, 10, 20])
tie_rules = st.sampled_from(["lower", "all"])
tails = st.sampled_from(["both", "upper", "lower"])

BUILT_IN = [
    pcor.LOF(),
    pcor.LOF(ties="all"),
    pcor.Grubbs(),
    pcor.Grubbs(tail="upper"),
    pcor.Grubbs(tail="lower"),
    pcor.Histogram(),
    pcor.Histogram(include_maximum=False),
]
SMALL = [
    pcor.LOF(k=3, min_population=5),
    pcor.LOF(k=3, ties="all", min_population=1),
    pcor.Grubbs(min_population=1),
    pcor.Grubbs(tail="upper", min_population=3),
    pcor.Histogram(rare=0.1, min_population=1),
    pcor.Histogram(rare=0.2, include_maximum=False, min_population=5),
]
every_detector = st.sampled_from(BUILT_IN + SMALL)


# -- worked examples ------------------------------------------------------------------------------

LOF_EXAMPLE = [*range(100, 121), 160]
GRUBBS_EXAMPLE = [*range(100, 120), 200, 300]
HISTOGRAM_EXAMPLE = [*(i % 100 for i in range(398)), 155, 200]


@pytest.mark.parametrize("ties", ["lower", "all"])
@pytest.mark.parametrize(("value", "expected"), [(160, 3.246198), (110, 1.018153), (120, 0.983696)])
def test_lof_of_the_worked_example(value: int, expected: float, ties: str) -> None:
    assert factor(pcor.LOF(ties=ties), LOF_EXAMPLE, value) == pytest.approx(expected, abs=5e-7)


def test_lof_flags_only_the_outlier_of_the_worked_example() -> None:
    assert flagged(pcor.LOF(), LOF_EXAMPLE) == {160}


def test_lof_next_to_a_pile_of_equal_values_is_huge_but_finite() -> None:
    # 25 equal values have kd = 0 and density 1e10; the record's reach to each of them is 2.
    assert factor(pcor.LOF(), [5] * 25 + [7], 7) == pytest.approx(2e10, rel=1e-9)
    assert factor(pcor.LOF(), [5] * 25 + [7], 5) == 1.0


def test_lof_takes_the_lower_of_two_neighbours_equally_far() -> None:
    # k = 1, by hand: 10 has 8 and 12 at distance 2; kd(7) = kd(8) = 1, kd(12) = 2.
    # lower: LOF(10) = lrd(8) / lrd(10) = (1/1) / (1/2) = 2.
    # all: mean reach 2, neighbours' densities 1 (8) and 1/2 (12): LOF(10) = 0.75 * 2 = 1.5.
    population = [7, 8, 10, 12, 30]
    assert factor(pcor.LOF(k=1), population, 10) == pytest.approx(2.0, rel=1e-8)
    assert factor(pcor.LOF(k=1, ties="all"), population, 10) == pytest.approx(1.5, rel=1e-8)


@pytest.mark.parametrize(
    ("n", "expected"),
    [
        (20, 2.5566),
        (21, 2.5804),
        (22, 2.6028),
        (100, 3.20952),
        (1000, 3.87685),
        (11396, 4.44352),
        (27954, 4.63369),
    ],
)
def test_grubbs_critical_values_of_the_worked_example(n: int, expected: float) -> None:
    digits = 4 if n < 100 else 5
    assert round(critical_value(n, 0.05, "upper"), digits) == expected


@pytest.mark.parametrize("tail", ["both", "upper", "lower"])
@pytest.mark.parametrize("alpha", [0.001, 0.05, 0.5, 0.99])
def test_grubbs_critical_values_equal_those_of_scipy_stats(alpha: float, tail: str) -> None:
    for n in [*range(3, 60), 1000, 123_456]:
        expected = naive.grubbs_critical(n, alpha, tail)
        assert critical_value(n, alpha, tail) == pytest.approx(expected, rel=1e-10)


def test_grubbs_twin_takes_the_steps_of_the_worked_example() -> None:
    steps = naive.grubbs_steps(GRUBBS_EXAMPLE, 0.05, "upper")
    assert [(s.n, s.extreme, round(s.g, 4), round(s.critical, 4)) for s in steps] == [
        (22, 300, 3.9953, 2.6028),
        (21, 200, 4.1894, 2.5804),
        (20, 119, 1.6058, 2.5566),
    ]


@pytest.mark.parametrize(
    ("tail", "expected"), [("upper", {200, 300}), ("both", {200, 300}), ("lower", set())]
)
def test_grubbs_flags_both_outliers_of_the_worked_example(tail: str, expected: set[float]) -> None:
    assert flagged(pcor.Grubbs(tail=tail), GRUBBS_EXAMPLE) == expected


def test_grubbs_flags_every_row_whose_value_was_removed_once() -> None:
    # The first 500 is removed; whether the test goes on to the second one or not, both rows are
    # equal and get one verdict.
    population = [*range(100, 140), 500, 500]
    assert pcor.Grubbs().flags(population).tolist() == [False] * 40 + [True, True]


def test_grubbs_removes_the_upper_of_two_extremes_equally_far_first() -> None:
    # Symmetric about 0, n = 24: s^2 = (2 * 40^2 + 4 * 55) / 23, G = 40 / s = 3.2803 either way.
    population = [-40, 40, *range(-5, 6), *range(-5, 6)]
    steps = naive.grubbs_steps(population, 0.05, "both")
    assert [step.extreme for step in steps[:2]] == [40, -40]
    assert round(steps[0].g, 4) == 3.2803
    assert flagged(pcor.Grubbs(min_population=3), population) == {40, -40}


def test_which_of_two_extremes_equally_far_goes_first_can_matter() -> None:
    # Without 24, the ends of 0, 1, 2, 3 are equally far: 3 goes, then G of 0, 1, 2 is
    # 1 < c(3) and 0 stays. Had 0 gone first, 3 would have stayed. With one degree of freedom
    # t = tan(pi * (1/2 - 0.99/6)), so c(3) = 2/sqrt(3) * sin(pi * 0.335) = 1.0030.
    detector = pcor.Grubbs(alpha=0.99, min_population=3)
    assert flagged(detector, [0, 1, 2, 3, 24]) == {3, 24}
    assert round(critical_value(3, 0.99, "both"), 4) == 1.0030


@pytest.mark.parametrize(("include_maximum", "expected"), [(True, {155, 200}), (False, {155})])
def test_histogram_of_the_worked_example(include_maximum: bool, expected: set[float]) -> None:
    detector = pcor.Histogram(include_maximum=include_maximum)
    assert len(HISTOGRAM_EXAMPLE) == 400
    assert flagged(detector, HISTOGRAM_EXAMPLE) == expected


def test_histogram_compares_the_share_exactly_where_n_is_a_multiple_of_400() -> None:
    # 400 * 1 <= 400 is rare, 400 * 1 <= 399 is not; 400 * 3 <= 1200 although 0.0025 * 1200 is
    # 3.0 only by luck of rounding.
    assert flagged(pcor.Histogram(), HISTOGRAM_EXAMPLE[1:]) == set()
    for copies in range(1, 12):
        population = [i % 100 for i in range(400 * copies - copies - 1)] + [155] * copies + [200]
        assert len(population) == 400 * copies
        assert 155 in flagged(pcor.Histogram(), population)
        assert 155 not in flagged(pcor.Histogram(), population[1:])


def test_histogram_bins_are_half_open_and_the_last_one_is_closed() -> None:
    values = np.array([0, 149.999, 150, 159.999, 160, 189.999, 190, 199.999, 200])
    assert bin_numbers(values, 20).tolist() == [0, 14, 15, 15, 16, 18, 19, 19, 19]


def test_histogram_counts_a_value_on_an_edge_in_the_bin_above() -> None:
    # 150 shares the bin of 155, so neither is rare; 160 does not, so 155 is.
    crowd = [i % 100 for i in range(397)]
    assert flagged(pcor.Histogram(include_maximum=False), [*crowd, 150, 155, 200]) == set()
    assert flagged(pcor.Histogram(include_maximum=False), [*crowd, 155, 160, 200]) == {155, 160}


def test_histogram_never_flags_the_maximum_by_rounding() -> None:
    # min 0, max 99, 37 bins: the authors' float64 edges reach beyond 99 (detectors.md).
    population = [i % 90 for i in range(37 * 37 - 1)] + [99]
    assert math.isqrt(len(population)) == 37
    assert 96.32432432432434 + 2.675675675675676 > 99
    assert 99 not in flagged(pcor.Histogram(include_maximum=False), population)
    assert 99 in flagged(pcor.Histogram(), population)


# -- against the twins ----------------------------------------------------------------------------


@settings(max_examples=300, deadline=None)
@given(populations, neighbour_counts, tie_rules)
def test_lof_factors_are_those_of_the_definition(
    population: list[float], k: int, ties: str
) -> None:
    if len(population) <= k:
        return
    values, counts = distinct(population)
    ours = pcor.LOF(k=k, ties=ties).factors(values, counts)
    theirs = naive.lof_factors(population, k, ties)
    places = np.searchsorted(values, population)
    np.testing.assert_allclose(ours[places], theirs, rtol=1e-11)


@settings(max_examples=300, deadline=None)
@given(populations, neighbour_counts, st.sampled_from([1.01, 1.1, 1.5, 2.0]), tie_rules)
def test_lof_agrees_with_the_definition(
    population: list[float], k: int, threshold: float, ties: str
) -> None:
    detector = pcor.LOF(k=k, threshold=threshold, ties=ties, min_population=1)
    agrees(detector, naive.lof(k=k, threshold=threshold, ties=ties), population)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.integers(0, 2**14), min_size=2, max_size=60, unique=True),
    st.sampled_from([1, 2, 5, 20]),
    tie_rules,
)
def test_lof_agrees_with_scikit_learn_where_no_neighbours_tie(
    numbers: list[int], k: int, ties: str
) -> None:
    population = [float(naive.without_neighbour_ties(number)) for number in numbers]
    detector = pcor.LOF(k=k, ties=ties, min_population=1)
    agrees(detector, naive.sklearn_lof(k=k, threshold=1.5), population)


@settings(max_examples=300, deadline=None)
@given(populations, st.sampled_from([0.001, 0.05, 0.3]), tails)
def test_grubbs_agrees_with_scipy_one_extreme_at_a_time(
    population: list[float], alpha: float, tail: str
) -> None:
    detector = pcor.Grubbs(alpha=alpha, tail=tail, min_population=1)
    agrees(detector, naive.grubbs(alpha=alpha, tail=tail), population)


@settings(max_examples=300, deadline=None)
@given(populations, st.sampled_from(["0.0025", "0.05", "0.1", "0.25", "0.5"]), st.booleans())
def test_histogram_agrees_with_exact_fractions(
    population: list[float], rare: str, include_maximum: bool
) -> None:
    detector = pcor.Histogram(rare=float(rare), include_maximum=include_maximum, min_population=1)
    agrees(detector, naive.exact_histogram(rare=rare, include_maximum=include_maximum), population)


@settings(max_examples=100, deadline=None)
@given(populations, st.sampled_from(["0.05", "0.1", "0.25"]), st.booleans())
def test_histogram_agrees_with_numpy_where_no_value_lies_on_an_edge(
    population: list[float], rare: str, include_maximum: bool
) -> None:
    detector = pcor.Histogram(rare=float(rare), include_maximum=include_maximum, min_population=1)
    agrees(detector, naive.numpy_histogram(rare=rare, include_maximum=include_maximum), population)


@settings(max_examples=60, deadline=None)
@given(populations)
def test_the_two_histogram_twins_agree_with_each_other(population: list[float]) -> None:
    exact, by_numpy = (
        twin(rare="0.1")(population) for twin in (naive.exact_histogram, naive.numpy_histogram)
    )
    assert all(b is None or a == b for a, b in zip(exact, by_numpy, strict=True))


# -- one answer equals all answers ----------------------------------------------------------------


@settings(max_examples=300, deadline=None)
@given(populations, every_detector)
def test_verdict_equals_verdicts(population: list[float], detector: Detector) -> None:
    values, counts = distinct(population)
    verdicts = detector.verdicts(values, counts)
    assert [detector.verdict(values, counts, i) for i in range(len(values))] == verdicts.tolist()


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.integers(-300, 300), min_size=25, max_size=120),
    st.sampled_from([1, 2, 3]),
    tie_rules,
    st.data(),
)
def test_lof_of_the_window_is_that_of_the_whole_to_the_last_bit(
    population: list[int], k: int, ties: str, data: st.DataObject
) -> None:
    values, counts = distinct(population)
    place = data.draw(st.integers(0, len(values) - 1))
    whole = float(pcor.LOF(k=k, ties=ties).factors(values, counts)[place])
    # The factor must exceed the threshold: at the factor itself no, one step below it yes.
    at = pcor.LOF(k=k, ties=ties, threshold=whole)
    below = pcor.LOF(k=k, ties=ties, threshold=math.nextafter(whole, 0))
    assert not at.verdict(values, counts, place)
    assert below.verdict(values, counts, place)


@settings(max_examples=150, deadline=None)
@given(populations, every_detector, st.data())
def test_the_order_of_rows_never_matters(
    population: list[float], detector: Detector, data: st.DataObject
) -> None:
    shuffled = data.draw(st.permutations(population))
    assert flagged(detector, population) == flagged(detector, shuffled)


@settings(max_examples=100, deadline=None)
@given(populations, every_detector)
def test_equal_values_get_equal_verdicts(population: list[float], detector: Detector) -> None:
    flags = detector.flags(population).tolist()
    assert len(set(zip(population, flags, strict=True))) == len(set(population))


@settings(max_examples=100, deadline=None)
@given(populations, every_detector, st.floats(-1e100, 1e100))
def test_a_value_that_is_not_there_is_never_an_outlier(
    population: list[float], detector: Detector, value: float
) -> None:
    values, counts = distinct(population)
    for absent in (value, *np.nextafter(values, -math.inf), *np.nextafter(values, math.inf)):
        assert absent in population or not detector.is_outlier(values, counts, float(absent))
    assert not detector.is_outlier(values, counts, math.nan)
    assert not detector.is_outlier(values[:0], counts[:0], value)


# -- invariance -----------------------------------------------------------------------------------

# Differences of whole numbers are exact below 2^53, so nothing may change, not even by rounding.
shifts = st.sampled_from([-(2**52), -(2**40), -1000, -1, 1, 7, 10**9, 2**40, 2**52 - 2**21])
shift_free = st.sampled_from(
    [
        pcor.LOF(k=3, min_population=5),
        pcor.LOF(k=5, ties="all", threshold=1.1, min_population=1),
        pcor.Grubbs(min_population=3),
        pcor.Grubbs(tail="upper", min_population=3),
        pcor.Grubbs(tail="lower", alpha=0.3, min_population=3),
        pcor.Histogram(rare=0.1, min_population=1),
        pcor.Histogram(rare=0.1, include_maximum=False, min_population=1),
    ]
)


@settings(max_examples=300, deadline=None)
@given(whole_populations, shifts, shift_free)
def test_shifting_whole_numbers_changes_no_verdict(
    population: list[int], shift: int, detector: Detector
) -> None:
    shifted = [value + shift for value in population]
    assert detector.flags(shifted).tolist() == detector.flags(population).tolist()


@pytest.mark.parametrize("shift", [0, 10**9, 2**48, 2**52])
def test_grubbs_does_not_lose_the_mean_far_from_zero(shift: int) -> None:
    # Mean 5/3, s^2 = 3.5, G = 2.3163 > c(9) = 2.2150. A mean rounded to a whole number is 2.
    population = [shift + value for value in [0, 0, 1, 1, 1, 1, 2, 3, 6]]
    assert flagged(pcor.Grubbs(min_population=9), population) == {shift + 6}


@settings(max_examples=150, deadline=None)
@given(
    whole_populations,
    exponents,
    st.sampled_from([pcor.Grubbs(min_population=3), pcor.Histogram(rare=0.1, min_population=1)]),
)
def test_the_unit_of_measurement_changes_no_verdict_of_grubbs_and_histogram(
    population: list[int], exponent: int, detector: Detector
) -> None:
    # By powers of two, which float64 multiplies exactly. LOF is not free of the unit: 1e-10.
    scaled = [math.ldexp(value, exponent) for value in population]
    assert detector.flags(scaled).tolist() == detector.flags(population).tolist()


@settings(max_examples=100, deadline=None)
@given(whole_populations, st.sampled_from([3, 7, 1000]))
def test_histogram_is_free_of_any_whole_unit(population: list[int], unit: int) -> None:
    detector = pcor.Histogram(rare=0.1, min_population=1)
    scaled = [value * unit for value in population]
    assert detector.flags(scaled).tolist() == detector.flags(population).tolist()


@settings(max_examples=100, deadline=None)
@given(whole_populations)
def test_the_lower_tail_is_the_upper_tail_in_the_mirror(population: list[int]) -> None:
    mirrored = [-value for value in population]
    lower, upper = (pcor.Grubbs(tail=tail, min_population=3) for tail in ("lower", "upper"))
    assert lower.flags(population).tolist() == upper.flags(mirrored).tolist()


@settings(max_examples=100, deadline=None)
@given(whole_populations, neighbour_counts)
def test_lof_with_all_ties_is_the_same_in_the_mirror(population: list[int], k: int) -> None:
    if len(population) <= k:
        return
    detector = pcor.LOF(k=k, ties="all")
    for value in set(population):
        mirrored = factor(detector, [-other for other in population], -value)
        assert mirrored == pytest.approx(factor(detector, population, value), rel=1e-11)


# -- the bins -------------------------------------------------------------------------------------


@st.composite
def rising_floats(draw: st.DrawFn) -> Values:
    """Distinct floats with, here and there, the very next float beside."""
    some = draw(st.lists(st.floats(-1e100, 1e100), min_size=1, max_size=20))
    beside = [math.nextafter(value, draw(st.sampled_from([-1e101, 1e101]))) for value in some]
    kept = draw(st.lists(st.sampled_from(some + beside), min_size=1, max_size=20))
    return np.unique(np.array(some + kept))


@settings(max_examples=200, deadline=None)
@given(rising_floats(), st.integers(1, 400))
def test_every_value_has_one_bin_and_larger_values_no_lower_one(values: Values, bins: int) -> None:
    numbers = bin_numbers(values, bins)
    assert numbers.shape == values.shape
    assert numbers.min() >= 0
    assert numbers.max() <= bins - 1
    assert (np.diff(numbers) >= 0).all()
    assert numbers[0] == 0
    assert numbers[-1] == (bins - 1 if len(values) > 1 else 0)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.integers(-(2**40), 2**40), min_size=2, unique=True), st.integers(1, 400))
def test_bins_of_whole_numbers_are_exact(population: list[int], bins: int) -> None:
    numbers = sorted(population)
    low, high = numbers[0], numbers[-1]
    expected = [min(Fraction((v - low) * bins, high - low).__floor__(), bins - 1) for v in numbers]
    assert bin_numbers(np.array(numbers, dtype=float), bins).tolist() == expected


# -- the smallest population ----------------------------------------------------------------------

# With k = 20 and 21 rows everybody is everybody's neighbour and no factor reaches 1.5; with rare
# = 0.0025 nothing is rare below 400 rows: so the smallest settings that can flag at all.
ABLE_TO_FLAG = [pcor.LOF(k=5), pcor.Grubbs(), pcor.Grubbs(tail="upper"), pcor.Histogram(rare=0.1)]


@pytest.mark.parametrize("detector", ABLE_TO_FLAG, ids=repr)
def test_nothing_is_flagged_at_20_rows_and_something_can_be_at_21(detector: Detector) -> None:
    population = [*range(100, 120), 10_000]
    assert detector.min_population == 21
    assert flagged(detector, population) == {10_000}
    assert flagged(detector, population[1:]) == set()
    for rows, expected in ((population, True), (population[1:], False)):
        values, counts = distinct(rows)
        assert detector.is_outlier(values, counts, 10_000) is expected


@pytest.mark.parametrize(
    "kind", [lambda m: pcor.LOF(k=5, min_population=m), lambda m: pcor.Grubbs(min_population=m)]
)
def test_the_smallest_population_can_be_chosen(kind: Any) -> None:
    population = [*range(100, 109), 10_000]
    assert flagged(kind(10), population) == {10_000}
    assert flagged(kind(11), population) == set()


@pytest.mark.parametrize("detector", BUILT_IN, ids=repr)
def test_defaults_need_more_than_20_rows(detector: Detector) -> None:
    assert detector.min_population == 21


def test_lof_flags_nothing_among_k_rows_or_fewer() -> None:
    detector = pcor.LOF(k=5, threshold=0.1, min_population=1)
    assert flagged(detector, [1, 2, 3, 4, 1000]) == set()
    assert flagged(detector, [1, 2, 3, 4, 5, 1000]) != set()


@pytest.mark.parametrize("detector", SMALL, ids=repr)
@pytest.mark.parametrize("n", [0, 1, 2])
def test_hardly_any_rows_are_no_error(detector: Detector, n: int) -> None:
    assert not detector.flags(list(range(n))).any()


# -- parameters -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "settings_", "sentence"),
    [
        (pcor.LOF, {"k": 0}, "k must be a whole number of at least 1"),
        (pcor.LOF, {"k": 2.0}, "k must be a whole number of at least 1"),
        (pcor.LOF, {"k": True}, "k must be a whole number of at least 1"),
        (pcor.LOF, {"k": "20"}, "k must be a whole number of at least 1"),
        (pcor.LOF, {"threshold": 0}, "threshold must be a positive number"),
        (pcor.LOF, {"threshold": -1.5}, "threshold must be a positive number"),
        (pcor.LOF, {"threshold": math.nan}, "threshold must be a positive number"),
        (pcor.LOF, {"threshold": math.inf}, "threshold must be a positive number"),
        (pcor.LOF, {"threshold": "1.5"}, "threshold must be a positive number"),
        (pcor.LOF, {"threshold": None}, "threshold must be a positive number"),
        (pcor.LOF, {"ties": "higher"}, "unknown tie rule 'higher'.*allowed: all, lower"),
        (pcor.LOF, {"ties": "low"}, "unknown tie rule 'low'; did you mean 'lower'"),
        (pcor.Grubbs, {"alpha": 0.0}, "alpha must be a number between 0 and 1, not included"),
        (pcor.Grubbs, {"alpha": 1.0}, "alpha must be a number between 0 and 1, not included"),
        (pcor.Grubbs, {"alpha": 5}, "alpha must be a number between 0 and 1, not included"),
        (pcor.Grubbs, {"alpha": math.nan}, "alpha must be a number between 0 and 1"),
        (pcor.Grubbs, {"alpha": "0.05"}, "alpha must be a number between 0 and 1"),
        (pcor.Grubbs, {"tail": "up"}, "unknown tail 'up'.*allowed: both, lower, upper"),
        (pcor.Grubbs, {"tail": "uper"}, "did you mean 'upper'"),
        (pcor.Grubbs, {"tail": None}, "unknown tail None"),
        (pcor.Histogram, {"rare": 0.0}, "rare must be a share between 0 and 1, not included"),
        (pcor.Histogram, {"rare": 1.0}, "rare must be a share between 0 and 1, not included"),
        (pcor.Histogram, {"rare": -0.1}, "rare must be a share between 0 and 1, not included"),
        (pcor.Histogram, {"rare": math.nan}, "rare must be a share between 0 and 1"),
        (pcor.Histogram, {"rare": "0.0025"}, "rare must be a share between 0 and 1"),
        *(
            (kind, {"min_population": bad}, "min_population must be a whole number from 1")
            for kind in (pcor.LOF, pcor.Grubbs, pcor.Histogram)
            for bad in (2**31 + 1, 0, -21, 20.5, True, "21", None)
        ),
    ],
)
def test_parameters_out_of_range_are_refused(
    kind: Any, settings_: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(ParameterError, match=sentence):
        kind(**settings_)


def test_a_share_may_come_from_numpy() -> None:
    detector = pcor.Histogram(rare=np.float64(0.0025))
    assert flagged(detector, HISTOGRAM_EXAMPLE) == {155, 200}


@pytest.mark.parametrize("detector", BUILT_IN + SMALL, ids=repr)
def test_a_detector_cannot_be_changed_and_describes_all_it_is_made_of(detector: Any) -> None:
    with pytest.raises(AttributeError):
        detector.min_population = 3
    described = detector.describe()
    name = described.pop("name")
    assert name == detector.name
    assert type(detector)(**described) == detector


# -- Estimator ------------------------------------------------------------------------------------

CROWD = [*(100 + 3 * i % 41 for i in range(40)), 400]


class LikePyOD:
    """What PyOD's estimators look like from outside; the score is the distance to the median."""

    def fit(self, column: NDArray[np.float64]) -> LikePyOD:
        self.decision_scores_ = np.abs(column[:, 0] - np.median(column))
        return self


def distance_to_median(population: NDArray[np.float64]) -> NDArray[np.float64]:
    scores: NDArray[np.float64] = np.abs(population - np.median(population))
    return scores


def far_from_median(population: NDArray[np.float64]) -> NDArray[np.bool_]:
    verdicts: NDArray[np.bool_] = distance_to_median(population) > 100
    return verdicts


@pytest.mark.parametrize(
    ("rule", "threshold", "scores"),
    [
        (IsolationForest(n_estimators=20, random_state=0), 0.7, lambda e, x: -e.score_samples(x)),
        (EllipticEnvelope(random_state=0), 20.0, lambda e, x: -e.score_samples(x)),
        (OneClassSVM(gamma=1e-4, nu=0.1), -2.0, lambda e, x: -e.score_samples(x)),
        (LocalOutlierFactor(n_neighbors=5), 1.5, lambda e, _: -e.negative_outlier_factor_),
        (
            make_pipeline(StandardScaler(), IsolationForest(n_estimators=20, random_state=0)),
            0.7,
            lambda e, x: -e.score_samples(x),
        ),
    ],
    ids=lambda rule: type(rule).__name__,
)
def test_a_scikit_learn_estimator_is_a_detector(rule: Any, threshold: float, scores: Any) -> None:
    values, counts = distinct(CROWD)
    column = np.repeat(values, counts).reshape(-1, 1)
    expected = scores(rule.fit(column), column) > threshold
    detector = pcor.Estimator(rule, threshold)
    assert expected[-1]
    assert not expected[:-1].all()
    assert detector.flags(sorted(CROWD)).tolist() == expected.tolist()
    assert detector.is_outlier(values, counts, 400)


@pytest.mark.parametrize(
    "detector",
    [
        pcor.Estimator(LikePyOD(), 100),
        pcor.Estimator(distance_to_median, 100.0),
        pcor.Estimator(far_from_median),
        pcor.Estimator(lambda population: [bool(v > 300) for v in population]),
    ],
    ids=["like PyOD", "function of scores", "function of verdicts", "list of verdicts"],
)
def test_anything_that_scores_is_a_detector(detector: pcor.Estimator) -> None:
    assert flagged(detector, CROWD) == {400}
    assert flagged(detector, CROWD[21:]) == set()  # 20 rows
    check_detector(detector)


def test_a_real_pyod_estimator_is_a_detector() -> None:
    knn = pytest.importorskip(
        "pyod.models.knn", reason="PyOD is not installed: pip install pcor[pyod]"
    )
    assert 400 in flagged(pcor.Estimator(knn.KNN(n_neighbors=5), 50.0), CROWD)


def test_equal_values_get_the_verdict_of_the_first_whatever_the_function_says() -> None:
    detector = pcor.Estimator(lambda population: np.arange(len(population)), 2.5, min_population=1)
    assert detector.flags([1, 1, 1, 1, 2]).tolist() == [False, False, False, False, True]


def test_a_score_must_exceed_the_threshold() -> None:
    at, below = (pcor.Estimator(lambda p: p, t, min_population=1) for t in (2.0, 1.9))
    assert flagged(at, [1, 2]) == set()
    assert flagged(below, [1, 2]) == {2}


def test_an_estimator_of_the_user_is_not_changed() -> None:
    rule = LikePyOD()
    pcor.Estimator(rule, 100).flags(CROWD)
    assert not hasattr(rule, "decision_scores_")


@pytest.mark.parametrize(
    ("rule", "threshold", "sentence"),
    [
        (
            LocalOutlierFactor(),
            None,
            r"Estimator\(LocalOutlierFactor\) needs an absolute threshold",
        ),
        (LikePyOD(), None, "needs an absolute threshold"),
        (IsolationForest(), 0.6, "set random_state to a number"),
        (EllipticEnvelope(), 9.0, "set random_state to a number"),
        (make_pipeline(StandardScaler(), IsolationForest()), 0.6, "set random_state to a number"),
        (IsolationForest, 0.6, "takes a scikit-learn or PyOD estimator, or a function"),
        ("lof", 1.5, "takes a scikit-learn or PyOD estimator, or a function"),
        (None, 1.5, "takes a scikit-learn or PyOD estimator, or a function"),
        (distance_to_median, math.nan, "threshold must be a finite number"),
        (distance_to_median, math.inf, "threshold must be a finite number"),
        (distance_to_median, "high", "threshold must be a finite number"),
        (distance_to_median, True, "threshold must be a finite number"),
    ],
)
def test_an_estimator_that_cannot_work_is_refused_when_it_is_made(
    rule: Any, threshold: Any, sentence: str
) -> None:
    with pytest.raises(ParameterError, match=sentence):
        pcor.Estimator(rule, threshold)


class FitOnly:
    def fit(self, _: NDArray[np.float64]) -> FitOnly:
        return self


@pytest.mark.parametrize(
    ("detector", "sentence"),
    [
        (pcor.Estimator(lambda p: p[:-1], 1.0), "<lambda> must return one answer per row"),
        (pcor.Estimator(lambda p: p.reshape(-1, 1), 1.0), "must return one answer per row"),
        (pcor.Estimator(lambda _: True), "must return one answer per row"),
        (
            pcor.Estimator(distance_to_median),
            "distance_to_median returns scores.*needs a threshold",
        ),
        (pcor.Estimator(FitOnly(), 1.0), "FitOnly has none of decision_scores_"),
    ],
)
def test_an_answer_that_cannot_be_used_is_refused(detector: Detector, sentence: str) -> None:
    with pytest.raises(ParameterError, match=sentence):
        detector.flags(CROWD)


def test_an_estimator_describes_its_rule_and_settings() -> None:
    described = pcor.Estimator(LocalOutlierFactor(n_neighbors=7), 2.0).describe()
    assert described["rule"] == "LocalOutlierFactor"
    assert described["settings"]["n_neighbors"] == "7"
    assert described["threshold"] == 2.0


# -- names ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("lof", pcor.LOF()),
        ("grubbs", pcor.Grubbs()),
        ("histogram", pcor.Histogram()),
        ("lof:k=10,threshold=2.0", pcor.LOF(k=10, threshold=2.0)),
        ("lof: k = 10 , ties = all", pcor.LOF(k=10, ties="all")),
        (
            "grubbs:tail=upper,alpha=0.01,min_population=5",
            pcor.Grubbs(min_population=5, alpha=0.01, tail="upper"),
        ),
        (
            "histogram:rare=0.01,include_maximum=false",
            pcor.Histogram(rare=0.01, include_maximum=False),
        ),
    ],
)
def test_a_name_with_settings_gives_a_detector(name: str, expected: Detector) -> None:
    assert get_detector(name) == expected


def test_a_detector_is_its_own_name() -> None:
    detector = pcor.LOF(k=3)
    assert get_detector(detector) is detector


def test_the_built_in_names_are_known() -> None:
    assert {"lof", "grubbs", "histogram"} <= set(detector_names())


def test_an_unknown_name_offers_the_nearest() -> None:
    with pytest.raises(UnknownName, match=r"unknown detector 'grubs'; did you mean 'grubbs'\?"):
        get_detector("grubs")
    with pytest.raises(UnknownName, match="allowed: grubbs, histogram, lof"):
        get_detector("zzz")


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        (
            "lof:q=3",
            "'lof' has no setting 'q'; it has: k, threshold, ties, min_population",
        ),
        ("lof:k", "write settings of 'lof' as lof:key=value,key=value"),
        ("rare_bin:edges=0,100,1000", "and quotes: 'rare_bin:edges=0|100|1000'"),
        ("rare_bin:rare=0.1,edges=0, 1e3,min_population=5", "'rare_bin:edges=0|1e3'"),
        ("LOF", "did you mean 'lof'?"),
        ("lof:k=3,", "write settings of 'lof' as lof:key=value,key=value"),
        ("lof:k=three", "k must be a whole number"),
        ("lof:k=1.5", "k must be a whole number"),
        ("grubbs:tail=up", "unknown tail 'up'"),
        ("histogram:rare=nan", "rare must be a share"),
    ],
)
def test_settings_that_do_not_fit_are_refused(name: str, sentence: str) -> None:
    with pytest.raises(ParameterError, match=sentence):
        get_detector(name)


@pytest.mark.parametrize("thing", [3, None, LocalOutlierFactor(), pcor.LOF])
def test_what_is_neither_name_nor_detector_is_refused(thing: Any) -> None:
    with pytest.raises(
        ParameterError, match=r"wrap a .* estimator or a function in pcor\.Estimator"
    ):
        get_detector(thing)


PLUGIN = '''
from dataclasses import dataclass
from typing import ClassVar
from pcor import Detector


@dataclass(frozen=True)
class Above(Detector):
    """A value above a public limit."""

    name: ClassVar[str] = "above"
    limit: float = 1000.0

    def verdicts(self, values, counts):
        return values > self.limit
'''


def test_a_package_adds_a_detector_through_an_entry_point(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "pcor_plugin_for_this_test.py").write_text(PLUGIN)
    about = tmp_path / "pcor_plugin_for_this_test-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: pcor-plugin-for-this-test\nVersion: 1.0\n"
    )
    (about / "entry_points.txt").write_text(
        "[pcor.detectors]\nabove = pcor_plugin_for_this_test:Above\n"
    )
    assert "above" not in detector_names()
    monkeypatch.syspath_prepend(tmp_path)
    try:
        assert "above" in detector_names()
        detector = get_detector("above:limit=300")
        assert type(detector).__module__ == "pcor_plugin_for_this_test"
        assert flagged(detector, CROWD) == {400}
        check_detector(detector)
    finally:
        sys.modules.pop("pcor_plugin_for_this_test", None)


@dataclass(frozen=True)
class Above(Detector):
    """A value above a public limit; the limit has no default."""

    name: ClassVar[str] = "above"
    limit: float = field(kw_only=True)

    def verdicts(self, values: Values, counts: Counts) -> Verdicts:  # noqa: ARG002 (the protocol)
        verdicts: Verdicts = values > self.limit
        return verdicts


@pytest.fixture
def no_registered_detectors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pcor.detectors.registry._registered", {})


@pytest.mark.usefixtures("no_registered_detectors")
def test_a_registered_detector_is_known_by_name() -> None:
    register_detector("over", Above)
    assert "over" in detector_names()
    assert get_detector("over:limit=300") == Above(limit=300)
    check_detector(get_detector("over:limit=300"))


@pytest.mark.usefixtures("no_registered_detectors")
@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("over", "'over' needs limit: write over:limit="),
        ("over:limit=3,q=1", "'over' has no setting 'q'; it has: "),
    ],
)
def test_a_registered_detector_without_its_settings_is_refused(name: str, sentence: str) -> None:
    register_detector("over", Above)
    with pytest.raises(ParameterError, match=sentence):
        get_detector(name)


@dataclass(frozen=True)
class Clumsy(Above):
    """A detector that stumbles over its own settings."""

    def __post_init__(self) -> None:
        super().__post_init__()
        len(self.limit)  # type: ignore[arg-type]


@pytest.mark.usefixtures("no_registered_detectors")
def test_what_a_detector_itself_fails_with_is_not_blamed_on_the_names_of_its_settings() -> None:
    register_detector("clumsy", Clumsy)
    with pytest.raises(
        ParameterError, match=r"cannot be made with them \(TypeError\)(?s:.*)object of"
    ):
        get_detector("clumsy:limit=3")
    with pytest.raises(ParameterError, match="'clumsy' needs limit"):
        get_detector("clumsy")


# -- the contract of a detector -------------------------------------------------------------------


@pytest.mark.parametrize("detector", BUILT_IN + SMALL, ids=repr)
def test_every_built_in_keeps_the_contract(detector: Detector) -> None:
    check_detector(detector, rounds=30)


@pytest.mark.parametrize(
    "rule",
    [IsolationForest(n_estimators=3, random_state=0), OneClassSVM()],
    ids=lambda rule: type(rule).__name__,
)
def test_an_adapted_estimator_keeps_the_contract(rule: Any) -> None:
    check_detector(pcor.Estimator(rule, 0.6), rounds=2)


@dataclass(frozen=True)
class OnEverySecondCall(Above):
    """Broken: remembers how often it was asked."""

    limit: float = 100.0
    calls: Any = field(default_factory=itertools.count, repr=False)

    def verdicts(self, values: Values, counts: Counts) -> Verdicts:
        return super().verdicts(values, counts) ^ bool(next(self.calls) % 2)

    def describe(self) -> dict[str, Any]:
        return {"name": self.name}


@dataclass(frozen=True)
class OfTwoMinds(Above):
    """Broken: one answer is not that of all answers."""

    limit: float = 100.0

    def verdict(self, values: Values, counts: Counts, place: int) -> bool:
        return not super().verdict(values, counts, place)


@dataclass(frozen=True)
class SaysOneAndZero(Above):
    """Broken: whole numbers would select places instead of values."""

    limit: float = 100.0

    def verdicts(self, values: Values, counts: Counts) -> Any:
        return super().verdicts(values, counts).astype(np.int64)


@dataclass(frozen=True)
class SaysALists(Above):
    """Broken: a list cannot be indexed by places."""

    limit: float = 100.0

    def verdicts(self, values: Values, counts: Counts) -> Any:
        return super().verdicts(values, counts).tolist()


@dataclass(frozen=True)
class OneAnswer(Above):
    """Broken: one verdict for everybody."""

    limit: float = 100.0

    def verdicts(self, values: Values, counts: Counts) -> Verdicts:
        return super().verdicts(values, counts)[:1]


@dataclass(frozen=True)
class FlagsTheFew(Above):
    """Broken: flags() forgets min_population."""

    limit: float = -1e9

    def flags(self, population: Any) -> Verdicts:
        return np.asarray(population) > self.limit


@dataclass(frozen=True)
class KnowsTheFew(Above):
    """Broken: is_outlier() forgets min_population; COE is made of it."""

    limit: float = -1e9

    def is_outlier(self, values: Values, counts: Counts, value: float) -> bool:
        place = int(np.searchsorted(values, value))
        present = place < len(values) and bool(values[place] == value)
        return present and self.verdict(values, counts, place)


@dataclass(frozen=True)
class FlagsTheAbsent(Above):
    """Broken: calls values outliers that are not there."""

    limit: float = 100.0

    def is_outlier(self, values: Values, counts: Counts, value: float) -> bool:  # noqa: ARG002
        return int(counts.sum()) >= self.min_population and value > self.limit


@dataclass(frozen=True)
class FollowsRowOrder(Above):
    """Broken: one place in the file is always an outlier."""

    limit: float = 1e9

    def flags(self, population: Any) -> Verdicts:
        last: Verdicts = np.arange(len(population)) == len(population) - self.min_population
        return last


@dataclass(frozen=True)
class Nameless(Above):
    """Broken: a certificate could not say what decided."""

    name: ClassVar[str] = ""
    limit: float = 100.0


@pytest.mark.parametrize(
    ("kind", "sentence"),
    [
        (OnEverySecondCall, "the same population got different verdicts"),
        (OfTwoMinds, r"verdict\(\) and verdicts\(\) disagree"),
        (SaysOneAndZero, "verdicts must be one boolean per distinct value"),
        (SaysALists, "verdicts must be one boolean per distinct value"),
        (OneAnswer, "verdicts must be one boolean per distinct value"),
        (FlagsTheFew, "something was flagged below min_population"),
        (KnowsTheFew, "something was flagged below min_population"),
        (FlagsTheAbsent, "a value that is not there was called an outlier"),
        (FollowsRowOrder, "the order of rows changed a verdict"),
        (Nameless, "needs a name"),
    ],
    ids=lambda case: getattr(case, "__name__", ""),
)
def test_the_contract_catches_a_broken_detector(kind: Any, sentence: str) -> None:
    with pytest.raises(AssertionError, match=sentence):
        check_detector(kind())


def test_a_detector_without_a_rule_says_so() -> None:
    with pytest.raises(NotImplementedError, match=r"Detector must define verdicts\(\)"):
        Detector(min_population=1).flags([1.0])
