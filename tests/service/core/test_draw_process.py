"""Searches run in processes of their own: what a draw does there, and what happens to it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import pcor
from pcor.errors import NoValidContext, SourceError
from pcor.service.core import draw_process
from pcor.service.core.draw_process import NICENESS, DrawFailed, DrawProcesses
from pcor.service.core.draws import Draw
from pcor.service.core.fingerprints import FileFingerprints
from pcor.service.core.sources import SourceChanged
from tests.helpers.service_world import (
    ABSENT,
    ORDINARY,
    OUTLIER,
    SCHEMA,
    SOURCE,
    world,
    write_table,
)
from tests.helpers.waiting import DEADLINE, until


class Apart:
    """One drawing process on the small table."""

    def __init__(self, folder: Path) -> None:
        write_table(folder)
        self.file, secret = folder / SOURCE, folder / "secret"
        fingerprints = FileFingerprints(secret)
        fingerprints.make_secret()
        plan = pcor.plan(SCHEMA, "0.1", detector="grubbs:min_population=5")
        self.question = Draw(SOURCE, fingerprints.of_file(self.file), plan, OUTLIER)
        self.draws = DrawProcesses(folder, secret, tables=2, processes=1)

    @property
    def process(self) -> int:
        """The number of the process that runs."""
        running = self.draws._all[0]._running
        assert running is not None
        return running[0].pid


@pytest.fixture(scope="module")
def apart(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Apart]:
    made = Apart(tmp_path_factory.mktemp("apart"))
    made.draws.start()
    yield made
    made.draws.close()


def asked(child: Any, monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Return an event for when a question has been sent to a drawing process."""
    sent, start = threading.Event(), child.start

    class Watched:
        def __init__(self, connection: Any) -> None:
            self.recv_bytes, self._send = connection.recv_bytes, connection.send

        def send(self, question: Any) -> None:
            self._send(question)
            sent.set()

    monkeypatch.setattr(child, "start", lambda: Watched(start()))
    return sent


def is_gone(process: int) -> bool:
    return not Path(f"/proc/{process}").exists()


