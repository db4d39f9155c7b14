"""The first tables: keys, sessions, datasets, jobs, calls, events."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "s001"
down_revision = None


def upgrade() -> None:
    """Make the tables, and the head of an empty chain of events."""
    op.create_table(
        "pcor_service_keys",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("hash", sa.Text, nullable=False),
        sa.Column("role", sa.Text, nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("made", sa.BigInteger, nullable=False),
        sa.Column("expires", sa.BigInteger, nullable=False),
        sa.Column("revoked", sa.BigInteger, nullable=True),
    )
    op.create_table(
        "pcor_service_sessions",
        sa.Column("hash", sa.Text, primary_key=True),
        sa.Column("key", sa.Text, nullable=False),
        sa.Column("expires", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "pcor_service_datasets",
        sa.Column("name", sa.Text, primary_key=True),
        sa.Column("version", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("made", sa.BigInteger, nullable=False),
        sa.Column("body", sa.Text, nullable=False),
    )
    op.create_table(
        "pcor_service_jobs",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("dataset", sa.Text, nullable=False),
        sa.Column("version", sa.Integer, nullable=False),
        sa.Column("analyst", sa.Text, nullable=False),
        sa.Column("key", sa.Text, nullable=False),
        sa.Column("epsilon", sa.Text, nullable=False),
        sa.Column("delta", sa.Text, nullable=False),
        sa.Column("guarantee", sa.Text, nullable=False),
        sa.Column("body", sa.Text, nullable=False),
        sa.Column("record", sa.Text, nullable=False),
        sa.Column("asked", sa.BigInteger, nullable=False),
        sa.Column("begun", sa.BigInteger, nullable=False),
        sa.Column("shown", sa.BigInteger, nullable=True),
    )
    for name, columns, unique in (
        ("question", ["dataset", "analyst", "key"], True),
        ("history", ["analyst", "asked"], False),
        ("shown", ["shown"], False),
    ):
        op.create_index(f"pcor_service_jobs_{name}", "pcor_service_jobs", columns, unique=unique)
    op.create_table(
        "pcor_service_calls",
        sa.Column("analyst", sa.Text, primary_key=True),
        sa.Column("key", sa.Text, primary_key=True),
        sa.Column("fingerprint", sa.Text, nullable=False),
        sa.Column("job", sa.Text, nullable=False),
    )
    op.create_table(
        "pcor_service_events",
        sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("at", sa.Text, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("actor", sa.Text, nullable=False),
        sa.Column("body", sa.Text, nullable=False),
        sa.Column("previous", sa.Text, nullable=False),
        sa.Column("hash", sa.Text, nullable=False),
    )
    head = op.create_table(
        "pcor_service_event_head",
        sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("events", sa.Integer, nullable=False),
        sa.Column("hash", sa.Text, nullable=False),
    )
    op.bulk_insert(head, [{"id": 1, "events": 0, "hash": "0" * 64}])
