"""Compiled loops: arrays in, arrays out, no Python objects, no randomness, no fastmath.

Private: everything that passes through. Each kernel says where its formula is from and has a slow,
obvious twin in tests/helpers/naive.py or in the detector it serves. They release the interpreter's
lock, so that ``pcor.support.threads`` can run them on all cores, and are compiled once and kept on
disk.

Words used by all of them: a pair is (cell, metric value, count), pairs rise by value; ``required``
has the bits of a cell's values, 64 to a word: a context covers a cell if it has all of them.
"""

import contextlib
from pathlib import Path
from typing import Any

from numba import njit


def forget_older(folder: Path) -> None:
    """Remove kernels from a folder's cache that were compiled before its latest source was written.

    Numba compares a kernel with its own file only. One that calls another's functions, or takes its
    tuples, would go on as it was compiled, with the memory laid out as it was then.
    """
    latest = max(source.stat().st_mtime_ns for source in folder.glob("*.py"))
    for index in (folder / "__pycache__").glob("*.nbi"):
        with contextlib.suppress(OSError):  # another process removes it as well, or nobody may
            if index.stat().st_mtime_ns < latest:
                index.unlink()


forget_older(Path(__file__).parent)


def kernel(function: Any) -> Any:
    """Compile a loop: exact floating point, cached on disk, without the interpreter's lock."""
    return njit(cache=True, nogil=True, fastmath=False, error_model="numpy")(function)


def inlined(function: Any) -> Any:
    """Compile a part of a loop into its callers.

    For a small function that is called often: each array that is passed to a function is counted,
    and a dozen of them in a tuple cost more than a short loop does.
    """
    return njit(inline="always", fastmath=False, error_model="numpy")(function)
