"""Draw one of a known list by the exponential mechanism: exactly, and in a few steps.

Private: the scores. OpenDP accepts one uniformly drawn candidate after another with chance exp(-x),
which takes the more trials the further the scores are apart. Here candidates are proposed by powers
of two just above their weights, so every second proposal is accepted whatever the scores. Nothing
is rounded: each chance is exactly the mechanism's (docs/proofs/drawing.md).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from functools import lru_cache

import numpy as np

Uniform = Callable[[int], int]

# Just below log2(e) = 1.442695..., by far more than float64 rounds.
_LOG2_E = 1.4426

# No proposal is rarer than 2 to minus this. A bound on numbers, not on chances.
_MOST_HALVINGS = 128

# Digits of the first comparison with a weight, in bits; as many more as often as needed.
_BITS = 64


def draw_exponential(scores: Sequence[int], eta: Fraction, uniform: Uniform) -> int:
    """Return an index, drawn with a chance proportional to exp(eta * score).

    ``uniform(n)`` gives one of ``0 .. n-1``.
    """
    values = np.array(scores, dtype=np.int64)
    short = values.max() - values
    # 2^-halvings >= exp(-eta * short): the power of two that a candidate is proposed by.
    least = _MOST_HALVINGS / (float(eta) * _LOG2_E)
    halvings = (np.minimum(short, least) * (float(eta) * _LOG2_E)).astype(np.int64)
    counts = np.bincount(halvings).tolist()
    last = len(counts) - 1
    total = sum(count << (last - power) for power, count in enumerate(counts))
    while True:
        point, power = uniform(total), 0
        while point >= counts[power] << (last - power):
            point -= counts[power] << (last - power)
            power += 1
        index = int(np.flatnonzero(halvings == power)[point >> (last - power)])
        if happens(eta * int(short[index]), power, uniform):
            return index


def happens(x: Fraction, halvings: int, uniform: Uniform) -> bool:
    """Flip a coin that shows True with chance 2^halvings * exp(-x), which must not exceed 1.

    The bits of a uniform number are fetched until it is clearly above or below.
    """
    bits, point = _BITS, uniform(1 << _BITS)
    while True:
        low, high = exp_bounds(x, bits + halvings)
        if point + 1 <= low:
            return True
        if point >= high:
            return False
        bits, point = bits + _BITS, point << _BITS | uniform(1 << _BITS)


@lru_cache(maxsize=1 << 16)
def exp_bounds(x: Fraction, bits: int) -> tuple[int, int]:
    """Return whole numbers with ``low <= 2^bits * exp(-x) <= high`` and close together; x >= 0.

    ``Decimal.exp`` is right to one unit in the last digit (General Decimal Arithmetic 1.70; Python
    promises half of one); x is first rounded up and then down, which bounds what that does.

    >>> exp_bounds(Fraction(0), 8)
    (256, 256)
    >>> low, high = exp_bounds(Fraction(1), 64)
    >>> low <= 6786177901268885274 <= high, high - low < 4
    (True, True)
    """
    if x == 0:
        return 1 << bits, 1 << bits
    if x * Fraction(14426, 10000) > bits:  # log2(e) > 1.4426: below one unit
        return 0, 1
    digits = bits * 30103 // 100000 + 12
    with localcontext(Context(prec=digits, Emin=-(10**9), Emax=10**9)):
        quotient = Decimal(x.numerator) / Decimal(x.denominator)
        unit = Decimal(10) ** (quotient.adjusted() - digits + 2)
        low, high = (-(quotient + unit)).exp(), (-(quotient - unit)).exp()
        scale = Decimal(1 << bits)
        slack = Decimal(10) ** (scale.adjusted() + high.adjusted() - digits + 4)
        return max(int(low * scale - slack), 0), int(high * scale + slack) + 1
