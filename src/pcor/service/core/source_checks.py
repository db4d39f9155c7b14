"""Source checks: is a file still the one that was registered? Asked without reading its table.

Private: the fingerprints that are remembered here; no row is. A file is hashed when it is first
asked for and again when its size, its times or its place on the disk have changed, so that asking
again costs next to nothing, and the same for every record. Whoever draws checks what they read by
themselves (``sources``): this only keeps questions from being charged, or taken up, that cannot be
answered.
"""

from __future__ import annotations

import hmac
import threading
import time
from collections.abc import Callable
from pathlib import Path

from pcor.errors import ParameterError
from pcor.service.core.fingerprints import FileFingerprints
from pcor.service.core.sources import SourceChanged, find_source, unreadable

# What of a file's description changes whenever its content does.
Look = tuple[int, int, int, int, int]
# Seconds after which a file that was being written is hashed again.
WRITTEN = 1.0


class SourceChecks:
    """Knows of each file what it was when it was last hashed.

    Args:
        folder: the data folder.
        fingerprints: knows registered files again.
        clock: seconds.
    """

    def __init__(
        self,
        folder: Path,
        fingerprints: FileFingerprints,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._folder, self._fingerprints, self._clock = folder, fingerprints, clock
        # One for each file: a large one takes long to hash, and questions about others go on.
        self._locks: dict[str, threading.Lock] = {}
        # Its fingerprint, and until when that is good: while the file looks the same, or for a
        # while.
        self._known: dict[str, tuple[Look | None, float, str]] = {}

    def check(self, source: str, file_fingerprint: str) -> None:
        """Refuse a file that is not there any more, or is another than the registered one.

        One that cannot be read at this moment is refused too, and not said to have changed: that
        would be noted, and would tell its owner to do something about it.
        """
        try:
            found = self._file_fingerprint(source)
        except (ParameterError, FileNotFoundError):
            found = ""
        except OSError:
            raise unreadable() from None
        if not hmac.compare_digest(found, file_fingerprint):
            raise SourceChanged

    def _file_fingerprint(self, source: str) -> str:
        path = find_source(self._folder, source)
        with self._locks.setdefault(source, threading.Lock()):
            before = _look(path)
            look, until, found = self._known.get(source, (None, 0.0, ""))
            if look == before or self._clock() < until:
                return found
            found = self._fingerprints.of_file(path)
            if _look(path) == before:
                self._known[source] = (before, 0.0, found)
            else:  # it is being written: not every question reads it from its beginning
                self._known[source] = (None, self._clock() + WRITTEN, found)
            return found


def _look(path: Path) -> Look:
    found = path.stat()
    return (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)
