"""Which added rows change whether V is an outlier by LOF, in every context.

In a context that covers it, an added row counts by its metric alone; so each distinct window
(``pcor._kernels.lof_walk``) is judged once with each metric to be tried, by the plain kernel, and
the answer holds for every cell that the contexts cover. Twin: the generic path of
``pcor.audit.neighbours``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pcor._kernels import kernel
from pcor._kernels.lof import _factor
from pcor._kernels.lof_walk import (
    Sides,
    begin,
    doubled,
    leaf_cube,
    leaf_population,
    leaf_window,
    next_leaf,
)

Array = Any


@kernel
def insertion_flips(
    sides: Sides, free: int, split: int, part: int, rule: tuple[int, float, int], added: Array
) -> tuple[Array, Array, Array, Array, Array]:
    """Return the leaves of a part of the walk where an addition changes the verdict, and which do.

    Args:
        sides: the rows.
        free: how many free values there are.
        split: how many of them are decided by ``part``.
        part: the bits that decide them.
        rule: k, the threshold, and the smallest population (more than k).
        added: the metrics to try.

    Returns:
        For each leaf: the values that are in, those that are open, and whether V was an outlier.
        For each change: the place of its leaf, and the place of the metric that is added.
    """
    k, _, smallest = rule
    # One row more on each side than LOF looks at; and enough rows to tell the smallest population.
    walk = begin(sides, free, split, part, max(2 * k + 1, smallest))
    x, longer, kd = np.empty(4 * k + 3), np.empty(4 * k + 4), np.empty(4 * k + 4)
    first = np.empty(4 * k + 4, np.int64)
    bases, opens, was = np.empty(64, np.uint64), np.empty(64, np.uint64), np.empty(64, np.bool_)
    leaves, changes = np.empty(256, np.int32), np.empty(256, np.int32)
    leaf = change = 0
    while next_leaf(walk):
        population = leaf_population(walk)
        # Too few even with the added row: V is no outlier before and after.
        if population + 1 < smallest:
            continue
        n, place = leaf_window(walk, sides, 2 * k + 1, x)
        outlier = population >= smallest and _judged(x, n, place, rule, first, kd)
        before = change
        for number in range(len(added)):
            # Among equal rows it makes no difference which is the added one.
            at = np.searchsorted(x[:n], added[number], side="right")
            longer[:at] = x[:at]
            longer[at] = added[number]
            longer[at + 1 : n + 1] = x[at:n]
            # V moves up by one if the row comes before it; its equals are counted as above V.
            moved = place + 1 if added[number] < sides.v else place
            if abs(at - moved) > 2 * k and population >= smallest:
                continue  # farther than the rows that count, and they were enough
            if _judged(longer, n + 1, moved, rule, first, kd) != outlier:
                # Grown only when full: nobody knows beforehand how many changes there are.
                if change == len(changes):
                    leaves, changes = doubled(leaves), doubled(changes)
                leaves[change] = leaf
                changes[change] = number
                change += 1
        # A leaf without a change is not recorded, and its number is used again.
        if change > before:
            if leaf == len(bases):
                bases, opens, was = doubled(bases), doubled(opens), doubled(was)
            bases[leaf], opens[leaf] = leaf_cube(walk)
            was[leaf] = outlier
            leaf += 1
    return bases[:leaf], opens[:leaf], was[:leaf], leaves[:change], changes[:change]


@kernel
def _judged(
    x: Array, n: int, place: int, rule: tuple[int, float, int], first: Array, kd: Array
) -> bool:
    """Judge a window by the plain kernel, on the 2k rows of each side that it looks at."""
    k, threshold, _ = rule
    low, high = max(0, place - 2 * k), min(n, place + 2 * k + 1)
    return bool(_factor(x[low:high], place - low, k, first, kd) > threshold)
