"""Where a ledger may be, and what makes its tables."""

from __future__ import annotations

import multiprocessing
import shutil
import sqlite3
import stat
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import inspect, select, text

from pcor.errors import LedgerError, ParameterError
from pcor.ledger import Ledger
from pcor.ledger.database import LedgerDatabase
from pcor.ledger.upgrade import LEDGER, VersionedTables
from pcor.service.core.tables import SERVICE
from tests.helpers.ledger_clients import DATASET
from tests.helpers.postgres import postgres
from tests.helpers.waiting import DEADLINE


def test_a_new_file_is_for_its_owner_alone(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "books.db")
    ledger.set_budget(DATASET, 1)
    with ledger.database.writing():
        modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
    assert set(modes.values()) == {0o600}
    assert len(modes) == 3  # SQLite's own side files are as private


def test_sqlite_keeps_what_was_committed_through_a_power_cut(tmp_path: Path) -> None:
    with Ledger(tmp_path / "books.db").database.writing() as connection:
        assert connection.exec_driver_sql("PRAGMA journal_mode").scalar() == "wal"
        assert connection.exec_driver_sql("PRAGMA synchronous").scalar() == 2  # FULL


@pytest.mark.parametrize("level", ["serializable", "repeatable read"])
def test_a_writer_sees_what_was_written_while_it_waited_whatever_the_server_says(
    level: str,
) -> None:
    place = f"{postgres().new_database()}%20-cdefault_transaction_isolation%3D"
    ledger = Ledger(place + level.replace(" ", "%5C%20"))
    asked = text("SELECT current_setting('transaction_isolation')")
    by_default = text("SELECT current_setting('default_transaction_isolation')")
    with ledger.database.writing() as connection:
        assert connection.execute(by_default).scalar() == level
        assert connection.execute(asked).scalar() == "read committed"
    with ledger.database.reading() as connection:
        assert connection.execute(asked).scalar() == "repeatable read"
    ledger.close()


def test_kept_connections_go_on_with_the_file_that_was_put_in_the_place_of_theirs(
    tmp_path: Path,
) -> None:
    """Or a service would write into a file that nobody has any more."""
    served = Ledger(tmp_path / "books.db", keep=True)
    served.set_budget(DATASET, 1)
    assert served.left(DATASET) == 1
    Ledger(tmp_path / "copy.db").set_budget(DATASET, 2)
    (tmp_path / "copy.db").replace(tmp_path / "books.db")
    for side in ("books.db-wal", "books.db-shm"):
        (tmp_path / side).unlink()
    assert served.left(DATASET) == 2
    served.set_budget(DATASET, 3)
    assert Ledger(tmp_path / "books.db").left(DATASET) == 3
    served.close()


def test_a_connection_that_has_failed_is_not_kept(tmp_path: Path) -> None:
    database = Ledger(tmp_path / "books.db", keep=True).database

    def connection() -> Any:
        with database.reading() as connected:
            return connected.connection.driver_connection

    kept = connection()
    assert connection() is kept
    with pytest.raises(LedgerError), database.reading() as connected:
        connected.execute(text("SELECT * FROM nowhere"))
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        kept.execute("SELECT 1")
    assert connection() is not kept
    database.close()


def test_the_threads_of_a_process_wait_for_each_other_and_then_say_so(tmp_path: Path) -> None:
    database = Ledger(tmp_path / "books.db", keep=True).database

    def write(patience: float) -> None:
        with database.writing(patience=patience):
            pass

    with ThreadPoolExecutor(2) as pool:
        with database.writing():
            refused, waiting = pool.submit(write, 0.01), pool.submit(write, DEADLINE)
            with pytest.raises(LedgerError, match="busy"):
                refused.result(DEADLINE)
            assert not waiting.done()
        waiting.result(DEADLINE)
    database.close()


def test_a_forked_process_waits_for_no_thread_of_its_parent(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "books.db", keep=True)
    with ledger.database._turn:  # as a thread does that the child does not have
        child = multiprocessing.get_context("fork").Process(
            target=ledger.set_budget, args=(DATASET, 1)
        )
        child.start()
        child.join(DEADLINE)
    assert child.exitcode == 0
    assert ledger.left(DATASET) == 1
    ledger.close()


