"""Ctrl-C while the program starts: it ends at once, with a sentence and no traceback.

Until a command begins there is nothing to tidy up. The exception that Python raises by itself is
not enough there: raised inside a callback of the import system it is printed and then dropped.
"""

from __future__ import annotations

import os
import signal
from types import FrameType


def leave_at_once() -> None:
    """From now on Ctrl-C ends the program, unless the parent process ignores the signal."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _leave)


def tell_the_command() -> None:
    """From now on Ctrl-C is a ``KeyboardInterrupt``: a command has begun and can tidy up."""
    if signal.getsignal(signal.SIGINT) is _leave:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _leave(number: int, frame: FrameType | None) -> None:  # noqa: ARG001 (as signal calls it)
    os.write(2, b"pcor: interrupted; nothing was begun\n")
    os._exit(130)
