"""Whoever waits is told why; a pipe is told nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from pcor.cli import output
from tests.helpers.command_line import GRUBBS, OUTLIER, Files, pcor_


def test_kernels_that_are_not_in_numbas_cache_are_noticed(tmp_path: Path) -> None:
    code = (
        "import numpy as np\n"
        "from pcor._kernels.coverage import cell_totals\n"
        "from pcor.cli.output import are_compiled\n"
        "print(are_compiled())\n"
        "one = np.zeros((1, 1), dtype=np.uint64)\n"
        "cell_totals(one, one, np.zeros((1, 1)), np.zeros((1, 1)))\n"
        "print(are_compiled())\n"
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
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(output, "are_compiled", lambda: False)
    output.tell_of_compiling()
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    output.tell_of_compiling()
    assert capsys.readouterr().err == "compiling, once (some seconds) ...\n"


# A command whose patience ends at once, and whose table comes after the spinner has begun to turn.
IMPATIENT = """
import sys, threading
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
app(sys.argv[1:])
"""


def at_a_terminal(*words: object) -> tuple[int, str, str]:
    """Run an impatient command with a terminal as stderr: exit code, stdout, what was seen."""
    person, terminal = os.openpty()
    try:
        command = [sys.executable, "-c", IMPATIENT, *map(str, words)]
        env = {**os.environ, "TERM": "xterm"}
        run = subprocess.Popen(  # noqa: S603 (our own program)
            command, stdout=subprocess.PIPE, stderr=terminal, env=env
        )
        os.close(terminal)
        seen = b""
        with suppress(OSError):  # the terminal is gone as soon as nobody writes to it
            while part := os.read(person, 4096):
                seen += part
        out, _ = run.communicate()
    finally:
        os.close(person)
    return run.returncode, out.decode(), seen.decode()


@pytest.mark.parametrize(
    "words",
    [
        ("release", "--record", OUTLIER, "--epsilon", 1, "--detector", GRUBBS),
        ("outliers", "--detector", GRUBBS),
        ("contexts", "--record", OUTLIER, "--detector", GRUBBS),
    ],
    ids=lambda words: words[0],
)
def test_a_person_who_waits_sees_a_spinner_and_a_pipe_does_not(
    files: Files, words: tuple[object, ...]
) -> None:
    command = (words[0], *files.table_and_schema, *words[1:])
    code, out, seen = at_a_terminal(*command)
    assert code == 0, seen
    assert "reading the table" in seen
    assert "reading the table" not in out
    assert str(OUTLIER) in out
    code, _, seen = at_a_terminal(*command, "--json")
    assert (code, "reading the table" in seen) == (0, False)
    assert "reading the table" not in pcor_(*command).err
