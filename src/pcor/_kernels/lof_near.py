"""The rows near V that contexts below a node of a walk may cover, and bounds on their densities.

Private: everything. Certain rows are in every context below, possible ones in some; a few rows,
``spare`` of them, may leave each context (``lof_slack``), or none (``lof_subtree``). Distances to
the k-th nearest lie between ``low_kd`` and ``high_kd`` (docs/proofs/subtrees.md).

Twin: the definition, in every context between and without every few rows.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from pcor._kernels import kernel
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
        c: the metrics of some of them, rising.
        low_kd: kd_P of each possible row.
        high_kd: kd_C of each possible row.
        terms: what may be added to a sum, the smallest first.
        others: the same for a second sum.
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


@kernel
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
def that_matter(near: Near, n: int, place: int, k: int, rounds: int) -> tuple[int, int]:
    """Fill in ``high_kd`` of the rows within reach of V in so many steps.

    In the first those that can be among its k nearest, then those that can be among theirs. More
    than k rows are certain.

    Returns where these rows begin and end.
    """
    sure, x, certain, is_sure, ranks = 0, near.x, near.certain, near.sure, near.ranks
    for p in range(n):
        certain[k + sure] = x[p]
        ranks[p] = sure
        sure += is_sure[p]
    pad_ends(certain, sure, k)
    low, high = place, place + 1
    _widen(near, low, high, k)
    for _ in range(rounds):
        first, last = within_reach(near, n, low, high)
        _widen(near, first, low, k)
        _widen(near, high, last, k)
        low, high = first, last
    return low, high


@kernel
def within_reach(near: Near, n: int, low: int, high: int) -> tuple[int, int]:
    """Return where the rows begin and end that can be among the k nearest of some rows."""
    x, reach, first, last = near.x, near.high_kd, low, high
    for p in range(low, high):
        while first > 0 and x[p] - x[first - 1] <= reach[p]:
            first -= 1
        while last < n and x[last] - x[p] <= reach[p]:
            last += 1
    return first, last


@kernel
def _widen(near: Near, low: int, high: int, k: int) -> None:
    """Fill in the k-distance of some rows among the certain ones and themselves."""
    certain = near.certain
    for p in range(low, high):
        x, rank = near.x[p], near.ranks[p]
        if near.sure[p]:
            first = first_of(certain, rank, k)
            near.high_kd[p] = max(x - certain[k + first], certain[2 * k + first] - x)
        else:
            # Not one of them: its k nearest are k in a row, and begin at most k before it.
            lowest, above = certain[rank : rank + k], certain[k + rank : 2 * k + rank]
            moves = 0
            for j in range(k):
                moves += above[j] - x < x - lowest[j]
            first = rank + moves
            near.high_kd[p] = max(x - certain[first], certain[first + k - 1] - x)


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
    level, forced, reach = kd[low:high], near.low_kd[low:high], near.high_kd[low:high]
    own, size = x[low:high], high - low
    below, above, most = near.terms[:size], near.others[:size], near.c[:size]
    below[:] = above[:] = most[:] = 0.0
    first, last = within_reach(near, n, low, high)
    for q in range(first, last):
        here, farther = x[q], kd[q]
        # Two loops: with more arrays than these the compiler would go one row at a time.
        for o in range(size):
            apart = abs(own[o] - here)
            under = sign * (level[o] - max(apart, farther))
            below[o] += max(under, 0.0) if apart <= reach[o] else 0.0
        if near.sure[q]:
            for o in range(size):
                apart = abs(own[o] - here)
                over = sign * (max(apart, farther) - level[o])
                more = max(over, 0.0) if apart < forced[o] else 0.0
                above[o] += more
                most[o] = max(most[o], more)
    for o in range(size):
        # A row met itself, at no distance: exactly on the level, which adds nothing.
        rest = k * level[o]
        # Differences, so that rounding is that of what they are taken from.
        rounding = n * _ROUNDING * (rest + below[o] + above[o])
        total = rest + sign * (above[o] - spare * most[o] - below[o] - rounding)
        near.densities[low + o] = 1.0 / (max(total, 0.0) / k + PILE)
