"""Datasets keep their file's fingerprint and the number of its state, not its plain SHA-256.

What the chains of entries and events say already stays as it is: they are never rewritten.
"""

from __future__ import annotations

import json

import sqlalchemy as sa
from alembic import context, op

revision = "s002"
down_revision = "s001"


def upgrade() -> None:
    """Write every registration anew; the same file has the same number under all versions."""
    datasets = sa.table("pcor_service_datasets", *map(sa.column, ("name", "version", "body")))
    columns, connection = datasets.c, op.get_bind()
    ordered = sa.select(datasets).order_by(columns.name, columns.version)
    states: dict[str, dict[str, int]] = {}
    for row in connection.execute(ordered).all():
        kept, known = json.loads(row.body), states.setdefault(row.name, {})
        sha256 = kept.pop("source_sha256")
        kept["source_state"] = known.setdefault(sha256, len(known) + 1)
        fingerprints = context.config.attributes["fingerprints"]
        fingerprints.make_secret()
        kept["mark"] = fingerprints.of_hash(sha256)
        connection.execute(
            sa.update(datasets)
            .where(columns.name == row.name, columns.version == row.version)
            .values(body=json.dumps(kept))
        )
