"""The service and its books under pressure: text that cannot be sent, damage, refusals."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from threading import Event, current_thread
from typing import Any
from unittest.mock import patch

import pytest
from sqlalchemy import func, insert, select, update

from pcor.client import ServiceError, _object
from pcor.errors import LedgerError
from pcor.ledger import Ledger, tables
from pcor.public.schema import Schema
from pcor.service.core import registry
from pcor.service.core import tables as service_tables
from pcor.service.core.book_checks import BookCheck, BookChecks
from pcor.service.core.jobs import MOST_CALLS
from pcor.service.core.registry import find_registration
from tests.helpers.books import HALF, before_the_rule
from tests.helpers.page_person import Person
from tests.helpers.service_world import (
    ANALYST,
    DATASET,
    OUTLIER,
    SCHEMA,
    World,
    prepared,
    registration,
    running,
    settings_for,
    world,
)
from tests.helpers.waiting import DEADLINE


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


def test_books_of_before_that_hold_such_text_can_be_read_and_repaired(
    place: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    declared = SCHEMA.to_dict()
    declared["dataset"] = {"name": HALF}
    declared["attributes"]["job"]["values"].append(HALF)
    with before_the_rule():
        assert put(place, "odd", declared).status_code == 200
        asked = place.ask("owner", dataset="odd").json()
        place.wait(asked["id"], "owner")
    # As in a process that starts now.
    monkeypatch.setattr(registry, "_parsed", registry.parsed_cache(registry.PARSED))
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


# -- many registrations ---------------------------------------------------------------------------


def register_often(place: World, names: list[str], versions: int) -> None:
    """Keep the registration of the small table under many names and versions."""
    with place.service.ledger.database.writing() as connection:
        kept = find_registration(connection, DATASET)
        assert kept is not None
        rows = [
            {"name": name, "version": version, "made": 0}
            | {"body": replace(kept, description=f"{name} {version}").to_body()}
            for name in names
            for version in range(1, versions + 1)
        ]
        connection.execute(insert(service_tables.datasets), rows)


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Return what is parsed from now on."""
    found: list[Any] = []
    read = Schema.from_dict

    def counted(given: Any) -> Schema:
        found.append(given)
        return read(given)

    monkeypatch.setattr(Schema, "from_dict", counted)
    return found


def listed(place: World, who: str) -> list[str]:
    """Return the descriptions of the datasets that somebody is shown."""
    found = place.send(who, "GET", "/v1/datasets").json()["datasets"]
    return [one["description"] for one in found if one["name"] != DATASET]


def test_of_many_versions_the_list_reads_the_newest_alone(place: World, parsed: list[Any]) -> None:
    register_often(place, ["a", "b"], 200)
    parsed.clear()
    assert listed(place, "owner") == ["a 200", "b 200"]
    assert len(parsed) <= 3
    assert listed(place, ANALYST) == []


def test_many_datasets_are_parsed_once(place: World, parsed: list[Any]) -> None:
    register_often(place, [f"{number:03d}" for number in range(200)], 1)
    assert len(listed(place, "owner")) == 200
    parsed.clear()
    assert len(listed(place, "owner")) == 200
    assert parsed == []


def test_a_list_parses_nothing_that_is_not_open(place: World, parsed: list[Any]) -> None:
    register_often(place, [f"{number:03d}" for number in range(20)], 1)
    parsed.clear()
    assert listed(place, ANALYST) == []
    assert len(parsed) <= 1


