"""Accounts can be closed: an allotment that is taken back keeps what was spent of it."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Say of every account that it is open."""
    closed = sa.Column("closed", sa.Integer, nullable=False, server_default="0")
    op.add_column("pcor_accounts", closed)
