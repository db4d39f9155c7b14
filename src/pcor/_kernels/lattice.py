"""All contexts of a block at once.

A block is the 2^L contexts that share their outer bits. The moments of each are the sums over the
cells whose needs it contains: one zeta transform for all (Yates 1937; Knuth, TAOCP 4A, 7.1.3), L
additions a context instead of one per cell. Twin: ``View.moments``.
"""

from __future__ import annotations

from typing import Any

from pcor._kernels import kernel

Array = Any


@kernel
def block_moments(
    inner_needs: Array, counts: Array, sums: Array, squares: Array, out: Array
) -> None:
    """Fill ``out[i]`` with count, sum and sum of squares of the cells whose needs are in i.

    Args:
        inner_needs: for each cell inside the outer bits, its needed inner bits as a number.
        counts: the rows of each cell.
        sums: the sum of each cell.
        squares: the sum of squares of each cell.
        out: zeros, shape (2^L, 3).
    """
    for cell in range(len(inner_needs)):
        place = inner_needs[cell]
        out[place, 0] += counts[cell]
        out[place, 1] += sums[cell]
        out[place, 2] += squares[cell]
    step = 1
    while step < len(out):
        for low in range(0, len(out), 2 * step):
            for place in range(low, low + step):
                for moment in range(3):
                    out[place + step, moment] += out[place, moment]
        step *= 2
