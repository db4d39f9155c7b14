"""PCOR: explain why a record is an outlier without giving away everybody else."""

from importlib.metadata import version as _version

from pcor import audit, demo, errors, testing
from pcor.accounting import Budget
from pcor.certificate import Release
from pcor.context import Context
from pcor.detectors import (
    LOF,
    CountDetector,
    Detector,
    Estimator,
    Grubbs,
    Histogram,
    Neighbourhood,
    RareBin,
    Tail,
    get_detector,
    register_detector,
)
from pcor.enumeration import MatchingContexts, is_outlier, matching_contexts, outliers
from pcor.errors import PcorError
from pcor.planning import Plan, plan
from pcor.promise import Promise
from pcor.release import release
from pcor.schema import Attribute, Metric, Schema
from pcor.search import (
    BreadthFirst,
    DepthFirst,
    Direct,
    RandomWalk,
    Search,
    Uniform,
    WidestFirst,
)
from pcor.table import Table
from pcor.utility import Overlap, Population, PopulationSize, Utility

__version__ = _version("pcor")

__all__ = [
    "LOF",
    "Attribute",
    "BreadthFirst",
    "Budget",
    "Context",
    "CountDetector",
    "DepthFirst",
    "Detector",
    "Direct",
    "Estimator",
    "Grubbs",
    "Histogram",
    "MatchingContexts",
    "Metric",
    "Neighbourhood",
    "Overlap",
    "PcorError",
    "Plan",
    "Population",
    "PopulationSize",
    "Promise",
    "RandomWalk",
    "RareBin",
    "Release",
    "Schema",
    "Search",
    "Table",
    "Tail",
    "Uniform",
    "Utility",
    "WidestFirst",
    "audit",
    "demo",
    "errors",
    "get_detector",
    "is_outlier",
    "matching_contexts",
    "outliers",
    "plan",
    "register_detector",
    "release",
    "testing",
]
