"""The trade-off: what utility and validity an epsilon buys, for each search and guarantee.

Private, and NOT PRIVATE in how it is made: the points are computed from the rows with seeded
decisions and nobody pays for them. For synthetic tables, or for the owner only.

A search is run with seeded decisions; what its final draw then gives on average is computed and not
drawn: the chances of all candidates follow from their scores. The direct mechanism makes no other
decision, so its points are what to expect, to within 1e-4.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pcor.audit.divergence import log_chances
from pcor.detectors import Detector, get_detector
from pcor.errors import NoValidContext, ParameterError, TooLarge, check_whole, counted
from pcor.mechanism.randomness import RandomSource
from pcor.public.context import Context, mask_of
from pcor.public.guarantee import PureDP
from pcor.public.schema import MOST_NUMBERED, Schema
from pcor.public.space import Space
from pcor.releasing.plan import Plan
from pcor.releasing.run import best_first, explore
from pcor.releasing.settings import Settings
from pcor.rows.table import Table
from pcor.search.best_first import BestFirst, RankedCandidates
from pcor.search.blocks import ENUMERATION_LIMIT
from pcor.search.coe import outliers
from pcor.search.direct import advice
from pcor.search.margin import MarginOrder
from pcor.search.validity import Validity
from pcor.testing import seeded

EPSILONS = ("0.01", "0.02", "0.05", "0.1", "0.2", "0.5", "1")
RECORDS = 30

INTERVAL = "90 % of the means of 2,000 resamples of the records (bootstrap)"

# Candidates that share less than this chance are left out, and more candidates than bins are
# counted by score: either moves an expectation by less than 1e-4.
_NEGLIGIBLE = 1e-5
_BINS = 4096
_DEEPEST = 50.0  # exp(-50) times 2^24 contexts is far below it

Numbers = NDArray[np.int64]
Floats = NDArray[np.float64]
Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class TradeoffLine:
    """One way to release: the settings that stay while epsilon changes."""

    name: str
    settings: Settings

    def plan(
        self, schema: Schema, epsilon: object, detector: Detector, limit: int = ENUMERATION_LIMIT
    ) -> Plan:
        """Plan a release of this line."""
        most = limit if self.settings.search == "direct" else None
        return replace(self.settings, detector=detector, limit=most).plan(schema, epsilon)


_SEARCHES = ("direct", "widest_first", "uniform", "random_walk", "depth_first", "breadth_first")
LINES = (
    *(TradeoffLine(name, Settings(search=name)) for name in _SEARCHES),
    TradeoffLine(
        "breadth_first, paper's price", Settings(search="breadth_first", accounting="paper")
    ),
    TradeoffLine("breadth_first, delta 1e-6", Settings(search="breadth_first", delta="1e-6")),
)
# With a detector that counts.
PURE_DP = TradeoffLine(f"direct, {PureDP.name}", Settings(search="direct", guarantee=PureDP.name))


@dataclass(frozen=True)
class Point:
    """What one epsilon buys on one line.

    Attributes:
        epsilon: the total cost of a release.
        line: the name of the line.
        search: where candidates come from.
        guarantee: the name of the guarantee.
        accounting: tight or paper.
        delta: the slack, 0 for most.
        detector: the rule that calls a record an outlier.
        records: how many records the means are over.
        utility: the population of the context drawn over that of the largest valid one, and 0
            where it is not valid or there is none; the mean over records.
        low: the lower end of the utility's interval (``INTERVAL``).
        high: the upper end.
        validity: the chance that a context comes back and is a valid one; the mean over records.
    """

    epsilon: float
    line: str
    search: str
    guarantee: str
    accounting: str
    delta: float
    detector: str
    records: int
    utility: float
    low: float
    high: float
    validity: float

    def to_dict(self) -> dict[str, Any]:
        """Return the point for programs."""
        return asdict(self)


def tradeoff(
    table: Table,
    records: Sequence[int | str],
    *,
    detector: str | Detector | None = None,
    epsilons: Sequence[object] = EPSILONS,
    lines: Sequence[TradeoffLine] = LINES,
    seed: int = 0,
    limit: int = ENUMERATION_LIMIT,
    progress: Progress | None = None,
) -> list[Point]:
    """Return what each epsilon buys on each line. NOT PRIVATE: for the owner only.

    Args:
        table: the rows.
        records: the keys of outliers; ``random_outliers`` finds some.
        detector: a detector or its name; by default that of the schema, or lof.
        epsilons: the total costs.
        lines: what to compare.
        seed: of all random decisions; every line and epsilon gets the same.
        limit: the largest space of contexts to look for the largest valid one in.
        progress: called with (parts done, parts in all) now and then.

    Raises:
        ParameterError: there is no record or no epsilon.
        TooLarge: the space is larger than the limit.
        NoValidContext: one of the records is an outlier nowhere.
    """
    if not records or not epsilons:
        raise ParameterError("the trade-off needs at least one record and one epsilon")
    check_space(table.schema, limit)
    rule = get_detector(detector, table.schema)
    plans = {line: [line.plan(table.schema, e, rule, limit) for e in epsilons] for line in lines}
    direct = [LINES[0].plan(table.schema, e, rule, limit) for e in epsilons]
    # A line with facts draws flatter than the first one at the same epsilon.
    paid = [plan for several in plans.values() for plan in several if plan.facts]
    flattest = min(float(plan.bill.eta) for plan in direct + paid if plan.guarantee.relaxed)
    found: dict[TradeoffLine, list[list[Outcome]]] = {line: [] for line in lines}
    for place, record in enumerate(records):
        validity = Validity(table, table.record(record), rule)
        valid = _best(validity, flattest)
        for done, line in enumerate(lines, start=place * len(lines)):
            chooser_seed = seed * 1_000_003 + place
            found[line].append(_outcomes(plans[line], validity, valid, chooser_seed))
            if progress is not None:
                progress(done + 1, len(records) * len(lines))
    return [
        _point(line, plan, [row[column] for row in found[line]])
        for line in lines
        for column, plan in enumerate(plans[line])
    ]


def check_space(schema: Schema, limit: int = ENUMERATION_LIMIT) -> None:
    """Refuse a space in which the largest valid context cannot be found for comparison."""
    check_whole("limit", limit, MOST_NUMBERED)
    size = schema.most_walked
    if size > limit:
        raise TooLarge(
            f"the trade-off compares with the largest valid context, and a record has "
            f"{counted(size)} possible ones, more than the limit of {limit:,}",
            python=advice(size, "raise limit=", "declare fewer values"),
            cli=advice(size, "raise --limit", "declare fewer values"),
        )


def random_outliers(
    table: Table, detector: str | Detector, count: int, seed: int = 0
) -> list[int | str]:
    """Return records, each an outlier in some random context; fewer where there are few."""
    numbers = random.Random(seed)  # noqa: S311 (which records to look at)
    found: list[int | str] = []
    for _, flagged in flagged_contexts(table, detector, numbers, 20 * count):
        new = [key for key in flagged if key not in found]
        found += [numbers.choice(new)] if new else []
        if len(found) == count:
            break
    if not found:
        raise NoValidContext(
            "no outlier was found in random contexts of this table; try another detector or other "
            "settings"
        )
    return found


def flagged_contexts(
    table: Table, detector: str | Detector, numbers: random.Random, looks: int
) -> Iterator[tuple[Context, list[int | str]]]:
    """Look at random contexts; yield those that have outliers, with these in row order."""
    for _ in range(looks):
        context = _random_context(table, numbers)
        if context is not None:
            flagged = outliers(table, context, detector)
            if flagged:
                yield context, flagged


def _random_context(table: Table, numbers: random.Random) -> Context | None:
    """Return a context with every value at even odds; in smaller families one of a random row's."""
    schema = table.schema
    if not schema.limited and all(a.takes_any_set for a in schema.attributes):
        bits = numbers.getrandbits(schema.width)
        fits = all(bits & own for own in schema.attribute_masks)
        return Context.from_mask(schema, bits) if fits else None
    rows = table.rows
    codes = rows.cells[rows.cell[numbers.randrange(len(rows.metric))]]
    space = Space(schema, mask_of(schema, codes))
    mask = space.mask(numbers.randrange(space.size))
    return Context.from_mask(schema, mask) if mask in space else None


