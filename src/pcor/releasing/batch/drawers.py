"""Threads that draw.

Private: what they are at. The threads are daemons: after Ctrl-C a long search must not keep the
process from ending, and what it draws then is thrown away unseen.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextvars import copy_context
from queue import SimpleQueue
from typing import Generic, TypeVar

Drawn = TypeVar("Drawn")


class Drawers(Generic[Drawn]):
    """A number of threads that share work; with one worker, the caller's own thread does it."""

    def __init__(self, workers: int) -> None:
        self.workers = workers
        self._waiting: SimpleQueue[tuple[Future[Drawn], Callable[[], Drawn]] | None] = SimpleQueue()
        self._threads = 0

    def submit(self, work: Callable[[], Drawn]) -> Future[Drawn]:
        """Begin some work, or line it up."""
        task: Future[Drawn] = Future()
        if self.workers == 1:
            _run(task, work)
            return task
        # Each in a copy of the caller's context, where numpy keeps its error settings.
        context = copy_context()
        self._waiting.put((task, lambda: context.run(work)))
        if self._threads < self.workers:
            self._threads += 1
            threading.Thread(target=self._work, name="pcor-many", daemon=True).start()
        return task

    def close(self) -> None:
        """Let the threads end when they are done."""
        for _ in range(self._threads):
            self._waiting.put(None)

    def _work(self) -> None:
        while (waiting := self._waiting.get()) is not None:
            _run(*waiting)


def _run(task: Future[Drawn], work: Callable[[], Drawn]) -> None:
    if not task.set_running_or_notify_cancel():
        return
    try:
        task.set_result(work())
    except Exception as error:
        task.set_exception(error)
