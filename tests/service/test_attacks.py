"""The service under attack: injection, traversal, floods, nonsense. Each is tried."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa
import pytest
from fastapi import Request
from pyarrow import parquet
from sqlalchemy import inspect

import pcor
from pcor.service import ServiceSettings
from pcor.service.core.keys import digest, find_key
from pcor.service.core.limits import TokenBuckets
from pcor.service.core.problems import Problem
from pcor.service.core.service import GUESSES, Service
from pcor.service.core.sources import find_source
from pcor.service.core.tries import address_of
from pcor.service.page.sessions import COOKIE
from tests.helpers.page_person import Person
from tests.helpers.service_world import (
    ANALYST,
    DATASET,
    OTHER,
    OUTLIER,
    SOURCE,
    World,
    columns,
    registration,
    served,
    settings_for,
    world,
)
from tests.helpers.waiting import until


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("service")
    with world(str(folder / "books.db"), folder) as made:
        yield made


@pytest.fixture
def folder(place: World) -> Path:
    return place.service.settings.data


def question(**changes: Any) -> dict[str, Any]:
    return {"dataset": DATASET, "record": OUTLIER, "preset": "small"} | changes


# -- injection ------------------------------------------------------------------------------------

SQL = ["'; DROP TABLE pcor_entries; --", "x' OR '1'='1", '"; DELETE FROM pcor_service_keys; --']
# Every text that a request can hold: where it goes, and the request.
TEXTS: dict[str, Any] = {
    "dataset": lambda t: ("POST", "/v1/releases", question(dataset=t)),
    "record": lambda t: ("POST", "/v1/releases", question(record=t)),
    "epsilon": lambda t: ("POST", "/v1/releases", question(preset=None, epsilon=t)),
    "preset": lambda t: ("POST", "/v1/releases", question(preset=t)),
    "release id": lambda t: ("GET", f"/v1/releases/{t}", None),
    "dataset name": lambda t: ("PUT", f"/v1/datasets/{t}", registration()),
    "analyst name": lambda t: (
        "PUT",
        f"/v1/datasets/{DATASET}/allotments/{t}",
        {"epsilon": "1"},
    ),
    "source": lambda t: ("PUT", "/v1/datasets/new", registration(source=t)),
    "description": lambda t: ("PUT", "/v1/datasets/new", registration(description=t)),
    "detector": lambda t: ("PUT", "/v1/datasets/new", registration(detector=t)),
    "search": lambda t: ("PUT", "/v1/datasets/new", registration(search=t)),
    "open record": lambda t: ("PUT", "/v1/datasets/new", registration(records=[t])),
    "budget": lambda t: ("PUT", "/v1/datasets/new", registration(budget={"epsilon": t})),
    "key name": lambda t: ("POST", "/v1/keys", {"role": "analyst", "name": t}),
    "key id": lambda t: ("DELETE", f"/v1/keys/{t}", None),
    "ledger filter": lambda t: ("GET", f"/v1/ledger?dataset={t}", None),
}


@pytest.mark.parametrize("text", [*SQL, "\x00", "\ud800", "%00", "🦉" * 50, "a\r\nSet-Cookie: x=1"])
@pytest.mark.parametrize("field", TEXTS)
def test_no_text_breaks_out_of_its_field(place: World, field: str, text: str) -> None:
    from urllib.parse import quote

    method, path, body = TEXTS[field](text)
    prefix, _, rest = path.partition(text) if text in path else (path, "", "")
    path = prefix + quote(text, safe="", errors="replace") + rest if text in path else path
    given = {} if body is None else {"content": json.dumps(body)}
    headers = {"Content-Type": "application/json", "Idempotency-Key": f"sql-{field}-{hash(text)}"}
    answer = place.send("owner", method, path, headers=headers, **given)
    assert answer.status_code < 500, answer.text
    assert "set-cookie" not in answer.headers
    tables = inspect(place.service.ledger.database.engine).get_table_names()
    assert {"pcor_entries", "pcor_service_keys"} <= set(tables)
    assert place.service.ledger.verify().ok
    assert place.send("owner", "GET", "/v1/me").status_code == 200


def test_values_that_look_like_html_stay_data_in_json_and_in_the_certificate(
    place: World, folder: Path
) -> None:
    evil = ["<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "pilot\r\nX-Evil: 1"]
    people = dict(columns())
    people["job"] = [evil[["clerk", "cook", "pilot"].index(job)] for job in people["job"]]
    parquet.write_table(pa.table(people), folder / "evil.parquet")
    schema = pcor.Schema(
        metric="pay", attributes={"job": evil, "city": ["Rome", "Oslo"]}, name="<b>evil</b>"
    )
    body = registration(schema=schema.to_dict(), source="evil.parquet")
    assert place.send("owner", "PUT", "/v1/datasets/evil", json=body).status_code == 200
    place.send("owner", "PUT", f"/v1/datasets/evil/allotments/{ANALYST}", json={"epsilon": "1"})
    name = place.ask(dataset="evil").json()["id"]
    done = place.wait(name)
    answer = place.send(ANALYST, "GET", f"/v1/releases/{name}")
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert "x-evil" not in answer.headers
    plan = pcor.plan(schema, "0.1", detector="grubbs:min_population=5")
    page = pcor.Release.from_dict(done["release"], plan).to_html()
    assert "<script>alert" not in page
    assert "<img" not in page


# -- path traversal -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    [
        "../secret.parquet",
        "a/../../secret.parquet",
        "/etc/passwd",
        "..\\secret.parquet",
        "link.parquet",
        "linked/secret.parquet",
        ".",
        "",
        "people.parquet/..",
        "*.parquet",
        "people.txt",
        "postgresql://host/name#table",
        "peo\x00ple.parquet",
        "x" * 501,
    ],
)
def test_a_source_outside_the_data_folder_is_refused(place: World, folder: Path, name: str) -> None:
    outside = folder.parent / "secret.parquet"
    if not outside.exists():
        parquet.write_table(pa.table(columns()), outside)
        os.symlink(outside, folder / "link.parquet")
        os.symlink(folder.parent, folder / "linked")
        (folder / "people.txt").write_text("x")
    with pytest.raises(pcor.PcorError) as refusal:
        find_source(folder, name)
    assert str(folder) not in str(refusal.value)
    body = registration(source=name)
    answer = place.send("owner", "PUT", "/v1/datasets/outside", json=body)
    assert answer.status_code == 422
    assert str(folder) not in answer.text


def test_a_source_in_a_folder_below_is_found(folder: Path) -> None:
    (folder / "below").mkdir(exist_ok=True)
    (folder / "below" / "t.csv").write_text("job,city,pay\n")
    assert find_source(folder, "below/t.csv") == (folder / "below" / "t.csv").resolve()


def test_a_file_that_changed_since_is_not_asked_and_nothing_is_charged(tmp_path: Path) -> None:
    with world(str(tmp_path / "books.db"), tmp_path) as place:
        place.service.tables._kept.clear()
        path = place.service.settings.data / SOURCE
        changed = dict(columns())
        changed["pay"] = [pay + 1 for pay in changed["pay"]]
        parquet.write_table(pa.table(changed), path)
        left = place.service.ledger.left(DATASET)
        refused = place.ask()
        assert (refused.status_code, refused.json()["kind"]) == (503, "source_changed")
        assert place.service.ledger.left(DATASET) == left


# -- bodies ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 422),
        (b"{", 400),
        (b"nonsense", 400),
        (b"[]", 422),
        (b"null", 422),
        (b"[" * 100_000, 400),
        (b'{"dataset": "\xff"}', 400),
        (b'{"dataset": NaN}', 422),
        (json.dumps(question(more=1)).encode(), 422),
        (json.dumps(question(record=True)).encode(), 422),
        (json.dumps(question(record=1.5)).encode(), 422),
        (json.dumps(question(record="x" * 201)).encode(), 422),
        (json.dumps(question(draw=0)).encode(), 422),
        (json.dumps(question(draw="1")).encode(), 422),
        (json.dumps(question(epsilon="0.1")).encode(), 422),
        (json.dumps(question(preset=None)).encode(), 422),
        (b'{"dataset":"people","record":17,"epsilon":1e400}', 422),
        (b'{"dataset":"people","record":17,"epsilon":-1}', 422),
        (b'{"dataset":"people","record":17,"epsilon":0}', 422),
        (b'{"dataset":"people","record":17,"epsilon":"1e-999999999"}', 422),
        (b'{"dataset":"people","record":17,"epsilon":"1/0"}', 422),
        (b'{"dataset":"people","record":' + b"9" * 5000 + b',"preset":"small"}', 400),
    ],
    ids=lambda value: str(value)[:40],
)
def test_a_malformed_body_is_refused_with_a_problem(place: World, body: bytes, status: int) -> None:
    headers = {"Content-Type": "application/json", "Idempotency-Key": "bad"}
    answer = place.send(ANALYST, "POST", "/v1/releases", content=body, headers=headers)
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["status"] == status


def test_an_oversized_body_is_refused(place: World) -> None:
    most = place.service.settings.largest_body
    headers = {"Content-Type": "application/json", "Idempotency-Key": "large"}
    body = json.dumps(question(dataset="x" * most)).encode()
    answer = place.send(ANALYST, "POST", "/v1/releases", content=body, headers=headers)
    assert (answer.status_code, answer.json()["kind"]) == (413, "too_large")


def test_an_oversized_body_of_no_stated_length_is_refused(place: World) -> None:
    most = place.service.settings.largest_body

    def endless() -> Iterator[bytes]:
        for _ in range(most // 65_536 + 2):
            yield b" " * 65_536

    headers = {"Content-Type": "application/json", "Idempotency-Key": "endless"}
    answer = place.send(ANALYST, "POST", "/v1/releases", content=endless(), headers=headers)
    assert answer.status_code == 413
    assert answer.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize(
    "kind",
    ["text/plain", "application/xml", "multipart/form-data", "application/jsonx", "", "\xe9"],
)
def test_an_unknown_content_type_is_refused(place: World, kind: str) -> None:
    headers = {"Content-Type": kind.encode("latin-1"), "Idempotency-Key": "kind"}
    body = json.dumps(question()).encode()
    answer = place.send(ANALYST, "POST", "/v1/releases", content=body, headers=headers)
    assert (answer.status_code, answer.json()["kind"]) == (415, "unsupported_media_type")


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [("PATCH", "/v1/releases", 405), ("GET", "/v1/nothing", 404), ("TRACE", "/v1/me", 405)],
)
def test_an_unknown_route_is_a_problem(place: World, method: str, path: str, status: int) -> None:
    answer = place.send("owner", method, path)
    assert answer.status_code == status
    assert answer.headers["content-type"] == "application/problem+json"


# -- what a failure says --------------------------------------------------------------------------


def test_an_internal_error_carries_a_number_and_nothing_else(
    place: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("salary 400.5 of row 17")

    monkeypatch.setattr("pcor.service.core.questions.plan_question", fail)
    with caplog.at_level(logging.DEBUG):
        answer = place.send(ANALYST, "POST", "/v1/plans", json=question())
    assert answer.status_code == 500
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["id"] in caplog.text
    for said in (answer.text, caplog.text):
        assert "400.5" not in said
        assert "Traceback" not in said


def test_a_search_that_fails_logs_its_kind_and_not_its_words(
    place: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("salary 400.5 of row 17")

    with monkeypatch.context() as patched, caplog.at_level(logging.DEBUG):
        patched.setattr("pcor.service.core.draws.read_and_draw", fail)
        name = place.ask(draw=900).json()["id"]
        until(lambda: "RuntimeError" in caplog.text)
    assert "400.5" not in caplog.text
    assert place.wait(name)["release"] is not None  # the next sweep finished it


def test_every_answer_carries_the_safe_headers(place: World) -> None:
    for path in ("/v1/health", "/v1/nothing", "/openapi.json"):
        headers = place.api.get(path).headers
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["cache-control"] == "no-store"


def test_the_settings_do_not_show_the_database_password(tmp_path: Path) -> None:
    settings = ServiceSettings("postgresql://u:hunter2@h/n", tmp_path)
    assert "hunter2" not in repr(settings)


# -- floods ---------------------------------------------------------------------------------------


def test_a_key_that_asks_too_often_is_told_to_wait(tmp_path: Path) -> None:
    with world(str(tmp_path / "books.db"), tmp_path) as place:
        place.service.rates = TokenBuckets(1.0, 3, clock=lambda: 0.0)
        statuses = [place.send(ANALYST, "GET", "/v1/me").status_code for _ in range(5)]
        assert statuses == [200, 200, 200, 429, 429]
        refused = place.send(ANALYST, "GET", "/v1/me")
        assert int(refused.headers["retry-after"]) >= 1
        assert place.send("auditor", "GET", "/v1/me").status_code == 200


def test_who_guesses_keys_is_slowed_down(tmp_path: Path) -> None:
    with world(str(tmp_path / "books.db"), tmp_path) as place:
        place.service.guesses = TokenBuckets(*GUESSES, clock=lambda: 0.0)
        statuses = {
            place.api.get("/v1/me", headers={"Authorization": "Bearer pcor_a_b"}).status_code
            for _ in range(40)
        }
        assert statuses == {401, 429}


def wrong(place: World, number: int) -> Any:
    return place.api.get("/v1/me", headers={"Authorization": f"Bearer pcor_a_{number}"})


def test_a_key_is_not_looked_up_for_who_has_guessed_too_often(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked_up = list[str]()

    def counted(connection: Any, token: str, now: int) -> Any:
        looked_up.append(token)
        return find_key(connection, token, now)

    monkeypatch.setattr("pcor.service.api.roles.find_key", counted)
    monkeypatch.setattr("pcor.service.page.sessions.find_key", counted)
    with world(str(tmp_path / "books.db"), tmp_path) as place:
        place.service.guesses = TokenBuckets(*GUESSES, clock=lambda: 0.0)
        assert [wrong(place, n).status_code for n in range(30)] == [401] * 20 + [429] * 10
        assert place.api.post("/sign-in", data={"key": "pcor_a_b"}).status_code == 429
        place.api.cookies.set(COOKIE, "x")
        assert place.api.get("/releases").status_code == 429
        assert len(looked_up) == GUESSES[1]


def test_who_guesses_locks_out_nobody_who_works_at_the_same_address(tmp_path: Path) -> None:
    with world(str(tmp_path / "books.db"), tmp_path) as place:
        place.service.guesses = TokenBuckets(*GUESSES, clock=lambda: 0.0)
        assert place.send(ANALYST, "GET", "/v1/me").status_code == 200
        while wrong(place, 1).status_code != 429:
            pass
        assert place.send(ANALYST, "GET", "/v1/me").status_code == 200
        assert place.send(OTHER, "GET", "/v1/me").status_code == 429  # it may be a guess
        # A key that was taken back is a guess like any other.
        place.service.guesses = TokenBuckets(*GUESSES, clock=lambda: 0.0)
        name = place.keys[ANALYST].split("_")[1]
        assert place.send("owner", "DELETE", f"/v1/keys/{name}").status_code == 200
        assert place.send(ANALYST, "GET", "/v1/me").status_code == 401
        assert not place.service.known.has(digest(place.keys[ANALYST]))


def test_who_guesses_locks_out_no_session_that_was_just_opened(tmp_path: Path) -> None:
    with world(str(tmp_path / "books.db"), tmp_path) as place:
        place.service.guesses = TokenBuckets(*GUESSES, clock=lambda: 0.0)
        signed_in = Person(place, ANALYST)
        while wrong(place, 1).status_code != 429:
            pass
        assert signed_in.get("/releases").status_code == 200


def test_a_good_key_signs_in_so_often_and_no_oftener(tmp_path: Path) -> None:
    with world(str(tmp_path / "books.db"), tmp_path) as place:
        place.service.sign_ins = TokenBuckets(0.2, 10, clock=lambda: 0.0)
        answers = [
            place.api.post("/sign-in", data={"key": place.keys[ANALYST]}, follow_redirects=False)
            for _ in range(15)
        ]
        assert [one.status_code for one in answers] == [303] * 10 + [429] * 5
        assert answers[-1].headers["retry-after"] == "5"
        other = {"key": place.keys["owner"]}
        assert place.api.post("/sign-in", data=other, follow_redirects=False).status_code == 303


@pytest.mark.parametrize(
    ("proxies", "answers"),
    [((), {401, 429}), (("127.0.0.1",), {401}), (("10.0.0.0/8",), {401, 429})],
)
def test_who_sent_a_request_is_believed_of_named_proxies_alone(
    proxies: tuple[str, ...], answers: set[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORWARDED_ALLOW_IPS", "*")  # uvicorn would go by it
    settings = settings_for(str(tmp_path / "books.db"), tmp_path, proxies=proxies)
    service = Service(settings, create=True)
    service.guesses = TokenBuckets(*GUESSES, clock=lambda: 0.0)
    with served(service) as at, httpx.Client(base_url=at.url) as client:
        found = {
            client.get("/v1/me", headers={"X-Forwarded-For": f"203.0.113.{n}"}).status_code
            for n in range(25)
        }
    assert found == answers


@pytest.mark.parametrize("proxy", ["*", "proxy.example", "10.0.0.1/8", ""])
def test_a_proxy_is_named_by_its_address(proxy: str, tmp_path: Path) -> None:
    with pytest.raises(pcor.PcorError, match="address or network"):
        ServiceSettings("books.db", tmp_path, proxies=(proxy,))


def test_addresses_that_one_sender_has_are_counted_as_one() -> None:
    def of(host: str) -> str:
        return address_of(Request({"type": "http", "client": (host, 1)}))

    assert of("2001:db8::1") == of("2001:db8::ffff:1") != of("2001:db8:0:1::1")
    assert of("::ffff:192.0.2.1") == of("192.0.2.1") != of("192.0.2.2")


def test_a_bucket_fills_again() -> None:
    now = 0.0
    rates = TokenBuckets(2.0, 1, clock=lambda: now)
    rates.take("a")
    with pytest.raises(Problem):
        rates.take("a")
    now = 0.5
    rates.take("a")
