"""What all detectors have in common: one answer for equal values, in any order of the rows."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pcor
from pcor.detectors.base import Detector
from pcor.errors import ParameterError
from tests.helpers.populations import (
    BUILT_IN,
    SMALL,
    distinct,
    every_detector,
    exponents,
    flagged,
    populations,
    whole_populations,
)

# -- one answer equals all answers ----------------------------------------------------------------


@settings(max_examples=300, deadline=None)
@given(populations, every_detector)
def test_verdict_equals_verdicts(population: list[float], detector: Detector) -> None:
    values, counts = distinct(population)
    verdicts = detector.verdicts(values, counts)
    assert [detector.verdict(values, counts, i) for i in range(len(values))] == verdicts.tolist()


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


@pytest.mark.parametrize("detector", BUILT_IN + SMALL, ids=repr)
def test_a_detector_cannot_be_changed_and_describes_all_it_is_made_of(detector: Any) -> None:
    with pytest.raises(AttributeError):
        detector.min_population = 3
    described = detector.describe()
    name = described.pop("name")
    assert name == detector.name
    assert type(detector)(**described) == detector
