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

from typing import Any, NamedTuple

import numpy as np

from pcor._kernels import inlined, kernel
from pcor._kernels.lof import PILE, WindowRoom, first_of, pad, window_parts, window_room

Array = Any

# How near the threshold a bound is not believed. Rounding moves a factor, and the bound on it, by
# less than (6k + 20) * 2^-53 of it: below 1e-12 with at most 100 neighbours.
SLACK = 1e-9

# With more candidates than this many times k a bound would be loose, and dear.
_MANY = 2

# More than what each term of a sum of more than k positive ones adds to its relative rounding.
_ROUNDING = 4e-16


class Near(NamedTuple):
    """The rows near V that some context below a node covers, and room for bounds on its factor.

    Attributes:
        x: the metrics of the possible rows, rising, V among them.
        required: the steps that each needs.
        sure: which of them are certain.
        c: the metrics of some of them, rising.
        low_kd: kd_P of each possible row.
        high_kd: kd_C of each possible row.
        terms: what may be added to a sum, the smallest first.
        others: the same for a second sum.
        densities: bounds on the densities of V's candidates.
        padded: rows between others that are infinitely far.
        window: for the exact verdict.
    """

    x: Array
    required: Array
    sure: Array
    c: Array
    low_kd: Array
    high_kd: Array
    terms: Array
    others: Array
    densities: Array
    padded: Array
    window: WindowRoom


@kernel
def room_for(rows: int, k: int) -> Near:
    """Return room for nodes with at most so many possible rows."""
    x, c, low_kd, high_kd, terms, others, densities = np.empty((7, rows))
    required, sure = np.empty(rows, np.uint64), np.empty(rows, np.bool_)
    more = np.empty(rows + 2 * k + 1), window_room(k)
    return Near(x, required, sure, c, low_kd, high_kd, terms, others, densities, *more)


@kernel
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
        near: the rows, with kd_C of each (``widest``).
        n: how many are possible.
        place: V's place among them.
        rule: k, the threshold, and the smallest population.
        all_valid: the verdict to be shown.
        around: the sum of densities around V in a context below, the most telling one known.
    """
    k, threshold, _ = rule
    low, high = _candidates(near, n, place)
    if high - low > _MANY * k:
        return False
    # First V's own bound with the densities of one context: most attempts end there.
    if all_valid:
        _narrowest(near, n, k)
        own = _least(near, n, place, k) / k + PILE
        if own * around / k <= threshold:
            return False
    else:
        own = _most(near, n, place, k) / k + PILE
        if own * around / k >= threshold:
            return False
        _narrowest(near, n, k)
    # Then loose bounds on the densities, at a tenth of the price, which are enough for most boxes.
    for loose in (True, False):
        if all_valid:
            _bound_densities(near, n, low, high, k, near.high_kd, -1.0, loose)
            if _factor(near, n, place, k, near.low_kd, 1.0) * (1 - SLACK) > threshold:
                return True
        else:
            _bound_densities(near, n, low, high, k, near.low_kd, 1.0, loose)
            if _factor(near, n, place, k, near.high_kd, -1.0) * (1 + SLACK) < threshold:
                return True
    return False


@kernel
def _bound_densities(
    near: Near, n: int, low: int, high: int, k: int, kd: Array, sign: float, loose: bool
) -> None:
    """Fill in the most that the densities of some rows can be; with a sign of -1 the least."""
    if loose:
        _bound_loosely(near, n, low, high, k, kd, sign)
        return
    for o in range(low, high):
        reach = _reach(near.x, near.sure, kd, near.terms, n, o, k, sign)
        near.densities[o] = 1.0 / (reach / k + PILE)


@kernel
def _bound_loosely(near: Near, n: int, low: int, high: int, k: int, kd: Array, sign: float) -> None:
    """Do the same by sums that are no more than those of ``_reach``; with a sign of -1 no less.

    Certain rows nearer to a row than kd_P are among its k nearest. Of the others, m are left to be
    chosen, and the m smallest of some terms add up to at least m * t less what each is below t, for
    any t: the nearer t to the m-th, the tighter. No sorting, and no sum waits for another.
    """
    x, forced, level, reach = near.x, near.low_kd[low:high], kd[low:high], near.high_kd[low:high]
    own, size = x[low:high], high - low
    total, beyond, number = near.terms[:size], near.others[:size], near.c[:size]
    total[:] = beyond[:] = number[:] = 0.0
    for q in range(n):
        here, farther = x[q], kd[q]
        if near.sure[q]:
            for o in range(size):
                apart = abs(own[o] - here)
                term = max(apart, farther)
                within = 1.0 if apart < forced[o] else 0.0
                number[o] += within
                total[o] += within * term
                over = max(sign * (level[o] - term), 0.0)
                beyond[o] += (1.0 - within) * (over if apart <= reach[o] else 0.0)
        else:
            for o in range(size):
                apart = abs(own[o] - here)
                over = max(sign * (level[o] - max(apart, farther)), 0.0)
                beyond[o] += over if apart <= reach[o] else 0.0
    for o in range(size):
        # Each row met itself, as if it were a neighbour of its own.
        itself = near.sure[low + o] and forced[o] > 0
        rest = (k - number[o] + itself) * level[o]
        some = total[o] - itself * level[o] + rest
        # Differences, so that rounding is that of what they are taken from.
        rounding = n * _ROUNDING * (total[o] + rest + beyond[o])
        least = max(some - sign * (beyond[o] + rounding), 0.0)
        near.densities[low + o] = 1.0 / (least / k + PILE)


@kernel
def _narrowest(near: Near, n: int, k: int) -> None:
    """Fill in the k-distance of each row among the possible ones."""
    x, padded = near.x, near.padded
    pad(x, n, k, padded)
    for p in range(n):
        first = first_of(padded, p, k)
        near.low_kd[p] = max(x[p] - x[first], x[first + k] - x[p])


@kernel
def widest(near: Near, n: int, k: int) -> None:
    """Fill in the k-distance of each row among the certain ones, more than k, and itself."""
    c, sure, padded = near.c, 0, near.padded
    for p in range(n):
        c[sure] = near.x[p]
        sure += near.sure[p]
    pad(c, sure, k, padded)
    rank = 0
    for p in range(n):
        x = near.x[p]
        if near.sure[p]:
            first = first_of(padded, rank, k)
            near.high_kd[p] = max(x - c[first], c[first + k] - x)
            rank += 1
        else:
            # Not one of them: its k nearest are k in a row, and begin at most k before it.
            moves = 0
            for j in range(rank, rank + k):
                moves += padded[k + j] - x < x - padded[j]
            first = rank - k + moves
            near.high_kd[p] = max(x - c[first], c[first + k - 1] - x)


@kernel
def that_matter(near: Near, n: int, place: int) -> tuple[int, int]:
    """Return where the rows begin and end that decide V's factor in any context below.

    Those within kd_C of V, within kd_C of these, and within kd_C of those.
    """
    x, reach = near.x, near.high_kd
    low, high = place, place + 1
    for _ in range(3):
        for p in range(low, high):
            while low > 0 and x[p] - x[low - 1] <= reach[p]:
                low -= 1
            while high < n and x[high] - x[p] <= reach[p]:
                high += 1
    return low, high


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
