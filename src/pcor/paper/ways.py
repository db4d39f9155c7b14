"""A way to release, as the experiments compare them. Public."""

from __future__ import annotations

from dataclasses import dataclass

from pcor.detectors import Detector, get_detector
from pcor.public.context import Context
from pcor.public.schema import Schema
from pcor.releasing.plan import Plan, plan
from pcor.search.utility import Overlap

# The authors' rules: Grubbs' test of the maximum, and a last bin without its upper edge.
DETECTORS = {
    "lof": "lof",
    "grubbs": "grubbs:tail=upper",
    "histogram": "histogram:include_maximum=false",
}

_STARTED = ("random_walk", "depth_first", "breadth_first")


def authors_detector(name: str) -> Detector:
    """Return a detector with the settings of the authors."""
    return get_detector(DETECTORS[name])


@dataclass(frozen=True)
class Way:
    """The settings of a release.

    Attributes:
        search: where candidates come from.
        epsilon: the total cost, as written.
        samples: how many contexts are collected; 0 where the search lists all.
        accounting: tight or paper.
        utility: population or overlap (with the start context).
    """

    search: str
    epsilon: str
    samples: int = 0
    accounting: str = "tight"
    utility: str = "population"

    @property
    def key(self) -> str:
        """The settings in one line.

        >>> Way("breadth_first", "0.2", 50, "paper").key
        'breadth_first 50 0.2 paper population'
        """
        return f"{self.search} {self.samples} {self.epsilon} {self.accounting} {self.utility}"

    @classmethod
    def read(cls, key: str) -> Way:
        """Return the way of a key."""
        search, samples, epsilon, accounting, utility = key.split()
        return cls(search, epsilon, int(samples), accounting, utility)

    def plan(self, schema: Schema, detector: Detector, start: Context) -> Plan:
        """Settle the release; a search that takes a start context gets this one."""
        return plan(
            schema,
            self.epsilon,
            detector=detector,
            search=self.search,
            utility="population" if self.utility == "population" else Overlap(start),
            samples=self.samples or None,
            start=start if self.search in _STARTED else None,
            accounting=self.accounting,
        )


def paper(search: str, epsilon: str, samples: int, utility: str = "population") -> Way:
    """Return a way with the paper's accounting."""
    return Way(search, epsilon, samples, "paper", utility)


def ours(epsilon: str, utility: str = "population") -> Way:
    """Return the way that the library takes by itself on spaces of this size."""
    return Way("direct", epsilon, utility=utility)
