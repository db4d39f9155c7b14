"""Compare the answers of a release on a table with those after somebody came or went.

Private: everything; for the owner only. Nothing is sampled. What the last draw chooses from, and by
which scores, is worked out for both tables; ``divergence`` does the rest. Four ways, each exact:

- The direct mechanism by population or overlap: its candidates are COE, and each row that comes or
  goes changes the scores of the contexts that cover it by one.
- A search without random decisions (direct by another utility, widest-first) is run on the verdicts
  of the changed table: its candidates are a function of COE and public knowledge.
- A search with random decisions is replayed along every path (``exact``), where they are few.
- Under pure DP every context is a candidate, and the rows change its margin score.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from pcor.audit.changed import KnownVerdicts, Row, changed_table, verdicts
from pcor.audit.divergence import (
    Divergence,
    Numbers,
    Scores,
    deepest,
    divergence,
    divergence_of_logs,
)
from pcor.audit.exact import PATH_LIMIT, planned_log_chances
from pcor.audit.neighbours import Neighbour
from pcor.audit.owner_only import OwnerOnly
from pcor.errors import NoValidContext, ParameterError, StartError, TooLarge
from pcor.mechanism.selection import SystemRandomSource
from pcor.releasing.plan import Plan
from pcor.releasing.run import check_start, explore
from pcor.releasing.terms import margin_of
from pcor.rows.table import Table
from pcor.search.blocks import ENUMERATION_LIMIT
from pcor.search.coe import check_size
from pcor.search.margin import margin_scores
from pcor.search.utility import Scorer, chosen_context, counts_rows
from pcor.search.validity import Validity

# Contexts looked through in one go.
_AT_ONCE = 1 << 16


class AnswerComparison(Protocol):
    """The answers on one table, to be compared with those on others."""

    def against(self, change: Neighbour) -> Divergence:
        """Return how far away the answers on the changed table are."""
        ...


class AuditCase(OwnerOnly):
    """One record, one plan, one table: what every comparison starts from. Private.

    Args:
        table: the rows.
        record: the record's key.
        plan: the plan of the release.
        limit: the largest space to enumerate.
    """

    def __init__(
        self, table: Table, record: int | str, plan: Plan, limit: int = ENUMERATION_LIMIT
    ) -> None:
        self.plan = plan
        self.record = table.record(record)
        self.space = self.record.space
        check_size(self.space.size, limit)
        check_start(plan.search, self.record)
        self.validity = Validity(table, self.record, plan.detector)
        self.table = self.validity.table

    @cached_property
    def valid(self) -> NDArray[np.bool_]:
        """The verdict on each context of the space, by index."""
        return verdicts(self.validity)

    def valid_there(self, change: Neighbour) -> NDArray[np.bool_]:
        """The verdicts on the changed table."""
        valid = self.valid.copy()
        valid[change.lost] = False
        valid[change.gained] = True
        return valid

    def table_there(self, change: Neighbour) -> Table:
        """The changed table; where people are known, they still are."""
        if not self.table.schema.unit.is_person:
            return changed_table(self.table, **{change.kind: change.changed})
        if change.kind == "removed":
            return self.table.without_rows(change.taken, change.back)
        codes = np.array([row.places for row in change.changed])
        return self.table.with_person(codes, np.array([row.value for row in change.changed]))

    def totals(self, weights: Numbers) -> Numbers:
        """The summed weights of the cells that each context of the space covers, by index."""
        from pcor._kernels.lattice import all_totals

        required = self.space.indices_of(self.table.cells.cell_required).astype(np.int64)
        totals: Numbers = all_totals(required, weights, np.array(self.space.radices, np.int64))
        return totals

    def utilities(self) -> Numbers:
        """The score of each context of the space, by index, where it is a sum over rows."""
        weights = Scorer(self.plan.utility, self.table).weights
        if weights is None:
            raise ParameterError("the comparison needs the utility population or overlap")
        totals, brevity = self.totals(weights), self.plan.brevity
        return totals - brevity * self.space.every_clauses_and_items()[1] if brevity else totals

    def covered(self, indices: NDArray[np.uint64], rows: Iterable[Row]) -> Numbers:
        """How many of some rows each context covers."""
        schema, covered = self.table.schema, np.zeros(len(indices), dtype=np.int64)
        for required, times in Counter(row.required(schema, self.space) for row in rows).items():
            covered += times * self.space.covering(indices, required)
        return covered

    def moves(self, indices: NDArray[np.uint64], change: Neighbour) -> Numbers:
        """What the change adds to the utility of each context, where it counts rows."""
        chosen, schema = chosen_context(self.plan.utility), self.table.schema
        return self.moved(
            indices, change, lambda row: chosen is None or not row.mask(schema) & ~chosen.mask
        )

    def moved(
        self,
        indices: NDArray[np.uint64],
        change: Neighbour,
        counts: Callable[[Row], bool] = lambda _: True,
    ) -> Numbers:
        """How many rows each context covers more after the change, of those that count."""
        changed = self.covered(indices, filter(counts, change.changed))
        return sign(change) * changed + self.covered(indices, filter(counts, change.come))

    def compare(self, scores: Scores, far: Sequence[int] = ()) -> Divergence:
        """Compare two final draws of this plan."""
        bill = self.plan.bill
        return divergence(
            scores,
            eta=float(bill.eta),
            # Facts cost their part of epsilon on any two tables, so at the total no more than this
            # is given away by context and facts together (docs/proofs/facts.md).
            epsilon=float(bill.draw),
            mechanism=self.plan.selection,
            far=far,
        )

    def with_facts(self, ratio: float | None) -> float | None:
        """The largest log ratio of context and facts together, at most, given the context's.

        Given the context, facts cost their part of epsilon on any two tables.
        """
        return None if ratio is None else ratio + float(self.plan.bill.facts)


def sign(change: Neighbour) -> int:
    """Return 1 for rows that come and -1 for rows that go."""
    return 1 if change.kind == "added" else -1


def comparison(case: AuditCase, limit: int = PATH_LIMIT) -> AnswerComparison:
    """Return the exact way to compare the releases of a plan.

    Args:
        case: the record, the plan and the table.
        limit: the most paths of random decisions to replay.
    """
    plan = case.plan
    if not plan.guarantee.relaxed:
        return _MarginComparison(case)
    if plan.search.draws_directly and counts_rows(plan.utility):
        return _DirectComparison(case)
    if not plan.search.randomized:
        return _ListComparison(case)
    return _ReplayComparison(case, limit)


class _DirectComparison:
    """All valid contexts, by sums of cell weights.

    They stand by falling score, so that only those near the best are looked at for each change; of
    the others it matters only by how much their scores can move.
    """

    def __init__(self, case: AuditCase) -> None:
        self._case = case
        self._utilities = case.utilities()
        self._valid = np.flatnonzero(case.valid).astype(np.uint64)
        order = np.argsort(-self._utilities[self._valid], kind="stable")
        self._indices = self._valid[order]  # by falling score
        self._falling = -self._utilities[self._indices]
        self._place = np.empty_like(order)  # in that order, of each valid context
        self._place[order] = np.arange(len(order))

    def against(self, change: Neighbour) -> Divergence:
        lost, gained = change.lost, change.gained
        stays = np.ones(len(self._indices), dtype=bool)
        stays[self._place[np.searchsorted(self._valid, lost)]] = False
        end = self._end(stays, gained, change.most_moved)
        indices = np.concatenate([self._indices[:end], gained])
        here = self._utilities[indices]
        scores = Scores(
            here,
            here + self._case.moves(indices, change),
            np.arange(len(indices)) < end,
            np.concatenate([stays[:end], np.ones(len(gained), dtype=bool)]),
        )
        return self._case.compare(scores, [-move for move in self._rest(change, stays, end)])

    def _end(self, stays: NDArray[np.bool_], gained: NDArray[np.uint64], rows: int) -> int:
        """Return how many of the best to look at: the others are negligible on both sides."""
        first = int(stays.argmax()) if stays.any() else len(stays)
        best_there = np.append(-self._falling[first : first + 1], self._utilities[gained])
        if not len(stays) or not len(best_there):
            return len(stays)
        depth = deepest(len(stays) + len(gained), float(self._case.plan.bill.eta))
        # No row moves a score by more than one.
        floor = min(-int(self._falling[0]), int(best_there.max()) - rows) - depth - rows
        return int(np.searchsorted(self._falling, -floor, side="right"))

    def _rest(self, change: Neighbour, stays: NDArray[np.bool_], end: int) -> set[int]:
        """Return by how much the scores of contexts that were left out move, each amount once.

        Of a single row that is none or one: both were seen, and the others need no look.
        """
        found: set[int] = set()
        for last in range(len(stays), end, -_AT_ONCE):
            part = slice(max(end, last - _AT_ONCE), last)
            moves = self._case.moves(self._indices[part][stays[part]], change)
            found.update(np.unique(moves).tolist())
            if len(found) > change.most_moved:
                break
        return found


class _MarginComparison:
    """All contexts, by margin scores."""

    def __init__(self, case: AuditCase) -> None:
        self._case = case
        table = case.table
        self._rule, self._steepness = margin_of(case.plan.settings)
        self._region = self._rule.region_counts(table.cells, case.record.value)
        self._utilities = case.utilities()
        self._rows = case.totals(table.cells.cell_counts)
        self._inside = case.totals(self._region)
        self._all = np.arange(case.space.size, dtype=np.uint64)
        self._members = np.ones(len(self._all), dtype=bool)
        if case.space.schema.limited:
            self._members = case.space.every_admitted()
        self._here = self._scores(self._utilities, self._rows, self._inside)

    def _scores(self, utilities: Numbers, rows: Numbers, inside: Numbers) -> Numbers:
        return margin_scores(self._rule, self._steepness, utilities, rows, inside)

    def _near(self, row: Row) -> bool:
        """Whether a row is in the record's region."""
        return bool(self._rule.in_region(np.array([row.value]), self._case.record.value)[0])

    def against(self, change: Neighbour) -> Divergence:
        case = self._case
        there = self._scores(
            self._utilities + case.moves(self._all, change),
            self._rows + case.moved(self._all, change),
            self._inside + case.moved(self._all, change, self._near),
        )
        return self._case.compare(Scores(self._here, there, self._members, self._members))


