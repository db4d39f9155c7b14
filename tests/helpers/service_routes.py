"""Every route of the service, and who may call it."""

from __future__ import annotations

from typing import Any

from tests.helpers.service_world import DATASET, OUTLIER, registration

QUESTION = {"dataset": DATASET, "record": OUTLIER, "preset": "small"}
# method, path, body -> who gets in: owner, analyst, auditor, nobody (no key)
ROUTES: list[tuple[str, str, Any, str]] = [
    ("GET", "/v1/health", None, "owner analyst auditor nobody"),
    ("GET", "/v1/readiness", None, "owner analyst auditor nobody"),
    ("GET", "/v1/public-key", None, "owner analyst auditor nobody"),
    ("GET", "/v1/metrics", None, "owner auditor"),
    ("GET", "/v1/me", None, "owner analyst auditor"),
    ("POST", "/v1/plans", QUESTION, "owner analyst"),
    ("POST", "/v1/releases", QUESTION, "owner analyst"),
    ("GET", "/v1/releases", None, "owner analyst"),
    ("GET", "/v1/releases/{name}", None, "owner analyst"),
    ("DELETE", "/v1/releases/{name}", None, "owner"),
    ("GET", "/v1/datasets", None, "owner analyst"),
    ("GET", "/v1/datasets/{name}", None, "owner analyst"),
    ("PUT", "/v1/datasets/{name}", registration(), "owner"),
    ("GET", "/v1/datasets/{name}/budget", None, "owner analyst auditor"),
    ("PUT", "/v1/datasets/{name}/budget", {"epsilon": "5"}, "owner"),
    ("PUT", "/v1/datasets/{name}/allotments/{analyst}", {"epsilon": "4"}, "owner"),
    ("DELETE", "/v1/datasets/{name}/allotments/{analyst}", None, "owner"),
    ("GET", "/v1/keys", None, "owner"),
    ("POST", "/v1/keys", {"role": "auditor", "name": "eve"}, "owner"),
    ("DELETE", "/v1/keys/{name}", None, "owner"),
    ("GET", "/v1/ledger", None, "owner auditor"),
    ("GET", "/v1/ledger/export", None, "owner auditor"),
    ("GET", "/v1/ledger/verification", None, "owner auditor"),
    ("GET", "/v1/audit", None, "owner auditor"),
    ("GET", "/v1/audit/verification", None, "owner auditor"),
]
