"""The experiments by name, in the order of the paper. Public."""

from __future__ import annotations

from pcor.paper import coe_match, comparisons, locality, ratio
from pcor.paper.experiment import Experiment

EXPERIMENTS: dict[str, Experiment] = {
    experiment.name: experiment
    for experiment in (
        comparisons.BY_SEARCH,
        comparisons.BY_OVERLAP,
        comparisons.BY_DETECTOR,
        comparisons.BY_EPSILON,
        comparisons.BY_SAMPLES,
        coe_match.EXPERIMENT,
        ratio.EXPERIMENT,
        locality.EXPERIMENT,
    )
}
