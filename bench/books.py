"""``python -m bench.books``: what long books cost: export, verification, and the next charge.

The books are filled behind the ledger's back, entry by entry, as a service would have filled them:
a charge and its answer in turn. CPU is that of this process and hardly depends on what else runs;
``ENTRIES=1000`` makes a short run. With a URL as its argument it fills an empty PostgreSQL database
instead of a file.
"""

from __future__ import annotations

import io
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import anyio
from sqlalchemy import Connection, insert, update

import pcor
from pcor.ledger import Ledger, Request, tables
from pcor.ledger.accounts import read_account, write_account
from pcor.ledger.entries import Entry, Head
from pcor.releasing.request import canonical
from pcor.service.api import routes_books

ENTRIES = int(os.environ.get("ENTRIES", "200000"))
DATASET, EPSILON, BATCH = "people", Fraction(1, 1000), 2000


def request(key: str) -> Request:
    """Return a question about the demo's salaries, under a key of its own."""
    schema = pcor.demo.salary_schema(any_set=True)
    planned = pcor.plan(schema, EPSILON)
    return Request.of(planned, pcor.demo.PLANTED[0].record, dataset=DATASET, analyst="owner",
                      key=key)  # fmt: skip


def fill(ledger: Ledger, entries: int) -> None:
    """Write a budget, then charges and answers in turn."""
    ledger.set_budget(DATASET, entries)
    with ledger.database.writing() as connection:
        head = ledger.head()
        asked, answer = request("0"), certificate()
        for first in range(0, (entries - 1) // 2, BATCH):
            pairs = range(first, min(first + BATCH, (entries - 1) // 2))
            head = _write(connection, head, pairs, asked, answer)
        charges = (entries - 1) // 2
        account = read_account(connection, DATASET)
        assert account is not None  # noqa: S101 (it was just set)
        write_account(connection, account.charged(charges * EPSILON, Fraction(0), "ocdp"))
        connection.execute(update(tables.head).values(entries=head.entries, hash=head.hash))


def certificate() -> dict[str, Any]:
    """Return a certificate as long as they are."""
    table = pcor.demo.salary_table(any_set=True)
    return pcor.release(table, pcor.demo.PLANTED[0].record, "0.2", search="breadth_first").to_dict()


def _write(
    connection: Connection, head: Head, pairs: range, asked: Request, answer: dict[str, Any]
) -> Head:
    rows, known = [], []
    for number in pairs:
        key = f"{number:064d}"
        charge = {
            "epsilon": str(EPSILON),
            "delta": "0",
            "guarantee": "ocdp",
            "request": asked.to_dict(),
        }
        at = head.entries + 1
        for kind, body in (("charge", charge), ("answer", {"charge": at, "answer": answer})):
            entry = Entry(
                head.entries + 1, "", kind, DATASET, "owner", key, canonical(body), head.hash
            )
            head = Head(entry.number, entry.sealed())
            rows.append(asdict(replace(entry, hash=head.hash)))
        known.append(
            {"dataset": DATASET, "analyst": "owner", "key": key, "charge": at, "answer": at + 1}
            | {"fingerprint": asked.fingerprint}
        )
    connection.execute(insert(tables.entries), rows)
    connection.execute(insert(tables.requests), known)
    return head


def measure(what: str, action: Callable[[], object]) -> None:
    """Print the seconds of one call."""
    wall, cpu = time.perf_counter(), time.process_time()
    found = action()
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    print(f"{what:<52}{cpu:>9.3f}{wall:>9.3f}  {found}", flush=True)


def over_http(ledger: Ledger) -> int:
    """Take the export as a server sends it; return its length."""
    state = SimpleNamespace(service=SimpleNamespace(ledger=ledger))
    request: Any = SimpleNamespace(app=SimpleNamespace(state=state))
    response = routes_books.export_entries(request)

    async def take() -> int:
        return sum([len(part) async for part in response.body_iterator])

    return anyio.run(take)


def charges(ledger: Ledger, count: int) -> Iterator[int]:
    """Charge so many new requests, each for the first time."""
    for number in range(count):
        yield ledger.charge(request(f"new-{time.time_ns()}-{number}")).charge


def main() -> None:
    """Fill books and measure."""
    with tempfile.TemporaryDirectory() as folder:
        url = sys.argv[1] if len(sys.argv) > 1 else str(Path(folder) / "books.db")
        ledger = Ledger(url)
        print(f"{'what':<52}{'CPU s':>9}{'wall s':>9}")
        measure(f"fill {ENTRIES:,} entries", lambda: fill(ledger, ENTRIES))
        out = Path(folder) / "books.jsonl"
        measure("export to a file", lambda: ledger.export(out))
        measure("export to a stream in memory", lambda: ledger.export(io.StringIO()))
        measure("export over HTTP, without the network", lambda: over_http(ledger))
        measure("verify", lambda: ledger.verify().ok)
        again = Ledger(url)
        measure("the first charge of a process", lambda: list(charges(again, 1)))
        measure("100 more charges", lambda: len(list(charges(again, 100))))


if __name__ == "__main__":
    main()
