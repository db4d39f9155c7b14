"""Jobs: each question as it was asked, from before its charge until after its answer.

Public: everything here; a job has no answer, only when one may be seen. A job is written before it
is charged, so that whatever is charged can be finished, also by another process, also years later:
it holds the request word for word and which registration it was asked of.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    ScalarSelect,
    Select,
    and_,
    bindparam,
    func,
    insert,
    select,
    update,
)

from pcor.errors import KeyConflict, plain
from pcor.ledger import Request
from pcor.ledger import tables as books
from pcor.ledger.charges import find_answer
from pcor.service.core import tables

# So many Idempotency-Keys are kept for one question, once it is paid for.
MOST_CALLS = 16


@dataclass(frozen=True)
class Job:
    """A question.

    Attributes:
        id: its name in URLs; random.
        version: of which registration it was asked.
        request: what the ledger is asked to pay for.
        record: the queried record.
        asked: when, for the first time or for the last time before its charge; milliseconds since
            1970.
        begun: when it was last taken up: asked, or found again after a crash. The moments at which
            its answer may be seen are counted from here.
        shown: from when on its answer may be seen, once there is one.
        stalled: from when on it may be said that its file is not the registered one, while that is
            so: one of the moments at which its answer might have been seen.
        visible: whether the moment ``shown`` is known to have come. Then the clock is not asked any
            more: it may be set back, and what was seen must stay.
    """

    id: str
    version: int
    request: Request
    record: int | str
    asked: int
    begun: int
    shown: int | None = None
    stalled: int | None = None
    visible: bool = False

    def is_shown(self, now: int) -> bool:
        """Whether its answer may be seen."""
        return self.visible or (self.shown is not None and self.shown <= now)

    def state(self, now: int) -> str:
        """Return what may be said: "done", "running", or "waiting" for its file."""
        if self.is_shown(now):
            return "done"
        # Not before a moment at which its answer could have been seen. There, that it is not seen
        # tells whether it was drawn in time; so this adds no more than that a file was replaced.
        return "waiting" if self.stalled is not None and self.stalled <= now else "running"

    def to_public(self, now: int) -> dict[str, Any]:
        """Return the question and whether it is answered; nothing tells how long it took."""
        return {
            "id": self.id,
            "state": self.state(now),
            "dataset": self.request.dataset,
            "version": self.version,
            "record": self.record,
            "epsilon": plain(self.request.epsilon),
            "guarantee": self.request.guarantee,
            "analyst": self.request.analyst,
            "asked": self.asked // 1000,
        }


def find_call(
    connection: Connection, analyst: str, key: str, fingerprint: str
) -> tuple[Job | None, bool]:
    """Return the job that an Idempotency-Key stands for, and whether it is paid for.

    Another body is refused. It is one statement, and the same one whether the answer is there or
    not: how long a repeat takes must not tell.
    """
    row = connection.execute(_CALL, {"analyst": analyst, "key": key}).one_or_none()
    if row is None:
        return None, False
    if row.fingerprint != fingerprint:
        raise KeyConflict(
            "this Idempotency-Key stands for another request; repeat that one unchanged, or take a "
            "new key. Nothing was spent"
        )
    return _job(row), row.charge is not None


def find_job(connection: Connection, name: str) -> Job | None:
    """Return a job by its id."""
    row = connection.execute(_JOB, {"id": name}).one_or_none()
    return None if row is None else _job(row)


def find_question(connection: Connection, request: Request) -> Job | None:
    """Return the job of the same question by the same analyst, if it was asked before."""
    names = {"dataset": request.dataset, "analyst": request.analyst, "key": request.key}
    row = connection.execute(_QUESTION, names).one_or_none()
    return None if row is None else _job(row)


def save_call(connection: Connection, key: str, fingerprint: str, new: Job) -> tuple[Job, bool]:
    """Bind an Idempotency-Key to a question; return its job, and whether it is paid for.

    A job that is not charged yet is asked anew: its time, and the registration it is asked of, are
    those of now. A key whose question has come to mean another one meanwhile is refused. Of those
    that repeat a question which is paid for, a few are kept: each is answered, for nothing. The
    caller holds the lock.
    """
    known, _ = find_call(connection, new.request.analyst, key, fingerprint)
    job = find_question(connection, new.request) if known is None else known
    paid = job is not None and is_charged(connection, job)
    if job is None:
        job = new
        connection.execute(_NEW_JOB, _row(new))
    elif not paid:
        if job.request != new.request:
            raise KeyConflict(
                "this dataset was registered anew since this Idempotency-Key was first sent, and "
                "the same words ask for something else now; take a new key. Nothing was spent"
            )
        job = replace(new, id=job.id)
        connection.execute(update(tables.jobs).where(tables.jobs.c.id == job.id).values(_row(job)))
    if known is None and not (paid and _has_many_calls(connection, job)):
        call = {"analyst": new.request.analyst, "key": key}
        connection.execute(_NEW_CALL, call | {"fingerprint": fingerprint, "job": job.id})
    return job, paid


def _has_many_calls(connection: Connection, job: Job) -> bool:
    """Tell whether so many keys stand for a question that no more are kept: repeats are free."""
    calls = tables.calls.c
    some = select(calls.key).where(calls.analyst == job.request.analyst, calls.job == job.id)
    return len(connection.execute(some.limit(MOST_CALLS)).all()) == MOST_CALLS


def new_job(request: Request, record: int | str, version: int, asked: int) -> Job:
    """Return a question with a name that nobody can guess."""
    return Job(secrets.token_urlsafe(15), version, request, record, asked, asked)


def begin_job(connection: Connection, job: Job, now: int) -> Job:
    """Count the moments of a job from now on: it is taken up again."""
    chosen = update(tables.jobs).where(tables.jobs.c.id == job.id)
    connection.execute(chosen.values(begun=now, stalled=None))
    return replace(job, begun=now, stalled=None)


def stall_job(connection: Connection, job: Job, moment: int) -> bool:
    """Write down from when on it may be said that a job's file was replaced; False if it is."""
    columns = tables.jobs.c
    still_open = (columns.id == job.id, columns.shown.is_(None), columns.stalled.is_(None))
    chosen = update(tables.jobs).where(*still_open).values(stalled=moment)
    return connection.execute(chosen).rowcount == 1