def test_a_search_of_the_service_is_not_made_in_the_process_that_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or how long it takes could be read off the time that any answer takes."""
    looked = threading.Event()
    monkeypatch.setattr(pcor.Table, "record", lambda *_: looked.set())
    with world(str(tmp_path / "books.db"), tmp_path, apart=True) as place:
        (child,) = place.service.drawer._draws._all  # type: ignore[attr-defined]
        names = [place.ask(record=record).json()["id"] for record in (OUTLIER, ORDINARY)]
        found, none = (place.wait(name) for name in names)
        assert found["release"]["record"] == OUTLIER
        assert none["error"]["kind"] == NoValidContext.kind
        process = child._running[0].pid
    assert not looked.is_set()
    assert is_gone(process)


def test_a_question_whose_process_dies_is_no_answer_and_is_drawn_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with world(str(tmp_path / "books.db"), tmp_path, apart=True) as place:
        drawer = place.service.drawer
        (child,) = drawer._draws._all  # type: ignore[attr-defined]
        process = child._running[0].pid
        os.kill(process, signal.SIGSTOP)  # so that it does not end first
        sent = asked(child, monkeypatch)
        name = place.ask().json()["id"]
        assert sent.wait(DEADLINE)
        os.kill(process, signal.SIGKILL)
        until(lambda: not drawer._taken)
        assert place.moment(name) is None
        place.clock.ahead += 60  # it was put off
        assert place.wait(name)["release"]["record"] == OUTLIER
        kinds = [entry.kind for entry in place.service.ledger.entries()]
        assert (kinds.count("charge"), kinds.count("answer")) == (1, 1)


def test_a_draw_apart_is_what_it_would_be_here(apart: Apart) -> None:
    released = apart.draws.draw(apart.question)
    assert isinstance(released, pcor.Release)
    assert (released.record, released.promise.epsilon) == (OUTLIER, Fraction("0.1"))
    for record in (ORDINARY, ABSENT):
        none = apart.draws.draw(replace(apart.question, record=record))
        assert isinstance(none, NoValidContext)
    with pytest.raises(SourceChanged, match="not the one that was registered"):
        apart.draws.draw(replace(apart.question, file_fingerprint="0" * 64))


def test_plans_and_schemas_are_not_sent_back_and_are_those_of_whoever_asked(apart: Apart) -> None:
    for epsilon in ("0.1", "0.2", "0.1"):  # the table there has the schema of the first
        plan = pcor.plan(SCHEMA, epsilon, detector="grubbs:min_population=5")
        released = apart.draws.draw(replace(apart.question, plan=plan))
        assert isinstance(released, pcor.Release)
        assert released.plan is plan
        assert released.context.schema is plan.schema
        assert released.to_dict()["epsilon_exact"] == epsilon


def test_of_a_failure_of_ours_only_its_type_is_told(apart: Apart) -> None:
    broken: Any = None
    with pytest.raises(DrawFailed) as failed:
        apart.draws.draw(replace(apart.question, plan=broken))
    assert failed.value.args == ("AttributeError",)


def test_a_drawing_process_is_the_last_to_get_the_processors(apart: Apart) -> None:
    apart.draws.draw(apart.question)  # it has started
    here, there = (os.getpriority(os.PRIO_PROCESS, one) for one in (0, apart.process))
    assert there == min(here + NICENESS, 19)
    ours, theirs = (os.sched_getaffinity(one) for one in (0, apart.process))
    assert theirs < ours or len(ours) == 1  # one is left to the processes that answer


def test_an_answer_that_could_not_be_read_is_not_taken_for_that_of_the_next_question(
    apart: Apart, monkeypatch: pytest.MonkeyPatch
) -> None:
    child = apart.draws._all[0]
    connection = child.start()

    class NoMemory:
        send = connection.send

        def recv_bytes(self) -> None:
            raise MemoryError

    with monkeypatch.context() as patched:
        patched.setattr(child, "start", NoMemory)
        with pytest.raises(MemoryError):
            apart.draws.draw(apart.question)
    none = apart.draws.draw(replace(apart.question, record=ORDINARY))
    assert isinstance(none, NoValidContext)


def test_an_answer_to_another_question_is_no_answer(apart: Apart) -> None:
    child = apart.draws._all[0]
    message = draw_process._message(child._asked, apart.question)
    child.start().send(message)  # what comes of it is left unread
    with pytest.raises(SourceError, match="there is no answer"):
        apart.draws.draw(replace(apart.question, record=ORDINARY))


def test_a_question_that_cannot_be_read_ends_the_process_rather_than_wait_for_ever(
    apart: Apart,
) -> None:
    connection = apart.draws._all[0].start()
    connection.send_bytes(b"no pickle")
    with pytest.raises(SourceError, match="there is no answer"):
        apart.draws.draw(apart.question)


def test_a_draw_without_memory_is_no_answer(apart: Apart, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_memory(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr(draw_process, "make_draw", no_memory)
    what, found = draw_process._made(apart.draws, apart.question)  # type: ignore[arg-type]
    assert (what, type(found)) == ("no source", SourceError)


def test_a_drawing_process_outlives_the_signals_of_its_group(apart: Apart) -> None:
    apart.draws.draw(apart.question)
    before = apart.process
    for number in (signal.SIGINT, signal.SIGTERM):
        os.kill(before, number)
    assert apart.draws.draw(apart.question) is not None
    assert apart.process == before


def test_a_drawing_process_that_died_is_started_again(
    apart: Apart, monkeypatch: pytest.MonkeyPatch
) -> None:
    apart.draws.start()
    before, sent = apart.process, asked(apart.draws._all[0], monkeypatch)
    os.kill(before, signal.SIGSTOP)
    with ThreadPoolExecutor(1) as pool:
        drawing = pool.submit(apart.draws.draw, apart.question)
        assert sent.wait(DEADLINE)
        os.kill(before, signal.SIGKILL)
        with pytest.raises(SourceError, match="has ended; there is no answer"):
            drawing.result(DEADLINE)
    assert isinstance(apart.draws.draw(apart.question), pcor.Release)
    os.kill(apart.process, signal.SIGKILL)
    until(lambda: apart.draws._all[0]._running[0].poll() is not None)  # type: ignore[index]
    assert isinstance(apart.draws.draw(apart.question), pcor.Release)  # it had nothing to do


def test_nothing_is_drawn_once_the_service_has_ended(apart: Apart) -> None:
    made = DrawProcesses(apart.file.parent, apart.file.parent / "s", tables=1, processes=1)
    made.close()
    with pytest.raises(SourceError, match="the service ends"):
        made.draw(apart.question)


PARENT = """
import pathlib, sys, threading
from pcor.service.core.draw_process import DrawProcesses
made = DrawProcesses(pathlib.Path("."), pathlib.Path("secret"), tables=1, processes=1)
made.start()
print(made._all[0]._running[0].pid, flush=True)
threading.Event().wait()
"""


def test_a_drawing_process_ends_when_its_parent_is_killed(tmp_path: Path) -> None:
    with subprocess.Popen(  # noqa: S603 (our own words)
        [sys.executable, "-c", PARENT], cwd=tmp_path, stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        process = int(parent.stdout.readline())
        parent.kill()
    until(lambda: is_gone(process))


def test_a_drawing_process_needs_no_web_server() -> None:
    code = "import sys; import pcor.service.core.draw_process; print(*sys.modules)"
    ran = subprocess.run(  # noqa: S603 (our own words)
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=DEADLINE
    )
    assert {"fastapi", "uvicorn", "jinja2"}.isdisjoint(ran.stdout.split())
