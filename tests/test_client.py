"""The client: the library's names, automatic keys, retries that cost nothing twice."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from fractions import Fraction
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest
import uvicorn

import pcor
from pcor.client import Client, ServiceError
from pcor.errors import BudgetExceeded, NoValidContext, ParameterError
from pcor.service import create_app
from pcor.service.core.service import Service
from tests.helpers.service_world import (
    ANALYST,
    CLOSED,
    DATASET,
    DEFAULTS,
    ORDINARY,
    OUTLIER,
    SCHEMA,
    prepared,
    registration,
    settings_for,
)


class Running:
    """A service on a real socket."""

    def __init__(self, folder: Path) -> None:
        self.service: Service
        self.service, self.keys = prepared(settings_for(str(folder / "books.db"), folder))
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        config = uvicorn.Config(create_app(self.service), log_level="critical", access_log=False)
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run, args=([self._socket],))
        self._thread.start()

    def stop(self) -> None:
        self._server.should_exit = True
        self._thread.join()
        self._socket.close()


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    made = Running(tmp_path_factory.mktemp("service"))
    yield made
    made.stop()


@pytest.fixture
def client(running: Running) -> Client:
    return Client(running.url, running.keys[ANALYST])


def test_a_release_over_http_is_a_release(client: Client, tmp_path: Path) -> None:
    released = client.release(DATASET, OUTLIER, epsilon=0.2)
    assert isinstance(released, pcor.Release)
    assert released.record == OUTLIER
    assert released.context.schema == SCHEMA
    assert released.epsilon == 0.2
    assert released.promise.guarantee == pcor.OCDP()
    assert str(released) == released.to_dict()["sentence"]
    released.save(tmp_path / "certificate.html")
    assert "PCOR certificate" in (tmp_path / "certificate.html").read_text()


def test_the_same_question_is_free_and_the_same(client: Client) -> None:
    first = client.release(DATASET, OUTLIER, preset="small")
    left = client.left(DATASET)
    assert client.release(DATASET, OUTLIER, Fraction(1, 20)) == first
    assert client.left(DATASET) == left
    client.release(DATASET, OUTLIER, preset="small", draw=2)
    assert client.left(DATASET) == left - Fraction("0.05")


def test_the_plan_is_the_plan_of_the_release(client: Client) -> None:
    planned = client.plan(DATASET, OUTLIER, preset="medium")
    assert isinstance(planned, pcor.Plan)
    assert planned.to_dict() == client.release(DATASET, OUTLIER, preset="medium").plan.to_dict()


def test_looking_around(client: Client) -> None:
    client.release(DATASET, OUTLIER, preset="medium")
    assert client.datasets() == [DATASET]
    assert client.schema(DATASET) == SCHEMA
    assert client.presets(DATASET)["large"] == Fraction(1, 5)
    assert str(client.presets(DATASET)).endswith("large 0.2")
    assert {one["analyst"] for one in client.history()} == {ANALYST}


def test_refusals_are_the_librarys_errors(client: Client, running: Running) -> None:
    with pytest.raises(NoValidContext, match="no context"):
        client.release(DATASET, ORDINARY, preset="small")
    with pytest.raises(ServiceError, match="no such record"):
        client.release(DATASET, CLOSED, preset="small")
    with pytest.raises(ServiceError, match="outside the presets"):
        client.release(DATASET, OUTLIER, 0.3)
    running.service.ledger.allot(DATASET, "poor", "0.01")
    with pytest.raises(ServiceError, match="Authorization"):
        Client(running.url, "pcor_a_b").datasets()


def test_a_refusal_of_the_budget_says_asked_left_and_short_by(running: Running) -> None:
    owner = Client(running.url, running.keys["owner"])
    with pytest.raises(BudgetExceeded) as refusal:
        owner.release(DATASET, OUTLIER, epsilon=1000)
    assert refusal.value.asked == 1000
    assert refusal.value.short_by == 1000 - refusal.value.left
    assert "short by" in str(refusal.value)


@pytest.mark.parametrize(
    ("url", "key"),
    [
        ("ftp://x", "k"),
        ("nonsense", "k"),
        ("http://example.org", "k"),
        ("https://example.org", "two words"),
        ("https://example.org", "new\nline"),
    ],
)
def test_what_cannot_be_a_service_or_a_key_is_refused(url: str, key: str) -> None:
    with pytest.raises(ParameterError):
        Client(url, key)


def test_give_either_epsilon_or_preset(client: Client) -> None:
    for wrong in ({}, {"epsilon": 0.1, "preset": "small"}):
        with pytest.raises(ParameterError, match="either"):
            client.release(DATASET, OUTLIER, **wrong)  # type: ignore[arg-type]


def test_the_key_is_not_in_the_repr() -> None:
    assert "secret" not in repr(Client("https://example.org", "pcor_a_secret"))


# -- against a service of our own making ----------------------------------------------------------


class Script(BaseHTTPRequestHandler):
    """Answers as it is told, and remembers what it was asked."""

    answers: ClassVar[list[tuple[int, dict[str, str], Any]]] = []
    asked: ClassVar[list[tuple[str, str | None, str | None]]] = []

    def do_GET(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        self.rfile.read(length)
        self.asked.append(
            (self.path, self.headers.get("Idempotency-Key"), self.headers.get("Authorization"))
        )
        status, headers, body = self.answers.pop(0)
        if status == 0:
            self.close_connection = True  # hang up without a word
            return
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    do_POST = do_GET

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def scripted() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Script)
    Script.answers, Script.asked = [], []
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def test_what_may_pass_is_tried_again_under_the_same_key(scripted: str) -> None:
    waits: list[float] = []
    error = {"kind": "no_valid_context", "detail": "there is no context"}
    busy = {"kind": "still_running", "release": "r1", "retry_after": 0.25}
    Script.answers[:] = [
        (0, {}, b""),
        (503, {"Retry-After": "5"}, {"kind": "ledger", "detail": "away"}),
        (429, {"Retry-After": "2"}, {}),
        (502, {}, b"<html>"),
        (409, {}, busy),
        (200, {}, {"state": "running", "id": "r1", "retry_after": 1.5}),
        (200, {}, {"state": "done", "id": "r1", "error": error}),
    ]
    client = Client(scripted, "k", sleep=waits.append)
    with pytest.raises(NoValidContext, match="there is no context"):
        client.release("d", 1, 0.1)
    assert waits == [0.1, 5.0, 2.0, 0.8, 0.25, 1.5]
    keys = {key for path, key, _ in Script.asked if path == "/v1/releases"}
    assert len(keys) == 1
    assert None not in keys
    assert [path for path, *_ in Script.asked[-2:]] == ["/v1/releases/r1"] * 2


def test_a_release_is_as_patient_with_its_plan_as_with_its_answer(
    scripted: str, client: Client
) -> None:
    """It is paid for: what is read last must not be given up sooner than the rest."""
    waits: list[float] = []
    released = client.release(DATASET, OUTLIER, preset="large", draw=9)
    found = {"release": released.to_dict(), "error": None, "state": "done", "id": "r1"}
    body = registration()
    options = DEFAULTS | {"detector": body["detector"]}
    del options["description"]
    Script.answers[:] = [
        (200, {}, found | {"dataset": DATASET, "version": 1, "epsilon": "0.2"}),
        (503, {"Retry-After": "60"}, {"kind": "ledger", "detail": "away"}),
        (200, {}, {"schema": body["schema"], "options": options}),
    ]
    patient = Client(scripted, "k", sleep=waits.append)
    assert patient.release(DATASET, OUTLIER, preset="large", draw=9) == released
    assert waits == [60.0]


def test_every_request_has_a_key_of_its_own(scripted: str) -> None:
    error = {"kind": "no_valid_context", "detail": "none"}
    done: tuple[int, dict[str, str], Any] = (200, {}, {"state": "done", "id": "r1", "error": error})
    Script.answers[:] = [done, done]
    for _ in range(2):
        with pytest.raises(NoValidContext):
            Client(scripted, "k").release("d", 1, 0.1)
    assert len({key for _, key, _ in Script.asked}) == 2


def test_a_redirect_is_not_followed_with_the_key(scripted: str) -> None:
    Script.answers[:] = [(302, {"Location": f"{scripted}/elsewhere"}, {})]
    with pytest.raises(ServiceError, match="302"):
        Client(scripted, "k").datasets()
    assert [path for path, *_ in Script.asked] == ["/v1/datasets"]


def test_a_key_over_http_goes_past_no_proxy(scripted: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy"):
        monkeypatch.setenv(name, scripted)
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(ServiceError, match="reached"):
        Client("http://127.0.0.1:1", "k", patience=0).datasets()
    assert Script.asked == []


@pytest.mark.parametrize("body", [b"<html>", b"[]", b""])
def test_what_is_not_a_pcor_service_is_said_to_be_none(scripted: str, body: bytes) -> None:
    Script.answers[:] = [(200, {}, body)]
    with pytest.raises(ServiceError, match="not the answer of a pcor service"):
        Client(scripted, "k").datasets()


def test_patience_ends(scripted: str) -> None:
    Script.answers[:] = [(503, {"Retry-After": "30"}, {"kind": "ledger", "detail": "away"})]
    with pytest.raises(ServiceError, match="away"):
        Client(scripted, "k", patience=1).datasets()


def test_an_answer_that_takes_too_long_can_be_asked_for_again(scripted: str) -> None:
    Script.answers[:] = [(202, {}, {"state": "running", "id": "r1", "retry_after": 60})]
    with pytest.raises(ServiceError, match="later is free"):
        Client(scripted, "k", patience=1).release("d", 1, 0.1)


def test_a_service_that_is_not_there_is_said_to_be_out_of_reach() -> None:
    with socket.socket() as taken:  # by us, who do not listen, so that nobody else can
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        with pytest.raises(ServiceError, match="cannot be reached"):
            Client(f"http://127.0.0.1:{port}", "k", patience=0).datasets()
