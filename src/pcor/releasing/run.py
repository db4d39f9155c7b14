"""Release: check, read, spend, search, select, record. The only way out for anything.

Private: the table and every intermediate result, none of which leaves the process. Public: the plan
and the context drawn, with the facts that were paid for. Guarantee: ``Promise``; proofs in
docs/proofs. What a draw needs of the rows is read before the charge, all of it from one state of
the rows: a source that changed or fails is refused while that is free. Only a utility of the user's
own may ask a database's snapshot later.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pcor.detectors import Detector
from pcor.errors import (
    NO_CONTEXT,
    NoValidContext,
    ParameterError,
    StartError,
    others_code,
)
from pcor.mechanism.randomness import RandomSource
from pcor.mechanism.selection import SystemRandomSource
from pcor.public.context import Context
from pcor.public.guarantee import OCDP, Guarantee
from pcor.releasing.budget import NO_BOOKS
from pcor.releasing.certificate import Release
from pcor.releasing.fact_draws import FactRows, count_people, draw_facts, fact_grid, fact_ranges
from pcor.releasing.payment import Payer, check_payer, pay_and_draw
from pcor.releasing.plan import Plan
from pcor.releasing.request import Request
from pcor.releasing.settings import Settings
from pcor.releasing.terms import terms_of
from pcor.rows.table import Record, Table, check_table
from pcor.search import Explorer, Search
from pcor.search.best_first import BestFirst
from pcor.search.margin import MarginOrder
from pcor.search.utility import Scorer, Utility, awaits_start, counts_people, counts_rows
from pcor.search.validity import Validity


def release(
    table: Table,
    record: int | str,
    epsilon: object,
    detector: str | Detector | None = None,
    search: str | Search = "auto",
    utility: object = "population",
    *,
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
    budget: Payer | None = None,
    chooser: RandomSource | None = None,
) -> Release:
    """Release one context in which the record is an outlier.

    Privacy: (epsilon, COE)-OCDP, or with ``guarantee="dp"`` epsilon-differential privacy for
    everyone but the record; ``Release.promise`` says in full what that protects and what it does
    not. The budget is charged before anything is drawn, and stays charged when no valid
    context exists: "none" is an answer too. Rows that lie elsewhere are read before the charge, and
    refused if they are not those that the table was made of.

    Args:
        table: the rows.
        record: the record's id, or its 0-based row number where the schema has no id.
        epsilon: the total cost. It is read as written: 0.2 is one fifth.
        detector: a detector or its name: lof, grubbs, histogram, tail, neighbourhood, rare_bin. By
            default what the schema declares under [release]; else lof, or tail with dp.
        search: a search or its name: auto, direct, widest_first, uniform, random_walk,
            depth_first, breadth_first.
        utility: population, overlap, people (each once, whatever rows they have), or an object
            with sensitivity, monotonic and score.
        samples: how many contexts a sampling search collects: up to a million, 100,000 for
            random_walk, 10,000 for depth_first and breadth_first.
        start: a valid context to start from; by default one is found by validity alone.
        accounting: tight, or paper to reproduce its numbers.
        selection: the mechanism of every paid draw: exponential or permute_and_flip. By default
            permute_and_flip, no draw of which is worse at that price; exponential with a delta,
            and with the paper's accounting.
        guarantee: ocdp, or dp: for everyone but the record, with a detector that counts (tail,
            neighbourhood, rare_bin). The context is then likely a valid one if the record
            stands out somewhere by a margin (``Plan.needed``); if not, nothing is said of it.
        delta: an additive slack, for searches with many paid choices; buys larger exponents.
        steepness: under dp, how many people of utility one person of margin is worth.
        limit: the largest space of contexts to draw from directly (2^24), and up to which auto does
            so (2^22); with lof 2^30 for both; dp always does. Beyond 2^24 time and memory depend on
            the rows.
        brevity: how many rows of utility each value, range, group or exception that the context's
            words name is worth: the more, the shorter the sentence. It costs nothing.
        facts: numbers about the context drawn, ``["count", "rank", "median", "quantile:0.95"]``,
            paid from the same epsilon: ``Release.facts``. Quantiles need a grid in the schema,
            ``low``, ``high`` and ``step`` of the metric.
        facts_share: which part of epsilon the facts have, all together; 1/3 by default.
        show_metric: whether the sentence and the certificate tell the record's own metric, and on
            which side its detector looks. Both are public with the record.
        settings: all of the above from the detector on, in one value, in the place of their names.
        budget: what pays, a ``Budget`` or a ``Ledger``; refuses when it cannot. A ledger pays from
            the budget of the dataset that the schema names, and the same again is free.
        chooser: where random decisions come from; by default the operating system.

    Raises:
        ParameterError: the options do not go together, or not with the schema.
        TooLarge: there are more contexts, or more rows to be read, than a public limit allows.
        RecordError: the record does not exist, or its id is not unique; nothing is charged.
        SourceError: the rows cannot be read, or changed since the table was made.
        BudgetExceeded: the budget cannot pay; nothing was spent.
        StartError: the start context does not contain the record, or is not valid; it is charged.
        NoValidContext: the record is an outlier nowhere, or nowhere that was looked; it is charged.
    """
    check_table(table)
    payer = NO_BOOKS if budget is None else check_payer(budget)
    chosen = Settings.of(
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
    )
    plan = chosen.plan(table.schema, epsilon)
    return release_planned(plan, table, record, budget=payer, chooser=chooser)


def release_planned(
    plan: Plan,
    table: Table,
    record: int | str,
    *,
    budget: Payer = NO_BOOKS,
    chooser: RandomSource | None = None,
) -> Release:
    """Carry out a plan that was made for this table's schema; as ``release`` does, which plans."""
    chooser = SystemRandomSource() if chooser is None else chooser
    request = budget.request(plan, record, private=chooser.private)
    return release_paid(budget, request, plan, table, record, chooser)


