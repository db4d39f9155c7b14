"""All contexts of a record by their windows: many contexts have one, and LOF sees nothing else.

At a node of the walk some free values are decided, in or out, and the others are open. A row is
excluded if it needs a value that is out, certain if it needs no open one. Each side of V keeps its
rows by distance, up to the ``cap``-th certain one: what lies beyond is among the nearest ``cap`` of
no context below the node. If no row that is kept needs an open value, all contexts below the node
have the same window: a leaf, and its contexts are a cube (``pcor._kernels.cubes``).

A kept row is one number: its place on its side in the upper half, the free values it needs in the
lower. The walk decides the open value that most of the nearest rows need, so that leaves and boxes
that can be settled come early. Deciding "in" only shortens a list; deciding "out" writes a shorter
one behind it. Twin: ``tests.audit.test_neighbours`` gathers each context's window by itself.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from pcor._kernels import kernel, maker
from pcor._kernels.bits import count_bits, lowest_bit, most_tallied, tally

Array = Any

_HALF = np.uint64(32)
_LOWER = np.uint64((1 << 32) - 1)

# What is kept of each node on the way down: sets of free values, then places in the lists.
_OPEN, _IN, _NEEDED, _BIT, _STAGE = range(5)
_FIRST, _COUNT, _END = range(3)

# How far a node is: nothing done; looked at; "in" to be decided next; "out" next; all done below.
_NEW, _SEEN, _CHOSEN, _IN_DONE, _ALL_DONE = (np.uint64(stage) for stage in range(5))

# Where a walk stops: nowhere, since it is over; at a leaf; at a node with more to be decided.
DONE, LEAF, BOX = range(3)


class Sides(NamedTuple):
    """The rows other than V, nearest first on each side: metric, needed free values, and a number.

    Rows that are alike have the same number.
    """

    v: float
    values_below: Array
    required_below: Array
    numbers_below: Array
    values_above: Array
    required_above: Array
    numbers_above: Array


class Walk(NamedTuple):
    """Where a walk stands.

    Attributes:
        sets: for each depth the open values, those in, those that kept rows need, the one being
            decided, and how far that is.
        spans: for each side and depth, where its list begins, its length, and what is free after.
        below: the lists of rows below V, nearest first.
        above: the lists of the other rows.
        depth: one number, -1 once all is done.
        planes: room to count what rows need.
        cap: how many certain rows are enough.
    """

    sets: Array
    spans: Array
    below: Array
    above: Array
    depth: Array
    planes: Array
    cap: int


@maker
def begin(sides: Sides, free: int, split: int, part: int, cap: int) -> Walk:
    """Begin the part of a walk in which the first ``split`` free values are the bits of ``part``.

    Args:
        sides: the rows.
        free: how many free values there are, at most 31.
        split: how many of them are decided at the start.
        part: how.
        cap: how many certain rows are enough on each side.
    """
    # The parts of a walk are disjoint, so that threads can share them out.
    decided = (np.uint64(1) << np.uint64(split)) - np.uint64(1)
    # A stack by depth instead of recursion: one level for each free value, the root, and one spare.
    sets = np.zeros((free + 2, 5), np.uint64)
    spans = np.zeros((2, free + 2, 3), np.int64)
    sets[0, _OPEN] = ((np.uint64(1) << np.uint64(free)) - np.uint64(1)) & ~decided
    sets[0, _IN] = part
    out = decided & ~sets[0, _IN]
    below = _first_list(sides.required_below, out, sets[0], cap, spans[0, 0])
    above = _first_list(sides.required_above, out, sets[0], cap, spans[1, 0])
    depth, planes = np.zeros(1, np.int64), np.empty(64, np.uint64)
    return Walk(sets, spans, below, above, depth, planes, cap)


@maker
def _first_list(required: Array, out: int, sets: Array, cap: int, span: Array) -> Array:
    """Return room for the lists of one side, with the first of them in it."""
    packed = np.empty(len(required), np.uint64)
    for place in range(len(required)):
        packed[place] = np.uint64(place) << _HALF | required[place]
    count, needed = _keep(packed, 0, len(packed), out, sets[_OPEN], cap, 0)
    sets[_NEEDED] |= needed
    span[_COUNT] = span[_END] = count
    # Each depth needs at most what the first does; memory that is never touched costs nothing.
    room = np.empty(count * 33, np.uint64)
    room[:count] = packed[:count]
    return room


@kernel
def _keep(
    rows: Array, first: int, count: int, out: int, still_open: int, cap: int, to: int
) -> tuple[int, Any]:
    """Copy the rows that are not excluded, up to the last that matters.

    Returns how many, and the values they need.
    """
    kept = certain = 0
    needed = np.uint64(0)
    for place in range(first, first + count):
        row = rows[place]
        # The place in the upper half does not disturb: ``out`` and ``still_open`` have lower bits
        # only.
        if row & out:
            continue
        rows[to + kept] = row
        kept += 1
        needed |= row
        if not row & still_open:
            certain += 1
            # What lies beyond is never among the nearest ``cap`` rows of a context below this node.
            if certain == cap:
                break
    return kept, needed & _LOWER


@kernel
def next_leaf(walk: Walk) -> bool:
    """Go to the next leaf; return whether there was one."""
    return bool(next_stop(walk, 64) != DONE)


@kernel
def next_stop(walk: Walk, few: int) -> int:
    """Go to the next leaf, or to the next node whose rows need more than a few open values.

    Returns ``DONE``, ``LEAF`` or ``BOX``.
    """
    sets, depth = walk.sets, walk.depth[0]
    while depth >= 0:
        stage = sets[depth, _STAGE]
        if stage == _ALL_DONE:
            depth -= 1
            continue
        needed = sets[depth, _NEEDED] & sets[depth, _OPEN]
        if stage == _NEW and count_bits(needed) > few:
            sets[depth, _STAGE] = _SEEN
            walk.depth[0] = depth
            return BOX
        if stage <= _SEEN:
            if not needed:
                sets[depth, _STAGE] = _ALL_DONE  # the next call goes on from here
                walk.depth[0] = depth
                return LEAF
            sets[depth, _BIT] = _commonest(walk, depth, needed)
            stage = _CHOSEN
        sets[depth, _STAGE] = stage + np.uint64(1)
        _descend(walk, depth, stage == _CHOSEN)
        depth += 1
    walk.depth[0] = -1
    return DONE


@kernel
def _commonest(walk: Walk, depth: int, needed: int) -> Any:
    """Return the needed value that most rows need, of the nearer half that can count."""
    still_open, highest = walk.sets[depth, _OPEN], -1
    for side, rows in enumerate((walk.below, walk.above)):
        first, count, _ = walk.spans[side, depth]
        nearest = rows[first : first + min(count, walk.cap // 2)]
        highest = tally(nearest, still_open, walk.planes, highest)
    if highest < 0:
        return lowest_bit(needed)  # only of rows farther away
    return most_tallied(still_open, walk.planes, highest)


@kernel
def skip_box(walk: Walk) -> None:
    """Leave out all that is below the node where the walk stands."""
    walk.sets[walk.depth[0], _STAGE] = _ALL_DONE


@kernel
def keep_nearest(walk: Walk, below: int, above: int) -> None:
    """Drop the rows of the node beyond so many on each side: they matter in no context below."""
    depth, needed = walk.depth[0], np.uint64(0)
    walk.spans[0, depth, _COUNT], walk.spans[1, depth, _COUNT] = below, above
    for side, rows in enumerate((walk.below, walk.above)):
        first, count, _ = walk.spans[side, depth]
        for place in range(first, first + count):
            needed |= rows[place]
    walk.sets[depth, _NEEDED] = needed & _LOWER


@kernel
def needed_count(walk: Walk) -> int:
    """Return how many open values the rows kept at the node need."""
    depth = walk.depth[0]
    return int(count_bits(walk.sets[depth, _NEEDED] & walk.sets[depth, _OPEN]))


@kernel
def box_rows(walk: Walk, sides: Sides, x: Array, sure: Array) -> tuple[int, int, int]:
    """Fill in the metrics of the rows kept at the node, rising, and which are certain.

    Returns how many there are, V's place, and how many are certain, V among them.
    """
    depth = walk.depth[0]
    still_open, n, certain = walk.sets[depth, _OPEN], 0, 1
    first, count, _ = walk.spans[0, depth]
    rows, values = walk.below, sides.values_below
    for place in range(first + count - 1, first - 1, -1):
        row = rows[place]
        x[n], sure[n] = values[row >> _HALF], not row & still_open
        certain += sure[n]
        n += 1
    at = n
    x[n], sure[n] = sides.v, True
    n += 1
    first, count, _ = walk.spans[1, depth]
    rows, values = walk.above, sides.values_above
    for place in range(first, first + count):
        row = rows[place]
        x[n], sure[n] = values[row >> _HALF], not row & still_open
        certain += sure[n]
        n += 1
    return n, at, certain


@kernel
def _descend(walk: Walk, depth: int, inside: bool) -> None:
    """Decide the value of this depth, and keep what then matters one deeper."""
    sets = walk.sets
    bit = sets[depth, _BIT]
    below = depth + 1
    sets[below, _OPEN] = sets[depth, _OPEN] & ~bit
    sets[below, _IN] = sets[depth, _IN] | (bit if inside else np.uint64(0))
    sets[below, _NEEDED] = sets[below, _STAGE] = _NEW
    out = np.uint64(0) if inside else bit
    for side in range(2):
        rows = walk.below if side == 0 else walk.above
        first, count, end = walk.spans[side, depth]
        # "In" excludes no row, so the list can be cut in place, and the parent's is still whole for
        # "out". "Out" drops rows from a list that an ancestor may still need for its own "out", so
        # it is written behind.
        to = first if inside else end
        kept, needed = _keep(rows, first, count, out, sets[below, _OPEN], walk.cap, to)
        sets[below, _NEEDED] |= needed
        walk.spans[side, below, _FIRST] = to
        walk.spans[side, below, _COUNT] = kept
        walk.spans[side, below, _END] = end if inside else end + kept


@kernel
def leaf_population(walk: Walk) -> int:
    """Return how many rows the contexts of the leaf cover; above ``cap`` it may be too few."""
    depth = walk.depth[0]
    return int(walk.spans[0, depth, _COUNT] + walk.spans[1, depth, _COUNT] + 1)


@kernel
def leaf_window(walk: Walk, sides: Sides, most: int, x: Array) -> tuple[int, int]:
    """Fill in the metrics of the leaf's rows, rising, at most so many on each side of V.

    Returns how many rows there are, and V's place.
    """
    depth = walk.depth[0]
    first, count, _ = walk.spans[0, depth]
    below = min(count, most)
    for place in range(below):
        # The list is nearest first; a window rises.
        x[place] = sides.values_below[walk.below[first + below - 1 - place] >> _HALF]
    x[below] = sides.v
    first, count, _ = walk.spans[1, depth]
    above = min(count, most)
    for place in range(above):
        x[below + 1 + place] = sides.values_above[walk.above[first + place] >> _HALF]
    return below + 1 + above, below


@kernel
def leaf_numbers(walk: Walk, sides: Sides, n: int, below: int, numbers: Array) -> None:
    """Fill in the numbers of the rows of a window; V's is -1."""
    depth = walk.depth[0]
    first = walk.spans[0, depth, _FIRST]
    for place in range(below):
        numbers[place] = sides.numbers_below[walk.below[first + below - 1 - place] >> _HALF]
    numbers[below] = -1
    first = walk.spans[1, depth, _FIRST]
    for place in range(below + 1, n):
        numbers[place] = sides.numbers_above[walk.above[first + place - below - 1] >> _HALF]


