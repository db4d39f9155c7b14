"""Every page of the service, and who may open it."""

from __future__ import annotations

from tests.helpers.service_world import DATASET, OTHER

# method, path, fields -> who gets in
PAGES: list[tuple[str, str, dict[str, str], str]] = [
    ("GET", "/", {}, "owner analyst auditor"),
    ("GET", f"/ask?dataset={DATASET}", {}, "owner analyst"),
    ("POST", "/ask", {}, "owner analyst"),
    ("GET", "/releases", {}, "owner analyst"),
    ("GET", "/releases/{name}", {}, "owner analyst"),
    ("GET", "/releases/{name}/certificate.json", {}, "owner analyst"),
    ("GET", "/releases/{name}/certificate.html", {}, "owner analyst"),
    ("GET", "/releases/{name}/letter.html", {}, "owner analyst"),
    ("POST", "/releases/{name}/close", {}, "owner"),
    ("GET", f"/dataset?name={DATASET}", {}, "owner"),
    ("POST", "/dataset/budget", {"name": DATASET, "epsilon": "5"}, "owner"),
    ("POST", "/dataset/allotment", {"name": DATASET, "analyst": OTHER, "epsilon": "4"}, "owner"),
    ("GET", f"/dataset/close?name={DATASET}&analyst={OTHER}", {}, "owner"),
    ("POST", "/dataset/close", {"name": DATASET, "analyst": "nobody"}, "owner"),
    ("GET", "/register", {}, "owner"),
    ("POST", "/register", {}, "owner"),
    ("POST", "/register/check", {}, "owner"),
    ("GET", "/draft", {}, "owner"),
    ("POST", "/draft", {}, "owner"),
    ("POST", "/draft/add", {}, "owner"),
    ("POST", "/draft/check", {}, "owner"),
    ("POST", "/draft/done", {}, "owner"),
    ("GET", "/keys", {}, "owner"),
    ("POST", "/keys", {"name": "dora", "role": "analyst", "days": "1"}, "owner"),
    ("GET", "/keys/revoke?id=000000000000", {}, "owner"),
    ("POST", "/keys/revoke", {"id": "000000000000"}, "owner"),
    ("GET", "/ledger", {}, "owner auditor"),
    ("GET", "/ledger/export", {}, "owner auditor"),
    ("GET", "/log", {}, "owner auditor"),
    ("GET", f"/exposure?dataset={DATASET}", {}, "owner"),
    ("POST", "/exposure", {"dataset": DATASET, "record": "x", "preset": "tiny"}, "owner"),
]
