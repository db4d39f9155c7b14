"""Which boxes of a record's contexts are valid by LOF? A walk that settles subtrees.

Where ``lof_subtree`` settles a box, or where no row near V needs an open step, nothing below is
looked at; otherwise a step is decided (``subtree_walk``).

Contexts are bits (``boxes``). Twin: judging every context by itself.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pcor._kernels import inlined, kernel, maker
from pcor._kernels.bits import count_bits, lowest_bit, number_of
from pcor._kernels.boxes import Steps
from pcor._kernels.copies import doubled
from pcor._kernels.lof import window_parts
from pcor._kernels.lof_near import Near, that_matter
from pcor._kernels.lof_subtree import settled
from pcor._kernels.subtree_walk import (
    ALL,
    AROUND_ALL,
    AROUND_NONE,
    BASE,
    INSIDE,
    NONE,
    OWN_ALL,
    OWN_NONE,
    REST,
    STAGE,
    UNKNOWN,
    SideRows,
    SubtreeWalk,
    begin,
    choose_step,
    depths_of,
    gather,
    next_node,
    trim,
)

Array = Any

# What is known of all contexts of a box.
OPEN, INVALID, VALID = 0, 1, 2

# With so few needed steps every window is judged: that is cheaper than to split the box.
_FEW = 4


@kernel
def look(walk: SubtreeWalk, depth: int, node: Array, sums: Array) -> int:
    """Return what is known of a node, its rows kept at a depth; if nothing, choose its step."""
    near, rule, rest, needed = walk.near, walk.rule, node[REST], walk.needed[depth]
    n, place, certain = gather(walk, depth, rest)
    if n < rule[2]:
        return INVALID
    if node[ALL] == UNKNOWN:
        node[ALL], sums[AROUND_ALL], sums[OWN_ALL] = _exact(near, near.x, n, place, rule)
    same = VALID if node[ALL] else INVALID
    if not needed:
        return same
    if node[NONE] == UNKNOWN:
        node[NONE], sums[AROUND_NONE], sums[OWN_NONE] = _without(near, n, place, rest, rule)
    if node[ALL] == node[NONE]:
        # One needed step means two windows, and both were judged.
        if count_bits(needed) == 1:
            return same
        # Two needed steps leave two windows: judging these is cheaper than a bound.
        if count_bits(needed) > 2 and certain > rule[0] and _promising(sums, rule, node[ALL] == 1):
            candidates, theirs = that_matter(near, n, place, rule[0])
            if settled(near, (n, place, certain), candidates, theirs, rule, 0):
                return same
            n, place = trim(walk, depth, n, place, theirs, rest)
            # Rows that do not matter may have been the only ones that need some steps.
            needed = walk.needed[depth]
            if count_bits(needed) < 2:
                return same
        if count_bits(needed) <= _FEW and _all_alike(walk, n, place, needed, node[ALL]):
            return same
    choose_step(walk, depth, node)
    return OPEN


@inlined
def _promising(sums: Array, rule: tuple[int, float, int], all_valid: bool) -> bool:
    """Tell whether bounds may show the one verdict.

    The factors at both ends say where those between are, and the thinnest density of V over the
    thickest around it how far apart they can be. A mean of both tells fairly well what bounds show.
    """
    k, threshold, _ = rule
    ends = sums[AROUND_ALL] / sums[OWN_ALL] / k, sums[AROUND_NONE] / sums[OWN_NONE] / k
    if all_valid:
        apart = sums[AROUND_NONE] / sums[OWN_ALL] / k
        return bool(min(ends) * apart**3 > threshold**4)
    apart = sums[AROUND_ALL] / sums[OWN_NONE] / k
    return bool(max(ends) * apart**3 < threshold**4)


@kernel
def _all_alike(walk: SubtreeWalk, n: int, place: int, needed: Any, verdict: Any) -> bool:
    """Judge every window that a few open steps make; tell whether all have this verdict."""
    out = lowest_bit(needed)
    # Every set of these steps but none and all of them, in turn out.
    while out != needed:
        closed = np.uint64(0)
        left = out
        while left:
            closed |= walk.steps.higher[number_of(lowest_bit(left))]
            left &= left - np.uint64(1)
        if _without(walk.near, n, place, closed & needed, walk.rule)[0] != (verdict == 1):
            return False
        # Counts on in the needed bits: what is not needed is full, so that a carry passes over it.
        out = ((out | ~needed) + np.uint64(1)) & needed
    return True


@inlined
def _without(
    near: Near, n: int, place: int, out: int, rule: tuple[int, float, int]
) -> tuple[bool, float, float]:
    """Judge V among the possible rows that need none of these steps."""
    count = at = 0
    for p in range(n):
        if p == place:
            at = count
        near.c[count] = near.x[p]
        count += not near.required[p] & out
    parts: tuple[bool, float, float] = _exact(near, near.c, count, at, rule)
    return parts


@inlined
def _exact(
    near: Near, x: Array, n: int, place: int, rule: tuple[int, float, int]
) -> tuple[bool, float, float]:
    """Judge V among some rows and no others; return the densities around it and its own too."""
    if n < rule[2]:
        return False, 0.0, 0.0
    parts: tuple[bool, float, float] = window_parts(x, n, place, rule, near.window)
    return parts


@maker
def valid_boxes(
    rows: SideRows, steps: Steps, rule: tuple[int, float, int], box: tuple[int, int]
) -> tuple[Array, Array]:
    """Return the valid contexts of a box as disjoint boxes: their bases, and their open steps."""
    walk = begin(rows, steps, rule, 0, box, depths_of(steps))
    bases, opens, used = np.empty(256, np.uint64), np.empty(256, np.uint64), 0
    while _next_valid(walk):
        if used == len(bases):
            bases, opens = doubled(bases), doubled(opens)
        node = walk.nodes[walk.depth[0]]
        bases[used], opens[used] = node[BASE], node[REST]
        used += 1
    return bases[:used].copy(), opens[:used].copy()


@kernel
def _next_valid(walk: SubtreeWalk) -> bool:
    """Go to the next node that is valid; tell whether there is one."""
    while next_node(walk):
        depth = walk.depth[0]
        node = walk.nodes[depth]
        verdict = look(walk, depth, node, walk.sums[depth])
        if verdict == VALID:
            return True
        if verdict == OPEN:
            node[STAGE] = INSIDE
    return False
