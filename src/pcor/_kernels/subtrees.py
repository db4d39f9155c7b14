"""Which boxes of a record's contexts are valid by LOF? A walk that settles subtrees.

Steps are decided one at a time, in or out: with a step all lower ones of its chain are in, without
it all higher ones are out. What lies below a node is a box of contexts: the steps of its ``base``
are in, its ``open`` steps may be. Where ``lof_subtree`` settles a box, or where no row near V needs
an open step, nothing below is looked at. Otherwise the commonest open step among the rows nearest
to V is decided next. A node keeps its rows in lists that only shrink, as in ``lof_walk``.

Contexts are bits (``boxes``). Twin: judging every context by itself.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from pcor._kernels import inlined, kernel, maker
from pcor._kernels.bits import count_bits, lowest_bit, most_tallied, number_of, tally
from pcor._kernels.boxes import Steps
from pcor._kernels.copies import copy_into
from pcor._kernels.lof_near import Near, room_for, that_matter, within_reach
from pcor._kernels.lof_subtree import exact_verdict, settled

Array = Any

# What is known of all contexts of a box.
OPEN, INVALID, VALID = 0, 1, 2

# A node: what is in, what is open, the step to be decided, how far that is, and the verdicts with
# all open steps and with none. The sums of densities that belong to these are kept beside it.
BASE, REST, STEP, STAGE, ALL, NONE = range(6)
NODE_SIZE, SUMS = 6, 4
# In each of the two: the sum of the densities around V, and V's own.
AROUND_ALL, OWN_ALL, AROUND_NONE, OWN_NONE = range(4)
_UNKNOWN = np.uint64(2)
_NO_STEP = 64

# With so few needed steps every window is judged: that is cheaper than to split the box.
_FEW = 4

_FIRST, _COUNT, _END = range(3)


class SideRows(NamedTuple):
    """The rows other than V, nearest first on each side, and the steps that each needs."""

    v: float
    values_below: Array
    required_below: Array
    values_above: Array
    required_above: Array


class Lists(NamedTuple):
    """The rows of one side at each depth: ``spans`` has their start, number and the end in use."""

    values: Array
    required: Array
    spans: Array


class SubtreeWalk(NamedTuple):
    """What a walk needs at every node."""

    v: float
    steps: Steps
    rule: tuple[int, float, int]
    below: Lists
    above: Lists
    near: Near
    planes: Array


@maker
def begin(rows: SideRows, steps: Steps, rule: tuple[int, float, int], depths: int) -> SubtreeWalk:
    """Return a walk with room for so many depths, and all rows at the first of them."""
    below = _listed(rows.values_below, rows.required_below, depths)
    above = _listed(rows.values_above, rows.required_above, depths)
    near = room_for(len(rows.values_below) + len(rows.values_above) + 1, rule[0])
    return SubtreeWalk(rows.v, steps, rule, below, above, near, np.empty(64, np.uint64))


@maker
def _listed(values: Array, required: Array, depths: int) -> Lists:
    count = len(values)
    # Each depth needs at most what the first does; memory that is never touched costs nothing.
    room = np.empty(count * depths), np.empty(count * depths, np.uint64)
    room[0][:count], room[1][:count] = values, required
    spans = np.zeros((depths, 3), np.int64)
    spans[0, _COUNT] = spans[0, _END] = count
    return Lists(*room, spans)


@kernel
def new_node(base: int, rest: int, node: Array) -> None:
    """Fill in a node of which only the box is known."""
    node[BASE], node[REST] = base, rest
    node[STEP] = node[STAGE] = 0
    node[ALL:] = _UNKNOWN


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


@kernel
def keep(walk: SubtreeWalk, source: int, target: int, behind: bool, out: int, rest: int) -> None:
    """Copy the rows of one depth to another, but those that need a step that is out."""
    _keep(walk.below, source, target, behind, out, rest, 2 * walk.rule[0])
    _keep(walk.above, source, target, behind, out, rest, 2 * walk.rule[0])


@kernel
def _keep(
    lists: Lists, source: int, target: int, behind: bool, out: int, rest: int, cap: int
) -> None:
    first, count, end = lists.spans[source]
    to = end if behind else first
    kept = certain = 0
    values, required = lists.values, lists.required
    for place in range(first, first + count):
        row = required[place]
        # Written in any case, and written over if it is not kept: nobody could predict a branch.
        values[to + kept], required[to + kept] = values[place], row
        stays = (row & out) == 0
        kept += stays
        certain += stays and (row & rest) == 0
        # What lies beyond is never among the nearest ``cap`` rows of a context below.
        if certain == cap:
            break
    lists.spans[target, _FIRST], lists.spans[target, _COUNT] = to, kept
    lists.spans[target, _END] = to + kept if behind else end


@kernel
def look(walk: SubtreeWalk, depth: int, node: Array, sums: Array) -> int:
    """Return what is known of a node, its rows kept at a depth; if nothing, choose its step."""
    near, rule, rest = walk.near, walk.rule, node[REST]
    n, place, certain = _gather(walk, depth, rest)
    if n < rule[2]:
        return INVALID
    needed = _needed(near.required[:n], rest)
    if node[ALL] == _UNKNOWN:
        node[ALL], sums[AROUND_ALL], sums[OWN_ALL] = exact_verdict(near, near.x, n, place, rule)
    same = VALID if node[ALL] else INVALID
    if not needed:
        return same
    if node[NONE] == _UNKNOWN:
        node[NONE], sums[AROUND_NONE], sums[OWN_NONE] = _without(near, n, place, rest, rule)
    if node[ALL] == node[NONE]:
        # One needed step means two windows, and both were judged.
        if count_bits(needed) == 1:
            return same
        # Two needed steps leave two windows: judging these is cheaper than a bound.
        if count_bits(needed) > 2 and certain > rule[0] and _promising(sums, rule, node[ALL] == 1):
            some = that_matter(near, n, place, rule[0])
            if settled(near, (n, place, certain), some, rule, 0):
                return same
            n, place = _trim(walk, depth, n, place, some)
            # Rows that do not matter may have been the only ones that need some steps.
            needed = _needed(near.required[:n], rest)
            if count_bits(needed) < 2:
                return same
        if count_bits(needed) <= _FEW and _all_alike(walk, n, place, needed, node[ALL]):
            return same
    return int(_split(walk, n, place, node))


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


@inlined
def _split(walk: SubtreeWalk, n: int, place: int, node: Array) -> int:
    """Choose the step to be decided: the commonest among the k nearest rows on each side."""
    required, low = walk.near.required, max(0, place - walk.rule[0])
    closest = required[low : min(n, place + walk.rule[0] + 1)]
    node[STEP] = _commonest(closest, node[REST], walk.planes)
    if node[STEP] == _NO_STEP:
        node[STEP] = _commonest(required[:n], node[REST], walk.planes)
    return OPEN


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
def _gather(walk: SubtreeWalk, depth: int, rest: int) -> tuple[int, int, int]:
    """Fill in the possible rows; return how many, V's place, and how many are certain."""
    near, n, certain = walk.near, 0, 0
    first, count, _ = walk.below.spans[depth]
    for place in range(first + count - 1, first - 1, -1):
        near.x[n], near.required[n] = walk.below.values[place], walk.below.required[place]
        n += 1
    at = n
    near.x[n], near.required[n] = walk.v, np.uint64(0)
    n += 1
    first, count, _ = walk.above.spans[depth]
    for place in range(first, first + count):
        near.x[n], near.required[n] = walk.above.values[place], walk.above.required[place]
        n += 1
    for place in range(n):
        near.sure[place] = not near.required[place] & rest
        certain += near.sure[place]
    return n, at, certain


