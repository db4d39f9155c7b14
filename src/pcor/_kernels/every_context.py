"""Walk through contexts, keeping the rows of the current one.

``kept[j]`` holds the rows that fit the attributes from j on. Contexts come in an order in which the
first attribute changes fastest, so that a step filters only the levels up to the slowest one that
changed: for nearly every context the last filter, from the rows that fit all other attributes. Rows
are named by their place in the order of the metric, so whatever is kept rises by metric. Twin:
``CellTable.distribution``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pcor._kernels import maker

Array = Any


@maker
def begin(codes: Array) -> tuple[Array, Array]:
    """Return room for the rows that are kept at each level, and their numbers.

    Args:
        codes: the value of each row as its position among a context's bits, shape (attributes,
            rows).
    """
    count, rows = codes.shape
    kept = np.empty((count + 1, rows), np.int32)
    sizes = np.empty(count + 1, np.int64)
    # The level above all attributes keeps every row, and is never filtered.
    for row in range(rows):
        kept[count, row] = row
    sizes[count] = rows
    return kept, sizes


@maker
def step(bits: Array, level: int, codes: Array, kept: Array, sizes: Array) -> Array:
    """Go on to a context that differs up to a level; return the rows that it covers.

    Args:
        bits: of the context, one each.
        level: the slowest attribute that changed; for the first context the last attribute.
        codes: as ``begin`` takes them.
        kept: as ``begin`` gave them.
        sizes: likewise.
    """
    # From slow to fast: each level is filtered from the one above it, which is up to date.
    for j in range(level, -1, -1):
        source, target, code = kept[j + 1], kept[j], codes[j]
        count = np.int64(0)
        for place in range(sizes[j + 1]):
            row = source[place]
            target[count] = row  # overwritten by the next one unless it stays
            # Without a branch: whether a row stays cannot be predicted.
            count += np.int64(bits[code[row]])
        sizes[j] = count
    return kept[0, : sizes[0]]


@maker
def with_room(found: Array, used: int, more: int) -> Array:
    """Return an array that begins with what was found and has room for more."""
    if used + more <= len(found):
        return found
    # Doubling keeps the copies to a constant number per entry.
    larger = np.empty(2 * (used + more), found.dtype)
    larger[:used] = found[:used]
    return larger
