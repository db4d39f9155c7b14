"""Trust: what this process has worked out from the entries itself, compared before each charge.

Public: everything here. ``verify`` reads all entries, which takes long, so no charge waits for it.
Instead the first charge of a process checks the newest entries (all of them, where they are few)
and works out the accounts; every later one follows what was written since, and pays only where the
accounts say the same. A verification that finds damage ends all charges of its process until one
finds none.
"""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy import Connection

from pcor.errors import LedgerError, PcorError
from pcor.ledger.accounts import read_account
from pcor.ledger.database import LedgerDatabase
from pcor.ledger.entries import Head, read_entries, read_head
from pcor.ledger.verification import Totals, Verification, check_books, check_entry
from pcor.releasing.amounts import DAMAGED

# How many entries are checked before the first charge of a process, and at once later on.
RECENT = 1000


class Trust:
    """The accounts as the entries have them."""

    def __init__(self) -> None:
        self._totals: Totals | None = None
        self._begun = False
        self._damaged = False

    def learn(self, checked: Verification) -> None:
        """Take over the accounts that a verification has computed."""
        self._damaged, self._begun = not checked.ok, True
        self._totals = checked.totals if checked.ok else None

    def begin(self, database: LedgerDatabase) -> None:
        """Check the newest entries, once; refuse to go on where they are damaged."""
        if self._damaged:
            raise LedgerError(DAMAGED)
        if self._begun:
            return
        with database.reading() as connection:
            head = read_head(connection)
            if head.entries <= RECENT:
                checked = check_books(connection)
                if not checked.ok:
                    raise LedgerError(DAMAGED)
                self._totals = checked.totals
            else:
                _check_newest(connection, head)
        self._begun = True

    def check(self, connection: Connection, head: Head, places: Iterable[tuple[str, str]]) -> None:
        """Refuse accounts that are not what the entries come to. The caller holds the lock."""
        totals = self._totals
        if totals is None:
            return
        if head.entries - totals.head.entries > RECENT:
            self._totals = None  # too many new entries to be read under the lock
            return
        _follow(connection, totals)
        if totals.head != head:
            raise LedgerError(DAMAGED)
        for place in places:
            if read_account(connection, *place) != totals.accounts.get(place):
                raise LedgerError(DAMAGED)


def _follow(connection: Connection, totals: Totals) -> None:
    # All at once, here and below: a refusal must not leave a cursor open.
    for entry in list(read_entries(connection, after=totals.head.entries)):
        try:
            if any(check_entry(entry, totals.head)):
                raise LedgerError(DAMAGED)
            totals.follow(entry)
        except (PcorError, ValueError, KeyError, TypeError, AttributeError):
            raise LedgerError(DAMAGED) from None
        totals.head = Head(entry.number, entry.hash)


def _check_newest(connection: Connection, head: Head) -> None:
    """Check that the newest entries follow one another, up to the head."""
    first = head.entries - RECENT
    before: Head | None = None
    for entry in list(read_entries(connection, after=first)):
        if before is not None and any(check_entry(entry, before)):
            raise LedgerError(DAMAGED)
        before = Head(entry.number, entry.hash)
    if before != head:
        raise LedgerError(DAMAGED)
