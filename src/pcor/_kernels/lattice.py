"""All contexts of a block at once.

A block is the 2^L contexts that share their outer bits. The moments of each are the sums over the
cells whose required bits it has: one zeta transform for all (Yates 1937; Knuth, TAOCP 4A, 7.1.3), L
additions a context instead of one per cell. Twin: ``Cells.several_totals``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pcor._kernels import kernel

Array = Any


@kernel
def _sum_over_subsets(totals: Array) -> None:
    """Replace each entry by the sum over all entries whose bits are a subset of its own."""
    # After the round of a bit each entry holds the sum over the subsets that differ from it in this
    # bit and lower ones.
    step = 1
    while step < len(totals):
        for low in range(0, len(totals), 2 * step):
            # Both halves are read in order, so the compiler adds several entries with one
            # instruction.
            for place in range(low, low + step):
                totals[place + step] += totals[place]
        step *= 2


@kernel
def block_totals(inner_required: Array, weights: Array, out: Array) -> None:
    """Fill ``out[:, i]`` with the summed weights of the cells whose required bits i has.

    Args:
        inner_required: for each cell inside the outer bits, its needed inner bits as a number.
        weights: several weights for each cell, shape (kinds, cells).
        out: zeros, shape (kinds, 2^L).
    """
    for kind in range(len(weights)):
        # One kind after the other: a row of 2^14 numbers stays in the cache during its transform.
        row = out[kind]
        for cell in range(len(inner_required)):
            row[inner_required[cell]] += weights[kind, cell]
        _sum_over_subsets(row)


@kernel
def all_totals(required: Array, weights: Array, free: int) -> Array:
    """Return the summed weights of the covered cells for each of the 2^free contexts."""
    # No overflow: the sum of all weights is bounded where a utility's weights are checked.
    totals = np.zeros((1, 1 << free), np.int64)
    block_totals(required, weights.reshape(1, -1), totals)
    return totals[0]


@kernel
def heaviest_first(totals: Array, visited: Array) -> Array:
    """Return the indices that were not visited by falling total: a counting sort.

    It takes memory for each total up to the largest.
    """
    # First counts of each total, then turned in place into where its indices start.
    starts = np.zeros(totals.max() + 2, np.int64)
    for index in range(len(totals)):
        starts[totals[index]] += not visited[index]
    place = 0
    for total in range(len(starts) - 1, -1, -1):
        count = starts[total]
        starts[total] = place
        place += count
    order = np.empty(place, np.int64)
    # Rising indices into each group: equal totals keep their order, which makes the sort stable.
    for index in range(len(totals)):
        if not visited[index]:
            order[starts[totals[index]]] = index
            starts[totals[index]] += 1
    return order
