"""Which added rows change whether V is an outlier by LOF, in every context.

In a context that covers it, an added row counts by its metric alone; so each distinct window
(``pcor._kernels.lof_leaves``) is judged once with each metric to be tried, by the plain kernel, and
the answer holds for every cell that the contexts cover. A person with several rows that are alike
adds as many at once. Twin: the generic path of ``pcor.audit.rejudged``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pcor._kernels import kernel, maker
from pcor._kernels.boxes import Steps
from pcor._kernels.lof import WindowRoom, window_room, window_verdict
from pcor._kernels.lof_leaves import (
    Flips,
    all_found,
    new_gains,
    next_leaf,
    no_flips,
    note,
    with_room,
)
from pcor._kernels.subtree_walk import (
    SideRows,
    SubtreeWalk,
    begin,
    depths_of,
    population,
    window,
)

Array = Any


@maker
def insertion_flips(
    rows: SideRows,
    steps: Steps,
    rule: tuple[int, float, int],
    box: tuple[int, int],
    added: Array,
    copies: int,
) -> tuple[Array, Array, Array, Array, Array]:
    """Return the leaves of a box where an addition changes the verdict, and which additions do.

    Args:
        rows: those near V.
        steps: of the space.
        rule: k, the threshold, and the smallest population (more than k).
        box: its base and its open steps.
        added: the metrics to try.
        copies: how many rows of the metric are added at once.

    Returns:
        For each leaf: the steps that are in, those that are open, and whether V was an outlier.
        For each change: the place of its leaf, and the place of the metric that is added.
    """
    k = rule[0]
    walk = begin(rows, steps, rule, 0, box, depths_of(steps))
    x, longer = np.empty(4 * k + 1), np.empty(4 * k + 1 + copies)
    room, flips = window_room(k), np.empty(len(added), np.int32)
    found, gains = no_flips(len(added)), new_gains()
    while not _all_leaves(walk, gains, x, longer, room, added, copies, flips, found):
        found = with_room(found)
    listed: tuple[Array, Array, Array, Array, Array] = all_found(found)
    return listed


@kernel
def _all_leaves(
    walk: SubtreeWalk,
    gains: Array,
    x: Array,
    longer: Array,
    room: WindowRoom,
    added: Array,
    copies: int,
    flips: Array,
    found: Flips,
) -> bool:
    """Go on from leaf to leaf while there is room for what is found; tell whether that was all."""
    k, _, smallest = walk.rule
    while next_leaf(walk, gains):
        depth = walk.depth[0]
        before = population(walk, depth)
        # Too few even with what is added: V is no outlier before and after.
        if before + copies < smallest:
            continue
        n, place = window(walk, depth, 2 * k, x)
        outlier = before >= smallest and window_verdict(x, n, place, walk.rule, room)
        count = 0
        for number in range(len(added)):
            # Among equal rows it makes no difference which are the added ones.
            at = 0
            while at < n and x[at] <= added[number]:
                at += 1
            # V moves up if the rows come before it; its equals are counted as above V.
            lower = added[number] < walk.rows.v
            moved = place + copies if lower else place
            apart = place + 1 - at if lower else at - place
            if apart > 2 * k and before >= smallest:
                continue  # farther than the rows that count, and they were enough
            for p in range(n):
                longer[p if p < at else p + copies] = x[p]
            for p in range(copies):
                longer[at + p] = added[number]
            if window_verdict(longer, n + copies, moved, walk.rule, room) != outlier:
                flips[count] = number
                count += 1
        if count and not note(found, walk, outlier, flips, count):
            return False
    return True
