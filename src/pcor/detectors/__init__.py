"""Outlier detectors: what "unusual among these" means, as a function of the metric values alone."""

from pcor.detectors.base import Detector
from pcor.detectors.counting import CountDetector, Neighbourhood, RareBin, Tail
from pcor.detectors.estimator import Estimator
from pcor.detectors.grubbs import Grubbs
from pcor.detectors.histogram import Histogram
from pcor.detectors.lof import LOF
from pcor.detectors.registry import (
    detector_factory,
    detector_names,
    get_detector,
    register_detector,
)

__all__ = [
    "LOF",
    "CountDetector",
    "Detector",
    "Estimator",
    "Grubbs",
    "Histogram",
    "Neighbourhood",
    "RareBin",
    "Tail",
    "detector_factory",
    "detector_names",
    "get_detector",
    "register_detector",
]
