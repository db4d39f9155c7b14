"""Grubbs' test, repeated, for all contexts of a block by comparing sums.

Proof: docs/proofs/lattice_grubbs.md. Sums are those of distances from a point, V itself or a value
h beyond it, so that nothing cancels: with n rows, a the sum of their signed distances and b that of
the squares, the point lies far enough out exactly if ``a*a / (n*b)`` exceeds a share that depends
on n alone. What these kernels cannot settle for certain stays UNSURE, and the detector is asked.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pcor._kernels import kernel
from pcor._kernels.coverage import covers
from pcor._kernels.grubbs import NO, TINY, UNSURE, YES, _slack

Array = Any

# V is farther out than what is on its other side can ever be while it is there, and not far enough
# out before those beyond it are gone: they have to be removed.
LEAP_DOWN, LEAP_UP = 3, 4


@kernel
def _far_out(a: float, n: float, b: float, share: float) -> bool:
    """Tell whether a point is far enough out for certain; ``a`` is positive on its side."""
    scale = n * b
    return a > 0 and scale > TINY and a * a > (share + 4 * _slack(n)) * scale


@kernel
def _not_far_out(a: float, n: float, b: float, share: float) -> bool:
    """Tell whether a point is not far enough out for certain."""
    scale = n * b
    return scale > TINY and (a <= 0 or a * a < (share - 4 * _slack(n)) * scale)


@kernel
def _farther(side: int, a: float, n: float, b: float, extreme: float) -> bool:
    """Tell whether V is farther from the mean, on its side, than the other extreme for certain."""
    reach = abs(extreme)
    slack = 4 * _slack(n)
    return bool(-side * 2 * a > n * reach * (1 + slack) + slack * np.sqrt(n * b))


@kernel
def settle_outright(
    totals: Array, extremes: Array, shares: Array, rule: tuple[int, int], out: Array
) -> int:
    """Settle the contexts of a block in which nothing need be removed before V.

    Args:
        totals: rows, and the sums of their metrics less V's and of the squares: shape (3, size).
        extremes: the least and the largest metric, less V's: shape (2, size).
        shares: for each number of rows what must be exceeded to be far enough out for certain.
        rule: the tail (0 both, 1 upper, 2 lower), and the smallest population.
        out: NO, YES or UNSURE for each context.

    Returns:
        How many are UNSURE.
    """
    tail, smallest = rule
    unsure = 0
    for i in range(len(out)):
        n, a, b = totals[0, i], totals[1, i], totals[2, i]
        low, high = extremes[0, i], extremes[1, i]
        # Among fewer than three nothing is tested; where all are equal nothing is far out.
        if n < max(smallest, 3) or low == high:
            out[i] = NO
            continue
        side = 1 if a < 0 else -1
        other = low if side > 0 else high
        if (
            (tail == 0 or side == 3 - 2 * tail)
            and _far_out(-side * a, n, b, shares[int(n)])
            and (tail != 0 or _farther(side, a, n, b, other))
        ):
            out[i] = YES
        else:
            out[i] = UNSURE
            unsure += 1
    return unsure


@kernel
def settle_by_kept(
    totals: Array,
    extremes: Array,
    kept: Array,
    form: tuple[int, int, bool],
    tables: tuple[Array, Array, Array],
    out: Array,
) -> int:
    """Settle contexts in which certain rows, V among them, stay: those not beyond a point h.

    Args:
        totals: as for ``settle_outright``.
        extremes: likewise.
        kept: of the rows not beyond h how many there are, and the sums of their distances from h
            and of the squares: shape (3, size).
        form: the tail; the side on which h lies, 1 for above V; and whether h is V.
        tables: for each number of rows what must be exceeded to be far enough out for certain; the
            least share that a point which is far enough out exceeds; and the least critical value
            for so many rows or more.
        out: as there; a context in which what is beyond V must be removed becomes LEAP_DOWN or
            LEAP_UP.

    Returns:
        How many are UNSURE.
    """
    tail, side, own = form
    shares, least_shares, critical = tables
    unsure = 0
    for i in range(len(out)):
        if out[i] != UNSURE:
            continue
        n, a, b = totals[0, i], totals[1, i], totals[2, i]
        left, distance, square = kept[0, i], kept[1, i], kept[2, i]
        stays = left >= 3 and _not_far_out(distance, left, square, least_shares[int(left)])
        if not (stays or own):
            unsure += 1
            continue
        other = extremes[0, i] if side > 0 else extremes[1, i]
        held = (
            tail != 0
            or (own and _farther(side, a, n, b, other))
            or _held(n, side * a, b, abs(other), left, distance, square, critical)
        )
        if not held:
            unsure += 1
        elif stays:
            out[i] = NO
        elif _far_out(-side * a, n, b, shares[int(n)]) or _far_out(
            distance, n, square, shares[int(n)]
        ):
            # V is far enough out now, or would be among its kept rows were they as many as all.
            out[i] = YES
        else:
            out[i] = LEAP_DOWN if side > 0 else LEAP_UP
    return unsure


@kernel
def _held(
    n: float,
    a: float,
    b: float,
    reach: float,
    left: float,
    distance: float,
    square: float,
    critical: Array,
) -> bool:
    """Tell whether the other extreme is too near to be removed while the kept rows are there.

    It is never farther from the mean than now. What is left has at least the squared deviations of
    the kept rows, over at most n - 1, and needs at least the critical value for so many rows.

    Args:
        n: rows of the context.
        a: the sum of their metrics less V's, positive on the side on which rows are removed.
        b: the sum of the squares.
        reach: how far the other extreme is from V.
        left: rows that are kept.
        distance: the sum of their distances from a point beyond them.
        square: the sum of the squares.
        critical: the least critical value for so many rows or more.
    """
    if left < 3:
        return False
    off = _slack(n)
    far = a / n + reach + 4 * off * (np.sqrt(b / n) + reach)
    spread = square - distance * distance / left - 8 * off * square
    needed = critical[int(left)]
    return bool(spread > TINY and (1 + off) * far * far * (n - 1) < needed * needed * spread)


@kernel
def settle_in_leaps(
    masks: Array,
    totals: Array,
    beyond: tuple[Array, Array, Array],
    mark: int,
    critical: Array,
    out: Array,
) -> None:
    """Settle contexts with a mark, LEAP_DOWN or LEAP_UP, as far as rounding allows.

    Args:
        masks: the contexts, each of which covers V.
        totals: as for ``settle_outright``.
        beyond: the pairs of the block that are V's or beyond it, the farthest first: what their
            cells require, how far beyond V they are, and their rows.
        mark: which contexts.
        critical: the critical value for each number of rows left.
        out: as there; NO, YES or UNSURE instead of the mark.
    """
    side = 1.0 if mark == LEAP_DOWN else -1.0
    for i in range(len(out)):
        if out[i] == mark:
            out[i] = _in_leaps(
                masks[i], totals[0, i], side * totals[1, i], totals[2, i], beyond, critical
            )


@kernel
def _in_leaps(
    mask: Array,
    n: float,
    total: float,
    square: float,
    beyond: tuple[Array, Array, Array],
    critical: Array,
) -> int:
    """Remove everything that is far enough out, test again, until V is or nothing is.

    As ``grubbs._in_leaps``, but with sums about V.
    """
    required, values, counts = beyond
    # Errors are measured against the sums before any removal: updates never make them smaller.
    scale, off = square, _slack(n)
    pair = 0
    while True:
        mean = total / n
        spread = square - total * mean
        if n < 3 or spread <= off * scale or scale <= TINY:
            return UNSURE
        slack = 2 * off * np.sqrt(scale / n)
        roughly = 1 + off * scale / spread
        needed = critical[int(n)] * np.sqrt(spread / (n - 1))
        least = mean + slack + needed * roughly
        if least < 0.0:
            return YES
        before = n
        # V's own value, which is 0, is not beyond the least: the loop ends there.
        while values[pair] > least:
            missing = np.uint64(0)
            for word in range(required.shape[1]):
                missing |= required[pair, word] & ~mask[word]
            # Without a branch, whose outcome nobody could predict.
            rows = counts[pair] if missing == 0 else 0.0
            n -= rows
            total -= rows * values[pair]
            square -= rows * values[pair] * values[pair]
            pair += 1
        if n == before:
            while not covers(mask, required, pair):
                pair += 1
            return NO if values[pair] - mean + slack < needed / roughly else UNSURE
