"""The books under pressure: text that cannot be sent, damage, refusals without end."""

from __future__ import annotations

import io
import json
import re
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any
from unittest.mock import patch

import psycopg
import pyarrow as pa
import pytest
from sqlalchemy import Connection, Executable, Table, and_, delete, insert, select, update

import pcor
from pcor.errors import BudgetExceeded, LedgerError, ParameterError
from pcor.ledger import Ledger, Request, refusals, tables, trust
from pcor.ledger.entries import Entry, read_entry
from pcor.releasing.request import canonical
from tests.helpers.books import HALF, before_the_rule, flip
from tests.helpers.command_line import pcor_
from tests.helpers.ledger_clients import DATASET, EACH, OUTLIER, SETTINGS, table
from tests.helpers.postgres import postgres

# -- text that cannot be sent ---------------------------------------------------------------------


@pytest.mark.parametrize("name", ["dataset", "analyst", "key", "version", "record"])
def test_a_name_that_cannot_be_printed_is_refused_before_any_charge(
    ledger: Ledger, name: str
) -> None:
    before = list(ledger.entries())
    for bad in (f"x{HALF}", "x\x1b", "x\x00y"):
        given = {"record": OUTLIER, "dataset": DATASET, name: bad}
        with pytest.raises(ParameterError, match="print") as refused:
            request_of(**given)
        str(refused.value).encode()
        with pytest.raises(pcor.errors.PcorError):
            ledger.release(table(), epsilon=EACH, **SETTINGS, **given)  # type: ignore[arg-type]
        assert list(ledger.entries()) == before


def request_of(**given: object) -> pcor.ledger.Request:
    """Return a request with some names."""
    planned = pcor.plan(table().schema, EACH, **SETTINGS)
    return pcor.ledger.Request.of(planned, **{"analyst": "owner", **given})  # type: ignore[arg-type]


def test_books_of_before_that_hold_such_text_are_exported_and_verified(
    ledger: Ledger, url: str, tmp_path: Path
) -> None:
    with before_the_rule():
        jobs = ["clerk", "cook", "pilot", HALF]
        schema = pcor.Schema(metric="pay", attributes={"job": jobs}, name=f"people{HALF}")
        people = {"job": ["clerk"] * 30, "pay": [100.0 + row % 7 for row in range(29)] + [900.5]}
        odd = pcor.Table(pa.table(people), schema)
        released = ledger.release(odd, 29, EACH, dataset=DATASET, **SETTINGS)
        ledger.charge(request_of(record=f"x{HALF}", dataset=DATASET))
    assert ledger.verify().ok
    stream, file = io.StringIO(), tmp_path / "books.jsonl"
    assert ledger.export(stream) == ledger.export(file) == 4
    assert stream.getvalue() == file.read_text(encoding="utf-8")
    for line in stream.getvalue().splitlines():
        read = json.loads(line)
        assert Entry(**read | {"body": canonical(read["body"])}).sealed() == read["hash"]
    for words in (["export"], ["verify", "--json"], ["show"]):
        command, *options = words
        assert pcor_("ledger", command, url, *options).code == 0
    released.save(tmp_path / "certificate.json")
    released.save(tmp_path / "certificate.html")
    assert json.loads((tmp_path / "certificate.json").read_text("utf-8")) == released.to_dict()


# -- damage ---------------------------------------------------------------------------------------


Damage = Callable[[Connection], None]
EVIDENCE = (tables.entries, tables.head, tables.accounts, tables.requests)


def everything(url: str) -> Ledger:
    """Return a ledger in which everything happened that can."""
    ledger = Ledger(url)
    ledger.set_budget(DATASET, 5, cap="0.5")
    ledger.allot(DATASET, "ana", "0.3")
    for key, analyst in (("a", "owner"), ("b", "ana"), ("c", "owner")):
        ask(ledger, key, analyst)
    with pytest.raises(BudgetExceeded):
        ledger.charge(request(DATASET, "d", "ana", epsilon="0.4"))
    ledger.charge(request(DATASET, "e", "owner"))
    return ledger


def request(dataset: str, key: str, analyst: str = "owner", epsilon: str = EACH) -> Request:
    planned = pcor.plan(table().schema, epsilon, **SETTINGS)
    return Request.of(planned, OUTLIER, dataset=dataset, analyst=analyst, key=key)


