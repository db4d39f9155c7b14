"""Connections that say nothing, or slowly: none is kept for ever, and none keeps others out."""

from __future__ import annotations

import logging
import resource
import socket
import sqlite3
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from starlette.requests import ClientDisconnect

import pcor
from pcor.service.core.service import Service
from pcor.service.page.access import as_problem
from pcor.service.server import quiet_logs
from pcor.service.server.connections import MOST, RESERVED, most_connections
from pcor.service.server.quiet_logs import RateLimitFilter, new_loop
from tests.helpers.service_world import Served, prepared, served, settings_for
from tests.helpers.waiting import DEADLINE, until

HEALTH = b"GET /v1/health HTTP/1.1\r\nHost: x\r\n\r\n"
KIND = b"Content-Type: application/json\r\n"
BODY = b"POST /v1/plans HTTP/1.1\r\nHost: x\r\n" + KIND + b"Content-Length: 9\r\n\r\n{"


@contextmanager
def serving(folder: Path, **changes: Any) -> Iterator[Served]:
    """Serve empty books; what is not tried takes as long as it takes."""
    slow = {"sweep": 1000, "headers_deadline": DEADLINE, "body_deadline": DEADLINE}
    settings = settings_for(str(folder / "books.db"), folder, **slow | changes)
    with served(Service(settings, create=True)) as at:
        yield at


def connected(at: Served) -> socket.socket:
    place = urlsplit(at.url)
    assert place.hostname is not None
    return socket.create_connection((place.hostname, place.port or 0), timeout=DEADLINE)


def heard(client: socket.socket) -> bytes:
    """Return all that is sent to a client until its connection ends."""
    said = b""
    try:
        while part := client.recv(65_536):
            said += part
    except ConnectionResetError:
        pass  # it ends like this where not all that was sent was read
    return said


def heard_up_to(client: socket.socket, last: bytes) -> bytes:
    """Return what is sent to a client up to these last bytes; it may come in several parts."""
    said = b""
    while not said.endswith(last):
        part = client.recv(65_536)
        assert part, f"the connection ended after {said!r}"
        said += part
    return said


@pytest.mark.parametrize("sent", [b"", b"GET", HEALTH[:-2]])
def test_a_connection_without_whole_headers_is_closed(sent: bytes, tmp_path: Path) -> None:
    with serving(tmp_path, headers_deadline=0.05) as at, connected(at) as client:
        with suppress(OSError):  # it may be over before this is sent
            client.sendall(sent)
        assert heard(client) == b""


def test_a_byte_now_and_then_moves_no_deadline(tmp_path: Path) -> None:
    sent = 0
    with serving(tmp_path, headers_deadline=0.2) as at, connected(at) as client:
        while not is_refused(client, b"x"):
            sent += 1
            assert sent < 16_000  # or the bound on the size of headers would end it
            time.sleep(0.01)


def is_refused(client: socket.socket, said: bytes) -> bool:
    try:
        client.sendall(said)
    except TimeoutError:
        raise  # it is kept, and not read from
    except OSError:
        return True
    return False


def test_the_next_request_of_a_connection_has_a_deadline_too(tmp_path: Path) -> None:
    with serving(tmp_path) as at, connected(at) as client:
        until(lambda: len(at.config.waiting) == 1)  # the first deadline is set
        at.config.settings = replace(at.config.settings, headers_deadline=0.05)
        client.sendall(HEALTH)
        answer = heard_up_to(client, b'{"status":"ok"}')
        assert answer.startswith(b"HTTP/1.1 200")
        with suppress(OSError):  # it may be over before this is sent
            client.sendall(b"GET")  # which is all that comes of the next
        assert heard(client) == b""


def test_a_body_that_does_not_come_is_told_so_and_the_connection_closed(tmp_path: Path) -> None:
    with serving(tmp_path, body_deadline=0.05) as at, connected(at) as client:
        client.sendall(BODY)
        said = heard(client)
        assert said.startswith(b"HTTP/1.1 408 Request Timeout\r\n")
        assert b"application/problem+json" in said


def test_a_client_that_does_not_read_its_answer_is_left(tmp_path: Path) -> None:
    with serving(tmp_path, body_deadline=0.2) as at, connected(at) as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        ask = b"GET /openapi.json HTTP/1.1\r\nHost: x\r\n\r\n"
        until(lambda: is_refused(client, ask), pause=lambda: None)


def test_who_sends_nothing_makes_room_for_who_does(tmp_path: Path) -> None:
    with serving(tmp_path, connections=3) as at, ExitStack() as open_:
        idle = [open_.enter_context(connected(at)) for _ in range(10)]
        for number in range(4):
            assert httpx.get(f"{at.url}/v1/health").status_code == 200, number
        assert [heard(one) for one in idle[:8]] == [b""] * 8


