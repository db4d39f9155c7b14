"""A count of refusals, and a second way to find a charge."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Make the table of counts, and an index of the charges among the entries."""
    op.create_table(
        "pcor_refusals",
        sa.Column("dataset", sa.Text, primary_key=True),
        sa.Column("analyst", sa.Text, primary_key=True),
        sa.Column("refused", sa.BigInteger, nullable=False),
    )
    charges = sa.text("kind = 'charge'")
    op.create_index(
        "pcor_entries_charges",
        "pcor_entries",
        ["key"],
        sqlite_where=charges,
        postgresql_where=charges,
    )
