"""The ledger: its entries, its export and its tables.

The entries shown are those of a small ledger that is made for the page, with a clock that stands.
"""

from __future__ import annotations

import json
import tempfile
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from pcor import Ledger, Schema, plan
from pcor.errors import NO_CONTEXT, BudgetExceeded, NoValidContext
from pcor.ledger import tables
from pcor.ledger.entries import KINDS, Entry
from pcor.releasing.request import Request
from tools.reference import docstrings, markdown

_KINDS = {
    "budget": "The owner set what all may spend together.",
    "allotment": "The owner set what one analyst may spend.",
    "closing": "The owner closed an analyst's allotment; `spent` is what was spent of it by then.",
    "charge": "A release was paid for; the draw comes after it.",
    "answer": "What a charge was for: a certificate, or the error that the draw ended in.",
    "refusal": "The budget could not pay. Nothing was spent. One of many also has `refused`.",
}

_CLOCK = 1_767_225_600.0  # the first second of 2026
_SCHEMA = Schema(metric="amount", attributes={"region": ["north", "south"]}, name="claims")


def columns() -> str:
    """Return the columns of an entry."""
    told = docstrings.read(Entry).named["Attributes"]
    rows = [[markdown.code(name), meaning] for name, meaning in told.items()]
    return markdown.table(["column", "meaning"], rows)


def kinds() -> str:
    """Return the kinds of entries, with what their bodies have."""
    rows = [
        [
            markdown.code(kind),
            _KINDS[kind],
            ", ".join(map(markdown.code, _examples()[kind].content)),
        ]
        for kind in KINDS
    ]
    return markdown.table(["kind", "what happened", "members of the body"], rows)


def export() -> str:
    """Return an entry of each kind as it is exported."""
    entries = [_examples()[kind].to_dict() for kind in KINDS]
    return "\n\n".join(markdown.block(json.dumps(one, indent=2), "json") for one in entries)


def declared_tables() -> str:
    """Return the tables of the database, with their columns."""
    return "\n\n".join(map(_table, tables.metadata.tables.values()))


def _table(one: Any) -> str:
    rows = [
        [
            markdown.code(column.name),
            str(column.type),
            "primary key" if column.primary_key else "unique" if column.unique else "",
            "may be empty" if column.nullable else "",
        ]
        for column in one.columns
    ]
    return markdown.section(3, one.name, markdown.table(["column", "type", "key", "empty"], rows))


@cache
def _examples() -> dict[str, Entry]:
    """Return one entry of each kind."""
    with tempfile.TemporaryDirectory() as folder:
        ledger = Ledger(Path(folder) / "books.db", clock=lambda: _CLOCK)
        try:
            ledger.set_budget("claims", "1")
            ledger.allot("claims", "ada", "0.5")
            claim = ledger.charge(_request("0.2"))
            ledger.store(claim, NoValidContext(NO_CONTEXT))
            with suppress(BudgetExceeded):
                ledger.charge(_request("0.4"))
            ledger.close_allotment("claims", "ada")
            return {entry.kind: entry for entry in ledger.entries()}
        finally:
            ledger.close()


def _request(epsilon: str) -> Request:
    return Request.of(plan(_SCHEMA, epsilon=epsilon), 17, dataset="claims", analyst="ada")
