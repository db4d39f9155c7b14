"""Release: check, spend, search, select, record. The only door through which anything leaves.

Private: the table and every intermediate result, none of which outlives the call. Public: the plan
and the context drawn. Guarantee: ``Promise``; proofs in docs/proofs.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Protocol

from pcor.best_first import BestFirst
from pcor.certificate import Release
from pcor.choosing import Chooser
from pcor.context import Context
from pcor.detectors import Detector
from pcor.errors import NoValidContext, StartError
from pcor.planning import Plan, plan
from pcor.search import Direct, Explorer, Search
from pcor.search.base import GraphSearch
from pcor.selection import SystemChooser
from pcor.table import Record, Table, covers_record
from pcor.utility import Overlap, Scorer, Utility
from pcor.validity import Validity


class Purse(Protocol):
    """Whatever pays for a release: ``pcor.Budget``, or a ledger that outlives the process."""

    def spend(self, epsilon: Fraction) -> None:
        """Spend, or raise ``BudgetExceeded`` and change nothing."""
        ...


def release(
    table: Table,
    record: int | str,
    epsilon: object,
    detector: str | Detector = "lof",
    search: str | Search = "auto",
    utility: object = "population",
    *,
    samples: int | None = None,
    start: Context | None = None,
    accounting: str = "tight",
    selection: str = "exponential",
    budget: Purse | None = None,
    chooser: Chooser | None = None,
) -> Release:
    """Release one context in which the record is an outlier.

    Privacy: (epsilon, COE)-OCDP; ``Release.promise`` says in full what that protects and what it
    does not. The budget is charged before anything is drawn, and stays charged when no valid
    context exists: "none" is an answer too.

    Args:
        table: the rows.
        record: the record's id, or its 0-based row number where the schema has no id.
        epsilon: the total cost. It is read as written: 0.2 is one fifth.
        detector: a detector or its name: lof, grubbs, histogram.
        search: a search or its name: auto, direct, uniform, random_walk, depth_first,
            breadth_first.
        utility: population, overlap, or an object with sensitivity, monotonic and score.
        samples: how many contexts a sampling search collects.
        start: a valid context to start from; by default one is found by validity alone.
        accounting: tight, or paper to reproduce its numbers.
        selection: the mechanism of the final draw: exponential or permute_and_flip.
        budget: what pays; refuses when it cannot.
        chooser: where random decisions come from; by default the operating system.
    """
    settled = plan(
        table.schema,
        epsilon,
        detector=detector,
        search=search,
        utility=utility,
        samples=samples,
        start=start,
        accounting=accounting,
        selection=selection,
    )
    queried = table.record(record)
    check_start(settled.search, queried)
    chooser = SystemChooser() if chooser is None else chooser
    if budget is not None:
        budget.spend(settled.bill.epsilon)
    mask = draw(settled, Validity(table, queried, settled.detector), chooser)
    return Release(
        queried.key, Context.from_mask(table.schema, mask), settled, private=chooser.private
    )


def check_start(search: Search, record: Record) -> None:
    """Refuse a start context without the record's own values; both are public."""
    given = search.start if isinstance(search, GraphSearch) else None
    if given is not None and not covers_record(given, record):
        raise StartError(
            "the start context does not contain the record's own value of every attribute"
        )


def draw(settled: Plan, validity: Validity, chooser: Chooser) -> int:
    """Carry out a plan: search for candidates, draw one of them. Returns its mask."""
    if isinstance(settled.search, Direct) and settled.selection == "exponential":
        weights = Scorer(settled.utility, validity.table).weights
        if weights is not None:
            return _draw_first(BestFirst(validity, weights), settled, chooser)
    scorer: Scorer | None = None

    def paid(masks: Sequence[int], mechanism: str = "exponential") -> int:
        nonlocal scorer
        if scorer is None:  # not before the start context is known: the utility may compare with it
            scorer = Scorer(_settled_utility(settled.utility, table, explorer.start), table)
        if explorer.around is not None:
            scorer.learn_near(masks, explorer.around, validity.near(explorer.around))
        return chooser.select(scorer(masks), eta=settled.bill.eta, mechanism=mechanism)

    table = validity.table
    explorer = Explorer(validity, chooser, paid, settled.search.paid_choices)
    candidates = settled.search.explore(explorer)
    return candidates[paid(candidates, settled.selection)]


def _draw_first(candidates: BestFirst, settled: Plan, chooser: Chooser) -> int:
    """Draw by the direct mechanism while its candidates are still being found, best first."""
    place = chooser.select_first(candidates, eta=settled.bill.eta)
    if place is None:
        raise NoValidContext("there is no context in which the record is an outlier")
    return candidates.mask(place)


def _settled_utility(utility: Utility, table: Table, start: int | None) -> Utility:
    """Put the found start context where the utility compares with it."""
    if isinstance(utility, Overlap) and utility.context is None and start is not None:
        return Overlap(Context.from_mask(table.schema, start))
    return utility
