"""An interrupted command leaves nothing half written, one that breaks inside tells no secret."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import csv, parquet
from typer.testing import CliRunner

from pcor.cli import app
from tests.helpers.command_line import (
    GRUBBS,
    JOBS,
    LARGE,
    OUTLIER,
    SCHEMA,
    Files,
    Ran,
    broken,
    pcor_,
)
from tests.helpers.waiting import DEADLINE

# -- interrupted, or broken inside ----------------------------------------------------------------


def test_an_interrupt_inside_a_callback_of_the_compiler_comes_again() -> None:
    """Python drops what is raised inside a callback from C; nobody sees a traceback of it."""
    code = (
        "import ctypes, signal, time\n"
        "from pcor.cli import interrupts\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)  # a parent may ignore it\n"
        "interrupts.leave_at_once()\n"
        "interrupts.tell_the_command()\n"
        "try:\n"
        "    ctypes.CFUNCTYPE(None)(lambda: signal.raise_signal(signal.SIGINT))()\n"
        "    time.sleep(600)\n"
        "except KeyboardInterrupt:\n"
        "    print('raised', interrupts.was_dropped())\n"
    )
    done = subprocess.run(  # noqa: S603 (our own program)
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=DEADLINE, check=True
    )
    assert done.stdout.split() == ["raised", "True"]
    assert done.stderr == ""


def test_what_fails_because_an_interrupt_was_dropped_is_interrupted(
    files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pcor.cli.interrupts.was_dropped", lambda: True)
    monkeypatch.setattr("pcor.cli.releases.release_planned", broken)
    ran = pcor_("release", *files.request, "--detector", GRUBBS)
    assert ran == Ran(130, "", "pcor: interrupted; no file was left half-written\n")


def interrupted_while_writing(
    path: Path, text: str, encoding: str | None = None, newline: str | None = None
) -> int:
    with open(path, "w", encoding=encoding, newline=newline) as half:
        half.write(text[: len(text) // 2])
    raise KeyboardInterrupt


@pytest.mark.parametrize("exists", [True, False], ids=["over a file", "a new file"])
@pytest.mark.parametrize("ending", ["json", "html"])
def test_an_interrupted_release_leaves_nothing_half_written(
    files: Files, ending: str, exists: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = files.folder / f"c.{ending}"
    if exists:
        out.write_text("old", encoding="utf-8")
    before = files.listing()
    monkeypatch.setattr(Path, "write_text", interrupted_while_writing)
    ran = pcor_("release", *files.request, "--detector", GRUBBS, "--out", out, "--force")
    assert ran == Ran(130, "", "pcor: interrupted; no file was left half-written\n")
    assert files.listing() == before
    assert not exists or out.read_text(encoding="utf-8") == "old"


@pytest.mark.parametrize("exists", [True, False], ids=["over a file", "a new file"])
@pytest.mark.parametrize("ending", ["csv", "parquet", "json"])
def test_an_interrupted_list_leaves_nothing_half_written(
    files: Files, ending: str, exists: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def half(table: pa.Table, path: Path) -> None:
        interrupted_while_writing(path, str(table))

    write_group = parquet.ParquetWriter.write_table

    def one_group(writer: parquet.ParquetWriter, table: pa.Table) -> None:
        write_group(writer, table)
        raise KeyboardInterrupt

    out = files.folder / f"coe.{ending}"
    if exists:
        out.write_text("old", encoding="utf-8")
    before = files.listing()
    monkeypatch.setattr(Path, "write_text", interrupted_while_writing)
    monkeypatch.setattr(csv, "write_csv", half)
    monkeypatch.setattr(parquet.ParquetWriter, "write_table", one_group)
    how = ("--record", OUTLIER, "--detector", GRUBBS, "--out", out)
    ran = pcor_("contexts", *files.table_and_schema, *how)
    assert ran == Ran(130, "", "pcor: interrupted; no file was left half-written\n")
    assert files.listing() == before
    assert not exists or out.read_text(encoding="utf-8") == "old"


def test_a_full_disk_is_a_sentence_and_leaves_nothing(
    files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> int:
        raise OSError(28, "No space left on device: secret 12345")

    monkeypatch.setattr(Path, "write_text", full)
    before = files.listing()
    ran = pcor_("release", *files.request, "--detector", GRUBBS, "--out", files.folder / "c.json")
    assert ran.code == 2
    assert f"pcor: cannot write '{files.folder / 'c.json'}'; is the disk full" in ran.err
    assert "12345" not in ran.err
    assert files.listing() == before


@pytest.mark.parametrize(
    ("words", "where"),
    [
        (("release", "--record", OUTLIER, "--epsilon", 1), "cli.releases.release_planned"),
        (("contexts", "--record", OUTLIER), "cli.owner.matching_parts"),
        (("outliers",), "cli.owner.outlier_rows"),
        (("plan", "--record", OUTLIER, "--epsilon", 1), "Settings.plan"),
    ],
    ids=lambda part: part if isinstance(part, str) else "",
)
def test_an_unexpected_error_tells_no_secret(
    files: Files, words: tuple[object, ...], where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(f"pcor.{where}", broken)
    monkeypatch.delenv("PCOR_DEBUG", raising=False)
    command = (words[0], *files.table_and_schema, *words[1:])
    plain, as_json = pcor_(*command), pcor_(*command, "--json")
    assert plain.code == as_json.code == 1
    assert plain.out == ""
    assert as_json.json["kind"] == "internal"
    for text in (plain.err, as_json.out, as_json.err):
        assert "an internal error (ValueError); nothing was released" in text
        assert "12345" not in text
        assert "Traceback" not in text


def test_a_developer_sees_the_unexpected_error(
    files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pcor.cli.releases.release_planned", broken)
    words = [str(word) for word in ("release", *files.request)]
    for more in ([], ["--json"]):
        result = CliRunner().invoke(app, words + more, env={"PCOR_DEBUG": "1"})
        assert isinstance(result.exception, ValueError)


# -- the real program -----------------------------------------------------------------------------


# Says when the enumeration is under way, so that the interrupt cannot come too early.
WATCHED = """
import sys
from pcor.cli import owner, run
write = owner.write_contexts
def watched(*args, progress, **options):
    def told(done, total):
        print("under way", file=sys.stderr, flush=True)
    return write(*args, progress=told, **options)
owner.write_contexts = watched
run()
"""


@pytest.mark.parametrize("exists", [True, False], ids=["over a file", "a new file"])
def test_an_interrupt_ends_the_real_program_with_one_sentence_and_no_file(
    files: Files, exists: bool
) -> None:
    large = files.declared(SCHEMA.replace(JOBS, LARGE))
    out = files.folder / "coe.parquet"
    if exists:
        out.write_text("old", encoding="utf-8")
    before = files.listing()
    how = ("--schema", large, "--record", OUTLIER, "--limit", 2**40, "--out", out)
    command = [sys.executable, "-c", WATCHED, "contexts", files.table, *how]
    with subprocess.Popen(  # noqa: S603 (our own program)
        [str(word) for word in command],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=files.folder,
    ) as running:
        assert running.stderr is not None
        assert running.stderr.readline() == "under way\n"
        running.send_signal(signal.SIGINT)
        stdout, stderr = running.communicate(timeout=DEADLINE)
    assert running.returncode == 130
    assert stdout == ""
    said = [line for line in stderr.splitlines() if line != "under way"]
    assert said == ["pcor: interrupted; no file was left half-written"]
    assert files.listing() == before
    assert not exists or out.read_text(encoding="utf-8") == "old"
