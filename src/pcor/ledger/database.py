"""The database under a ledger: SQLite in one file, or PostgreSQL for a team.

Public: what is in it. Every write is one transaction that is alone: SQLite begins it with BEGIN
IMMEDIATE, PostgreSQL waits for the row lock that ``entries.lock_head`` takes first. A commit is on
the disk before it returns (synchronous FULL, synchronous_commit on). Whatever the database says
when it fails is replaced by a sentence of ours: its own words can quote an answer that was drawn
and not yet released.
"""

from __future__ import annotations

import os
import sqlite3
import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url, text
from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.pool import NullPool

from pcor.errors import LedgerError, ParameterError

# How long a writer waits for the others, in seconds.
PATIENCE = 60

NO_LEDGER = (
    "the ledger's file is not a ledger (name another), or is damaged (restore it from a copy)"
)

AGAIN = (
    "Nothing was released. What was charged stays charged: the same request again, with the same "
    "key, goes on from there and pays once"
)


class Database:
    """Transactions on one database.

    Args:
        url: the path of a SQLite file, or a sqlite:/// or postgresql:// URL.
        create: make the file if it is not there.
    """

    def __init__(self, url: str | Path, *, create: bool) -> None:
        self._url = read_url(url)
        self.is_file = self._url.get_backend_name() == "sqlite"
        if self.is_file:
            _make_file(Path(str(self._url.database)), create)
        self.engine = _engine(self._url)
        self._process = os.getpid()
        weakref.finalize(self, _dispose, self.engine, self._process)
        self._writer = self.engine.execution_options(pcor_writes=True)
        self._reader = self.engine
        if not self.is_file:
            # Said, because a server may be set up otherwise: who has waited for the lock must see
            # what was written meanwhile; who reads must see one moment.
            self._writer = self._writer.execution_options(isolation_level="READ COMMITTED")
            self._reader = self.engine.execution_options(isolation_level="REPEATABLE READ")

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """Give a connection that writes; all of it is kept, or none."""
        with _in_our_words(), self._mine(self._writer).begin() as connection:
            if not self.is_file:
                # A server may be set up to answer before it has written, or to wait for ever.
                connection.execute(text("SET LOCAL synchronous_commit = on"))
                connection.execute(text(f"SET LOCAL lock_timeout = '{PATIENCE}s'"))
            yield connection

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Give a connection that sees the ledger as it was at one moment."""
        with _in_our_words(), self._mine(self._reader).begin() as connection:
            yield connection

    def close(self) -> None:
        """Give back all connections."""
        self.engine.dispose()

    def _mine(self, engine: Engine) -> Engine:
        """Leave the connections of a parent process to the parent."""
        if self._process != os.getpid():
            self.engine.dispose(close=False)
            self._process = os.getpid()
        return engine

    def __repr__(self) -> str:
        return f"{'SQLite' if self.is_file else 'PostgreSQL'} database"


def read_url(given: str | Path) -> URL:
    """Return where a ledger is; a text without :// is the path of a SQLite file."""
    text_ = str(given)
    if "://" not in text_:
        return URL.create("sqlite", database=_checked_path(text_))
    try:
        url = make_url(text_)
    except (SQLAlchemyError, ValueError):
        raise ParameterError(_ALLOWED) from None
    backend = url.drivername.partition("+")[0]
    if backend in ("postgresql", "postgres"):
        return url.set(drivername="postgresql+psycopg")
    if backend == "sqlite" and not url.query:
        return URL.create("sqlite", database=_checked_path(url.database or ""))
    raise ParameterError(_ALLOWED)


_ALLOWED = (
    "a ledger is a file (books.db or sqlite:///books.db) or a PostgreSQL database "
    "(postgresql://user@host/name)"
)


def _checked_path(path: str) -> str:
    if not path or path.startswith((":", "file:")):
        raise ParameterError(f"{_ALLOWED}; one in memory would be forgotten")
    return path


def _make_file(path: Path, create: bool) -> None:
    """Make the file for the owner's eyes only; SQLite gives its side files the same permissions."""
    if path.is_dir():
        raise LedgerError(f"the ledger {str(path)!r} is a folder; name a file")
    if path.exists():
        return
    if not create:
        raise LedgerError(
            f"there is no ledger {str(path)!r}; `pcor ledger budget` makes one with its first "
            "budget"
        )
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except FileExistsError:
        pass  # another process was faster
    except OSError:
        raise LedgerError(
            f"the ledger {str(path)!r} cannot be made: no such folder, or not allowed"
        ) from None


def _engine(url: URL) -> Engine:
    # Parameters can hold an answer that is not released yet: never in an error, never in a log.
    if url.get_backend_name() == "sqlite":
        engine = create_engine(
            url, poolclass=NullPool, hide_parameters=True, connect_args={"timeout": PATIENCE}
        )
        event.listen(engine, "connect", _prepare_sqlite)
        event.listen(engine, "begin", _begin_sqlite)
        return engine
    try:
        return create_engine(
            url,
            pool_pre_ping=True,
            hide_parameters=True,
            pool_timeout=PATIENCE,
            connect_args={"connect_timeout": 10},
        )
    except ModuleNotFoundError:
        raise LedgerError(
            "a ledger in PostgreSQL needs psycopg, which is not installed: "
            "pip install 'pcor[postgres]'"
        ) from None


def _dispose(engine: Engine, process: int) -> None:
    """Close what a forgotten database left open, unless it is another process's."""
    if os.getpid() == process:
        engine.dispose()


def _prepare_sqlite(connection: sqlite3.Connection, _: Any) -> None:
    connection.isolation_level = None  # we say BEGIN ourselves
    # A byte that was tampered with must reach ``verify``, not end the reading.
    connection.text_factory = lambda found: found.decode("utf-8", "replace")
    connection.execute("PRAGMA synchronous = FULL")
    if connection.execute("PRAGMA journal_mode").fetchone() == ("wal",):
        return
    # Only a new file. SQLite does not wait for a lock here, whatever the timeout.
    for _try in range(PATIENCE * 50):
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if "locked" not in str(error):
                raise
            time.sleep(0.02)
        else:
            return


def _begin_sqlite(connection: Connection) -> None:
    writes = connection.get_execution_options().get("pcor_writes", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


@contextmanager
def _in_our_words() -> Iterator[None]:
    try:
        yield
    except SQLAlchemyError as error:
        reason = _reason(error)
        raise LedgerError(reason if reason is NO_LEDGER else f"{reason}. {AGAIN}") from None


def _reason(error: SQLAlchemyError) -> str:
    """Say what went wrong without quoting the database."""
    said = str(error.orig).lower() if isinstance(error, DBAPIError) else ""
    state = str(getattr(getattr(error, "orig", None), "sqlstate", None) or "")
    if "disk is full" in said or state == "53100":
        return "the ledger's disk is full; make room"
    if "database is locked" in said or state == "55P03":
        return "the ledger is busy: others have been writing to it for too long; try again"
    if "not a database" in said or "malformed" in said:
        return NO_LEDGER
    if "readonly" in said or state in ("42501", "25006"):
        return "this user may not write to the ledger"
    if "unable to open" in said:
        return "the ledger's file cannot be opened"
    return f"the ledger's database cannot be reached or does not answer ({type(error).__name__})"
