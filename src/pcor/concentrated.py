"""Composition by concentrated differential privacy: many draws for the price of fewer.

Public: everything here. A draw by the exponential mechanism whose log chances move by at most r
between neighbours costs r^2/8 of rho (bounded range: Cesar and Rogers 2021); rho adds up over
draws, and OpenDP converts the total to epsilon and delta (docs/proofs/concentrated.md).
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from typing import Any

from pcor.errors import ParameterError

# Rho is a multiple of 2 to minus this.
_BITS = 80
_LARGEST_RHO = 1 << 10


@lru_cache(maxsize=256)
def rho_for(epsilon: Fraction, delta: Fraction) -> Fraction:
    """Return the largest rho that OpenDP converts to at most epsilon at this delta."""
    low, high = 0, _LARGEST_RHO << _BITS
    for _ in range(70):  # beyond the precision of the float64 that is converted
        middle = (low + high) // 2
        if _epsilon_of(Fraction(middle, 1 << _BITS), delta) <= epsilon:
            low = middle
        else:
            high = middle
    if low == 0:
        raise ParameterError("epsilon is too small for this delta; leave delta out")
    return Fraction(low, 1 << _BITS)


def range_for(rho: Fraction) -> Fraction:
    """Return how far the log chances of one draw may move for its rho: the root of 8 rho, or less.

    >>> range_for(Fraction(1, 8))
    Fraction(1, 1)
    """
    scaled = 8 * rho.numerator * (1 << 2 * _BITS) // rho.denominator
    return Fraction(math.isqrt(scaled), 1 << _BITS)


def _epsilon_of(rho: Fraction, delta: Fraction) -> Fraction:
    """Convert by OpenDP; its inputs are rounded so that the answer can only be too large."""
    import opendp.prelude as dp  # takes a while to import

    dp.enable_features("contrib", "honest-but-curious")
    up = math.nextafter(float(rho), math.inf)
    down = math.nextafter(float(delta), 0.0)
    # A measurement that only states its cost: what is converted is the number.
    stated = dp.m.make_user_measurement(
        dp.atom_domain(T="f64", nan=False),
        dp.absolute_distance(T="f64"),
        dp.zero_concentrated_divergence(),
        lambda number: number,
        lambda _: up,
    )
    curve: Any = dp.c.make_zCDP_to_approxDP(stated)
    return Fraction(min(curve.map(1.0).epsilon(down), 1e300))