def release_paid(
    payer: Payer,
    request: Request,
    plan: Plan,
    table: Table,
    record: int | str,
    chooser: RandomSource,
) -> Release:
    """Release what was planned, as a request that a payer is charged for."""
    if plan.schema != table.schema:
        raise ParameterError("the plan was made for another schema than the table's; plan again")
    table.schema.check_reviewed()
    return pay_and_draw(
        payer,
        request,
        plan,
        lambda: look(plan, table, record),
        lambda looked_at: release_from(plan, looked_at, chooser),
    )


@dataclass(frozen=True, repr=False)
class LookedAt:
    """What was read for a release. Private.

    Attributes:
        validity: the verdicts; or what the user's own detector had to say against the rows.
        facts: what the facts need of the same rows.
    """

    validity: Validity | ParameterError
    facts: FactRows


def look(plan: Plan, table: Table, record: int | str) -> LookedAt:
    """Look up the record and read all that its release needs. Before the charge; draws nothing.

    Raises what is about the source and the table as a whole: the record is not there, the rows
    changed or cannot be read, they have more values than an engine may hand over. What the user's
    own code says of the rows is an answer, and waits for the charge.
    """
    queried = table.record(record)
    _read_for_utility(plan, table)
    held = table.holding(queried)
    validity: Validity | ParameterError
    try:
        if plan.facts:
            _prepare(plan, held, [queried])
        validity = Validity(held, queried, plan.detector)
        validity.read()
    except ParameterError as error:
        validity = error
    return LookedAt(validity, FactRows.read(plan.facts, held, queried))


def prepare(plan: Plan, table: Table, records: Sequence[Record]) -> None:
    """Read what ``look`` will need for several records, in as few passes as the engine can."""
    _read_for_utility(plan, table)
    _prepare(plan, table, records)


