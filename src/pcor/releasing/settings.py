"""Settings: how a release is made, in one value; each option is declared once, with its words.

Public: everything here. The library, the command line, the ledger, batches, the service, the
client, the audit and the experiments carry this value, and ``Settings.plan`` is the only way to a
plan. What the interfaces offer (flags, form fields, the body of an HTTP request), and what a
certificate and a request to a ledger hold, follows from the declarations here. A new option is a
field with its ``Option``, an argument of ``plan`` and ``release``, a line in
``certificate.schema.json`` if a certificate holds it, and the code that acts on it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from fractions import Fraction
from typing import Any

from pcor.detectors import Detector, detector_names, get_detector
from pcor.errors import ParameterError, StartError, check_whole, plain
from pcor.mechanism.randomness import MECHANISMS
from pcor.mechanism.selection import check_exponent, check_mechanism
from pcor.public.accounting import ACCOUNTINGS, exact
from pcor.public.context import Context
from pcor.public.guarantee import GUARANTEES, OCDP, Guarantee, PureDP, get_guarantee
from pcor.public.schema import MOST_NUMBERED, Schema
from pcor.public.space import in_family
from pcor.releasing.facts import EXAMPLES, SHARE, plan_facts, read_names, read_share, with_facts
from pcor.releasing.options import Interface, Option, as_it_is, declare, either
from pcor.releasing.plan import Plan
from pcor.releasing.terms import terms_of
from pcor.search import SEARCHES, Search, get_search
from pcor.search.base import SamplingSearch
from pcor.search.registry import walked_limit
from pcor.search.subtrees import settles_boxes
from pcor.search.utility import (
    UTILITIES,
    Overlap,
    Utility,
    awaits_start,
    chosen_context,
    counts_people,
    describe_utility,
    get_utility,
    is_additive,
)

# All things that a context could name are together worth no more rows than scores can hold.
MOST_BREVITY = 1 << 30
# People are counted context by context, so no larger space is listed where nobody raises the limit.
PEOPLE_LIMIT = 1 << 18


@dataclass(frozen=True, kw_only=True)
class Settings:
    """How a release is made; ``pcor.release`` documents the options.

    >>> Settings(search="direct", guarantee="dp").to_json()["guarantee"]
    'dp'
    """

    detector: str | Detector | None = field(
        default=None,
        metadata=declare(
            "What calls a record an outlier: lof, grubbs, histogram, tail, neighbourhood or "
            "rare_bin; by default what the schema says, or lof; with --guarantee "
            f"{PureDP.name}, tail where the schema's does not count. Settings after a colon: "
            "lof:k=10,threshold=2.0, neighbourhood:radius=500, 'rare_bin:edges=0|1000|5000'.",
            names=lambda: tuple(detector_names()),
            label="Detector",
            hint="Such as lof, grubbs, histogram; tail or rare_bin for DP.",
            chosen=False,
            first=True,
            describe=lambda detector: detector.describe(),
        ),
    )
    search: str | Search = field(
        default="auto",
        metadata=declare(
            f"How contexts are looked for: {either('auto', *SEARCHES)}.",
            names=lambda: ("auto", *SEARCHES),
            label="Search",
            describe=lambda search: search.describe(),
        ),
    )
    utility: object = field(
        default="population",
        metadata=declare(
            "Which contexts are better: those that cover more rows (population), that share more "
            "rows with a chosen context or the start (overlap), or that cover more people (people; "
            "in memory, with a person in the schema).",
            names=lambda: UTILITIES,
            only=True,
            label="Prefers",
            interfaces=("release", "service"),
            describe=describe_utility,
        ),
    )
    samples: int | None = field(
        default=None,
        metadata=declare(
            "How many contexts a sampling search collects before the final draw: at most a "
            "million, 100,000 for random_walk, 10,000 for depth_first and breadth_first.",
            kind="whole",
            most=SamplingSearch.most_samples,
            label="Samples",
        ),
    )
    start: Context | None = field(
        default=None,
        metadata=declare(
            "A valid context to start from: a sentence ('job is CEO; any city except Rome'), JSON "
            "or bits.",
            kind="context",
            interfaces=("release",),
        ),
    )
    selection: str | None = field(
        default=None,
        metadata=declare(
            "The mechanism of every paid draw: permute_and_flip, or exponential (the default with "
            "--delta or paper accounting).",
            names=lambda: MECHANISMS,
            only=True,
            label="Paid draws",
            describe=as_it_is,
        ),
    )
    accounting: str = field(
        default="tight",
        metadata=declare(
            "How the cost is worked out: tight, or paper to reproduce the paper's numbers.",
            names=lambda: ACCOUNTINGS,
            only=True,
            label="Accounting",
            describe=as_it_is,
        ),
    )
    guarantee: str | Guarantee = field(
        default=OCDP.name,
        metadata=declare(
            f"{OCDP.name} (relaxed), or {PureDP.name}, which covers everyone but the record and "
            f"needs {either(*PureDP.detectors)}.",
            names=lambda: tuple(GUARANTEES),
            only=True,
            label="Guarantee",
            first=True,
            describe=str,
        ),
    )
    delta: object = field(
        default=None,
        metadata=declare(
            "A small chance, such as 1e-6, that buys depth_first and breadth_first more accuracy.",
            kind="amount",
            label="Delta",
        ),
    )
    steepness: int | None = field(
        default=None,
        metadata=declare(
            f"With --guarantee {PureDP.name}: how much being an outlier counts against "
            "population; by default chosen for you.",
            kind="whole",
            most=10**9,
            label="Steepness",
            describe=as_it_is,
        ),
    )
    limit: int | None = field(
        default=None,
        metadata=declare(
            "The largest space of contexts to draw from directly: 2^24 by default, 2^22 for auto, "
            "2^30 for both with lof. Beyond 2^24 time and memory depend on the rows.",
            kind="whole",
            most=MOST_NUMBERED,
            label="Most contexts",
            hint="To draw from directly: 16,777,216 if empty. With more, time and memory depend on "
            "the rows.",
            interfaces=("release", "service"),
        ),
    )
    brevity: int | None = field(
        default=None,
        metadata=declare(
            "How many rows each thing that the sentence names is worth: the more, the shorter.",
            kind="whole",
            least=0,
            most=MOST_BREVITY,
            label="Brevity",
            hint="In rows for each value, range, group or exception that the sentence names.",
            describe=lambda brevity: brevity or None,
            later=True,
        ),
    )
    facts: str | Sequence[str] | None = field(
        default=None,
        metadata=declare(
            "Numbers about the context, paid from the same epsilon: count, rank (also rank:low, "
            "rank:high), median, quantile:0.95; several with commas. Quantiles need a grid in the "
            "schema: [metric] low, high, step.",
            names=lambda: EXAMPLES,
            label="Facts",
            hint="Such as count,rank,median; a quantile needs [metric] low, high, step.",
            chosen=False,
            describe=lambda names: None if names is None else names.split(","),
            later=True,
        ),
    )
    facts_share: object = field(
        default=None,
        metadata=declare(
            "Which part of epsilon the facts have, all together; 1/3 by default.",
            kind="amount",
            label="Share of the facts",
            describe=as_it_is,
            later=True,
        ),
    )
    show_metric: bool = field(
        default=True,
        metadata=declare(
            "Whether the answer tells the record's own metric, and on which side its detector "
            "looks.",
            kind="switch",
            label="Show the record's metric",
            hint="In the sentence and the certificate, to whoever may ask about the record.",
            interfaces=("release", "service"),
            # Not everybody who may ask is somebody whom the owner would tell.
            registered=False,
        ),
    )

    def __post_init__(self) -> None:
        if not isinstance(self.show_metric, bool):
            raise ParameterError("show_metric must be True or False")
        object.__setattr__(self, "facts", read_names(self.facts))

    @classmethod
    def options(cls, interface: Interface | None = None) -> Iterator[tuple[str, Any, Option]]:
        """Yield name, default and declaration of each option that an interface offers."""
        for declared in fields(cls):
            option: Option = declared.metadata["option"]
            default = declared.default
            if interface == "service" and option.registered is not None:
                default = option.registered
            if interface is None or interface in option.interfaces:
                yield declared.name, default, option

    @classmethod
    def of(cls, settings: Settings | None = None, **options: Any) -> Settings:
        """Return settings that are given as a value or by name.

        >>> Settings.of(search="direct") == Settings.of(settings=Settings(search="direct"))
        True
        """
        named = cls(**options)
        if settings is None:
            return named
        if not isinstance(settings, Settings):
            raise ParameterError("settings must be pcor.Settings(...)")
        if named != cls():
            raise ParameterError("give settings, or options by name, and not both")
        return settings

    @classmethod
    def from_json(cls, given: Mapping[str, Any]) -> Settings:
        """Return the settings of a registration; what it does not name is as usual."""
        known = {name: default for name, default, _ in cls.options("service")}
        unknown = sorted(set(given) - set(known))
        if unknown:
            raise ParameterError(
                f"{unknown[0]!r} is no option of a release that this version of pcor knows"
            )
        return cls(**(known | dict(given)))

    def to_json(self) -> dict[str, Any]:
        """Return the settings as a registration holds them: as they were given, by name."""
        given = {name: getattr(self, name) for name, _, _ in self.options("service")}
        return given | {"guarantee": str(self.guarantee)}

    def directly(self) -> Settings:
        """Return the same with the direct search, and without what other searches take."""
        return replace(self, search="direct", samples=None, start=None, delta=None, limit=None)

    def described(self, *, whole: bool = True) -> dict[str, Any]:
        """Return what the settings of a plan come to, as certificates hold it.

        Args:
            whole: false leaves out what came later and is as it was before.
        """
        return {
            name: option.describe(getattr(self, name))
            for name, default, option in self.options()
            if option.describe is not None
            and (whole or not option.later or getattr(self, name) != default)
        }

    def plan(self, schema: Schema, epsilon: object) -> Plan:
        """Plan a release from public knowledge alone. Free.

        Raises:
            ParameterError: the settings do not go together, or not with the schema.
            TooLarge: there are more contexts than may be drawn from.
        """
        guarantee = get_guarantee(self.guarantee)
        terms = terms_of(guarantee)
        rule = _describable(terms.detector(self.detector, schema))
        utility = get_utility(self.utility)
        _check_people(utility, schema)
        asked = terms.admit(self, schema, rule, utility)
        # The direct mechanism need not list the whole space then (run.best_first).
        compiled = rule.has_kernel and is_additive(utility)
        brevity = schema.release.get("brevity", 0) if self.brevity is None else self.brevity
        chosen = replace(self, limit=self._limit(asked, schema, rule, utility, brevity))
        search = chosen._search(asked, schema, compiled=compiled, guarantee=guarantee)
        utility = self._utility(utility, search, schema)
        slack = Fraction(0) if self.delta is None else _delta(self.delta)
        check_whole("brevity", brevity, MOST_BREVITY // schema.width, least=0)
        total = exact(epsilon)
        share = read_share(self.facts_share)
        facts = plan_facts(self.fact_names, self.facts_share, schema, rule, total)
        resolved = replace(
            self,
            detector=rule,
            search=search,
            utility=utility,
            samples=None,  # these three are the search's own by now
            start=None,
            limit=None,
            selection=_selection(self.selection, self.accounting, slack),
            guarantee=guarantee,
            steepness=terms.steepness(self, rule),
            # So that a request without them is as it was before.
            brevity=brevity or None,
            facts_share=plain(share) if facts and share != SHARE else None,
        )
        left = total - sum(fact.epsilon for fact in facts)
        bill = with_facts(terms.price(resolved, search, schema.unit, (left, slack)), facts)
        for eta in {bill.eta, bill.step_eta} - {Fraction(0)}:
            check_exponent(eta)  # refuses an epsilon that cannot be drawn with, before any row
        replaced = self._replaced(schema, rule)
        return Plan(schema, rule, search, utility, guarantee, resolved, bill, replaced)

    def _replaced(self, schema: Schema, rule: Detector) -> str:
        """Return the schema's detector where it does not count, and one that does was taken."""
        own = str(schema.release.get("detector", ""))
        if not own or self.detector is not None or rule.count_rule is None:
            return ""
        return own if get_detector(own).count_rule is None else ""

    def _limit(
        self, asked: str | Search, schema: Schema, rule: Detector, utility: Utility, brevity: int
    ) -> int | None:
        """Return the largest space to draw from directly; ``None`` for the search's own."""
        if self.limit is not None:
            return self.limit
        if asked == "auto" and not rule.has_kernel:
            return None  # it is smaller
        if counts_people(utility):
            return PEOPLE_LIMIT if asked in ("auto", "direct") else None
        walked = rule.has_kernel and is_additive(utility) and settles_boxes(rule, brevity)
        return walked_limit(asked, schema) if walked else None

    @property
    def fact_names(self) -> str | None:
        """The facts that are asked for, in one spelling and order, with commas between."""
        return None if self.facts is None else str(self.facts)

    def _search(
        self, asked: str | Search, schema: Schema, *, compiled: bool, guarantee: Guarantee
    ) -> Search:
        if self.limit is not None:
            check_whole("limit", self.limit, MOST_NUMBERED)
        search = get_search(
            asked,
            schema,
            samples=self.samples,
            start=self.start,
            limit=self.limit,
            compiled=compiled,
            guarantee=guarantee,
        )
        if self.limit is not None and asked != "auto" and not search.draws_directly:
            raise ParameterError(
                f"limit goes with search 'direct' or 'auto', not {search.name!r}; leave it out"
            )
        return search

    def _utility(self, utility: Utility, search: Search, schema: Schema) -> Utility:
        """Return the utility with the context that it compares with, where there is one."""
        given = {
            "start": search.start if search.takes_start else self.start,
            "the context of Overlap": chosen_context(utility),
        }
        for what, context in given.items():
            if context is not None and context.schema != schema:
                raise ParameterError(f"{what} is a context of another schema")
        start = given["start"]
        if start is not None and not in_family(schema, start.mask):
            raise StartError(
                "the start context is not one of the contexts that the schema allows (contexts, "
                "groups, max_clauses, max_named); give another one, or leave start (--start) out "
                "to have one found"
            )
        if awaits_start(utility):
            return _overlap_with_start(utility, search, self.start)
        if self.start is not None and not search.takes_start:
            raise ParameterError(f"search {search.name!r} has no start context; leave start out")
        return utility


