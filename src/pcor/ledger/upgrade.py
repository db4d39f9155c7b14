"""Make the tables of a ledger, or bring them up to date; refuse those of a newer pcor.

Public: everything here. All of it happens in one transaction under one lock, so two processes that
open a new ledger at once make it once.
"""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import Connection, inspect, text

from pcor.errors import LedgerError
from pcor.ledger.database import LedgerDatabase
from pcor.ledger.tables import VERSION, VERSION_TABLE

# Any number that nobody else is likely to lock in a shared PostgreSQL database: "pcor" in ASCII.
_LOCK = 0x70636F72


def open_tables(database: LedgerDatabase, *, create: bool) -> None:
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
            upgrade(connection, found, VERSION, what="ledger", module=__file__)


def version_of(connection: Connection, table: str = VERSION_TABLE) -> str | None:
    """Return the version of the ledger's tables, or of others; ``None`` where there are none."""
    if not inspect(connection).has_table(table):
        return None
    found = connection.execute(text(f"SELECT version_num FROM {table}"))  # noqa: S608
    return found.scalar_one_or_none()


def upgrade(
    connection: Connection,
    found: str | None,
    newest: str,
    *,
    what: str,
    module: str,
    **given: object,
) -> None:
    """Run the migrations beside a module, from the version that was found to the newest.

    They find the connection, and whatever else is given, in ``context.config.attributes``.
    """
    from alembic import command  # takes a while to import; only new or old tables need it
    from alembic.config import Config
    from alembic.script import ScriptDirectory

    config = Config()
    place = Path(module).with_name("migrations")
    config.set_main_option("script_location", str(place).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    config.attributes.update(given, connection=connection)
    known = {step.revision for step in ScriptDirectory.from_config(config).walk_revisions()}
    if found is not None and found not in known:
        raise LedgerError(
            f"this {what} has tables of version {found!r}, which this pcor does not know; it knows "
            f"up to {newest!r}. Use a newer pcor"
        )
    command.upgrade(config, "head")
