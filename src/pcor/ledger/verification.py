"""Verify: work the books out again from the entries, and say where they disagree.

Public: everything here. Found are: a changed byte in any column of an entry, a head, an account or
a request; an entry that was removed, also the last; entries out of order; a charge beyond the
budget of its time, or to an allotment that was closed; an answer without a charge. Not found is a
chain whose end was cut off or forged together with all that follows from it (head, accounts,
requests), unless a head noted earlier is given; nor a change to ``pcor_running`` or
``pcor_refusals``, which are evidence of nothing. The database's own structures are checked, too
(``integrity``).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from sqlalchemy import Connection, select

from pcor.errors import BudgetExceeded, LedgerError, ParameterError
from pcor.ledger import tables
from pcor.ledger.accounts import EVERYBODY, ZERO, Account, payers
from pcor.ledger.entries import KINDS, Entry, Head, read_entries
from pcor.ledger.integrity import check_file, check_lookup
from pcor.ledger.tables import START
from pcor.releasing.amounts import read_amount
from pcor.releasing.request import Request, fingerprint, sorted_json

# At most this many problems are listed.
MOST_PROBLEMS = 100


@dataclass(frozen=True)
class Verification:
    """The result of a verification.

    Attributes:
        problems: what does not agree, in sentences.
        totals: the accounts as the entries have them.
    """

    problems: tuple[str, ...]
    totals: Totals = field(repr=False)

    @property
    def ok(self) -> bool:
        """Whether everything agrees."""
        return not self.problems

    @property
    def head(self) -> Head:
        """Where the chain of entries ends."""
        return self.totals.head

    def __str__(self) -> str:
        if self.ok:
            return f"the ledger is whole: {self.head.entries} entries; head {self.head}"
        return "\n".join(["the ledger is NOT whole:", *(f"- {p}" for p in self.problems)])


@dataclass
class Totals:
    """The accounts as they follow from the entries so far."""

    head: Head = field(default_factory=lambda: Head(0, START))
    accounts: dict[tuple[str, str], Account] = field(default_factory=dict)

    def follow(self, entry: Entry) -> None:
        """Apply an entry; raise where it contradicts the entries before it."""
        if entry.kind not in KINDS:
            raise ParameterError("its kind is unknown")
        content = entry.content
        if entry.kind in ("budget", "allotment"):
            self._ceiling(entry, content)
        elif entry.kind == "closing":
            self._closing(entry, content)
        elif entry.kind == "charge":
            self._charge(entry, content)

    def _ceiling(self, entry: Entry, content: dict[str, Any]) -> None:
        epsilon, delta = read_amount(content["epsilon"]), read_amount(content["delta"])
        cap = content.get("cap")
        place = (entry.dataset, entry.analyst)
        account = self.accounts.get(place) or Account(*place, ZERO)
        self.accounts[place] = account.with_ceiling(
            epsilon, delta, None if cap is None else read_amount(cap)
        )

    def _closing(self, entry: Entry, content: dict[str, Any]) -> None:
        place = (entry.dataset, entry.analyst)
        account = self.accounts.get(place)
        if account is None or account.closed or entry.analyst == EVERYBODY:
            raise ParameterError("it closes an allotment that was not open")
        if read_amount(content["spent"]) != account.spent:
            raise ParameterError("it says that something else was spent")
        self.accounts[place] = replace(account, closed=True)

    def _charge(self, entry: Entry, content: dict[str, Any]) -> None:
        name = (entry.dataset, entry.analyst, entry.key)
        costs = read_amount(content["epsilon"]), read_amount(content["delta"])
        request = Request(*name, *costs, content["guarantee"], body="")  # its cost is what counts
        places = payers(entry.dataset, entry.analyst)
        if not all(place in self.accounts for place in places):
            raise ParameterError("it charges an account that was not opened")
        for place in places:
            if self.accounts[place].closed:
                raise ParameterError("it charges an allotment that was closed")
            self.accounts[place].check(request)
        for place in places:
            self.accounts[place] = self.accounts[place].charged(*costs, request.guarantee)


@dataclass
class _Books(Totals):
    """All books as they follow from the entries so far."""

    requests: dict[tuple[str, str, str], dict[str, Any]] = field(default_factory=dict)
    charges: dict[int, tuple[str, str, str]] = field(default_factory=dict)

    def follow(self, entry: Entry) -> None:
        """Apply an entry; raise where it contradicts the entries before it."""
        if entry.kind == "answer":
            self._answer(entry, entry.content)
        else:
            super().follow(entry)

    def _charge(self, entry: Entry, content: dict[str, Any]) -> None:
        name = (entry.dataset, entry.analyst, entry.key)
        if name in self.requests:
            raise ParameterError("its key was charged before")
        self.requests[name] = {
            "fingerprint": fingerprint(sorted_json(content["request"])),
            "charge": entry.number,
            "answer": None,
        }
        self.charges[entry.number] = name
        super()._charge(entry, content)

    def _answer(self, entry: Entry, content: dict[str, Any]) -> None:
        name = self.charges.get(content["charge"])
        if name != (entry.dataset, entry.analyst, entry.key):
            raise ParameterError("it answers a request that was not charged")
        if self.requests[name]["answer"] is not None:
            raise ParameterError("it answers a request a second time")
        self.requests[name]["answer"] = entry.number


def check_books(connection: Connection, noted: Head | None = None) -> Verification:
    """Check everything in one view of the database."""
    books = _Books()
    problems: list[str] = []
    for problem in _problems(connection, books, noted):
        problems.append(problem)
        if len(problems) == MOST_PROBLEMS:
            problems.append("and perhaps more")
            break
    return Verification(tuple(problems), Totals(books.head, books.accounts))


def _problems(connection: Connection, books: _Books, noted: Head | None) -> Iterator[str]:
    yield from check_file(connection)
    noted_found = noted is None or noted.entries == 0
    for entry in read_entries(connection):
        try:
            yield from check_entry(entry, books.head)
            books.head = Head(entry.number, entry.hash)
            noted_found = noted_found or books.head == noted
            books.follow(entry)
        except (BudgetExceeded, ParameterError, LedgerError) as error:
            yield f"entry {entry.number} ({entry.kind}) cannot have happened: {error}"
        except (ValueError, KeyError, TypeError, AttributeError):
            yield f"entry {entry.number} ({entry.kind}) cannot be read"
    if not noted_found:
        yield "the head that was noted earlier is not in the chain: entries before it were changed"
    yield from _against_tables(connection, books)


def check_entry(entry: Entry, before: Head) -> Iterator[str]:
    """Yield what is wrong with an entry and its link to the one before."""
    number = entry.number
    if number != before.entries + 1:
        yield f"entry {before.entries + 1} is missing before entry {number}"
    elif entry.previous != before.hash:
        yield f"entry {number} does not follow the entry before it"
    if entry.sealed() != entry.hash:
        yield f"entry {number} was changed: its hash is not that of its content"


def _against_tables(connection: Connection, books: _Books) -> Iterator[str]:
    heads = [tuple(row) for row in connection.execute(select(tables.head))]
    if heads != [(1, books.head.entries, books.head.hash)]:
        yield "the head does not say where the entries end"
    accounts = {place: account.to_row() for place, account in books.accounts.items()}
    yield from _compare(connection, tables.accounts, 2, accounts, "account")
    requests = {
        name: dict(zip(("dataset", "analyst", "key"), name, strict=True)) | row
        for name, row in books.requests.items()
    }
    yield from _compare(connection, tables.requests, 3, requests, "request")
    yield from check_lookup(connection, tables.accounts, accounts, "account")
    yield from check_lookup(connection, tables.requests, requests, "request")
    waiting = {row["charge"] for row in books.requests.values() if row["answer"] is None}
    for row in connection.execute(select(tables.running.c.charge)):
        if row.charge not in waiting:
            yield f"something is said to run for entry {row.charge}, which waits for no answer"


def _compare(
    connection: Connection, table: Any, names: int, expected: dict[Any, dict[str, Any]], what: str
) -> Iterator[str]:
    """Yield the rows of a table that do not follow from the entries."""
    found = {tuple(row[:names]): dict(row._mapping) for row in connection.execute(select(table))}
    for name in sorted(expected.keys() | found.keys(), key=repr):
        if expected.get(name) != found.get(name):
            shown = " / ".join(repr(part) for part in name)
            yield f"the {what} {shown} is not what the entries come to"
