"""Bounds on the ratios whose mean is a local outlier factor.

The factor of V is the mean of r(V) / r(o) over its neighbours o, where r(x) is the sum of
max(d(x, q), kd(q)) over the k nearest q of x (to each r(x) k * 1e-10 is added). Below a node of a
walk neither the rows of a context are known nor their kd. But a row that is there is there for V
and for o at once, and its kd counts in both sums: for a number a near the ratio r(V) - a r(o)
varies little where r(V) and r(o) vary much. For each row the worst that it can do to this
difference is added up, for all o side by side (docs/proofs/subtrees.md).

Twin: the definition, in every context between and without every few rows.
"""

from __future__ import annotations

import numpy as np

from pcor._kernels import inlined, kernel
from pcor._kernels.lof import PILE
from pcor._kernels.lof_near import LANES, Near

# The lanes of ``Near``: for each candidate its metric, its two k-distances, the multiple of its
# sum, the differences added up, and the most that one row less adds to that. They are parts of one
# array at distances that the compiler knows: it would not work on candidates side by side if it had
# to ask whether what is written is also read.
_NARROW, _WIDE, _TIMES, _TOTAL, _WORST = (LANES * number for number in range(1, 6))

# Any multiple will do. With larger ones than this rounding would count.
_MOST = 1e4

# More than what each of n terms adds to the rounding of their sum, relative to n of the largest.
_ROUNDING = 4e-16

# Sums of k positive terms are off by less.
_LESS = 1 - 1e-12


@kernel
def ratios_in_all(near: Near, candidates: tuple[int, int], place: int, k: int, spare: int) -> float:
    """Fill in the ratios in the context of all possible rows, and the least sums.

    Args:
        near: the rows, with ``low_kd`` and ``first`` of the candidates.
        candidates: where V's begin and end.
        place: V's place.
        k: how many neighbours.
        spare: how many rows may leave.

    Returns:
        V's factor there, but for rounding.
    """
    low, high = candidates
    lanes, least = near.lanes, near.least
    own, least[place] = _sums(near, place, k, spare)
    lanes[_TIMES + place - low] = 1.0
    for o in range(low, high):
        if o != place:
            total, least[o] = _sums(near, o, k, spare)
            lanes[_TIMES + o - low] = min(own / total, _MOST)
    factor = 0.0
    for o in range(near.first[place], near.first[place] + k + 1):
        if o != place:
            factor += lanes[_TIMES + o - low]
    return factor / k


@inlined
def _sums(near: Near, p: int, k: int, spare: int) -> tuple[float, float]:
    """Return r of a row in the context of all possible rows, and no more than r in any."""
    x, kd, first = near.x, near.low_kd, near.first[p]
    total = least = largest = 0.0
    for q in range(first, first + k + 1):
        if q != p:
            apart = abs(x[p] - x[q])
            term = max(apart, kd[q])
            total += term
            # Who is surely among the nearest counts whole, others as no more than the farthest.
            over = max(term - kd[p], 0.0) if near.sure[q] and apart < kd[p] else 0.0
            least += min(term, kd[p]) + over
            largest = max(largest, over)
    return total + k * PILE, max(_LESS * least - spare * largest, 0.0) + k * PILE


@inlined
def worst_of_both(
    far: float, apart: float, times: float, least: float, most: float, sign: float
) -> float:
    """Return the most that max(far, kd) - times * max(apart, kd) can be, or its negative can.

    It bends where kd passes a distance, so that it is largest there or at the end: if kd is below
    both it does not change, and between them it falls or rises as one of the terms does.
    """
    turn = min(max(apart if sign > 0 else far, least), most)
    here = max(far, turn) - times * max(apart, turn)
    last = max(far, most) - times * max(apart, most)
    return max(sign * here, sign * last)


@kernel
def bound_ratios(
    near: Near,
    place: int,
    candidates: tuple[int, int],
    theirs: tuple[int, int],
    k: int,
    spare: int,
    upper: bool,
) -> None:
    """Fill in bounds on V's ratios: ``ratios`` of each candidate, where it is a neighbour.

    Args:
        near: the rows, with what ``ratios_in_all`` fills in, and both k-distances of all that can
            be neighbours of the candidates.
        place: V's place.
        candidates: where V's begin and end.
        theirs: where those of its candidates do.
        k: how many neighbours.
        spare: how many rows may leave.
        upper: whether the ratios are bounded from above.
    """
    x, lanes, (low, high), (first, last) = near.x, near.lanes, candidates, theirs
    size, sign = high - low, 1.0 if upper else -1.0
    for o in range(size):
        lanes[o] = x[low + o]
        lanes[_NARROW + o], lanes[_WIDE + o] = near.low_kd[low + o], near.high_kd[low + o]
        lanes[_TOTAL + o] = lanes[_WORST + o] = 0.0
    narrow, wide = near.low_kd[place], near.high_kd[place]
    # What rows that are not neighbours of V stand for in its sum: about the distance of its
    # farthest neighbour.
    level, largest = 0.25 * narrow + 0.75 * wide, 0.0
    for q in range(first, last):
        at, least, most = x[q], near.low_kd[q], near.high_kd[q]
        largest = max(largest, most)
        far = abs(x[place] - at)
        # The kd with which q does most in one of the sums alone.
        for_own, for_other = (most, least) if upper else (least, most)
        # What cannot be is infinitely bad: that a certain row is not there.
        absent = -np.inf if near.sure[q] else 0.0
        leaves = 1.0 if near.sure[q] and q != place else 0.0
        if q == place or far > wide:
            for o in range(size):
                apart = abs(lanes[o] - at)
                other = sign * (level - lanes[_TIMES + o] * max(apart, for_other))
                other = other if apart <= lanes[_WIDE + o] else 0.0
                term = max(other, absent if apart < lanes[_NARROW + o] else 0.0)
                lanes[_TOTAL + o] += term
                lanes[_WORST + o] = max(lanes[_WORST + o], -leaves * term)
            continue
        # A neighbour of V for sure if it is there, or perhaps.
        neither = -np.inf if far < narrow else 0.0
        own = sign * (max(far, for_own) - level)
        alone = max(own, neither)
        total, worst = lanes[_TOTAL + q - low], lanes[_WORST + q - low]
        for o in range(size):
            apart, times = abs(lanes[o] - at), lanes[_TIMES + o]
            both = worst_of_both(far, apart, times, least, most, sign)
            other = sign * (level - times * max(apart, for_other)) + neither
            term = max(both, other) if apart <= lanes[_WIDE + o] else -np.inf
            term = max(term, alone if apart >= lanes[_NARROW + o] else -np.inf)
            term = max(term, absent)
            lanes[_TOTAL + o] += term
            lanes[_WORST + o] = max(lanes[_WORST + o], -leaves * term)
        # In its own lane it is a neighbour of V, and none of itself.
        lanes[_TOTAL + q - low], lanes[_WORST + q - low] = total + own, worst
    least_own, n = _LESS * near.least[place], last - first
    for o in range(size):
        times = lanes[_TIMES + o]
        apart = lanes[_TOTAL + o] + spare * lanes[_WORST + o] + sign * (1.0 - times) * k * PILE
        apart += _ROUNDING * (2.0 + times) * (largest + k * PILE) * n * (n + 4)
        apart = max(apart, 0.0)
        if upper:
            least = max(_LESS * near.least[low + o], (least_own - apart) / times)
            near.ratios[low + o] = times + apart / least
        else:
            near.ratios[low + o] = times * least_own / (least_own + apart)
