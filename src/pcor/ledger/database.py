"""The database under a ledger: SQLite in one file, or PostgreSQL for a team.

Public: what is in it. Every write is one transaction that is alone: SQLite begins it with BEGIN
IMMEDIATE, PostgreSQL waits for the row lock that ``entries.lock_head`` takes first. A commit is on
the disk before it returns (synchronous FULL, synchronous_commit on). Whatever the database says
when it fails is replaced by a sentence of ours: its own words can quote an answer that was drawn
and not yet released.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url, text
from sqlalchemy.engine import ExceptionContext
from sqlalchemy.exc import DBAPIError, DisconnectionError, SQLAlchemyError
from sqlalchemy.pool import NullPool, QueuePool

from pcor.errors import LedgerError, ParameterError

# How long a writer waits for the others, in seconds, where nothing else is said.
PATIENCE = 60
# How many connections one process may have to a server.
CONNECTIONS = 30
# How many to a file are kept open between transactions, where they are kept.
KEPT = 8

# Bytes that a file must be able to grow by: some charges and answers.
ROOM = 1 << 20

FULL = "the ledger's disk is full; make room"
BUSY = "the ledger is busy: others have been writing to it for too long; try again"

NO_LEDGER = (
    "the ledger's file is not a ledger (name another), or is damaged (restore it from a copy)"
)


@dataclass(frozen=True)
class Admission:
    """The terms on which a caller may write.

    Attributes:
        enter: lets in whoever is about to write, or refuses.
        patience: seconds to wait for other writers; by default the database's own.
    """

    enter: Callable[[], AbstractContextManager[None]] = nullcontext
    patience: float | None = None


ALWAYS = Admission()

# A service sets it for each request, because those who wait hold a thread each. What it does by
# itself, such as storing answers, is always let in, and has the database's own patience.
admission: ContextVar[Admission] = ContextVar("pcor_admission", default=ALWAYS)

AGAIN = (
    "Nothing was released. What was charged stays charged: the same request again, with the same "
    "key, goes on from there and pays once"
)


class LedgerDatabase:
    """Transactions on one database.

    Args:
        url: the path of a SQLite file, or a sqlite:/// or postgresql:// URL.
        create: make the file if it is not there.
        patience: seconds that a writer waits for the others; a minute if it is left out.
        keep: keep connections to a file open between transactions, as those to a server are. For
            processes that serve; without it nobody holds the file where nothing is going on.
    """

    def __init__(
        self, url: str | Path, *, create: bool, patience: float | None = None, keep: bool = False
    ) -> None:
        self._url = read_url(url)
        self._patience = patience
        self.is_file = self._url.get_backend_name() == "sqlite"
        if self.is_file:
            _make_file(Path(str(self._url.database)), create)
        self.engine = _engine(self._url, self.patience, keep)
        self._turn = threading.Lock()
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
    def writing(self, *, patience: float | None = None) -> Iterator[Connection]:
        """Give a connection that writes; all of it is kept, or none.

        Args:
            patience: seconds to wait for other writers; by default what the admission says.
        """
        terms = admission.get()
        said = (patience, terms.patience, self.patience)
        wait = next(seconds for seconds in said if seconds is not None)
        with (
            terms.enter(),
            self._in_turn(wait) as left,
            _in_our_words(),
            self._writer.connect() as connection,
            connection.execution_options(pcor_patience=left).begin(),
        ):
            if not self.is_file:
                # A server may be set up to answer before it has written, or to wait for ever.
                connection.execute(text("SET LOCAL synchronous_commit = on"))
                connection.execute(text(f"SET LOCAL lock_timeout = {_milliseconds(left)}"))
            yield connection

    @contextmanager
    def _in_turn(self, wait: float) -> Iterator[float]:
        """Wait for the threads of this process; give the seconds that are left for the others.

        SQLite waits by trying again and again, less and less often. So one thread at a time does.
        """
        self._leave_the_parents()
        if not self.is_file:  # a server has a queue of its own
            yield wait
            return
        turn, until = self._turn, time.monotonic() + wait
        if not turn.acquire(timeout=wait):
            raise LedgerError(f"{BUSY}. {AGAIN}")
        try:
            yield max(0.0, until - time.monotonic())
        finally:
            turn.release()

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Give a connection that sees the ledger as it was at one moment."""
        self._leave_the_parents()
        with _in_our_words(), self._reader.begin() as connection:
            yield connection

    def check_room(self) -> None:
        """Raise where a file of the database could not grow by much more; a server looks itself."""
        if not self.is_file:
            return
        path = Path(str(self._url.database))
        most = _file_limit()
        for file in (path, Path(f"{path}-wal")):
            size = file.stat().st_size if file.exists() else 0
            if most is not None and most - size < ROOM:
                raise LedgerError(_at_limit(most))
        if shutil.disk_usage(path.parent).free < ROOM:
            raise LedgerError(FULL)

    @property
    def patience(self) -> float:
        """How many seconds a writer waits for the others."""
        return PATIENCE if self._patience is None else self._patience

    def close(self) -> None:
        """Give back all connections."""
        self.engine.dispose()

    def _leave_the_parents(self) -> None:
        """Leave the connections of the process that this one was forked from alone."""
        if self._process != os.getpid():
            self.engine.dispose(close=False)
            self._turn = threading.Lock()  # a thread that is not here may have held the other
            self._process = os.getpid()

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


