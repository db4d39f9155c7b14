"""The service and its books under pressure: text that cannot be sent, damage, refusals."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pcor.service.registry import _read
from tests.page_person import Person
from tests.postgres import postgres
from tests.service_world import DATASET, OUTLIER, SCHEMA, World, registration, world
from tests.test_books import HALF, before_the_rule


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return str(tmp_path / "books.db")
    return postgres().new_database()


@pytest.fixture
def place(url: str, tmp_path: Path) -> Iterator[World]:
    with world(url, tmp_path) as made:
        yield made


# -- text that cannot be sent ---------------------------------------------------------------------


def put(place: World, name: str, declared: dict[str, Any]) -> Any:
    """Register a dataset as an owner; the test client itself could not send such text."""
    body = json.dumps(registration(schema=declared)).encode()
    headers = {"Content-Type": "application/json"}
    return place.send("owner", "PUT", f"/v1/datasets/{name}", content=body, headers=headers)


def odd(**changes: Any) -> dict[str, Any]:
    """Return the schema with parts replaced."""
    return SCHEMA.to_dict() | changes


ODD = [
    odd(dataset={"name": HALF}),
    odd(dataset={"name": "people", "id": HALF}),
    odd(dataset={"name": "people", HALF: 1}),
    odd(metric={"column": HALF}),
    odd(attributes={f"job{HALF}": {"values": ["clerk"]}}),
    odd(attributes={f"job{HALF}": {"vlaues": ["clerk"]}}),
    odd(attributes={"job": {"values": ["clerk", "cook", "pilot", HALF]}}),
    odd(**{HALF: {}}),
]


@pytest.mark.parametrize("declared", ODD, ids=ascii)
def test_a_schema_with_half_a_surrogate_pair_is_refused_and_nothing_is_kept(
    place: World, declared: dict[str, Any]
) -> None:
    refused = put(place, "odd", declared)
    assert (refused.status_code, refused.json()["kind"]) == (422, "schema")
    assert [one["name"] for one in place.send("owner", "GET", "/v1/datasets").json()["datasets"]]
    assert place.send("owner", "GET", "/v1/datasets/odd").status_code == 404


def test_books_of_before_that_hold_such_text_can_be_read_and_repaired(place: World) -> None:
    declared = SCHEMA.to_dict()
    declared["dataset"] = {"name": HALF}
    declared["attributes"]["job"]["values"].append(HALF)
    with before_the_rule():
        assert put(place, "odd", declared).status_code == 200
        asked = place.ask("owner", dataset="odd").json()
        place.wait(asked["id"], "owner")
    _read.cache_clear()  # as a process that starts under the new rule
    release = f"/releases/{asked['id']}"
    for path in (
        release[1:],
        "releases",
        "datasets",
        "datasets/odd/budget",
        "ledger",
        "ledger/export",
        "ledger/verification",
        "audit",
        "audit/verification",
    ):
        assert place.send("owner", "GET", f"/v1/{path}").status_code == 200, path
    assert place.send("owner", "GET", "/v1/ledger/verification").json()["ok"]
    owner = Person(place, "owner")
    pages = ["/", "/releases", release, f"{release}/certificate.json", "/ledger", "/log"]
    for page in [*pages, f"{release}/certificate.html", "/dataset?name=odd"]:
        assert owner.get(page).status_code < 500, page
    refused = place.ask("owner", dataset="odd")
    assert (refused.status_code, refused.json()["kind"]) == (422, "schema")
    assert place.ask("owner", dataset=DATASET, record=OUTLIER).status_code == 202
    assert put(place, "odd", SCHEMA.to_dict()).json()["version"] == 2
    assert place.ask("owner", dataset="odd").status_code == 202
