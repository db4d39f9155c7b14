"""All contexts of a record by their windows: many contexts have one, and LOF sees nothing else.

A leaf is a node of a walk (``subtree_walk``) of which no row needs an open step: all contexts below
have the same window. The audit goes from leaf to leaf and notes where a change turns the verdict.
Where rows leave, whole boxes are left out in which no departure matters (``lof_subtree``), and rows
that matter in no context below are dropped. Twin: ``pcor.audit.rejudged`` judges every context.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from pcor._kernels import inlined, maker
from pcor._kernels.bits import count_bits
from pcor._kernels.copies import doubled
from pcor._kernels.lof_near import that_matter
from pcor._kernels.lof_subtree import settled
from pcor._kernels.subtree_walk import (
    BASE,
    INSIDE,
    REST,
    STAGE,
    SubtreeWalk,
    choose_step,
    gather,
    next_node,
    trim,
)

Array = Any

# With so few needed steps the windows are looked at one by one.
_FEW = 3

# A look at a box costs as much as so many leaves. A box has no more leaves than its needed steps
# have fillings, and most have about this many.
_COST, _USUAL = 2, 24


@inlined
def next_leaf(walk: SubtreeWalk, gains: Array) -> bool:
    """Go to the next leaf; tell whether there is one.

    Where the walk has rows to spare, those leaves are passed over in which it does not matter that
    so many leave. ``gains`` tells how often looks at boxes were worth it.
    """
    while next_node(walk):
        depth = walk.depth[0]
        node = walk.nodes[depth]
        count = count_bits(walk.needed[depth])
        if walk.spare and count > _FEW and _nobody_matters(walk, gains, depth, node, count):
            continue
        if walk.needed[depth] == 0:
            return True
        choose_step(walk, depth, node)
        node[STAGE] = INSIDE
    return False


@inlined
def _nobody_matters(walk: SubtreeWalk, gains: Array, depth: int, node: Array, count: int) -> bool:
    """Tell whether V surely has one verdict in a box, whoever leaves; if not, drop what can be."""
    near, (k, _, smallest), spare = walk.near, walk.rule, walk.spare
    n, place, certain = gather(walk, depth, node[REST])
    # V is no outlier among too few. With fewer certain rows some distance has no bound.
    if n < smallest or certain <= k + spare:
        return bool(n < smallest)
    candidates, theirs = that_matter(near, n, place, k + spare)
    if _worth_a_look(gains, count):
        gains[count, 0] += 1
        if settled(near, (n, place, certain), candidates, theirs, walk.rule, spare):
            gains[count, 1] += 1
            return True
    trim(walk, depth, n, place, theirs, node[REST])
    return False


@maker
def new_gains() -> Array:
    """Return counts of looks at boxes, and of those settled, by how many steps they need."""
    gains = np.empty((65, 2), np.int64)
    # Nothing is known yet: a few looks are taken for granted.
    gains[:, 0], gains[:, 1] = 16, 8
    return gains


@inlined
def _worth_a_look(gains: Array, count: int) -> bool:
    """Tell whether boxes that need so many steps were settled often enough to be looked at."""
    looks, found = gains[count]
    leaves = min(1 << min(count, 30), _USUAL)
    return bool(found * leaves >= looks * _COST)


class Flips(NamedTuple):
    """The leaves found where a change turns the verdict, and which changes do; with room for more.

    Attributes:
        bases: for each leaf, the steps that are in.
        opens: the steps that are open.
        was: whether V is an outlier there.
        leaves: for each change, the place of its leaf.
        changes: which it is.
        used: how many leaves and changes there are.
        most: how many changes one leaf can have.
    """

    bases: Array
    opens: Array
    was: Array
    leaves: Array
    changes: Array
    used: Array
    most: int


@maker
def no_flips(most: int) -> Flips:
    """Return room for some leaves of at most so many changes."""
    size = 4096 + most
    leaves, changes = np.empty(size, np.int32), np.empty(size, np.int32)
    boxes = np.empty(256, np.uint64), np.empty(256, np.uint64), np.empty(256, np.bool_)
    return Flips(*boxes, leaves, changes, np.zeros(2, np.int64), most)


@inlined
def note(found: Flips, walk: SubtreeWalk, outlier: bool, flips: Array, count: int) -> bool:
    """Add the leaf where the walk stands, with the changes that turn its verdict.

    Tells whether there is room for another.
    """
    leaf, change = found.used
    node = walk.nodes[walk.depth[0]]
    found.bases[leaf], found.opens[leaf], found.was[leaf] = node[BASE], node[REST], outlier
    for place in range(count):
        found.leaves[change + place], found.changes[change + place] = leaf, flips[place]
    leaf, change = leaf + 1, change + count
    found.used[0], found.used[1] = leaf, change
    return bool(leaf < len(found.bases) and change + found.most <= len(found.changes))


@maker
def with_room(found: Flips) -> Flips:
    """Return what was found with more room."""
    return Flips(
        *(doubled(found.bases), doubled(found.opens), doubled(found.was)),
        *(doubled(found.leaves), doubled(found.changes), found.used, found.most),
    )


@maker
def all_found(found: Flips) -> tuple[Array, Array, Array, Array, Array]:
    """Return what was found, without the room for more."""
    leaf, change = found.used
    leaves = found.bases[:leaf], found.opens[:leaf], found.was[:leaf]
    return (*leaves, found.leaves[:change], found.changes[:change])
