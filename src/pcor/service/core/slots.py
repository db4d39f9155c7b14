"""Slots: what is counted about whoever asks, in one process or in all that serve together.

Public: who asks how often. In a file that is behind a hash, whose key is made anew with each file;
no secret and no row. The file lies in a folder that only the service's user may open, and goes with
the service.

In a file a slot is found by the hash of its name: one of a few places, of which the one that was
untouched longest makes room. So the file never grows, and nothing in it must be repaired after a
process was killed: the lock on the file ends with the process that holds it, and a slot that was
being written is at worst a wrong number of tokens, for a moment.
"""

from __future__ import annotations

import logging
import mmap
import os
import struct
import threading
import time
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from hashlib import blake2b
from pathlib import Path
from typing import Protocol

from pcor.support.locks import held

log = logging.getLogger("pcor.service")

# The files in a folder that processes share.
REQUESTS, GUESSES, SIGN_INS, KNOWN = "requests", "guesses", "sign-ins", "known"

# Names that one process remembers; the one that was untouched longest is forgotten first.
REMEMBERED = 10_000

# In a file: the key of its hashes, then slots, each with the hash of a name, its tokens, and the
# time they were counted at. One that is free is all zeros, which no name's hash is.
_KEY = 32
_SLOT = struct.Struct("=16sdd")
_PLACES = 8
_GROUPS = 2_048
_SIZE = _KEY + _GROUPS * _PLACES * _SLOT.size


class Slots(Protocol):
    """A few numbers for each name. Every use is between ``with slots.locked():``."""

    def locked(self) -> AbstractContextManager[object]:
        """Keep others out."""

    def get(self, name: str) -> tuple[float, float] | None:
        """Return the tokens of a name and when they were counted, if it has a slot."""

    def put(self, name: str, tokens: float, at: float) -> None:
        """Write a slot; the one that was untouched longest makes room."""

    def forget(self, name: str) -> None:
        """Free a slot."""


class OwnSlots:
    """The slots of one process, in its memory."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def locked(self) -> AbstractContextManager[object]:
        """Keep other threads out."""
        return self._lock

    def get(self, name: str) -> tuple[float, float] | None:
        """Return the tokens of a name and when they were counted, if it has a slot."""
        return self._kept.get(name)

    def put(self, name: str, tokens: float, at: float) -> None:
        """Write a slot; the one that was untouched longest makes room."""
        self._kept.pop(name, None)
        self._kept[name] = (tokens, at)
        if len(self._kept) > REMEMBERED:
            self._kept.popitem(last=False)

    def forget(self, name: str) -> None:
        """Free a slot."""
        self._kept.pop(name, None)


def make_files(folder: Path) -> None:
    """Put empty files into a folder, for ``SharedSlots`` in several processes to open."""
    for name in (REQUESTS, GUESSES, SIGN_INS, KNOWN):
        descriptor = os.open(folder / name, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(os.urandom(_KEY))
            file.truncate(_SIZE)


class SharedSlots:
    """The slots of several processes, in a file that each of them maps.

    Args:
        path: a file of ``make_files``.
    """

    def __init__(self, path: Path) -> None:
        self._descriptor = os.open(path, os.O_RDWR)
        self._map = mmap.mmap(self._descriptor, _SIZE)
        self._key = bytes(self._map[:_KEY])
        self._lock = threading.Lock()  # a lock on the file keeps out processes, not threads

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other threads and processes out."""
        with self._lock, held(self._descriptor):
            yield

    def get(self, name: str) -> tuple[float, float] | None:
        """Return the tokens of a name and when they were counted, if it has a slot."""
        hashed, places = self._places(name)
        for place in places:
            found, tokens, at = _SLOT.unpack_from(self._map, place)
            if found == hashed:
                return tokens, at
        return None

    def put(self, name: str, tokens: float, at: float) -> None:
        """Write a slot; of its few places the one that was untouched longest makes room."""
        hashed, places = self._places(name)
        slots = {place: _SLOT.unpack_from(self._map, place) for place in places}
        own = [place for place in places if slots[place][0] == hashed]
        place = own[0] if own else min(places, key=lambda one: slots[one][2])
        _SLOT.pack_into(self._map, place, hashed, tokens, at)

    def forget(self, name: str) -> None:
        """Free a slot."""
        hashed, places = self._places(name)
        for place in places:
            if _SLOT.unpack_from(self._map, place)[0] == hashed:
                _SLOT.pack_into(self._map, place, bytes(16), 0.0, 0.0)

    def _places(self, name: str) -> tuple[bytes, range]:
        hashed = blake2b(name.encode(), key=self._key, digest_size=16).digest()
        first = _KEY + int.from_bytes(hashed[:4]) % _GROUPS * _PLACES * _SLOT.size
        return hashed, range(first, first + _PLACES * _SLOT.size, _SLOT.size)


def open_slots(folder: Path | None, name: str) -> Slots:
    """Return the slots of this process, or where it shares a folder, those of all of them.

    A file that has gone since keeps no process from serving: it counts by itself then.
    """
    if folder is None:
        return OwnSlots()
    try:
        return SharedSlots(folder / name)
    except FileNotFoundError:
        log.warning(
            "the file %r that processes share has gone from %s, so this process counts by itself; "
            "keep that folder from being tidied up, and start pcor serve anew",
            *(name, str(folder)),
        )
        return OwnSlots()


class KnownNames:
    """Names that were good a while ago.

    Args:
        slots: where they are remembered.
    """

    def __init__(self, slots: Slots) -> None:
        self._slots = slots

    def has(self, name: str) -> bool:
        """Whether a name was good; it is then remembered for longer."""
        with self._slots.locked():
            known = self._slots.get(name) is not None
            if known:
                self._slots.put(name, 0.0, time.monotonic())
            return known

    def add(self, name: str) -> None:
        """Remember a name."""
        with self._slots.locked():
            self._slots.put(name, 0.0, time.monotonic())

    def forget(self, name: str) -> None:
        """Remember it no longer."""
        with self._slots.locked():
            self._slots.forget(name)
