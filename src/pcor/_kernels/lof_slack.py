"""Does V keep one verdict by LOF in a whole box of contexts, whichever few rows leave them?

As ``lof_subtree``, with room for removals: below a node of a walk the rows A of a context lie
between the certain rows C and the possible rows P, and up to ``spare`` of them leave, not V. Then

    kd_P(x) <= kd(x) <= the distance of x to the (k + spare)-th nearest row of C;

rows within the upper one are candidates, and of the certain rows nearer than the lower one, which
are forced, all but ``spare`` are among the k nearest (docs/proofs/subtrees.md). A box that is
settled needs no look at any removal in any of its contexts.

Twin: judging every context below, with and without each row.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pcor._kernels import inlined, kernel, maker
from pcor._kernels.lof_near import Near, room_for, that_matter, within_reach
from pcor._kernels.lof_subtree import settled
from pcor._kernels.lof_walk import Sides, Walk, box_rows, keep_nearest, needed_count, skip_box

Array = Any

# With so few open values that matter the windows are looked at one by one.
FEW = 3

# A look at a box costs as much as so many leaves. A box has no more leaves than fillings, and most
# have about this many.
_COST, _USUAL = 2, 24


@maker
def box_room(sides: Sides, k: int) -> Near:
    """Return room for all rows, of which one may leave."""
    near: Near = room_for(len(sides.values_below) + len(sides.values_above) + 1, k + 1)
    return near


@kernel
def look_at_box(
    near: Near, gains: Array, walk: Walk, sides: Sides, rule: tuple[int, float, int]
) -> None:
    """Skip the box where the walk stands if V surely has one verdict there, whoever leaves.

    If not, drop the rows that matter in none of its contexts.

    Args:
        near: room for the rows.
        gains: how often a look was worth it.
        walk: where it stands.
        sides: the rows.
        rule: k, the threshold, and the smallest population.
    """
    size = box_rows(walk, sides, near.x, near.sure)
    n, place, sure = size
    k, _, smallest = rule
    # With fewer rows some distance has no bound.
    if sure <= k + 1:
        return
    some = that_matter(near, n, place, k + 1)
    count = needed_count(walk)
    if _worth_a_look(gains, count):
        gains[count, 0] += 1
        if settled(near, size, some, rule, 1):
            gains[count, 1] += 1
            skip_box(walk)
            return
    first, last = within_reach(near.x, near.high_kd, n, some[0], some[1])
    sure = 0
    for p in range(first, last):
        sure += near.sure[p]
    # What is left has to show that one row can be spared.
    if sure > smallest:
        keep_nearest(walk, place - first, last - place - 1)


@maker
def new_gains() -> Array:
    """Return counts of looks at boxes, and of those settled, by how many values they need."""
    gains = np.empty((65, 2), np.int64)
    # Nothing is known yet: a few looks are taken for granted.
    gains[:, 0], gains[:, 1] = 16, 8
    return gains


@inlined
def _worth_a_look(gains: Array, count: int) -> bool:
    """Tell whether boxes that need so many values were settled often enough to be looked at."""
    looks, settled = gains[count]
    leaves = min(1 << min(count, 30), _USUAL)
    return bool(settled * leaves >= looks * _COST)
