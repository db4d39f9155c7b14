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
from pcor._kernels.coverage import PairColumns, covers

Array = Any

PILE = 1e-10


@kernel
def lof_verdicts(
    masks: Array, pairs: PairColumns, at: int, rule: tuple[int, float, int], out: Array
) -> None:
    """Tell for each context whether V is an outlier.

    Args:
        masks: the contexts, each of which covers V.
        pairs: what they may cover.
        at: the first pair with V's value.
        rule: k, the threshold, and the smallest population (above k, not above 2k+1).
        out: one boolean per context.
    """
    k, threshold, smallest = rule
    # Room for one window, used again for every context.
    window = np.empty(4 * k + 1)
    start = np.empty(4 * k + 1, np.int64)
    kd = np.empty(4 * k + 1)
    piled = factor_of_equals(k) > threshold
    for row in range(len(masks)):
        above = _gather(masks[row], pairs, at, 1, window[2 * k :])
        if above >= smallest and window[2 * k + smallest - 1] == window[2 * k]:
            # At least ``smallest`` rows, which is more than k, are equal to V.
            out[row] = piled
            continue
        below = _gather(masks[row], pairs, at - 1, -1, window[: 2 * k])
        # ``smallest`` is at most 2k+1, so a window that was cut off at 2k on a side has enough.
        if below + above < smallest:
            out[row] = False
        else:
            x = window[2 * k - below : 2 * k + above]
            out[row] = window_factor(x, below, k, start, kd) > threshold


@kernel
def _gather(mask: Array, pairs: PairColumns, pair: int, step: int, window: Array) -> int:
    """Fill half a window with the nearest values from a pair on, outward; return how many.

    The half below V is filled from its end.
    """
    required, values, counts = pairs
    wanted, found = len(window), 0
    place = 0 if step > 0 else wanted - 1
    last = len(values) if step > 0 else -1
    while pair != last and found < wanted:
        if covers(mask, required, pair):
            # Equal rows are spelled out: each is a neighbour of its own.
            for _ in range(min(counts[pair], wanted - found)):
                window[place] = values[pair]
                place += step
                found += 1
        pair += step
    return found


@kernel
def window_verdict(
    x: Array, n: int, place: int, rule: tuple[int, float, int], first: Array, kd: Array
) -> bool:
    """Judge ``x[place]`` in a window of n rows, by the 2k on each side that count."""
    return bool(window_parts(x, n, place, rule, first, kd)[0])


@kernel
def window_parts(
    x: Array, n: int, place: int, rule: tuple[int, float, int], first: Array, kd: Array
) -> tuple[bool, float]:
    """Judge as ``window_verdict`` does; return the sum of the neighbours' densities too."""
    k, threshold, _ = rule
    low, high = max(0, place - 2 * k), min(n, place + 2 * k + 1)
    around, own = _densities(x[low:high], place - low, k, first, kd)
    return bool(around / k / own > threshold), around


@kernel
def first_nearest(x: Array, n: int, p: int, k: int, first: int) -> int:
    """Return where the k nearest of a row begin, not before ``first``; lower ones win a tie.

    They and the row are a window of k+1 places that never moves back as p rises.
    """
    first = max(first, p - k)
    while first < p and first + k + 1 < n and x[first + k + 1] - x[p] < x[p] - x[first]:
        first += 1
    return first


@kernel
def window_factor(x: Array, place: int, k: int, start: Array, kd: Array) -> float:
    """Return the local outlier factor of ``x[place]``; ``x`` rises."""
    around, own = _densities(x, place, k, start, kd)
    factor: float = around / k / own
    return factor


@kernel
def factor_of_equals(k: int) -> float:
    """Return the factor where the neighbours of V, and theirs, are at no distance."""
    around = 0.0
    for _ in range(k):
        around += 1.0 / PILE
    factor: float = around / k / (1.0 / PILE)
    return factor


@kernel
def _densities(x: Array, place: int, k: int, start: Array, kd: Array) -> tuple[float, float]:
    """Return the sum of the densities of the neighbours of ``x[place]``, and its own."""
    # Only the neighbours of the neighbours count: from ``low`` to ``high``, often half of them.
    near = first_nearest(x, len(x), place, k, 0)
    low = first_nearest(x, len(x), near, k, 0)
    high = first_nearest(x, len(x), near + k, k, near) + k
    first = 0
    for p in range(low, high + 1):
        first = first_nearest(x, len(x), p, k, first)
        start[p] = first
        kd[p] = max(x[p] - x[first], x[first + k] - x[p])
    # From the lowest neighbour to the highest: the order in which the twin adds.
    around = density = own = 0.0
    for o in range(start[place], start[place] + k + 1):
        # Equal rows have the same neighbours but for themselves, and the same density.
        if o == start[place] or x[o] != x[o - 1]:
            density = _density(x, o, k, start, kd)
        if o == place:
            own = density
        else:
            around += density
    return around, own


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
