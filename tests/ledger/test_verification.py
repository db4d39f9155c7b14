"""Whatever is changed in the books is found."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, create_engine, select, text, update

from pcor.errors import BudgetExceeded, LedgerError, plain
from pcor.ledger import Head, Ledger, tables
from pcor.ledger.verification import check_books
from tests.helpers.books import flip, release
from tests.helpers.ledger_clients import DATASET, request
from tests.helpers.postgres import postgres


@pytest.fixture(params=["sqlite", "postgresql"], scope="module")
def books(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Ledger]:
    """A ledger in which everything happened that can; tests take their changes back."""
    if request.param == "sqlite":
        ledger = Ledger(tmp_path_factory.mktemp("books") / "books.db")
    else:
        ledger = Ledger(postgres().new_database())
    ledger.set_budget(DATASET, 1, cap="0.5")
    ledger.allot(DATASET, "ana", "0.3")
    ledger.allot(DATASET, "bob", "0.3")
    ledger.close_allotment(DATASET, "bob")
    release(ledger)
    release(ledger, analyst="ana", epsilon="0.2")
    with pytest.raises(BudgetExceeded):
        release(ledger, analyst="ana", epsilon="0.4")
    with pytest.raises(KeyboardInterrupt), ledger.drawing(ledger.charge(_later())):
        raise KeyboardInterrupt
    yield ledger
    ledger.close()


def _later() -> Any:
    return request("never finished")


class _Undo(Exception):
    pass


def problems_after(ledger: Ledger, *tampering: Any) -> tuple[str, ...]:
    """Tamper, verify, and take it back."""
    found: tuple[str, ...] = ()
    with suppress(_Undo), ledger.database.writing() as connection:
        for change in tampering:
            change(connection)
        found = check_books(connection).problems
        raise _Undo
    return found


EVIDENCE = [
    (table_.name, column.name)
    for table_ in (tables.entries, tables.head, tables.accounts, tables.requests)
    for column in table_.c
]


def test_untouched_books_are_whole(books: Ledger) -> None:
    checked = books.verify(noted=Head(0, ""))
    assert (checked.ok, checked.problems, checked.head) == (True, (), books.head())


@pytest.mark.parametrize(("name", "column"), EVIDENCE, ids=".".join)
def test_a_change_in_any_column_of_any_row_is_found(books: Ledger, name: str, column: str) -> None:
    where = tables.metadata.tables[name]
    with books.database.reading() as connection:
        rows = [row._mapping for row in connection.execute(select(where))]
    assert rows
    for row in rows:
        this = [where.c[key.name] == row[key.name] for key in where.primary_key]
        new = flip(row[column])
        if column == "number":
            new = 99  # the next number is taken
        change = update(where).where(*this).values({column: new})
        if name == "pcor_requests" and column in ("charge", "answer"):
            change = change.values({column: 99})
        assert problems_after(books, lambda c, change=change: c.execute(change)), dict(row)


def test_a_removed_row_is_found_wherever_it_was(books: Ledger) -> None:
    for where in (tables.entries, tables.head, tables.accounts, tables.requests):
        with books.database.reading() as connection:
            rows = [row._mapping for row in connection.execute(select(where))]
        for row in rows:
            this = [where.c[key.name] == row[key.name] for key in where.primary_key]
            gone = where.delete().where(*this)
            assert problems_after(books, lambda c, gone=gone: c.execute(gone)), dict(row)


def test_two_entries_that_changed_places_are_found(books: Ledger) -> None:
    def swap(connection: Connection) -> None:
        for old, new in ((3, 99), (4, 3), (99, 4)):
            change = update(tables.entries).where(tables.entries.c.number == old)
            connection.execute(change.values(number=new))

    assert any("changed" in problem for problem in problems_after(books, swap))


def test_a_last_entry_cut_off_with_its_head_set_back_is_found_by_the_totals(books: Ledger) -> None:
    end = books.head().entries

    def cut(connection: Connection) -> None:
        before = connection.execute(
            select(tables.entries.c.previous).where(tables.entries.c.number == end)
        ).scalar_one()
        connection.execute(tables.entries.delete().where(tables.entries.c.number == end))
        connection.execute(update(tables.head).values(entries=end - 1, hash=before))

    assert problems_after(books, cut)


def test_a_chain_forged_whole_is_found_by_a_head_that_was_noted(tmp_path: Path) -> None:
    real, forged = Ledger(tmp_path / "real.db"), Ledger(tmp_path / "forged.db")
    real.set_budget(DATASET, 1)
    noted = real.head()
    forged.set_budget(DATASET, 2)
    assert forged.verify().ok
    assert not forged.verify(noted=noted).ok
    real.set_budget(DATASET, 3)
    assert real.verify(noted=noted).ok


def test_a_byte_that_is_no_text_any_more_is_found(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "books.db")
    ledger.set_budget(DATASET, 1)
    raw = create_engine(f"sqlite:///{tmp_path}/books.db")
    with raw.begin() as connection:
        connection.execute(text("UPDATE pcor_entries SET dataset = CAST(x'ff' AS TEXT)"))
    raw.dispose()
    assert not ledger.verify().ok


def test_a_tampered_answer_is_not_given_out(ledger: Ledger) -> None:
    release(ledger)
    with ledger.database.writing() as connection:
        entries = tables.entries
        body = connection.execute(select(entries.c.body).where(entries.c.number == 3)).scalar_one()
        forged = body.replace('"private":true', '"private":false')
        connection.execute(update(entries).where(entries.c.number == 3).values(body=forged))
    with pytest.raises(LedgerError, match="damaged"):
        release(ledger)


def test_damaged_books_pay_for_nothing(ledger: Ledger) -> None:
    with ledger.database.writing() as connection:
        connection.execute(update(tables.accounts).values(spent_ocdp="-5x"))
    with pytest.raises(LedgerError, match="damaged"):
        release(ledger)


def test_amounts_in_the_books_read_as_people_write_them(ledger: Ledger) -> None:
    release(ledger, epsilon="1/3")
    shown = ledger.status(DATASET).to_dict()
    assert (shown["spent"], shown["left"], shown["cap"]) == ("1/3", "2/3", None)
    assert f"epsilon {plain(Fraction(2, 3))} left of 1" in str(ledger.status(DATASET))
