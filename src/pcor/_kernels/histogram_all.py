"""The rare-bin rule for every record in every context.

Source: the paper, Section 6.5, as ``pcor.detectors.histogram`` states it; its ``verdicts`` is the
twin. The bin formula is the same to the last bit, and everything else is whole numbers. The formula
never falls as values rise, so the rows of a bin stand in a row and its end is found by bisection.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pcor._kernels import kernel, maker
from pcor._kernels.every_context import begin, step, with_room
from pcor._kernels.histogram import bin_of, root

Array = Any


@maker
def histogram_in_contexts(
    bits: Array,
    changed: Array,
    codes: Array,
    values: Array,
    most: Array,
    rule: tuple[bool, int],
    populations: Array,
    ends: Array,
) -> Array:
    """Judge as many contexts as there is room for; return the places of all outliers.

    Args:
        bits: of each context, as ``every_context.step`` takes them.
        changed: the slowest attribute in which each differs from the one before it.
        codes: as ``every_context.begin`` takes them, the rows by rising metric.
        values: the metric of each row, rising.
        most: the most rows that a rare bin can hold, for each size of a population.
        rule: whether the maximum can be an outlier, and the smallest population.
        populations: filled with the rows of each context.
        ends: filled with the number of outliers up to and with each context.
    """
    include_maximum, smallest = rule
    kept, sizes = begin(codes)
    found, used = np.empty(1024, np.int32), 0
    for number in range(len(populations)):
        own = step(bits[number], changed[number], codes, kept, sizes)
        n = len(own)
        populations[number] = n
        # With all values equal there is no bin width.
        if n >= max(smallest, 1) and values[own[0]] != values[own[-1]]:
            # Room for the worst case, so that the loop below needs no check.
            found = with_room(found, used, n)
            last = n
            # Rows with the maximum count for their bin but are not listed.
            while not include_maximum and values[own[last - 1]] == values[own[-1]]:
                last -= 1
            place = 0
            # From bin to bin: bisection skips the rows of a full one, and bins without rows never
            # come up.
            while place < n:
                end = _end_of_bin(own, values, place)
                if end - place <= most[n]:
                    for row in own[place : min(end, last)]:
                        found[used] = row
                        used += 1
                place = end
        ends[number] = used
    return found[:used].copy()


@kernel
def _end_of_bin(own: Array, values: Array, place: int) -> int:
    """Return the first place after this one that lies in another bin."""
    low, high, bins = values[own[0]], values[own[-1]], root(len(own))
    here = bin_of(values[own[place]], low, high, bins)
    # Invariant: ``inside`` lies in the bin, ``outside`` does not (or is beyond the end).
    inside, outside = place, len(own)
    while outside - inside > 1:
        middle = (inside + outside) // 2
        if bin_of(values[own[middle]], low, high, bins) == here:
            inside = middle
        else:
            outside = middle
    return outside
