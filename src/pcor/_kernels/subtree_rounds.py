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
from pcor._kernels.subtrees import (
    BASE,
    NODE_SIZE,
    OPEN,
    REST,
    STAGE,
    STEP,
    SUMS,
    VALID,
    SideRows,
    begin,
    child,
    keep,
    look,
    new_node,
)
from pcor._kernels.total_table import TotalTable, total

Array = Any

# What is to be done with a node: look at it, go on with its step, go on without it, nothing.
_NEW, _INSIDE, _OUTSIDE, _DONE = np.uint64(0), np.uint64(1), np.uint64(2), np.uint64(3)


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
    depths = len(steps.lower) + 2
    walk = begin(rows, steps, rule, depths)
    nodes, sums = np.empty((depths, NODE_SIZE), np.uint64), np.empty((depths, SUMS))
    most, valid = np.empty(depths, np.int64), np.zeros(depths, np.bool_)
    everything = all_steps(steps)
    new_node(np.uint64(0), everything, nodes[0])
    most[0] = total(weights, everything)
    keep(walk, 0, 0, False, ~everything, everything)
    count = looks = depth = 0
    while depth >= 0 and count < len(found):
        node = nodes[depth]
        base, rest = node[BASE], node[REST]
        if node[STAGE] == _NEW:
            node[STAGE] = _DONE
            if most[depth] < low:
                lighter[most[depth] // width] += contexts_of(rest, steps)
            elif total(weights, base) < high:  # else all of it is heavier
                if not valid[depth]:
                    looks += 1
                    verdict = look(walk, depth, node, sums[depth])
                    valid[depth] = verdict == VALID
                    if verdict == OPEN:
                        node[STAGE] = _INSIDE
                if valid[depth] and rest:
                    node[STEP] = number_of(lowest_bit(rest))
                    node[STAGE] = _INSIDE
                elif valid[depth]:
                    found[count, 0], found[count, 1] = most[depth], base
                    count += 1
        if node[STAGE] == _DONE:
            depth -= 1
            continue
        inside = node[STAGE] == _INSIDE
        out = child(steps, node, sums[depth], inside, nodes[depth + 1], sums[depth + 1])
        below = nodes[depth + 1]
        valid[depth + 1] = valid[depth]
        if not valid[depth]:
            keep(walk, depth, depth + 1, not inside, out, below[REST])
        most[depth + 1] = most[depth] if inside else total(weights, below[BASE] | below[REST])
        node[STAGE] += np.uint64(1)
        depth += 1
    return count, looks
