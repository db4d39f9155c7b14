"""Is V an outlier by LOF in every context between two, or in none? Bounds from rows near V.

Below a node of a walk lie all contexts that contain its ``base`` and are contained in its base and
open steps. A row is certain if they all cover it (C, with V), possible if some does (P); the rows A
of any context below lie between. So for every row x of A

    kd_P(x) <= kd_A(x) <= kd_C(x),

and the k nearest of x in A are possible rows within kd_C(x), among them every certain row that is
nearer than its farthest neighbour. For each row that can be that neighbour the sum of reachability
distances of x is hence at least that of the nearer certain rows with the smallest others, k in all,
each max(d, kd_P); and at most that with the largest others, each max(d, kd_C). One over the sum is
a density, and the factor of V is bounded in the same way (docs/proofs/subtrees.md).

Rows are kept on each side of V up to the 2k-th certain one: no row beyond it is among the 2k
nearest of a context below, and those decide (``pcor._kernels.lof``). Of these only the rows matter
that are within kd_C of V, of such a row, or of one within kd_C of such a row.

Twin: judging every context below.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pcor._kernels import inlined, kernel
from pcor._kernels.lof import PILE, window_parts
from pcor._kernels.lof_near import MANY, SLACK, Near, loose_densities, narrowest, within_reach

Array = Any


@inlined
def exact_verdict(
    near: Near, x: Array, n: int, place: int, rule: tuple[int, float, int]
) -> tuple[bool, float, float]:
    """Judge V among some rows and no others; return the densities around it and its own too."""
    if n < rule[2]:
        return False, 0.0, 0.0
    parts: tuple[bool, float, float] = window_parts(x, n, place, rule, near.window)
    return parts


@kernel
def settled(
    near: Near, n: int, place: int, rule: tuple[int, float, int], all_valid: bool, around: float
) -> bool:
    """Tell whether bounds show that V has one verdict in all contexts below.

    Args:
        near: the rows, with kd_C of each (``that_matter``).
        n: how many are possible.
        place: V's place among them.
        rule: k, the threshold, and the smallest population.
        all_valid: the verdict to be shown.
        around: the sum of densities around V in a context below, the most telling one known.
    """
    k, threshold, _ = rule
    low, high = within_reach(near.x, near.high_kd, n, place, place + 1)
    if high - low > MANY * k:
        return False
    first, last = within_reach(near.x, near.high_kd, n, low, high)
    # First V's own bound with the densities of one context: many attempts end there.
    if all_valid:
        narrowest(near, n, first, last, k)
        own = _least(near, n, place, k) / k + PILE
        if own * around / k <= threshold:
            return False
    else:
        own = _most(near, n, place, k) / k + PILE
        if own * around / k >= threshold:
            return False
        narrowest(near, n, first, last, k)
    # Then loose bounds on the densities: tighter ones cost ten times as much, and settle few more.
    if all_valid:
        loose_densities(near, n, (low, high), k, 0, near.high_kd, -1.0)
        least = _factor(near, n, place, k, near.low_kd, 1.0)
        return bool(least * (1 - SLACK) > threshold)
    loose_densities(near, n, (low, high), k, 0, near.low_kd, 1.0)
    most = _factor(near, n, place, k, near.high_kd, -1.0)
    return bool(most * (1 + SLACK) < threshold)


@kernel
def _least(near: Near, n: int, p: int, k: int) -> float:
    """Return no more than the sum of reachability distances of a row."""
    return float(_reach(near.x, near.sure, near.low_kd, near.terms, n, p, k, 1.0))


@kernel
def _most(near: Near, n: int, p: int, k: int) -> float:
    """Return no less than the sum of reachability distances of a row."""
    return float(_reach(near.x, near.sure, near.high_kd, near.terms, n, p, k, -1.0))


@inlined
def _reach(
    x: Array, sure: Array, kd: Array, terms: Array, n: int, p: int, k: int, sign: float
) -> float:
    """Return the smallest sum of max(d, kd) over rows that can be the k nearest of a row.

    With a sign of -1 the largest sum.
    """
    own, low, high = x[p], p - 1, p + 1
    best, total, count, left = np.inf, 0.0, 0, k - 1
    # Outward, until the k-th certain row was the farthest neighbour.
    while left >= 0 and (low >= 0 or high < n):
        # The lower one wins a tie, as it does in the detector.
        if high >= n or (low >= 0 and own - x[low] <= x[high] - own):
            q, low = low, low - 1
        else:
            q, high = high, high + 1
        term = sign * max(abs(own - x[q]), kd[q])
        if left <= count:
            some = total + term
            for place in range(left):
                some += terms[place]
            best = min(best, some)
        if sure[q]:
            total += term
            left -= 1
        else:
            _insert(terms, count, term)
            count += 1
    return float(sign * best)


@kernel
def _factor(near: Near, n: int, p: int, k: int, kd: Array, sign: float) -> float:
    """Return the smallest factor of V by its bounds on densities; with a sign of -1 the largest.

    For each row that can be V's farthest neighbour the sum of distances times that of densities.
    """
    x, own, terms, others = near.x, near.x[p], near.terms, near.others
    low, high = p - 1, p + 1
    best, total, around, count, left = np.inf, 0.0, 0.0, 0, k - 1
    while left >= 0 and (low >= 0 or high < n):
        # The lower one wins a tie, as it does in the detector.
        if high >= n or (low >= 0 and own - x[low] <= x[high] - own):
            q, low = low, low - 1
        else:
            q, high = high, high + 1
        term, density = sign * max(abs(own - x[q]), kd[q]), sign * near.densities[q]
        if left <= count:
            reach, densities = total + term, around + density
            for place in range(left):
                reach += terms[place]
                densities += others[place]
            best = min(best, (sign * reach / k + PILE) * densities / k)
        if near.sure[q]:
            total += term
            around += density
            left -= 1
        else:
            _insert(terms, count, term)
            _insert(others, count, density)
            count += 1
    return float(sign * best)


@inlined
def _insert(terms: Array, count: int, term: float) -> None:
    """Insert a term among rising ones."""
    at = count
    while at > 0 and terms[at - 1] > term:
        terms[at] = terms[at - 1]
        at -= 1
    terms[at] = term
