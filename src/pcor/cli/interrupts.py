"""Ctrl-C while the program starts: it ends at once, with a sentence and no traceback.

Until a command begins there is nothing to tidy up. The exception that Python raises by itself is
not enough there: raised inside a callback of the import system it is printed and then dropped.
A command can tidy up, so there it is raised; dropped inside a callback of the compiler, it is
raised again a moment later.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from types import FrameType

# Seconds until a dropped interrupt is tried again: callbacks are short.
_AGAIN = 0.02

_dropped = threading.Event()


def leave_at_once() -> None:
    """From now on Ctrl-C ends the program, unless the parent process ignores the signal."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _leave)


def tell_the_command() -> None:
    """From now on Ctrl-C is a ``KeyboardInterrupt``: a command has begun and can tidy up."""
    if signal.getsignal(signal.SIGINT) is _leave:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        sys.unraisablehook = _raise_again


def was_dropped() -> bool:
    """Tell whether an interrupt was dropped: what fails afterwards fails because of it."""
    return _dropped.is_set()


def _raise_again(unraisable: sys.UnraisableHookArgs) -> None:
    """Report what could not be raised, but for an interrupt, which comes again."""
    if not isinstance(unraisable.exc_value, KeyboardInterrupt):
        sys.__unraisablehook__(unraisable)
        return
    _dropped.set()
    timer = threading.Timer(_AGAIN, _interrupt_main)
    timer.daemon = True
    timer.start()


def _interrupt_main() -> None:
    main = threading.main_thread().ident
    if hasattr(signal, "pthread_kill") and main is not None:
        signal.pthread_kill(main, signal.SIGINT)  # wakes it, too, where it waits
    else:
        signal.raise_signal(signal.SIGINT)


def _leave(number: int, frame: FrameType | None) -> None:  # noqa: ARG001 (as signal calls it)
    os.write(2, b"pcor: interrupted; nothing was begun\n")
    os._exit(130)
