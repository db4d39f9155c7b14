"""A private folder for what does not fit into memory, removed afterwards.

Private: whatever an engine writes there, which are rows. The folder is readable by its owner alone
and goes when the process ends: normally, by an interrupt, or by SIGTERM. A process that is killed
outright cannot clean up; its folder is recognised by its lock, which dies with the process, and
removed by the next one that needs a folder.
"""

from __future__ import annotations

import atexit
import os
import shutil
import signal
import tempfile
import threading
from contextlib import suppress
from pathlib import Path
from types import FrameType

from pcor.support.locks import try_lock

_PREFIX = "pcor-spill-"
_LOCK = "lock"

_folders: dict[Path, int] = {}  # with the descriptor that holds the lock
_owner = os.getpid()


def spill_folder() -> Path:
    """Return a new private folder that does not outlive this process."""
    remove_abandoned(Path(tempfile.gettempdir()))
    folder = Path(tempfile.mkdtemp(prefix=_PREFIX))  # mode 0700
    descriptor = os.open(folder / _LOCK, os.O_CREAT | os.O_RDWR, 0o600)
    with suppress(OSError):  # no locks here: then no folder is taken for an abandoned one either
        try_lock(descriptor)
    _folders[folder] = descriptor
    _watch_for_sigterm()
    return folder


def remove_folder(folder: Path) -> None:
    """Remove a folder that is no longer needed."""
    descriptor = _folders.pop(folder, None)
    if descriptor is not None:
        os.close(descriptor)  # first: Windows removes no open file
    shutil.rmtree(folder, ignore_errors=True)


def remove_abandoned(where: Path) -> None:
    """Remove this user's folders whose process is gone."""
    for folder in where.glob(f"{_PREFIX}*"):
        with suppress(OSError):  # somebody else's, or gone meanwhile
            if folder not in _folders and _is_own(folder) and _is_abandoned(folder):
                shutil.rmtree(folder, ignore_errors=True)


def _is_own(folder: Path) -> bool:
    # On Windows a temporary folder is the user's own to begin with.
    return not folder.is_symlink() and (
        not hasattr(os, "getuid") or folder.stat().st_uid == os.getuid()
    )


def _is_abandoned(folder: Path) -> bool:
    descriptor = os.open(folder / _LOCK, os.O_RDWR)
    try:
        return try_lock(descriptor)
    finally:
        os.close(descriptor)


def _remove_all() -> None:
    if os.getpid() == _owner:  # not in a forked child, which shares the folders
        for folder in list(_folders):
            remove_folder(folder)


atexit.register(_remove_all)


def _watch_for_sigterm() -> None:
    """Clean up before SIGTERM ends the process, unless somebody else handles it already."""
    if threading.current_thread() is not threading.main_thread():
        return  # only the main thread may; the next run cleans up
    if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, _on_sigterm)


def _on_sigterm(number: int, frame: FrameType | None) -> None:
    del frame
    _remove_all()
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)  # end as if nobody had listened
