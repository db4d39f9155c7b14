"""Facts: numbers about the context drawn, each paid from the same epsilon.

Public: everything here, what a fact costs, how its noise is made and how far off it can be. A
declared share of the total epsilon is split evenly over the facts; the draw of the context has the
rest. The true numbers are in ``pcor.releasing.fact_draws``; docs/proofs/facts.md has the proofs.

- ``count``: the rows of the context; where the schema says whose rows are whose, the people who
  have one. Discrete Laplace noise.
- ``rank``: how many of them are at least as extreme as the record, which is one of them. The side
  is the detector's; where that looks at both it is "high", unless ``rank:low`` is asked for.
- ``median``, ``quantile:0.95``: the exponential mechanism over the metric's public grid. Three
  draws of the same price: the number itself, and one for each end of its interval.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from typing import Any

from pcor.detectors import Detector
from pcor.errors import ParameterError, UnknownName, plain
from pcor.mechanism.noise import noise_width, selection_width
from pcor.mechanism.selection import check_exponent
from pcor.public.accounting import PricedStep, PrivacyCost, exact
from pcor.public.grid import NO_GRID, MetricGrid
from pcor.public.schema import Schema
from pcor.public.wording import amount

# The part of the total epsilon that facts have where nobody says otherwise.
SHARE = Fraction(1, 3)

# The true number lies in the stated interval with at least this chance.
CONFIDENCE = Fraction(19, 20)

# A quantile has at most so many digits behind the point, so that scores are small whole numbers.
_DIGITS = 4
# Scores have 64 bits. The rows of a table take 45 of them, the ends of an interval fewer than 60.
_LARGEST_SHIFT = 1 << 60
_DRAWS = 3  # of a quantile: the number, and both ends of its interval
_NAMES = ("count", "rank", "rank:low", "rank:high", "median")
EXAMPLES = (*_NAMES, "quantile:0.95")


# -- what is asked for -----------------------------------------------------------------------------


def read_names(given: object) -> str | None:
    """Return the facts that are asked for in one spelling and order; ``None`` for none.

    >>> read_names(["median", "count"]), read_names("quantile:0.50"), read_names([])
    ('count,median', 'median', None)
    """
    if given is None:
        return None
    if isinstance(given, str):
        if not given.strip():
            raise ParameterError(
                f"facts is empty: name what to release, {', '.join(EXAMPLES)}, or leave it out"
            )
        given = [part.strip() for part in given.split(",")]
    if not isinstance(given, Iterable):
        raise UnknownName("facts", given, EXAMPLES)
    names = sorted(map(_name, given), key=_order)
    for one, other in pairwise(names):
        if one == other:
            raise ParameterError(f"facts: {one!r} is asked for twice; each is paid for once")
    if sum(map(is_rank, names)) > 1:
        raise ParameterError("facts: ask for one rank, by 'rank', 'rank:low' or 'rank:high'")
    return ",".join(names) or None


def _name(given: object) -> str:
    """Return the name of a fact in its one spelling, or refuse it."""
    name = str(given) if isinstance(given, str) else ""
    if name in _NAMES:
        return name
    kind, _, number = name.partition(":")
    if kind != "quantile":
        raise UnknownName("facts", given, EXAMPLES)
    share = exact(number, "facts: the share of a quantile")
    if share >= 1 or 10**_DIGITS % share.denominator:
        raise ParameterError(
            f"facts: the share of a quantile lies between 0 and 1 and has at most {_DIGITS} "
            "digits, such as quantile:0.95"
        )
    return "median" if share == Fraction(1, 2) else f"quantile:{plain(share)}"


def _order(name: str) -> tuple[int, Fraction]:
    if name == "count":
        return 0, Fraction(0)
    return (1, Fraction(0)) if is_rank(name) else (2, _quantile(name))


def is_rank(name: str) -> bool:
    """Tell whether a fact is a rank, on whatever side."""
    return name.partition(":")[0] == "rank"


def _quantile(name: str) -> Fraction:
    return Fraction(1, 2) if name == "median" else Fraction(name.partition(":")[2])


def read_share(given: object) -> Fraction:
    """Return the part of epsilon that facts have, or refuse what is none."""
    share = SHARE if given is None else exact(given, "facts_share")
    if share >= 1:
        raise ParameterError(
            "facts_share must lie between 0 and 1, such as 1/3: the draw of the context is paid "
            "from the rest"
        )
    return share


# -- what it costs, and how far off it can be ------------------------------------------------------


@dataclass(frozen=True)
class PlannedCount:
    """A number of rows, or of people, that will be released with discrete Laplace noise.

    Attributes:
        name: ``"count"``, or a rank.
        epsilon: what it costs.
        most: how much whoever is protected can move it by, with all of their rows.
        side: for a rank, whether rows at least as ``"high"`` or as ``"low"`` are counted.
        people: whether people are counted, each once, and not rows.
    """

    name: str
    epsilon: Fraction
    most: int
    side: str | None = None
    people: bool = False

    @property
    def rate(self) -> Fraction:
        """How fast the chance of noise falls with its size, by factors of e."""
        return self.epsilon / self.most

    @property
    def width(self) -> int:
        """How far the noise reaches, but for the chance that the interval leaves out."""
        return noise_width(self.rate, 1 - CONFIDENCE)

    @property
    def step(self) -> PricedStep:
        """What it is among the steps of a release."""
        scale = plain(1 / self.rate)
        what = f"the fact {self.name!r}: discrete Laplace noise of scale {scale}"
        return PricedStep(what, 1, self.epsilon)

    @property
    def accuracy(self) -> str:
        """How far off it can be, in the middle of a sentence."""
        of_people = " of people" if self.people else ""
        return f"the {_spoken(self.name)}{of_people} within {self.width:,} of the truth"

    def fact(self, noisy: int) -> Fact:
        """Return what is released of a noisy number. V is there, so there is at least one row.

        The interval reaches as far above the number that is told as the noise does: where noise
        would have made it impossible, about the noise itself it could end at 1 and seem sure.
        """
        value = max(1, noisy)
        low, high = max(1, value - self.width), value + self.width
        return Fact(self.name, value, low, high, self.epsilon, self.people)


@dataclass(frozen=True)
class PlannedQuantile:
    """A quantile of the metric, rounded to the grid, that will be released as a point of it.

    Attributes:
        name: ``"median"``, or ``"quantile:0.95"``.
        epsilon: what it costs: three draws.
        most: how many rows whoever is protected can have.
        share: which quantile, a / c.
        grid: from which numbers it is drawn.
        replaced: whether rows that arrive can take the place of as many others.
    """

    name: str
    epsilon: Fraction
    most: int
    share: Fraction
    grid: MetricGrid
    replaced: bool = False

    @property
    def eta(self) -> Fraction:
        """The exponent of each draw.

        One row moves a score by at most max(a, c - a); one that takes the place of another, by c.
        """
        a, c = self.share.as_integer_ratio()
        each = c if self.replaced else max(a, c - a)
        return self.epsilon / _DRAWS / (2 * self.most * each)

    @property
    def shift(self) -> int:
        """How many rows below and above the quantile the ends of its interval are drawn for."""
        return self.width((1 - CONFIDENCE) / 2)

    @property
    def targets(self) -> tuple[int, int, int]:
        """What is drawn: the quantile, and the two ends, by their distance from it in rows."""
        return 0, -self.shift, self.shift

    @property
    def step(self) -> PricedStep:
        """What it is among the steps of a release."""
        what = f"the fact {self.name!r}: draws from {self.grid.size:,} points, and for its interval"
        return PricedStep(what, _DRAWS, self.epsilon / _DRAWS)

    def accuracy(self, rows: int) -> str:
        """Say that it is off by at most so many rows, in the middle of a sentence."""
        return (
            f"the {_spoken(self.name)} of metrics {self.grid.rounding} with at most {rows:,} rows "
            "between it and the true one"
        )

    def width(self, outside: Fraction) -> int:
        """Return by how many rows a draw is off at most, but for a chance of ``outside``."""
        # A row is worth c points of a score.
        return selection_width(self.eta * self.share.denominator, self.grid.size - 1, outside)

    def fact(self, places: Sequence[int]) -> Fact:
        """Return what is released of the three draws: sorted, which only widens the interval."""
        low, high = (self.grid.point(place) for place in (min(places), max(places)))
        return Fact(self.name, self.grid.point(places[0]), low, high, self.epsilon)


PlannedFact = PlannedCount | PlannedQuantile


def plan_facts(
    names: str | None, share: object, schema: Schema, detector: Detector, epsilon: Fraction
) -> tuple[PlannedFact, ...]:
    """Return what the facts cost and how they are made, from public knowledge alone.

    Raises:
        ParameterError: a quantile is asked for and no grid is declared, epsilon is too small for
            one, or a share is given without facts.
    """
    if names is None:
        if share is not None:
            raise ParameterError("facts_share goes with facts; give both, or leave it out")
        return ()
    listed = names.split(",")
    each = read_share(share) * epsilon / len(listed)
    planned = tuple(_planned(name, each, schema, detector) for name in listed)
    for one in planned:
        check_exponent(one.rate if isinstance(one, PlannedCount) else one.eta)
        if isinstance(one, PlannedQuantile) and one.shift * one.share.denominator >= _LARGEST_SHIFT:
            raise ParameterError(
                f"facts: epsilon is too small for {one.name!r}, whose interval would reach farther "
                "than any table; try 0.01 to 10, a larger facts_share, or leave it out"
            )
    return planned


def _planned(name: str, epsilon: Fraction, schema: Schema, detector: Detector) -> PlannedFact:
    # A person is counted once, whatever rows they have: nobody moves a number by more than 1.
    unit, grid = schema.unit, schema.metric.grid
    if name == "count":
        return PlannedCount(name, epsilon, 1, people=unit.is_person)
    if is_rank(name):
        # By the settings alone: on which side of the others V lies depends on their rows.
        side = rank_side(name, detector)
        return PlannedCount(name, epsilon, 1, side, people=unit.is_person)
    if grid is None:
        raise ParameterError(f"facts: {name!r} cannot be had: {NO_GRID}")
    return PlannedQuantile(name, epsilon, unit.rows, _quantile(name), grid, unit.chooses)


def rank_side(name: str, detector: Detector) -> str:
    """Return the side of a rank: by its name, or the detector's settings; never by the rows."""
    return name.partition(":")[2] or detector.side or "high"


