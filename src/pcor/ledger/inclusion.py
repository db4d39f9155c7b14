"""Inclusion: find the entry in which a certificate was stored, in books that were verified whole.

Public: everything here. The entry holds the certificate as it was drawn. What is handed out later
may be signed; and it may lack the record's metric, where the owner no longer has it told, also in
its sentence. Nothing else may be more, less or other than what the entry holds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection

from pcor.errors import LedgerError, SignatureError
from pcor.ledger.entries import Entry, Head, read_entries, read_entry
from pcor.ledger.verification import check_books
from pcor.releasing.certificate import without_metric
from pcor.releasing.signature import portable


@dataclass(frozen=True)
class Inclusion:
    """Where a certificate is in a ledger.

    Attributes:
        charge: the entry that paid for it.
        answer: the entry that holds it.
        head: where the chain ends that both are in.
    """

    charge: Entry
    answer: Entry
    head: Head

    def __str__(self) -> str:
        return (
            f"it was charged by entry {self.charge.hash} on {self.charge.at[:10]}, and is in a "
            f"whole chain that ends at {self.head}"
        )


def find_inclusion(connection: Connection, certificate: Mapping[str, Any]) -> Inclusion:
    """Return where a certificate is, in one view of books that are whole.

    Raises:
        LedgerError: the books are not whole, or cannot be read.
        SignatureError: no entry holds this certificate.
    """
    checked = check_books(connection)
    if not checked.ok:
        raise LedgerError(f"nothing is proved by these books: {checked}")
    # A text that most other answers do not have: to parse all of them would take far longer.
    mark = str(certificate.get("schema_sha256"))
    found = [
        entry
        for entry in read_entries(connection)
        if entry.kind == "answer" and mark in entry.body and _holds(entry, certificate)
    ]
    if not found:
        raise SignatureError(
            "this certificate is in no entry of the ledger, though its books are whole: it was "
            "paid for elsewhere, or not at all"
        )
    first = found[0]  # of two who asked the same and drew the same
    return Inclusion(read_entry(connection, first.content["charge"]), first, checked.head)


def _holds(entry: Entry, certificate: Mapping[str, Any]) -> bool:
    """Whether the answer in an entry is what this certificate tells, and all that it tells."""
    told = {name: value for name, value in certificate.items() if name != "signature"}
    return portable(told) in map(portable, _tellings(entry.content["answer"]))


def _tellings(stored: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield what a stored answer may be handed out as."""
    told = dict(stored)
    yield told
    metric = told.pop("metric_value", None)
    sentence = None if metric is None else without_metric(told, metric)
    if sentence is not None:
        yield told | {"sentence": sentence}
