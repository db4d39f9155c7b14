"""Which of many cells, or pairs, does a context cover? Asked for 1,024 of them at once.

For each position there is a bitmap of the cells that need it. What a context covers is what none of
the positions that it lacks is needed by: a few words are joined where the cells would be compared
one by one. Getting them ready is like comparing some hundred contexts, so it pays for thousands.

Twin: ``pcor._kernels.coverage.covers``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pcor._kernels import inlined, maker
from pcor._kernels.bits import lowest_bit, number_of

Array = Any

# Words of one bitmap: shape (chunks, positions and one, words). In the last row of a chunk stand
# the bits that belong to no cell.
_WORDS = 16
CHUNK = 64 * _WORDS

_ONE = np.uint64(1)

# Bytes that bitmaps may take.
_LARGEST = 1 << 27


def affordable(cells: int, words: int) -> bool:
    """Tell whether so many cells, or pairs, of contexts of so many words may have bitmaps."""
    return cells * 8 * words <= _LARGEST


@maker
def bitmaps(required: Array, order: Array) -> Array:
    """Return the bitmaps of some cells, in this order, by the bits that they require."""
    chunks, width = (len(order) + CHUNK - 1) // CHUNK, 64 * required.shape[1]
    needing = np.zeros((chunks, width + 1, _WORDS), np.uint64)
    for place in range(chunks * CHUNK):
        chunk, word, bit = place // CHUNK, place % CHUNK >> 6, _ONE << np.uint64(place & 63)
        if place >= len(order):
            needing[chunk, width, word] |= bit
            continue
        for number in range(required.shape[1]):
            left = required[order[place], number]
            while left:
                lowest = lowest_bit(left)
                left ^= lowest
                needing[chunk, (number << 6) + number_of(lowest), word] |= bit
    return needing


@inlined
def lacking(mask: Array, free: Array, lacks: Array) -> int:
    """Fill in which of the free positions a context lacks; return how many."""
    count = 0
    for word in range(len(free)):
        left = free[word] & ~mask[word]
        while left:
            lowest = lowest_bit(left)
            left ^= lowest
            lacks[count] = (word << 6) + number_of(lowest)
            count += 1
    return count


@inlined
def cover(needing: Array, lacks: Array, covered: Array) -> None:
    """Fill in which cells of a chunk need nothing that a context lacks."""
    none, last = needing[len(needing) - 1], len(lacks) - 1
    for word in range(len(covered)):
        covered[word] = ~none[word]
    # Four at a time, the last of them again where there are fewer.
    for number in range(0, len(lacks), 4):
        a, b = needing[lacks[number]], needing[lacks[min(number + 1, last)]]
        c, d = needing[lacks[min(number + 2, last)]], needing[lacks[min(number + 3, last)]]
        for word in range(len(covered)):
            covered[word] &= ~(a[word] | b[word] | c[word] | d[word])


@maker
def planes_of(weights: Array, order: Array, chunks: int) -> tuple[Array, Array, Array]:
    """Return the bits of the weights of cells as bitmaps: those of a chunk from ``starts`` on.

    Args:
        weights: of each cell, none below 0.
        order: in which the cells stand.
        chunks: how many chunks they make.
    """
    starts, most = np.zeros(chunks + 1, np.int64), np.zeros(chunks, np.int64)
    for place in range(len(order)):
        most[place // CHUNK] |= weights[order[place]]
    for chunk in range(chunks):
        starts[chunk + 1] = starts[chunk]
        while most[chunk]:
            most[chunk] >>= 1
            starts[chunk + 1] += 1
    planes, shifts = np.zeros((starts[-1], _WORDS), np.uint64), np.zeros(starts[-1], np.int64)
    for chunk in range(chunks):
        for plane in range(starts[chunk], starts[chunk + 1]):
            shifts[plane] = plane - starts[chunk]
    for place in range(len(order)):
        left, plane = weights[order[place]], starts[place // CHUNK]
        while left:
            if left & 1:
                planes[plane, place % CHUNK >> 6] |= _ONE << np.uint64(place & 63)
            left >>= 1
            plane += 1
    return starts, shifts, planes


@maker
def totals_of_many(
    masks: Array, needing: Array, planes: tuple[Array, Array, Array], free: Array, out: Array
) -> None:
    """Sum the weights of the covered cells, for each context.

    Twin: ``pcor._kernels.coverage.totals``.

    Args:
        masks: the contexts.
        needing: the bitmaps of the cells.
        planes: the bits of their weights.
        free: the positions that some cell needs, as words.
        out: one total per context.
    """
    starts, shifts, bits = planes
    lacks, covered = np.empty(64 * len(free), np.int64), np.empty(_WORDS, np.uint64)
    for row in range(len(masks)):
        some, total = lacks[: lacking(masks[row], free, lacks)], 0
        for chunk in range(len(needing)):
            cover(needing[chunk], some, covered)
            for plane in range(starts[chunk], starts[chunk + 1]):
                total += _count(covered, bits[plane]) << shifts[plane]
        out[row] = total


@inlined
def _count(covered: Array, plane: Array) -> int:
    """Return how many bits are set in both; word by word, as Warren 2013, 5-1, does."""
    twos, fours = np.uint64(0x3333333333333333), np.uint64(0x0F0F0F0F0F0F0F0F)
    count = np.uint64(0)
    for word in range(len(plane)):
        x = covered[word] & plane[word]
        x -= (x >> _ONE) & np.uint64(0x5555555555555555)
        x = (x & twos) + ((x >> np.uint64(2)) & twos)
        x = (x + (x >> np.uint64(4))) & fours
        count += (x * np.uint64(0x0101010101010101)) >> np.uint64(56)
    return int(count)