def with_facts(cost: PrivacyCost, facts: Sequence[PlannedFact]) -> PrivacyCost:
    """Return the cost of a draw and of the facts after it: epsilons add up."""
    spent = sum((fact.epsilon for fact in facts), Fraction(0))
    steps = cost.steps + tuple(fact.step for fact in facts)
    return replace(cost, epsilon=cost.epsilon + spent, facts=spent, steps=steps)


def accuracies(facts: Sequence[PlannedFact]) -> list[str]:
    """Return how far off each fact can be, as sentences; from public numbers alone."""
    quantiles = [fact for fact in facts if isinstance(fact, PlannedQuantile)]
    # Told values are sorted, so any may be another's draw: off by no more than the worst of all.
    each = (1 - CONFIDENCE) / max(1, len(quantiles))
    rows = max((fact.width(each) for fact in quantiles), default=0)
    told = (
        fact.accuracy(rows) if isinstance(fact, PlannedQuantile) else fact.accuracy
        for fact in facts
    )
    return [f"{words} in {plain(100 * CONFIDENCE)} of 100 cases" for words in told]


def _spoken(name: str) -> str:
    kind, _, rest = name.partition(":")
    return f"{rest} quantile" if kind == "quantile" else kind


# -- what is released ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Fact:
    """A number about the context that was drawn, with noise.

    Attributes:
        name: which number.
        value: what it is, about.
        low: the true number is at least this,
        high: and at most this, with the chance ``confidence``. The interval follows from the noise
            and public numbers alone. Of a quantile the true number is that of the metrics rounded
            to the grid: at an end of the grid it may be anything beyond.
        epsilon: what it cost, exact.
        people: whether it is a number of people, and not of rows.
    """

    name: str
    value: float
    low: float
    high: float
    epsilon: Fraction
    people: bool = False

    @property
    def confidence(self) -> float:
        """The chance, at least, that the interval has the true number."""
        return float(CONFIDENCE)

    @property
    def label(self) -> str:
        """What a table of facts calls it."""
        return f"{self.name} of people" if self.people else self.name

    @property
    def side(self) -> str | None:
        """For a rank that names its side, that side."""
        return self.name.partition(":")[2] if self.name.startswith("rank:") else None

    def to_dict(self) -> dict[str, Any]:
        """Return it as a certificate holds it."""
        return {
            "name": self.name,
            "value": self.value,
            "low": self.low,
            "high": self.high,
            "confidence": self.confidence,
            "epsilon": plain(self.epsilon),
            **({"counts": "people"} if self.people else {}),
        }

    @classmethod
    def from_dict(cls, told: Mapping[str, Any]) -> Fact:
        """Read what a certificate holds."""
        numbers = (told["value"], told["low"], told["high"])
        by_person = told.get("counts") == "people"
        return cls(str(told["name"]), *numbers, Fraction(told["epsilon"]), by_person)


