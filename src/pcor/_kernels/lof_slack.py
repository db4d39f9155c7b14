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

from typing import Any, NamedTuple

import numpy as np

from pcor._kernels import inlined, kernel
from pcor._kernels.lof import PILE, first_nearest
from pcor._kernels.lof_subtree import SLACK, _sum_of_smallest
from pcor._kernels.lof_walk import Sides, Walk, box_rows, needed_count, skip_box

Array = Any

# With more candidates than this many times the neighbours that count a bound is loose, and dear.
_MANY = 2

# With so few open values that matter the windows are looked at one by one.
FEW = 3

# A look at a box costs as much as so many leaves. A box has no more leaves than fillings, and most
# have about this many.
_COST, _USUAL = 4, 24


class BoxRoom(NamedTuple):
    """Room for the rows near V that some context of a box covers.

    Attributes:
        x: the metrics of the possible rows, rising, V among them.
        sure: which of them are certain.
        certain: the metrics of those.
        low_kd: the least k-distance of each possible row.
        high_kd: the largest.
        terms: what may be added to a sum.
        forced: what is added, but for a few of them.
        densities: bounds on the densities of V's candidates.
    """

    x: Array
    sure: Array
    certain: Array
    low_kd: Array
    high_kd: Array
    terms: Array
    forced: Array
    densities: Array


@kernel
def box_room(sides: Sides) -> BoxRoom:
    """Return room for all rows."""
    rows = len(sides.values_below) + len(sides.values_above) + 1
    x, certain, low_kd, high_kd, terms, forced, densities = np.empty((7, rows))
    sure = np.empty(rows, np.bool_)
    return BoxRoom(x, sure, certain, low_kd, high_kd, terms, forced, densities)


@kernel
def box_settled(
    room: BoxRoom,
    walk: Walk,
    sides: Sides,
    rule: tuple[int, float, int],
    spare: int,
    outlier: bool,
) -> bool:
    """Tell whether V surely has one verdict in the box where the walk stands.

    Args:
        room: to work in.
        walk: where it stands.
        sides: the rows.
        rule: k, the threshold, and the smallest population.
        spare: how many rows may leave.
        outlier: the verdict to be shown.
    """
    n, place, sure = box_rows(walk, sides, room.x, room.sure, room.certain)
    return bool(rows_settled(room, (n, place, sure), rule, spare, outlier))


@kernel
def rows_settled(
    room: BoxRoom,
    size: tuple[int, int, int],
    rule: tuple[int, float, int],
    spare: int,
    outlier: bool,
) -> bool:
    """Tell the same of rows that are filled in: how many, V's place, and how many are certain."""
    n, place, sure = size
    k, threshold, smallest = rule
    # With fewer rows some distance has no bound; and V is no outlier among too few.
    if sure <= k + spare or (outlier and sure < smallest + spare):
        return False
    x, low_kd, high_kd, densities = room.x, room.low_kd, room.high_kd, room.densities
    _largest_distances(room, n, sure, k + spare)
    low, high = place, place + 1
    while low > 0 and x[place] - x[low - 1] <= high_kd[place]:
        low -= 1
    while high < n and x[high] - x[place] <= high_kd[place]:
        high += 1
    if high - low > _MANY * (k + spare):
        return False
    _least_distances(x, low_kd, n, k)
    # For "yes" the factor is bounded from below: V's sum of distances too, and those of its
    # neighbours from above. For "no" the other way round.
    sign = 1.0 if outlier else -1.0
    own_kd, other_kd = (low_kd, high_kd) if outlier else (high_kd, low_kd)
    own = _reach(room, n, place, k, spare, own_kd, sign) / k + PILE
    for o in range(low, high):
        if o != place:
            densities[o] = 1.0 / (_reach(room, n, o, k, spare, other_kd, -sign) / k + PILE)
    factor = own * _around(room, low, high, place, k, spare, sign) / k
    if outlier:
        return bool(factor * (1 - SLACK) > threshold)
    return bool(factor * (1 + SLACK) < threshold)


