"""Put off: questions that cannot be drawn now are tried again, later each time.

Public: which questions, and until when. What is put off stays charged and open.
"""

from __future__ import annotations

import threading

# Seconds before a question is tried again: twice as many each time, at most.
SOONEST, LATEST = 5, 600


class Backoff:
    """Exponential backoff of questions, in this process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waits: dict[str, tuple[int, int]] = {}  # seconds of the last wait, until when

    def delay(self, name: str, now: int) -> int:
        """Delay a question for twice as long as the last time; return the seconds."""
        with self._lock:
            wait = min(2 * self._waits.get(name, (0, 0))[0] or SOONEST, LATEST)
            self._waits[name] = (wait, now + 1000 * wait)
            return wait

    def is_delayed(self, name: str, now: int) -> bool:
        """Whether it is too early to try a question again. ``now`` in milliseconds.

        >>> questions = Backoff()
        >>> questions.delay("one", 0), questions.delay("one", 0)
        (5, 10)
        >>> [questions.is_delayed("one", now) for now in (0, 9_999, 10_000, -1)]
        [True, True, False, False]
        """
        with self._lock:
            wait, end = self._waits.get(name, (0, 0))
        # More than the whole wait is left only where the clock was set back.
        return 0 < end - now <= 1000 * wait

    def forget(self, name: str) -> None:
        """Reset a question: its next delay is the shortest."""
        with self._lock:
            self._waits.pop(name, None)
