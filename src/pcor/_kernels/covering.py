"""Which cells and pairs does a context cover, and how many rows are that?"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from pcor._kernels import kernel

Array = Any


@njit(cache=True, inline="always")
def covers(mask: Array, needs: Array, place: int) -> bool:
    """Tell whether a context has all bits that a cell needs."""
    for word in range(needs.shape[1]):  # noqa: SIM110 (compiled)
        if needs[place, word] & ~mask[word]:
            return False
    return True


@njit(cache=True, inline="always")
def missing_bits(mask: Array, needs: Array, place: int) -> int:
    """Return how many of its needed bits a cell misses in a context; 2 stands for more."""
    count = 0
    for word in range(needs.shape[1]):
        left = needs[place, word] & ~mask[word]
        while left:
            left &= left - np.uint64(1)
            count += 1
            if count == 2:
                return 2
    return count


@kernel
def totals(masks: Array, needs: Array, weights: Array, out: Array) -> None:
    """Sum the weights of the covered cells, for each context.

    Twin: ``tests.naive.total``. With counts as weights this is the population.
    """
    for row in range(len(masks)):
        total = 0
        for cell in range(len(needs)):
            if covers(masks[row], needs, cell):
                total += weights[cell]
        out[row] = total


@kernel
def cell_totals(masks: Array, needs: Array, weights: Array, out: Array) -> None:
    """Sum several weights of the covered cells, for each context: shape (kinds, contexts)."""
    for row in range(len(masks)):
        for kind in range(len(weights)):
            out[kind, row] = 0.0
        for cell in range(len(needs)):
            if covers(masks[row], needs, cell):
                for kind in range(len(weights)):
                    out[kind, row] += weights[kind, cell]


@kernel
def covered_places(mask: Array, needs: Array) -> Array:
    """Return the places that a context covers."""
    kept = np.empty(len(needs), np.int64)
    count = 0
    for place in range(len(needs)):
        kept[count] = place
        count += covers(mask, needs, place)
    return kept[:count].copy()


@kernel
def nearly_covered_places(mask: Array, needs: Array) -> Array:
    """Return the places that miss at most one bit: all that any one-bit neighbour can cover."""
    kept = np.empty(len(needs), np.int64)
    count = 0
    for place in range(len(needs)):
        kept[count] = place
        count += missing_bits(mask, needs, place) < 2
    return kept[:count].copy()