class Flips(NamedTuple):
    """The leaves found where a change turns the verdict, and which changes do; with room for more.

    Attributes:
        bases: for each leaf, the values that are in.
        opens: the values that are open.
        was: whether V is an outlier there.
        leaves: for each change, the place of its leaf.
        changes: which it is.
        used: how many leaves and changes there are.
    """

    bases: Array
    opens: Array
    was: Array
    leaves: Array
    changes: Array
    used: Array


@maker
def no_flips() -> Flips:
    """Return room for some leaves and changes."""
    bases, opens = np.empty((2, 64), np.uint64)
    leaves, changes = np.empty((2, 256), np.int32)
    return Flips(bases, opens, np.empty(64, np.bool_), leaves, changes, np.zeros(2, np.int64))


@maker
def with_leaf(found: Flips, walk: Walk, outlier: bool, flips: Array) -> Flips:
    """Add the leaf where the walk stands, with the changes that turn its verdict."""
    bases, opens, was, leaves, changes, used = found
    leaf, change = used
    # Grown only when full: nobody knows beforehand how many there are.
    if leaf == len(bases):
        bases, opens, was = _doubled(bases), _doubled(opens), _doubled(was)
    while change + len(flips) > len(changes):
        leaves, changes = _doubled(leaves), _doubled(changes)
    depth = walk.depth[0]
    bases[leaf], opens[leaf] = walk.sets[depth, _IN], walk.sets[depth, _OPEN]
    was[leaf] = outlier
    for flip in flips:
        leaves[change], changes[change] = leaf, flip
        change += 1
    used[0], used[1] = leaf + 1, change
    return Flips(bases, opens, was, leaves, changes, used)


@maker
def all_found(found: Flips) -> tuple[Array, Array, Array, Array, Array]:
    """Return what was found, without the room for more."""
    leaf, change = found.used
    leaves = found.bases[:leaf], found.opens[:leaf], found.was[:leaf]
    return (*leaves, found.leaves[:change], found.changes[:change])


@maker
def _doubled(array: Array) -> Array:
    """Return a list that has run full with as much room again."""
    longer = np.empty(2 * len(array), array.dtype)
    longer[: len(array)] = array
    return longer
