"""Is V an outlier by LOF in every context between two, or in none? Bounds from rows near V.

Below a node of a walk lie all contexts that contain its ``base`` and are contained in its base and
open steps. A row is certain if they all cover it (C, with V), possible if some does (P); the rows A
of any context below lie between. So for every row x of A

    kd_P(x) <= kd_A(x) <= kd_C(x),

and the k nearest of x in A are possible rows within kd_C(x), among them every certain row that is
nearer than kd_P(x): the forced ones. The sum of reachability distances of x is hence at least that
of the forced with the smallest others, k in all, each max(d, kd_P); and at most that of the forced
with the largest others, each max(d, kd_C). One over it is a density, and the factor of V is bounded
in the same way from the bounds on densities (docs/proofs/subtrees.md).

Rows are kept on each side of V up to the 2k-th certain one: no row beyond it is among the 2k
nearest of a context below, and those decide (``pcor._kernels.lof``).

Twin: judging every context below.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from pcor._kernels import kernel
from pcor._kernels.lof import PILE, first_nearest, window_parts

Array = Any

# How near the threshold a bound is not believed. Rounding moves a factor, and the bound on it, by
# less than (6k + 20) * 2^-53 of it: below 1e-12 with at most 100 neighbours.
SLACK = 1e-9

# With more candidates than this many times k a bound would be loose, and dear.
_MANY = 2


class Near(NamedTuple):
    """The rows near V that some context below a node covers, and room for bounds on its factor.

    Attributes:
        x: the metrics of the possible rows, rising, V among them.
        required: the steps that each needs.
        sure: which of them are certain.
        c: the metrics of some of them, rising: of the certain ones, where bounds are asked for.
        low_kd: kd_P of each possible row.
        high_kd: kd_C of each possible row.
        terms: what may be added to a sum.
        densities: bounds on the densities of V's candidates.
        first: for the exact verdict.
        kd: for the exact verdict.
    """

    x: Array
    required: Array
    sure: Array
    c: Array
    low_kd: Array
    high_kd: Array
    terms: Array
    densities: Array
    first: Array
    kd: Array


@kernel
def room_for(rows: int, k: int) -> Near:
    """Return room for nodes with at most so many possible rows."""
    x, c, low_kd, high_kd, terms, densities = np.empty((6, rows))
    required, sure = np.empty(rows, np.uint64), np.empty(rows, np.bool_)
    exact = np.empty(4 * k + 1, np.int64), np.empty(4 * k + 1)
    return Near(x, required, sure, c, low_kd, high_kd, terms, densities, *exact)


@kernel
def exact_verdict(
    near: Near, x: Array, n: int, place: int, rule: tuple[int, float, int]
) -> tuple[bool, float]:
    """Judge V among some rows and no others; return the sum of its neighbours' densities too."""
    if n < rule[2]:
        return False, 0.0
    verdict: tuple[bool, float] = window_parts(x, n, place, rule, near.first, near.kd)
    return verdict


@kernel
def settled(
    near: Near,
    n: int,
    place: int,
    sure: int,
    rule: tuple[int, float, int],
    all_valid: bool,
    around: float,
) -> bool:
    """Tell whether bounds show that V has one verdict in all contexts below.

    Args:
        near: the rows.
        n: how many are possible.
        place: V's place among them.
        sure: how many are certain.
        rule: k, the threshold, and the smallest population.
        all_valid: the verdict to be shown.
        around: the sum of densities around V in a context below, the most telling one known.
    """
    k, threshold, _ = rule
    # With k rows or fewer some distance has no bound.
    if sure <= k:
        return False
    _widest(near, n, sure, k)
    low, high = _candidates(near, n, place)
    if high - low > _MANY * k:
        return False
    _narrowest(near, n, k)
    if all_valid:
        own = _least(near, n, place, k) / k + PILE
        # The sum below is at most what it is in any one context: most attempts end here.
        if own * around / k <= threshold:
            return False
        for o in range(low, high):
            if o != place:
                near.densities[o] = 1.0 / (_most(near, n, o, k) / k + PILE)
        factor = own * _around(near, low, high, place, k, 1.0) / k
        return bool(factor * (1 - SLACK) > threshold)
    own = _most(near, n, place, k) / k + PILE
    if own * around / k >= threshold:
        return False
    for o in range(low, high):
        if o != place:
            near.densities[o] = 1.0 / (_least(near, n, o, k) / k + PILE)
    factor = own * _around(near, low, high, place, k, -1.0) / k
    return bool(factor * (1 + SLACK) < threshold)