class Outcome(NamedTuple):
    """What to expect of one release."""

    utility: float
    validity: float


class ScoredContexts(NamedTuple):
    """What the final draw is among, by falling score. Private."""

    scores: Numbers
    populations: Numbers  # 0 where the context is not valid


def _outcomes(
    plans: Sequence[Plan], validity: Validity, valid: ScoredContexts, seed: int
) -> list[Outcome]:
    """Return what to expect of each plan of a line, for one record."""
    largest = int(valid.populations[0])
    flattest = min(float(plan.bill.eta) for plan in plans)
    found: ScoredContexts | None = None
    outcomes = []
    for plan in plans:
        # Only paid choices depend on epsilon; other candidates serve for all.
        if found is None or plan.search.paid_choices:
            found = _candidates(plan, validity, valid, seeded(seed), flattest)
        outcomes.append(expected(found, largest, float(plan.bill.eta), plan.selection))
    return outcomes


def _candidates(
    plan: Plan, validity: Validity, valid: ScoredContexts, chooser: RandomSource, eta: float
) -> ScoredContexts:
    """Run a search; return no candidates where it finds none."""
    if plan.search.draws_directly:
        order = best_first(plan, validity)
        return _by_margin(order, validity, eta) if isinstance(order, MarginOrder) else valid
    try:
        _, listed = explore(plan, validity, chooser)
    except NoValidContext:
        listed = []
    scores = np.sort(np.array(listed, dtype=np.int64))[::-1]
    return ScoredContexts(scores, scores)


