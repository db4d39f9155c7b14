"""PCOR: explain why a record is an outlier without giving away everybody else.

A name is imported when it is first asked for, so that ``import pcor`` costs next to nothing and a
program pays for the parts that it uses.
"""

from importlib import import_module as _import_module

TYPE_CHECKING = False  # as type checkers know it; the module ``typing`` takes a while to import
if TYPE_CHECKING:
    from pcor import audit, demo, errors, testing
    from pcor.audit.calibration import calibrate
    from pcor.client import Client
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
    from pcor.errors import PcorError
    from pcor.ledger import Ledger
    from pcor.public.context import Context
    from pcor.public.guarantee import OCDP, Promise, PureDP
    from pcor.public.schema import Attribute, Metric, Schema
    from pcor.releasing.batch import plan_many, release_many
    from pcor.releasing.budget import Budget
    from pcor.releasing.certificate import Release
    from pcor.releasing.facts import Fact
    from pcor.releasing.plan import Plan
    from pcor.releasing.run import release
    from pcor.releasing.settings import Settings, plan
    from pcor.releasing.verification import verify
    from pcor.rows.table import Table
    from pcor.search import (
        BreadthFirst,
        DepthFirst,
        Direct,
        RandomWalk,
        Search,
        Uniform,
        WidestFirst,
    )
    from pcor.search.coe import MatchingContexts, is_outlier, matching_contexts, outliers
    from pcor.search.utility import Overlap, People, Population, PopulationSize, Utility
    from pcor.support.ed25519 import PublicKey, SigningKey

    __version__: str

__all__ = [
    "LOF",
    "OCDP",
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
    "Fact",
    "Grubbs",
    "Histogram",
    "Ledger",
    "MatchingContexts",
    "Metric",
    "Neighbourhood",
    "Overlap",
    "PcorError",
    "People",
    "Plan",
    "Population",
    "PopulationSize",
    "Promise",
    "PublicKey",
    "PureDP",
    "RandomWalk",
    "RareBin",
    "Release",
    "Schema",
    "Search",
    "Settings",
    "SigningKey",
    "Table",
    "Tail",
    "Uniform",
    "Utility",
    "WidestFirst",
    "audit",
    "calibrate",
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
    "verify",
]

# Where each name is. The modules of the package need no line: they are found by their own names.
_NAMES_OF = {
    "audit.calibration": "calibrate",
    "client": "Client",
    "detectors": "LOF CountDetector Detector Estimator Grubbs Histogram Neighbourhood RareBin Tail "
    "get_detector register_detector",
    "errors": "PcorError",
    "ledger": "Ledger",
    "public.context": "Context",
    "public.guarantee": "OCDP Promise PureDP",
    "public.schema": "Attribute Metric Schema",
    "releasing.batch": "plan_many release_many",
    "releasing.budget": "Budget",
    "releasing.certificate": "Release",
    "releasing.facts": "Fact",
    "releasing.plan": "Plan",
    "releasing.run": "release",
    "releasing.settings": "Settings plan",
    "releasing.verification": "verify",
    "rows.table": "Table",
    "search": "BreadthFirst DepthFirst Direct RandomWalk Search Uniform WidestFirst",
    "search.coe": "MatchingContexts is_outlier matching_contexts outliers",
    "search.utility": "Overlap People Population PopulationSize Utility",
    "support.ed25519": "PublicKey SigningKey",
}
_MODULE_OF = {name: module for module, names in _NAMES_OF.items() for name in names.split()}


def _find(name: str) -> object:
    if name in _MODULE_OF:
        try:
            return getattr(_import_module(f"pcor.{_MODULE_OF[name]}"), name)
        except ModuleNotFoundError as missing:
            if not str(missing.name).startswith("pcor."):
                raise
            raise ImportError(
                f"pcor.{name} is not part of pcor-client; for all of PCOR: pip install pcor"
            ) from None
    if name == "__version__":
        return _import_module("pcor.support.version").pcor_version()
    if not name.startswith("_"):
        try:
            return _import_module(f"pcor.{name}")
        except ModuleNotFoundError as error:
            if error.name != f"pcor.{name}":
                raise
    raise AttributeError(f"module 'pcor' has no attribute {name!r}")


# Type checkers know every name from the imports above; without this they also see misspelt ones.
if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """Import what the name stands for, when it is first asked for."""
        found = globals()[name] = _find(name)
        return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
