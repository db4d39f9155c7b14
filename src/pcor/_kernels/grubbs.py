"""Grubbs' test, repeated, for one record in many contexts.

Source: Grubbs 1969, as ``pcor.detectors.grubbs`` states it; its ``verdicts`` is the twin. Here
mean and deviation come from sums kept for each cell and updated as extremes are removed, so they
carry a little more rounding than the twin's. Wherever that could matter, because two quantities
to be compared are closer than a generous bound on it, the answer is UNSURE and the twin decides.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pcor._kernels import kernel, maker
from pcor._kernels.copies import copy_into
from pcor._kernels.coverage import PairColumns, covers

Array = Any

NO, YES, UNSURE = 0, 1, 2
_BETWEEN = 3  # neither far enough out now nor too near in the end: extremes must be removed

# Sums of n terms and as many updates err by less than 2 * n * 2^-53 of their size; what decides
# below are differences several times larger, and never smaller ones than this.
SLACK = 1e-9
SLACK_A_ROW = 16 * 2.0**-53
# Sums of squares below this may have lost digits to underflow.
TINY = 1e-250


@kernel
def _slack(n: float) -> float:
    """Return how far sums over n rows may be off, relative to their size, with room to spare."""
    return max(SLACK, SLACK_A_ROW * n)


@kernel
def grubbs_verdicts(
    masks: Array,
    pairs: PairColumns,
    moments: Array,
    critical: Array,
    rule: tuple[int, float, int],
    out: Array,
) -> None:
    """Tell for each context whether V's value is removed: NO, YES or UNSURE.

    Args:
        masks: the contexts, each of which covers V.
        pairs: what they may cover, the metrics less the centre.
        moments: for each context count, sum and sum of squares about the centre; then, if known,
            the same of the values above V, and how many equal V's. Shape (3 or 7, contexts).
        critical: the critical value for each number of rows left.
        rule: the tail (0 both, 1 upper, 2 lower), V's value less the centre, and the smallest
            population.
        out: one small integer per context.
    """
    tail, v, smallest = rule
    for row in range(len(masks)):
        # With fewer than three rows the test has no degrees of freedom.
        if moments[0, row] < max(smallest, 3):
            out[row] = NO
            continue
        out[row] = UNSURE
        # The quick way needs the moments above V; the slow one removes row by row, and is tried
        # wherever the quick way cannot tell.
        if len(moments) > 3:
            out[row], side = _at_once(masks[row], pairs, critical, tail, v, moments[:, row], np.nan)
            if out[row] == _BETWEEN:
                out[row] = _in_leaps(masks[row], pairs, critical, side, v, moments[:, row])
        if out[row] == UNSURE:
            out[row] = _step_by_step(masks[row], pairs, critical, tail, v, moments[:, row])


@maker
def grubbs_changed_verdicts(
    masks: Array,
    pairs: PairColumns,
    moments: Array,
    critical: Array,
    rule: tuple[int, float, int],
    changes: tuple[Array, Array, float],
    out: Array,
) -> None:
    """Tell for each of many one-row changes, and each context, whether V's value is removed.

    Moments are those of the contexts before the change, and the change is added to them. UNSURE
    wherever that could matter, or extremes would have to be removed.

    Args:
        masks: the contexts, each of which covers V and the changed row.
        pairs: as for ``grubbs_verdicts``, before the change.
        moments: likewise, all seven.
        critical: likewise, for one row more too.
        rule: likewise.
        changes: the metrics of the rows less the centre; for each 1 above V, 0 if V's own, -1
            below; and 1 if the rows are added, -1 if they are removed.
        out: small integers, shape (changes, contexts).
    """
    tail, v, smallest = rule
    metrics, sides, rows = changes
    changed = np.empty(7)
    for context in range(len(masks)):
        before = moments[:, context]
        for number in range(len(metrics)):
            x = metrics[number]
            copy_into(changed, before)
            changed[0] += rows
            changed[1] += rows * x
            changed[2] += rows * x * x
            if sides[number] > 0:
                changed[3] += rows
                changed[4] += rows * x
                changed[5] += rows * x * x
            elif sides[number] == 0:
                changed[6] += rows
            if changed[0] < max(smallest, 3):
                out[number, context] = NO
                continue
            # Sums that were halved are rounded by the size of the whole.
            if 2 * changed[0] < before[0] or 2 * changed[2] < before[2]:
                out[number, context] = UNSURE
                continue
            added = x if rows > 0 else np.nan
            verdict, _ = _at_once(masks[context], pairs, critical, tail, v, changed, added)
            out[number, context] = UNSURE if verdict == _BETWEEN else verdict


@kernel
def _at_once(
    mask: Array,
    pairs: PairColumns,
    critical: Array,
    tail: int,
    v: float,
    moments: Array,
    added: float,
) -> tuple[int, float]:
    """Decide without removing one by one; return also V's side, 1 for the upper one.

    Say V is on the upper side, and the lower extreme is too near to be removed as long as V is
    there. Then what is removed before V are the values above it, each time lowering mean, deviation
    and critical value. So V is removed only if it is far enough out once all values above it are
    gone, and whatever is far enough out now will be removed when its turn comes.

    When is the lower extreme too near? As values above V go, the mean comes nearer to it. What is
    left holds at least V and all below it, so its squared deviations sum to no less than theirs,
    over at most n - 1; and the critical value falls with the number of rows.

    ``added`` is the metric of one row that is in the moments and not in the pairs, or not a number.
    A row that is in the pairs alone makes the other extreme no nearer, which is on the safe side.
    """
    required, values, _ = pairs
    n, total, square = moments[0], moments[1], moments[2]
    off = _slack(n)
    mean = total / n
    upper = tail == 1 or (tail == 0 and v >= mean)
    side = 1.0 if upper else -1.0
    gone, gone_total, gone_square = moments[3], moments[4], moments[5]
    # For the lower side the rows "above" V are those below it: all, less those above, less its
    # equals.
    if not upper:
        same = moments[6]
        gone = n - gone - same
        gone_total = total - gone_total - same * v
        gone_square = square - gone_square - same * v * v
    left = int(n - gone)
    if left < 3:
        # Nothing is tested among fewer than three.
        return (UNSURE if tail == 0 else NO), side
    # Mean and deviation once everything farther out than V is removed.
    mean_left = (total - gone_total) / left
    spread = square - total * mean
    spread_left = (square - gone_square) - (total - gone_total) * mean_left
    # The subtraction may have cancelled every digit: the spread is rounding noise.
    if spread_left <= off * square or square <= TINY:
        return UNSURE, side
    slack = off * (np.sqrt(square / n) + np.sqrt(square / left))
    needed = critical[int(n)] * np.sqrt(spread / (n - 1))
    needed_left = critical[left] * np.sqrt(spread_left / (left - 1))
    # By which factor the deviation may be off: an error of the squares, relative to the spread.
    roughly = 1 + off * square / spread_left
    # The other extreme must be too near to be removed while V is there. It is never farther from
    # the mean than now, and a removal never needs less than ``least``.
    if tail == 0:
        least = critical[left] * np.sqrt(spread_left / (n - 1))
        pair, step = (0, 1) if upper else (len(values) - 1, -1)
        while not covers(mask, required, pair):
            pair += step
        extreme = values[pair]
        if side * (extreme - added) > 0:
            extreme = added
        if side * (mean - extreme) + slack >= least / roughly:
            return UNSURE, side
    if side * (v - mean) - slack > needed * roughly:
        return YES, side
    # Not even with everybody beyond it gone is V far enough out.
    if side * (v - mean_left) + slack < needed_left / roughly:
        return NO, side
    return _BETWEEN, side


@kernel
def _in_leaps(
    mask: Array, pairs: PairColumns, critical: Array, side: float, v: float, moments: Array
) -> int:
    """Remove everything that is far enough out, test again, until V is or nothing is."""
    required, values, counts = pairs
    n, total, square = moments[0], moments[1], moments[2]
    # Errors are measured against the sums before any removal: updates never make them smaller.
    scale, off = square, _slack(n)
    pair, step = (len(values) - 1, -1) if side > 0 else (0, 1)
    while True:
        mean = total / n
        spread = square - total * mean
        if n < 3 or spread <= off * scale or scale <= TINY:
            return UNSURE
        slack = 2 * off * np.sqrt(scale / n)
        roughly = 1 + off * scale / spread
        needed = critical[int(n)] * np.sqrt(spread / (n - 1))
        if side * (v - mean) - slack > needed * roughly:
            return YES
        # As in ``_at_once``: whatever is far enough out now will be removed when its turn comes, so
        # all of it can go at once.
        before = n
        while (
            not covers(mask, required, pair)
            or side * (values[pair] - mean) - slack > needed * roughly
        ):
            if covers(mask, required, pair):
                n -= counts[pair]
                total -= counts[pair] * values[pair]
                square -= counts[pair] * values[pair] * values[pair]
            pair += step
        if n == before:
            return NO if side * (values[pair] - mean) + slack < needed / roughly else UNSURE


@kernel
def _step_by_step(
    mask: Array, pairs: PairColumns, critical: Array, tail: int, v: float, moments: Array
) -> int:
    """Remove extremes one at a time until V's turn comes or the test finds none.

    Less the centre, values close to one another may have become equal. So V counts as removed only
    once all that equal it here are, and what is left counts as equal only if all of it is V's own.
    """
    required, values, counts = pairs
    n, total, square = int(moments[0]), moments[1], moments[2]
    own = int(moments[6]) if len(moments) > 3 else 0  # rows that equal V for certain
    scale, off = square, _slack(n)
    low, high = -1, len(values)
    below, above = 0, 0  # copies left of the pairs at low and high
    reached = False  # whether one that equals V here was removed
    while n >= 3:
        # Skip to the next covered pair; its copies are removed one at a time.
        while below == 0:
            low += 1
            below = counts[low] if covers(mask, required, low) else 0
        while above == 0:
            high -= 1
            above = counts[high] if covers(mask, required, high) else 0
        if reached and values[low] != v and values[high] != v:
            return YES
        if values[low] == values[high]:
            return NO if n == own and not reached else UNSURE
        mean = total / n
        spread = square - total * mean
        size = np.sqrt(scale / n)
        up, down = values[high] - mean, mean - values[low]
        unclear = spread <= off * scale or scale <= TINY
        if unclear or (tail == 0 and abs(up - down) <= off * size):
            return UNSURE
        upper = tail == 1 or (tail == 0 and up > down)
        distance = up if upper else down
        needed = critical[n] * np.sqrt(spread / (n - 1))
        if abs(distance - needed) <= off * (size + needed * scale / spread):
            return UNSURE
        # Rows that equal V here may differ from it before the centre was subtracted: if one of them
        # was removed, the twin decides.
        if distance < needed:
            return UNSURE if reached else NO
        removed = values[high] if upper else values[low]
        reached = reached or removed == v
        n -= 1
        total -= removed
        square -= removed * removed
        if upper:
            above -= 1
        else:
            below -= 1
    return UNSURE if reached else NO
