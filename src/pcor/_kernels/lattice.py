"""All contexts of a block at once.

A context is how far up each of several chains goes (``pcor.public.space``), and a cell needs
certain levels; a block is the contexts that share their outer levels. The moments of each are the
sums over the cells whose required levels it reaches: one zeta transform for all (Yates 1937; Knuth,
TAOCP 4A, 7.1.3), an addition for each chain and context instead of one per cell. With chains of one
step each levels are bits. Twin: ``Cells.several_totals``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pcor._kernels import kernel, maker

Array = Any


@kernel
def _sum_below(totals: Array, radices: Array) -> None:
    """Replace each entry by the sum over all entries none of whose levels is above its own.

    An index has the levels of the chains as digits, the first one's the lowest; ``radices`` says
    how many levels each has.
    """
    # After the round of a chain each entry holds the sum over those that differ from it in this
    # chain and earlier ones.
    step = 1
    for radix in radices:
        for low in range(0, len(totals), radix * step):
            for level in range(1, radix):
                at = low + level * step
                # Both levels are read in order, so the compiler adds several entries with one
                # instruction.
                for place in range(at, at + step):
                    totals[place] += totals[place - step]
        step *= radix


@kernel
def block_totals(inner_required: Array, radices: Array, weights: Array, out: Array) -> None:
    """Fill ``out[:, i]`` with the summed weights of the cells whose required levels i reaches.

    Args:
        inner_required: for each cell inside the outer levels, what it needs of the inner ones as
            an index.
        radices: how many levels each of the inner chains has.
        weights: several weights for each cell, shape (kinds, cells).
        out: zeros, shape (kinds, contexts of the block).
    """
    for kind in range(len(weights)):
        # One kind after the other: a row of 2^14 numbers stays in the cache during its transform.
        row = out[kind]
        for cell in range(len(inner_required)):
            row[inner_required[cell]] += weights[kind, cell]
        _sum_below(row, radices)


@kernel
def block_extremes(
    inner_required: Array, radices: Array, lows: Array, highs: Array, out: Array
) -> None:
    """Fill ``out`` with the least low and the largest high of the cells that each context covers.

    Arguments are those of ``block_totals``, with a low and a high of each cell; ``out`` has shape
    (2, contexts of the block). Where no cell is covered they are infinite.
    """
    out[0] = np.inf
    out[1] = -np.inf
    for cell in range(len(inner_required)):
        at = inner_required[cell]
        out[0, at] = min(out[0, at], lows[cell])
        out[1, at] = max(out[1, at], highs[cell])
    step = 1
    for radix in radices:
        for low in range(0, out.shape[1], radix * step):
            for level in range(1, radix):
                at = low + level * step
                for place in range(at, at + step):
                    out[0, place] = min(out[0, place], out[0, place - step])
                    out[1, place] = max(out[1, place], out[1, place - step])
        step *= radix


@maker
def all_totals(required: Array, weights: Array, radices: Array) -> Array:
    """Return the summed weights of the covered cells for every numbered context."""
    size = 1
    for radix in radices:
        size *= radix
    # No overflow: the sum of all weights is bounded where a utility's weights are checked.
    totals = np.zeros((1, size), np.int64)
    block_totals(required, radices, weights.reshape(1, -1), totals)
    return totals[0]


@maker
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
