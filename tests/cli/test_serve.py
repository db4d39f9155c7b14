"""``pcor serve``: prepare, serve, stop; the demo needs nothing."""

from __future__ import annotations

import os
import random
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from fractions import Fraction
from http.client import HTTPConnection
from pathlib import Path
from urllib.request import urlopen

import pytest
from typer.testing import CliRunner

import pcor
from pcor.cli import app
from pcor.client import Client
from pcor.demo import PLANTED, salary_schema
from pcor.ledger.leases import _started
from pcor.service import run as running
from pcor.service.core.keys import find_key
from pcor.service.core.registry import read_registrations
from pcor.service.core.service import Service
from pcor.service.core.settings import ENVIRONMENT, ServiceSettings
from pcor.service.server.sockets import listen
from tests.helpers.waiting import DEADLINE, until

RUN = CliRunner()


def test_several_processes_share_a_socket_that_sends_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel would hold back the last part of an answer for 40 ms."""
    shared: list[socket.socket] = []

    class Supervisor:
        def __init__(self, _: object, sockets: list[socket.socket]) -> None:
            shared.extend(sockets)

        def run(self) -> None:
            pass

    monkeypatch.setattr(running, "Multiprocess", Supervisor)
    monkeypatch.setenv(ENVIRONMENT, "")
    before = signal.getsignal(signal.SIGTERM)
    try:
        settings = ServiceSettings(str(tmp_path / "books.db"), tmp_path)
        running.serve(settings, listen("127.0.0.1", 0), workers=2)
    finally:
        signal.signal(signal.SIGTERM, before)
    with shared[0] as listening:
        assert listening.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_the_demo_draws_as_the_library_would(tmp_path: Path) -> None:
    settings = ServiceSettings(str(tmp_path / "books.db"), tmp_path)
    running.prepare_demo(settings)
    service = Service(settings)
    with service.ledger.database.reading() as connection:
        (registered,) = read_registrations(connection)
    service.ledger.close()
    ours = pcor.plan(salary_schema(), "0.2")
    assert registered.plan(Fraction("0.2")).to_dict() == ours.to_dict()


def test_init_prints_a_key_that_is_an_owners(tmp_path: Path) -> None:
    url = str(tmp_path / "books.db")
    words = ["serve", "--init", "--database", url, "--data", str(tmp_path)]
    done = RUN.invoke(app, words)
    assert done.exit_code == 0, done.output
    token = done.stdout.strip()
    service = Service(ServiceSettings(url, tmp_path))
    with service.ledger.database.reading() as connection:
        key = find_key(connection, token, service.now())
    service.ledger.close()
    assert key is not None
    assert key.role == "owner"
    again = RUN.invoke(app, words)
    assert again.exit_code == 2
    assert "--new-owner-key" in again.output
    lost = RUN.invoke(app, [*words, "--new-owner-key"])
    assert lost.stdout.strip().startswith("pcor_")
    assert lost.stdout.strip() != token


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "give --database and --data"),
        (["--database", "x.db"], "give --database and --data"),
        (["--demo", "--database", "x.db"], "--demo brings its own"),
        (["--database", "x.db", "--data", "no-such-folder"], "is not a folder"),
        (["--database", "x.db", "--data", ".", "--tick", "0"], "tick must be"),
        (["--database", "x.db", "--data", "."], "there is no ledger"),
        (["--database", "x.db", "--data", ".", "--host", "example.org"], "over plain HTTP"),
    ],
)
def test_what_is_missing_is_said(
    words: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = RUN.invoke(app, ["serve", *words])
    assert done.exit_code in (2, 5)
    assert said in " ".join(done.output.split())


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_port_that_is_taken_is_named_and_is_a_mistake_of_the_call(
    workers: str, tmp_path: Path
) -> None:
    """It is no refusal of the budget, which has exit code 3, as uvicorn's failure to start has."""
    url = str(tmp_path / "books.db")
    books = ["serve", "--database", url, "--data", str(tmp_path)]
    assert RUN.invoke(app, [*books, "--init"]).exit_code == 0
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = str(other.getsockname()[1])
        done = RUN.invoke(app, [*books, "--port", port, "--workers", workers])
    assert done.exit_code == 2
    said = " ".join(done.output.split())
    assert f"port {port} at 127.0.0.1 is taken" in said
    assert "serves at" not in said


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--host", "192.0.2.1", "--port", "0"], "192.0.2.1 is not an address of this machine"),
        (["--host", "no host", "--port", "0"], "is not the name or the address of a machine"),
        (["--port", "70000"], "--port"),
    ],
)
def test_an_address_that_cannot_be_had_is_a_mistake_of_the_call(
    words: list[str], said: str
) -> None:
    done = RUN.invoke(app, ["serve", "--demo", *words])
    assert done.exit_code == 2
    assert said in " ".join(done.output.split())
    assert "pcor_" not in done.output


def test_what_is_wrong_with_the_books_is_said_once_and_not_by_each_process(tmp_path: Path) -> None:
    words = ["--database", str(tmp_path / "x.db"), "--data", str(tmp_path), "--workers", "2"]
    done = RUN.invoke(app, ["serve", *words, "--port", "0"])
    assert done.exit_code == 5
    assert "there is no ledger" in " ".join(done.output.split())


