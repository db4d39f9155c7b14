"""Draw one of a known list: exactly, and in a few steps whatever the scores.

Private: the scores. Accepting one uniformly drawn candidate after another with chance exp(-x) takes
the more trials the further the scores are apart. Here candidates are proposed by powers of two just
above their weights, so every second proposal is accepted whatever the scores. Nothing is rounded:
each chance is exactly the mechanism's (docs/proofs/drawing.md).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from functools import lru_cache

from pcor.support.arrays import NDArray, np

UniformDraw = Callable[[int], int]

# Just below log2(e) = 1.442695..., by far more than float64 rounds.
_LOG2_E = Fraction(14426, 10000)

# No proposal has a weight below 2^-this. It bounds the numbers, and changes no chance.
_MOST_HALVINGS = 128

# Bits of the first comparison with a weight; as many are added until it is decided.
_BITS = 64


def draw_exponential(scores: Sequence[int], eta: Fraction, uniform: UniformDraw) -> int:
    """Return an index, drawn with a chance proportional to exp(eta * score).

    ``uniform(n)`` gives one of ``0 .. n-1``.
    """
    values = np.array(scores, dtype=np.int64)
    short = values.max() - values
    halvings = _halvings(short, eta, _MOST_HALVINGS)
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


def draw_permute_and_flip(scores: Sequence[int], eta: Fraction, uniform: UniformDraw) -> int:
    """Return an index, drawn by permute-and-flip: the first in random order to be accepted.

    Index i is accepted with probability exp(eta * (score - the largest score)). The first success
    in a random order is any one of all successes alike.
    """
    values = np.array(scores, dtype=np.int64)
    best = int(values.argmax())
    order = np.append(np.delete(np.arange(len(values)), best), best)
    return int(order[pick_success(values[best] - values[order], eta, uniform)])


def pick_success(short: NDArray[np.int64], eta: Fraction, uniform: UniformDraw) -> int:
    """Return one of the accepted indices, each with the same chance; the last is always accepted.

    Coin i shows True with chance exp(-eta * short[i]). First each coin is flipped roughly, with the
    power of two above its chance: 64 bits each. The few that are left are visited in random order
    and flipped for the rest of their chance, which is about one half at least.
    """
    halvings = _halvings(short[:-1], eta, 64)
    count = len(halvings)
    numbers = uniform(1 << 64 * count).to_bytes(8 * count, "little") if count else b""
    bits = np.frombuffer(numbers, dtype="<u8")
    below = np.left_shift(np.uint64(1), (64 - halvings).astype(np.uint64) % 64)
    left = np.flatnonzero((halvings == 0) | (bits < below)).tolist()
    left.append(count)
    while True:
        at = uniform(len(left))
        index = left[at]
        if index == count or happens(eta * int(short[index]), int(halvings[index]), uniform):
            return int(index)
        left[at] = left[-1]
        left.pop()


def _halvings(short: NDArray[np.int64], eta: Fraction, most: int) -> NDArray[np.int64]:
    """Return whole numbers h with 2^-h >= exp(-eta * short), close to the largest ones."""
    slope = float(eta) * float(_LOG2_E)
    halvings: NDArray[np.int64] = (np.minimum(short, most / slope) * slope).astype(np.int64)
    return halvings


def happens(x: Fraction, halvings: int, uniform: UniformDraw) -> bool:
    """Return True with probability 2^halvings * exp(-x), which must not exceed 1.

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
    if x * _LOG2_E > bits:  # below one unit
        return 0, 1
    digits = bits * 30103 // 100000 + 12
    with localcontext(Context(prec=digits, Emin=-(10**9), Emax=10**9)):
        quotient = Decimal(x.numerator) / Decimal(x.denominator)
        unit = Decimal(10) ** (quotient.adjusted() - digits + 2)
        low, high = (-(quotient + unit)).exp(), (-(quotient - unit)).exp()
        scale = Decimal(1 << bits)
        slack = Decimal(10) ** (scale.adjusted() + high.adjusted() - digits + 4)
        return max(int(low * scale - slack), 0), int(high * scale + slack) + 1
