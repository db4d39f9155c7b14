"""Make the tables of the service, or bring them up to date; refuse those of a newer pcor.

Public: everything here. The ledger's tables have a chain of migrations of their own: a ledger that
serves no service has none of these.
"""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import Connection, inspect, text

from pcor.errors import LedgerError
from pcor.ledger.database import Database
from pcor.ledger.entries import lock_head
from pcor.service.tables import VERSION, VERSION_TABLE


def open_tables(database: Database, *, create: bool) -> None:
    """Leave the database with tables of this version, or say why that cannot be."""
    with database.reading() as connection:
        found = _version_of(connection)
    if found == VERSION:
        return
    if found is None and not create:
        raise LedgerError("this database serves no service yet; `pcor serve --init` prepares it")
    with database.writing() as connection:
        lock_head(connection)  # two processes that start at once make the tables once
        found = _version_of(connection)
        if found != VERSION:
            _upgrade(connection, found)


def _version_of(connection: Connection) -> str | None:
    if not inspect(connection).has_table(VERSION_TABLE):
        return None
    found = connection.execute(text(f"SELECT version_num FROM {VERSION_TABLE}"))  # noqa: S608
    return found.scalar_one_or_none()


def _upgrade(connection: Connection, found: str | None) -> None:
    from alembic import command  # takes a while to import; only new or old tables need it
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
            f"this service has tables of version {found!r}, which this pcor does not know; it "
            f"knows up to {VERSION!r}. Use a newer pcor"
        )
    command.upgrade(config, "head")
