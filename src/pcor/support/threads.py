"""Run work on all cores: split it, a few threads share the parts.

Kernels release the interpreter's lock, and so do scikit-learn's inner loops, so threads are enough;
results go to disjoint places, so the number of threads changes nothing but the time.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextvars import copy_context
from functools import lru_cache
from itertools import pairwise
from typing import TypeVar

# Splitting smaller batches costs more than it saves.
SMALLEST_SHARE = 256

Part = TypeVar("Part")

_thread = threading.local()


@lru_cache(maxsize=1)
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(cores(), "pcor", initializer=setattr, initargs=(_thread, "ours", 1))


if hasattr(os, "register_at_fork"):
    # A forked process has none of its parent's threads: it needs a pool of its own.
    os.register_at_fork(after_in_child=_pool.cache_clear)


def cores() -> int:
    """Return how many cores this process may use: in a container fewer than the machine has."""
    if hasattr(os, "sched_getaffinity"):
        return min(len(os.sched_getaffinity(0)), _quota())
    return os.cpu_count() or 1


@lru_cache(maxsize=1)
def _quota(limits: str = "/sys/fs/cgroup/cpu.max") -> int:
    """Return how many cores' time a container gets, where Linux says so: `podman run --cpus 2`."""
    try:
        with open(limits, encoding="ascii") as file:
            most, period = map(int, file.read().split())
        return max(1, -(-most // period))
    except (OSError, ValueError, ZeroDivisionError):  # another system, or "max": no limit
        return sys.maxsize


def in_slices(count: int, work: Callable[[slice], None], smallest: int = SMALLEST_SHARE) -> None:
    """Call ``work`` on slices that together cover ``range(count)``, on all cores."""
    shares = max(1, min(4 * cores(), count // smallest))
    edges = [count * share // shares for share in range(shares + 1)]
    _share(work, [slice(low, high) for low, high in pairwise(edges)])


def one_by_one(count: int, work: Callable[[int], None]) -> None:
    """Call ``work`` on each of ``range(count)``, on all cores: for work of milliseconds and more.

    What is raised is what one core would have raised: the failure of the first part that fails.
    """
    _share(work, range(count))


def _share(work: Callable[[Part], None], parts: Sequence[Part]) -> None:
    # A part that shares out its own work must not wait for the threads that wait for it.
    if len(parts) < 2 or cores() == 1 or hasattr(_thread, "ours"):
        for part in parts:
            work(part)
        return
    tasks: list[Future[None]] = []
    try:
        for part in parts:
            # Each in a copy of the caller's context, where numpy keeps its error settings.
            tasks.append(_pool().submit(copy_context().run, work, part))
        for task in tasks:
            task.result()  # in order, so what is raised is the failure of the first that fails
    finally:
        # After a failure or Ctrl-C nothing runs on unseen: the caller may be about to let warnings
        # be printed again.
        for task in tasks:
            task.cancel()
        wait(tasks)
