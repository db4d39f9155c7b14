"""Integrity: what a database's own structures hide, whatever the tables hold.

Public: everything here. An index is a second copy of some columns. Where a bit of it flips, a row
is there and yet not found by its name. SQLite has a check of its own for that. PostgreSQL has one
only as an extension, so every name is looked up there instead.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from sqlalchemy import Connection, Table, text

# How much of what SQLite finds is told.
_MOST = 10
_BATCH = 5000


def check_file(connection: Connection) -> Iterator[str]:
    """Yield what a SQLite file's own check finds; it compares all indexes with their tables."""
    if connection.dialect.name != "sqlite":
        return
    for (said,) in connection.exec_driver_sql(f"PRAGMA integrity_check({_MOST})"):
        if said != "ok":
            yield f"the database is damaged; its own check says: {said}"


def check_lookup(
    connection: Connection, table: Table, names: Iterable[Sequence[str]], what: str
) -> Iterator[str]:
    """Yield that rows of a table in PostgreSQL are not found by its index."""
    if connection.dialect.name == "sqlite":
        return
    # By the index, one by one, until the transaction ends.
    for way in ("seqscan", "bitmapscan", "hashjoin", "mergejoin"):
        connection.execute(text(f"SET LOCAL enable_{way} = off"))
    columns = [column.name for column in table.primary_key]
    given = ", ".join(f"CAST(:{name} AS text[])" for name in columns)
    same = " AND ".join(f"t.{name} = g.{name}" for name in columns)
    hidden = text(
        f"SELECT count(*) FROM unnest({given}) AS g({', '.join(columns)}) "  # noqa: S608 (ours)
        f"WHERE NOT EXISTS (SELECT 1 FROM {table.name} t WHERE {same})"
    )
    left, missed = iter(names), 0
    while batch := list(islice(left, _BATCH)):
        lists = dict(zip(columns, map(list, zip(*batch, strict=True)), strict=True))
        missed += connection.execute(hidden, lists).scalar_one()
    if missed:
        yield f"the database is damaged: its index does not find {missed:,} of the {what}s"
