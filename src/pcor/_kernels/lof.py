"""LOF of one record in many contexts.

Source: Breunig et al. 2000, as ``pcor.detectors.lof`` states it; its ``LOF.verdict`` is the twin,
equal to the last bit because both add the same terms in the same order.

LOF is local. Values are taken with their multiplicity in rising order. V's neighbours lie within k
places of V, theirs within 2k. The k-distance of such an outer value o' counts only where it is
above |o - o'|; if o' is j places from o, the j values from o on are then among its k nearest, so at
most k-j lie beyond: within 2k places of V again. So 2k values on each side decide.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pcor._kernels import kernel
from pcor._kernels.coverage import covers

Array = Any

PILE = 1e-10


@kernel
def lof_verdicts(
    masks: Array,
    required: Array,
    values: Array,
    counts: Array,
    at: int,
    rule: tuple[int, float, int],
    out: Array,
) -> None:
    """Tell for each context whether V is an outlier.

    Args:
        masks: the contexts, each of which covers V.
        required: the required bits of each pair.
        values: the metric of each pair, rising.
        counts: the rows of each pair.
        at: the first pair with V's value.
        rule: k, the threshold, and the smallest population (not above 2k+1).
        out: one boolean per context.
    """
    k, threshold, smallest = rule
    # Room for one window, used again for every context.
    window = np.empty(4 * k + 1)
    start = np.empty(4 * k + 1, np.int64)
    kd = np.empty(4 * k + 1)
    for row in range(len(masks)):
        below = _gather_below(masks[row], required, values, counts, at, window)
        above = _gather_above(masks[row], required, values, counts, at, window)
        # ``smallest`` is at most 2k+1, so a window that was cut off at 2k on a side has enough.
        if below + above < smallest:
            out[row] = False
        else:
            x = window[2 * k - below : 2 * k + above]
            out[row] = _factor(x, below, k, start, kd) > threshold


@kernel
def _gather_below(
    mask: Array, required: Array, values: Array, counts: Array, at: int, window: Array
) -> int:
    """Put the 2k nearest values below V before the middle of the window; return how many."""
    wanted = len(window) // 2
    found = 0
    pair = at - 1
    while pair >= 0 and found < wanted:
        if covers(mask, required, pair):
            # Equal rows are spelled out: each is a neighbour of its own.
            for _ in range(min(counts[pair], wanted - found)):
                found += 1
                window[wanted - found] = values[pair]
        pair -= 1
    return found


@kernel
def _gather_above(
    mask: Array, required: Array, values: Array, counts: Array, at: int, window: Array
) -> int:
    """Put V and the 2k nearest values not below it from the middle on; return how many."""
    wanted = len(window) // 2 + 1
    found = 0
    pair = at
    while pair < len(values) and found < wanted:
        if covers(mask, required, pair):
            for _ in range(min(counts[pair], wanted - found)):
                window[wanted - 1 + found] = values[pair]
                found += 1
        pair += 1
    return found


@kernel
def _factor(x: Array, place: int, k: int, start: Array, kd: Array) -> float:
    """Return the local outlier factor of ``x[place]``; ``x`` rises."""
    first = 0
    for p in range(len(x)):
        # The k+1 nearest places are a window that never moves back; at a tie the lower stay.
        first = max(first, p - k)
        while first < p and first + k + 1 < len(x) and x[first + k + 1] - x[p] < x[p] - x[first]:
            first += 1
        start[p] = first
        kd[p] = max(x[p] - x[first], x[first + k] - x[p])
    # From the lowest neighbour to the highest: the order in which the twin adds.
    around = 0.0
    for o in range(start[place], start[place] + k + 1):
        if o != place:
            around += _density(x, o, k, start, kd)
    factor: float = around / k / _density(x, place, k, start, kd)
    return factor


@kernel
def _density(x: Array, p: int, k: int, start: Array, kd: Array) -> float:
    """Return the local reachability density of ``x[p]``."""
    reach = 0.0
    for o in range(start[p], start[p] + k + 1):
        # A row is not its own neighbour, though its window contains it.
        if o != p:
            reach += max(abs(x[p] - x[o]), kd[o])
    density: float = 1.0 / (reach / k + PILE)
    return density
