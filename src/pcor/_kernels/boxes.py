"""Boxes of contexts, and what is in them.

A context is bits here: bit i is the i-th step, and whoever has a step has the lower ones of its
chain too. The contexts of a box have the steps of its base, and any of its open ones that make a
context. Twin: ``tests/search/test_boxes.py`` tries every context.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from pcor._kernels import kernel, maker
from pcor._kernels.bits import count_bits, highest_bit, lowest_bit, number_of

Array = Any


class Steps(NamedTuple):
    """The steps of a space.

    Attributes:
        lower: each with the lower ones of its chain.
        higher: each with the higher ones of its chain.
        strides: what each adds to the index of a context.
    """

    lower: Array
    higher: Array
    strides: Array


@kernel
def all_steps(steps: Steps) -> Any:
    """Return all steps of the space, as bits."""
    everything = np.uint64(0)
    for own in steps.lower:
        everything |= own
    return everything


@kernel
def contexts_of(rest: int, steps: Steps) -> int:
    """Return how many contexts a box has, given its open steps."""
    size, left = np.int64(1), rest
    while left:
        # Chain by chain, from its lowest open step.
        chain = left & steps.higher[number_of(lowest_bit(left))]
        left &= ~chain
        size *= count_bits(chain) + 1
    return int(size)


@maker
def without_largest(base: int, rest: int, steps: Steps) -> Array:
    """Return what is left of a box without its largest context: disjoint boxes, base and open.

    With the highest open step of one chain out, those of earlier chains in, and of later ones open.
    """
    boxes, count = np.empty((len(steps.lower), 2), np.uint64), 0
    left = rest
    while left:
        chain = left & steps.higher[number_of(lowest_bit(left))]
        left &= ~chain
        boxes[count, 0], boxes[count, 1] = base, rest & ~highest_bit(chain)
        count += 1
        base |= chain
        rest &= ~chain
    return boxes[:count]


@maker
def box_sizes(opens: Array, steps: Steps) -> Array:
    """Return how many contexts boxes have, given their open steps."""
    sizes = np.empty(len(opens), np.int64)
    for box in range(len(opens)):
        sizes[box] = contexts_of(opens[box], steps)
    return sizes


@maker
def mark_boxes(bases: Array, opens: Array, steps: Steps, first: int, valid: Array) -> None:
    """Mark the contexts of boxes by their indices less ``first``; a base is given by its index."""
    members = np.empty(len(valid), np.uint64)
    for box in range(len(bases)):
        count = box_members(bases[box], opens[box], steps, members)
        for place in range(count):
            valid[members[place] - np.uint64(first)] = True


@kernel
def list_boxes(bases: Array, opens: Array, steps: Steps, members: Array) -> None:
    """List the indices of the contexts of boxes, box after box; a base is given by its index."""
    place = 0
    for box in range(len(bases)):
        place += box_members(bases[box], opens[box], steps, members[place:])


@kernel
def box_members(base: int, rest: int, steps: Steps, members: Array) -> int:
    """List the indices of a box's contexts, given that of its base; return how many."""
    members[0], count = base, 1
    for step in range(len(steps.lower)):
        bit = np.uint64(1) << np.uint64(step)
        # Once for each chain, at its lowest open step: a level more for each that is open.
        if rest & bit and rest & steps.lower[step] == bit:
            before, stride = count, steps.strides[step]
            left = rest & steps.higher[step]
            while left:
                left &= left - np.uint64(1)
                for place in range(count, count + before):
                    members[place] = members[place - before] + stride
                count += before
    return count
