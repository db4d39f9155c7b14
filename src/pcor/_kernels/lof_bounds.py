"""Can the removal of any one row change whether V is an outlier by LOF in a window?

The window has one row more on each side than LOF looks at, so that it is still whole without any
one of its rows.

Removing row j changes little. For each row p let N(p) be its k nearest and q(p) the next one, kd(p)
and kd1(p) their distances. If j is in N(p), then p's k nearest become N(p) and q(p) without j, and
its k-distance becomes kd1(p), whichever j it was; otherwise both stay. Let R(p) be the sum of
max(|p - o|, kd(o)) over p's k nearest, so that the density of p is 1 / (R(p) / k + 1e-10).

After any removal p's k nearest are N(p) and q(p) without one of them, and every k-distance lies
between kd and kd1. So R(p) lies between the sum over N(p) and q(p) with kd less its largest term,
and the sum with kd1 less its smallest. V's factor is the sum of its k nearest's densities, times
R(V) / k + 1e-10, over k; the same argument bounds it. Before the removal everything is within these
bounds too. Where the threshold is not, no removal matters.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from pcor._kernels import inlined, kernel, maker
from pcor._kernels.lof import PILE, WindowRoom, first_of, pad, window_room

Array = Any

# A sum has no more than 4k + 3 terms, k at most ``pcor.search.subtrees.MOST_NEIGHBOURS``; each
# addition is off by at most 2^-53 of the sum of their sizes, and so the sum by less than this.
ROUNDING = 1e-13
# How near the threshold a factor is left to the plain kernel. Densities whose error could be more
# than a quarter of it are left to it too, and a factor has two of them, one over the other.
SLACK = 4e-9


class Workspace(NamedTuple):
    """Room for one window, kept from one to the next.

    Attributes:
        x: the metric of each row, rising.
        numbers: the same for rows that are alike, or those of one person; -1 where a row stays.
        first: where the k nearest of each row begin; with the row itself they are k+1 in a row.
        first1: where the k+1 nearest begin.
        kd: the distance to the k-th nearest.
        kd1: the distance to the next.
        sums: the sum of kd up to each row.
        steps: by how much a sum changes from one removal to the next.
        points: by how much a sum differs for one removal alone.
        reach: one row's sum after each removal.
        around: after each removal, the sum of the densities of V's k nearest.
        own: after each removal, one over V's density.
        after: whether V is an outlier after each removal.
        unsure: which removals the plain kernel has to judge.
        padded: the rows between others that are infinitely far.
        plain_x: for the plain kernel, the window without one row.
        plain: for the plain kernel.
    """

    x: Array
    numbers: Array
    first: Array
    first1: Array
    kd: Array
    kd1: Array
    sums: Array
    steps: Array
    points: Array
    reach: Array
    around: Array
    own: Array
    after: Array
    unsure: Array
    padded: Array
    plain_x: Array
    plain: WindowRoom


@maker
def new_room(size: int, k: int) -> Workspace:
    """Return room for windows of at most this size."""
    # Each by itself: of rows of one array the compiler would not know that they are in one piece.
    return Workspace(
        *(np.empty(size), np.empty(size, np.int64), np.empty(size, np.int64)),
        *(np.empty(size, np.int64), np.empty(size), np.empty(size), np.empty(size + 1)),
        *(np.empty(size + 1), np.empty(size), np.empty(size), np.empty(size), np.empty(size)),
        *(np.empty(size, np.bool_), np.empty(size, np.bool_), np.empty(size + 2 * k + 3)),
        *(np.empty(size), window_room(k)),
    )


@kernel
def may_change(room: Workspace, n: int, place: int, rule: tuple[int, float, int]) -> bool:
    """Tell whether the threshold lies between bounds of the factor before and after any removal."""
    k, threshold, _ = rule
    # A cheap bound first: it rules most windows out before the exact bounds are computed.
    total, largest = _neighbours(room, n, place, k)
    if _quick_bound(room, place, k, total, largest) * (1 + SLACK) < threshold:
        return False
    least, most = _bounds(room, place, k)
    return bool(least * (1 - SLACK) <= threshold <= most * (1 + SLACK))


@inlined
def _neighbours(room: Workspace, n: int, place: int, k: int) -> tuple[float, float]:
    """Find the k and the k+1 nearest of each row that can matter, and their distances.

    These are V's k+1 nearest and theirs. Returns the sum and the largest of their ``kd``; ``sums``
    has the sums up to each row.
    """
    x, firsts, firsts1, sums = room.x, room.first, room.first1, room.sums
    kds, kds1 = room.kd, room.kd1
    padded = room.padded
    pad(x, n, k + 1, padded)
    # V's k+1 nearest reach from ``start`` on; the outermost of them bound how far theirs reach.
    start = first_of(padded, place, k + 1)
    low = first_of(padded, start, k + 1)
    high = first_of(padded, start + k + 1, k + 1) + k + 2
    padded = padded[1:]  # one infinite value less on each side
    total = largest = 0.0
    for p in range(low, high):
        first = first_of(padded, p, k)
        # The next nearest is the row just below or just above the window; infinite where it has
        # none.
        lower = x[p] - x[first - 1] if first > 0 else np.inf
        upper = x[first + k + 1] - x[p] if first + k + 1 < n else np.inf
        kd = max(x[p] - x[first], x[first + k] - x[p])
        firsts[p] = first
        firsts1[p] = first - int(lower <= upper)
        kds[p] = kd
        kds1[p] = min(lower, upper)
        sums[p] = total
        total += kd
        largest = max(largest, kd)
    sums[high] = total
    return total, largest


@inlined
def _quick_bound(room: Workspace, place: int, k: int, total: float, largest: float) -> float:
    """Return a bound that the factor stays below: most windows are far from the threshold.

    A term of R(p) is at least kd(o), so R(p) is at least the sum of those less the largest: two
    running sums and no loop.
    """
    # The one term that a removal can take away, and the rounding of two running sums.
    off = largest + ROUNDING * total
    densities = 0.0
    first1, sums, kd = room.first1, room.sums, room.kd
    start = first1[place]
    for p in range(start, start + k + 2):
        if p != place:
            first = first1[p]
            reach = sums[first + k + 2] - sums[first] - kd[p] - off
            densities += 1.0 / (max(reach, 0.0) / k + PILE)
    # V's own sum enters as a factor, so its upper bound is needed.
    _, own = _reach_bounds(room, place, k)
    bound: float = densities * (own / k + PILE) / k
    return bound


@inlined
def _bounds(room: Workspace, place: int, k: int) -> tuple[float, float]:
    """Return bounds of the factor before and after any removal.

    Each difference of two rounded numbers is moved outward by more than its error.
    """
    least = most = own_least = own_most = 0.0
    least_drop, most_drop = 0.0, np.inf
    for p in range(room.first1[place], room.first1[place] + k + 2):
        low, high = _reach_bounds(room, p, k)
        if p == place:
            own_least, own_most = low / k + PILE, high / k + PILE
        else:
            # A density falls as its sum rises: the bounds change places.
            low, high = 1.0 / (high / k + PILE), 1.0 / (low / k + PILE)
            least += low
            most += high
            least_drop, most_drop = max(least_drop, low), min(most_drop, high)
    # One of the k+1 is no neighbour: the lower bound leaves out the densest, the upper the
    # thinnest.
    least = (least * (1 - ROUNDING) - least_drop) * own_least / k
    most = (most * (1 + ROUNDING) - most_drop) * own_most / k
    return least, most


@inlined
def _reach_bounds(room: Workspace, p: int, k: int) -> tuple[float, float]:
    """Return bounds of R(p), before and after any removal."""
    x, kd, kd1 = room.x, room.kd, room.kd1
    here, start = x[p], room.first1[p]
    low = high = largest = 0.0
    smallest = np.inf
    for o in range(start, start + k + 2):
        if o != p:
            distance = abs(here - x[o])
            near, far = max(distance, kd[o]), max(distance, kd1[o])
            low += near
            high += far
            largest, smallest = max(largest, near), min(smallest, far)
    return max(0.0, low * (1 - ROUNDING) - largest), high * (1 + ROUNDING) - smallest
