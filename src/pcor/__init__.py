"""PCOR: explain why a record is an outlier without giving away everybody else."""

from importlib.metadata import version as _version
from typing import TYPE_CHECKING as _TYPE_CHECKING

from pcor import audit, demo, errors, testing
from pcor.accounting import Budget
from pcor.certificate import Release
from pcor.client import Client
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

if _TYPE_CHECKING:
    from pcor.ledger import Ledger
    from pcor.many import plan_many, release_many

__version__ = _version("pcor")

__all__ = [
    "LOF",
    "Attribute",
    "BreadthFirst",
    "Budget",
    "Client",
    "Context",
    "CountDetector",
    "DepthFirst",
    "Detector",
    "Direct",
    "Estimator",
    "Grubbs",
    "Histogram",
    "Ledger",
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
    "plan_many",
    "register_detector",
    "release",
    "release_many",
    "testing",
]


def __getattr__(name: str) -> object:
    """Import the ledger when it is first asked for: it brings a database library along."""
    if name == "Ledger":
        from pcor.ledger import Ledger

        return Ledger
    if name in {"plan_many", "release_many"}:
        from pcor import many

        return getattr(many, name)
    raise AttributeError(f"module 'pcor' has no attribute {name!r}")
