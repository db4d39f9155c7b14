"""Plan: everything about a release that is settled before any row is looked at.

Public: everything here. A plan is made from the request and the schema alone, so it is free, it
can be shown to anybody, and two tables with the same schema get the same plan.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any

from pcor.detectors import Detector
from pcor.errors import counted, plain
from pcor.public.accounting import PrivacyCost
from pcor.public.guarantee import Guarantee, Promise
from pcor.public.schema import Schema
from pcor.releasing.estimate import Estimate, estimate
from pcor.releasing.facts import PlannedFact, accuracies, plan_facts
from pcor.releasing.terms import terms_of
from pcor.search import Search
from pcor.search.margin import Requirement
from pcor.search.utility import Utility, describe_utility
from pcor.support import markup

if TYPE_CHECKING:
    from pcor.releasing.settings import Settings


@dataclass(frozen=True)
class Plan:
    """What will run, what it costs, and what it promises.

    Attributes:
        schema: the public description of the table.
        detector: the rule that calls a record an outlier.
        search: where candidates come from, "auto" resolved.
        utility: what makes a candidate good.
        guarantee: what is promised.
        settings: all of it, with nothing left to be chosen; they give the same plan again.
        bill: the price of every step.
        replaced: the schema's detector, where nobody named one and the guarantee does not take it.
    """

    schema: Schema
    detector: Detector
    search: Search
    utility: Utility
    guarantee: Guarantee
    settings: Settings
    bill: PrivacyCost
    replaced: str = field(default="", compare=False)

    @property
    def selection(self) -> str:
        """The mechanism of every paid draw."""
        return str(self.settings.selection)

    @property
    def brevity(self) -> int:
        """How many rows of utility each thing that a context's words name is worth."""
        return self.settings.brevity or 0

    @property
    def promise(self) -> Promise:
        """What a release by this plan protects."""
        wanted = self.needed()
        return Promise(
            self.bill.epsilon,
            self.bill.delta,
            self.guarantee,
            needed="" if wanted is None else str(wanted),
            by_position=self.schema.id is None,
            unit=self.schema.unit,
            facts=self.bill.facts,
        )

    def needed(self, chance: float | Fraction = 0.99) -> Requirement | None:
        """Return what a context needs to win over every invalid one with at least this chance.

        Under pure DP all contexts are drawn from, valid or not, and only scores speak
        for the valid ones. This follows from public numbers alone; the promise and the sentence of
        a release state it for a chance of 0.99. ``None`` under OCDP, where nothing but a valid
        context can be drawn.
        """
        return terms_of(self.guarantee).needed(self, chance)

    @property
    def space(self) -> int:
        """How many contexts of the family can contain a record's values, at most."""
        return self.schema.most_contexts

    @cached_property
    def facts(self) -> tuple[PlannedFact, ...]:
        """The numbers that are released with the context, and how each is made."""
        chosen = self.settings
        return plan_facts(
            chosen.fact_names, chosen.facts_share, self.schema, self.detector, self.bill.epsilon
        )

    @property
    def accuracy(self) -> list[str]:
        """How far off each fact can be; from public numbers alone, so it is known beforehand."""
        return accuracies(self.facts)

    @property
    def note(self) -> str:
        """What to hear about the detector before anybody is asked about; "" where nothing."""
        return ". ".join(filter(None, [self.stand_in, self.detector.caution]))

    @property
    def stand_in(self) -> str:
        """Say that a detector was taken in place of the schema's; "" where none was."""
        if not self.replaced:
            return ""
        admitted = ", ".join(self.guarantee.detectors)
        return (
            f"guarantee {self.guarantee.name!r} does not take the schema's detector "
            f"{self.replaced!r}, which does not count rows; {self.detector.name} stands in for it, "
            f"since no detector is named ({admitted} are admitted)"
        )

    def estimate(self, rows: int) -> Estimate | None:
        """Return how long it may take on a table of so many rows, timed on made-up numbers.

        ``None`` for a compiled detector, which takes microseconds a context. A search that is
        steered to large populations can take longer for each context than an average one does.
        """
        judged = self.search.verifications(self.schema)
        return estimate(self.detector, self.schema, rows, verifications=judged)

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as public parameters."""
        wanted = self.needed()
        described = self.settings.described().items()
        chosen = {name: said for name, said in described if said is not None}
        return {
            "dataset": self.schema.name,
            "metric": self.schema.metric.column,
            "attributes": len(self.schema.attributes),
            "values": self.schema.width,
            "possible_contexts": self.space if self.space < 1 << 53 else counted(self.space),
            **chosen,
            **({"facts": self._told_facts()} if self.facts else {}),
            **({} if wanted is None else {"needed": wanted.to_dict()}),
            **({"unit": self.schema.unit.to_dict()} if self.schema.unit.is_person else {}),
            "epsilon": float(self.bill.epsilon),
            "epsilon_exact": plain(self.bill.epsilon),
            "delta": float(self.promise.delta),
            "steps": [step.to_dict() for step in self.bill.steps],
            "promise": self.promise.to_dict(),
            "schema_sha256": self.schema.sha256,
            **({"note": self.note} if self.note else {}),
        }

    def _told_facts(self) -> list[dict[str, str]]:
        told = zip(self.facts, self.accuracy, strict=True)
        return [
            {"name": fact.name, "epsilon": plain(fact.epsilon), "accuracy": accuracy}
            for fact, accuracy in told
        ]

    def explain(self) -> str:
        """Return the steps, numbered, with the cost of each."""
        lines = [
            f"{number}. {step.what}: {step.priced}"
            for number, step in enumerate(self.bill.steps, start=1)
        ]
        lines.append(f"total {self.bill.total} ({self.bill.accounting} accounting)")
        return "\n".join(lines)

    def cost_html(self) -> str:
        """Return the steps with the cost of each as an HTML table."""
        steps = [
            (step.what, step.calls, step.price(step.each), step.price(step.cost))
            for step in self.bill.steps
        ]
        rows = [*steps, ("total", "", "", self.bill.total)]
        return markup.table(("step", "calls", "each", "cost"), rows, last=True)

    def _repr_html_(self) -> str:
        noted = [markup.paragraph(f"Note: {self.note}.")] if self.note else []
        accurate = [markup.listed(self.accuracy)] if self.facts else []
        return markup.fragment(
            markup.paragraph(self._summary),
            self.cost_html(),
            *accurate,
            *noted,
            self.promise.to_html(),
        )

    @property
    def _summary(self) -> str:
        return (
            f"{self.schema.width} values of {len(self.schema.attributes)} attributes: "
            f"{counted(self.space)} contexts can contain a record.\n"
            f"Detector {self.detector.name}, search {self.search.name}, "
            f"utility {describe_utility(self.utility)['name']}, selection {self.selection}."
            f"{self.schema.unit.summary}"
        )

    def __str__(self) -> str:
        noted = f"\nNote: {self.note}." if self.note else ""
        accurate = "".join(f"\nExpect {one}." for one in self.accuracy)
        return f"{self._summary}\n{self.explain()}{accurate}{noted}"
