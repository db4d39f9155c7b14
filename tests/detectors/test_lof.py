"""LOF: worked by hand, against its definition, and against scikit-learn."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pcor
from tests.helpers import naive
from tests.helpers.populations import (
    agrees,
    distinct,
    factor,
    flagged,
    neighbour_counts,
    populations,
    tie_rules,
    whole_populations,
)

# -- worked examples ------------------------------------------------------------------------------


LOF_EXAMPLE = [*range(100, 121), 160]


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


# -- one answer equals all answers ----------------------------------------------------------------


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


# -- invariance -----------------------------------------------------------------------------------


@settings(max_examples=100, deadline=None)
@given(whole_populations, neighbour_counts)
def test_lof_with_all_ties_is_the_same_in_the_mirror(population: list[int], k: int) -> None:
    if len(population) <= k:
        return
    detector = pcor.LOF(k=k, ties="all")
    for value in set(population):
        mirrored = factor(detector, [-other for other in population], -value)
        assert mirrored == pytest.approx(factor(detector, population, value), rel=1e-11)


# -- the smallest population ----------------------------------------------------------------------


def test_lof_flags_nothing_among_k_rows_or_fewer() -> None:
    detector = pcor.LOF(k=5, threshold=0.1, min_population=1)
    assert flagged(detector, [1, 2, 3, 4, 1000]) == set()
    assert flagged(detector, [1, 2, 3, 4, 5, 1000]) != set()