def _prepare(plan: Plan, table: Table, records: Sequence[Record]) -> None:
    """Read what verdicts and facts need together, so that one pass over the rows may do."""
    ranges = fact_ranges(plan.facts, records)
    with others_code(f"the detector {plan.detector.name!r}"):
        table.prepare(records, plan.detector, ranges, fact_grid(plan.facts))
    if count_people(plan.facts):
        table.read_people()


def _read_for_utility(plan: Plan, table: Table) -> None:
    if counts_people(plan.utility):
        table.check_people_known()
    elif not counts_rows(plan.utility):
        table.read_all()  # the user's own may look at any of the rows


def release_from(plan: Plan, looked_at: LookedAt, chooser: RandomSource) -> Release:
    """Draw from what was read. After the charge, if there is one: every refusal is an answer."""
    validity = looked_at.validity
    if isinstance(validity, ParameterError):
        raise validity
    table, record = validity.table, validity.record
    # Whether a record is in a context tells its values, and whoever may name any record could read
    # them off the refusals, were they free.
    check_start(plan.search, record)
    mask = draw(plan, validity, chooser)
    return Release(
        record.key,
        Context.from_mask(table.schema, mask),
        plan,
        private=chooser.private,
        engine=table.engine,
        metric_value=record.value if plan.settings.show_metric else None,
        facts=draw_facts(plan.facts, looked_at.facts, mask, chooser),
    )


def read_and_draw(plan: Plan, table: Table, record: int | str, chooser: RandomSource) -> Release:
    """Release what was planned and paid for elsewhere."""
    return release_from(plan, look(plan, table, record), chooser)


def check_start(search: Search, record: Record) -> None:
    """Refuse a start context without the record's own values."""
    if search.start is not None and record.space.fixed & ~search.start.mask:
        raise StartError(
            "the start context does not contain the record's own value of every attribute; add "
            "them, or leave start (--start) out to have one found"
        )


def draw(plan: Plan, validity: Validity, chooser: RandomSource) -> int:
    """Carry out a plan: search for candidates, draw one of them. Returns its mask."""
    eta = plan.bill.eta
    ordered = best_first(plan, validity)
    if ordered is not None:
        place = chooser.select_first(ordered, eta=eta, mechanism=plan.selection)
        if place is None:
            raise NoValidContext(NO_CONTEXT)
        return ordered.mask(place)
    candidates, scores = explore(plan, validity, chooser)
    return candidates[chooser.select(scores, eta=eta, mechanism=plan.selection)]


def best_first(plan: Plan, validity: Validity) -> BestFirst | MarginOrder | None:
    """Return the candidates of the direct mechanism best first, where its utility allows it.

    The draw may then end before the space does; its distribution is the same. What decides is
    public: the search and the utility.
    """
    if not plan.search.draws_directly:
        return None
    weights = Scorer(plan.utility, validity.table).weights
    return terms_of(plan.guarantee).candidates(plan, validity, weights)


def explore(plan: Plan, validity: Validity, chooser: RandomSource) -> tuple[list[int], list[int]]:
    """Search for candidates; return them with their scores."""
    table = validity.table
    scorer: Scorer | None = None

    def score(masks: Sequence[int]) -> list[int]:
        nonlocal scorer
        if scorer is None:  # not before the start context is known: the utility may compare with it
            utility = _resolved_utility(plan.utility, table, explorer.start)
            scorer = Scorer(utility, table, plan.brevity)
        if explorer.around is not None and explorer.space.binary:
            scorer.learn_neighbours(explorer.around)
        return scorer(masks)

    def paid(masks: Sequence[int]) -> int:
        return chooser.select(score(masks), eta=plan.bill.step_eta, mechanism=plan.selection)

    explorer = Explorer(validity, chooser, paid, plan.search.paid_choices)
    candidates = plan.search.explore(explorer)
    return candidates, score(candidates)


def _resolved_utility(utility: Utility, table: Table, start: int | None) -> Utility:
    """Put the found start context where the utility compares with it."""
    if awaits_start(utility) and start is not None:
        return utility.compared_with(Context.from_mask(table.schema, start))
    return utility
