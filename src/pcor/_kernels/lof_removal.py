"""Whether V is an outlier by LOF in a window without each one of its rows, all at once.

The notation is that of ``pcor._kernels.lof_bounds``. kd(o) turns into kd1(o) for those j that are
in N(o): all but o itself of k+1 places in a row. So each pair (p, o) changes R(p) by one amount
over a range of j: running sums give R(p) after every removal. That is not the order in which the
plain kernel adds, so whatever comes within ``SLACK`` of the threshold is computed by the plain
kernel on the window without j, and verdicts agree to the last bit. Twin: the plain kernel on the
window without each row.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pcor._kernels import inlined, kernel
from pcor._kernels.copies import copy_into
from pcor._kernels.lof import PILE, window_verdict
from pcor._kernels.lof_bounds import ROUNDING, SLACK, Workspace

Array = Any


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
