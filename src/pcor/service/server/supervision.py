"""Supervision: a process that serves ends when the one that started it is gone.

Public: everything here. `kill -9` of the first process leaves it no time to end the others. They
would serve on, and keep the port from whoever starts the service again. So each watches a pipe that
only its parent holds open: however the parent ends, the system closes it.
"""

from __future__ import annotations

import logging
import os
import signal
import threading
from multiprocessing import parent_process
from multiprocessing.process import BaseProcess

log = logging.getLogger("pcor.service")


def end_with_parent() -> None:
    """Stop gracefully, as for SIGTERM, once the process that started this one is gone."""
    parent = parent_process()
    if parent is not None:
        threading.Thread(target=_watch, args=(parent,), daemon=True).start()


def _watch(parent: BaseProcess) -> None:
    parent.join()  # waits for the pipe's end, on every system that has one
    log.warning("the process that started this one is gone; this one ends too")
    os.kill(os.getpid(), signal.SIGTERM)
