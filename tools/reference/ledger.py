"""The page of the ledger: its tables, its entries and its export.

The entries shown are those of a small ledger that is made for the page, with a clock that stands.
"""

from __future__ import annotations

import json
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

from pcor import Ledger, Schema, plan
from pcor.errors import NO_CONTEXT, BudgetExceeded, NoValidContext
from pcor.ledger import tables
from pcor.ledger.entries import KINDS, Entry
from pcor.releasing.amounts import LARGEST_DENOMINATOR, PLACES
from pcor.releasing.request import Request
from tools.reference import docstrings, markdown

_INTRO = """
A ledger is a database, in one SQLite file or in PostgreSQL: `Ledger` in
[Python](python.md#ledger), `pcor ledger` on the [command line](cli.md#pcor-ledger-budget), the
books of the [service](http.md). Everything in it is public. How to read it:
[the ledger](../how-to/ledger.md); why its bound holds: [the proof](../proofs/ledger.md).
"""

_KINDS = {
    "budget": "The owner set what all may spend together.",
    "allotment": "The owner set what one analyst may spend.",
    "closing": "The owner closed an analyst's allotment; `spent` is what was spent of it by then.",
    "charge": "A release was paid for; the draw comes after it.",
    "answer": "What a charge was for: a certificate, or the error that the draw ended in.",
    "refusal": "The budget could not pay. Nothing was spent. One of many also has `refused`.",
}

_EXPORT = """
`pcor ledger export`, `Ledger.export` and `GET /v1/ledger/export` write one entry on each line, in
order, as JSON: the columns of an entry with its body spelled out. One line of each kind, laid out
for reading:
"""

_CLOCK = 1_767_225_600.0  # the first second of 2026
_SCHEMA = Schema(metric="amount", attributes={"region": ["north", "south"]}, name="claims")


def page() -> str:
    """Return the page."""
    examples = _examples()
    return markdown.page(
        "Ledger",
        _INTRO,
        markdown.section(2, "Entries", _entries(examples)),
        markdown.section(2, "Export", _EXPORT, *(_shown(examples[kind]) for kind in KINDS)),
        markdown.section(2, "Amounts", _amounts()),
        markdown.section(2, "Tables", _told(tables), *(_table(t) for t in _declared())),
    )


def _told(module: Any) -> str:
    return docstrings.read(module).prose.partition("\n\n")[2]


def _entries(examples: dict[str, Entry]) -> str:
    columns = docstrings.read(Entry).named["Attributes"]
    kinds = [
        [markdown.code(kind), _KINDS[kind], ", ".join(map(markdown.code, examples[kind].content))]
        for kind in KINDS
    ]
    return "\n\n".join(
        [
            docstrings.parse(_module_text()).prose.partition("\n\n")[2],
            markdown.table(
                ["column", "meaning"], [[markdown.code(name), columns[name]] for name in columns]
            ),
            f"The first entry's `previous` is {len(tables.START)} zeros. A hash is the SHA-256 of "
            "the other columns as JSON: sorted by name, without spaces, in ASCII.",
            markdown.table(["kind", "what happened", "members of the body"], kinds),
        ]
    )


def _module_text() -> str:
    from pcor.ledger import entries

    return entries.__doc__ or ""


def _shown(entry: Entry) -> str:
    return markdown.block(json.dumps(entry.to_dict(), indent=2), "json")


def _amounts() -> str:
    return (
        "Epsilon and delta are kept exact, as texts such as `1/5`: a decimal of at most "
        f"{PLACES} places, or a fraction whose denominator is at most {LARGEST_DENOMINATOR:,}. A "
        "hundred times 0.002 is 0.2."
    )


def _declared() -> list[Any]:
    books = [tables.entries, tables.head, tables.accounts, tables.requests]
    return [*books, tables.refusals, tables.running]


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