class _ListComparison:
    """The candidates of a search without random decisions, run on known verdicts."""

    def __init__(self, case: AuditCase) -> None:
        self._case = case
        self._here = self._candidates(case.table, case.valid)

    def _candidates(self, table: Table, valid: NDArray[np.bool_]) -> dict[int, int]:
        """Return the scores of the candidates; none where none was found."""
        plan = self._case.plan
        known = KnownVerdicts(table, self._case.record, plan.detector, valid)
        try:
            masks, scores = explore(plan, known, SystemRandomSource())
        except NoValidContext:
            return {}
        return dict(zip(masks, scores, strict=True))

    def against(self, change: Neighbour) -> Divergence:
        table, valid = self._case.table_there(change), self._case.valid_there(change)
        try:
            there = self._candidates(table, valid)
        except StartError:  # a refusal that no release on this table gives
            there = {}
        here = self._here
        masks = list(dict.fromkeys([*here, *there]))
        return self._case.compare(
            Scores(
                np.array([here.get(m, there.get(m)) for m in masks], dtype=np.int64),
                np.array([there.get(m, here.get(m)) for m in masks], dtype=np.int64),
                np.array([m in here for m in masks], dtype=bool),
                np.array([m in there for m in masks], dtype=bool),
            )
        )


class _ReplayComparison:
    """Every path of random decisions."""

    def __init__(self, case: AuditCase, limit: int) -> None:
        self._case, self._limit = case, limit
        self._here = self._logs(case.table)

    def _logs(self, table: Table) -> dict[Any, float]:
        plan = self._case.plan
        try:
            return dict(planned_log_chances(plan, table, self._case.record.key, self._limit))
        except TooLarge:
            raise TooLarge(
                f"search {plan.search.name!r} makes too many random decisions on this table to "
                "be audited exactly; audit search 'direct' or 'widest_first', take fewer samples, "
                "or look for a lower bound with pcor.audit.sampled_epsilon"
            ) from None

    def against(self, change: Neighbour) -> Divergence:
        try:
            there = self._logs(self._case.table_there(change))
        except StartError:  # a refusal that no release on this table gives
            there = {StartError: 0.0}
        epsilon = float(self._case.plan.bill.draw)
        return divergence_of_logs(self._here, there, epsilon)
