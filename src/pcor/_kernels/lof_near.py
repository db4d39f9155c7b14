"""The rows near V that contexts below a node of a walk may cover, and bounds on their densities.

Private: everything. Certain rows are in every context below, possible ones in some; a few rows,
``spare`` of them, may leave each context (``lof_slack``), or none (``lof_subtree``). Distances to
the k-th nearest lie between ``low_kd`` and ``high_kd`` (docs/proofs/subtrees.md).

Twin: the definition, in every context between and without every few rows.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from pcor._kernels import inlined, kernel, maker
from pcor._kernels.lof import PILE, WindowRoom, first_of, pad, pad_ends, window_room

Array = Any

# How near the threshold a bound is not believed. Rounding moves a factor, and the bound on it, by
# less than (6k + 20) * 2^-53 of it: below 1e-12 with at most 100 neighbours.
SLACK = 1e-9

# With more candidates than this many times k a bound would be loose, and dear.
MANY = 2

# More than what each term of a sum of more than k positive ones adds to its relative rounding.
_ROUNDING = 4e-16


class Near(NamedTuple):
    """The rows near V that some context below a node covers, and room for bounds on its factor.

    Attributes:
        x: the metrics of the possible rows, rising, V among them.
        required: the steps that each needs.
        sure: which of them are certain.
        c: the metrics of some of them, rising: those that an exact verdict is about.
        low_kd: kd_P of each possible row.
        high_kd: kd_C of each possible row.
        terms: room for the terms of a sum.
        others: for those of a second one.
        densities: bounds on the densities of V's candidates.
        certain: the certain rows between others that are infinitely far.
        ranks: how many certain rows come before each.
        possible: all of them between others that are infinitely far.
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
    certain: Array
    ranks: Array
    possible: Array
    window: WindowRoom


@maker
def room_for(rows: int, k: int) -> Near:
    """Return room for nodes with at most so many possible rows."""
    x, c, low_kd, high_kd, terms, others, densities = np.empty((7, rows))
    required, sure = np.empty(rows, np.uint64), np.empty(rows, np.bool_)
    certain, possible = np.empty((2, rows + 2 * k + 1))
    padded = certain, np.empty(rows, np.int64), possible
    return Near(
        *(x, required, sure, c, low_kd, high_kd, terms, others, densities),
        *(*padded, window_room(k)),
    )


@kernel
def that_matter(near: Near, n: int, place: int, k: int) -> tuple[int, int]:
    """Fill in ``high_kd`` of the rows that can be among V's k nearest, and of those among theirs.

    More than k rows are certain.

    Returns where these rows begin and end. Those that can be among the k nearest of these are all
    that decide (``within_reach``).
    """
    sure, x, certain, reach = 0, near.x, near.certain, near.high_kd
    is_sure, ranks = near.sure, near.ranks
    for p in range(n):
        certain[k + sure] = x[p]
        ranks[p] = sure
        sure += is_sure[p]
    pad_ends(certain, sure, k)
    low = high = place
    first, last = place, place + 1
    for step in range(3):  # V, its neighbours, theirs
        # Those between have theirs already.
        for p in range(first, last):
            if not low <= p < high:
                reach[p] = _widest(x[p], certain, ranks[p], is_sure[p], k)
        low, high = first, last
        if step < 2:
            first, last = within_reach(x, reach, n, low, high)
    return low, high


@inlined
def within_reach(x: Array, reach: Array, n: int, low: int, high: int) -> tuple[int, int]:
    """Return where the rows begin and end that can be among the k nearest of some rows."""
    first, last = low, high
    for p in range(low, high):
        while first > 0 and x[p] - x[first - 1] <= reach[p]:
            first -= 1
        while last < n and x[last] - x[p] <= reach[p]:
            last += 1
    return first, last


@inlined
def _widest(x: float, certain: Array, rank: int, sure: bool, k: int) -> float:
    """Return the k-distance of a row among the certain ones and itself."""
    if sure:
        first = first_of(certain, rank, k)
        return float(max(x - certain[k + first], certain[2 * k + first] - x))
    # Not one of them: its k nearest are k in a row, and begin at most k before it.
    lowest, above = certain[rank : rank + k], certain[k + rank : 2 * k + rank]
    moves = 0
    for j in range(k):
        moves += above[j] - x < x - lowest[j]
    first = rank + moves
    return float(max(x - certain[first], certain[first + k - 1] - x))


@kernel
def narrowest(near: Near, n: int, low: int, high: int, k: int) -> None:
    """Fill in the k-distance of some rows among the possible ones."""
    x, possible = near.x, near.possible
    pad(x, n, k, possible)
    for p in range(low, high):
        first = first_of(possible, p, k)
        near.low_kd[p] = max(x[p] - x[first], x[first + k] - x[p])


@kernel
def loose_densities(
    near: Near, n: int, some: tuple[int, int], k: int, spare: int, kd: Array, sign: float
) -> None:
    """Fill in the most that the densities of some rows can be; with a sign of -1 the least.

    A sum of k terms is at least k * t less what each term that could be taken is below t, for any
    t: the nearer t to the k-th, the tighter. What is above t counts for the forced rows, the
    certain ones nearer than kd_P, less that of the few that may leave. No sorting, and no sum waits
    for another.

    Args:
        near: the rows, with both distances of each.
        n: how many are possible.
        some: where the rows to be bounded begin and end.
        k: how many neighbours.
        spare: how many rows may leave.
        kd: ``low_kd`` for the most, ``high_kd`` for the least.
        sign: 1 for the most, -1 for the least.
    """
    x, (low, high) = near.x, some
    level, forced = kd[low:high], near.low_kd[low:high]
    own, size = x[low:high], high - low
    more, most = near.terms[:size], near.others[:size]
    more[:] = most[:] = 0.0
    largest = 0.0
    first, last = within_reach(x, near.high_kd, n, low, high)
    for q in range(first, last):
        here, farther, certain = x[q], kd[q], 1.0 if near.sure[q] else 0.0
        largest = max(largest, farther)
        # One array is written: with more the compiler would go one row at a time. A term below the
        # level is that of a row within it.
        for o in range(size):
            apart = abs(own[o] - here)
            over = sign * (max(apart, farther) - level[o])
            more[o] += certain * max(over, 0.0) if apart < forced[o] else 0.0
            more[o] -= max(-over, 0.0) if apart <= level[o] else 0.0
        if spare and near.sure[q]:
            for o in range(size):
                apart = abs(own[o] - here)
                over = sign * (max(apart, farther) - level[o])
                most[o] = max(most[o], over if apart < forced[o] else 0.0)
    for o in range(size):
        # A row met itself, at no distance: exactly on the level, which adds nothing.
        total = k * level[o] + sign * (more[o] - spare * most[o])
        # No sum on the way, and no term, was farther from 0 than all of them together.
        rounding = n * _ROUNDING * (k + 2 * n) * max(level[o], largest)
        total = max(total - sign * rounding, 0.0)
        near.densities[low + o] = 1.0 / (total / k + PILE)