def _best(validity: Validity, eta: float) -> ScoredContexts:
    """Return the valid contexts, largest first, until the others can hardly be drawn."""
    order = BestFirst(validity, validity.table.cells.cell_counts)
    _rank_near_best(order, eta)
    scores = _scores(order)
    if not len(scores):
        raise NoValidContext("one of the records has no valid context at all; give outliers only")
    return ScoredContexts(scores, scores)


def _by_margin(order: MarginOrder, validity: Validity, eta: float) -> ScoredContexts:
    """Return all contexts by margin score, or those that can be drawn where they are too many."""
    if order.list_all():
        return ScoredContexts(order.scores, order.populations() * (order.scores > 0))
    _rank_near_best(order, eta)
    scores = _scores(order)
    return ScoredContexts(scores, validity.table.populations(order.masks()) * (scores > 0))


def _scores(order: RankedCandidates) -> Numbers:
    ranked = order.ranked()
    scores: Numbers = np.repeat([run.utility for run in ranked], [run.count for run in ranked])
    return scores.astype(np.int64)


def _rank_near_best(order: BestFirst | MarginOrder, eta: float) -> None:
    """Rank candidates until the others can hardly be drawn."""
    while not order.finished:
        order.advance()
        if order.ranked():
            best = order.ranked()[0].utility
            rest = [(r.count, eta * min(r.utility - best, 0)) for r in order.remaining()]
            # Under either mechanism no others are drawn with more chance than their weights' sum.
            if sum(count * float(np.exp(depth)) for count, depth in rest) < _NEGLIGIBLE:
                break


def expected(candidates: ScoredContexts, largest: int, eta: float, mechanism: str) -> Outcome:
    """Return what the final draw gives on average."""
    if len(candidates.scores) == 0:
        return Outcome(0.0, 0.0)
    depth = eta * (candidates.scores[0] - candidates.scores)
    depth = depth[: np.searchsorted(depth, _DEEPEST, side="right")]
    shares = candidates.populations[: len(depth)] / largest
    groups: Floats = np.array([np.ones(len(depth)), depth, shares, shares > 0])
    if len(depth) > _BINS:
        place = (depth * (_BINS / _DEEPEST)).astype(np.int64)
        groups = np.array([np.bincount(place, column) for column in groups])
        groups = groups[:, groups[0] > 0]
        groups[1] /= groups[0]
    counts, depths, gains, ones = groups
    chances = np.exp(log_chances(-depths, counts, mechanism).logs)
    total = chances @ counts
    return Outcome(float(chances @ gains / total), float(chances @ ones / total))


def _point(line: TradeoffLine, plan: Plan, outcomes: Sequence[Outcome]) -> Point:
    utilities = np.array([outcome.utility for outcome in outcomes])
    resampled = np.random.default_rng(0).choice(utilities, (2000, len(utilities))).mean(axis=1)
    low, high = np.quantile(resampled, [0.05, 0.95])
    return Point(
        epsilon=float(plan.bill.epsilon),
        line=line.name,
        search=plan.search.name,
        guarantee=plan.guarantee.name,
        accounting=plan.bill.accounting,
        delta=float(plan.bill.delta),
        detector=plan.detector.name,
        records=len(outcomes),
        utility=float(utilities.mean()),
        low=float(low),
        high=float(high),
        validity=float(np.mean([outcome.validity for outcome in outcomes])),
    )
