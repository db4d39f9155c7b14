"""A fair queue: everybody who waits is served once before anybody is served twice.

Public: who asked, and how much of it waits. Nobody's place depends on rows. Whoever sends many
questions makes themselves wait, and nobody else for more than one question of theirs at a time.
"""

from __future__ import annotations

import threading
from collections import OrderedDict, deque
from typing import Generic, TypeVar

Thing = TypeVar("Thing")


class FairQueue(Generic[Thing]):
    """A queue that serves its owners in turns; any number of threads may put and get.

    >>> line = FairQueue[int]()
    >>> for who, thing in (("ana", 1), ("ana", 2), ("ana", 3), ("ben", 4)):
    ...     line.put(who, thing)
    >>> [line.get() for _ in range(4)]
    [1, 4, 2, 3]
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        # Whoever is first has the next turn; who has had theirs goes to the end.
        self._waiting: OrderedDict[str, deque[Thing]] = OrderedDict()

    def put(self, who: str, thing: Thing) -> None:
        """Add an item behind those of the same owner."""
        with self._changed:
            self._waiting.setdefault(who, deque()).append(thing)
            self._changed.notify()

    def get(self) -> Thing:
        """Wait for the next item, and take it."""
        with self._changed:
            while not self._waiting:
                self._changed.wait()
            who, things = self._waiting.popitem(last=False)
            thing = things.popleft()
            if things:
                self._waiting[who] = things
            return thing
