"""Jobs say that their moment has come, or their file was replaced; open ones are found faster."""

from __future__ import annotations

import time

import sqlalchemy as sa
from alembic import op

revision = "s003"
down_revision = "s002"

JOBS = "pcor_service_jobs"


def upgrade() -> None:
    """Add the columns and their indexes; what can be seen by now stays so."""
    op.add_column(JOBS, sa.Column("stalled", sa.BigInteger, nullable=True))
    op.add_column(JOBS, sa.Column("visible", sa.Integer, nullable=False, server_default="0"))
    jobs = sa.table(JOBS, sa.column("shown"), sa.column("visible"))
    now = int(time.time() * 1000)
    op.get_bind().execute(sa.update(jobs).where(jobs.c.shown <= now).values(visible=1))
    op.create_index(f"{JOBS}_open", JOBS, ["analyst", "shown"])
    op.create_index(f"{JOBS}_visible", JOBS, ["visible", "shown"])
