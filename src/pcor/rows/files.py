"""Which files can be read, and what is in packed ones: gzip, and zip with one CSV file in it.

Private: the files. A refusal names the file; what a zip file or a workbook holds besides is a note,
for its owner alone.
"""

from __future__ import annotations

import gzip
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, Any

from pcor.errors import SourceError
from pcor.rows.snapshot import Snapshot

# What each ending stands for.
KINDS = {
    ".csv": "csv",
    ".csv.gz": "csv",
    ".zip": "csv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".xlsx": "xlsx",
}
ENDINGS = tuple(KINDS)

# What readers raise about packed files that are damaged, cut off or locked.
DAMAGED = (EOFError, zipfile.BadZipFile, zlib.error, RuntimeError, NotImplementedError)


def ending_of(path: Path | Snapshot) -> str:
    """Return the ending of a file that can be read; nothing for another file."""
    name = path.name.lower()
    return next((ending for ending in sorted(KINDS, key=len)[::-1] if name.endswith(ending)), "")


def file_kind(path: Path | Snapshot) -> str:
    """Return what a file is by its name: "csv", "parquet", "xlsx", or nothing that is known."""
    return KINDS.get(ending_of(path), "")


def plain_name(path: Path | Snapshot) -> str:
    """Return the name of a file without its ending."""
    return path.name[: len(path.name) - len(ending_of(path))]


@contextmanager
def unpacked(path: Path | Snapshot) -> Iterator[IO[bytes]]:
    """Open the bytes of a CSV file, whether it is packed or not."""
    with ExitStack() as opened:
        stream: Any = opened.enter_context(path.open("rb"))
        if ending_of(path) == ".csv.gz":
            stream = opened.enter_context(gzip.GzipFile(fileobj=stream))
        elif ending_of(path) == ".zip":
            archive = opened.enter_context(zipfile.ZipFile(stream))
            stream = opened.enter_context(archive.open(_only_member(path, archive.namelist())))
        yield stream


def is_packed(path: Path | Snapshot) -> bool:
    """Tell whether a CSV file is inside another."""
    return ending_of(path) in (".csv.gz", ".zip")


def _only_member(path: Path | Snapshot, names: list[str]) -> str:
    """Return the one CSV file in a zip file; Macs add what they know of each file."""
    found = [n for n in names if n.lower().endswith(".csv") and not n.startswith("__MACOSX/")]
    if len(found) == 1:
        return found[0]
    what = "more than one CSV file" if found else "no CSV file"
    refused = SourceError(
        f"the file {str(path)!r} has {what} in it; pack exactly one, or unpack it and name the file"
    )
    if found:
        refused.add_note(f"it holds: {', '.join(found)}")
    raise refused
