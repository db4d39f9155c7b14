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
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from pcor.errors import ParameterError
from pcor.service.core.fingerprints import FileFingerprints
from pcor.service.core.sources import SourceChanged, being_read, find_source, unreadable

# What of a file's description changes whenever its content does.
Look = tuple[int, int, int, int, int]
# Seconds after which a file that was being written is hashed again.
WRITTEN = 1.0
# So many wait for files that others hash; the next are told to come back.
MOST_WAITING = 4


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
        self._patience = threading.Semaphore(MOST_WAITING)
        # Its fingerprint, and until when that is good: while the file looks the same, or for a
        # while.
        self._known: dict[str, tuple[Look | None, float, str]] = {}

    def check(self, source: str, file_fingerprint: str) -> None:
        """Refuse a file that is not there any more, or is another than the registered one.

        One that cannot be read at this moment is refused too, and not said to have changed: that
        would be noted, and would tell its owner to do something about it. So is one that has been
        written anew while it is hashed, where several wait for that already.
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
        known = self._remembered(source, _look(path))
        if known is not None:
            return known
        with self._turn(source):
            before = _look(path)
            known = self._remembered(source, before)
            if known is not None:
                return known
            found = self._fingerprints.of_file(path)
            if _look(path) == before:
                self._known[source] = (before, 0.0, found)
            else:  # it is being written: not every question reads it from its beginning
                self._known[source] = (None, self._clock() + WRITTEN, found)
            return found

    def _remembered(self, source: str, looks: Look) -> str | None:
        """Return the fingerprint of a file that has not changed since it was hashed."""
        look, until, found = self._known.get(source, (None, 0.0, ""))
        return found if look == looks or self._clock() < until else None

    @contextmanager
    def _turn(self, source: str) -> Iterator[None]:
        """Let one hash a file and a few wait for it: each waits in a thread that others need."""
        lock = self._locks.setdefault(source, threading.Lock())
        if not lock.acquire(blocking=False):
            if not self._patience.acquire(blocking=False):
                raise being_read()
            try:
                lock.acquire()
            finally:
                self._patience.release()
        try:
            yield
        finally:
            lock.release()


def _look(path: Path) -> Look:
    found = path.stat()
    return (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)
