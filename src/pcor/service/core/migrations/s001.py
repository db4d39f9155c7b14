"""The first tables of the service. They are made from ``tables``: nothing leads to them."""

from __future__ import annotations

revision = "s001"
down_revision = None
