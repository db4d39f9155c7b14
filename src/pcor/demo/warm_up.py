"""Compile ahead what releases need: loops are compiled when they are first called, once.

Nothing private: everything runs on made-up rows. How long it took is kept beside what was compiled,
so that whoever waits for it again, after an update, knows for how long.
"""

from __future__ import annotations

import contextlib
import time
from pathlib import Path

from pcor._kernels import compiled_folder

# The name of the file with the seconds of the last warm-up that compiled something.
_SECONDS = "pcor-compiled-in"


def is_compiled() -> bool:
    """Tell whether any loop is kept compiled; where none ever is, there is nothing to wait for.

    A new version of one loop compiles again without a word: others are there.
    """
    folder = compiled_folder()
    return folder is None or any(folder.glob("*.nbi"))


def last_seconds() -> int | None:
    """Return how long the last warm-up took that compiled everything; ``None`` if none did."""
    try:
        folder = compiled_folder()
        return None if folder is None else int((folder / _SECONDS).read_text("ascii"))
    except (OSError, ValueError):
        return None


def warm_up() -> tuple[int, bool]:
    """Release by each built-in detector from made-up rows.

    Returns the seconds that it took, and whether anything was compiled in them.
    """
    folder, began = compiled_folder(), time.monotonic()
    before = _loops(folder)
    _releases()
    seconds, after = round(time.monotonic() - began), _loops(folder)
    if folder is not None and after and not before:
        with contextlib.suppress(OSError):  # a folder that nobody may write to keeps nothing
            (folder / _SECONDS).write_text(str(seconds), "ascii")
    return seconds, after > before


def _loops(folder: Path | None) -> int:
    """Return how many compiled loops are kept."""
    return 0 if folder is None else len([*folder.glob("*.nbc")])


def _releases() -> None:
    from pcor.demo.paper import PLANTED, salary_table
    from pcor.detectors.lof import LOF
    from pcor.errors import NoValidContext
    from pcor.public.guarantee import PureDP
    from pcor.releasing.run import release

    family, table, record = salary_table(), salary_table(any_set=True), PLANTED[0].record
    for detector in ("grubbs", "histogram"):
        release(family, record, 1, detector)
    release(family, record, 1, "tail", guarantee=PureDP.name)
    for search in ("direct", "widest_first"):
        release(table, record, 1, "lof", search)
    # Nobody stands out by so much: subtrees of contexts are ruled out, to the last.
    with contextlib.suppress(NoValidContext):
        release(table, record, 1, LOF(threshold=20), "direct")
