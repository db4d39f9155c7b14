"""LOF of one record in many contexts.

Source: Breunig et al. 2000, as ``pcor.detectors.lof`` states it; its ``LOF.verdict`` is the twin,
equal to the last bit because both add the same terms in the same order.

LOF is local. Values are taken with their multiplicity in rising order. V's neighbours lie within k
places of V, theirs within 2k. The k-distance of such an outer value o' counts only where it is
above |o - o'|; if o' is j places from o, the j values from o on are then among its k nearest, so at
most k-j lie beyond: within 2k places of V again. So 2k values on each side decide.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from pcor._kernels import inlined, kernel, maker
from pcor._kernels.coverage import PairColumns, covers

Array = Any

PILE = 1e-10


class WindowRoom(NamedTuple):
    """Room for the factor of one window, kept from one to the next.

    Attributes:
        first: where the k nearest of each row begin; with the row itself they are k+1 in a row.
        kd: the distance to the k-th nearest.
        padded: the window between k values below and k+1 above that are infinitely far.
        terms: those of one sum.
    """

    first: Array
    kd: Array
    padded: Array
    terms: Array


@maker
def window_room(k: int) -> WindowRoom:
    """Return room for windows of at most 2k rows on each side of V."""
    kd, padded, terms = np.empty(4 * k + 1), np.empty(6 * k + 2), np.empty(k + 1)
    return WindowRoom(np.empty(4 * k + 1, np.int64), kd, padded, terms)


@maker
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
    room = window_room(k)
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
            out[row] = window_factor(x, below, k, room) > threshold


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
    x: Array, n: int, place: int, rule: tuple[int, float, int], room: WindowRoom
) -> bool:
    """Judge ``x[place]`` in a window of n rows, by the 2k on each side that count."""
    return bool(window_parts(x, n, place, rule, room)[0])


@kernel
def window_parts(
    x: Array, n: int, place: int, rule: tuple[int, float, int], room: WindowRoom
) -> tuple[bool, float, float]:
    """Judge as ``window_verdict`` does.

    Returns the verdict, the sum of the neighbours' densities, and the row's own density.
    """
    k, threshold, _ = rule
    low, high = max(0, place - 2 * k), min(n, place + 2 * k + 1)
    around, own = _densities(x[low:high], place - low, k, room)
    return bool(around / k / own > threshold), around, own


@kernel
def window_factor(x: Array, place: int, k: int, room: WindowRoom) -> float:
    """Return the local outlier factor of ``x[place]``; ``x`` rises."""
    around, own = _densities(x, place, k, room)
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
def pad(x: Array, n: int, k: int, padded: Array) -> None:
    """Fill in n rising values between k that are infinitely far below and k+1 above."""
    for p in range(n):
        padded[k + p] = x[p]
    pad_ends(padded, n, k)


@kernel
def pad_ends(padded: Array, n: int, k: int) -> None:
    """Fill in the infinite values around n others."""
    padded[:k] = -np.inf
    padded[k + n : 2 * k + n + 1] = np.inf


@inlined
def first_of(padded: Array, p: int, k: int) -> int:
    """Return where the k nearest of a row begin, of more than k between infinite values.

    They and the row are k+1 places in a row, and lower ones win a tie: from the lowest on, this
    window moves while the next value above is nearer than its lowest. As it moves the one gets
    farther and the other nearer, so the moves can be counted: at once, and without a branch.
    """
    here, lowest, above = padded[k + p], padded[p : p + k], padded[k + p + 1 : 2 * k + p + 1]
    moves = 0
    for j in range(k):
        moves += above[j] - here < here - lowest[j]
    return p - k + moves


@kernel
def _densities(x: Array, place: int, k: int, room: WindowRoom) -> tuple[float, float]:
    """Return the sum of the densities of the neighbours of ``x[place]``, and its own."""
    first, kd, padded, terms = room
    pad(x, len(x), k, padded)
    # Only the neighbours of the neighbours count: from ``low`` to ``high``, often half of them.
    near = first_of(padded, place, k)
    low, high = first_of(padded, near, k), first_of(padded, near + k, k) + k
    for p in range(low, high + 1):
        start = first_of(padded, p, k)
        first[p] = start
        kd[p] = max(x[p] - x[start], x[start + k] - x[p])
    # From the lowest neighbour to the highest: the order in which the twin adds.
    around = density = own = 0.0
    for o in range(near, near + k + 1):
        # Equal rows have the same neighbours but for themselves, and the same density.
        if o == near or x[o] != x[o - 1]:
            density = _density(x, kd, terms, o, first[o], k)
        if o == place:
            own = density
        else:
            around += density
    return around, own


@inlined
def _density(x: Array, kd: Array, terms: Array, p: int, start: int, k: int) -> float:
    """Return the local reachability density of ``x[p]``, whose k nearest begin at ``start``."""
    # All terms at once, in which views help the compiler; then the sum in the order of the twin.
    here, others, reached = x[p], x[start : start + k + 1], kd[start : start + k + 1]
    for q in range(k + 1):
        apart = abs(here - others[q])
        terms[q] = apart if apart > reached[q] else reached[q]
    # A row is not its own neighbour, though its window contains it: 0 changes no sum.
    terms[p - start] = 0.0
    reach = 0.0
    for q in range(k + 1):
        reach += terms[q]
    return 1.0 / (reach / k + PILE)
