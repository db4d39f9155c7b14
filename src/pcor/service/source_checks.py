"""Source checks: is a file still the one that was registered? Asked without reading its table.

Private: the marks that are remembered here; no row is. A file is hashed when it is first asked for
and again when its size, its times or its place on the disk have changed, so that asking again costs
next to nothing, and the same for every record. Whoever draws checks what they read by themselves
(``sources``): this only keeps questions from being charged, or taken up, that cannot be answered.
"""

from __future__ import annotations

import hmac
import threading
from pathlib import Path

from pcor.errors import ParameterError
from pcor.service.marks import Marker
from pcor.service.sources import SourceChanged, find_source

# What of a file's description changes whenever its content does.
Look = tuple[int, int, int, int, int]


class SourceChecks:
    """Knows of each file what it was when it was last hashed.

    Args:
        folder: the data folder.
        marker: knows registered files again.
    """

    def __init__(self, folder: Path, marker: Marker) -> None:
        self._folder, self._marker = folder, marker
        self._lock = threading.Lock()  # one hash at a time: the disk is not faster for two
        self._known: dict[str, tuple[Look, str]] = {}

    def check(self, source: str, mark: str) -> None:
        """Refuse a file that is not there any more, or is another than the registered one."""
        try:
            found = self._mark(source)
        except (ParameterError, OSError):
            found = ""
        if not hmac.compare_digest(found, mark):
            raise SourceChanged

    def _mark(self, source: str) -> str:
        path = find_source(self._folder, source)
        with self._lock:
            before = _look(path)
            known = self._known.get(source)
            if known is not None and known[0] == before:
                return known[1]
            found = self._marker.of_file(path)
            if _look(path) == before:  # otherwise it is being written at this moment
                self._known[source] = (before, found)
            return found


def _look(path: Path) -> Look:
    found = path.stat()
    return (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)
