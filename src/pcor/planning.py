"""Plan: everything about a release that is settled before any row is looked at.

Public: everything here. A plan is made from the request and the schema alone, so it is free, it
can be shown to anybody, and two tables with the same schema get the same plan.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from pcor.accounting import Bill, bill, exact
from pcor.context import Context
from pcor.detectors import Detector, get_detector
from pcor.errors import ParameterError, counted, plain
from pcor.promise import Promise
from pcor.schema import Schema
from pcor.search import Search, get_search
from pcor.search.base import GraphSearch
from pcor.selection import check_mechanism, scale_for
from pcor.timing import Estimate, estimate
from pcor.utility import Overlap, PopulationSize, Utility, describe_utility, get_utility


@dataclass(frozen=True)
class Plan:
    """What will run, what it costs, and what it promises.

    Attributes:
        schema: the public description of the table.
        detector: the rule that calls a record an outlier.
        search: where candidates come from, "auto" resolved.
        utility: what makes a candidate good.
        selection: the mechanism of the final draw.
        bill: the price of every step.
    """

    schema: Schema
    detector: Detector
    search: Search
    utility: Utility
    selection: str
    bill: Bill

    @property
    def promise(self) -> Promise:
        """What a release by this plan protects."""
        return Promise(self.bill.epsilon)

    @property
    def space(self) -> int:
        """How many contexts contain a given record's values."""
        return 1 << (self.schema.width - len(self.schema.attributes))

    def estimate(self, rows: int) -> Estimate | None:
        """Return how long it may take on a table of so many rows, timed on made-up numbers.

        ``None`` for a compiled detector, which takes microseconds a context. A search that is
        steered to large populations can take longer for each context than an average one does.
        """
        free = self.schema.width - len(self.schema.attributes)
        return estimate(
            self.detector, self.schema, rows, verifications=self.search.verifications(free)
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as public parameters."""
        return {
            "dataset": self.schema.name,
            "metric": self.schema.metric.column,
            "attributes": len(self.schema.attributes),
            "values": self.schema.width,
            "possible_contexts": self.space if self.space < 1 << 53 else counted(self.space),
            "detector": self.detector.describe(),
            "search": self.search.describe(),
            "utility": describe_utility(self.utility),
            "selection": self.selection,
            "accounting": self.bill.accounting,
            "epsilon": float(self.bill.epsilon),
            "epsilon_exact": plain(self.bill.epsilon),
            "delta": float(self.promise.delta),
            "steps": [step.to_dict() for step in self.bill.steps],
            "promise": self.promise.to_dict(),
            "schema_sha256": self.schema.sha256,
        }

    def explain(self) -> str:
        """Return the steps, numbered, with the cost of each."""
        lines = [
            f"{number}. {step.what}: "
            + (
                f"{step.calls} x {plain(step.each)} = {plain(step.cost)}"
                if step.calls
                else "0 (free)"
            )
            for number, step in enumerate(self.bill.steps, start=1)
        ]
        total = f"total epsilon {plain(self.bill.epsilon)} ({self.bill.accounting} accounting)"
        return "\n".join([*lines, total])

    def __str__(self) -> str:
        return (
            f"{self.schema.width} values of {len(self.schema.attributes)} attributes: "
            f"{counted(self.space)} contexts can contain a record.\n"
            f"Detector {self.detector.name}, search {self.search.name}, "
            f"utility {describe_utility(self.utility)['name']}, selection {self.selection}.\n"
            f"{self.explain()}"
        )


def plan(
    schema: Schema,
    epsilon: object,
    *,
    detector: str | Detector = "lof",
    search: str | Search = "auto",
    utility: object = "population",
    samples: int | None = None,
    start: Context | None = None,
    accounting: str = "tight",
    selection: str = "exponential",
) -> Plan:
    """Settle a release from public knowledge alone; ``release`` documents the arguments."""
    rule = _describable(get_detector(detector))
    wanted = get_utility(utility)
    # The direct mechanism need not list the whole space then (release.best_first).
    ordered = isinstance(wanted, PopulationSize | Overlap)
    resolved = get_search(
        search, schema, samples=samples, start=start, compiled=rule.has_kernel and ordered
    )
    given = {
        "start": resolved.start if isinstance(resolved, GraphSearch) else start,
        "the context of Overlap": wanted.context if isinstance(wanted, Overlap) else None,
    }
    for what, context in given.items():
        if context is not None and context.schema != schema:
            raise ParameterError(f"{what} is a context of another schema")
    if isinstance(wanted, Overlap) and wanted.context is None:
        wanted = _overlap_with_start(resolved, start)
    elif start is not None and not isinstance(resolved, GraphSearch):
        raise ParameterError(f"search {resolved.name!r} has no start context; leave start out")
    settled = Plan(
        schema,
        rule,
        resolved,
        wanted,
        check_mechanism(selection),
        bill(resolved, wanted, exact(epsilon), accounting),
    )
    scale_for(settled.bill.eta)  # refuses an epsilon that cannot be drawn with, before any row
    return settled


def _describable(detector: Detector) -> Detector:
    """Refuse a detector whose settings no certificate could hold."""
    try:
        json.dumps(detector.describe())
    except (TypeError, ValueError):
        raise ParameterError(
            f"the detector {detector.name!r} must describe itself in numbers, texts and lists, "
            "which a certificate can hold; override describe()"
        ) from None
    return detector


def _overlap_with_start(search: Search, start: Context | None) -> Overlap:
    if start is not None:
        return Overlap(start)
    if isinstance(search, GraphSearch):
        return Overlap(search.start)
    raise ParameterError(
        f"utility 'overlap' compares with a chosen context and search {search.name!r} has no start "
        "context: give pcor.Overlap(context) (--overlap-with) or start= (--start)"
    )
