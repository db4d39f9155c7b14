"""LOF of one record in very many contexts: the rows near V as bitmaps.

Pairs stand nearest to V first; among equal ones those with many rows, so that most piles are filled
by one or two pairs. No order among equal values changes which values are the nearest.

Twin: ``pcor._kernels.lof.lof_verdicts``, and that one's.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pcor._kernels import kernel, maker
from pcor._kernels.bitmaps import CHUNK, bitmaps, cover, lacking
from pcor._kernels.bits import lowest_bit, number_of
from pcor._kernels.coverage import PairColumns
from pcor._kernels.lof import factor_of_equals, window_factor, window_room

Array = Any

# The pairs of one side, nearest to V first: metrics, rows, and the bitmaps of what they need.
Side = tuple[Array, Array, Array]


@maker
def side(pairs: PairColumns, at: int, step: int, most: int) -> Side:
    """Return the pairs from a place on, outward.

    Args:
        pairs: all of them, rising by metric.
        at: the first of them.
        step: 1 for those above, -1 for those below.
        most: how many rows are ever looked at; more count as many.
    """
    required, values, counts = pairs
    order = _by_pile(values, counts, at, step, most)
    rows = np.empty(len(order), np.int64)
    for place in range(len(order)):
        rows[place] = min(most, counts[order[place]])
    return values[order], rows, bitmaps(required, order)


@maker
def _by_pile(values: Array, counts: Array, at: int, step: int, most: int) -> Array:
    """Return pairs outward; of equal metrics those with more rows first."""
    size = len(values) - at if step > 0 else at + 1
    # Sorted by rows, then dealt out to their piles.
    starts = np.zeros(most + 2, np.int64)
    for place in range(size):
        starts[most - min(most, counts[at + step * place]) + 1] += 1
    for rows in range(most + 1):
        starts[rows + 1] += starts[rows]
    falling, pile, begins = np.empty((3, size), np.int64)
    piles = 0
    for place in range(size):
        pair = at + step * place
        if place == 0 or values[pair] != values[pair - step]:
            begins[piles] = place
            piles += 1
        pile[place] = piles - 1
        rows = most - min(most, counts[pair])
        falling[starts[rows]] = place
        starts[rows] += 1
    order = np.empty(size, np.int64)
    for place in falling:
        order[begins[pile[place]]] = at + step * place
        begins[pile[place]] += 1
    return order


@maker
def verdicts_in_many(
    masks: Array,
    above: Side,
    below: Side,
    free: Array,
    rule: tuple[int, float, int],
    out: Array,
) -> None:
    """Tell for each context whether V is an outlier.

    Args:
        masks: the contexts, each of which covers V.
        above: the pairs from V on, its own first.
        below: those below.
        free: the positions that a context may lack, as words.
        rule: k, the threshold, and the smallest population (above k, not above 2k+1).
        out: one boolean per context.
    """
    k, threshold, smallest = rule
    window = np.empty(4 * k + 1)
    room = window_room(k)
    lacks = np.empty(64 * len(free), np.int64)
    covered = np.empty(above[2].shape[2], np.uint64)
    piled = factor_of_equals(k) > threshold
    for row in range(len(masks)):
        some = lacks[: lacking(masks[row], free, lacks)]
        high = _gather(above, some, covered, smallest, 1, window[2 * k :])
        if high < 0:
            # At least ``smallest`` rows, which is more than k, are equal to V.
            out[row] = piled
            continue
        low = _gather(below, some, covered, 0, -1, window[: 2 * k])
        if low + high < smallest:
            out[row] = False
        else:
            x = window[2 * k - low : 2 * k + high]
            out[row] = window_factor(x, low, k, room) > threshold


@kernel
def _gather(side: Side, lacks: Array, covered: Array, pile: int, step: int, window: Array) -> int:
    """Fill half a window with the nearest values that are covered, outward; return how many.

    The half below V is filled from its end. Return -1 as soon as so many rows are equal to the
    first one, V (0: go on).
    """
    values, counts, needing = side
    wanted, found = len(window), 0
    place = 0 if step > 0 else wanted - 1
    for chunk in range(len(needing)):
        cover(needing[chunk], lacks, covered)
        for word in range(len(covered)):
            left = covered[word]
            while left:
                lowest = lowest_bit(left)
                left ^= lowest
                pair = chunk * CHUNK + (word << 6) + number_of(lowest)
                # Equal rows are spelled out: each is a neighbour of its own.
                for _ in range(min(counts[pair], wanted - found)):
                    window[place] = values[pair]
                    place += step
                    found += 1
                if pile and found >= pile:
                    if values[pair] == values[0]:
                        return -1
                    pile = 0
                if found == wanted:
                    return found
    return found
