"""Lock an open file for one process.

A lock ends with the descriptor that holds it, so also with its process, however that ends. Where
locks differ between systems (``flock``, ``LockFileEx``) the package filelock knows.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress

# Windows neither replaces nor removes a file that is open, opens no folder, and has text files of
# its own. A name, so that tests can take it away.
OPEN_FILES_CAN_GO = os.name != "nt"


def try_lock(descriptor: int) -> bool:
    """Lock an open file; return whether nobody else had.

    Raises:
        OSError: this system or this file system cannot lock files.
    """
    from filelock import lock_descriptor  # takes a while to import, and few need a lock

    return lock_descriptor(descriptor, blocking=False)


@contextmanager
def held(descriptor: int) -> Iterator[None]:
    """Hold the lock on an open file, which everybody else holds for some microseconds only."""
    from filelock import lock_descriptor, unlock_descriptor

    lock_descriptor(descriptor, blocking=True, poll_interval=0.0005)
    try:
        yield
    finally:
        unlock_descriptor(descriptor)


@contextmanager
def kept(folder: str | os.PathLike[str]) -> Iterator[None]:
    """Keep a temporary folder from being tidied up, however long nobody touches what is in it.

    What tidies up on Linux, systemd-tmpfiles, passes over a folder that is locked.
    """
    if not OPEN_FILES_CAN_GO:
        yield
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):  # no locks here, and as a rule nothing that tidies up
            try_lock(descriptor)
        yield
    finally:
        os.close(descriptor)


def sync_folder(folder: str | os.PathLike[str]) -> None:
    """Wait until the names in a folder are on the disk, where a folder can be waited for."""
    if not OPEN_FILES_CAN_GO:
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
