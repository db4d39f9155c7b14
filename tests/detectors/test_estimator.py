"""Estimator: anything that scores, as a detector."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.covariance import EllipticEnvelope
from sklearn.ensemble import IsolationForest
from sklearn.neighbors import LocalOutlierFactor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import OneClassSVM

import pcor
from pcor.detectors.base import Detector
from pcor.errors import ParameterError
from pcor.testing import check_detector
from tests.helpers.populations import CROWD, distinct, flagged


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
