"""What Windows lacks, taken away: from a new interpreter, or from files that are open."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from pcor.support import locks
from tests.helpers.waiting import DEADLINE

# Modules and functions that only POSIX systems have.
WITHOUT_POSIX = """
import os, sys

MISSING = ("fcntl", "resource", "grp", "pwd", "termios", "pty", "syslog")

class Refused:
    def find_spec(self, name, path=None, target=None):
        if name in MISSING:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Refused())
for name in MISSING:
    sys.modules.pop(name, None)
for name in ("fork", "getuid", "geteuid", "register_at_fork", "sched_getaffinity",
             "sched_setaffinity", "fchmod", "getpgid", "setsid"):
    if hasattr(os, name):
        delattr(os, name)
"""


def run_without_posix(code: str, folder: Path) -> str:
    """Run code in a new interpreter that has what Windows has; return what it prints."""
    ran = subprocess.run(  # noqa: S603 (our own code)
        [sys.executable, "-c", WITHOUT_POSIX + code],
        capture_output=True,
        text=True,
        timeout=DEADLINE,
        check=False,
        cwd=folder,
        env=os.environ | {"TMPDIR": str(folder), "PYTHONDONTWRITEBYTECODE": "1"},
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def is_open(path: Path) -> bool:
    """Tell whether this process has a file open."""
    return any(
        os.path.realpath(link) == str(path.resolve()) for link in Path("/proc/self/fd").iterdir()
    )


@contextmanager
def windows_files() -> Iterator[None]:
    """Refuse, as Windows does, to replace or remove a file that is open, and to open a folder."""

    def refuse_open(*paths: Path) -> None:
        for path in paths:
            if path.exists() and is_open(path):
                raise PermissionError(f"{path.name} is open")

    replace, unlink, opened = Path.replace, Path.unlink, os.open

    def checked_replace(self: Path, target: Path) -> Path:
        refuse_open(self, Path(target))
        return replace(self, target)

    def checked_unlink(self: Path, missing_ok: bool = False) -> None:
        refuse_open(self)
        unlink(self, missing_ok)

    def checked_open(path: str | Path, flags: int, *rest: int, **more: int) -> int:
        if Path(path).is_dir():
            raise PermissionError("a folder")
        return opened(path, flags, *rest, **more)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(locks, "OPEN_FILES_CAN_GO", False)
        patch.setattr(Path, "replace", checked_replace)
        patch.setattr(Path, "unlink", checked_unlink)
        patch.setattr(os, "open", checked_open)
        yield
