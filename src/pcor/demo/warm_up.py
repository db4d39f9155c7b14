"""Compile ahead what releases need: loops are compiled when they are first called, once.

Nothing private: everything runs on made-up rows. How long it took is kept beside what was compiled,
so that whoever waits for it again, after an update, knows for how long.
"""

from __future__ import annotations

import contextlib
import time
from pathlib import Path

# The name of the file with the seconds of the last warm-up that compiled something.
_SECONDS = "pcor-compiled-in"


def compiled_folder() -> Path | None:
    """Return where compiled loops are kept; ``None`` where nothing is compiled or kept."""
    from pcor._kernels.coverage import cell_totals  # brings Numba along

    stats = getattr(cell_totals, "stats", None)  # none where Numba is told not to compile
    return None if stats is None else Path(stats.cache_path)


def is_compiled() -> bool:
    """Tell whether any loop is kept compiled; where none ever is, there is nothing to wait for.

    A new version of one loop compiles again without a word: others are there.
    """
    folder = compiled_folder()
    return folder is None or any(folder.glob("*.nbi"))


def last_seconds() -> int | None:
    """Return how long the last warm-up took that compiled; ``None`` if there was none."""
    try:
        folder = compiled_folder()
        return None if folder is None else int((folder / _SECONDS).read_text("ascii"))
    except (OSError, ValueError):
        return None


def warm_up() -> int:
    """Release by each built-in detector from made-up rows; return the seconds that it took."""
    cold, began = not is_compiled(), time.monotonic()
    _releases()
    seconds = round(time.monotonic() - began)
    folder = compiled_folder()
    if cold and folder is not None:
        with contextlib.suppress(OSError):  # a folder that nobody may write to keeps nothing
            folder.mkdir(parents=True, exist_ok=True)
            (folder / _SECONDS).write_text(str(seconds), "ascii")
    return seconds


def _releases() -> None:
    import pcor
    from pcor.demo.paper import PLANTED, salary_table
    from pcor.errors import NoValidContext

    family, table, record = salary_table(), salary_table(any_set=True), PLANTED[0].record
    for detector in ("grubbs", "histogram"):
        pcor.release(family, record, 1, detector)
    pcor.release(family, record, 1, "tail", guarantee="dp")
    for search in ("direct", "widest_first"):
        pcor.release(table, record, 1, "lof", search)
    # Nobody stands out by so much: subtrees of contexts are ruled out, to the last.
    with contextlib.suppress(NoValidContext):
        pcor.release(table, record, 1, pcor.LOF(threshold=20), "direct")
