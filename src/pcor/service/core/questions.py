"""Asking: from a question to a job that is paid for, and from a job to its answer.

Public: everything here. Nothing looks at a row: a question is judged by the schema, the list of
open records and the books. That a record exists is never checked here, so nobody can find it out
without paying; how long a question takes to be accepted does not depend on the record.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any

from sqlalchemy import Connection

from pcor.errors import LedgerError, ParameterError, SignatureError, StillRunning, plain
from pcor.ledger import Request
from pcor.ledger.accounts import opened_to, read_open
from pcor.ledger.charges import find_charge
from pcor.ledger.entries import lock_head
from pcor.releasing.amounts import amount
from pcor.releasing.answers import ERROR_FORMAT
from pcor.releasing.certificate import FORMAT, Release
from pcor.releasing.plan import Plan
from pcor.releasing.request import canonical, canonical_record, fingerprint
from pcor.releasing.signature import signed
from pcor.service.core.jobs import (
    Job,
    answer_of,
    count_open,
    find_call,
    find_job,
    has_charged,
    keep_visible,
    new_job,
    read_charged,
    save_call,
)
from pcor.service.core.keys import Key
from pcor.service.core.problems import Problem, unknown
from pcor.service.core.registry import Registration, find_registration, read_registrations
from pcor.service.core.schedule import next_moment
from pcor.service.core.service import Service

# Seconds that a reader waits for writers.
BRIEFLY = 0.1
# Said of a question whose file was replaced after its charge.
WAITING = (
    "the file behind this question is missing or was replaced; the question stays charged, and is "
    "answered once the dataset's owner restores the file, unless the owner closes it"
)


@dataclass(frozen=True)
class Question:
    """A question about a record.

    Attributes:
        dataset: of which people.
        record: about which record.
        epsilon: at what cost; or
        preset: small, medium or large.
        draw: another number buys another draw of the same question.
    """

    dataset: str
    record: int | str
    epsilon: str | float | None = None
    preset: str | None = None
    draw: int = 1

    @property
    def fingerprint(self) -> str:
        """The SHA-256 of the question as it was sent."""
        return fingerprint(canonical([str(getattr(self, name)) for name in _PARTS]))


_PARTS = ("dataset", "record", "epsilon", "preset", "draw")


@dataclass(frozen=True)
class PlannedQuestion:
    """A question that was checked and planned.

    Attributes:
        registration: of which version of the dataset.
        plan: what would be done.
        request: what the ledger would be asked to pay.
    """

    registration: Registration
    plan: Plan
    request: Request


def open_dataset(
    connection: Connection, key: Key, name: str, version: int | None = None
) -> Registration:
    """Return a dataset that is open to a key: to an analyst, one with an open allotment.

    So is a version that they have paid to ask of, whatever was closed since: who reads an answer
    needs what it was asked of.
    """
    # A name that no dataset can have may be one that a database refuses to look for.
    found = find_registration(connection, name, version) if name.isprintable() else None
    if found is None or not (
        _is_open(connection, key, name)
        or (version is not None and has_charged(connection, key.payer, name, version))
    ):
        raise unknown("dataset")
    return found


def open_datasets(service: Service, key: Key) -> list[Registration]:
    """Return all datasets that are open to a key."""
    names = None if key.role == "owner" else opened_to(key.name)
    with service.ledger.database.reading() as connection:
        return read_registrations(connection, names)


def _is_open(connection: Connection, key: Key, name: str) -> bool:
    return key.role == "owner" or read_open(connection, name, key.name) is not None


def plan_question(service: Service, key: Key, question: Question) -> PlannedQuestion:
    """Check a question and plan its release, from public knowledge alone. Free."""
    with service.ledger.database.reading() as connection:
        registration = open_dataset(connection, key, question.dataset)
    epsilon = _epsilon(key, registration, question)
    registration.schema.check_id(question.record)
    if not registration.is_open(question.record):
        # The same words for a record that does not exist and for one that is not open.
        raise unknown("record")
    plan = registration.plan(epsilon)
    request = Request.of(
        plan,
        question.record,
        dataset=registration.name,
        analyst=key.payer,
        version=str(registration.state),
    )
    numbered = replace(request, key=f"{request.key}-{question.draw}")
    return PlannedQuestion(registration, plan, numbered)


def _epsilon(key: Key, registration: Registration, question: Question) -> Fraction:
    if (question.epsilon is None) == (question.preset is None):
        raise ParameterError("give either preset (small, medium, large) or epsilon")
    if question.preset is not None:
        if question.preset not in registration.presets:
            raise ParameterError("preset must be small, medium or large")
        return registration.presets[question.preset]
    epsilon = amount(question.epsilon)
    least, most = registration.presets["small"], registration.largest
    # What the relaxed guarantee does not count in epsilon is limited by the number of releases
    # alone. So nobody but an owner may make them as cheap as they like.
    if key.role != "owner" and not least <= epsilon <= most:
        raise ParameterError(
            f"epsilon {plain(epsilon)} is outside the presets of this dataset; take a preset, or "
            f"anything from {plain(least)} to {plain(most)}"
        )
    return epsilon


def ask(service: Service, key: Key, question: Question, call: str) -> Job:
    """Ask a question under an Idempotency-Key; return its job, which is paid for.

    The same key and question again is free and gives the same job; one that is still being
    answered is refused with 409, as the draft for that header says. A repeat is answered from the
    row of its job alone, by one read and without a lock: it does the same while the draw runs and
    once the answer is stored, and only the sweep takes up what was left.
    """
    database = service.ledger.database
    with database.reading() as connection:
        known, paid = find_call(connection, key.payer, call, question.fingerprint)
    if known is not None and paid:
        if not known.is_shown(service.now()):
            raise running(service, known)
        _keep_visible(service, known)
        return known
    service.writers.check()
    # What was refused before, or left by a crash before its charge, is judged by today's rules.
    planned = plan_question(service, key, question)
    service.ledger.check(planned.request)  # many refusals leave no calls and jobs behind
    _check_open(service, planned.request)  # what counts is asked again with the charge
    asked = planned.registration
    service.sources.check(asked.source, asked.file_fingerprint)  # no draw, no charge
    return _charge(service, planned, question, call)


def _check_open(service: Service, request: Request) -> None:
    """Refuse a new question of somebody who has too many open ones."""
    with service.ledger.database.reading() as connection:
        if not find_charge(connection, request):
            _admit(service, request, connection)


def _admit(service: Service, request: Request, connection: Connection) -> None:
    """Refuse where as many questions of this analyst are open as may be.

    Open is what the analyst sees as running, whether it is drawn or not: so the refusal tells
    nothing that their history does not.
    """
    most = service.settings.open_questions
    if count_open(connection, request.analyst, service.now()) >= most:
        raise Problem(
            429,
            "too_many_open",
            f"you have {most} unanswered questions, and no more are allowed; ask again when one of "
            "them is answered. Nothing was charged",
            headers={"Retry-After": str(math.ceil(service.settings.delay))},
        )


def _charge(service: Service, planned: PlannedQuestion, question: Question, call: str) -> Job:
    """Write a question down and charge it, in one transaction; have it drawn; return its job."""
    request, version = planned.request, planned.registration.version
    record = canonical_record(question.record)
    job: Job

    def note(connection: Connection) -> bool:
        nonlocal job
        # The time after the lock is had, however long others held it.
        new = new_job(request, record, version, service.now())
        job, paid = save_call(connection, call, question.fingerprint, new)
        return not paid

    service.at_step("before charge")
    try:
        # Counted under the lock: of two processes that ask at once, one sees the other's.
        claim = service.ledger.charge_noted(request, note, partial(_admit, service, request))
    except StillRunning:  # a program draws for it that asked the books and not this service
        with service.ledger.database.writing() as connection:
            lock_head(connection)
            note(connection)
        return job
    service.at_step("after charge")
    if claim is not None and claim.state != "done":
        service.drawer.take(job, claim)
    return job


def running(service: Service, job: Job) -> Problem:
    """Return the refusal of a second call while the first is being answered."""
    return Problem(
        409,
        "still_running",
        "this request is being answered; look at its release. Nothing more is charged for it",
        headers=look_again(service, job),
        release=job.id,
        retry_after=seconds_to_look(service, job),
    )


def look_again(service: Service, job: Job) -> dict[str, str]:
    """Return the headers that say where and when to look."""
    return {
        "Location": f"/v1/releases/{job.id}",
        "Retry-After": str(math.ceil(seconds_to_look(service, job))),
    }


def seconds_to_look(service: Service, job: Job) -> float:
    """Return in how many seconds it is worth looking."""
    now = service.now()
    return (next_moment(job.begun, now, **service.settings.moments) - now) / 1000


def see(service: Service, key: Key, name: str) -> tuple[Job, Mapping[str, Any] | None]:
    """Return a job and, once it may be seen, its answer. Others' jobs are as if they were not."""
    job, answer = service.seen.get(name) or _look(service, name)
    if job is None or (key.role != "owner" and job.request.analyst != key.payer):
        raise unknown("release")
    return job, answer if answer is None else _signed(service, _told(service, job, answer))


