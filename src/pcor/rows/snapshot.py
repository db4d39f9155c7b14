"""Snapshot: a file as it was when it was read, for whoever must know which bytes the rows are from.

Private: the content. A path is opened again by every reader, and by then the file can be another
one. A snapshot is read once; whatever is worked out of it, a hash or a table, is of the same bytes.
"""

from __future__ import annotations

import io
from pathlib import Path
from typing import IO, Any

import pyarrow as pa

from pcor.errors import SourceError


class Snapshot:
    """The bytes of a file; readers of files take it in the place of a path.

    Args:
        path: the file; its name is quoted in refusals, and its ending says what it is.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            self.content = path.read_bytes()
        except MemoryError:
            raise SourceError(f"the file {str(path)!r} is larger than the memory left") from None

    @property
    def name(self) -> str:
        """The name of the file, without its folder."""
        return self._path.name

    def open(self, mode: str = "r", **options: Any) -> IO[Any]:
        """Return a stream over the bytes, as ``Path.open`` does over a file."""
        stream = io.BytesIO(self.content)
        return stream if "b" in mode else io.TextIOWrapper(stream, **options)

    def reader(self) -> pa.BufferReader:
        """Return the bytes as Arrow's readers take them; nothing is copied."""
        return pa.BufferReader(self.content)

    def __str__(self) -> str:
        return str(self._path)

    def __repr__(self) -> str:
        return f"<Snapshot of {self.name!r}>"