def plausible(facts: Sequence[Fact], grid: MetricGrid | None = None) -> list[Fact]:
    """Return facts that do not contradict one another: post-processing, which costs nothing.

    A rank is not above the count, quantiles rise; one whose interval says nothing gives way to the
    others. An interval is never made smaller.
    """
    count = next((fact.value for fact in facts if fact.name == "count"), None)
    points = iter(_rising([fact for fact in facts if _is_quantile(fact)], grid))
    made = []
    for fact in facts:
        value = next(points) if _is_quantile(fact) else fact.value
        if is_rank(fact.name) and count is not None:
            value = min(value, count)
        made.append(
            replace(fact, value=value, low=min(fact.low, value), high=max(fact.high, value))
        )
    return made


def _rising(quantiles: Sequence[Fact], grid: MetricGrid | None) -> list[float]:
    """Return the values of quantiles in order; one that says nothing moves none of the others."""
    rest = sorted(fact.value for fact in quantiles if not spans(fact, grid))
    values: list[float] = []
    least = -math.inf
    for fact in quantiles:
        if spans(fact, grid):
            values.append(min([max(fact.value, least), *rest[:1]]))
        else:
            least = rest.pop(0)
            values.append(least)
    return sorted(values)


def spans(fact: Fact, grid: MetricGrid | None) -> bool:
    """Tell whether the interval of a quantile has the whole grid in it, and so says nothing.

    That is decided on released numbers, and costs nothing.
    """
    return (
        grid is not None and _is_quantile(fact) and fact.low <= grid.low and fact.high >= grid.high
    )


