"""Sources: the files that datasets are read from, and the tables made of them.

Private: the tables. A source is named relative to the data folder and must lie inside it, symbolic
links followed. Its fingerprint (``fingerprints``) is part of the registration: a file that changed
since is not asked, so no answer is about rows that the owner has not registered. A file is read
once, and what was read has the fingerprint or is not used: whoever replaces the file meanwhile
changes nothing.
"""

from __future__ import annotations

import hmac
import os
import threading
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path

from pcor.errors import LedgerError, ParameterError
from pcor.public.schema import Schema
from pcor.rows.files import file_kind
from pcor.rows.snapshot import Snapshot
from pcor.rows.table import Table
from pcor.service.core.fingerprints import FileFingerprints

LONGEST = 500

# Files that an owner is offered; others can be named.
MOST_LISTED = 500


class SourceChanged(LedgerError):
    """A registered file is not there any more, or is another."""

    kind = "source_changed"

    def __init__(self) -> None:
        super().__init__(
            "this dataset's file is not the one that was registered, so nothing is charged or "
            "drawn; its owner restores the file, or registers the dataset again"
        )


def unreadable() -> LedgerError:
    """Return what is said of a file that is there and cannot be read; nothing of why."""
    return LedgerError(
        "this dataset's file cannot be read at this moment, so nothing is charged or drawn; try "
        "again, and tell its owner if that does not help"
    )


def being_read() -> LedgerError:
    """Return what is said of a file that is hashed at this moment, while several wait for that."""
    return LedgerError(
        "this dataset's file was written anew and is being looked at, which takes a while; try "
        "again in a few seconds. Nothing was charged"
    )


def find_source(folder: Path, name: str) -> Path:
    """Return the path of a source inside the data folder, or refuse; nothing else is named."""
    refusal = ParameterError(
        "source must be the path of a CSV, Parquet or Excel file inside the data folder, relative "
        "to it"
    )
    # A pattern would read more files than the one whose fingerprint is registered.
    if not 0 < len(name) <= LONGEST or not name.isprintable() or set(name) & set("\\*?[]{}#:"):
        raise refusal
    root = folder.resolve()
    try:
        path = (root / name).resolve()
        inside = path.is_relative_to(root) and path.is_file()
    except (OSError, ValueError, RuntimeError):
        raise refusal from None
    if not inside or Path(name).is_absolute() or not file_kind(path):
        raise refusal
    return path


def find_listed(folder: Path, name: str) -> Path:
    """Return the path of a source that the page may offer: as ``find_source``, and not hidden."""
    path = find_source(folder, name)
    if any(part.startswith(".") for part in (*Path(name).parts, path.name)):
        raise ParameterError("source is hidden: its name begins with a point")
    return path


def list_sources(folder: Path, most: int = MOST_LISTED) -> list[str]:
    """Return the sources in the data folder that can be read, by name; no more than so many.

    Folders that are links are not entered, so a walk ends and stays inside.
    """
    return sorted(islice(_listed(folder), most))


def _listed(folder: Path) -> Iterator[str]:
    for place, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for file in sorted(name for name in files if file_kind(Path(name))):
            name = (Path(place) / file).relative_to(folder).as_posix()
            with suppress(ParameterError):
                if os.access(find_listed(folder, name), os.R_OK):
                    yield name


class Tables:
    """The tables in memory, each loaded once; the least recently used go first.

    Args:
        folder: the data folder.
        most: how many are kept.
        fingerprints: knows registered files again.
    """

    def __init__(self, folder: Path, most: int, fingerprints: FileFingerprints) -> None:
        self._folder, self._most, self._fingerprints = folder, most, fingerprints
        self._lock = threading.Lock()
        self._kept: OrderedDict[tuple[str, str, str], Table] = OrderedDict()

    def get(self, source: str, file_fingerprint: str, schema: Schema) -> Table:
        """Return the table of a registered file, or say that the file is not the registered one."""
        name = (source, file_fingerprint, schema.sha256)
        with self._lock:  # one load at a time: two of them would need twice the memory
            if name not in self._kept:
                self._kept[name] = self._load(source, file_fingerprint, schema)
            self._kept.move_to_end(name)
            while len(self._kept) > self._most:
                self._kept.popitem(last=False)
            return self._kept[name]

    def _load(self, source: str, file_fingerprint: str, schema: Schema) -> Table:
        try:
            read = Snapshot(find_source(self._folder, source))
            same = hmac.compare_digest(self._fingerprints.of_bytes(read.content), file_fingerprint)
        except (ParameterError, FileNotFoundError):
            same = False
        except OSError:
            raise unreadable() from None
        if not same:
            raise SourceChanged
        return Table(read, schema)
