"""Grubbs' test: worked by hand, and against SciPy one extreme at a time."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pcor
from pcor.detectors.grubbs import critical_value
from tests.helpers import naive
from tests.helpers.populations import agrees, flagged, populations, tails, whole_populations

# -- worked examples ------------------------------------------------------------------------------

GRUBBS_EXAMPLE = [*range(100, 120), 200, 300]


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


# -- against the twins ----------------------------------------------------------------------------


@settings(max_examples=300, deadline=None)
@given(populations, st.sampled_from([0.001, 0.05, 0.3]), tails)
def test_grubbs_agrees_with_scipy_one_extreme_at_a_time(
    population: list[float], alpha: float, tail: str
) -> None:
    detector = pcor.Grubbs(alpha=alpha, tail=tail, min_population=1)
    agrees(detector, naive.grubbs(alpha=alpha, tail=tail), population)


# -- invariance -----------------------------------------------------------------------------------


@pytest.mark.parametrize("shift", [0, 10**9, 2**48, 2**52])
def test_grubbs_does_not_lose_the_mean_far_from_zero(shift: int) -> None:
    # Mean 5/3, s^2 = 3.5, G = 2.3163 > c(9) = 2.2150. A mean rounded to a whole number is 2.
    population = [shift + value for value in [0, 0, 1, 1, 1, 1, 2, 3, 6]]
    assert flagged(pcor.Grubbs(min_population=9), population) == {shift + 6}


@settings(max_examples=100, deadline=None)
@given(whole_populations)
def test_the_lower_tail_is_the_upper_tail_in_the_mirror(population: list[int]) -> None:
    mirrored = [-value for value in population]
    lower, upper = (pcor.Grubbs(tail=tail, min_population=3) for tail in ("lower", "upper"))
    assert lower.flags(population).tolist() == upper.flags(mirrored).tolist()
