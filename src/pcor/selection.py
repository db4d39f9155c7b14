"""Choose one candidate at random, better ones more often: exactly, by the system's randomness.

Private: the scores and the draws. Public: eta, the mechanism, how many candidates an adversary
could compute from COE. The draws are our own exact ones (``drawing``, ``ordered``) but for
permute-and-flip over a list, which is OpenDP's (``make_noisy_max`` computes in exact rationals with
OpenSSL's randomness, seeded by the operating system). Guarantee of one draw with exponent eta when
one row moves no score by more than d: 2*eta*d for either mechanism, eta*d where an added row never
lowers a score (docs/proofs/selection.md).
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from pcor.choosing import MECHANISMS, Accepts, keep_accepted
from pcor.drawing import draw_exponential
from pcor.errors import ParameterError, UnknownName
from pcor.ordered import Candidates, draw_first


class SystemChooser:
    """The chooser of every real release: randomness from the operating system."""

    private = True

    def uniform(self, count: int) -> int:
        """Return one of ``0 .. count-1``, each with the same chance."""
        return secrets.randbelow(count)

    def sample(self, size: int, accepts: Accepts, *, wanted: int, cap: int) -> list[int]:
        """Draw accepted indices uniformly with replacement."""
        return keep_accepted(size, accepts, wanted=wanted, cap=cap, uniform=self.uniform)

    def select_first(self, candidates: Candidates, *, eta: Fraction, mechanism: str) -> int | None:
        """Draw while the candidates arrive, best first."""
        return draw_first(candidates, eta, self.uniform, mechanism)

    def select(self, scores: Sequence[int], *, eta: Fraction, mechanism: str) -> int:
        """Draw one index by a private selection mechanism."""
        if mechanism == "exponential":
            return draw_exponential(scores, eta, self.uniform)
        draw = _permute_and_flip(scale_for(eta))
        # Only differences matter; measured from the first, they fit 64 bits by utility's limit.
        values = np.array(scores, dtype=np.int64)
        return int(draw(values - values[0]))


def scale_for(eta: Fraction) -> float:
    """Return the smallest noise scale in float64 whose inverse does not exceed eta.

    Rounded up, so that what is drawn never costs more than what is charged.

    >>> Fraction(1) / Fraction(scale_for(Fraction(1, 3))) <= Fraction(1, 3)
    True
    """
    if eta <= 0:
        raise ParameterError("epsilon must be positive")
    try:
        scale = float(1 / eta)
    except OverflowError:
        scale = math.inf
    if not 1e-300 < scale < 1e300:
        raise ParameterError("epsilon is too small or too large to draw with; try 0.01 to 10")
    while 1 / Fraction(scale) > eta:
        scale = math.nextafter(scale, math.inf)
    return scale


def check_mechanism(mechanism: str) -> str:
    """Return the name of a selection mechanism, or refuse it."""
    if mechanism not in MECHANISMS:
        raise UnknownName("selection", mechanism, MECHANISMS)
    return mechanism


@lru_cache(maxsize=256)
def _permute_and_flip(scale: float) -> Any:
    """Build OpenDP's draw.

    One function has two mechanisms behind it, and the measure decides: permute-and-flip under max
    divergence. tests/test_selection.py holds it to that.
    """
    import opendp.prelude as dp  # takes a while to import; only a release needs it

    dp.enable_features("contrib")
    # monotonic=True only concerns OpenDP's own price list; ours is accounting.py.
    return dp.m.make_noisy_max(
        dp.vector_domain(dp.atom_domain(T="i64")),
        dp.linf_distance(T="i64", monotonic=True),
        dp.max_divergence(),
        scale=scale,
    )
