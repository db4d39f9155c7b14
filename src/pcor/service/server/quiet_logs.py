"""Quiet logs: what happens again and again is said now and then, with how often it happened.

Public: everything here. Whoever can cause a line with each try can fill a disk.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable
from typing import Any

# Seconds between two lines that say the same.
EVERY = 60.0
# Kinds of lines that are remembered; a line is told by its words without what is filled in.
REMEMBERED = 1000

# What asyncio says where a process may open no more files.
_NO_FILES = "socket.accept() out of system resource"

log = logging.getLogger("pcor.service.server.connections")


class RateLimitFilter(logging.Filter):
    """A rate limit for log lines: one of a kind per interval, with a count of those left out.

    Args:
        every: seconds.
        clock: seconds.
    """

    def __init__(self, every: float = EVERY, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._every, self._clock = every, clock
        self._lock = threading.Lock()
        self._kinds: dict[str, tuple[float, int]] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Tell whether a line passes."""
        kind, now = str(record.msg), self._clock()
        with self._lock:
            until, kept_back = self._kinds.get(kind, (now, 0))
            passes = now >= until
            if len(self._kinds) >= REMEMBERED:
                self._kinds.clear()
            self._kinds[kind] = (now + self._every, 0) if passes else (until, kept_back + 1)
        if passes and kept_back:
            record.msg = f"{kind.rstrip()} (and {kept_back:,} times since this was last said)"
        return passes


_sparing = RateLimitFilter()


def keep_quiet() -> None:
    """Limit the rate of repeated lines from the HTTP server and from asyncio."""
    for logger in (log, logging.getLogger("uvicorn.error")):
        logger.addFilter(_sparing)  # once, however often it is added


def new_loop() -> asyncio.AbstractEventLoop:
    """Return an event loop that says in a line that there are no more files."""
    loop = asyncio.new_event_loop()
    loop.set_exception_handler(_on_failure)
    return loop


def _on_failure(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    # asyncio tries again after a second by itself. Until then it writes a traceback for each of the
    # connections that wait (python/cpython#151615).
    if context.get("message") == _NO_FILES:
        log.warning(
            "no connection can be accepted: this process may open no more files; raise "
            "that limit (ulimit -n)"
        )
    else:
        loop.default_exception_handler(context)
