"""The first tables of a ledger. They are made from ``tables``: nothing leads to them."""

from __future__ import annotations

revision = "0001"
down_revision = None
