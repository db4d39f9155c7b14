"""Has V one verdict by LOF in all contexts between two, whichever few rows leave them?

Below a node of a walk lie all contexts that contain its ``base`` and are contained in its base and
open steps. A row is certain if they all cover it (C, with V), possible if some does (P); the rows A
of any context below lie between, and up to ``spare`` of them leave, not V. So for every row x

    kd_P(x) <= kd(x) <= the distance of x to the (k + spare)-th nearest row of C;

rows within the upper one are candidates for its k nearest, and of the certain rows nearer than the
lower one, which are forced, all but ``spare`` are among these. The factor of V is a mean of k
ratios, one for each neighbour, which ``lof_ratios`` bounds (docs/proofs/subtrees.md).

Rows are kept on each side of V up to the 2k-th certain one and as many more as may leave: no row
beyond it is among the 2k nearest of a context below, and those decide (``pcor._kernels.lof``).

Twin: judging every context below, with and without each few rows.
"""

from __future__ import annotations

from typing import Any

from pcor._kernels import inlined, kernel
from pcor._kernels.lof_near import LANES, Near, narrowest
from pcor._kernels.lof_ratios import bound_ratios, ratios_in_all

Array = Any

# How near the threshold a bound is not believed: rounding moves the factor, and what it is compared
# with, by less (docs/proofs/subtrees.md).
_SLACK = 1e-9

# With more candidates than this many times k and those who may leave a bound would be loose.
_MANY = 2

# One row less changes the factor by about so much of it: closer boxes are not settled.
_STIR = 0.07


@kernel
def settled(
    near: Near,
    size: tuple[int, int, int],
    candidates: tuple[int, int],
    theirs: tuple[int, int],
    rule: tuple[int, float, int],
    spare: int,
) -> bool:
    """Tell whether bounds show that V has one verdict in all contexts below, whoever leaves.

    Args:
        near: the rows, with ``high_kd`` of those that can be neighbours of V's neighbours.
        size: how many rows there are, V's place, and how many are certain: more than k + ``spare``.
        candidates: where V's begin and end (``that_matter``).
        theirs: where those of its candidates do.
        rule: k, the threshold, and the smallest population.
        spare: how many may leave.
    """
    n, place, sure = size
    k, threshold, smallest = rule
    if candidates[1] - candidates[0] > min(_MANY * (k + spare), LANES):
        return False
    narrowest(near, n, theirs[0], theirs[1], k)
    # Only the verdict in the context of all possible rows can be that of all contexts.
    factor = ratios_in_all(near, candidates, place, k, spare)
    if abs(factor - threshold) < spare * _STIR * threshold:
        return False
    if factor > threshold:
        # V is no outlier among too few.
        if sure < smallest + spare:
            return False
        bound_ratios(near, place, candidates, theirs, k, spare, False)
        least = _least_mean(near, candidates, place, k, spare, 1.0)
        return bool(least * (1 - _SLACK) > threshold)
    bound_ratios(near, place, candidates, theirs, k, spare, True)
    most = _least_mean(near, candidates, place, k, spare, -1.0)
    return bool(most * (1 + _SLACK) < threshold)


@inlined
def _least_mean(
    near: Near, candidates: tuple[int, int], place: int, k: int, spare: int, sign: float
) -> float:
    """Return no more than the mean of V's ratios; no less for a sign of -1."""
    x, terms, forced = near.x, near.terms, near.forced
    count = number = 0
    for o in range(candidates[0], candidates[1]):
        if o != place:
            if near.sure[o] and abs(x[place] - x[o]) < near.low_kd[place]:
                forced[number] = sign * near.ratios[o]
                number += 1
            else:
                terms[count] = sign * near.ratios[o]
                count += 1
    # Those that are left out of the forced ones are the largest: they may be chosen as any other.
    for _ in range(min(spare, number)):
        largest = 0
        for at in range(1, number):
            if forced[at] > forced[largest]:
                largest = at
        number -= 1
        terms[count] = forced[largest]
        forced[largest] = forced[number]
        count += 1
    total = 0.0
    for at in range(number):
        total += forced[at]
    return float(sign * (total + _sum_of_smallest(terms, count, k - number)) / k)


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
    for at in range(left):
        total += terms[at]
    return total
