"""Bring your own detector: a scikit-learn or PyOD estimator, or a plain function.

An absolute threshold is required. A contamination rank ("the top 5 %") would make "V is an
outlier" depend on how everybody else ranks, and would call somebody an outlier in every context.
"""

from __future__ import annotations

import copy
import math
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from pcor.detectors.base import Counts, Detector, Moments, Values, Verdicts
from pcor.errors import ParameterError, others_code
from pcor.public.context import Words
from pcor.support.arrays import NDArray, np
from pcor.support.threads import one_by_one

if TYPE_CHECKING:
    from pcor.rows.cell_table import CellTable


@dataclass(frozen=True)
class Estimator(Detector):
    """Adapt anything that scores numbers.

    The rows are handed over in rising order and equal values get the verdict of the first, so the
    result is a function of the multiset whatever the estimator does with order.

    Attributes:
        rule: one of

            - a scikit-learn outlier estimator: fitted on the population as one column; the score
              is minus ``negative_outlier_factor_`` or minus ``score_samples``;
            - a PyOD estimator: fitted likewise; the score is ``decision_scores_``;
            - a function of a rising array that returns scores, or verdicts as booleans.

            Higher scores are more unusual.
        threshold: a score above it is an outlier. Not needed for a function that returns verdicts.
        threads: whether contexts may be judged on all cores, the rule running in several threads
            at once. By default only what consists of scikit-learn's own parts does: PyOD and
            people's own code may keep a random state or a counter for the whole process. A plain
            Python function gains nothing.
    """

    name: ClassVar[str] = "estimator"
    documents_its_rule: ClassVar[bool] = False  # that is inside it
    rule: Any
    threshold: float | None = None
    threads: bool | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        usable = hasattr(self.rule, "fit") or callable(self.rule)
        if not usable or isinstance(self.rule, type):
            raise ParameterError(
                "Estimator takes a scikit-learn or PyOD estimator, or a function of an array"
            )
        number = isinstance(self.threshold, int | float) and not isinstance(self.threshold, bool)
        if self.threshold is not None and not (number and math.isfinite(self.threshold)):
            raise ParameterError("threshold must be a finite number")
        if self.threads not in (None, True, False):
            raise ParameterError("threads must be True, False or None")
        if hasattr(self.rule, "fit"):
            if self.threshold is None:
                raise ParameterError(
                    f"Estimator({type(self.rule).__name__}) needs an absolute threshold on its "
                    "score; a contamination rank is not supported, because it calls somebody an "
                    "outlier in every context"
                )
            self._check_seed()

    def _check_seed(self) -> None:
        parameters = self._parameters
        # The steps of a pipeline have theirs under longer names.
        if any(key.endswith("random_state") and parameters[key] is None for key in parameters):
            raise ParameterError(
                f"Estimator({type(self.rule).__name__}): set random_state to a number; a verdict "
                "must be the same every time"
            )

    def verdicts(self, values: Values, counts: Counts) -> Verdicts:
        """Score the whole population and keep the first answer of each distinct value."""
        population = np.repeat(values, counts)
        first = np.cumsum(counts) - counts
        with others_code(self._label):
            answers = np.asarray(self._answers(population))
            if answers.shape != population.shape:
                raise ParameterError(f"{self._label} must return one answer per row")
            if answers.dtype == bool:
                verdicts: Verdicts = answers[first]
                return verdicts
            if self.threshold is None:
                raise ParameterError(
                    f"{self._label} returns scores, so Estimator needs a threshold"
                )
            flagged: Verdicts = answers[first] > self.threshold
            return flagged

    def batch(
        self, cells: CellTable, value: float, masks: Words, moments: Moments | None = None
    ) -> Verdicts:
        """Judge the contexts on all cores where the rule may run in several threads at once."""
        if not self._may_share_cores:
            return super().batch(cells, value, masks, moments)
        out = np.zeros(len(masks), dtype=bool)

        def judge(place: int) -> None:
            out[place] = self.is_outlier(*cells.distribution(masks[place]), value)

        with others_code(self._label):
            one_by_one(len(masks), _with_settings_of_here(judge))
        return out

    @property
    def _may_share_cores(self) -> bool:
        if self.threads is not None:
            return self.threads
        parameters = self._parameters
        if any(key.endswith("n_jobs") and parameters[key] not in (None, 1) for key in parameters):
            return False  # it uses the cores itself
        # Steps of a pipeline, and functions given as a metric or a transformation, count too.
        parts = [self.rule, *(v for v in parameters.values() if hasattr(v, "fit") or callable(v))]
        return all(type(part).__module__.startswith("sklearn.") for part in parts)

    @property
    def _parameters(self) -> dict[str, Any]:
        found: dict[str, Any] = self.rule.get_params() if hasattr(self.rule, "get_params") else {}
        return found

    def _answers(self, population: Values) -> NDArray[Any]:
        if not hasattr(self.rule, "fit"):
            answers: NDArray[Any] = self.rule(population)
            return answers
        column = population.reshape(-1, 1)
        fitted = copy.deepcopy(self.rule)
        fitted.fit(column)
        if hasattr(fitted, "decision_scores_"):
            return np.asarray(fitted.decision_scores_)
        if hasattr(fitted, "negative_outlier_factor_"):
            return -np.asarray(fitted.negative_outlier_factor_)
        if hasattr(fitted, "score_samples"):
            return -np.asarray(fitted.score_samples(column))
        raise ParameterError(
            f"{self._label} has none of decision_scores_, negative_outlier_factor_, score_samples; "
            "wrap it in a function that returns one score per row"
        )

    @property
    def _label(self) -> str:
        if hasattr(self.rule, "fit"):
            return type(self.rule).__name__
        return str(getattr(self.rule, "__name__", type(self.rule).__name__))

    def describe(self) -> dict[str, Any]:
        """Return the public parameters: the rule by its name and settings."""
        return {
            "name": self.name,
            "rule": self._label,
            "settings": {key: repr(value) for key, value in sorted(self._parameters.items())},
            "threshold": self.threshold,
            "min_population": self.min_population,
        }


def _with_settings_of_here(work: Callable[[int], None]) -> Callable[[int], None]:
    """Give scikit-learn in another thread the settings of this one; it keeps them by thread."""
    sklearn = sys.modules.get("sklearn")
    if sklearn is None:
        return work
    settings = sklearn.get_config()

    def with_settings(place: int) -> None:
        with sklearn.config_context(**settings):
            work(place)

    return with_settings
