"""The contract of a detector: what is built in keeps it, and what is broken is caught."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import pytest
from sklearn.ensemble import IsolationForest
from sklearn.svm import OneClassSVM

import pcor
from pcor.detectors.base import Counts, Detector, Values, Verdicts
from pcor.testing import check_detector
from tests.helpers.populations import BUILT_IN, SMALL, Above


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
