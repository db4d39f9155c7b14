"""The audit log: who did what to the service, each event bound to the one before by its hash.

Public to owners and auditors: everything here. Releases, charges and budgets are in the ledger;
this log has what the ledger does not: keys, registrations, recoveries, looks at private reports.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Connection, insert, select, update

from pcor.errors import LedgerError
from pcor.ledger.entries import lock_head, sealed_hash
from pcor.ledger.tables import START
from pcor.releasing.request import canonical
from pcor.service.core import tables

DAMAGED = "the audit log is damaged; restore the database from a copy"


@dataclass(frozen=True)
class Event:
    """One event.

    Attributes:
        number: its place, from 1.
        at: when, in UTC.
        kind: what kind of thing happened.
        actor: the key that did it, or "command line".
        body: what happened, as canonical JSON.
        previous: the hash of the event before.
        hash: over all of the above.
    """

    number: int
    at: str
    kind: str
    actor: str
    body: str
    previous: str
    hash: str = ""

    def sealed(self) -> str:
        """Return the hash that the event must have."""
        return sealed_hash(asdict(self))

    def to_dict(self) -> dict[str, Any]:
        """Return the event; its body is spelled out."""
        try:
            return asdict(self) | {"body": json.loads(self.body)}
        except (ValueError, TypeError, RecursionError):
            raise LedgerError(DAMAGED) from None


def note(
    connection: Connection, kind: str, actor: str, body: Mapping[str, Any], *, now: int
) -> None:
    """Write an event, in the transaction of what it speaks of. ``now`` in milliseconds."""
    lock_head(connection)  # events follow one another; the ledger's lock is the one lock there is
    head = connection.execute(select(tables.event_head)).one_or_none()
    if head is None:
        raise LedgerError(DAMAGED)
    at = datetime.fromtimestamp(now // 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    open_ = Event(head.events + 1, at, kind, actor, canonical(body), head.hash)
    sealed = open_.sealed()
    connection.execute(insert(tables.events).values(asdict(open_) | {"hash": sealed}))
    connection.execute(
        update(tables.event_head)
        .where(tables.event_head.c.id == 1)
        .values(events=open_.number, hash=sealed)
    )


def read_events(connection: Connection, *, after: int, limit: int) -> list[Event]:
    """Return events in order, after a number."""
    columns = tables.events.c
    chosen = select(tables.events).where(columns.number > after).order_by(columns.number)
    return [Event(**row._mapping) for row in connection.execute(chosen.limit(limit))]


def check_events(connection: Connection) -> list[str]:
    """Return what is wrong with the chain, in sentences."""
    problems = []
    last, before = 0, START
    for row in connection.execute(select(tables.events).order_by(tables.events.c.number)):
        event = Event(**row._mapping)
        if event.number != last + 1 or event.previous != before:
            problems.append(f"event {event.number} does not follow event {last}")
        if event.sealed() != event.hash:
            problems.append(f"event {event.number} was changed")
        last, before = event.number, event.hash
    heads = [(row.events, row.hash) for row in connection.execute(select(tables.event_head))]
    if heads != [(last, before)]:
        problems.append("the head of the audit log does not say where the events end")
    return problems
