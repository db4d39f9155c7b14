"""The first tables: entries, head, accounts, requests, running."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Make the tables, and the head of an empty chain."""
    op.create_table(
        "pcor_entries",
        sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("at", sa.Text, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("dataset", sa.Text, nullable=False),
        sa.Column("analyst", sa.Text, nullable=False),
        sa.Column("key", sa.Text, nullable=False),
        sa.Column("body", sa.Text, nullable=False),
        sa.Column("previous", sa.Text, nullable=False),
        sa.Column("hash", sa.Text, nullable=False),
    )
    head = op.create_table(
        "pcor_head",
        sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("entries", sa.Integer, nullable=False),
        sa.Column("hash", sa.Text, nullable=False),
    )
    op.create_table(
        "pcor_accounts",
        sa.Column("dataset", sa.Text, primary_key=True),
        sa.Column("analyst", sa.Text, primary_key=True),
        sa.Column("epsilon", sa.Text, nullable=False),
        sa.Column("delta", sa.Text, nullable=False),
        sa.Column("cap", sa.Text, nullable=True),
        sa.Column("spent_ocdp", sa.Text, nullable=False),
        sa.Column("spent_dp", sa.Text, nullable=False),
        sa.Column("spent_delta", sa.Text, nullable=False),
    )
    op.create_table(
        "pcor_requests",
        sa.Column("dataset", sa.Text, primary_key=True),
        sa.Column("analyst", sa.Text, primary_key=True),
        sa.Column("key", sa.Text, primary_key=True),
        sa.Column("fingerprint", sa.Text, nullable=False),
        sa.Column("charge", sa.Integer, nullable=False, unique=True),
        sa.Column("answer", sa.Integer, nullable=True, unique=True),
    )
    op.create_table(
        "pcor_running",
        sa.Column("charge", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("holder", sa.Text, nullable=False),
        sa.Column("until", sa.BigInteger, nullable=False),
    )
    op.bulk_insert(head, [{"id": 1, "entries": 0, "hash": "0" * 64}])
