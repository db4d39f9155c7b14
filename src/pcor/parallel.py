"""Run a kernel on all cores: split the batch, one thread each.

Kernels release the interpreter's lock, so threads are enough; results go to disjoint slices, so the
number of threads changes nothing but the time.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from itertools import pairwise

# Splitting smaller batches costs more than it saves.
SMALLEST_SHARE = 256


@lru_cache(maxsize=1)
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(max_workers=_cores(), thread_name_prefix="pcor")


def _cores() -> int:
    # The cores this process may use, which in a container are fewer than the machine's.
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def in_slices(count: int, work: Callable[[slice], None], smallest: int = SMALLEST_SHARE) -> None:
    """Call ``work`` on slices that together cover ``range(count)``, on all cores."""
    shares = max(1, min(4 * _cores(), count // smallest))
    edges = [count * share // shares for share in range(shares + 1)]
    slices = [slice(low, high) for low, high in pairwise(edges)]
    if len(slices) == 1:
        work(slices[0])
    else:
        list(_pool().map(work, slices))
