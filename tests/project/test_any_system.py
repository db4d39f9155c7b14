"""Any machine: Windows and macOS have no ``fcntl``, no ``fork``, no ``/proc``, other line ends."""

from __future__ import annotations

import os
import runpy
import sys
from pathlib import Path, PureWindowsPath

import pytest
from typer.testing import CliRunner

import pcor
from pcor.cli import serve
from pcor.cli.commands import app
from pcor.ledger.database import read_url
from pcor.rows.engines.databases import is_database_url
from pcor.support import locks, threads
from tests.helpers.other_systems import is_open, run_without_posix, windows_files

ROOT = Path(__file__).parents[2]
ROWS = ["claim,amount,region", *(f"{n},{1000 + n % 7},{'ns'[n % 2]}" for n in range(60))]
CSV = "\r\n".join([*ROWS, "60,99000,n", ""])
TOML = """[dataset]\r
id = "claim"\r
[metric]\r
column = "amount"\r
[attributes.region]\r
values = ["n", "s"]\r
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "claims.csv").write_text(CSV, newline="")
    (tmp_path / "claims.toml").write_text(TOML, newline="")
    return tmp_path


RELEASE = """
import pcor
schema = pcor.Schema.from_file("claims.toml")
for memory in (None, "1GiB"):  # the second one needs a folder for what does not fit
    table = pcor.Table("claims.csv", schema, memory=memory)
    print(pcor.release(table, 60, epsilon=1, detector="grubbs", budget=pcor.Budget(1)))
ledger = pcor.Ledger("books.db")
ledger.set_budget("claims", 1)
print(ledger.release(table, 60, 1, dataset="claims", detector="grubbs"))
pcor.release_many, pcor.Client, pcor.audit, pcor.demo.salaries
import pcor.audit.reference_file, pcor.cli.commands
try:
    pcor.release_many(table, [60], 1, detector="grubbs", out="many.jsonl")
except pcor.PcorError as error:
    print(error)
print("fcntl" in sys.modules, "resource" in sys.modules)
"""


def test_a_release_needs_nothing_that_windows_lacks(folder: Path) -> None:
    *released, refused, loaded = run_without_posix(RELEASE, folder).splitlines()
    assert len(released) == 3
    assert all(line.startswith("Record 60 (99,000) is an outlier") for line in released)
    # Here neither of the two ways to lock is left; on Windows the other one is.
    assert "has no locks; name a file on a local disk" in refused
    assert loaded == "False False"
    assert not list(folder.glob("pcor-spill-*"))


def test_the_command_line_begins_without_what_windows_lacks(folder: Path) -> None:
    code = "import runpy; sys.argv = ['pcor', '--version']; "
    printed = run_without_posix(code + "runpy.run_module('pcor', None, '__main__')", folder)
    assert printed.split() == ["pcor", pcor.__version__]


def test_the_tests_themselves_begin_without_what_windows_lacks() -> None:
    """Else the workflow could test nothing there."""
    assert run_without_posix("import tests.conftest, tools.packaging", ROOT) == ""


def test_python_m_pcor_is_the_command_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["pcor", "--version"])
    with pytest.raises(SystemExit) as ended:
        runpy.run_module("pcor", run_name="__main__")
    assert ended.value.code == 0
    assert capsys.readouterr().out.split() == ["pcor", pcor.__version__]


def test_the_service_says_where_it_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serve, "_CAN_SERVE", False)
    ran = CliRunner().invoke(app, ["serve", "--demo"])
    assert ran.exit_code == 2
    assert "the service runs on Linux and macOS; on Windows" in ran.stderr


def test_a_path_of_windows_is_a_path() -> None:
    path = str(PureWindowsPath("C:\\data\\books.db"))
    assert read_url(path).database == path
    assert read_url(f"sqlite:///{path}").database == path
    assert not is_database_url(path)


def test_files_are_written_with_the_same_bytes_everywhere(folder: Path) -> None:
    schema = pcor.Schema.from_file(folder / "claims.toml")
    table = pcor.Table(folder / "claims.csv", schema)
    released = pcor.release(table, 60, epsilon=1, detector="grubbs", budget=pcor.Budget(1))
    with windows_files():
        released.save(folder / "certificate.json")
        released.save(folder / "certificate.json")  # in the place of the first
    assert b"\r" not in (folder / "certificate.json").read_bytes()


def test_the_stand_in_for_windows_refuses_what_windows_does(tmp_path: Path) -> None:
    path = tmp_path / "open"
    with path.open("w"), windows_files():
        assert is_open(path)
        with pytest.raises(PermissionError):
            path.unlink()
        with pytest.raises(PermissionError):
            (tmp_path / "other").replace(path)
        with pytest.raises(PermissionError):
            os.open(tmp_path, os.O_RDONLY)
    path.unlink()


def test_a_lock_is_one_process_s_and_ends_with_its_descriptor(tmp_path: Path) -> None:
    first = os.open(tmp_path / "file", os.O_CREAT | os.O_RDWR)
    second = os.open(tmp_path / "file", os.O_RDWR)
    assert locks.try_lock(first)
    assert not locks.try_lock(second)
    os.close(first)
    assert locks.try_lock(second)
    os.close(second)
    with pytest.raises(OSError, match="Bad file descriptor"):
        locks.try_lock(second)


def test_a_folder_that_is_kept_is_locked_where_folders_can_be(tmp_path: Path) -> None:
    other = os.open(tmp_path, os.O_RDONLY)
    with locks.kept(tmp_path):
        assert not locks.try_lock(other)
    assert locks.try_lock(other)
    os.close(other)
    with windows_files(), locks.kept(tmp_path):
        pass


@pytest.mark.parametrize(
    ("said", "cores"),
    [("max 100000", sys.maxsize), ("150000 100000", 2), ("50000 100000", 1), ("", sys.maxsize)],
)
def test_a_container_has_the_cores_that_it_is_given(tmp_path: Path, said: str, cores: int) -> None:
    (tmp_path / "cpu.max").write_text(said)
    assert threads._quota.__wrapped__(str(tmp_path / "cpu.max")) == cores
    assert threads._quota.__wrapped__(str(tmp_path / "none")) == sys.maxsize


def test_a_system_that_pins_no_processes_counts_its_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    assert threads.cores() >= 1
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    assert threads.cores() == os.cpu_count()