@pytest.mark.parametrize("workers", ["1", "2"])
def test_the_demo_serves_and_stops_when_told(workers: str, tmp_path: Path) -> None:
    port = free_port()
    process = subprocess.Popen(  # noqa: S603 (our own words)
        [
            str(Path(sys.executable).with_name("pcor")),
            *("serve", "--demo", "--port", str(port), "--workers", workers),
            *("--delay", "0.2", "--tick", "0.1"),
        ],
        stdout=subprocess.PIPE,
        text=True,
        env={"PATH": os.environ["PATH"], "TMPDIR": str(tmp_path)},
    )
    assert process.stdout is not None
    try:
        said = "".join(_until(process, "Ctrl+C"))
        keys = dict(re.findall(r"(owner|analyst)\s+(pcor_\S+)", said))
        client = Client(
            f"http://127.0.0.1:{port}", keys["analyst"], timeout=DEADLINE, patience=DEADLINE
        )
        released = client.release("synthetic-salaries", PLANTED[0].record, preset="medium")
        assert released.record == PLANTED[0].record
        owner = Client(f"http://127.0.0.1:{port}", keys["owner"], timeout=DEADLINE)
        assert owner.history()[0]["record"] == PLANTED[0].record
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=DEADLINE)
        process.stdout.close()
    assert process.returncode in (0, -signal.SIGTERM)
    assert list(tmp_path.glob("pcor-demo-*")) == []


def test_two_processes_grant_a_key_the_rate_of_one(tmp_path: Path) -> None:
    port = free_port()
    process = subprocess.Popen(  # noqa: S603 (our own words)
        [
            *(sys.executable, "-m", "pcor", "serve", "--demo", "--port", str(port)),
            *("--workers", "2", "--rate", "0.01"),  # one request, and the next 100 s later
        ],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"TMPDIR": str(tmp_path)},
    )
    assert process.stdout is not None
    try:
        said = "".join(_until(process, "Ctrl+C"))
        key = dict(re.findall(r"(owner|analyst)\s+(pcor_\S+)", said))["analyst"]
        until(lambda: is_healthy(port))
        until(lambda: len(workers_of(process.pid)) == 2)
        one, other = workers_of(process.pid)
        with paused(one):
            statuses = [_status(port, key) for _ in range(2)]
        with paused(other):
            statuses.append(_status(port, key))
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=DEADLINE)
        process.stdout.close()
    assert statuses == [200, 429, 429]
    assert list(tmp_path.glob("pcor-serve-*")) == []


@contextmanager
def paused(process: int) -> Iterator[None]:
    """Hold a process, so that others answer."""
    os.kill(process, signal.SIGSTOP)
    try:
        yield
    finally:
        with suppress(ProcessLookupError):  # one that is silent for long is started anew
            os.kill(process, signal.SIGCONT)


def _status(port: int, key: str) -> int:
    connection = HTTPConnection("127.0.0.1", port, timeout=DEADLINE)
    try:
        connection.request("GET", "/v1/me", headers={"Authorization": f"Bearer {key}"})
        return connection.getresponse().status
    finally:
        connection.close()


def test_processes_whose_parent_was_killed_end_and_leave_the_port(tmp_path: Path) -> None:
    url = str(tmp_path / "books.db")
    books = ["serve", "--database", url, "--data", str(tmp_path)]
    assert RUN.invoke(app, [*books, "--init"]).exit_code == 0
    port = free_port()
    with subprocess.Popen(  # noqa: S603 (our own words)
        [
            str(Path(sys.executable).with_name("pcor")),
            *(*books, "--port", str(port), "--workers", "2"),
        ],
        stderr=subprocess.DEVNULL,
        env={"PATH": os.environ["PATH"]},
    ) as parent:
        until(lambda: len(workers_of(parent.pid)) == 2 and is_healthy(port))
        left = workers_of(parent.pid)
        parent.kill()
    until(lambda: not any(map(_started, left)))
    for one in listen("127.0.0.1", port):
        one.close()


def workers_of(parent: int) -> list[int]:
    """Return the processes that serve; Python starts one more, to tidy up after them."""
    children = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
    return [
        int(child)
        for child in children
        if b"spawn_main" in Path(f"/proc/{child}/cmdline").read_bytes()
    ]


def is_healthy(port: int) -> bool:
    with suppress(OSError), urlopen(f"http://127.0.0.1:{port}/v1/health") as answer:
        return bool(answer.status == 200)
    return False


def free_port() -> int:
    """Return a port that nobody is given by chance: systems hand out those from 32,768 on."""
    for port in random.sample(range(20_000, 32_000), 1000):
        with suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port
    raise AssertionError("there is no free port")


def _until(process: subprocess.Popen[str], word: str) -> list[str]:
    """Return the lines of a process up to one with a word."""
    assert process.stdout is not None
    lines = []
    for line in process.stdout:
        lines.append(line)
        if word in line:
            return lines
    raise AssertionError("it ended")