def ask(ledger: Ledger, key: str, analyst: str = "owner") -> pcor.Release:
    return ledger.release(
        table(), OUTLIER, EACH, dataset=DATASET, analyst=analyst, key=key, **SETTINGS
    )


def damages(rows: dict[Table, list[dict[str, Any]]]) -> Iterator[tuple[str, Damage]]:
    """Yield every change of one value, every lost row, entries out of order and cut off."""
    for where in EVIDENCE:
        for row in rows[where]:
            this = and_(*(where.c[key.name] == row[key.name] for key in where.primary_key))
            shown = f"{where.name} {[row[key.name] for key in where.primary_key]}"
            yield f"{shown} lost", executing(delete(where).where(this))
            for column in where.c:
                new = flip(row[column.name])
                if isinstance(new, int) and column.name != "entries":
                    new = 99  # the next number is taken
                change = update(where).where(this).values({column.name: new})
                yield f"{shown} {column.name}", executing(change)
    last = len(rows[tables.entries])
    for first in range(1, last):
        yield f"entries {first} and {first + 1} swapped", swapping(first)
        yield f"entries cut off after {first}", cutting(first)


def executing(change: Executable) -> Damage:
    return lambda connection: (connection.execute(change), None)[1]


def swapping(first: int) -> Damage:
    def swap(connection: Connection) -> None:
        for old, new in ((first, 99), (first + 1, first), (99, first + 1)):
            change = update(tables.entries).where(tables.entries.c.number == old)
            connection.execute(change.values(number=new))

    return swap


def cutting(last: int) -> Damage:
    """Cut entries off and set the head back, as a careless restore would."""

    def cut(connection: Connection) -> None:
        number, hashes = tables.entries.c.number, select(tables.entries.c.hash)
        end = connection.execute(hashes.where(number == last)).scalar_one()
        connection.execute(delete(tables.entries).where(number > last))
        connection.execute(update(tables.head).values(entries=last, hash=end))

    return cut


def write_back(ledger: Ledger, rows: dict[Table, list[dict[str, Any]]]) -> None:
    """Put the books back as they were."""
    with ledger.database.writing() as connection:
        for where in tables.metadata.sorted_tables:
            connection.execute(delete(where))
            if rows[where]:
                connection.execute(insert(where), rows[where])


def all_rows(ledger: Ledger) -> dict[Table, list[dict[str, Any]]]:
    with ledger.database.reading() as connection:
        return {
            where: [dict(row._mapping) for row in connection.execute(select(where))]
            for where in tables.metadata.sorted_tables
        }


def test_no_damaged_ledger_charges_for_who_opens_it(url: str) -> None:
    ledger = everything(url)
    rows = all_rows(ledger)
    tried = 0
    charging: list[str] = []
    unseen: list[str] = []
    new = request(DATASET, "new")

    def charges(books: Ledger) -> bool:
        with suppress(LedgerError, ParameterError, BudgetExceeded):
            books.charge(new)
            return True
        return False

    for what, damage in damages(rows):
        for is_open, said in ((False, charging), (True, unseen)):
            with ledger.database.writing() as connection:
                damage(connection)
            books = ledger if is_open else Ledger(url)
            if charges(books):
                said.append(what)
            if not is_open:
                books.close()
            write_back(ledger, rows)
        tried += 1
    assert tried > 150
    assert charging == []
    # Who had it open notices what the charge itself rests on: the head, the newest entry, the
    # accounts that pay, entries that were cut off. The rest waits for a verification.
    last = len(rows[tables.entries])
    own = ("pcor_head", f"pcor_accounts [{DATASET!r}, '']", f"pcor_entries [{last}]", "entries cut")
    assert not [what for what in unseen if what.startswith(own)]
    assert Ledger(url).charge(request(DATASET, "new")).state == "new"  # the books are whole again


