"""The histogram: worked by hand, against exact fractions and NumPy."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pcor
from pcor.detectors.base import Values
from pcor.detectors.histogram import bin_numbers
from tests.helpers import naive
from tests.helpers.populations import agrees, flagged, populations, whole_populations

# -- worked examples ------------------------------------------------------------------------------

HISTOGRAM_EXAMPLE = [*(i % 100 for i in range(398)), 155, 200]


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


# -- invariance -----------------------------------------------------------------------------------


@settings(max_examples=100, deadline=None)
@given(whole_populations, st.sampled_from([3, 7, 1000]))
def test_histogram_is_free_of_any_whole_unit(population: list[int], unit: int) -> None:
    detector = pcor.Histogram(rare=0.1, min_population=1)
    scaled = [value * unit for value in population]
    assert detector.flags(scaled).tolist() == detector.flags(population).tolist()


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


# -- parameters -----------------------------------------------------------------------------------


def test_a_share_may_come_from_numpy() -> None:
    detector = pcor.Histogram(rare=np.float64(0.0025))
    assert flagged(detector, HISTOGRAM_EXAMPLE) == {155, 200}
