"""A way to release, as the experiments compare them. Public."""

from __future__ import annotations

from dataclasses import dataclass, replace

from pcor.detectors import Detector, get_detector
from pcor.public.context import Context
from pcor.public.schema import Schema
from pcor.releasing.plan import Plan
from pcor.releasing.settings import Settings
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
    """The settings of a release, and its cost.

    Attributes:
        settings: what is compared; the detector and the start context are the subject's.
        epsilon: the total cost, as written.
    """

    settings: Settings
    epsilon: str

    @property
    def key(self) -> str:
        """The settings in one line.

        >>> paper("breadth_first", "0.2", 50).key
        'breadth_first 50 0.2 paper population'
        """
        one = self.settings
        return f"{one.search} {one.samples or 0} {self.epsilon} {one.accounting} {one.utility}"

    @classmethod
    def read(cls, key: str) -> Way:
        """Return the way of a key."""
        search, samples, epsilon, accounting, utility = key.split()
        count = int(samples) or None
        return cls(
            Settings(search=search, samples=count, accounting=accounting, utility=utility), epsilon
        )

    @property
    def overlaps(self) -> bool:
        """Whether contexts are compared with the start context, and not by population."""
        return self.settings.utility == "overlap"

    @property
    def direct(self) -> bool:
        """Whether the search lists all."""
        return self.settings.search == "direct"

    def row(self) -> dict[str, object]:
        """Return the columns of a table of results."""
        one = self.settings
        return {
            "search": one.search,
            "samples": one.samples,
            "epsilon": self.epsilon,
            "accounting": one.accounting,
            "utility_function": one.utility,
        }

    def plan(self, schema: Schema, detector: Detector, start: Context) -> Plan:
        """Plan the release; a search that takes a start context gets this one."""
        return replace(
            self.settings,
            detector=detector,
            utility=Overlap(start) if self.overlaps else self.settings.utility,
            start=start if self.settings.search in _STARTED else None,
        ).plan(schema, self.epsilon)


def paper(search: str, epsilon: str, samples: int, utility: str = "population") -> Way:
    """Return a way with the paper's accounting."""
    return Way(
        Settings(search=search, samples=samples, accounting="paper", utility=utility), epsilon
    )


def ours(epsilon: str, utility: str = "population") -> Way:
    """Return the way that the library takes by itself on spaces of this size."""
    return Way(Settings(search="direct", utility=utility), epsilon)