def test_who_comes_while_all_connections_are_at_work_is_told_to_come_again(tmp_path: Path) -> None:
    settings = settings_for(
        str(tmp_path / "books.db"), tmp_path, connections=2, sweep=1000, lock_patience=DEADLINE
    )
    service, keys = prepared(settings)
    headers = {"Authorization": f"Bearer {keys['owner']}"}

    def make_key(_: int) -> int:
        body = {"role": "analyst", "name": "new", "days": 1}
        answer = httpx.post(f"{at.url}/v1/keys", headers=headers, json=body, timeout=DEADLINE)
        return answer.status_code

    with served(service) as at, ThreadPoolExecutor(2) as pool:
        other = sqlite3.connect(tmp_path / "books.db", isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        waiting = [pool.submit(make_key, n) for n in range(2)]
        until(lambda: service.writers.inside == 2)
        refused = httpx.get(f"{at.url}/v1/health")
        other.close()
        assert [one.result(DEADLINE) for one in waiting] == [201, 201]
        assert (refused.status_code, refused.json()["kind"]) == (503, "busy")
        assert refused.headers["retry-after"] == "1"
        until(lambda: httpx.get(f"{at.url}/v1/health").status_code == 200)


# -- files ----------------------------------------------------------------------------------------


@pytest.fixture
def nothing_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let nothing have been said before, and time stand still."""
    monkeypatch.setattr(quiet_logs, "_sparing", RateLimitFilter(clock=lambda: 0.0))
    for logger in (quiet_logs.log, logging.getLogger("uvicorn.error")):
        monkeypatch.setattr(logger, "filters", [])


@pytest.mark.usefixtures("nothing_said")
def test_a_process_without_files_says_so_once_and_accepts_again_when_it_has_some(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    with serving(tmp_path) as at, ExitStack() as open_, caplog.at_level(logging.WARNING):
        httpx.get(f"{at.url}/v1/health")  # whatever is loaded only now
        place = urlsplit(at.url)
        clients = [open_.enter_context(socket.socket()) for _ in range(30)]
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (3, before[1]))
            for one in clients:
                one.connect((place.hostname, place.port))
                one.sendall(HEALTH)
            until(lambda: "may open no more files" in caplog.text)
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, before)
        for one in clients:
            one.settimeout(DEADLINE)
            assert one.recv(65_536).startswith(b"HTTP/1.1 200")
    said = [one for one in caplog.records if "file" in one.getMessage()]
    assert len(said) == 1
    assert said[0].exc_info is None


def test_other_failures_of_the_loop_are_told_as_ever(caplog: pytest.LogCaptureFixture) -> None:
    loop = new_loop()
    loop.call_exception_handler({"message": "something else"})
    loop.close()
    assert "something else" in caplog.text


@pytest.mark.parametrize(
    ("soft", "hard", "wanted", "most"),
    [
        (256, resource.RLIM_INFINITY, None, MOST),  # as on a Mac: it can be raised
        (256, 100_000, 5000, 5000),
        (1024, 1024, None, 1024 - RESERVED),
        (256, 256, None, 64),
        (64, 64, None, 16),
        (1024, 1024, 500, 500),
        (1024, 1024, 900, None),
    ],
)
def test_connections_are_as_many_as_files_allow(
    soft: int, hard: int, wanted: int | None, most: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    raised = list[Any]()
    monkeypatch.setattr(resource, "getrlimit", lambda _: (soft, hard))
    monkeypatch.setattr(resource, "setrlimit", lambda _, limits: raised.append(limits))
    if most is None:
        with pytest.raises(pcor.PcorError, match=r"900 connections need 1,220 open files.*1,024"):
            most_connections(wanted)
    else:
        assert most_connections(wanted) == most
    assert all(new <= hard or hard == resource.RLIM_INFINITY for new, _ in raised)


# -- logs -----------------------------------------------------------------------------------------


def test_what_happens_again_and_again_is_said_now_and_then() -> None:
    now = 0.0
    sparing = RateLimitFilter(60, clock=lambda: now)

    def said(words: str, *filled_in: Any) -> str | None:
        record = logging.LogRecord("x", logging.WARNING, "", 0, words, filled_in, None)
        return record.getMessage() if sparing.filter(record) else None

    assert [said("bad request %s", n) for n in range(4)] == ["bad request 0", None, None, None]
    assert said("another thing") == "another thing"
    now = 60.0
    assert said("bad request %s", 9) == "bad request 9 (and 3 times since this was last said)"
    assert said("bad request %s", 9) is None


@pytest.mark.usefixtures("nothing_said")
def test_nonsense_on_a_connection_is_logged_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with serving(tmp_path) as at:
        # uvicorn keeps its lines from other loggers, and so from who listens there.
        monkeypatch.setattr(logging.getLogger("uvicorn"), "propagate", True)
        for _ in range(5):
            with connected(at) as client:
                client.sendall(b"nonsense\r\n\r\n")
                assert heard(client).startswith(b"HTTP/1.1 400")
    assert caplog.messages == ["Invalid HTTP request received."]


def test_half_a_form_is_no_internal_error(caplog: pytest.LogCaptureFixture) -> None:
    assert as_problem(ClientDisconnect()).status == 400
    assert caplog.text == ""
