"""Write a file whole or not at all.

An interrupted run must leave nothing half-written: the new content goes to a temporary file beside
the old one and takes its place in one step.
"""

from __future__ import annotations

import os
import secrets
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from pcor.errors import WriteError, sendable


def check_target(path: Path, endings: Sequence[str] = (), what: str = "--out") -> None:
    """Refuse at once an output that could only fail after the work is done."""
    shown = f"{what} {str(path)!r}"
    if endings and path.suffix.lower() not in endings:
        raise WriteError(f"{shown} must end in {' or '.join(endings)}")
    if not path.parent.is_dir():
        raise WriteError(f"{shown}: there is no folder {str(path.parent)!r}; make it first")
    if path.is_dir():
        raise WriteError(f"{shown} is a folder; name a file")
    if not os.access(path.parent, os.W_OK):
        raise WriteError(f"{shown}: this user may not write into {str(path.parent)!r}")


def check_new(path: Path, what: str = "--out", *, force: bool | None = None) -> None:
    """Refuse to replace a file, unless that is wanted; ``None`` where nobody can want it."""
    if force or not (path.exists() or path.is_symlink()):
        return
    ways = f"give another {what}" + ("" if force is None else ", or --force to replace it")
    raise WriteError(f"{str(path)!r} exists; {ways}")


def write_whole(path: str | Path, write: Callable[[Path], object]) -> None:
    """Call ``write`` with a temporary path and move the result to ``path``."""
    target = Path(path)
    try:
        handle, name = tempfile.mkstemp(
            dir=target.parent, prefix=f".{target.name}.", suffix=target.suffix
        )
    except OSError:
        raise WriteError(f"cannot write {str(target)!r}: no such folder, or not allowed") from None
    part = Path(name)
    try:
        os.close(handle)
        write(part)
        # mkstemp is for the owner's eyes only; give the file what a plain open() would have.
        mask = os.umask(0)
        os.umask(mask)
        part.chmod(0o666 & ~mask)
        part.replace(target)
    except OSError:
        raise WriteError(
            f"cannot write {str(target)!r}; is the disk full, or the folder gone?"
        ) from None
    finally:
        part.unlink(missing_ok=True)


def write_text(path: str | Path, text: str) -> None:
    """Write a text file whole or not at all: the same bytes on every system."""
    write_whole(path, lambda part: part.write_text(sendable(text), encoding="utf-8", newline="\n"))


def write_new(path: Path, content: bytes, *, mode: int) -> None:
    """Write a file that was not there, whole or not at all; of several writers, one does.

    Raises:
        FileExistsError: there is one; it stays as it is.
        OSError: it cannot be written.
    """
    part = path.with_name(f"{path.name}.{secrets.token_hex(8)}")
    number = os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode)
    try:
        with os.fdopen(number, "wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(number)  # what depends on it outlives a loss of power: so must it
        os.link(part, path)  # never over another
    finally:
        part.unlink()
