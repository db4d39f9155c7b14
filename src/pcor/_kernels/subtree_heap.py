"""The valid contexts of a record by falling total weight, without those of invalid subtrees.

A heap holds disjoint boxes of contexts (``subtrees``), the heaviest on top: removing a step never
adds weight, so a box weighs at most what its largest context does. A box that is not settled is
looked at when it comes to the top: it vanishes, or is known to be valid, or is split. A valid box
on top yields its largest context, and what is left of it are disjoint valid boxes, one for each
chain with an open step (Lawler 1972). Twin: sorting the valid contexts by weight.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from pcor._kernels import kernel, maker
from pcor._kernels.best_first import pop, push
from pcor._kernels.boxes import Steps, all_steps, contexts_of, without_largest
from pcor._kernels.subtree_walk import (
    BASE,
    NODE_SIZE,
    REST,
    STAGE,
    SUMS,
    SideRows,
    SubtreeWalk,
    begin,
    child,
    keep,
    new_node,
)
from pcor._kernels.subtrees import INVALID, VALID, look
from pcor._kernels.total_table import TotalTable, total

Array = Any

_LOOKED_AT = np.uint64(1)  # the stage of a box that is known to be valid


class BoxHeap(NamedTuple):
    """Boxes of contexts, those in use by a heap.

    Attributes:
        heap: weight and place of each box, the heaviest on top.
        nodes: the boxes by place.
        sums: what goes with them.
        unused: places that are free again.
        used: how many boxes the heap has, how many places were ever used, how many are unused.
    """

    heap: Array
    nodes: Array
    sums: Array
    unused: Array
    used: Array


@maker
def start(
    rows: SideRows, steps: Steps, rule: tuple[int, float, int], weights: TotalTable
) -> tuple[SubtreeWalk, BoxHeap]:
    """Return a walk with one box, the whole space."""
    boxes = _room(64)
    everything = all_steps(steps)
    new_node(np.uint64(0), everything, boxes.nodes[0])
    boxes.used[0] = push(boxes.heap, 0, total(weights, everything), 0, 0)
    boxes.used[1] = 1
    return begin(rows, steps, rule, 0, (np.uint64(0), everything), 2), boxes


@maker
def _room(size: int) -> BoxHeap:
    return BoxHeap(
        np.empty((size, 3), np.int64),
        np.empty((size, NODE_SIZE), np.uint64),
        np.empty((size, SUMS)),
        np.empty(size, np.int64),
        np.zeros(3, np.int64),
    )


@maker
def _with_room(boxes: BoxHeap, more: int) -> BoxHeap:
    """Return the boxes with room for more."""
    used = boxes.used[1]
    if used + more <= len(boxes.nodes):
        return boxes
    larger: BoxHeap = _room(2 * (used + more))
    size = boxes.used[0]
    larger.heap[:size], larger.unused[:used] = boxes.heap[:size], boxes.unused[:used]
    larger.nodes[:used], larger.sums[:used] = boxes.nodes[:used], boxes.sums[:used]
    larger.used[:] = boxes.used
    return larger


@kernel
def _new_place(boxes: BoxHeap) -> int:
    """Return a place for a box."""
    used = boxes.used
    if used[2]:
        used[2] -= 1
        return int(boxes.unused[used[2]])
    used[1] += 1
    return int(used[1] - 1)


@maker
def next_valid(
    walk: SubtreeWalk, weights: TotalTable, boxes: BoxHeap, looks: int, found: Array
) -> tuple[BoxHeap, int, int]:
    """Find the next valid contexts by falling weight; stop after so many looks at a box.

    Args:
        walk: how boxes are looked at.
        weights: what contexts weigh.
        boxes: those that are left.
        looks: how many may be looked at.
        found: where to put the weight and the bits of contexts.

    Returns:
        The boxes that are left, how many contexts were found, and how many looks are left.
    """
    count, used = 0, boxes.used
    while used[0] and looks and count < len(found):
        boxes = _with_room(boxes, 66)
        used = boxes.used
        weight, place = boxes.heap[0, 0], boxes.heap[0, 1]
        used[0] = pop(boxes.heap, used[0])
        node = boxes.nodes[place]
        if node[STAGE] == _LOOKED_AT:
            found[count, 0], found[count, 1] = weight, node[BASE] | node[REST]
            count += 1
            _push_rest(walk.steps, weights, boxes, node)
        else:
            looks -= 1
            keep(walk, 0, 1, True, ~(node[BASE] | node[REST]), node[REST])
            verdict = look(walk, 1, node, boxes.sums[place])
            if verdict == VALID:
                node[STAGE] = _LOOKED_AT
                used[0] = push(boxes.heap, used[0], weight, place, 0)
                continue
            if verdict != INVALID:
                _push_children(walk.steps, weights, boxes, weight, place)
        boxes.unused[used[2]] = place
        used[2] += 1
    return boxes, count, looks


@kernel
def _push_children(
    steps: Steps, weights: TotalTable, boxes: BoxHeap, weight: int, place: int
) -> None:
    """Split a box by its step."""
    for inside in (True, False):
        to = _new_place(boxes)
        below, sums = boxes.nodes[to], boxes.sums[to]
        child(steps, boxes.nodes[place], boxes.sums[place], inside, below, sums)
        most = weight if inside else total(weights, below[BASE] | below[REST])
        boxes.used[0] = push(boxes.heap, boxes.used[0], most, to, 0)


@maker
def _push_rest(steps: Steps, weights: TotalTable, boxes: BoxHeap, node: Array) -> None:
    """Push what is left of a valid box without its largest context."""
    for box in without_largest(node[BASE], node[REST], steps):
        to = _new_place(boxes)
        new_node(box[0], box[1], boxes.nodes[to])
        boxes.nodes[to, STAGE] = _LOOKED_AT
        boxes.used[0] = push(boxes.heap, boxes.used[0], total(weights, box[0] | box[1]), to, 0)


@maker
def open_boxes(boxes: BoxHeap, steps: Steps) -> Array:
    """Return of each box in the heap its weight, and how many contexts it has."""
    out = np.empty((boxes.used[0], 2), np.int64)
    for entry in range(len(out)):
        out[entry, 0] = boxes.heap[entry, 0]
        out[entry, 1] = contexts_of(boxes.nodes[boxes.heap[entry, 1], REST], steps)
    return out
