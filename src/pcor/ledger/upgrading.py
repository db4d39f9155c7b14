"""Make the tables of a ledger, or bring them up to date; refuse those of a newer pcor.

Public: everything here. All of it happens in one transaction under one lock, so two processes that
open a new ledger at once make it once.
"""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import Connection, inspect, text

from pcor.errors import LedgerError
from pcor.ledger.database import Database
from pcor.ledger.tables import VERSION, VERSION_TABLE

# Any number that nobody else is likely to lock in a shared PostgreSQL database: "pcor" in ASCII.
_LOCK = 0x70636F72


def open_tables(database: Database, *, create: bool) -> None:
    """Leave the database with tables of this version, or say why that cannot be."""
    with database.reading() as connection:
        found = version_of(connection)
    if found == VERSION:
        return
    if found is None and not create:
        raise LedgerError(
            "there is no ledger in this database; `pcor ledger budget` makes one with its first "
            "budget"
        )
    with database.writing() as connection:
        if not database.is_file:
            connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _LOCK})
        found = version_of(connection)  # another process may have been faster
        if found != VERSION:
            _upgrade(connection, found)


def version_of(connection: Connection) -> str | None:
    """Return the version of the tables, or ``None`` where there are none."""
    if not inspect(connection).has_table(VERSION_TABLE):
        return None
    found = connection.execute(text(f"SELECT version_num FROM {VERSION_TABLE}"))  # noqa: S608
    return found.scalar_one_or_none()


def _upgrade(connection: Connection, found: str | None) -> None:
    from alembic import command  # takes a while to import; only a new or old ledger needs it
    from alembic.config import Config
    from alembic.script import ScriptDirectory

    config = Config()
    place = Path(__file__).with_name("migrations")
    config.set_main_option("script_location", str(place).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = connection
    known = {step.revision for step in ScriptDirectory.from_config(config).walk_revisions()}
    if found is not None and found not in known:
        raise LedgerError(
            f"this ledger has tables of version {found!r}, which this pcor does not know; it knows "
            f"up to {VERSION!r}. Use a newer pcor"
        )
    command.upgrade(config, "head")
