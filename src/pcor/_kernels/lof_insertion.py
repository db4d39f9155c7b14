"""Which added rows change whether V is an outlier by LOF, in every context.

In a context that covers it, an added row counts by its metric alone; so each distinct window
(``pcor._kernels.lof_walk``) is judged once with each metric to be tried, by the plain kernel, and
the answer holds for every cell that the contexts cover. A person with several rows that are alike
adds as many at once. Twin: the generic path of ``pcor.audit.rejudged``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pcor._kernels import maker
from pcor._kernels.lof import window_room, window_verdict
from pcor._kernels.lof_walk import (
    Sides,
    all_found,
    begin,
    leaf_population,
    leaf_window,
    next_leaf,
    no_flips,
    with_leaf,
)

Array = Any


@maker
def insertion_flips(
    sides: Sides,
    free: int,
    split: int,
    part: int,
    rule: tuple[int, float, int],
    added: Array,
    copies: int,
) -> tuple[Array, Array, Array, Array, Array]:
    """Return the leaves of a part of the walk where an addition changes the verdict, and which do.

    Args:
        sides: the rows.
        free: how many free values there are.
        split: how many of them are decided by ``part``.
        part: the bits that decide them.
        rule: k, the threshold, and the smallest population (more than k).
        added: the metrics to try.
        copies: how many rows of the metric are added at once.

    Returns:
        For each leaf: the values that are in, those that are open, and whether V was an outlier.
        For each change: the place of its leaf, and the place of the metric that is added.
    """
    k, _, smallest = rule
    # One row more on each side than LOF looks at; and enough rows to tell the smallest population.
    walk = begin(sides, free, split, part, max(2 * k + 1, smallest))
    size = 4 * k + 3 + copies
    x, longer, room = np.empty(size), np.empty(size), window_room(k)
    flips, found = np.empty(len(added), np.int32), no_flips()
    while next_leaf(walk):
        population = leaf_population(walk)
        # Too few even with what is added: V is no outlier before and after.
        if population + copies < smallest:
            continue
        n, place = leaf_window(walk, sides, 2 * k + 1, x)
        outlier = population >= smallest and window_verdict(x, n, place, rule, room)
        count = 0
        for number in range(len(added)):
            # Among equal rows it makes no difference which are the added ones.
            at = np.searchsorted(x[:n], added[number], side="right")
            longer[:at] = x[:at]
            longer[at : at + copies] = added[number]
            longer[at + copies : n + copies] = x[at:n]
            # V moves up if the rows come before it; its equals are counted as above V.
            lower = added[number] < sides.v
            moved = place + copies if lower else place
            apart = place + 1 - at if lower else at - place
            if apart > 2 * k and population >= smallest:
                continue  # farther than the rows that count, and they were enough
            if window_verdict(longer, n + copies, moved, rule, room) != outlier:
                flips[count] = number
                count += 1
        if count:
            found = with_leaf(found, walk, outlier, flips[:count])
    listed: tuple[Array, Array, Array, Array, Array] = all_found(found)
    return listed
