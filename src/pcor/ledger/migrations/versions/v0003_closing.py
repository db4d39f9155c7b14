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
    # Without a default from now on: a process of before, which does not know the column, would open
    # a closed account again whenever it charges. This way the database refuses what it writes.
    with op.batch_alter_table("pcor_accounts") as accounts:
        accounts.alter_column("closed", server_default=None)