def untold(facts: Sequence[Fact], schema: Schema) -> str:
    """Say which quantiles epsilon was too small for; "" where each says something.

    >>> schema = Schema({"column": "pay", "low": 0, "high": 500, "step": 50}, {"job": ["cook"]})
    >>> untold([Fact("median", 300, 0, 500, Fraction(1, 10))], schema)
    'the median could not be told at this epsilon'
    """
    names = [_named(fact.name) for fact in facts if spans(fact, schema.metric.grid)]
    return f"{' and '.join(names)} could not be told at this epsilon" if names else ""


def _named(name: str) -> str:
    """Return a quantile as a sentence names it."""
    return "the median" if name == "median" else f"the {plain(100 * _quantile(name))} % quantile"


def _is_quantile(fact: Fact) -> bool:
    return fact.name != "count" and not is_rank(fact.name)


def numbers_in_words(fact: Fact, schema: Schema) -> tuple[str, str, str]:
    """Write the number, and the ends of its interval."""
    value, low, high = (
        f"{number:,}{_beyond(fact, schema, number)}" for number in (fact.value, fact.low, fact.high)
    )
    return value, low, high


def rounding_in_words(facts: Sequence[Fact], schema: Schema) -> str:
    """Say of what metrics a quantile is the true one; "" where none was released.

    >>> schema = Schema({"column": "pay", "low": 0, "high": 500, "step": 50}, {"job": ["cook"]})
    >>> "each pay is first rounded to steps of 50 between 0 and 500" in rounding_in_words(
    ...     [Fact("median", 300, 250, 350, Fraction(1, 10))], schema
    ... )
    True
    """
    grid = schema.metric.grid
    if grid is None or not any(map(_is_quantile, facts)):
        return ""
    return (
        f"For what part of the group is below a number, each {schema.metric.spoken} is first "
        f"{grid.rounding}: whatever lies beyond an end counts as that end, and the true number is "
        "that of the rounded ones."
    )


