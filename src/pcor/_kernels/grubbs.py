"""Grubbs' test, repeated, for one record in many contexts.

Source: Grubbs 1969, as ``pcor.detectors.grubbs`` states it; its ``verdicts`` is the twin. Here
mean and deviation come from sums kept for each cell and updated as extremes are removed, so they
carry a little more rounding than the twin's. Wherever that could matter, because two quantities
to be compared are closer than a generous bound on it, the answer is UNSURE and the twin decides.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pcor._kernels import kernel
from pcor._kernels.covering import covers

Array = Any

NO, YES, UNSURE = 0, 1, 2

# Sums of up to 2^20 terms and as many updates err by less than 2^20 * 2^-53 = 1e-10 of their size;
# what decides below are differences a thousand times larger.
SLACK = 1e-9


@kernel
def cell_moments(
    masks: Array, needs: Array, counts: Array, sums: Array, squares: Array, out: Array
) -> None:
    """Add up count, sum and sum of squares of the covered cells, for each context."""
    for row in range(len(masks)):
        n, total, square = 0.0, 0.0, 0.0
        for cell in range(len(needs)):
            if covers(masks[row], needs, cell):
                n += counts[cell]
                total += sums[cell]
                square += squares[cell]
        out[row, 0], out[row, 1], out[row, 2] = n, total, square


@kernel
def grubbs_verdicts(
    masks: Array,
    needs: Array,
    values: Array,
    counts: Array,
    moments: Array,
    critical: Array,
    rule: tuple[int, float, int],
    out: Array,
) -> None:
    """Tell for each context whether V's value is removed: NO, YES or UNSURE.

    Args:
        masks: the contexts, each of which covers V.
        needs: the needed bits of each pair.
        values: the metric of each pair less the centre, rising.
        counts: the rows of each pair.
        moments: count, sum and sum of squares of each context, about the centre.
        critical: the critical value for each number of rows left.
        rule: the tail (0 both, 1 upper, 2 lower), V's value less the centre, and the smallest
            population.
        out: one small integer per context.
    """
    tail, v, smallest = rule
    for row in range(len(masks)):
        n, total, square = int(moments[row, 0]), moments[row, 1], moments[row, 2]
        scale = square
        low, high = -1, len(values)
        below, above = 0, 0  # copies left of the pairs at low and high
        out[row] = NO
        if n < smallest:
            continue
        while n >= 3:
            while below == 0:
                low += 1
                below = counts[low] if covers(masks[row], needs, low) else 0
            while above == 0:
                high -= 1
                above = counts[high] if covers(masks[row], needs, high) else 0
            if values[low] == values[high]:
                break
            mean = total / n
            spread = square - total * mean
            size = np.sqrt(scale / n)
            up, down = values[high] - mean, mean - values[low]
            upper = tail == 1 or (tail == 0 and up >= down)
            if spread <= SLACK * scale or (tail == 0 and abs(up - down) <= SLACK * size):
                out[row] = UNSURE
                break
            distance = up if upper else down
            needed = critical[n] * np.sqrt(spread / (n - 1))
            if abs(distance - needed) <= SLACK * (size + needed * scale / spread):
                out[row] = UNSURE
                break
            if distance < needed:
                break
            removed = values[high] if upper else values[low]
            if removed == v:
                out[row] = YES
                break
            n -= 1
            total -= removed
            square -= removed * removed
            if upper:
                above -= 1
            else:
                below -= 1
