"""The valid contexts of a range of weights, depth first: in memory that does not grow.

A heap of boxes (``subtree_heap``) can become as large as the space. This walk goes through the same
boxes depth first, leaves out those that are too light, and forgets each when it is done; whoever
wants lighter contexts walks again (depth-first iterative deepening: Korf 1985). Twin: the valid
contexts whose weight is in the range.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pcor._kernels import maker
from pcor._kernels.bits import lowest_bit, number_of
from pcor._kernels.boxes import Steps, all_steps, contexts_of
from pcor._kernels.subtree_walk import (
    BASE,
    DONE,
    INSIDE,
    NEW,
    OUTSIDE,
    REST,
    STAGE,
    STEP,
    SideRows,
    begin,
    child,
    depths_of,
    keep,
)
from pcor._kernels.subtrees import OPEN, VALID, look
from pcor._kernels.total_table import TotalTable, total

Array = Any


@maker
def valid_between(
    rows: SideRows,
    steps: Steps,
    rule: tuple[int, float, int],
    weights: TotalTable,
    ends: tuple[int, int],
    found: Array,
    lighter: Array,
) -> tuple[int, int]:
    """Find the valid contexts that weigh at least ``ends[0]`` and less than ``ends[1]``.

    Args:
        rows: those near V.
        steps: of the space.
        rule: k, the threshold, and the smallest population.
        weights: what contexts weigh.
        ends: of the range.
        found: where to put the weight and the bits of contexts; the walk stops when it is full.
        lighter: where to count the contexts of the boxes that are too light, by the most that one
            of them weighs: bins of equal width from 0 up to ``ends[0]``.

    Returns:
        How many were found, and how many boxes were looked at.
    """
    low, high = ends
    width = low // len(lighter) + 1
    depths = depths_of(steps)
    everything = all_steps(steps)
    walk = begin(rows, steps, rule, 0, (np.uint64(0), everything), depths)
    nodes, sums = walk.nodes, walk.sums
    most, valid = np.empty(depths, np.int64), np.zeros(depths, np.bool_)
    most[0] = total(weights, everything)
    count = looks = depth = 0
    while depth >= 0 and count < len(found):
        node = nodes[depth]
        base, rest = node[BASE], node[REST]
        if node[STAGE] == NEW:
            node[STAGE] = DONE
            if most[depth] < low:
                lighter[most[depth] // width] += contexts_of(rest, steps)
            elif total(weights, base) < high:  # else all of it is heavier
                if not valid[depth]:
                    looks += 1
                    verdict = look(walk, depth, node, sums[depth])
                    valid[depth] = verdict == VALID
                    if verdict == OPEN:
                        node[STAGE] = INSIDE
                if valid[depth] and rest:
                    node[STEP] = number_of(lowest_bit(rest))
                    node[STAGE] = INSIDE
                elif valid[depth]:
                    found[count, 0], found[count, 1] = most[depth], base
                    count += 1
        if node[STAGE] == DONE:
            depth -= 1
            continue
        inside = node[STAGE] == INSIDE
        out = child(steps, node, sums[depth], inside, nodes[depth + 1], sums[depth + 1])
        below = nodes[depth + 1]
        valid[depth + 1] = valid[depth]
        if not valid[depth]:
            keep(walk, depth, depth + 1, not inside, out, below[REST])
        most[depth + 1] = most[depth] if inside else total(weights, below[BASE] | below[REST])
        node[STAGE] = OUTSIDE if inside else DONE
        depth += 1
    return count, looks
