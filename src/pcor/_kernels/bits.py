"""Sets of small numbers as the bits of one word: the lowest, the highest, which it is, how many.

Twin: Python's own integers.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pcor._kernels import inlined

# The number of a bit by what this factor makes of it: a de Bruijn sequence (Leiserson, Prokop and
# Randall 1998).
_DE_BRUIJN = 0x03F79D71B4CB0A89
_NUMBERS = np.empty(64, np.uint8)
for _number in range(64):
    _NUMBERS[(_DE_BRUIJN << _number) % (1 << 64) >> 58] = _number

_ONE = np.uint64(1)

Array = Any


@inlined
def lowest_bit(word: Any) -> Any:
    """Return the lowest bit that is set."""
    return word & (~word + _ONE)


@inlined
def highest_bit(word: Any) -> Any:
    """Return the highest bit that is set."""
    left = word
    while left & (left - _ONE):
        left &= left - _ONE
    return left


@inlined
def number_of(bit: Any) -> int:
    """Return which bit of a word is set, the only one."""
    return int(_NUMBERS[(bit * np.uint64(_DE_BRUIJN)) >> np.uint64(58)])


@inlined
def count_bits(word: Any) -> int:
    """Return how many bits are set."""
    left, count = word, 0
    while left:
        left &= left - _ONE
        count += 1
    return count


@inlined
def tally(words: Array, chosen: Any, planes: Array, highest: int) -> int:
    """Count in how many words each of some bits is set, all bits at once.

    Bit i of a count is in ``planes[i]``, for every bit. Goes on from the counts whose highest plane
    is given, -1 if nothing was counted; returns the highest after.
    """
    for word in words:
        carry, plane = word & chosen, 0
        while carry:
            if plane > highest:
                highest = plane
                planes[plane] = 0
            carry, planes[plane] = planes[plane] & carry, planes[plane] ^ carry
            plane += 1
    return highest


@inlined
def most_tallied(chosen: Any, planes: Array, highest: int) -> Any:
    """Return the bits with the largest count."""
    best = chosen
    for plane in range(highest, -1, -1):
        if best & planes[plane]:
            best &= planes[plane]
    return best
