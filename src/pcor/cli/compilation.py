"""Say that the kernels are about to be compiled, which takes some seconds, the first time only.

Public: whether this installation has been used before. Nothing here looks at a row.
"""

from __future__ import annotations

import sys
from pathlib import Path

from pcor.cli.output import tell


def tell_of_compiling() -> None:
    """Say so where a person is looking and nothing is in the cache that Numba keeps for us."""
    if sys.stderr.isatty() and not are_compiled():
        tell("compiling, once (some seconds) ...")


def are_compiled() -> bool:
    """Tell whether any kernel is in Numba's cache, wherever that is; no cache counts as compiled.

    A new version of a kernel compiles again without a word: the cache is not empty then.
    """
    from pcor._kernels.coverage import cell_totals  # brings Numba along

    stats = getattr(cell_totals, "stats", None)  # none where Numba is told not to compile
    return stats is None or any(Path(stats.cache_path).glob("*.nbi"))