def _signed(service: Service, answer: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a certificate signed, where this service signs; the books have it as it was drawn."""
    if service.signing_key is None or answer.get("format") != FORMAT:
        return answer
    # Books from before names were checked may hold half of a surrogate pair, which cannot be
    # signed: that answer was paid for, too.
    with suppress(SignatureError):
        return signed(answer, service.signing_key)
    return answer


def _told(service: Service, job: Job, answer: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a stored answer, without the record's metric where the owner does not have it told.

    It may have been stored while it was told: under another version, or by a ledger's own release.
    """
    if "metric_value" not in answer:
        return answer
    newest = service.registration(job.request.dataset)
    current = newest.version == job.version  # as most are, and then nothing more is read
    asked = newest if current else service.registration(job.request.dataset, job.version)
    if asked.settings.show_metric and newest.settings.show_metric:
        return answer
    hiding = replace(asked.settings, show_metric=False)
    return Release.from_dict(answer, hiding.plan(asked.schema, job.request.epsilon)).to_dict()


def _look(service: Service, name: str) -> tuple[Job | None, Mapping[str, Any] | None]:
    """Read a job and its answer; once it may be seen it never changes, and is remembered."""
    with service.ledger.database.reading() as connection:
        job = find_job(connection, name)
        if job is None or not job.is_shown(service.now()):
            return job, None
        answer = answer_of(connection, job)
    _keep_visible(service, job)
    if answer is not None:
        service.seen.put(name, (job, answer))
    return job, answer


def _keep_visible(service: Service, *jobs: Job) -> None:
    """Before it is told that answers may be seen, write that down: they stay so.

    All whose moment has come are written at once, so this is one write for each moment, not for
    each answer, and none for who looks again. A database that is busy or cannot write now hides no
    answer, and keeps nobody waiting for one.
    """
    now = service.now()
    if all(job.visible or not job.is_shown(now) for job in jobs):
        return
    database = service.ledger.database
    with suppress(LedgerError, Problem), database.writing(patience=BRIEFLY) as connection:
        lock_head(connection)
        keep_visible(connection, now)


def seen(service: Service, job: Job, answer: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return a job and its answer as they are sent."""
    said = job.to_public(service.now())
    if answer is None:
        state = state_of(service, job)
        return said | {
            "state": state,
            "detail": WAITING if state == "waiting" else None,
            "release": None,
            "error": None,
            "retry_after": seconds_to_look(service, job),
        }
    release, error = split(answer)
    told = {"state": "done", "detail": None, "release": release, "error": error}
    return said | told | {"retry_after": None}


def split(answer: Mapping[str, Any]) -> tuple[dict[str, Any] | None, dict[str, Any] | None]:
    """Return a certificate, or the error that is said and was paid for in its place.

    >>> split({"format": "pcor-error/1", "kind": "no_valid_context", "error": "none"})
    (None, {'kind': 'no_valid_context', 'detail': 'none'})
    """
    if answer.get("format") == ERROR_FORMAT:
        return None, {"kind": answer["kind"], "detail": answer["error"]}
    return dict(answer), None


def state_of(service: Service, job: Job) -> str:
    """Return how a question stands that has no answer to be seen: "running" or "waiting"."""
    state = job.state(service.now())
    return state if state == "waiting" else "running"


def history(service: Service, key: Key, limit: int) -> list[dict[str, Any]]:
    """Return the questions that were paid for, the newest first: one's own; an owner's are all."""
    whose = None if key.role == "owner" else key.payer
    now = service.now()
    with service.ledger.database.reading() as connection:
        found = list(read_charged(connection, analyst=whose, limit=limit))
    _keep_visible(service, *found)
    return [job.to_public(now) for job in found]


def left_for(service: Service, key: Key, registration: Registration) -> dict[str, Any]:
    """Return what a key can still spend, and about how many releases that is."""
    left = service.ledger.left(registration.name, key.payer)
    return {
        "dataset": registration.name,
        "left": plain(left),
        "about_releases_left": {
            name: int(left // epsilon) for name, epsilon in registration.presets.items()
        },
    }
