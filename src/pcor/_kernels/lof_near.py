"""The rows near V that contexts below a node of a walk may cover, and how far their nearest are.

Private: everything. Certain rows are in every context below, possible ones in some; a few rows,
``spare`` of them, may leave each context (``lof_subtree``). Distances to the k-th nearest lie
between ``low_kd`` and ``high_kd`` (docs/proofs/subtrees.md).

Twin: the definition, in every context between and without every few rows.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from pcor._kernels import inlined, kernel, maker
from pcor._kernels.lof import WindowRoom, first_of, pad, pad_ends, window_room

Array = Any

# No more candidates of V are ever looked at.
LANES = 256


class Near(NamedTuple):
    """The rows near V that some context below a node covers, and room for bounds on its factor.

    Attributes:
        x: the metrics of the possible rows, rising, V among them.
        required: the steps that each needs.
        sure: which of them are certain.
        c: the metrics of some of them, rising: those that an exact verdict is about.
        low_kd: kd_P of each possible row.
        high_kd: D of each possible row: kd_C, where nobody leaves.
        terms: room for the terms of a sum.
        forced: for those that are in it for sure.
        first: where the k nearest of each row begin among the possible ones.
        least: no more than the sum of distances of each candidate, and V's.
        ratios: bounds on the ratios of V's sum to those of its candidates.
        lanes: for all candidates side by side (``lof_ratios``).
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
    forced: Array
    first: Array
    least: Array
    ratios: Array
    lanes: Array
    certain: Array
    ranks: Array
    possible: Array
    window: WindowRoom


@maker
def room_for(rows: int, k: int) -> Near:
    """Return room for nodes with at most so many possible rows."""
    # Each by itself: of rows of one array the compiler would not know that they are in one piece.
    padded = rows + 2 * k + 1
    return Near(
        *(np.empty(rows), np.empty(rows, np.uint64), np.empty(rows, np.bool_), np.empty(rows)),
        *(np.empty(rows), np.empty(rows), np.empty(rows), np.empty(rows)),
        *(np.empty(rows, np.int64), np.empty(rows), np.empty(rows), np.empty(6 * LANES)),
        *(np.empty(padded), np.empty(rows, np.int64), np.empty(padded), window_room(k)),
    )


@kernel
def that_matter(near: Near, n: int, place: int, k: int) -> tuple[tuple[int, int], tuple[int, int]]:
    """Fill in ``high_kd`` of the rows that can be among V's k nearest, and of those among theirs.

    More than k rows are certain.

    Returns where V's candidates begin and end, and where theirs do. Those that can be among the k
    nearest of these are all that decide (``within_reach``).
    """
    sure, x, certain, reach = 0, near.x, near.certain, near.high_kd
    is_sure, ranks = near.sure, near.ranks
    for p in range(n):
        certain[k + sure] = x[p]
        ranks[p] = sure
        sure += is_sure[p]
    pad_ends(certain, sure, k)
    reach[place] = _widest(x[place], certain, ranks[place], is_sure[place], k)
    low, high = within_reach(x, reach, n, place, place + 1)
    for p in range(low, high):
        if p != place:
            reach[p] = _widest(x[p], certain, ranks[p], is_sure[p], k)
    first, last = within_reach(x, reach, n, low, high)
    for p in range(first, last):
        # Those between have theirs already.
        if not low <= p < high:
            reach[p] = _widest(x[p], certain, ranks[p], is_sure[p], k)
    return (low, high), (first, last)


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
    """Fill in where the k nearest possible rows of some begin, and how far they are."""
    x, possible = near.x, near.possible
    pad(x, n, k, possible)
    for p in range(low, high):
        first = first_of(possible, p, k)
        near.first[p] = first
        near.low_kd[p] = max(x[p] - x[first], x[first + k] - x[p])
