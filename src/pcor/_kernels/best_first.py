"""Visit contexts by falling total weight, each once, without knowing them in advance.

From the full context steps are removed one at a time, each of a higher place than the last one
removed: every context has exactly one such path (the subset tree). The steps of a chain stand
together, the last one first, and each can be removed only after the one before it. Removing a step
never adds weight, so a heap of the open ends yields contexts in non-increasing order (best-first
search; Lawler 1972 for the partition). The weights of all children come from one pass over the
cells.

A context is bits here: bit i is the i-th step. Twin: sorting all contexts by weight.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pcor._kernels import kernel, maker
from pcor._kernels.copies import copy_into

Array = Any


@maker
def visit(
    required: Array,
    places: Array,
    weights: Array,
    heads: Array,
    attributes: Array,
    most: int,
    heap: Array,
    size: int,
    found: Array,
) -> tuple[int, int]:
    """Pop up to ``len(found)`` contexts and push their children.

    Args:
        required: the required steps of each cell, as bits of one number.
        places: the step that brings each value of a cell, as its place; the number of steps where
            the value is the record's own.
        weights: the weight of each cell.
        heads: for each step whether it is the first of its chain to be removed.
        attributes: for each step the bits of all steps of its attribute.
        most: how many attributes may lack a step; contexts below one with more are not met.
        heap: open ends as (weight, bits, place of the next step that may be removed); room for one
            more for each step and context to be visited.
        size: how many entries of the heap are in use.
        found: where to put (weight, bits) of the contexts visited.

    Returns:
        How many were visited, and the new size of the heap.
    """
    # The last entry collects what belongs to the record's own values, which are never removed.
    free = len(heads)
    losses = np.empty(free + 1, np.int64)
    visited = 0
    # Invariant: every context not visited has exactly one ancestor in the heap, and weighs no more.
    while visited < len(found) and size > 0:
        weight, index, first = heap[0, 0], heap[0, 1], heap[0, 2]
        size = pop(heap, size)
        found[visited, 0], found[visited, 1] = weight, index
        visited += 1
        # A leaf of the subset tree: no higher step is left to be removed.
        if first == free:
            continue
        _loss_of_each(required, places, weights, index, losses)
        restricted = _restricted(attributes, index) if most < free else 0
        # The caller has left room for ``free`` entries for each visit, so a push needs no check.
        for place in range(first, free):
            # What follows the step last removed in its chain, or begins another chain.
            if place > first and not heads[place]:
                continue
            whole = index & attributes[place] == attributes[place]
            if restricted + whole > most:
                continue
            size = push(heap, size, weight - losses[place], index & ~(1 << place), place + 1)
    return visited, size


@kernel
def _restricted(attributes: Array, index: int) -> int:
    """Return how many attributes lack a step."""
    restricted = 0
    # The bits of an attribute are counted at the lowest of its steps.
    for place in range(len(attributes)):
        bits = attributes[place]
        if bits & ((1 << place) - 1) == 0 and index & bits != bits:
            restricted += 1
    return restricted


@kernel
def _loss_of_each(
    required: Array, places: Array, weights: Array, index: int, losses: Array
) -> None:
    """Fill in what removing each step would take away."""
    losses[:] = 0
    for cell in range(len(required)):
        # Only covered cells lose: removing a step uncovers those that need it.
        if required[cell] & ~index == 0:
            for column in range(places.shape[1]):
                losses[places[cell, column]] += weights[cell]


@kernel
def push(heap: Array, size: int, weight: int, index: int, first: int) -> int:
    """Add an entry; the heaviest stays on top."""
    place = size
    while place > 0:
        parent = (place - 1) // 2
        # Parents move down and the entry is written once, which halves the copies of swapping.
        if heap[parent, 0] >= weight:
            break
        copy_into(heap[place], heap[parent])
        place = parent
    heap[place, 0], heap[place, 1], heap[place, 2] = weight, index, first
    return size + 1


@kernel
def pop(heap: Array, size: int) -> int:
    """Remove the top entry."""
    size -= 1
    # The last entry fills the gap at the top and sinks to its place.
    weight = heap[size, 0]
    place = 0
    while 2 * place + 1 < size:
        child = 2 * place + 1
        if child + 1 < size and heap[child + 1, 0] > heap[child, 0]:
            child += 1
        if heap[child, 0] <= weight:
            break
        copy_into(heap[place], heap[child])
        place = child
    copy_into(heap[place], heap[size])
    return size