@inlined
def _trim(
    walk: SubtreeWalk, depth: int, n: int, place: int, some: tuple[int, int]
) -> tuple[int, int]:
    """Drop rows that matter in no context below, here and in the list; return what is left."""
    near = walk.near
    # V's neighbours, theirs, and all that decide the k-distances of these.
    low, high = within_reach(near.x, near.high_kd, n, some[0], some[1])
    if high - low == n:
        return n, place
    certain = 0
    for p in range(low, high):
        certain += near.sure[p]
    # What is left has to show that the population is large enough.
    if certain < walk.rule[2]:
        return n, place
    walk.below.spans[depth, _COUNT] = place - low
    walk.above.spans[depth, _COUNT] = high - place - 1
    for p in range(low, high):
        near.x[p - low], near.required[p - low] = near.x[p], near.required[p]
        near.sure[p - low] = near.sure[p]
    return high - low, place - low


@inlined
def _needed(required: Array, rest: int) -> Any:
    """Return the open steps that some row needs."""
    needed = np.uint64(0)
    for row in required:
        needed |= row & rest
    return needed


@inlined
def _without(
    near: Near, n: int, place: int, out: int, rule: tuple[int, float, int]
) -> tuple[bool, float, float]:
    """Judge V among the possible rows that need none of these steps."""
    count, at = _chosen(near, n, place, out)
    parts: tuple[bool, float, float] = exact_verdict(near, near.c, count, at, rule)
    return parts