def test_the_state_of_a_known_file_is_found_without_reading_all_versions(
    place: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    register_often(place, ["a"], 200)
    read, bodies = json.loads, list[Any]()

    def counted(text: Any, **options: Any) -> Any:
        found = read(text, **options)
        # The books are verified beside it, with every registration in them.
        verified = isinstance(current_thread(), BookChecks)
        if isinstance(found, dict) and "mark" in found and not verified:
            bodies.append(found)
        return found

    with monkeypatch.context() as patched:
        patched.setattr(json, "loads", counted)
        answer = place.send("owner", "PUT", "/v1/datasets/a", json=registration())
    assert (answer.json()["version"], answer.json()["source_state"]) == (201, 1)
    assert len(bodies) < 10


def test_parsed_registrations_are_kept_up_to_so_many_characters(
    place: World, parsed: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    with place.service.ledger.database.reading() as connection:
        kept = find_registration(connection, DATASET)
    assert kept is not None
    bodies = [replace(kept, description=str(number)).to_body() for number in range(3)]
    monkeypatch.setattr(registry, "_parsed", registry.parsed_cache(2 * len(bodies[0])))

    def read(number: int) -> bool:
        """Read one; return whether that took parsing."""
        before = len(parsed)
        assert registry._read("a", number, bodies[number]).description == str(number)
        return len(parsed) > before

    assert [read(0), read(1), read(0), read(2)] == [True, True, False, True]
    assert [read(0), read(2), read(1)] == [False, False, True]  # 1 was the least used
    # One that is longer than all there is room for.
    monkeypatch.setattr(registry, "_parsed", registry.parsed_cache(1))
    assert registry._read("a", 0, bodies[0]).version == 0


# -- text without end -----------------------------------------------------------------------------

DEEP = b"[" * 100_000


def test_a_body_of_brackets_is_refused_in_a_sentence(place: World) -> None:
    for who, method, path in (
        ("owner", "PUT", "/v1/datasets/deep"),
        (ANALYST, "POST", "/v1/plans"),
        (ANALYST, "POST", "/v1/releases"),
    ):
        headers = {"Content-Type": "application/json", "Idempotency-Key": "deep"}
        for body in (DEEP, b'{"schema":' + DEEP[:900] + b"]" * 900 + b"}"):
            refused = place.send(who, method, path, content=body, headers=headers)
            assert refused.status_code in (400, 422)


def test_a_client_that_is_answered_with_brackets_says_that_it_is_no_service() -> None:
    with pytest.raises(ServiceError, match="not the answer of a pcor service"):
        _object(DEEP)


# -- refusals -------------------------------------------------------------------------------------


def test_refused_questions_without_end_leave_few_calls_jobs_and_entries(place: World) -> None:
    path = f"/v1/datasets/{DATASET}/allotments/{ANALYST}"
    assert place.send("owner", "PUT", path, json={"epsilon": "0.01"}).status_code == 200
    written = [service_tables.calls, service_tables.jobs, service_tables.events]

    def counted() -> list[int]:
        with place.service.ledger.database.reading() as connection:
            counts = [select(func.count()).select_from(table) for table in written]
            return [connection.execute(count).scalar_one() for count in counts]

    before, entries = counted(), place.service.ledger.head().entries
    for draw in range(1, 71):
        refused = place.ask(draw=draw)
        assert (refused.status_code, refused.json()["short_by"]) == (403, "0.09")
    calls, jobs, events = before
    assert counted() == [calls + 16, jobs + 16, events]
    assert place.service.ledger.head().entries - entries == 18  # 16, the 32nd, the 64th
    assert place.send("owner", "GET", "/v1/ledger/verification").json()["ok"]
    place.send("owner", "PUT", path, json={"epsilon": "4"})
    assert place.ask(draw=70).status_code == 202


def test_repeats_of_a_paid_question_under_ever_new_keys_leave_a_few_of_them(place: World) -> None:
    first = place.ask(draw=1, call="first")
    assert first.status_code == 202
    name = first.json()["id"]
    place.wait(name)
    answers = [place.ask(draw=1, call=f"again-{n}") for n in range(40)]
    assert {(answer.status_code, answer.json()["id"]) for answer in answers} == {(200, name)}
    calls = service_tables.calls
    with place.service.ledger.database.reading() as connection:
        kept = connection.execute(select(func.count()).where(calls.c.job == name)).scalar_one()
    assert kept == MOST_CALLS
    spent = place.service.ledger.status(DATASET).spent["ocdp"]
    assert place.ask(draw=1, call="again-39").json()["id"] == name
    assert place.service.ledger.status(DATASET).spent["ocdp"] == spent


# -- damage ---------------------------------------------------------------------------------------


def metric(place: World, name: str) -> float:
    text = place.send("owner", "GET", "/v1/metrics").text
    (line,) = [line for line in text.splitlines() if line.startswith(f"{name}{{")]
    return float(line.split()[-1])


def spoil(ledger: Ledger) -> None:
    """Change an old entry, far from what a charge looks at."""
    with ledger.database.writing() as connection:
        change = update(tables.entries).where(tables.entries.c.number == 1)
        connection.execute(change.values(at="2001-01-01T00:00:00Z"))


def test_a_check_of_the_books_is_a_metric(place: World) -> None:
    assert place.service.checks.check().ledger
    assert metric(place, "pcor_ledger_whole") == 1
    assert metric(place, "pcor_audit_log_whole") == 1
    assert metric(place, "pcor_books_checked_at") > 1.7e9


def test_a_service_that_starts_on_damaged_books_charges_nothing_and_says_so(
    url: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    service, keys = prepared(settings_for(url, tmp_path))
    spoil(service.ledger)
    ended, check = Event(), service.checks.check

    def noted() -> BookCheck:
        found = check()
        ended.set()
        return found

    with (
        patch.object(service.checks, "check", noted),
        caplog.at_level(logging.ERROR, "pcor.service"),
        running(service, keys) as place,
    ):
        assert ended.wait(DEADLINE)
        refused = place.ask()
        assert (refused.status_code, refused.json()["kind"]) == (503, "ledger")
        assert "pays for nothing; `pcor ledger verify` says where" in refused.json()["detail"]
        assert metric(place, "pcor_ledger_whole") == 0
        assert "entry 1 was changed" in caplog.text
        assert not [entry for entry in service.ledger.entries() if entry.kind == "charge"]


def test_damage_under_a_running_service_is_found_by_the_next_check(place: World) -> None:
    asked = place.ask().json()
    place.wait(asked["id"])
    spoil(place.service.ledger)
    assert place.ask(draw=2).status_code == 202  # nothing that this charge rests on
    assert not place.service.checks.check().ledger
    assert place.ask(draw=3).status_code == 503
    assert place.send(ANALYST, "GET", f"/v1/releases/{asked['id']}").status_code == 200


def test_a_check_that_fails_is_tried_again(url: str, tmp_path: Path) -> None:
    service, _ = prepared(settings_for(url, tmp_path, check=0.01))
    third, calls = Event(), []

    def fail() -> None:
        calls.append(1)
        if len(calls) == 3:
            third.set()
        raise LedgerError("busy") if len(calls) == 1 else ValueError

    with patch.object(service.checks, "check", fail):
        service.checks.start()
        assert third.wait(DEADLINE)
        service.close()
