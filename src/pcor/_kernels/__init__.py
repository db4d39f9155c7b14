"""Compiled loops: arrays in, arrays out, no Python objects, no randomness, no fastmath.

Private: everything that passes through. Each kernel says where its formula is from and has a slow,
obvious twin in tests/helpers/naive.py or in the detector it serves. They release the interpreter's
lock, so that ``pcor.support.threads`` can run them on all cores, and are compiled once and kept on
disk.

Words used by all of them: a pair is (cell, metric value, count), pairs rise by value; ``required``
has the bits of a cell's values, 64 to a word: a context covers a cell if it has all of them.
"""

import contextlib
from glob import escape
from pathlib import Path
from typing import Any

from numba import njit
from numba.core.cpu import CPUTargetOptions

# Numba counts who uses an array, by atomic additions at calls and views: a third of the time of
# short loops. A kernel that neither makes nor returns one has nothing to count, since its caller
# holds what it is given. The option that says so is not in Numba's documentation; without it loops
# are slower, and nothing else is different.
_UNCOUNTED = {"_nrt": False} if hasattr(CPUTargetOptions, "_nrt") else {}


def kernel(function: Any) -> Any:
    """Compile a loop that fills arrays it is given: exact floating point, cached on disk, no lock.

    It makes no array, returns none, and calls no ``maker``, for nobody would free what that made.
    """
    return _compiled(function, **_UNCOUNTED)


def maker(function: Any) -> Any:
    """Compile a loop as ``kernel`` does that makes or returns arrays, or calls one that does."""
    return _compiled(function)


def _compiled(function: Any, **options: Any) -> Any:
    return njit(cache=True, nogil=True, fastmath=False, error_model="numpy", **options)(function)


def inlined(function: Any) -> Any:
    """Compile a small part of a loop, which is called often, into its callers."""
    return njit(inline="always", fastmath=False, error_model="numpy")(function)


def compiled_folder() -> Path | None:
    """Return where Numba keeps the loops of this folder; ``None`` where it compiles none."""
    stats = getattr(kernel(_nothing), "stats", None)
    return None if stats is None else Path(stats.cache_path)


def _nothing() -> None:
    """Do nothing: it is asked where it would be kept, and never compiled."""


def forget_older(folder: Path, cache: Path) -> None:
    """Remove kernels from a cache that were compiled before a folder's latest source was written.

    Numba compares a kernel with its own file only. One that calls another's functions, or takes its
    tuples, would go on as it was compiled, with the memory laid out as it was then.
    """
    latest = max(source.stat().st_mtime_ns for source in folder.glob("*.py"))
    for index in cache.glob("*.nbi"):
        with contextlib.suppress(OSError):  # another process removes it as well, or nobody may
            if index.stat().st_mtime_ns < latest:
                for data in cache.glob(f"{escape(index.stem)}.*.nbc"):
                    data.unlink()
                index.unlink()


if (_kept := compiled_folder()) is not None:
    forget_older(Path(__file__).parent, _kept)