def _engine(url: URL, patience: float, keep: bool) -> Engine:
    # Parameters can hold an answer that is not released yet: never in an error, never in a log.
    if url.get_backend_name() == "sqlite":
        return _sqlite_engine(url, patience, keep)
    try:
        return create_engine(
            url,
            pool_pre_ping=True,
            hide_parameters=True,
            # Those who only read must find a connection while many writers wait with theirs.
            max_overflow=CONNECTIONS - 5,
            pool_size=5,
            pool_timeout=patience,
            connect_args={"connect_timeout": 10},
        )
    except ModuleNotFoundError:
        raise LedgerError(
            "a ledger in PostgreSQL needs psycopg, which is not installed: "
            "pip install 'pcor[postgres]'"
        ) from None


def _sqlite_engine(url: URL, patience: float, keep: bool) -> Engine:
    # Any number may be open at once: a thread that waits for a connection could hold up writers.
    pool = {"pool_size": KEPT, "max_overflow": -1, "pool_use_lifo": True} if keep else {}
    engine = create_engine(
        url,
        poolclass=QueuePool if keep else NullPool,
        hide_parameters=True,
        connect_args={"timeout": patience},
        **pool,
    )
    event.listen(engine, "connect", _prepare_sqlite)
    event.listen(engine, "begin", _begin_sqlite)
    if keep:
        _open_anew_where_needed(engine, Path(str(url.database)))
    return engine


def _open_anew_where_needed(engine: Engine, path: Path) -> None:
    """Keep no connection to a file that was replaced, and none that has failed.

    Whoever restores a copy, or makes room, need not end the processes that serve.
    """

    def file() -> tuple[int, int] | None:
        with suppress(OSError):
            found = path.stat()
            return found.st_dev, found.st_ino
        return None

    def about_to_connect(_: Any, record: Any, __: Any, ___: Any) -> None:
        record.info["file"] = file()

    def taken(_: Any, record: Any, __: Any) -> None:
        if record.info["file"] != file():
            raise DisconnectionError

    def failed(context: ExceptionContext) -> None:
        # To SQLAlchemy that is a connection that was lost: all of them are opened anew.
        context.is_disconnect = "locked" not in str(context.original_exception)

    event.listen(engine, "do_connect", about_to_connect)
    event.listen(engine, "checkout", taken)
    event.listen(engine, "handle_error", failed)


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
    options = connection.get_execution_options()
    if not options.get("pcor_writes", False):
        connection.exec_driver_sql("BEGIN")
        return
    wait = _milliseconds(options["pcor_patience"])
    connection.exec_driver_sql(f"PRAGMA busy_timeout = {wait}")
    connection.exec_driver_sql("BEGIN IMMEDIATE")


def _milliseconds(seconds: float) -> int:
    return max(1, round(1000 * seconds))  # to a server 0 means for ever


@contextmanager
def _in_our_words() -> Iterator[None]:
    try:
        yield
    except SQLAlchemyError as error:
        reason = _reason(error)
        raise LedgerError(reason if reason is NO_LEDGER else f"{reason}. {AGAIN}") from None


def _reason(error: SQLAlchemyError) -> str:
    """Say what went wrong without quoting the database."""
    cause = error.orig if isinstance(error, DBAPIError) else None
    said = str(cause or "").lower()
    state = str(getattr(cause, "sqlstate", None) or "")
    if "disk is full" in said or state == "53100":
        return FULL
    if "disk i/o error" in said:
        return _unwritten(str(getattr(cause, "sqlite_errorname", "")))
    if "database is locked" in said or state == "55P03":
        return BUSY
    if "not a database" in said or "malformed" in said:
        return NO_LEDGER
    if "readonly" in said or state in ("42501", "25006"):
        return "the ledger is read-only; check its file, its disk, and what this user may write"
    if "unable to open" in said:
        return "the ledger's file cannot be opened"
    return f"the ledger's database cannot be reached or does not answer ({type(error).__name__})"


def _unwritten(name: str) -> str:
    """Say what an error of the disk is; SQLite tells of a limit on files in the same words."""
    most = _file_limit()
    if most is not None and name in _GROWING:
        return _at_limit(most)
    return "the ledger's disk cannot be read or written: it fails, or a quota is used up"


def _at_limit(most: int) -> str:
    return (
        f"the ledger's file cannot grow: files of this process may have {most:,} bytes at most "
        "(ulimit -f); raise that limit"
    )


# What SQLite was doing when a file may have been about to grow.
_GROWING = ("SQLITE_IOERR_WRITE", "SQLITE_IOERR_TRUNCATE", "SQLITE_IOERR_SHMSIZE")


def _file_limit() -> int | None:
    try:
        import resource  # not on every system
    except ModuleNotFoundError:
        return None
    most = resource.getrlimit(resource.RLIMIT_FSIZE)[0]
    return None if most == resource.RLIM_INFINITY else most