@inlined
def _chosen(near: Near, n: int, place: int, out: int) -> tuple[int, int]:
    """Fill in the rows that need none of these steps; return how many, and V's place."""
    count = at = 0
    for p in range(n):
        if p == place:
            at = count
        near.c[count] = near.x[p]
        count += not near.required[p] & out
    return count, at


@inlined
def _commonest(required: Array, rest: int, planes: Array) -> int:
    """Return the open step that most rows need, or ``_NO_STEP``."""
    highest = tally(required, rest, planes, -1)
    return _NO_STEP if highest < 0 else number_of(most_tallied(rest, planes, highest))


@maker
def valid_boxes(
    rows: SideRows, steps: Steps, rule: tuple[int, float, int], base: int, rest: int
) -> tuple[Array, Array]:
    """Return the valid contexts of a box as disjoint boxes: their bases, and their open steps."""
    depths = len(steps.lower) + 2
    walk = begin(rows, steps, rule, depths)
    nodes, sums = np.empty((depths, NODE_SIZE), np.uint64), np.empty((depths, SUMS))
    found, used = np.empty((256, 2), np.uint64), 0
    new_node(np.uint64(base), np.uint64(rest), nodes[0])
    keep(walk, 0, 0, False, ~(nodes[0, BASE] | nodes[0, REST]), nodes[0, REST])
    depth = 0
    # Stage 0: new; 1: to go on with the step; 2: without it; 3: all below is done.
    while depth >= 0:
        node = nodes[depth]
        if node[STAGE] == 0:
            verdict = look(walk, depth, node, sums[depth])
            if verdict == VALID:
                found = _with_room(found, used)
                found[used, 0], found[used, 1] = node[BASE], node[REST]
                used += 1
            node[STAGE] = 1 if verdict == OPEN else 3
        if node[STAGE] == 3:
            depth -= 1
            continue
        inside = node[STAGE] == 1
        out = child(steps, node, sums[depth], inside, nodes[depth + 1], sums[depth + 1])
        # "In" drops no row, so the list can be cut in place and the parent's is still whole for
        # "out", which is written behind.
        keep(walk, depth, depth + 1, not inside, out, nodes[depth + 1, REST])
        node[STAGE] += np.uint64(1)
        depth += 1
    return found[:used, 0].copy(), found[:used, 1].copy()


@maker
def _with_room(found: Array, used: int) -> Array:
    """Return the list, twice as long if it is full."""
    if used < len(found):
        return found
    longer = np.empty((2 * used, 2), found.dtype)
    longer[:used] = found
    return longer
