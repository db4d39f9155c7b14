"""Whoever waits is told why; a pipe is told nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import pytest

from pcor.cli import output
from pcor.demo import warm_up
from tests.helpers.command_line import GRUBBS, OUTLIER, Files, pcor_, written


def test_kernels_that_are_not_in_numbas_cache_are_noticed(tmp_path: Path) -> None:
    code = (
        "import numpy as np\n"
        "from pcor._kernels.coverage import cell_totals\n"
        "from pcor.demo.warm_up import is_compiled\n"
        "print(is_compiled())\n"
        "one = np.zeros((1, 1), dtype=np.uint64)\n"
        "cell_totals(one, one, np.zeros((1, 1)), np.zeros((1, 1)))\n"
        "print(is_compiled())\n"
    )
    done = subprocess.run(  # noqa: S603 (our own program)
        [sys.executable, "-c", code],
        env=os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == ["False", "True"]


def test_a_person_is_told_of_compiling_and_a_pipe_is_not(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(warm_up, "compiled_folder", lambda: tmp_path)
    output.tell_of_compiling()
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    output.tell_of_compiling()
    assert "once after an installation or an update (up to a minute" in capsys.readouterr().err
    monkeypatch.setattr(warm_up, "_releases", (tmp_path / "kernel.1.nbc").touch)
    clock = iter([100.0, 141.0])
    monkeypatch.setattr("time.monotonic", clock.__next__)
    assert warm_up.warm_up() == (41, True)
    output.tell_of_compiling()
    assert "(it took 41 s last time for all of them" in capsys.readouterr().err
    (tmp_path / "kernel.nbi").touch()  # which comes with the first
    output.tell_of_compiling()
    assert capsys.readouterr().err == ""


def test_a_warm_up_that_compiles_only_some_loops_keeps_no_time(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(warm_up, "compiled_folder", lambda: tmp_path)
    monkeypatch.setattr(warm_up, "_releases", (tmp_path / "kernel.2.nbc").touch)
    (tmp_path / "kernel.1.nbc").touch()
    assert [warm_up.warm_up()[1] for _ in range(2)] == [True, False]
    assert warm_up.last_seconds() is None
    monkeypatch.setattr(warm_up, "compiled_folder", lambda: None)  # nothing is compiled, or kept
    assert warm_up.is_compiled()
    assert warm_up.last_seconds() is None
    assert warm_up.warm_up() == (0, False)


def test_whoever_reads_a_file_is_told_once_how_long_an_audit_takes(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(output, "ESTIMATE_AFTER", 0)
    clock = iter([100.0, 102.0, 104.0])
    monkeypatch.setattr("time.monotonic", clock.__next__)
    with output.progress_bar("auditing") as step:
        step(1, 10)
        step(2, 10)
    assert capsys.readouterr().err == "auditing: about 18 s left\n"
    clock = iter([100.0, 102.0, 200.0, 200.0, 203.0])
    monkeypatch.setattr("time.monotonic", clock.__next__)
    with output.progress_bar("this part") as step:
        step(1, 10)
        step(0, 3)  # the next part, at a pace of its own
        step(1, 3)
    assert capsys.readouterr().err == "this part: about 18 s left\nthis part: about 6 s left\n"
    with output.progress_bar("records", count=True) as step:  # their time is no fact to tell
        step(1, 10)
    assert capsys.readouterr().err == ""


# Commands whose patience ends at once, and whose table comes after the spinner has begun to turn.
IMPATIENT = """
import json, sys, threading
from rich.status import Status
import pcor
from pcor.cli import app, output
turning, start, table = threading.Event(), Status.start, pcor.Table
def started(status):
    start(status)
    turning.set()
def late(*args, **options):
    if sys.stderr.isatty() and "--json" not in sys.argv and not turning.wait(60):
        sys.exit("no spinner")
    return table(*args, **options)
output.PATIENCE, Status.start, pcor.Table = 0, started, late
for words in json.loads(sys.argv[1]):
    turning.clear()
    sys.argv = ["pcor", *words]
    try:
        app(words)
    except SystemExit as end:
        for file in (sys.stdout, sys.stderr):
            print(f"\\0{end.code or 0}\\0", end="", file=file, flush=True)
"""


WAITS = {
    "release": ("--record", OUTLIER, "--epsilon", 1, "--detector", GRUBBS),
    "outliers": ("--detector", GRUBBS),
    "contexts": ("--record", OUTLIER, "--detector", GRUBBS),
}


class Seen(NamedTuple):
    """What a person at a terminal has of a command; the terminal is its stderr."""

    code: int
    out: str
    err: str


def at_a_terminal(commands: list[list[str]]) -> list[Seen]:
    """Run impatient commands, one after the other in one process, with a terminal as stderr."""
    person, terminal = os.openpty()
    try:
        run = subprocess.Popen(  # noqa: S603 (our own program)
            [sys.executable, "-c", IMPATIENT, json.dumps(commands)],
            stdout=subprocess.PIPE,
            stderr=terminal,
            env={**os.environ, "TERM": "xterm"},
        )
        os.close(terminal)
        seen = b""
        with suppress(OSError):  # the terminal is gone as soon as nobody writes to it
            while part := os.read(person, 4096):
                seen += part
        out, _ = run.communicate()
    finally:
        os.close(person)
    printed, *_ = parts = [text.decode().split("\0")[:-1] for text in (out, seen)]
    assert [len(texts) for texts in parts] == [2 * len(commands)] * 2, seen.decode()
    texts = zip(*(texts[::2] for texts in parts), strict=True)
    return [Seen(int(code), *each) for code, each in zip(printed[1::2], texts, strict=True)]


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, bool], Seen]:
    """What a person sees of each command that waits, in words and with ``--json``."""
    files = written(tmp_path_factory.mktemp("waits"))
    asked = {
        (name, as_json): [name, *map(str, (*files.table_and_schema, *more)), *["--json"] * as_json]
        for name, more in WAITS.items()
        for as_json in (False, True)
    }
    return dict(zip(asked, at_a_terminal(list(asked.values())), strict=True))


@pytest.mark.parametrize("command", WAITS)
def test_a_person_who_waits_sees_a_spinner_and_a_pipe_does_not(
    files: Files, ran: dict[tuple[str, bool], Seen], command: str
) -> None:
    person, program = ran[command, False], ran[command, True]
    assert person.code == 0, person.err
    assert "reading the table" in person.err
    assert "reading the table" not in person.out
    assert str(OUTLIER) in person.out
    assert (program.code, "reading the table" in program.err) == (0, False)
    piped = pcor_(command, *files.table_and_schema, *WAITS[command])
    assert "reading the table" not in piped.err
