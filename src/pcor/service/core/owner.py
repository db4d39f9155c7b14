"""What owners do: datasets, budgets and allotments, keys, questions that cannot be answered.

Private: the rows of a file that is being registered; they are read once, to see that they fit the
schema, and the refusal of one that does not quotes the schema alone. Everything done here is
written to the audit log in the same transaction, or to the ledger.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

from sqlalchemy import Connection

from pcor.errors import ParameterError, QuestionClosed
from pcor.ledger import Status
from pcor.ledger.accounts import EVERYBODY, read_account
from pcor.public.schema import Schema
from pcor.releasing.amounts import amount
from pcor.releasing.request import check_name
from pcor.releasing.settings import Settings
from pcor.rows.table import Table
from pcor.service.core.events import note
from pcor.service.core.jobs import Job, find_job, is_charged, show_job
from pcor.service.core.keys import Key, make_key, revoke_key
from pcor.service.core.problems import Problem, unknown
from pcor.service.core.registry import (
    Registration,
    read_presets,
    read_records,
    registration_sha256,
    save_registration,
)
from pcor.service.core.service import Service
from pcor.service.core.sources import SourceChanged, find_source


def register(service: Service, key: Key, name: str, given: dict[str, Any]) -> Registration:
    """Register a dataset, or a new version of one, and set its budget.

    Args:
        service: whose.
        key: of the owner.
        name: the people; a new version of the file keeps the name, and so the budget.
        given: schema, source, presets, records, budget, description and the settings of
            releases; what of the budget is not named stays as it is.
    """
    check_name("dataset", name)
    path = find_source(service.settings.data, given["source"])
    try:
        service.fingerprints.make_secret()
        file_fingerprint = service.fingerprints.of_file(path)
    except OSError:
        raise ParameterError("source cannot be read by the service") from None
    new = Registration(
        name,
        0,
        Schema.from_dict(given["schema"]),
        given["source"],
        file_fingerprint,
        Settings(**{name: given[name] for name, _, _ in Settings.options("service")}),
        read_presets(given["presets"]),
        read_records(given["records"]),
        given["description"],
    )
    new.schema.check_reviewed()
    new.check()
    new.check_records(_table(service, new))
    budget = given.get("budget")
    new.check_cap(_cap(_kept(service, name) | (budget or {})))
    with service.ledger.database.writing() as connection:
        saved = save_registration(connection, new, service.now(), replaces=given.get("replaces"))
        body = {"dataset": name, "version": saved.version, "source_state": saved.state}
        body["sha256"] = registration_sha256(connection, name, saved.version)
        note(connection, "dataset_registered", key.id, body, now=service.now())
    if budget is not None:
        set_budget(service, key, name, budget)
    return saved


def _table(service: Service, new: Registration) -> Table:
    """Return the rows that are being registered: those of the fingerprint, and no others."""
    try:
        return service.tables.get(new.source, new.file_fingerprint, new.schema)
    except SourceChanged:
        raise ParameterError(
            "source changed while it was being registered, so nothing was; register it once "
            "nobody writes to it any more"
        ) from None


def set_budget(service: Service, key: Key, dataset: str, given: dict[str, Any]) -> Status:
    """Set what all may spend together on a dataset; a cap or delta that is not named stays."""
    registration = service.registration(dataset)
    budget = _kept(service, dataset) | given
    registration.check_cap(_cap(budget))
    status = service.ledger.set_budget(
        dataset, budget["epsilon"], delta=budget.get("delta"), cap=budget.get("cap")
    )
    note_event(service, "budget_set", key, {"dataset": dataset})
    return status


def allot(service: Service, key: Key, dataset: str, analyst: str, given: dict[str, Any]) -> Status:
    """Set what an analyst may spend on a dataset; this also opens the dataset to them.

    A delta that is not named stays as it is.
    """
    service.registration(dataset)
    kept = _kept(service, dataset, analyst) | given
    status = service.ledger.allot(dataset, analyst, kept["epsilon"], delta=kept.get("delta"))
    note_event(service, "allotment_set", key, {"dataset": dataset, "analyst": analyst})
    return status


def close(service: Service, key: Key, dataset: str, analyst: str) -> Status:
    """Close a dataset to an analyst: as if it were not there, but for what was paid for."""
    service.registration(dataset)
    with service.ledger.database.reading() as connection:
        account = read_account(connection, dataset, analyst)
    if account is None or analyst == EVERYBODY:
        raise unknown("allotment")
    status = service.ledger.close_allotment(dataset, analyst)
    if not account.closed:
        note_event(service, "allotment_closed", key, {"dataset": dataset, "analyst": analyst})
    return status


def _kept(service: Service, dataset: str, analyst: str = EVERYBODY) -> dict[str, Any]:
    """Return the cap and the delta of an account, where it has them."""
    with service.ledger.database.reading() as connection:
        account = read_account(connection, dataset, analyst)
    if account is None:
        return {}
    return {"cap": account.cap, "delta": account.delta or None}


def _cap(budget: dict[str, Any]) -> Fraction | None:
    cap = budget.get("cap")
    return None if cap is None else amount(cap, "cap")


def new_key(service: Service, key: Key, *, role: str, name: str, days: int) -> tuple[Key, str]:
    """Make a key; it is returned once and kept nowhere."""
    now = service.now()
    with service.ledger.database.writing() as connection:
        made, token = make_key(connection, role=role, name=name, now=now, days=days)
        note(connection, "key_made", key.id, made.to_dict(), now=now)
    return made, token


def take_back_key(service: Service, key: Key, name: str) -> Key:
    """Revoke a key; sessions that were opened with it end at once."""
    now = service.now()
    with service.ledger.database.writing() as connection:
        revoked = revoke_key(connection, name, now)
        if revoked is None:
            raise unknown("key")
        note(connection, "key_revoked", key.id, {"id": name}, now=now)
    return revoked


def close_question(service: Service, key: Key, name: str) -> Job:
    """Close a question whose file was replaced; it stays charged, and says that it was closed.

    Nothing is paid back: a draw may have been made and lost before it was stored, and no entry of
    the ledger undoes a charge (docs/proofs/ledger.md).
    """
    with service.ledger.database.reading() as connection:
        job, _ = _find_waiting(connection, name)
    claim = service.ledger.charge(job.request)  # charged already; nobody draws meanwhile
    if claim.state == "done":
        raise _not_closable()
    closed = job

    def show(connection: Connection, stored: Mapping[str, Any]) -> None:
        nonlocal closed
        if stored.get("kind") != QuestionClosed.kind:  # another process was faster, with a draw
            raise _not_closable()
        closed = _show_closed(service, key, connection, name)

    with service.ledger.drawing(claim):
        service.ledger.store(claim, QuestionClosed(CLOSED), show)
    return closed


def _show_closed(service: Service, key: Key, connection: Connection, name: str) -> Job:
    """Let it be seen that a question is closed, and note who closed it."""
    job, stalled = _find_waiting(connection, name)  # again: it may have been taken up meanwhile
    now = service.now()
    # At once, but not before it may be said that the file was replaced.
    moment = max(now, stalled)
    show_job(connection, job, moment)
    note(connection, "question_closed", key.id, {"release": job.id}, now=now)
    return replace(job, shown=moment)


def _find_waiting(connection: Connection, name: str) -> tuple[Job, int]:
    """Return a question that waits for its file, and from when on that may be said."""
    job = find_job(connection, name)
    if job is None or not is_charged(connection, job):
        raise unknown("release")
    if job.shown is not None or job.stalled is None:
        raise _not_closable()
    return job, job.stalled


# Said in the place of an answer.
CLOSED = (
    "the owner of this dataset has closed this question: its file was replaced before an answer "
    "was stored, so nothing is released. To ask again is a new draw, and is charged"
)


def _not_closable() -> Problem:
    return Problem(
        409,
        "not_closable",
        "only a question whose file was replaced can be closed; this one has its answer, or will "
        "have it",
    )


def note_event(service: Service, kind: str, key: Key, body: dict[str, Any]) -> None:
    """Write to the audit log what somebody has done."""
    with service.ledger.database.writing() as connection:
        note(connection, kind, key.id, body, now=service.now())
