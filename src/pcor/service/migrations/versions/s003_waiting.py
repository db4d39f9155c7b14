"""Jobs say that their file was replaced, and open ones are found by whose they are."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "s003"
down_revision = "s002"

JOBS = "pcor_service_jobs"


def upgrade() -> None:
    """Add the column and the index."""
    op.add_column(JOBS, sa.Column("stalled", sa.BigInteger, nullable=True))
    op.create_index(f"{JOBS}_open", JOBS, ["analyst", "shown"])
