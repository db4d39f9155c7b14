"""The service's own tables, in the ledger's database.

Public: everything in them but the hashes of keys and sessions and the fingerprints of files, which
are no use to who reads them: each needs 256 random bits that are not here. ``datasets`` keeps every
registration, so that a question is answered about the table it was asked of. ``jobs`` holds each
question word for word, written before it is charged: what is charged can always be finished.
``calls`` says which question an Idempotency-Key stands for. ``events`` is a hash chain like the
ledger's, and ``event_head`` says where it ends.
"""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import BigInteger, Column, Index, Integer, MetaData, Table, Text

from pcor.ledger.tables import version_table
from pcor.ledger.upgrade import VersionedTables

metadata = MetaData()

versions = version_table("pcor_service_version", metadata)

keys = Table(
    "pcor_service_keys",
    metadata,
    Column("id", Text, primary_key=True),
    Column("hash", Text, nullable=False),
    Column("role", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("made", BigInteger, nullable=False),
    Column("expires", BigInteger, nullable=False),
    Column("revoked", BigInteger, nullable=True),
)

sessions = Table(
    "pcor_service_sessions",
    metadata,
    Column("hash", Text, primary_key=True),
    Column("key", Text, nullable=False),
    Column("expires", BigInteger, nullable=False),
)

datasets = Table(
    "pcor_service_datasets",
    metadata,
    Column("name", Text, primary_key=True),
    Column("version", Integer, primary_key=True, autoincrement=False),
    Column("made", BigInteger, nullable=False),
    Column("body", Text, nullable=False),
)

jobs = Table(
    "pcor_service_jobs",
    metadata,
    Column("id", Text, primary_key=True),
    Column("dataset", Text, nullable=False),
    Column("version", Integer, nullable=False),
    Column("analyst", Text, nullable=False),
    Column("key", Text, nullable=False),
    Column("epsilon", Text, nullable=False),
    Column("delta", Text, nullable=False),
    Column("guarantee", Text, nullable=False),
    Column("body", Text, nullable=False),
    Column("record", Text, nullable=False),
    Column("asked", BigInteger, nullable=False),
    Column("begun", BigInteger, nullable=False),
    Column("shown", BigInteger, nullable=True),
    Column("stalled", BigInteger, nullable=True),
    Column("visible", Integer, nullable=False, server_default="0"),
    Index("pcor_service_jobs_question", "dataset", "analyst", "key", unique=True),
    Index("pcor_service_jobs_history", "analyst", "asked"),
    Index("pcor_service_jobs_shown", "shown"),
    Index("pcor_service_jobs_open", "analyst", "shown"),
    Index("pcor_service_jobs_visible", "visible", "shown"),
)

calls = Table(
    "pcor_service_calls",
    metadata,
    Column("analyst", Text, primary_key=True),
    Column("key", Text, primary_key=True),
    Column("fingerprint", Text, nullable=False),
    Column("job", Text, nullable=False),
)

events = Table(
    "pcor_service_events",
    metadata,
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("at", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("actor", Text, nullable=False),
    Column("body", Text, nullable=False),
    Column("previous", Text, nullable=False),
    Column("hash", Text, nullable=False),
)

event_head = Table(
    "pcor_service_event_head",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("events", Integer, nullable=False),
    Column("hash", Text, nullable=False),
)

# Apart from the ledger's: one that serves no service has none of these.
SERVICE = VersionedTables(
    "service",
    "s001",
    versions,
    event_head,
    Path(__file__).with_name("migrations"),
    "this database serves no service yet; `pcor serve --init` prepares it",
)
