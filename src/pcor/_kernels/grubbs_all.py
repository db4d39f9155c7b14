"""Grubbs' test, repeated, for every record in every context.

Source: Grubbs 1969, as ``pcor.detectors.grubbs`` states it; its ``verdicts`` is the twin. Mean and
deviation come from two sums that are updated as extremes are removed, so they carry a little more
rounding than the twin's. Wherever that could matter the context is marked unsure, and the twin
decides; the bounds are those of ``pcor._kernels.grubbs``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pcor._kernels import kernel, maker
from pcor._kernels.every_context import begin, step, with_room
from pcor._kernels.grubbs import _slack

Array = Any


@maker
def grubbs_in_contexts(
    bits: Array,
    changed: Array,
    codes: Array,
    values: Array,
    critical: Array,
    rule: tuple[int, float, int],
    populations: Array,
    ends: Array,
) -> tuple[Array, Array]:
    """Judge as many contexts as there is room for.

    Args:
        bits: of each context, as ``every_context.step`` takes them.
        changed: the slowest attribute in which each differs from the one before it.
        codes: as ``every_context.begin`` takes them, the rows by rising metric.
        values: the metric of each row, rising.
        critical: the critical value for each number of rows left.
        rule: the tail (0 both, 1 upper, 2 lower), a number amid the values to measure from, and the
            smallest population.
        populations: filled with the rows of each context.
        ends: filled with the number of outliers up to and with each context.

    Returns:
        The places of all outliers, and for each context whether it is unsure. One that is has none
        listed.
    """
    tail, centre, smallest = rule
    kept, sizes = begin(codes)
    found, used = np.empty(1024, np.int32), 0
    unsure = np.zeros(len(populations), np.bool_)
    for number in range(len(populations)):
        own = step(bits[number], changed[number], codes, kept, sizes)
        populations[number] = len(own)
        if len(own) >= max(smallest, 3):
            below, above, sure = _remove(own, values, critical, tail, centre)
            unsure[number] = not sure
            if sure:
                # Room for the worst case, so that the loops below need no check.
                found = with_room(found, used, len(own))
                # The low outliers, then the high ones: places rise within a context.
                for row in own[:below]:
                    found[used] = row
                    used += 1
                for row in own[above:]:
                    found[used] = row
                    used += 1
        ends[number] = used
    return found[:used].copy(), unsure


@kernel
def _remove(
    own: Array, values: Array, critical: Array, tail: int, centre: float
) -> tuple[int, int, bool]:
    """Remove extremes while the test finds one.

    Returns:
        The first place that is no outlier at the low end, the first that is one at the high end,
        and whether rounding cannot have mattered.
    """
    # Less the centre, squares stay near the spread and lose few digits to cancellation.
    total = square = 0.0
    for row in own:
        value = values[row] - centre
        total += value
        square += value * value
    n, low, high = len(own), 0, len(own) - 1
    scale, off = square, _slack(n)
    while n >= 3 and values[own[low]] != values[own[high]]:
        mean = total / n
        spread = square - total * mean
        size = np.sqrt(scale / n)
        lowest, highest = values[own[low]] - centre, values[own[high]] - centre
        up, down = highest - mean, mean - lowest
        # The spread is no larger than what rounding may have left of it.
        if spread <= off * scale:
            return 0, 0, False
        upper = tail == 1 or (tail == 0 and up > down)
        distance = up if upper else down
        needed = critical[n] * np.sqrt(spread / (n - 1))
        if abs(distance - needed) <= off * (size + needed * scale / spread):
            return 0, 0, False
        if distance < needed:
            break
        # Which end goes first is too close to call. It only matters once something is removed, so
        # this comes after the test.
        if tail == 0 and abs(up - down) <= off * size:
            return 0, 0, False
        removed = highest if upper else lowest
        n -= 1
        total -= removed
        square -= removed * removed
        if upper:
            high -= 1
        else:
            low += 1
    # Equal rows cannot be told apart: if one of them was removed, all of them are outliers.
    above = high + 1
    while 0 < above < len(own) and values[own[above - 1]] == values[own[above]]:
        above -= 1
    below = low
    while 0 < below < len(own) and values[own[below]] == values[own[below - 1]]:
        below += 1
    return below, above, True
