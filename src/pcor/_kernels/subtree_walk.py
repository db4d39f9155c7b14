"""A walk over the contexts of a record: steps are decided one at a time, in or out.

With a step all lower ones of its chain are in, without it all higher ones are out. What lies below
a node is a box of contexts (``boxes``): the steps of its ``base`` are in, its ``open`` steps may
be. A row is certain if it needs no open step, and is gone if it needs one that is out. Each side of
V keeps its rows by distance up to the ``cap``-th certain one: what lies beyond is among the nearest
``cap`` of no context below. Lists only shrink on the way down; deciding "in" cuts one in place,
deciding "out" writes a shorter one behind it.

Whoever walks says which nodes to split; all others are done. Private: everything. Twin: going
through every context.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from pcor._kernels import inlined, kernel, maker
from pcor._kernels.bits import lowest_bit, most_tallied, number_of, tally
from pcor._kernels.boxes import Steps
from pcor._kernels.copies import copy_into
from pcor._kernels.lof_near import Near, room_for, within_reach

Array = Any

# A node: what is in, what is open, the step to be decided, how far that is, and the verdicts with
# all open steps and with none. The sums of densities that belong to these are kept beside it.
BASE, REST, STEP, STAGE, ALL, NONE = range(6)
NODE_SIZE, SUMS = 6, 4
# In each of the two: the sum of the densities around V, and V's own.
AROUND_ALL, OWN_ALL, AROUND_NONE, OWN_NONE = range(4)
UNKNOWN = np.uint64(2)

# How far a node is: not looked at; to go on with its step; without it; all below is done.
NEW, INSIDE, OUTSIDE, DONE = (np.uint64(stage) for stage in range(4))

_FIRST, _COUNT, _END = range(3)


class SideRows(NamedTuple):
    """The rows other than V, nearest first on each side, and the steps that each needs."""

    v: float
    values_below: Array
    required_below: Array
    values_above: Array
    required_above: Array


class Lists(NamedTuple):
    """The rows of one side at each depth, by their places on it, and what they need.

    ``spans`` has for each depth where its list starts, its length, and the end of what is in use.
    """

    places: Array
    required: Array
    spans: Array


class SubtreeWalk(NamedTuple):
    """Where a walk stands.

    Attributes:
        rows: all of them.
        steps: of the space.
        rule: k, the threshold, and the smallest population.
        spare: how many rows may leave a context.
        cap: how many certain rows on a side are enough.
        below: the lists of the rows below V.
        above: those of the others.
        needed: for each depth the open steps that its rows need.
        nodes: for each depth the node.
        sums: what goes with it.
        depth: one number, -1 once all is done.
        near: room for the rows of a node.
        planes: room to count what rows need.
    """

    rows: SideRows
    steps: Steps
    rule: tuple[int, float, int]
    spare: int
    cap: int
    below: Lists
    above: Lists
    needed: Array
    nodes: Array
    sums: Array
    depth: Array
    near: Near
    planes: Array


@inlined
def depths_of(steps: Steps) -> int:
    """Return how many nodes one below the other a walk may have: each split decides a step."""
    return len(steps.lower) + 1


@maker
def begin(
    rows: SideRows,
    steps: Steps,
    rule: tuple[int, float, int],
    spare: int,
    box: tuple[int, int],
    depths: int,
) -> SubtreeWalk:
    """Return a walk over a box of contexts, its base and its open steps.

    Args:
        rows: those near V.
        steps: of the space.
        rule: k, the threshold, and the smallest population.
        spare: how many rows may leave a context.
        box: its base and its open steps.
        depths: how many nodes have room, one below the other; at least one.
    """
    k, _, smallest = rule
    # As many as LOF looks at, and as many more; or enough to see whether so many can be spared.
    cap = max(2 * k + spare, smallest + spare - 1)
    below, above = _listed(rows.required_below, depths), _listed(rows.required_above, depths)
    walk = SubtreeWalk(
        *(rows, steps, rule, spare, cap, below, above, np.zeros(depths, np.uint64)),
        *(np.empty((depths, NODE_SIZE), np.uint64), np.empty((depths, SUMS))),
        *(np.zeros(1, np.int64), room_for(_most(rows), k + spare)),
        np.empty(64, np.uint64),
    )
    new_node(np.uint64(box[0]), np.uint64(box[1]), walk.nodes[0])
    keep(walk, 0, 0, False, ~(walk.nodes[0, BASE] | walk.nodes[0, REST]), walk.nodes[0, REST])
    return walk


@inlined
def _most(rows: SideRows) -> int:
    """Return how many rows there are, V among them."""
    return len(rows.values_below) + len(rows.values_above) + 1


@maker
def _listed(required: Array, depths: int) -> Lists:
    """Return room for the lists of one side, with all rows in the first of them."""
    count = len(required)
    # Each depth needs at most what the first does; memory that is never touched costs nothing.
    places, room = np.empty(count * depths, np.int32), np.empty(count * depths, np.uint64)
    for place in range(count):
        places[place] = place
    room[:count] = required
    spans = np.zeros((depths, 3), np.int64)
    spans[0, _COUNT] = spans[0, _END] = count
    return Lists(places, room, spans)


@kernel
def new_node(base: int, rest: int, node: Array) -> None:
    """Fill in a node of which only the box is known."""
    node[BASE], node[REST] = base, rest
    node[STEP], node[STAGE] = np.uint64(0), NEW
    node[ALL:] = UNKNOWN


@kernel
def child(
    steps: Steps, node: Array, sums: Array, inside: bool, below: Array, below_sums: Array
) -> Any:
    """Fill in what is below a node with or without its step; return the steps that went out."""
    step = node[STEP]
    # What was already decided of the chain stays so: only open steps come or go.
    gone = node[REST] & (steps.lower[step] if inside else steps.higher[step])
    new_node(node[BASE] | gone if inside else node[BASE], node[REST] & ~gone, below)
    # One of the two extreme contexts is the parent's.
    shared = ALL if inside else NONE
    below[shared] = node[shared]
    copy_into(below_sums, sums)
    return np.uint64(0) if inside else gone


@inlined
def keep(walk: SubtreeWalk, source: int, target: int, behind: bool, out: int, rest: int) -> None:
    """Copy the rows of one depth to another, but those that need a step that is out."""
    needed = _keep(walk.below, source, target, behind, out, rest, walk.cap)
    needed |= _keep(walk.above, source, target, behind, out, rest, walk.cap)
    walk.needed[target] = needed


@kernel
def _keep(
    lists: Lists, source: int, target: int, behind: bool, out: int, rest: int, cap: int
) -> Any:
    first, count, end = lists.spans[source]
    to = end if behind else first
    kept = certain = 0
    needed = np.uint64(0)
    places, required = lists.places, lists.required
    for place in range(first, first + count):
        row = required[place]
        # Written in any case, and written over if it is not kept: nobody could predict a branch.
        places[to + kept], required[to + kept] = places[place], row
        stays = (row & out) == 0
        kept += stays
        needed |= row if stays else np.uint64(0)
        certain += stays and (row & rest) == 0
        # What lies beyond is never among the nearest ``cap`` rows of a context below.
        if certain == cap:
            break
    lists.spans[target, _FIRST], lists.spans[target, _COUNT] = to, kept
    lists.spans[target, _END] = to + kept if behind else end
    return needed & rest


@inlined
def next_node(walk: SubtreeWalk) -> bool:
    """Go to the next node, ``walk.depth``; tell whether there is one.

    What is below it is left out, unless its stage is set to ``INSIDE`` when its step is chosen.
    """
    depth, nodes = walk.depth[0], walk.nodes
    while depth >= 0:
        node = nodes[depth]
        stage = node[STAGE]
        if stage == NEW:
            node[STAGE] = DONE
            walk.depth[0] = depth
            return True
        if stage == DONE:
            depth -= 1
            continue
        inside = stage == INSIDE
        out = child(
            walk.steps, node, walk.sums[depth], inside, nodes[depth + 1], walk.sums[depth + 1]
        )
        # "In" drops no row, so the list can be cut in place and the parent's is still whole for
        # "out", which is written behind.
        keep(walk, depth, depth + 1, not inside, out, nodes[depth + 1, REST])
        node[STAGE] = OUTSIDE if inside else DONE
        depth += 1
    walk.depth[0] = -1
    return False


@inlined
def choose_step(walk: SubtreeWalk, depth: int, node: Array) -> None:
    """Choose the step to be decided: the commonest among the k nearest rows on each side.

    Of several that are as common there the commonest among all rows of the node.
    """
    some = node[REST]
    for nearest in (walk.rule[0], len(walk.near.x)):
        highest = -1
        for lists in (walk.below, walk.above):
            first, count, _ = lists.spans[depth]
            rows = lists.required[first : first + min(count, nearest)]
            highest = tally(rows, some, walk.planes, highest)
        # Only rows farther away may need one.
        some = most_tallied(some, walk.planes, highest)
        if not some & (some - np.uint64(1)):
            break
    node[STEP] = number_of(lowest_bit(some))


@inlined
def gather(walk: SubtreeWalk, depth: int, rest: int) -> tuple[int, int, int]:
    """Fill in the possible rows of a node, rising.

    Returns how many there are, V's place, and how many are certain, V among them.
    """
    near, n, certain = walk.near, 0, 0
    first, count, _ = walk.below.spans[depth]
    for place in range(first + count - 1, first - 1, -1):
        near.x[n] = walk.rows.values_below[walk.below.places[place]]
        near.required[n] = walk.below.required[place]
        n += 1
    at = n
    near.x[n], near.required[n] = walk.rows.v, np.uint64(0)
    n += 1
    first, count, _ = walk.above.spans[depth]
    for place in range(first, first + count):
        near.x[n] = walk.rows.values_above[walk.above.places[place]]
        near.required[n] = walk.above.required[place]
        n += 1
    for place in range(n):
        near.sure[place] = not near.required[place] & rest
        certain += near.sure[place]
    return n, at, certain


@inlined
def trim(
    walk: SubtreeWalk, depth: int, n: int, place: int, theirs: tuple[int, int], rest: int
) -> tuple[int, int]:
    """Drop the rows that matter in no context below, whoever leaves; return what is left.

    Args:
        walk: with the rows of the node, gathered, and ``high_kd`` of those of ``theirs``.
        depth: of the node.
        n: how many rows there are.
        place: V's place.
        theirs: where the candidates of V's candidates begin and end (``that_matter``).
        rest: the open steps of the node.
    """
    near = walk.near
    # With them goes all that decides their k-distances.
    low, high = within_reach(near.x, near.high_kd, n, theirs[0], theirs[1])
    if high - low == n:
        return n, place
    certain, needed = 0, np.uint64(0)
    for p in range(low, high):
        certain += near.sure[p]
        needed |= near.required[p]
    # What is left has to show that the population is large enough, whoever leaves.
    if certain < walk.rule[2] + walk.spare:
        return n, place
    walk.needed[depth] = needed & rest
    walk.below.spans[depth, _COUNT] = place - low
    walk.above.spans[depth, _COUNT] = high - place - 1
    for p in range(low, high):
        near.x[p - low], near.required[p - low] = near.x[p], near.required[p]
        near.sure[p - low] = near.sure[p]
    return high - low, place - low


@inlined
def population(walk: SubtreeWalk, depth: int) -> int:
    """Return how many rows are kept at a node, V among them; above ``cap`` it may be too few."""
    return int(walk.below.spans[depth, _COUNT] + walk.above.spans[depth, _COUNT] + 1)


@inlined
def window(walk: SubtreeWalk, depth: int, most: int, x: Array) -> tuple[int, int]:
    """Fill in the metrics of a node's rows, rising, at most so many on each side of V.

    Returns how many rows there are, and V's place.
    """
    first, count, _ = walk.below.spans[depth]
    below = min(count, most)
    for place in range(below):
        # The list is nearest first; a window rises.
        x[place] = walk.rows.values_below[walk.below.places[first + below - 1 - place]]
    x[below] = walk.rows.v
    first, count, _ = walk.above.spans[depth]
    above = min(count, most)
    for place in range(above):
        x[below + 1 + place] = walk.rows.values_above[walk.above.places[first + place]]
    return below + 1 + above, below


@inlined
def window_numbers(
    walk: SubtreeWalk,
    depth: int,
    n: int,
    below: int,
    numbers: tuple[Array, Array],
    out: Array,
) -> None:
    """Fill in the numbers of the rows of a window, given those of each side; V's is -1."""
    first = walk.below.spans[depth, _FIRST]
    for place in range(below):
        out[place] = numbers[0][walk.below.places[first + below - 1 - place]]
    out[below] = -1
    first = walk.above.spans[depth, _FIRST]
    for place in range(below + 1, n):
        out[place] = numbers[1][walk.above.places[first + place - below - 1]]