def plan(
    schema: Schema,
    epsilon: object,
    *,
    detector: str | Detector | None = None,
    search: str | Search = "auto",
    utility: object = "population",
    samples: int | None = None,
    start: Context | None = None,
    accounting: str = "tight",
    selection: str | None = None,
    guarantee: str | Guarantee = OCDP.name,
    delta: object = None,
    steepness: int | None = None,
    limit: int | None = None,
    brevity: int | None = None,
    facts: str | Sequence[str] | None = None,
    facts_share: object = None,
    show_metric: bool = True,
    settings: Settings | None = None,
) -> Plan:
    """Plan a release from public knowledge alone; ``release`` documents the arguments.

    Raises:
        ParameterError: the options do not go together, or not with the schema.
        TooLarge: there are more contexts than may be drawn from.
    """
    return Settings.of(
        detector=detector,
        search=search,
        utility=utility,
        samples=samples,
        start=start,
        accounting=accounting,
        selection=selection,
        guarantee=guarantee,
        delta=delta,
        steepness=steepness,
        limit=limit,
        brevity=brevity,
        facts=facts,
        facts_share=facts_share,
        show_metric=show_metric,
        settings=settings,
    ).plan(schema, epsilon)


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


def _check_people(utility: Utility, schema: Schema) -> None:
    if counts_people(utility) and not schema.unit.is_person:
        raise ParameterError(
            "utility 'people' counts people, and the schema does not say whose rows are whose: "
            "declare person and rows_per_person under [dataset], or take utility 'population', "
            "which counts rows"
        )


def _delta(delta: object) -> Fraction:
    slack = exact(delta, "delta")
    if slack > Fraction(1, 1000):
        raise ParameterError(
            "delta must be at most 0.001, and well below one in the number of rows"
        )
    return slack


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
