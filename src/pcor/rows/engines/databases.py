"""PostgreSQL and SQLite through ADBC: rows stay in the database, answers come as Arrow.

Private: the rows, and the password in a URL, which no message repeats. A connection reads from one
snapshot, so that all queries of one table see the same rows, and writes nothing. A query that fails
ends the snapshot, and the engine with it: another connection would see another state of the rows.
"""

from __future__ import annotations

import importlib
import re
import threading
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from pcor.errors import SourceError
from pcor.rows.engines.base import translated_errors
from pcor.rows.queries.sql import POSTGRESQL, Dialect
from pcor.rows.queries.sqlite import SQLITE

_SCHEMES = ("postgresql", "postgres", "sqlite")

# If nothing is said, every query of PostgreSQL sees whatever was committed before it.
_ONE_STATE = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY"

_POSTGRESQL_KINDS = {
    "smallint": "integer",
    "integer": "integer",
    "bigint": "integer",
    "real": "float",
    "double precision": "float",
    "numeric": "decimal",
    "text": "text",
    "character varying": "text",
    "character": "text",
    "boolean": "boolean",
    "date": "date",
    "timestamp without time zone": "date",
    "ARRAY": "nested",
    "json": "nested",
    "jsonb": "nested",
}


@dataclass(frozen=True)
class Database:
    """A table or view in a database.

    Attributes:
        url: ``postgresql://user@host/name`` or ``sqlite://path/to/file``.
        table: the table's name, with its schema as ``schema.table`` if need be.
    """

    url: str = field(repr=False)  # it may hold a password
    table: str = ""

    def __post_init__(self) -> None:
        scheme, colon, rest = self.url.partition("://")
        if not colon or scheme not in _SCHEMES:
            raise SourceError(
                f"a database URL begins with one of: {', '.join(s + '://' for s in _SCHEMES)}"
            )
        if not self.table:
            place, _, table = rest.partition("#")
            object.__setattr__(self, "url", f"{scheme}://{place}")
            object.__setattr__(self, "table", table)
        if not self.table:
            raise SourceError(
                "a database URL needs the table after '#', such as postgresql://host/name#claims"
            )


def database(url: str, table: str = "") -> Database:
    """Return a table in a database as a source for ``pcor.Table``.

    The table may also stand in the URL: ``postgresql://host/name#claims``.
    """
    return Database(url, table)


def is_database_url(text: object) -> bool:
    """Tell whether a text is the URL of a database."""
    return isinstance(text, str) and text.partition("://")[0] in _SCHEMES and "://" in text


class DatabaseEngine:
    """A table in a database. ``engine.Engine`` describes the attributes."""

    numbered: str | None = None  # rows have no order
    dialect: Dialect

    def __init__(self, source: Database) -> None:
        self._lock = threading.Lock()
        self._lost = False
        scheme, _, rest = source.url.partition("://")
        self.dialect = SQLITE if scheme == "sqlite" else POSTGRESQL
        parts = source.table.split(".")
        self.source = ".".join(map(self.dialect.column, parts))
        name = self.dialect.name
        try:
            self._connection = _connect(name, source.url, rest)
        except SourceError:
            raise
        except Exception:
            if name == "sqlite":
                raise SourceError(_sqlite_trouble(rest)) from None
            raise SourceError(
                f"cannot connect to the {name} database; check the URL, the server and the password"
            ) from None
        weakref.finalize(self, self._connection.close)
        with translated_errors(name):
            self.version = self._version()
            self.kinds: Mapping[str, str] = self._kinds(parts)
        if not self.kinds:
            raise SourceError(
                f"the database has no table {source.table!r} that may be read; check the name "
                "after '#' and what the user of the URL may read"
            )

    def run(self, query: str) -> pa.Table:
        """Return the answer to a query."""
        with self._lock:  # a connection carries one query at a time
            if self._lost:
                raise SourceError(
                    f"an earlier query to {self.dialect.name} failed, and the snapshot that "
                    "this table reads was lost with it; make the table anew: pcor.Table(...)"
                )
            self._lost = True  # unless all of the answer arrives
            with self._connection.cursor() as cursor:
                cursor.execute(query)
                found = cursor.fetch_arrow_table()
            self._lost = False
            return found

    def _version(self) -> str:
        if self.dialect is SQLITE:
            return str(self._column("SELECT sqlite_version()")[0])
        found = re.search(
            r"[\d.]+", str(self._column("SELECT current_setting('server_version')")[0])
        )
        return found[0] if found else ""

    def _kinds(self, parts: Sequence[str]) -> dict[str, str]:
        literal = self.dialect.literal
        if self.dialect is SQLITE:
            listed = self._column(f"SELECT name FROM pragma_table_info({literal(parts[-1])})")
            return {str(name): self._sqlite_kind(str(name)) for name in listed}
        # to_regclass finds the table as FROM would, along the search path.
        found = self.run(
            "SELECT a.attname::text AS name, format_type(a.atttypid, NULL) AS kind, "
            "t.typcategory::text AS category "
            "FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid "
            f"WHERE a.attrelid = to_regclass({literal(self.source)}) AND a.attnum > 0 "
            "AND NOT a.attisdropped ORDER BY a.attnum"
        )
        columns = (found.column(name).to_pylist() for name in ("name", "kind", "category"))
        return {
            name: "nested" if category == "A" else _postgresql_kind(kind, category)
            for name, kind, category in zip(*columns, strict=True)
        }

    def _sqlite_kind(self, name: str) -> str:
        """Return what a column holds: here every cell has a type of its own."""
        column = self.dialect.column(name)
        found = set(self._column(f"SELECT DISTINCT typeof({column}) FROM {self.source}"))
        found.discard("null")
        if "blob" in found:
            return "nested"
        if "text" in found or not found:
            return "text"
        return "float" if "real" in found else "integer"

    def _column(self, query: str) -> list[Any]:
        found: list[Any] = self.run(query).column(0).to_pylist()
        return found


def _sqlite_trouble(place: str) -> str:
    if not Path(place).is_file():
        return (
            f"no such file: {place!r}, for the SQLite database sqlite://{place}; a path from the "
            "root has three slashes: sqlite:///data/claims.db#claims"
        )
    return f"the file {place!r} cannot be opened as an SQLite database; is it one?"


def _postgresql_kind(kind: str, category: str) -> str:
    # Enumerated types are compared by their labels.
    return "text" if category == "E" else _POSTGRESQL_KINDS.get(kind, "other")


def _connect(name: str, url: str, place: str) -> Any:
    try:
        driver = importlib.import_module(f"adbc_driver_{name}.dbapi")
    except ImportError:
        raise SourceError(
            f"{name} is read through its ADBC driver, which is not installed: "
            "pip install 'pcor[databases]'"
        ) from None
    if name == "sqlite":
        return driver.connect(f"file:{place}?mode=ro")  # a file that is not there is not made
    connection = driver.connect(url)
    with connection.cursor() as cursor:
        cursor.execute(_ONE_STATE)
    return connection
