"""Make the tables of a ledger, or bring them up to date; refuse those of a newer pcor.

Public: everything here. New tables are made as the code has them; older ones are brought there by
alembic, step by step. All of it happens in one transaction under one lock, so two processes that
open a new ledger at once make it once.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import Connection, Table, insert, inspect, select, text

from pcor.errors import LedgerError
from pcor.ledger import tables
from pcor.ledger.database import LedgerDatabase

# Any number that nobody else is likely to lock in a shared PostgreSQL database: "pcor" in ASCII.
_LOCK = 0x70636F72


@dataclass(frozen=True)
class VersionedTables:
    """Tables that belong together, and their version.

    Attributes:
        what: whose they are.
        version: the newest.
        versions: the table that the version is written down in, beside all others.
        head: the table that says where their hash chain ends.
        steps: the folder of the steps that lead here from older versions.
        missing: what is said where there are none, and none are to be made.
    """

    what: str
    version: str
    versions: Table
    head: Table
    steps: Path
    missing: str

    def open(self, database: LedgerDatabase, *, create: bool) -> None:
        """Leave the database with tables of this version, or say why that cannot be."""
        with database.reading() as connection:
            found = self._found(connection)
        if found == self.version:
            return
        if found is None and not create:
            raise LedgerError(self.missing)
        with database.writing() as connection:
            if not database.is_file:
                connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _LOCK})
            found = self._found(connection)  # another process may have been faster
            if found is None:
                self._make(connection)
            elif found != self.version:
                self._upgrade(connection, found)

    def _found(self, connection: Connection) -> str | None:
        """Return the version of the tables there are; ``None`` where there are none."""
        if not inspect(connection).has_table(self.versions.name):
            return None
        return connection.execute(select(self.versions.c.version_num)).scalar_one_or_none()

    def _make(self, connection: Connection) -> None:
        """Make the tables, and the head of an empty chain."""
        self.versions.metadata.create_all(connection)
        connection.execute(insert(self.versions).values(version_num=self.version))
        connection.execute(insert(self.head).values((1, 0, tables.START)))

    def _upgrade(self, connection: Connection, found: str) -> None:
        """Run the steps from the version that was found to the newest."""
        from alembic import command  # takes a while to import; only old tables need it
        from alembic.config import Config
        from alembic.script import ScriptDirectory

        config = Config()
        for option, place in (("script_location", _MIGRATIONS), ("version_locations", self.steps)):
            config.set_main_option(option, str(place).replace("%", "%%"))
        for separator in ("path_separator", "version_path_separator"):  # its name before 1.16
            config.set_main_option(separator, "os")
        config.attributes.update(connection=connection, version_table=self.versions.name)
        known = {step.revision for step in ScriptDirectory.from_config(config).walk_revisions()}
        if found not in known:
            raise LedgerError(
                f"this {self.what} has tables of version {found!r}, which this pcor does not know; "
                f"it knows up to {self.version!r}. Use a newer pcor"
            )
        command.upgrade(config, "head")


_MIGRATIONS = Path(__file__).with_name("migrations")

LEDGER = VersionedTables(
    "ledger",
    tables.VERSION,
    tables.versions,
    tables.head,
    _MIGRATIONS / "versions",
    "there is no ledger in this database; `pcor ledger budget` makes one with its first budget",
)
