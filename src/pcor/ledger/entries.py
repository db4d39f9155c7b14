"""Entries: everything that happened, each bound to the one before by its hash.

Public: everything here. An entry's hash covers all its columns and the hash before it, so no entry
can be changed, removed or moved without breaking the chain; ``head`` says where it ends, so the
last one cannot be removed alone. Who can write to the database can also cut the chain short or
forge it, with a head that fits: note the head elsewhere from time to time, and ``verify`` compares.

An answer has no time of its own: the time between a charge and its answer depends on private rows.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, fields
from fractions import Fraction
from itertools import islice
from typing import Any

from sqlalchemy import Connection, bindparam, insert, select, update

from pcor.errors import LedgerError, plain, sendable
from pcor.ledger import tables
from pcor.ledger.tables import START
from pcor.public.guarantee import TITLES
from pcor.releasing.amounts import DAMAGED
from pcor.releasing.request import canonical, fingerprint, sorted_json

KINDS = ("budget", "allotment", "closing", "charge", "answer", "refusal")

# How many entries are read at once.
BATCH = 500


@dataclass(frozen=True)
class Entry:
    """One event.

    Attributes:
        number: its place, from 1.
        at: when it was asked for, in UTC; empty for an answer.
        kind: budget, allotment, closing, charge, answer or refusal.
        dataset: whose budget it concerns.
        analyst: whose allotment it concerns; empty for a budget.
        key: of which request; empty for budgets, allotments and closings.
        body: what happened, as canonical JSON.
        previous: the hash of the entry before.
        hash: over all of the above.
    """

    number: int
    at: str
    kind: str
    dataset: str
    analyst: str
    key: str
    body: str
    previous: str
    hash: str = ""

    @property
    def content(self) -> dict[str, Any]:
        """What happened."""
        try:
            content: dict[str, Any] = json.loads(self.body)
        except (ValueError, TypeError, RecursionError):
            raise LedgerError(DAMAGED) from None
        return content

    def columns(self) -> dict[str, Any]:
        """Return the entry as it stands in the database."""
        return {name: getattr(self, name) for name in _COLUMNS}

    def sealed(self) -> str:
        """Return the hash that the entry must have."""
        return sealed_hash(self.columns())

    def to_dict(self) -> dict[str, Any]:
        """Return the entry for an export; its body is spelled out."""
        return self.columns() | {"body": self.content}

    def to_line(self) -> str:
        """Return the entry as a line of an export, which can be read back to the same hash."""
        return sendable(json.dumps(self.to_dict(), ensure_ascii=False)) + "\n"


def entry_in_words(entry: Entry) -> str:
    """Return what an entry says happened."""
    content = entry.content
    if entry.kind == "budget":
        said = f"Budget set to epsilon {amount_in_words(content['epsilon'])}"
        if "cap" in content:
            said += f", at most {amount_in_words(content['cap'])} for one release"
        return said
    if entry.kind == "allotment":
        return f"May spend epsilon {amount_in_words(content['epsilon'])}"
    if entry.kind == "closing":
        return f"May spend nothing more; {amount_in_words(content['spent'])} was spent"
    if entry.kind == "charge":
        guarantee = TITLES.get(content["guarantee"], content["guarantee"])
        cost = amount_in_words(content["epsilon"])
        return f"Record {content['request']['record']}: epsilon {cost}, {guarantee}"
    if entry.kind == "answer":
        answer = content["answer"]
        found = "a context" if "context" in answer else str(answer.get("kind", "an error"))
        return f"Entry {content['charge']} answered: {found.replace('_', ' ')}"
    return str(content.get("refusal", ""))


def amount_in_words(number: Fraction | str) -> str:
    """Write an amount; a long fraction is also given as a rounded decimal.

    >>> amount_in_words("1/5"), amount_in_words(Fraction(123456, 7919))
    ('0.2', '123456/7919 (about 15.59)')
    """
    exact = Fraction(number)
    text = plain(exact)
    return f"{text} (about {float(exact):.4g})" if "/" in text and len(text) >= 8 else text


_COLUMNS = tuple(field.name for field in fields(Entry))

# Statements are built once: to build one takes four times as long as to run it.
_columns = tables.entries.c
_ENTRIES = select(*(_columns[name] for name in _COLUMNS))
_LAST = _ENTRIES.order_by(_columns.number.desc()).limit(1)
_ONE = _ENTRIES.where(_columns.number == bindparam("number"))
_ALL = _ENTRIES.order_by(_columns.number).execution_options(yield_per=BATCH)
_AFTER = _ALL.where(_columns.number > bindparam("after"))
_PREVIOUS = select(_columns.previous).where(_columns.number == bindparam("number"))
_NEW = insert(tables.entries)
_HEAD = select(tables.head)
_LOCKED_HEAD = _HEAD.where(tables.head.c.id == 1).with_for_update()
_MOVE_HEAD = update(tables.head).where(tables.head.c.id == 1)


def in_lines(entries: Iterable[Entry]) -> Iterator[str]:
    """Yield the lines of an export, many at a time, because every write has a cost."""
    left = iter(entries)
    while batch := [entry.to_line() for entry in islice(left, BATCH)]:
        yield "".join(batch)


def sealed_hash(columns: Mapping[str, Any]) -> str:
    """Return the hash over all columns of an entry, the hash before it among them, but its own."""
    return fingerprint(sorted_json({name: columns[name] for name in columns if name != "hash"}))


@dataclass(frozen=True)
class Head:
    """Where the chain ends: how many entries, and the hash of the last."""

    entries: int
    hash: str

    def __str__(self) -> str:
        return f"{self.entries}:{self.hash}"


def lock_head(connection: Connection) -> Head:
    """Wait until nobody else writes, and return where the chain ends.

    Every transaction that writes calls this first, so they follow one another as if there were one
    client. A chain whose end is not where the head says is not written to.
    """
    head = _head(connection.execute(_LOCKED_HEAD).one_or_none())
    last = next((Entry(*row) for row in connection.execute(_LAST)), None)
    if head != (Head(0, START) if last is None else Head(last.number, last.hash)):
        raise LedgerError(DAMAGED)
    if last is not None and last.sealed() != last.hash:
        raise LedgerError(DAMAGED)
    return head


def read_head(connection: Connection) -> Head:
    """Return where the chain ends, without waiting for anybody."""
    return _head(connection.execute(_HEAD).one_or_none())


def _head(row: Any) -> Head:
    if row is None:
        raise LedgerError(DAMAGED)
    return Head(row.entries, row.hash)


def append(
    connection: Connection,
    head: Head,
    kind: str,
    body: Mapping[str, Any],
    *,
    at: str,
    dataset: str,
    analyst: str = "",
    key: str = "",
) -> Head:
    """Write an entry behind the head; return the new head. The caller holds the lock."""
    open_ = Entry(
        head.entries + 1, at, kind, dataset, analyst, key, canonical(body), previous=head.hash
    )
    sealed = Head(open_.number, open_.sealed())
    connection.execute(_NEW, open_.columns() | {"hash": sealed.hash})
    connection.execute(_MOVE_HEAD, {"entries": sealed.entries, "hash": sealed.hash})
    return sealed


def read_entry(connection: Connection, number: int) -> Entry:
    """Return one entry."""
    row = connection.execute(_ONE, {"number": number}).one_or_none()
    if row is None:
        raise LedgerError(DAMAGED)
    return Entry(*row)


def check_successor(connection: Connection, entry: Entry) -> None:
    """Refuse an entry that the one after it, or the head, does not know by its hash."""
    after = {"number": entry.number + 1}
    previous = connection.execute(_PREVIOUS, after).scalar_one_or_none()
    known = Head(entry.number, previous) if previous is not None else read_head(connection)
    if known != Head(entry.number, entry.hash) or entry.sealed() != entry.hash:
        raise LedgerError(DAMAGED)


def read_entries(
    connection: Connection,
    *,
    dataset: str | None = None,
    analyst: str | None = None,
    after: int | None = None,
    limit: int | None = None,
) -> Iterator[Entry]:
    """Yield entries in order, a batch at a time; ``after`` a number, at most ``limit``."""
    chosen, given = (_ALL, {}) if after is None else (_AFTER, {"after": after})
    for column, wanted in ((_columns.dataset, dataset), (_columns.analyst, analyst)):
        if wanted is not None:
            chosen = chosen.where(column == wanted)
    if limit is not None:
        chosen = chosen.limit(limit)
    for row in connection.execute(chosen, given):
        yield Entry(*row)


def read_batches(
    reading: Callable[[], AbstractContextManager[Connection]],
    *,
    dataset: str | None,
    analyst: str | None,
    after: int | None,
    limit: int | None,
) -> Iterator[Entry]:
    """Yield the same with a connection for each batch: nobody is held up by a slow reader."""
    last, left = after or 0, limit
    while left is None or left > 0:
        wanted = BATCH if left is None else min(left, BATCH)
        with reading() as connection:
            found = read_entries(
                connection, dataset=dataset, analyst=analyst, after=last, limit=wanted
            )
            batch = list(found)
        yield from batch
        if len(batch) < wanted:
            return
        last, left = batch[-1].number, None if left is None else left - len(batch)
