"""Walk through all contexts of a schema, keeping the rows of the current one.

Contexts are counted like a number with one digit per attribute, the first attribute's the fastest:
a digit is a non-empty set of values, as bits. ``kept[j]`` holds the rows that fit the attributes
from j on, so a step filters only the levels whose digits changed: for nearly every context the
last filter, from the rows that fit all other attributes. Rows are named by their place in the order
of the metric, so whatever is kept rises by metric. Twin: ``CellTable.distribution``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pcor._kernels import kernel

Array = Any


@kernel
def begin(first: int, codes: Array, tops: Array) -> tuple[Array, Array, Array]:
    """Return digits, kept rows and their numbers for the context with this number.

    Args:
        first: the context's number, from 0.
        codes: the value of each row as a small number, shape (attributes, rows).
        tops: for each attribute the set of all its values: its largest digit.
    """
    count, rows = codes.shape
    digits = np.empty(count, np.int64)
    for j in range(count):
        # Digits run from 1: the empty set of values is no digit.
        digits[j] = first % tops[j] + 1
        first //= tops[j]
    kept = np.empty((count + 1, rows), np.int32)
    sizes = np.empty(count + 1, np.int64)
    # The level above all attributes keeps every row, and is never filtered.
    for row in range(rows):
        kept[count, row] = row
    sizes[count] = rows
    _filter_from(count - 1, codes, digits, kept, sizes)
    return digits, kept, sizes


@kernel
def step(codes: Array, tops: Array, digits: Array, kept: Array, sizes: Array) -> None:
    """Go on to the next context; after the last one comes the first."""
    level = 0
    # Carry, as in a counter. The slowest digit wraps instead, so that the loop ends.
    while level < len(tops) - 1 and digits[level] == tops[level]:
        digits[level] = 1
        level += 1
    digits[level] = digits[level] % tops[level] + 1
    _filter_from(level, codes, digits, kept, sizes)


@kernel
def _filter_from(level: int, codes: Array, digits: Array, kept: Array, sizes: Array) -> None:
    """Filter anew at a level and at all faster ones."""
    # From slow to fast: each level is filtered from the one above it, which is up to date.
    for j in range(level, -1, -1):
        source, target, code, digit = kept[j + 1], kept[j], codes[j], digits[j]
        count = 0
        for place in range(sizes[j + 1]):
            row = source[place]
            target[count] = row  # overwritten by the next one unless it stays
            # Without a branch: whether a row stays cannot be predicted.
            count += (digit >> code[row]) & 1
        sizes[j] = count


@kernel
def with_room(found: Array, used: int, more: int) -> Array:
    """Return an array that begins with what was found and has room for more."""
    if used + more <= len(found):
        return found
    # Doubling keeps the copies to a constant number per entry.
    larger = np.empty(2 * (used + more), found.dtype)
    larger[:used] = found[:used]
    return larger
