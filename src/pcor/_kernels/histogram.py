"""The rare-bin rule for one record in many contexts.

Source: the paper, Section 6.5, as ``pcor.detectors.histogram`` states it; its ``verdicts`` is the
twin. The bin formula is the same to the last bit, and everything else is whole numbers.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pcor._kernels import kernel
from pcor._kernels.coverage import PairColumns, covers

Array = Any


@kernel
def histogram_verdicts(
    masks: Array,
    pairs: PairColumns,
    populations: Array,
    most: Array,
    at: int,
    rule: tuple[bool, int],
    out: Array,
) -> None:
    """Tell for each context whether V lies in a rare bin.

    Counting outward from V ends at the first value of another bin or as soon as the bin holds too
    many to be rare.

    Args:
        masks: the contexts, each of which covers V.
        pairs: what they may cover.
        populations: the rows of each context.
        most: the most rows that a rare bin of each context can hold.
        at: the first pair with V's value.
        rule: whether the maximum can be an outlier, and the smallest population.
        out: one boolean per context.
    """
    include_maximum, smallest = rule
    required, values, counts = pairs
    v = values[at]
    for row in range(len(masks)):
        n = populations[row]
        out[row] = False
        if n < smallest:
            continue
        low = values[_first_covered(masks[row], required, 0, 1)]
        high = values[_first_covered(masks[row], required, len(values) - 1, -1)]
        # One value alone makes no histogram; without the maximum, the authors' half-open last bin.
        if low == high or (v == high and not include_maximum):
            continue
        bins = root(n)
        # The bin is computed, not its edges: rounding is then the same for V and for everybody.
        own = bin_of(v, low, high, bins)
        inside = 0
        for step in (-1, 1):
            pair = at if step == 1 else at - 1
            # The formula never falls as values rise, so the bin is a run of pairs around V.
            while 0 <= pair < len(values) and inside <= most[row]:
                if covers(masks[row], required, pair):
                    if bin_of(values[pair], low, high, bins) != own:
                        break
                    inside += counts[pair]
                pair += step
        out[row] = inside <= most[row]


@kernel
def _first_covered(mask: Array, required: Array, start: int, step: int) -> int:
    """Return the first covered pair from one end; there is one, because V is covered."""
    pair = start
    while not covers(mask, required, pair):
        pair += step
    return pair


@kernel
def bin_of(value: float, low: float, high: float, bins: int) -> int:
    """Return the bin of a value; the formula of ``detectors.histogram.bin_numbers``."""
    # The maximum alone would fall into a bin of its own; it belongs to the last one.
    return min(int(np.floor((value - low) * bins / (high - low))), bins - 1)


@kernel
def root(n: int) -> int:
    """Return the whole square root: float's, put right where it rounded over a square."""
    # A table has fewer than 2^31 rows, so these squares cannot overflow.
    found = int(np.sqrt(n))
    while found * found > n:
        found -= 1
    while (found + 1) * (found + 1) <= n:
        found += 1
    return found
