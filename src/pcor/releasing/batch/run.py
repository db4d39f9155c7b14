"""Release many: charge, draw, store, for one record after the other, with several in the making.

Private: the table, every draw until it is stored, and how long each took. Draws run side by side,
but charges and answers follow one another in an order that the list and the number of workers fix
(``_BatchRun._draw``): neither the ledger, nor the results file, nor the progress tells which record
took long. Every draw is a ``pcor.release``, so its distribution is that of a single one by
construction.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pcor.errors import (
    BudgetExceeded,
    KeyConflict,
    NotAsked,
    ParameterError,
    PcorError,
    RecordError,
    SourceError,
    StillRunning,
    Unfinished,
    check_whole,
)
from pcor.mechanism.randomness import RandomSource
from pcor.mechanism.selection import SystemRandomSource
from pcor.releasing.answers import Answer, Outcome, answer_from, read_answer
from pcor.releasing.batch.drawers import Drawers
from pcor.releasing.batch.lookup import Lookup
from pcor.releasing.batch.plan import ManyPlan, plan_many
from pcor.releasing.batch.results import Results
from pcor.releasing.batch.results_file import ResultsFile, results_file
from pcor.releasing.budget import NO_BOOKS
from pcor.releasing.certificate import Release
from pcor.releasing.payment import OWNER, Claim, Payer, check_payer
from pcor.releasing.request import Request
from pcor.releasing.run import look, prepare, read_and_draw
from pcor.rows.table import Record, Table, check_table
from pcor.support.threads import cores

# This many records share one pass over remote rows. Public, and the same for every table.
ROUND = 64

Progress = Callable[[int, int], object]


def release_many(
    table: Table,
    records: Iterable[int | str],
    epsilon_each: object,
    *,
    ledger: Payer | None = None,
    dataset: str | None = None,
    analyst: str | None = None,
    version: str | None = None,
    budget: Payer | None = None,
    out: str | Path | None = None,
    workers: int | None = None,
    progress: Progress | None = None,
    chooser: RandomSource | None = None,
    **options: Any,
) -> Results:
    """Release one context for each of many records; the same call again goes on where it was.

    Privacy: that of ``pcor.release`` for each record; ``plan_many`` says what all of them cost
    and bound together. A record that fails does not end the run: its result is the error. When
    the budget ends, or the source fails, nothing more is charged, and what was answered before is
    still given.

    With a ledger, every answer is stored there, and asked for again it is free. With ``out``, every
    answer is also a line of that file before anybody sees it, and is never drawn again. Either
    makes a run that was killed go on by the same call.

    Args:
        table: the rows.
        records: their ids, or 0-based row numbers where the schema has no id.
        epsilon_each: the cost of each release, read as written.
        ledger: what pays, and remembers.
        dataset: with a ledger, whose budget pays; by default the schema's name.
        analyst: with a ledger, whose allotment pays; by default the owner's.
        version: with a ledger, which state of the table this is.
        budget: what pays: a ``Budget`` of this process, or a ledger as well.
        out: a file of JSON lines, ``.jsonl``, one for each record.
        workers: how many draws run side by side; by default one for each core.
        progress: called with how many records are done and how many there are.
        chooser: where random decisions come from; by default the operating system.
        **options: as for ``pcor.release``: detector, search, utility, guarantee, ...

    Raises:
        ParameterError: the list or the options cannot be; or a ledger and a budget are both given.
        TooLarge: there are more contexts, or more rows to be read, than a public limit allows.
        WriteError: ``out`` cannot be written, or holds the results of another run.
    """
    check_table(table)
    names = {"dataset": dataset, "analyst": analyst, "version": version}
    payer = _payer(ledger, budget, names)
    return release_many_planned(
        plan_many(table.schema, records, epsilon_each, **options),
        table,
        payer=payer,
        names=names,
        out=out,
        workers=workers,
        progress=progress,
        chooser=chooser,
    )


def release_many_planned(
    planned: ManyPlan,
    table: Table,
    *,
    payer: Payer,
    names: Mapping[str, str | None],
    out: str | Path | None,
    workers: int | None,
    progress: Progress | None,
    chooser: RandomSource | None,
) -> Results:
    """Carry out a plan that was made for this table's schema; as ``release_many``, which plans.

    ``names`` are the dataset, the analyst and the version, where a ledger pays.
    """
    table.schema.check_reviewed()
    private = chooser is None or chooser.private
    requests = _requests(planned, names, private=private)
    paid_by = None
    if payer.remembers:
        paid_by = {"dataset": requests[0].dataset, "analyst": requests[0].analyst}
    # Seeded draws repeat only if they are made one after the other.
    drawers = Drawers[Outcome](_workers(workers) if private else 1)

    drawn_by = SystemRandomSource() if chooser is None else chooser

    def draw(rows: Table, record: int | str) -> Outcome:
        return answer_from(lambda: read_and_draw(planned.each, rows, record, drawn_by))

    try:
        with results_file(out, requests, paid_by) as kept:
            if payer.remembers:
                kept.compare(payer, requests)
            run = _BatchRun(table, planned, requests, payer, kept, drawers, draw, progress)
            return run.carry_out()
    finally:
        drawers.close()


def _payer(ledger: Payer | None, budget: Payer | None, names: Mapping[str, str | None]) -> Payer:
    """Return what pays, under whichever of its names it was given."""
    if ledger is not None and budget is not None:
        raise ParameterError("a ledger and a budget cannot both pay; give one of them")
    payer = NO_BOOKS if budget is None else check_payer(budget)
    if ledger is not None:
        payer = check_payer(ledger, "ledger")
        if not payer.remembers:
            raise ParameterError("ledger must be a pcor.Ledger; a pcor.Budget goes with budget=")
    given = [name for name, value in names.items() if value is not None]
    if given and not payer.remembers:
        raise ParameterError(f"{given[0]} goes with a ledger")
    return payer


def _requests(
    planned: ManyPlan, names: Mapping[str, str | None], *, private: bool
) -> list[Request]:
    """Return the request of each record, once."""
    given = {name: value for name, value in names.items() if value is not None}
    paid_by: dict[str, Any] = {"dataset": planned.each.schema.name, "analyst": OWNER, **given}
    return [
        Request.of(planned.each, record, **paid_by, private=private)
        for record in dict.fromkeys(planned.records)
    ]


def _workers(given: int | None) -> int:
    if given is None:
        return cores()
    check_whole("workers", given, most=256)
    return given


@dataclass(frozen=True)
class _BatchJob:
    """A draw that is paid for and not yet stored."""

    place: int
    claim: Claim
    drawn: Future[Outcome]
    lease: ExitStack


class _BatchRun:
    """One run: where each request stands."""

    def __init__(
        self,
        table: Table,
        planned: ManyPlan,
        requests: Sequence[Request],
        payer: Payer,
        kept: ResultsFile,
        drawers: Drawers[Outcome],
        draw: Callable[[Table, int | str], Outcome],
        progress: Progress | None,
    ) -> None:
        self._lookup, self._planned, self._requests = Lookup(table), planned, requests
        self._table = self._lookup.table
        self._payer, self._kept, self._drawers, self._draw_one = payer, kept, drawers, draw
        self._progress = progress
        self._records = list(dict.fromkeys(planned.records))
        self._done: dict[int, Answer | PcorError] = {}
        self._charges = 0
        self._ended: BudgetExceeded | NotAsked | None = None

    def carry_out(self) -> Results:
        """Answer all requests; return the results in the order asked."""
        for first in range(0, len(self._requests), ROUND):
            self._round(range(first, min(first + ROUND, len(self._requests))))
        done = [self._done[place] for place in range(len(self._requests))]
        # What is unfinished is neither an answer nor a refusal that cost nothing: it has no line.
        lines = zip(self._requests, done, strict=True)
        self._kept.arrange([line for line in lines if not isinstance(line[1], Unfinished)])
        outcomes = dict(zip(self._records, map(self._outcome, done), strict=True))
        return Results(
            self._planned,
            tuple(outcomes[record] for record in self._planned.records),
            self._charges * self._planned.each.bill.epsilon,
        )

    def _round(self, places: Iterable[int]) -> None:
        """Answer some requests that share a pass over the rows."""
        open_ = [place for place in places if not self._is_answered(place)]
        if self._ended is None:
            try:
                found = self._look_up(open_)
                self._read(found)
            except SourceError as failure:
                if not self._done:
                    raise  # nothing was charged, and there is nothing to give
                self._end(failure)
            else:
                self._draw(list(found))
        for place in open_:
            if place not in self._done and self._ended is not None:
                self._refuse(place, self._ended)

    def _is_answered(self, place: int) -> bool:
        """Take the answer that is in the results file, or in the ledger, if there is one."""
        request = self._requests[place]
        written = self._kept.answers.get(request.fingerprint)
        if written is not None:
            self._finish(place, written)
            return True
        try:
            claim = self._payer.answered(request)
        except KeyConflict as conflict:
            self._refuse(place, conflict)
            return True
        if claim is not None and claim.answer is not None:
            self._keep(place, claim.answer)
            return True
        return False

    def _look_up(self, places: Sequence[int]) -> dict[int, Record]:
        """Find the records; who is not there is refused before the charge, as by ``release``."""
        self._lookup.look_up([self._records[place] for place in places])
        found = {}
        for place in places:
            try:
                found[place] = self._table.record(self._records[place])
            except RecordError as error:
                self._refuse(place, error)
        return found

    def _read(self, found: Mapping[int, Record]) -> None:
        """Read what the draws will need, before any of them is charged.

        What an engine may not hand over it may not for any record, and that ends the run. What the
        user's own code says of the rows is an answer of the record that it is said of: it is said
        again when that is drawn, and paid for.
        """
        try:
            prepare(self._planned.each, self._table, list(found.values()))
        except ParameterError:
            for place in found:
                look(self._planned.each, self._table, self._records[place])

    @property
    def _window(self) -> int:
        """How many records may be in the making; public."""
        # Some more than there are workers, so that a slow one does not leave the others idle.
        return 1 if self._drawers.workers == 1 else 2 * self._drawers.workers

    def _draw(self, places: Sequence[int]) -> None:
        """Charge, draw and store, at most ``_window`` at a time, all in the order asked.

        Whoever was charged first is stored first, and the next is charged when the one ``_window``
        places before it is stored: the order of all entries is public. A source that fails ends the
        run: the draws that were not stored are thrown away unseen, and their claims stay open.
        """
        waiting: deque[_BatchJob] = deque()
        try:
            for place in places:
                if len(waiting) == self._window:
                    self._store(waiting)
                job = None if self._ended is not None else self._start(place)
                if job is not None:
                    waiting.append(job)
            while waiting:
                self._store(waiting)
        except BaseException as error:
            for job in waiting:
                job.drawn.cancel()
                job.lease.__exit__(type(error), error, error.__traceback__)
            if not isinstance(error, SourceError):
                raise
            self._end(error)
            for job in waiting:
                self._refuse(job.place, self._payer.unfinished(error))

    def _end(self, failure: SourceError) -> None:
        """Stop the run: the source has failed."""
        self._ended = NotAsked(
            f"{failure}. This record was not asked for, and nothing was charged for it: the same "
            "call goes on once the source is back"
        )

    def _start(self, place: int) -> _BatchJob | None:
        """Charge a request and begin its draw; ``None`` where there is nothing to draw."""
        try:
            claim = self._payer.charge(self._requests[place])
        except BudgetExceeded as refusal:
            self._ended = refusal
            return None
        except (StillRunning, KeyConflict) as refusal:
            self._refuse(place, refusal)
            return None
        if claim.answer is not None:  # another process has charged it meanwhile
            self._keep(place, claim.answer)
            return None
        self._charges += claim.state == "new"
        record = self._records[place]
        with ExitStack() as lease:
            lease.enter_context(self._payer.drawing(claim))
            drawn = self._drawers.submit(lambda: self._draw_one(self._table, record))
            return _BatchJob(place, claim, drawn, lease.pop_all())  # it outlives this function

    def _store(self, waiting: deque[_BatchJob]) -> None:
        """Store the oldest draw; only then is it an answer."""
        job = waiting[0]
        outcome = job.drawn.result()
        answer = self._payer.store(job.claim, outcome)
        waiting.popleft()
        job.lease.close()
        self._keep(job.place, answer)

    def _keep(self, place: int, answer: Answer) -> None:
        self._kept.add(self._requests[place], answer)
        self._finish(place, answer)

    def _refuse(self, place: int, error: PcorError) -> None:
        self._finish(place, _bare(error))

    def _finish(self, place: int, found: Answer | PcorError) -> None:
        self._done[place] = found
        if self._progress is not None:
            self._progress(len(self._done), len(self._requests))

    def _outcome(self, found: Answer | PcorError) -> Outcome:
        if isinstance(found, PcorError):
            return found
        try:
            answered: Release = read_answer(found, self._planned.each)
        except PcorError as error:
            return _bare(error)
        return answered


def _bare(error: PcorError) -> PcorError:
    """Return an error without its traceback, which holds the table."""
    error.__context__ = error.__cause__ = None
    return error.with_traceback(None)