def _beyond(fact: Fact, schema: Schema, number: float) -> str:
    grid = schema.metric.grid
    return grid.beyond(number) if grid is not None and _is_quantile(fact) else ""


def in_words(facts: Sequence[Fact], schema: Schema, detector: Detector) -> str:
    """Write facts as the end of a sentence about whom a context covers; "" where there are none.

    >>> schema = Schema("pay", {"job": ["cook"]}, rows="cooks")
    >>> cost = Fraction(1, 10)
    >>> facts = [Fact("count", 1240, 1210, 1270, cost), Fact("rank", 3, 1, 33, cost)]
    >>> from pcor import LOF
    >>> in_words(facts, schema, LOF())
    'about 1,240 cooks (1,210 to 1,270), about 3 (1 to 33) of them as high'
    >>> in_words([Fact("median", 800, 750, 900, cost)], schema, LOF())
    'half are below about 800 (750 to 900)'
    """
    counted: list[str] = []
    quantiles: list[str] = []
    for fact in facts:
        if spans(fact, schema.metric.grid):
            continue
        if _is_quantile(fact):
            quantiles.append(_quantile_in_words(fact, schema, bare=bool(quantiles)))
        elif fact.name == "count":
            noun = counted_noun(fact.people, schema)
            counted.append(f"about {fact.value:,} {noun} ({_interval(fact, schema)})")
        else:
            of_whom = "of them" if counted else counted_noun(fact.people, schema)
            side = rank_side(fact.name, detector)
            counted.append(f"about {fact.value:,} ({_interval(fact, schema)}) {of_whom} as {side}")
    if (counted or quantiles) and schema.unit.chooses:
        kept = f"of each person at most {schema.unit.rows:,} {schema.noun} are counted"
    else:
        kept = ""
    parts = [", ".join(counted), " and ".join(quantiles), untold(facts, schema), kept]
    return "; ".join(filter(None, parts))


def counted_noun(people: bool, schema: Schema) -> str:
    """Return what is counted, as a sentence calls it."""
    return "people" if people else schema.noun


def _quantile_in_words(fact: Fact, schema: Schema, *, bare: bool) -> str:
    share = _quantile(fact.name)
    part = "half" if share == Fraction(1, 2) else f"{plain(100 * share)} %"
    value = amount(fact.value, schema.metric.unit) + _beyond(fact, schema, fact.value)
    return f"{part}{'' if bare else ' are'} below about {value} ({_interval(fact, schema)})"


def _interval(fact: Fact, schema: Schema) -> str:
    low, high = (amount(end, None) + _beyond(fact, schema, end) for end in (fact.low, fact.high))
    return f"{low} to {high}"
