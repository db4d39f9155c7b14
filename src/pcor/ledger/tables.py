"""The tables of a ledger.

Public: everything in them. ``entries`` is the book of record: a hash chain of all that happened.
``head`` says where the chain ends. ``accounts`` and ``requests`` follow from the entries and are
kept so that a charge need not read them all; ``verify`` works them out again. ``refusals`` counts
refusals that are not written down one by one, and ``running`` says who is drawing at this moment;
these two are no evidence of anything.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Column,
    Index,
    Integer,
    MetaData,
    PrimaryKeyConstraint,
    String,
    Table,
    Text,
    text,
)

# The newest step of migrations/versions; a test holds the two together.
VERSION = "0001"
# The hash before the first entry.
START = "0" * 64

metadata = MetaData()


def version_table(name: str, metadata: MetaData) -> Table:
    """Return the table of the others' version, in the shape that alembic reads and writes."""
    return Table(
        name,
        metadata,
        Column("version_num", String(32), nullable=False),
        PrimaryKeyConstraint("version_num", name=f"{name}_pkc"),
    )


versions = version_table("pcor_version", metadata)

entries = Table(
    "pcor_entries",
    metadata,
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("at", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("dataset", Text, nullable=False),
    Column("analyst", Text, nullable=False),
    Column("key", Text, nullable=False),
    Column("body", Text, nullable=False),
    Column("previous", Text, nullable=False),
    Column("hash", Text, nullable=False),
    # By which a charge is found where the index of ``requests`` is damaged and hides it.
    Index(
        "pcor_entries_charges",
        "key",
        sqlite_where=text("kind = 'charge'"),
        postgresql_where=text("kind = 'charge'"),
    ),
)

head = Table(
    "pcor_head",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("entries", Integer, nullable=False),
    Column("hash", Text, nullable=False),
)

# A budget is the account of a dataset (analyst ''), an allotment that of one analyst. One that is
# closed stays, with what was spent: to open it again is not to begin anew.
accounts = Table(
    "pcor_accounts",
    metadata,
    Column("dataset", Text, primary_key=True),
    Column("analyst", Text, primary_key=True),
    Column("epsilon", Text, nullable=False),
    Column("delta", Text, nullable=False),
    Column("cap", Text, nullable=True),
    Column("spent_ocdp", Text, nullable=False),
    Column("spent_dp", Text, nullable=False),
    Column("spent_delta", Text, nullable=False),
    Column("closed", Integer, nullable=False),
)

requests = Table(
    "pcor_requests",
    metadata,
    Column("dataset", Text, primary_key=True),
    Column("analyst", Text, primary_key=True),
    Column("key", Text, primary_key=True),
    Column("fingerprint", Text, nullable=False),
    Column("charge", Integer, nullable=False, unique=True),
    Column("answer", Integer, nullable=True, unique=True),
)

refusals = Table(
    "pcor_refusals",
    metadata,
    Column("dataset", Text, primary_key=True),
    Column("analyst", Text, primary_key=True),
    Column("refused", BigInteger, nullable=False),
)

running = Table(
    "pcor_running",
    metadata,
    Column("charge", Integer, primary_key=True, autoincrement=False),
    Column("holder", Text, nullable=False),
    Column("until", BigInteger, nullable=False),
)
