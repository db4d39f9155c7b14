"""The detector against an example by hand, its slow twin, and the contract of PCOR."""

from __future__ import annotations

import random
from fractions import Fraction
from statistics import median

import pytest
from pcor_mad import MAD

from pcor.errors import ParameterError
from pcor.testing import check_detector


def slow(population: list[int], threshold: str = "3.5") -> list[bool]:
    """Judge each row by the definition, in exact fractions."""
    middle = median(map(Fraction, population))
    mad = median(abs(number - middle) for number in population)
    scores = [Fraction("0.6745") * abs(n - middle) / mad if mad else 0 for n in population]
    return [score > Fraction(threshold) for score in scores]


@pytest.mark.parametrize(("far", "flagged"), [(30, False), (31, True), (-2, True)])
def test_an_example_by_hand(far: int, flagged: bool) -> None:
    # The median is 15 and MAD 3: 30 has the score 3.3725, and 31 has 3.5973. So has -2, from 14.
    population = [*range(10, 20), far]
    assert MAD(min_population=3).flags(population).tolist() == [False] * 10 + [flagged]


def test_nothing_is_an_outlier_where_more_than_half_are_equal() -> None:
    assert not MAD(min_population=3).flags([7, 7, 7, 7, 8, 1000]).any()


@pytest.mark.parametrize("seed", range(50))
def test_it_agrees_with_its_slow_twin(seed: int) -> None:
    # Whole numbers below 337 never meet the threshold exactly, so rounding decides nothing.
    numbers = random.Random(seed)  # noqa: S311 (test data)
    spread = numbers.choice([2, 12, 336])
    population = [numbers.randint(0, spread) for _ in range(numbers.randint(3, 80))]
    population += [336] * numbers.randint(0, 3)
    assert MAD(min_population=1).flags(population).tolist() == slow(population)


@pytest.mark.parametrize("detector", [MAD(), MAD(threshold=2), MAD(min_population=5)], ids=repr)
def test_it_keeps_the_contract_of_a_detector(detector: MAD) -> None:
    check_detector(detector)


@pytest.mark.parametrize("threshold", [0, -1.0, float("nan"), "3.5", None])
def test_a_threshold_that_is_not_a_positive_number_is_refused(threshold: object) -> None:
    with pytest.raises(ParameterError, match="threshold must be a positive number"):
        MAD(threshold=threshold)  # type: ignore[arg-type]
