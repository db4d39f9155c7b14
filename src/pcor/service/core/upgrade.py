"""Make the tables of the service, or bring them up to date; refuse those of a newer pcor.

Public: everything here. The ledger's tables have a chain of migrations of their own: a ledger that
serves no service has none of these.
"""

from __future__ import annotations

from pcor.errors import LedgerError
from pcor.ledger.database import LedgerDatabase
from pcor.ledger.entries import lock_head
from pcor.ledger.upgrade import upgrade, version_of
from pcor.service.core.fingerprints import FileFingerprints
from pcor.service.core.tables import VERSION, VERSION_TABLE


def open_tables(database: LedgerDatabase, fingerprints: FileFingerprints, *, create: bool) -> None:
    """Leave the database with tables of this version, or say why that cannot be."""
    with database.reading() as connection:
        found = version_of(connection, VERSION_TABLE)
    if found == VERSION:
        return
    if found is None and not create:
        raise LedgerError("this database serves no service yet; `pcor serve --init` prepares it")
    with database.writing() as connection:
        lock_head(connection)  # two processes that start at once make the tables once
        found = version_of(connection, VERSION_TABLE)
        if found != VERSION:
            upgrade(
                connection,
                found,
                VERSION,
                what="service",
                module=__file__,
                fingerprints=fingerprints,
            )
