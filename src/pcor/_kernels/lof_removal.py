"""Which single removals change whether V is an outlier by LOF, in every context.

The walk of ``pcor._kernels.lof_walk`` gives each distinct window once, with one row more on each
side than LOF looks at, so that the window without any one of its rows is still whole.

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

from pcor._kernels import kernel
from pcor._kernels.lof import PILE, window_verdict
from pcor._kernels.lof_bounds import ROUNDING, SLACK, Workspace, may_change, new_room
from pcor._kernels.lof_walk import (
    Sides,
    all_found,
    begin,
    leaf_numbers,
    leaf_population,
    leaf_window,
    next_leaf,
    no_flips,
    with_leaf,
)

Array = Any


@kernel
def removal_flips(
    sides: Sides, free: int, split: int, part: int, rule: tuple[int, float, int]
) -> tuple[Array, Array, Array, Array, Array]:
    """Return the leaves of a part of the walk where a removal changes the verdict, and which do.

    Args:
        sides: the rows.
        free: how many free values there are.
        split: how many of them are decided by ``part``.
        part: the bits that decide them.
        rule: k, the threshold, and the smallest population (more than k).

    Returns:
        For each leaf: the values that are in, those that are open, and whether V was an outlier.
        For each change: the place of its leaf, and the number of the row that is removed.
    """
    k, _, smallest = rule
    # Enough rows to see whether one can be spared.
    cap = max(2 * k + 1, smallest)
    walk = begin(sides, free, split, part, cap)
    room = new_room(2 * cap + 1)
    flips, found = np.empty(2 * cap + 1, np.int64), no_flips()
    while next_leaf(walk):
        spare = leaf_population(walk) - smallest
        # The population is below the smallest already: V is no outlier, and stays none.
        if spare < 0:
            continue
        most = 2 * k + 1 if spare else cap  # if nobody can be spared, everybody counts
        n, place = leaf_window(walk, sides, most, room.x)
        # Without a spare row the verdict always turns to "no", which bounds on the factor do not
        # see.
        if spare and not may_change(room, n, place, rule):
            continue
        leaf_numbers(walk, sides, n, place, room.numbers)
        outlier, count = _flipping(room, n, place, rule, spare > 0, flips)
        if count:
            found = with_leaf(found, walk, outlier, flips[:count])
    listed: tuple[Array, Array, Array, Array, Array] = all_found(found)
    return listed


@kernel
def _flipping(
    room: Workspace, n: int, place: int, rule: tuple[int, float, int], spare: bool, flips: Array
) -> tuple[bool, int]:
    """Tell whether V is an outlier in a window, and list the rows whose removal changes that.

    Returns the verdict and how many rows are listed. If no row can be spared, V is no outlier
    without any one of them.
    """
    numbers = room.numbers
    outlier = window_verdict(room.x, n, place, rule, room.plain_first, room.plain_kd)
    if spare:
        weigh_removals(room, n, place, rule[0])
    elif not outlier:
        return False, 0
    count = 0
    for j in range(n):
        # Rows that are alike stand side by side, V apart.
        if j == place or (j > 0 and numbers[j] == numbers[j - 1]):
            continue
        after = spare and verdict_after(room, n, place, j, rule)
        if after != outlier:
            flips[count] = numbers[j]
            count += 1
    return outlier, count


@kernel
def verdict_after(
    room: Workspace, n: int, place: int, j: int, rule: tuple[int, float, int]
) -> bool:
    """Judge a window without one of its rows, after ``weigh_removals``."""
    k, threshold, _ = rule
    # The mean density of the neighbours over V's: ``own`` is one over V's density.
    factor = room.around[j] * room.own[j] / k
    # Written with "not ... >" so that a factor that is not a number is left to the plain kernel.
    if room.unsure[j] or not abs(factor - threshold) > SLACK * threshold:
        return bool(_verdict_without(room, n, place, j, rule))
    return bool(factor > threshold)


@kernel
def _verdict_without(
    room: Workspace, n: int, place: int, j: int, rule: tuple[int, float, int]
) -> bool:
    """Judge a window without one of its rows."""
    room.plain_x[:j] = room.x[:j]
    room.plain_x[j : n - 1] = room.x[j + 1 : n]
    moved = place - 1 if j < place else place
    first, kd = room.plain_first, room.plain_kd
    return bool(window_verdict(room.plain_x, n - 1, moved, rule, first, kd))


@kernel
def weigh_removals(room: Workspace, n: int, place: int, k: int) -> None:
    """Fill in ``around``, ``own`` and ``unsure`` for the removal of each row of the window."""
    first, around, own, reach = room.first[place], room.around, room.own, room.reach
    around[:n] = 0.0
    room.unsure[:n] = False
    # V and its k+1 nearest: whichever row goes, V's neighbours are among them.
    for p in range(room.first1[place], room.first1[place] + k + 2):
        _reach_after(room, n, p, k)
        if p == place:
            for j in range(n):
                own[j] = reach[j] / k + PILE
            continue
        # Whoever is gone adds nothing; the (k+1)-th counts only when one of V's k nearest is gone.
        reach[p] = np.inf
        if not first <= p <= first + k:
            reach[:first] = np.inf
            reach[first + k + 1 : n] = np.inf
        for j in range(n):
            around[j] += 1.0 / (reach[j] / k + PILE)


@kernel
def _reach_after(room: Workspace, n: int, p: int, k: int) -> None:
    """Fill in R(p) after the removal of each row, and mark the removals whose sum rounding spoils.

    The errors of a sum are judged against the sizes of all that was added and subtracted.
    """
    reach = room.reach
    total, size = _changes_of_reach(room, n, p, k)
    # The smallest sum first: if that one is accurate enough all are, and the second loop is spared.
    least = np.inf
    for j in range(n):
        total += room.steps[j]
        reach[j] = total + room.points[j]
        least = min(least, reach[j])
    if not ROUNDING * size < SLACK / 4 * (least + k * PILE):
        for j in range(n):
            room.unsure[j] |= not ROUNDING * size < SLACK / 4 * (reach[j] + k * PILE)


@kernel
def _changes_of_reach(room: Workspace, n: int, p: int, k: int) -> tuple[float, float]:
    """Fill in how R(p) changes by the removal of each row: ``steps`` to be added up, ``points``.

    Returns R(p) as it is, and the sum of the sizes of all that is added.
    """
    x, kd, kd1, first = room.x, room.kd, room.kd1, room.first
    room.steps[: n + 1] = 0.0
    room.points[:n] = 0.0
    q = room.first1[p] if room.first1[p] < first[p] else first[p] + k + 1
    total = change = 0.0
    for o in range(first[p], first[p] + k + 1):
        if o == p:
            continue
        distance = abs(x[p] - x[o])
        near = max(distance, kd[o])
        more = max(distance, kd1[o]) - near
        # A difference array: added up, it is ``more`` exactly for the j in o's window.
        room.steps[first[o]] += more
        room.steps[first[o] + k + 1] -= more
        # Without o itself: q instead, and no farther k-distance of o.
        next_kd = kd1[q] if first[q] <= o <= first[q] + k else kd[q]
        instead = max(abs(x[p] - x[q]), next_kd)
        room.points[o] = instead - near - more
        total += near
        change += more + instead
    return total, total + change
