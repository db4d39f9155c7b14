"""Sets of contexts as cubes: a base and some open bits stand for every filling of those bits.

The walks over a record's contexts answer for whole cubes at once; only who asks for the single
contexts pays for them. Twin: ``tests.audit.test_neighbours.listed``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pcor._kernels import kernel, maker
from pcor._kernels.bits import count_bits

Array = Any


@maker
def cube_sizes(opens: Array) -> Array:
    """Return how many contexts each cube stands for."""
    sizes = np.empty(len(opens), np.int64)
    for cube in range(len(opens)):
        sizes[cube] = 1 << count_bits(opens[cube])
    return sizes


@kernel
def cube_members(bases: Array, opens: Array, out: Array) -> None:
    """List the contexts of each cube, cube after cube."""
    place = 0
    for cube in range(len(bases)):
        part = np.uint64(0)
        # At least once: a cube without open bits is one context.
        while True:
            out[place] = bases[cube] | part
            place += 1
            part = (part - opens[cube]) & opens[cube]  # the next subset of the open bits
            # After the full set comes the empty one again: all were listed.
            if part == 0:
                break
