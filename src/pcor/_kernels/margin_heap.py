"""The contexts of a record by falling margin score, from a heap of boxes of contexts.

A box is a base and open steps (``boxes``). With people U, rows n, and the margins of cells split
into gains (rows that are not in the record's region add to the margin) and losses (rows that are
take away), every context S between the base B and the largest context L has

    score(S) <= min(b * U(L), b * (n(L) - least), s * (gains(L) - losses(B))),

since all four sums only grow with the context. The heap has the box of the highest bound on top. If
its largest context reaches the bound, that context is the next, and what is left of the box is
split into disjoint boxes (Lawler 1972); if not, the box is split by the step that holds most of the
losses. Twin: sorting all contexts by score.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from pcor._kernels import kernel, maker
from pcor._kernels.best_first import pop, push
from pcor._kernels.bits import lowest_bit, number_of
from pcor._kernels.boxes import Steps, contexts_of, without_largest
from pcor._kernels.total_table import TotalTable, total

Array = Any


class MarginTables(NamedTuple):
    """What contexts have.

    Attributes:
        people: the utility.
        rows: n.
        gains: what cells add to the margin, times the share's denominator.
        losses: what others take away.
        rule: the share's denominator b, the rows that are too few, the steepness.
    """

    people: TotalTable
    rows: TotalTable
    gains: TotalTable
    losses: TotalTable
    rule: tuple[int, int, int]


@maker
def next_best(
    tables: MarginTables, steps: Steps, heap: Array, size: int, looks: int, found: Array
) -> tuple[Array, int, int, int]:
    """Find the next contexts by falling score; stop after so many boxes.

    Args:
        tables: what contexts have.
        steps: of the space.
        heap: boxes as (bound, base, open steps).
        size: how many there are.
        looks: how many boxes may be taken from it.
        found: where to put (score, bits) of contexts.

    Returns:
        The heap, its size, how many contexts were found, and how many looks are left.
    """
    count = 0
    while size and looks and count < len(found):
        heap = _with_room(heap, size + 64)
        bound, base, rest = heap[0, 0], np.uint64(heap[0, 1]), np.uint64(heap[0, 2])
        size = pop(heap, size)
        looks -= 1
        if highest_score(tables, base | rest, base | rest) == bound:
            found[count, 0], found[count, 1] = bound, base | rest
            count += 1
            for box in without_largest(base, rest, steps):
                size = _push(tables, heap, size, box[0], box[1])
            continue
        step = _most_lossy(tables.losses, steps, base | rest, rest)
        gone = rest & steps.lower[step]
        size = _push(tables, heap, size, base | gone, rest & ~gone)
        size = _push(tables, heap, size, base, rest & ~steps.higher[step])
    return heap, size, count, looks


@kernel
def highest_score(tables: MarginTables, base: int, largest: int) -> int:
    """Return a bound on the scores between two contexts; the score, where they are the same."""
    b, few, steepness = tables.rule
    people = min(total(tables.people, largest), total(tables.rows, largest) - few)
    margin = total(tables.gains, largest) - total(tables.losses, base)
    return int(min(b * people, steepness * margin))


@kernel
def _push(tables: MarginTables, heap: Array, size: int, base: int, rest: int) -> int:
    bound = highest_score(tables, base, base | rest)
    return int(push(heap, size, bound, np.int64(base), np.int64(rest)))


@maker
def _with_room(heap: Array, size: int) -> Array:
    """Return the heap with room for so many boxes."""
    if size <= len(heap):
        return heap
    larger = np.empty((2 * size, 3), np.int64)
    larger[: len(heap)] = heap
    return larger


@kernel
def _most_lossy(losses: TotalTable, steps: Steps, largest: int, rest: Any) -> int:
    """Return the open step without which the largest context has the fewest losses."""
    best, fewest, left = 0, np.int64(1) << 62, rest
    while left:
        bit = lowest_bit(left)
        left ^= bit
        step = number_of(bit)
        # What was decided of the chain stays so: of the higher steps the open ones go.
        without = total(losses, largest & ~(rest & steps.higher[step]))
        if without < fewest:
            best, fewest = step, without
    return best


@maker
def sizes(heap: Array, size: int, steps: Steps) -> Array:
    """Return how many contexts each box of the heap has."""
    found = np.empty(size, np.int64)
    for entry in range(size):
        found[entry] = contexts_of(np.uint64(heap[entry, 2]), steps)
    return found