def test_a_path_and_a_url_are_the_same_ledger(tmp_path: Path) -> None:
    Ledger(tmp_path / "books.db").set_budget(DATASET, 1)
    assert Ledger(f"sqlite:///{tmp_path}/books.db", create=False).left(DATASET) == 1


@pytest.mark.parametrize("wrong", ["", ":memory:", "sqlite://", "mysql://h/d", "://", "file:x"])
def test_a_place_that_cannot_hold_a_ledger_is_refused(wrong: str) -> None:
    with pytest.raises(ParameterError, match="a ledger is a file"):
        Ledger(wrong)


def test_a_missing_ledger_is_not_made_by_a_reader(url: str, tmp_path: Path) -> None:
    with pytest.raises(LedgerError, match="there is no ledger"):
        Ledger(url, create=False)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_does_not_exist_is_said(tmp_path: Path) -> None:
    with pytest.raises(LedgerError, match="cannot be made"):
        Ledger(tmp_path / "nowhere" / "books.db")


def test_a_file_that_is_no_database_is_said_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "books.db").write_text("dear diary, " * 100)
    with pytest.raises(LedgerError, match=r"not a ledger \(name another\), or is damaged"):
        Ledger(tmp_path / "books.db")
    assert (tmp_path / "books.db").read_text().startswith("dear diary")


def test_tables_of_a_newer_version_are_refused(url: str) -> None:
    first = Ledger(url)
    with first.database.writing() as connection:
        connection.execute(text("UPDATE pcor_version SET version_num = '9999'"))
    with pytest.raises(LedgerError, match="Use a newer pcor"):
        Ledger(url)


STEP = """
from alembic import op

revision, down_revision = "{now}", "{before}"


def upgrade() -> None:
    op.execute("ALTER TABLE {table} ADD COLUMN note TEXT")
    op.execute("{then}")
"""


def with_a_step(known: VersionedTables, folder: Path, then: str) -> VersionedTables:
    """Return tables of a version after the newest, and the step that leads there."""
    steps = folder / "steps"
    shutil.copytree(known.steps, steps)
    step = STEP.format(now="next", before=known.version, table=known.head.name, then=then)
    (steps / "next.py").write_text(step)
    return replace(known, version="next", steps=steps)


BOTH = pytest.mark.parametrize("known", [LEDGER, SERVICE], ids=lambda known: known.what)


def made(known: VersionedTables, url: str) -> LedgerDatabase:
    database = Ledger(url).database
    known.open(database, create=True)
    return database


def shape(known: VersionedTables, database: LedgerDatabase) -> tuple[str, list[str]]:
    """Return the version that is written down, and the columns of the head."""
    with database.reading() as connection:
        version = connection.execute(select(known.versions.c.version_num)).scalar_one()
    return version, [one["name"] for one in inspect(database.engine).get_columns(known.head.name)]


@BOTH
def test_older_tables_are_brought_up_to_date_once(
    known: VersionedTables, url: str, tmp_path: Path
) -> None:
    database = made(known, url)
    newer = with_a_step(known, tmp_path, "SELECT 1")
    for _ in range(2):
        newer.open(database, create=False)
    assert shape(known, database) == ("next", [*known.head.c.keys(), "note"])
    with pytest.raises(LedgerError, match=f"this {known.what} has tables of version 'next'"):
        known.open(database, create=True)
    database.close()


@BOTH
def test_tables_are_brought_up_to_date_whole_or_not_at_all(
    known: VersionedTables, url: str, tmp_path: Path
) -> None:
    database = made(known, url)
    before = shape(known, database)
    with pytest.raises(LedgerError):
        with_a_step(known, tmp_path, "UPDATE nowhere SET x = 1").open(database, create=False)
    assert shape(known, database) == before
    database.close()


@BOTH
def test_the_version_is_that_of_the_last_step(known: VersionedTables) -> None:
    steps = [path.stem.lstrip("v") for path in known.steps.glob("*[0-9].py")]
    assert max(steps) == known.version