def test_a_verification_that_finds_damage_ends_all_charges_until_one_finds_none(
    ledger: Ledger,
) -> None:
    ask(ledger, "a")
    rows = all_rows(ledger)
    with ledger.database.writing() as connection:
        connection.execute(update(tables.requests).values(fingerprint="0" * 64))
    assert ledger.charge(request(DATASET, "b")).state == "new"  # too far away to be noticed
    assert not ledger.verify().ok
    with pytest.raises(LedgerError, match="damaged"):
        ledger.charge(request(DATASET, "c"))
    write_back(ledger, rows)
    assert ledger.verify().ok
    assert ledger.charge(request(DATASET, "c")).state == "new"


def test_an_answer_is_given_only_if_the_next_entry_knows_it(ledger: Ledger) -> None:
    ask(ledger, "a")
    ask(ledger, "b")
    with ledger.database.writing() as connection:
        entry = read_entry(connection, 3)
        assert entry.kind == "answer"
        forged = replace(entry, body=entry.body.replace('"private":true', '"private":false'))
        sealed = replace(forged, hash=forged.sealed()).columns()
        number = tables.entries.c.number
        connection.execute(update(tables.entries).where(number == 3).values(sealed))
    with pytest.raises(LedgerError, match="damaged"):
        ask(ledger, "a")