@kernel
def _least_distances(x: Array, low_kd: Array, n: int, k: int) -> None:
    """Fill in the k-distance of each row among the possible ones."""
    first = 0
    for p in range(n):
        first = first_nearest(x, n, p, k, first)
        low_kd[p] = max(x[p] - x[first], x[first + k] - x[p])


@inlined
def _largest_distances(room: BoxRoom, n: int, sure: int, number: int) -> None:
    """Fill in the distance of each row to so many certain ones, without itself."""
    x, certain, is_sure, high_kd = room.x, room.certain, room.sure, room.high_kd
    own = other = rank = 0
    for p in range(n):
        here = x[p]
        if is_sure[p]:
            own = first_nearest(certain, sure, rank, number, own)
            high_kd[p] = max(here - certain[own], certain[own + number] - here)
            rank += 1
        else:
            # Not one of them: the nearest are so many in a row, and begin at most that far before.
            other = max(other, rank - number)
            while (
                other < rank
                and other + number < sure
                and certain[other + number] - here < here - certain[other]
            ):
                other += 1
            high_kd[p] = max(here - certain[other], certain[other + number - 1] - here)


@inlined
def _reach(room: BoxRoom, n: int, p: int, k: int, spare: int, kd: Array, sign: float) -> float:
    """Return no more than the sum of reachability distances of a row; no less for sign -1."""
    x, sure, terms, forced = room.x, room.sure, room.terms, room.forced
    here, nearer, farthest = x[p], room.low_kd[p], room.high_kd[p]
    count = number = 0
    for step in (-1, 1):
        q = p + step
        while 0 <= q < n:
            apart = abs(here - x[q])
            if apart > farthest:
                break
            if apart < nearer and sure[q]:
                forced[number] = sign * max(apart, kd[q])
                number += 1
            else:
                terms[count] = sign * max(apart, kd[q])
                count += 1
            q += step
    return float(sign * _least_sum(terms, count, forced, number, k, spare))


@inlined
def _around(
    room: BoxRoom, low: int, high: int, place: int, k: int, spare: int, sign: float
) -> float:
    """Return no more than the sum of densities of V's neighbours; no less for sign -1."""
    x, sure, terms, forced = room.x, room.sure, room.terms, room.forced
    densities, nearer = room.densities, room.low_kd[place]
    count = number = 0
    for o in range(low, high):
        if o != place:
            if sure[o] and abs(x[place] - x[o]) < nearer:
                forced[number] = sign * densities[o]
                number += 1
            else:
                terms[count] = sign * densities[o]
                count += 1
    return float(sign * _least_sum(terms, count, forced, number, k, spare))


@kernel
def _least_sum(terms: Array, count: int, forced: Array, number: int, k: int, spare: int) -> float:
    """Return the least sum of k terms that leaves out no more than a few of the forced ones."""
    # Those that it leaves out are the largest: they may be chosen as any other.
    for _ in range(min(spare, number)):
        largest = 0
        for place in range(1, number):
            if forced[place] > forced[largest]:
                largest = place
        number -= 1
        terms[count] = forced[largest]
        forced[largest] = forced[number]
        count += 1
    total = 0.0
    for place in range(number):
        total += forced[place]
    return float(total + _sum_of_smallest(terms, count, k - number))


@kernel
def new_gains() -> Array:
    """Return counts of looks at boxes, and of those settled, by how many values they need."""
    gains = np.empty((65, 2), np.int64)
    # Nothing is known yet: a few looks are taken for granted.
    gains[:, 0], gains[:, 1] = 16, 8
    return gains


@kernel
def worth_a_look(gains: Array, walk: Walk) -> bool:
    """Tell whether boxes that need so many values were settled often enough to be looked at."""
    count = needed_count(walk)
    looks, settled = gains[count]
    leaves = min(1 << min(count, 30), _USUAL)
    return bool(settled * leaves >= looks * _COST)


@kernel
def note(gains: Array, walk: Walk, settled: bool) -> None:
    """Count a look at the box where the walk stands; skip the box if it is settled."""
    count = needed_count(walk)
    gains[count, 0] += 1
    if settled:
        gains[count, 1] += 1
        skip_box(walk)
