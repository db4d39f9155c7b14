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
from pcor._kernels.lof import PILE
from pcor._kernels.lof_near import (
    MANY,
    SLACK,
    Near,
    loose_densities,
    narrowest,
    room_for,
    that_matter,
    within_reach,
)
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
    near: Near, gains: Array, walk: Walk, sides: Sides, rule: tuple[int, float, int], outlier: bool
) -> None:
    """Skip the box where the walk stands if V surely has one verdict there, whoever leaves.

    If not, drop the rows that matter in none of its contexts.

    Args:
        near: room for the rows.
        gains: how often a look was worth it.
        walk: where it stands.
        sides: the rows.
        rule: k, the threshold, and the smallest population.
        outlier: the verdict to be shown.
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
        if rows_settled(near, size, some, rule, 1, outlier):
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


@kernel
def rows_settled(
    near: Near,
    size: tuple[int, int, int],
    some: tuple[int, int],
    rule: tuple[int, float, int],
    spare: int,
    outlier: bool,
) -> bool:
    """Tell whether V surely has one verdict in a box, whoever leaves.

    Args:
        near: the rows, with ``high_kd`` of those that can be neighbours of V's neighbours.
        size: how many rows there are, V's place, and how many are certain: more than k + ``spare``.
        some: where those begin and end.
        rule: k, the threshold, and the smallest population.
        spare: how many may leave.
        outlier: the verdict to be shown.
    """
    n, place, sure = size
    k, threshold, smallest = rule
    # V is no outlier among too few.
    if outlier and sure < smallest + spare:
        return False
    low, high = within_reach(near.x, near.high_kd, n, place, place + 1)
    if high - low > MANY * (k + spare):
        return False
    narrowest(near, n, some[0], some[1], k)
    # For "yes" the factor is bounded from below: V's sum of distances too, and those of its
    # neighbours from above. For "no" the other way round.
    sign = 1.0 if outlier else -1.0
    own_kd, other_kd = (near.low_kd, near.high_kd) if outlier else (near.high_kd, near.low_kd)
    loose_densities(near, n, (low, high), k, spare, other_kd, -sign)
    own = _reach(near, n, place, k, spare, own_kd, sign) / k + PILE
    factor = own * _around(near, low, high, place, k, spare, sign) / k
    if outlier:
        return bool(factor * (1 - SLACK) > threshold)
    return bool(factor * (1 + SLACK) < threshold)


@inlined
def _reach(near: Near, n: int, p: int, k: int, spare: int, kd: Array, sign: float) -> float:
    """Return no more than the sum of reachability distances of a row; no less for sign -1."""
    x, sure, terms, forced = near.x, near.sure, near.terms, near.others
    here, nearer, farthest = x[p], near.low_kd[p], near.high_kd[p]
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
def _around(near: Near, low: int, high: int, place: int, k: int, spare: int, sign: float) -> float:
    """Return no more than the sum of densities of V's neighbours; no less for sign -1."""
    x, sure, terms, forced = near.x, near.sure, near.terms, near.others
    densities, nearer = near.densities, near.low_kd[place]
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


@kernel
def _sum_of_smallest(terms: Array, count: int, left: int) -> float:
    """Return the sum of the ``left`` smallest of ``count`` terms, which are reordered."""
    low, high = 0, count - 1
    # Quickselect: everything before ``left`` is then at most what comes after.
    while low < high and 0 < left < count:
        pivot = terms[(low + high) // 2]
        i, j = low, high
        while i <= j:
            while terms[i] < pivot:
                i += 1
            while terms[j] > pivot:
                j -= 1
            if i <= j:
                terms[i], terms[j] = terms[j], terms[i]
                i += 1
                j -= 1
        if left <= j:
            high = j
        elif left > i:
            low = i
        else:
            break
    total = 0.0
    for place in range(left):
        total += terms[place]
    return total
