"""What decides whether a change lands sees nothing of the machine it runs on."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
RUN = ROOT / ".ci" / "run"

# Stands for make: notes what it was asked, as whom, in what environment; and says what tests say.
MAKE = """#!/bin/sh
{
  test "$(id -u)" = "$PIP_ASKER" && echo "ASKED $*" || echo "ORDINARY $*"
  echo "USER $(id -u)"; ls -A "$HOME" | sed "s/^/HOME HAS /"; env
} >> "$PIP_NOTES"
echo "$PIP_SAYS"
"""


NOTHING = "#!/bin/sh\n"


@pytest.fixture
def folder() -> Iterator[Path]:
    """Return a folder that an ordinary user can come to as well, unlike ``tmp_path``."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)


def ran(folder: Path, *, says: str = "9 passed", **variables: str) -> tuple[int, list[str]]:
    """Run it on a project with nothing in it; return its exit code and what make was told."""
    programs, notes = folder / "programs", folder / "notes"
    programs.mkdir()
    (folder / "project" / ".ci").mkdir(parents=True)
    shutil.copy(RUN, folder / "project" / ".ci")
    stand_ins = {"make": MAKE} | dict.fromkeys(
        ("apt-get", "python3", "buildah", "mmdebstrap"), NOTHING
    )
    for name, script in stand_ins.items():
        (programs / name).write_text(script)
        (programs / name).chmod(0o755)
    notes.touch()
    notes.chmod(0o666)
    asker = {"PIP_ASKER": str(os.getuid())}
    given = {"PIP_NOTES": str(notes), "PIP_SAYS": says, **asker, **variables}
    done = subprocess.run(  # noqa: S603 (our own script)
        [folder / "project" / ".ci" / "run"],
        env=os.environ | given | {"PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"},
        stdout=subprocess.DEVNULL,
        check=False,
    )
    return done.returncode, notes.read_text().splitlines()


def test_no_variable_and_no_file_of_a_machine_reaches_the_commands_of_the_readme(
    folder: Path,
) -> None:
    home = folder / "home"
    (home / ".config" / "pip").mkdir(parents=True)
    (home / ".config" / "pip" / "pip.conf").write_text("")
    given = {"PYTHONUNBUFFERED": "1", "PYTHONPATH": "x", "PCOR_KILLS": "1", "MAKEFLAGS": "-k"}
    kept = {"LC_TIME": "C", "https_proxy": "http://127.0.0.1:1", "PIP_TIMEOUT": "7"}
    code, told = ran(folder, HOME=str(home), **given, **kept)
    assert code == 0
    assert [line for line in told if line.startswith("HOME HAS")] == []
    assert [line for line in told if line.partition("=")[0] in given] == []
    asked = [line for line in told if line.startswith("ASKED")]
    assert asked[0] == "ASKED demo"
    assert sorted(asked[1:4]) == ["ASKED lint", "ASKED package", "ASKED types"]
    assert asked[4:] == ["ASKED test", *(["ASKED image"] if os.getuid() == 0 else [])]
    commands = [line for line in told if line.startswith(("ASKED", "ORDINARY"))]
    for name, value in kept.items():
        assert told.count(f"{name}={value}") == len(commands)
    assert sum(line.startswith("PIP_CONFIG_FILE=") for line in told) == len(commands)
    assert f"HOME={home}" not in told


def test_root_has_them_run_by_an_ordinary_user_too(folder: Path) -> None:
    _, told = ran(folder)
    users = {line for line in told if line.startswith("USER")}
    assert users - {"USER 0"} != set()


def test_a_skipped_test_is_a_failure(folder: Path) -> None:
    code, told = ran(folder, says="8 passed, 1 skipped in 3.00s")
    assert code == 1
    assert [line for line in told if line.startswith("ASKED")][-1] == "ASKED test"
    assert [line for line in told if line.startswith("ORDINARY") and "test" in line] == []


@pytest.mark.parametrize("path", [RUN, ROOT / "Makefile"], ids=lambda path: path.name)
def test_the_tests_that_are_asked_for_by_name_exist(path: Path) -> None:
    named = re.findall(r"\btests/[\w/.]+", path.read_text(encoding="utf-8"))
    assert named != []
    assert [name for name in named if not (ROOT / name).exists()] == []
