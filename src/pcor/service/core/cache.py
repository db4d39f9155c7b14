"""A cache in memory: what was used last stays, up to a size.

Public: nothing of its own. It keeps what it is given, which is as private as it was before.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

Name = TypeVar("Name", bound=Hashable)
Thing = TypeVar("Thing")


class LruCache(Generic[Name, Thing]):
    """A cache by name; the least recently used go first.

    Args:
        most: how large it may be.
        size: how much of that an item takes, by its name; by default they are counted.
    """

    def __init__(self, most: int, size: Callable[[Name], int] = lambda _: 1) -> None:
        self._most, self._size_of, self._size = most, size, 0
        self._lock = threading.Lock()
        self._kept: OrderedDict[Name, Thing] = OrderedDict()

    def get(self, name: Name) -> Thing | None:
        """Return an item, if it is cached."""
        with self._lock:
            if name not in self._kept:
                return None
            self._kept.move_to_end(name)
            return self._kept[name]

    def put(self, name: Name, thing: Thing) -> None:
        """Cache an item."""
        with self._lock:
            self._forget(name)
            self._kept[name] = thing
            self._size += self._size_of(name)
            while self._size > self._most:
                self._forget(next(iter(self._kept)))

    def _forget(self, name: Name) -> None:
        if self._kept.pop(name, None) is not None:
            self._size -= self._size_of(name)
