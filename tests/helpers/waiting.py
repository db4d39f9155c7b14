"""Waiting in tests: for an event, never for a while.

How long anything takes belongs to the machine and to what else runs on it. So a test waits until
something is so. The deadline only ends what would never end; no test that passes comes near it.
"""

from __future__ import annotations

import time
from collections.abc import Callable

DEADLINE = 600.0  # seconds


def until(
    what: Callable[[], object], pause: Callable[[], object] = lambda: time.sleep(0.01)
) -> None:
    """Wait until something is so, looking again after each pause."""
    end = time.monotonic() + DEADLINE
    while not what():
        if time.monotonic() > end:
            raise AssertionError(f"not so after {DEADLINE:.0f} s")
        pause()