def count_waiting(connection: Connection) -> int:
    """Return how many questions wait for a file that was replaced."""
    columns = tables.jobs.c
    waiting = (columns.shown.is_(None), columns.stalled.is_not(None))
    chosen = select(func.count()).select_from(tables.jobs).where(*waiting)
    return connection.execute(chosen).scalar_one()


def show_job(connection: Connection, job: Job, moment: int) -> None:
    """Write down from when on an answer may be seen; the first who does decides."""
    connection.execute(_SHOW, {"of_job": job.id, "shown": moment})


def keep_visible(connection: Connection, now: int) -> None:
    """Write down all answers that may be seen by now; the caller holds the lock."""
    columns = tables.jobs.c
    due = update(tables.jobs).where(columns.visible == 0, columns.shown <= now)
    connection.execute(due.values(visible=1))


def answer_of(connection: Connection, job: Job) -> Mapping[str, Any] | None:
    """Return the stored answer of a job, if there is one."""
    claim = find_answer(connection, job.request)
    return None if claim is None else claim.answer


def read_charged(
    connection: Connection, *, analyst: str | None = None, limit: int
) -> Iterator[Job]:
    """Yield jobs that were paid for, the newest first: an analyst's, or everybody's."""
    chosen = _charged()
    if analyst is not None:
        chosen = chosen.where(tables.jobs.c.analyst == analyst)
    newest = chosen.order_by(tables.jobs.c.asked.desc(), tables.jobs.c.id).limit(limit)
    for row in connection.execute(newest):
        yield _job(row)


