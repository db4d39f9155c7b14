"""Noise for numbers that leave: drawn exactly, and how far it can be off.

Private: what the noise is added to. Public: the rate, and so how far the noise reaches. The
discrete Laplace distribution gives the whole number k a chance proportional to exp(-rate * |k|);
with a rate of epsilon over the most that a number can move between neighbours it costs epsilon
(Ghosh, Roughgarden and Sundararajan 2009; docs/proofs/facts.md). Nothing is rounded.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache

from pcor.mechanism.samplers import UniformDraw, exp_bounds, happens

# Bits of precision of a bound on a chance; it is rounded so that no width comes out too small.
_BITS = 192


def draw_discrete_laplace(rate: Fraction, uniform: UniformDraw) -> int:
    """Return a whole number k, drawn with a chance proportional to exp(-rate * |k|).

    Canonne, Kamath and Steinke 2020, Algorithm 2, with scale 1 / rate = t / s. The coins are
    ``samplers.happens``, which compares a uniform number with exp(-x) to as many digits as it
    takes.

    Args:
        rate: positive.
        uniform: ``uniform(n)`` gives one of ``0 .. n-1``.
    """
    s, t = rate.numerator, rate.denominator
    while True:
        offset = uniform(t)
        if not happens(Fraction(offset, t), 0, uniform):
            continue
        blocks = 0
        while happens(Fraction(1), 0, uniform):
            blocks += 1
        size = (offset + t * blocks) // s
        negative = uniform(2) == 1
        if size > 0 or not negative:  # 0 has one sign, or it would come twice as often
            return -size if negative else size


@lru_cache(maxsize=256)
def noise_width(rate: Fraction, outside: Fraction) -> int:
    """Return the smallest w so that noise is farther out than w with a chance of at most this.

    The chance is 2 * a^(w + 1) / (1 + a) with a = exp(-rate).

    >>> noise_width(Fraction(1, 10), Fraction(1, 20))
    30
    """

    def holds(width: int) -> bool:
        beyond = exp_bounds(rate * (width + 1), _BITS)[1]
        return 2 * beyond <= outside * ((1 << _BITS) + exp_bounds(rate, _BITS)[0])

    return _smallest(holds)


@lru_cache(maxsize=256)
def selection_width(eta: Fraction, others: int, outside: Fraction) -> int:
    """Return the smallest w so that a drawn score is w below the best with at most this chance.

    By the exponential mechanism one candidate has the best score, and at most ``others`` are w or
    more below it: together their chance is at most B / (1 + B) with B = others * exp(-eta * w).

    >>> selection_width(Fraction(1, 10), 1000, Fraction(1, 20))
    99
    """

    def holds(width: int) -> bool:
        beyond = others * exp_bounds(eta * width, _BITS)[1]
        return beyond * (1 - outside) <= outside * (1 << _BITS)

    return _smallest(holds)


def _smallest(holds: Callable[[int], bool]) -> int:
    """Return the smallest whole number from which on something holds."""
    if holds(0):
        return 0
    least, most = 0, 1  # it does not hold at the least
    while not holds(most):
        least, most = most, 2 * most
    while most - least > 1:
        middle = (least + most) // 2
        least, most = (least, middle) if holds(middle) else (middle, most)
    return most