@kernel
def _narrowest(near: Near, n: int, k: int) -> None:
    """Fill in the k-distance of each row among the possible ones."""
    first = 0
    for p in range(n):
        first = first_nearest(near.x, n, p, k, first)
        near.low_kd[p] = max(near.x[p] - near.x[first], near.x[first + k] - near.x[p])


@kernel
def _widest(near: Near, n: int, sure: int, k: int) -> None:
    """Fill in the k-distance of each row among the certain ones and itself."""
    c = near.c
    own = other = rank = 0
    for p in range(n):
        x = near.x[p]
        if near.sure[p]:
            own = first_nearest(c, sure, rank, k, own)
            near.high_kd[p] = max(x - c[own], c[own + k] - x)
            rank += 1
        else:
            # Not one of them: its k nearest are k in a row, and begin at most k before it.
            other = max(other, rank - k)
            while other < rank and other + k < sure and c[other + k] - x < x - c[other]:
                other += 1
            near.high_kd[p] = max(x - c[other], c[other + k - 1] - x)


@kernel
def _candidates(near: Near, n: int, p: int) -> tuple[int, int]:
    """Return the places of the rows that can be among the k nearest of a row, with itself."""
    x, reach = near.x, near.high_kd[p]
    low, high = p, p + 1
    while low > 0 and x[p] - x[low - 1] <= reach:
        low -= 1
    while high < n and x[high] - x[p] <= reach:
        high += 1
    return low, high


@kernel
def _least(near: Near, n: int, p: int, k: int) -> float:
    """Return no more than the sum of reachability distances of a row."""
    return float(_reach(near, n, p, k, near.low_kd, 1.0))


@kernel
def _most(near: Near, n: int, p: int, k: int) -> float:
    """Return no less than the sum of reachability distances of a row."""
    return float(_reach(near, n, p, k, near.high_kd, -1.0))


@kernel
def _reach(near: Near, n: int, p: int, k: int, kd: Array, sign: float) -> float:
    """Return the sum of max(d, kd) over the forced rows and the smallest others, k in all.

    With a sign of -1 over the forced and the largest others.
    """
    x, own, terms = near.x, near.x[p], near.terms
    forced, farthest = near.low_kd[p], near.high_kd[p]
    total, count, left = 0.0, 0, k
    for side in range(2):
        step = 1 if side else -1
        q = p + step
        while 0 <= q < n:
            apart = abs(own - x[q])
            if apart > farthest:
                break
            term = max(apart, kd[q])
            if apart < forced and near.sure[q]:
                total += term
                left -= 1
            else:
                terms[count] = sign * term
                count += 1
            q += step
    return float(total + sign * _sum_of_smallest(terms, count, left))


@kernel
def _around(near: Near, low: int, high: int, place: int, k: int, sign: float) -> float:
    """Return the sum of densities of V's forced neighbours and the smallest others; or largest."""
    x, forced = near.x, near.low_kd[place]
    total, count, left = 0.0, 0, k
    for o in range(low, high):
        if o != place:
            if near.sure[o] and abs(x[place] - x[o]) < forced:
                total += near.densities[o]
                left -= 1
            else:
                near.terms[count] = sign * near.densities[o]
                count += 1
    return float(total + sign * _sum_of_smallest(near.terms, count, left))


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
