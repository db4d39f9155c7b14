"""Composition by concentrated differential privacy: many draws for the price of fewer.

Public: everything here. A draw by the exponential mechanism whose log chances move by at most r
between neighbours costs r^2/8 of rho (bounded range: Cesar and Rogers 2021); rho adds up over
draws, and the total converts to epsilon and delta (docs/proofs/concentrated.md).
"""

from __future__ import annotations

import math
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from functools import lru_cache

from pcor.errors import ParameterError

# Rho is a whole multiple of 2^-_BITS.
_BITS = 80

# Decimal digits of the computation, and the slack that covers its rounding.
_DIGITS = 80
_SLACK = Decimal(10) ** -70

# The Renyi order is searched for among 1 + exp(x), x between these.
_ORDERS = (math.log(1e-9), math.log(1e18))


@lru_cache(maxsize=256)
def rho_for(epsilon: Fraction, delta: Fraction) -> Fraction:
    """Return the largest rho, rounded down, that converts to at most epsilon at this delta."""
    low, high = _ORDERS
    for _ in range(200):  # ternary search: rho is unimodal in the order
        third = (high - low) / 3
        left, right = (_estimate(x, epsilon, delta) for x in (low + third, high - third))
        low, high = (low + third, high) if left < right else (low, high - third)
    rho = _rho_at(Decimal(1 + math.exp(low)), epsilon, delta)
    if rho <= 0:
        raise ParameterError("epsilon is too small for this delta; leave delta out")
    return rho


def range_for(rho: Fraction) -> Fraction:
    """Return how far the log chances of one draw may move for its rho: the root of 8 rho, or less.

    >>> range_for(Fraction(1, 8))
    Fraction(1, 1)
    """
    scaled = 8 * rho.numerator * (1 << 2 * _BITS) // rho.denominator
    return Fraction(math.isqrt(scaled), 1 << _BITS)


def _estimate(x: float, epsilon: Fraction, delta: Fraction) -> float:
    """Return roughly what ``_rho_at`` says for the order 1 + exp(x)."""
    less = math.exp(x)  # the order less one
    log = math.log(delta.denominator) - math.log(delta.numerator)
    return (float(epsilon) + math.log1p(1 / less) - (log - math.log1p(less)) / less) / (1 + less)


def _rho_at(order: Decimal, epsilon: Fraction, delta: Fraction) -> Fraction:
    """Return the rho that one order converts to epsilon and delta, or less by rounding.

    Canonne, Kamath and Steinke 2020, Proposition 12, solved for rho; every order above 1 is right,
    so it does not matter for the promise how well the best one was found.
    """
    with localcontext(Context(prec=_DIGITS)):
        less = order - 1
        terms = (
            Decimal(epsilon.numerator) / epsilon.denominator,
            (order / less).ln(),
            -(Decimal(delta.denominator) / delta.numerator / order).ln() / less,
        )
        slack = sum(map(abs, terms), Decimal(1)) * _SLACK
        rho = Fraction((sum(terms) - slack) / order)
    return Fraction(math.floor(rho * (1 << _BITS)), 1 << _BITS)