def test_books_too_long_to_be_read_at_once_are_checked_at_their_end(
    ledger: Ledger, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for key in "abcd":
        ask(ledger, key)
    monkeypatch.setattr(trust, "RECENT", 3)
    assert Ledger(url).charge(request(DATASET, "e")).state == "new"
    newest = ledger.head().entries - 1
    with ledger.database.writing() as connection:
        change = update(tables.entries).where(tables.entries.c.number == newest)
        connection.execute(change.values(at="yesterday"))
    with pytest.raises(LedgerError, match="damaged"):
        Ledger(url).charge(request(DATASET, "f"))


# -- a damaged index ------------------------------------------------------------------------------


KEY = "the key of a request that was charged and answered"


def hide_in_sqlite(path: Path) -> None:
    """Flip one bit in the file, so that the index of requests no longer finds a request."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    whole = path.read_bytes()
    for found in re.finditer(KEY.encode(), whole):
        damaged = bytearray(whole)
        damaged[found.start()] ^= 1
        path.write_bytes(damaged)
        with closing(sqlite3.connect(path)) as connection:
            by_index, by_rows = (
                connection.execute(
                    f"SELECT count(*) FROM pcor_requests {way} "  # noqa: S608 (ours)
                    "WHERE dataset = ? AND analyst = ? AND key = ?",
                    (DATASET, "owner", KEY),
                ).fetchone()[0]
                for way in ("", "NOT INDEXED")
            )
        if (by_index, by_rows) == (0, 1):
            return
    raise AssertionError("the index was not found in the file")


def hide_in_postgres(url: str) -> None:
    """Flip one bit in the file of the index, while the server is stopped."""
    server = postgres()
    place = url.replace("postgresql+psycopg", "postgresql")
    with psycopg.connect(place, autocommit=True) as connection:
        found = connection.execute("SELECT pg_relation_filepath('pcor_requests_pkey')").fetchone()
        assert found is not None
        connection.execute("CHECKPOINT")
    server.stop()
    path = server.data / found[0]
    content = bytearray(path.read_bytes())
    content[content.index(KEY.encode())] ^= 1
    path.write_bytes(content)
    server.start()


@pytest.fixture
def hidden(url: str) -> Ledger:
    """A ledger whose index of requests hides one that was charged and answered."""
    ledger = Ledger(url)
    ledger.set_budget(DATASET, 1)
    for key in ("a", KEY, "z"):
        ask(ledger, key)
    ledger.close()
    if url.startswith("postgresql"):
        hide_in_postgres(url)
    else:
        hide_in_sqlite(Path(url))
    return Ledger(url)


def test_a_request_that_a_damaged_index_hides_is_not_charged_again(
    hidden: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hidden, "_trust", BlindTrust())  # as in a process that runs already
    before, left = hidden.head(), hidden.left(DATASET)
    for call in (hidden.charge, hidden.answered, hidden.charged):
        with pytest.raises(LedgerError, match="damaged"):
            call(request(DATASET, KEY))
    with pytest.raises(LedgerError, match="damaged"):
        ask(hidden, KEY)
    assert (hidden.head(), hidden.left(DATASET)) == (before, left)


def test_a_damaged_index_is_found_by_verify_and_before_the_first_charge(hidden: Ledger) -> None:
    with pytest.raises(LedgerError, match="damaged"):
        hidden.charge(request(DATASET, "another"))
    checked = hidden.verify()
    assert not checked.ok
    assert any("the database is damaged" in problem for problem in checked.problems)


class BlindTrust(trust.Trust):
    """Trust of a process that has seen no damage yet."""

    def begin(self, database: object) -> None:
        pass


def test_an_account_that_a_damaged_index_hides_is_not_opened_anew(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask(ledger, "a")
    monkeypatch.setattr(ledger, "_trust", BlindTrust())
    hides = patch("pcor.ledger.ceilings.read_account", lambda *_: None)
    with hides, pytest.raises(LedgerError, match="damaged"):
        ledger.set_budget(DATASET, 1)
    assert ledger.left(DATASET) == 1 - Fraction(EACH)


def test_an_answer_that_the_table_of_requests_forgot_is_not_drawn_again(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask(ledger, "a")
    monkeypatch.setattr(ledger, "_trust", BlindTrust())
    with ledger.database.writing() as connection:
        connection.execute(update(tables.requests).values(answer=None))
    before = ledger.head()
    with pytest.raises(LedgerError, match="damaged"):
        ask(ledger, "a")
    assert ledger.head() == before


# -- refusals -------------------------------------------------------------------------------------


def test_refusals_without_end_are_counted_and_not_written_one_by_one(ledger: Ledger) -> None:
    ledger.allot(DATASET, "ana", EACH)
    dear = [request(DATASET, f"{number}", "ana", epsilon="0.5") for number in range(100)]
    for one in dear:
        with pytest.raises(BudgetExceeded, match="short by"):
            ledger.charge(one)
    written = [entry.content for entry in ledger.entries() if entry.kind == "refusal"]
    assert len(written) == refusals.MOST + 2
    assert [one.get("refused") for one in written[-3:]] == [None, 32, 64]
    assert ledger.verify().ok
    ledger.charge(request(DATASET, "paid", "ana"))  # the account changes: count from one again
    with pytest.raises(BudgetExceeded):
        ledger.charge(dear[0])
    assert [entry.kind for entry in ledger.entries()][-1] == "refusal"
    assert ledger.verify().ok


@pytest.mark.parametrize("change", ["budget", "allotment"])
def test_refusals_are_written_again_once_a_ceiling_is_set(ledger: Ledger, change: str) -> None:
    ledger.allot(DATASET, "ana", EACH)
    for number in range(refusals.MOST + 3):
        with pytest.raises(BudgetExceeded):
            ledger.charge(request(DATASET, f"{number}", "ana", epsilon="0.5"))
    before = ledger.head().entries
    if change == "budget":
        ledger.set_budget(DATASET, 1)
    else:
        ledger.allot(DATASET, "ana", EACH)
    with pytest.raises(BudgetExceeded):
        ledger.charge(request(DATASET, "x", "ana", epsilon="0.5"))
    assert ledger.head().entries == before + 2


def test_a_check_refuses_what_a_charge_would_once_there_were_many(ledger: Ledger) -> None:
    ledger.charge(request(DATASET, "charged", epsilon="0.9"))
    dear = request(DATASET, "dear", epsilon="0.5")
    for _ in range(refusals.MOST):
        ledger.check(dear)  # not yet
        with pytest.raises(BudgetExceeded):
            ledger.charge(dear)
    before = ledger.head()
    with pytest.raises(BudgetExceeded, match=r"short by 0\.4"):
        ledger.check(dear)
    ledger.check(request(DATASET, "charged", epsilon="0.9"))  # paid for: free
    ledger.check(request(DATASET, "cheap"))
    assert ledger.head() == before


# -- exports --------------------------------------------------------------------------------------


class Words(io.StringIO):
    """A stream that counts how often it is written to."""

    words = 0

    def write(self, text: str) -> int:
        self.words += 1
        return super().write(text)


def test_an_export_is_written_many_lines_at_a_time(ledger: Ledger) -> None:
    for _ in range(20):
        ledger.set_budget(DATASET, 1)
    stream = Words()
    assert ledger.export(stream) == 21 == len(stream.getvalue().splitlines())
    assert stream.words == 1
