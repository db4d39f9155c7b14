"""Plan: everything about a release that is settled before any row is looked at.

Public: everything here. A plan is made from the request and the schema alone, so it is free, it
can be shown to anybody, and two tables with the same schema get the same plan.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from pcor.detectors import CountDetector, Detector, get_detector
from pcor.errors import ParameterError, UnknownName, check_whole, counted, plain
from pcor.mechanism.selection import check_exponent, check_mechanism
from pcor.public.accounting import Bill, bill, exact, soft_bill
from pcor.public.context import Context
from pcor.public.guarantee import GUARANTEES, Promise
from pcor.public.schema import Schema
from pcor.releasing.estimate import Estimate, estimate
from pcor.search import Search, get_search
from pcor.search.direct import COUNTABLE
from pcor.search.margin import LARGEST_FACTOR, Needed, default_steepness, needed, score_range
from pcor.search.registry import is_direct
from pcor.search.utility import (
    Overlap,
    Utility,
    awaits_start,
    chosen_context,
    counts_rows,
    describe_utility,
    get_utility,
    is_additive,
)
from pcor.support import markup


@dataclass(frozen=True)
class Plan:
    """What will run, what it costs, and what it promises.

    Attributes:
        schema: the public description of the table.
        detector: the rule that calls a record an outlier.
        search: where candidates come from, "auto" resolved.
        utility: what makes a candidate good.
        selection: the mechanism of every paid draw.
        bill: the price of every step.
        guarantee: "ocdp", or "dp" for everyone but the record.
        steepness: under "dp", how many people of utility one person of margin is worth.
    """

    schema: Schema
    detector: Detector
    search: Search
    utility: Utility
    selection: str
    bill: Bill
    guarantee: str = "ocdp"
    steepness: int | None = None

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
        )

    def needed(self, chance: float | Fraction = 0.99) -> Needed | None:
        """Return what a context needs to win over every invalid one with at least this chance.

        Under ``guarantee="dp"`` all contexts are drawn from, valid or not, and only scores speak
        for the valid ones. This follows from public numbers alone; the promise and the sentence of
        a release state it for a chance of 0.99. ``None`` under OCDP, where nothing but a valid
        context can be drawn.
        """
        rule = self.detector.count_rule
        if self.steepness is None or rule is None:
            return None
        overlap = chosen_context(self.utility) is not None
        return needed(self.bill.eta, rule, self.steepness, self.space, chance, overlap=overlap)

    @property
    def space(self) -> int:
        """How many contexts contain a given record's values."""
        return 1 << self.schema.free

    def estimate(self, rows: int) -> Estimate | None:
        """Return how long it may take on a table of so many rows, timed on made-up numbers.

        ``None`` for a compiled detector, which takes microseconds a context. A search that is
        steered to large populations can take longer for each context than an average one does.
        """
        judged = self.search.verifications(self.schema.free)
        return estimate(self.detector, self.schema, rows, verifications=judged)

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as public parameters."""
        wanted = self.needed()
        pure = {} if wanted is None else {"steepness": self.steepness, "needed": wanted.to_dict()}
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
            "guarantee": self.guarantee,
            **pure,
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
        return markup.fragment(
            markup.paragraph(self._summary), self.cost_html(), self.promise.to_html()
        )

    @property
    def _summary(self) -> str:
        return (
            f"{self.schema.width} values of {len(self.schema.attributes)} attributes: "
            f"{counted(self.space)} contexts can contain a record.\n"
            f"Detector {self.detector.name}, search {self.search.name}, "
            f"utility {describe_utility(self.utility)['name']}, selection {self.selection}."
        )

    def __str__(self) -> str:
        return f"{self._summary}\n{self.explain()}"


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
    selection: str | None = None,
    guarantee: str = "ocdp",
    delta: object = None,
    steepness: int | None = None,
    limit: int | None = None,
) -> Plan:
    """Settle a release from public knowledge alone; ``release`` documents the arguments."""
    rule = _describable(get_detector(detector))
    wanted = get_utility(utility)
    if guarantee not in GUARANTEES:
        raise UnknownName("guarantee", guarantee, GUARANTEES)
    if guarantee == "dp":
        search = _check_pure(rule, search, wanted, accounting, delta)
        _check_names(schema)
    elif steepness is not None:
        raise ParameterError("steepness goes with guarantee='dp'; leave it out")
    # The direct mechanism need not list the whole space then (release.best_first).
    ordered = is_additive(wanted)
    if limit is not None:
        check_whole("limit", limit, COUNTABLE)
    resolved = get_search(
        search,
        schema,
        samples=samples,
        start=start,
        limit=limit,
        compiled=rule.has_kernel and ordered,
        guarantee=guarantee,
    )
    if limit is not None and search != "auto" and not resolved.draws_directly:
        raise ParameterError(
            f"limit goes with search 'direct' or 'auto', not {resolved.name!r}; leave it out"
        )
    given = {
        "start": resolved.start if resolved.takes_start else start,
        "the context of Overlap": chosen_context(wanted),
    }
    for what, context in given.items():
        if context is not None and context.schema != schema:
            raise ParameterError(f"{what} is a context of another schema")
    if awaits_start(wanted):
        wanted = _overlap_with_start(wanted, resolved, start)
    elif start is not None and not resolved.takes_start:
        raise ParameterError(f"search {resolved.name!r} has no start context; leave start out")
    slack = Fraction(0) if delta is None else _delta(delta)
    chosen = _selection(selection, accounting, slack)
    counting = rule.count_rule
    if counting is not None and guarantee == "dp":
        steep = _steepness(steepness, counting)
        price = soft_bill(exact(epsilon), score_range(counting, steep))
        settled = Plan(schema, rule, resolved, wanted, chosen, price, guarantee, steep)
    else:
        price = bill(resolved, wanted, exact(epsilon), accounting, slack)
        settled = Plan(schema, rule, resolved, wanted, chosen, price)
    for eta in {settled.bill.eta, settled.bill.step_eta} - {Fraction(0)}:
        check_exponent(eta)  # refuses an epsilon that cannot be drawn with, before any row
    return settled


def _selection(given: str | None, accounting: str, delta: Fraction) -> str:
    """Return the mechanism of every paid draw: the steps of a steered search, and the final one.

    A draw by permute-and-flip is never worse at the same price, and prices add up whatever the
    mechanisms. Its range is not bounded, so it is not offered where draws are composed by
    concentrated differential privacy. The paper's accounting goes with the paper's mechanism.
    """
    if given is None:
        return "permute_and_flip" if accounting == "tight" and delta == 0 else "exponential"
    if delta > 0 and given == "permute_and_flip":
        raise ParameterError(
            "with a delta every draw is by selection 'exponential'; leave selection out"
        )
    return check_mechanism(given)


def _delta(delta: object) -> Fraction:
    slack = exact(delta, "delta")
    if slack > Fraction(1, 1000):
        raise ParameterError(
            "delta must be at most 0.001, and well below one in the number of rows"
        )
    return slack


def _check_names(schema: Schema) -> None:
    """Refuse row numbers where everyone but the record is promised something."""
    if not schema.names_records:
        raise ParameterError(
            "guarantee 'dp' needs a schema with an id column: without one a record is a row "
            "number, and every row before it decides whose number that is. Declare the id; or, if "
            'anybody may know how many rows stand before a record, declare positions = "public" '
            "under [dataset]; or take guarantee 'ocdp'"
        )


def _check_pure(
    detector: Detector, search: str | Search, utility: Utility, accounting: str, delta: object
) -> str | Search:
    """Refuse what differential privacy for everyone but the record cannot be had with."""
    if detector.count_rule is None:
        raise ParameterError(
            f"guarantee 'dp' is not possible with detector {detector.name!r}: one person can turn "
            "its verdict in any context, by any amount. Use one that counts: tail, neighbourhood, "
            "rare_bin; or guarantee 'ocdp'"
        )
    if not counts_rows(utility):
        raise ParameterError(
            f"guarantee 'dp' takes the utility 'population' or pcor.Overlap(context), not "
            f"{type(utility).__name__}: its proof holds only for counts of rows; use "
            "guarantee 'ocdp', which goes by the sensitivity that a utility declares"
        )
    if accounting != "tight" or delta is not None:
        raise ParameterError("guarantee 'dp' is one draw with tight accounting and no delta")
    if search == "auto":
        return "direct"
    if not is_direct(search):
        raise ParameterError(
            "guarantee 'dp' draws once among all contexts: search must be 'auto' or 'direct'"
        )
    return search


def _steepness(given: int | None, detector: CountDetector) -> int:
    steepness = default_steepness(detector) if given is None else given
    check_whole("steepness", steepness)
    if steepness * detector.share_exact.denominator > LARGEST_FACTOR:
        raise ParameterError(
            f"detector {detector.name!r}: a share of {detector.share_exact} with steepness "
            f"{steepness:,} is too fine for guarantee 'dp'; take a share with fewer digits, or a "
            "smaller steepness"
        )
    return steepness


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


def _overlap_with_start(utility: Overlap, search: Search, start: Context | None) -> Overlap:
    compared = utility.compared_with(search.start if start is None else start)
    if start is not None or search.takes_start:
        return compared
    raise ParameterError(
        f"utility 'overlap' compares with a chosen context and search {search.name!r} has no start "
        "context: give pcor.Overlap(context) (--overlap-with) or start= (--start)"
    )
