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
def block_totals(inner_needs: Array, weights: Array, out: Array) -> None:
    """Fill ``out[:, i]`` with the summed weights of the cells whose needs are in i.

    Args:
        inner_needs: for each cell inside the outer bits, its needed inner bits as a number.
        weights: several weights for each cell, shape (kinds, cells).
        out: zeros, shape (kinds, 2^L).
    """
    for kind in range(len(weights)):
        row = out[kind]
        for cell in range(len(inner_needs)):
            row[inner_needs[cell]] += weights[kind, cell]
        step = 1
        while step < len(row):
            for low in range(0, len(row), 2 * step):
                for place in range(low, low + step):
                    row[place + step] += row[place]
            step *= 2
