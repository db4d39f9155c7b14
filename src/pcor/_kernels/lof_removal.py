"""Which single removals change whether V is an outlier by LOF, in every context.

The leaves of a walk (``pcor._kernels.lof_leaves``) give each distinct window once, with one row
more on each side than LOF looks at, so that the window without any one of its rows is still whole.
Most windows are far enough from the threshold that no removal matters: ``pcor._kernels.lof_bounds``
has the notation and the proof.

All removals at once (``weigh_removals``). kd(o) turns into kd1(o) for those j that are in N(o): all
but o itself of k+1 places in a row. So each pair (p, o) changes R(p) by one amount over a range of
j: running sums give R(p) after every removal. That is not the order in which the plain kernel adds,
so whatever comes within ``SLACK`` of the threshold is computed by the plain kernel on the window
without j, and verdicts agree to the last bit. Twin: the generic path of ``pcor.audit.rejudged``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pcor._kernels import inlined, kernel, maker
from pcor._kernels.boxes import Steps
from pcor._kernels.copies import copy_into
from pcor._kernels.lof import PILE, window_verdict
from pcor._kernels.lof_bounds import ROUNDING, SLACK, Workspace, may_change, new_room
from pcor._kernels.lof_leaves import (
    Flips,
    all_found,
    full,
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
    population,
    window,
    window_numbers,
)

Array = Any


@maker
def removal_flips(
    rows: SideRows,
    steps: Steps,
    rule: tuple[int, float, int],
    box: tuple[int, int],
    numbers: tuple[Array, Array],
) -> tuple[Array, Array, Array, Array, Array]:
    """Return the leaves of a box where a removal changes the verdict, and which removals do.

    Args:
        rows: those near V.
        steps: of the space.
        rule: k, the threshold, and the smallest population (more than k).
        box: its base and its open steps.
        numbers: those of the rows of each side. Rows that are alike have the same.

    Returns:
        For each leaf: the steps that are in, those that are open, and whether V was an outlier.
        For each change: the place of its leaf, and the number of the row that is removed.
    """
    walk = begin(rows, steps, rule, 1, box, len(steps.lower) + 2)
    room = new_room(2 * walk.cap + 1, rule[0])
    flips, found, gains = np.empty(len(room.x), np.int64), no_flips(len(room.x)), new_gains()
    while not _all_leaves(walk, room, gains, numbers, flips, found):
        found = with_room(found)
    listed: tuple[Array, Array, Array, Array, Array] = all_found(found)
    return listed


@kernel
def _all_leaves(
    walk: SubtreeWalk,
    room: Workspace,
    gains: Array,
    numbers: tuple[Array, Array],
    flips: Array,
    found: Flips,
) -> bool:
    """Go on from leaf to leaf while there is room for what is found; tell whether that was all."""
    k, _, smallest = walk.rule
    while next_leaf(walk, gains, True):
        depth = walk.depth[0]
        spare = population(walk, depth) - smallest
        # The population is below the smallest already: V is no outlier, and stays none.
        if spare < 0:
            continue
        # If nobody can be spared, everybody counts.
        n, place = window(walk, depth, 2 * k + 1 if spare else walk.cap, room.x)
        # Without a spare row the verdict always turns to "no", which bounds on the factor do not
        # see.
        if spare and not may_change(room, n, place, walk.rule):
            continue
        window_numbers(walk, depth, n, place, numbers, room.numbers)
        outlier, count = _flipping(room, n, place, walk.rule, spare > 0, flips)
        if count:
            note(found, walk, outlier, flips, count)
            if full(found):
                return False
    return True


@kernel
def _flipping(
    room: Workspace, n: int, place: int, rule: tuple[int, float, int], spare: bool, flips: Array
) -> tuple[bool, int]:
    """Tell whether V is an outlier in a window, and list the rows whose removal changes that.

    Returns the verdict and how many rows are listed. If no row can be spared, V is no outlier
    without any one of them.
    """
    numbers = room.numbers
    outlier = window_verdict(room.x, n, place, rule, room.plain)
    if not spare:
        return outlier, _everybody(numbers, n, place, flips) if outlier else 0
    low, high = weigh_removals(room, place, rule)
    after, unsure = room.after, room.unsure
    count = 0
    for j in range(low, high):
        # Rows that are alike stand side by side, V apart.
        if j == place or (j > low and numbers[j] == numbers[j - 1]):
            continue
        verdict = verdict_without(room, n, place, j, rule) if unsure[j] else after[j]
        if verdict != outlier:
            flips[count] = numbers[j]
            count += 1
    return outlier, count


@kernel
def _everybody(numbers: Array, n: int, place: int, flips: Array) -> int:
    """List every row of a window but V, rows that are alike once; return how many."""
    count = 0
    for j in range(n):
        if j != place and (j == 0 or numbers[j] != numbers[j - 1]):
            flips[count] = numbers[j]
            count += 1
    return count


@kernel
def verdict_without(
    room: Workspace, n: int, place: int, j: int, rule: tuple[int, float, int]
) -> bool:
    """Judge a window without one of its rows."""
    copy_into(room.plain_x[:j], room.x)
    copy_into(room.plain_x[j : n - 1], room.x[j + 1 :])
    moved = place - 1 if j < place else place
    return bool(window_verdict(room.plain_x, n - 1, moved, rule, room.plain))


@kernel
def weigh_removals(room: Workspace, place: int, rule: tuple[int, float, int]) -> tuple[int, int]:
    """Fill in ``after`` and ``unsure`` for the removal of each row that matters.

    Returns where these begin and end: the removal of any other row changes no term of the factor.
    """
    k, threshold, _ = rule
    low, high = _that_matter(room.first1, place, k)
    first, first1 = room.first, room.first1
    around, own, reach = room.around[low:high], room.own[low:high], room.reach[low:high]
    unsure, steps, points = room.unsure[low:high], room.steps[low : high + 1], room.points[low:high]
    around[:] = 0.0
    unsure[:] = False
    share = 1.0 / k
    begin, end = first[place] - low, first[place] + k + 1 - low
    # V and its k+1 nearest: whichever row goes, V's neighbours are among them.
    for p in range(first1[place], first1[place] + k + 2):
        total, size = _changes_of_reach(room, low, p, k, steps, points)
        # The smallest sum tells whether rounding can spoil any.
        least = np.inf
        for j in range(high - low):
            total += steps[j]
            reach[j] = total + points[j]
            least = min(least, reach[j])
        if not ROUNDING * size < SLACK / 4 * (least + k * PILE):
            for j in range(high - low):
                unsure[j] |= not ROUNDING * size < SLACK / 4 * (reach[j] + k * PILE)
        if p == place:
            for j in range(high - low):
                own[j] = reach[j] * share + PILE
            continue
        # Whoever is gone adds nothing; the (k+1)-th counts only when one of V's k nearest is gone.
        reach[p - low] = np.inf
        if not begin <= p - low < end:
            reach[:begin] = np.inf
            reach[end:] = np.inf
        for j in range(high - low):
            around[j] += 1.0 / (reach[j] * share + PILE)
    after = room.after[low:high]
    for j in range(high - low):
        # The mean density of the neighbours over V's: ``own`` is one over V's density.
        factor = around[j] * own[j] * share
        after[j] = factor > threshold
        # "not ... >": a factor that is not a number is left to the plain kernel.
        unsure[j] |= not abs(factor - threshold) > SLACK * threshold
    return low, high


@kernel
def _that_matter(first1: Array, place: int, k: int) -> tuple[int, int]:
    """Return where the rows begin and end whose removal can change a term of V's factor.

    V's k+1 nearest, theirs, and theirs again: windows of k+2 places in a row that never move back.
    """
    nearest = first1[place], first1[place] + k + 1
    theirs = first1[nearest[0]], first1[nearest[1]] + k + 1
    return first1[theirs[0]], first1[theirs[1]] + k + 2


@inlined
def _changes_of_reach(
    room: Workspace, low: int, p: int, k: int, steps: Array, points: Array
) -> tuple[float, float]:
    """Fill in how R(p) changes by the removal of each row: ``steps`` to be added up, ``points``.

    Returns R(p) as it is, and the sum of the sizes of all that is added.
    """
    x, kd, kd1, first, first1 = room.x, room.kd, room.kd1, room.first, room.first1
    steps[:] = 0.0
    points[:] = 0.0
    start, here = first[p], x[p]
    q = first1[p] if first1[p] < start else start + k + 1
    apart, first_q = abs(here - x[q]), first[q]
    near_q, far_q = max(apart, kd[q]), max(apart, kd1[q])
    total = change = 0.0
    for o in range(start, start + k + 1):
        if o == p:
            continue
        distance = abs(here - x[o])
        near = max(distance, kd[o])
        more = max(distance, kd1[o]) - near
        # A difference array: added up, it is ``more`` exactly for the j in o's window.
        steps[first[o] - low] += more
        steps[first[o] + k + 1 - low] -= more
        # Without o itself: q instead, and no farther k-distance of o.
        instead = far_q if first_q <= o <= first_q + k else near_q
        points[o - low] = instead - near - more
        total += near
        change += more + instead
    return total, total + change