def read_open(connection: Connection, *, limit: int) -> Iterator[Job]:
    """Yield jobs that were paid for and whose answer has no moment yet, in turns.

    Everybody's oldest come first, then everybody's second, and so on: where there are more than the
    limit, nobody's many keep another's few from being taken up.
    """
    jobs = tables.jobs.c
    turn = func.row_number().over(partition_by=jobs.analyst, order_by=(jobs.asked, jobs.id))
    chosen = _charged().where(jobs.shown.is_(None)).order_by(turn, jobs.asked, jobs.id)
    for row in connection.execute(chosen.limit(limit)):
        yield _job(row)


def count_open(connection: Connection, analyst: str, now: int) -> int:
    """Return how many questions an analyst has paid for whose answers cannot be seen yet.

    Whether an answer is drawn makes no difference: only what the analyst sees of each does.
    """
    return connection.execute(_OPEN, {"analyst": analyst, "now": now}).scalar_one()


def is_charged(connection: Connection, job: Job) -> bool:
    """Whether a job was paid for."""
    return connection.execute(_PAID, {"id": job.id}).first() is not None


def has_charged(connection: Connection, analyst: str, dataset: str, version: int) -> bool:
    """Whether an analyst has paid for a question about a version of a dataset."""
    columns = tables.jobs.c
    chosen = _charged().where(
        columns.analyst == analyst, columns.dataset == dataset, columns.version == version
    )
    return connection.execute(chosen.limit(1)).first() is not None


def _charged() -> Select[Any]:
    return select(tables.jobs).join(books.requests, _same())


def _same() -> ColumnElement[bool]:
    """Return the condition that a job's request is the one in the books."""
    jobs, paid = tables.jobs.c, books.requests.c
    return and_(jobs.dataset == paid.dataset, jobs.analyst == paid.analyst, jobs.key == paid.key)


# Statements that every question needs, built once: to build one takes longer than to run it.
_jobs, _calls = tables.jobs.c, tables.calls.c
_CALL = (
    select(tables.jobs, _calls.fingerprint, books.requests.c.charge)
    .join(tables.calls, _calls.job == _jobs.id)
    .outerjoin(books.requests, _same())
    .where(_calls.analyst == bindparam("analyst"), _calls.key == bindparam("key"))
)
_JOB = select(tables.jobs).where(_jobs.id == bindparam("id"))
_QUESTION = select(tables.jobs).where(
    *(_jobs[name] == bindparam(name) for name in ("dataset", "analyst", "key"))
)
_PAID = _charged().where(_jobs.id == bindparam("id"))
_NEW_JOB, _NEW_CALL = insert(tables.jobs), insert(tables.calls)
_SHOW = update(tables.jobs).where(_jobs.id == bindparam("of_job"), _jobs.shown.is_(None))


def _count(chosen: Select[Any]) -> ScalarSelect[int]:
    own = chosen.with_only_columns(func.count()).where(_jobs.analyst == bindparam("analyst"))
    return own.scalar_subquery()


_COMING = select(tables.jobs).where(_jobs.shown > bindparam("now"), _jobs.visible == 0)
_OPEN = select(_count(_charged().where(_jobs.shown.is_(None))) + _count(_COMING))


def _row(job: Job) -> dict[str, Any]:
    request = job.request
    return {
        "id": job.id,
        "dataset": request.dataset,
        "version": job.version,
        "analyst": request.analyst,
        "key": request.key,
        "epsilon": str(request.epsilon),
        "delta": str(request.delta),
        "guarantee": request.guarantee,
        "body": request.body,
        "record": json.dumps(job.record),
        "asked": job.asked,
        "begun": job.begun,
        "shown": job.shown,
        "stalled": job.stalled,
        "visible": int(job.visible),
    }


def _job(row: Any) -> Job:
    request = Request(
        row.dataset,
        row.analyst,
        row.key,
        Fraction(row.epsilon),
        Fraction(row.delta),
        row.guarantee,
        row.body,
    )
    record = json.loads(row.record)
    times = (row.asked, row.begun, row.shown, row.stalled)
    return Job(row.id, row.version, request, record, *times, visible=bool(row.visible))
