"""Choose one candidate at random, better ones more often: exactly, by the system's randomness.

Private: the scores and the draws. Public: eta, the mechanism, how many candidates an adversary
could compute from COE. Nothing is rounded (``samplers``, ``ordered_selection``); tests compare them
with OpenDP's. Guarantee of one draw with exponent eta when one row moves no score by more than d:
2*eta*d for either mechanism, eta*d where an added row never lowers a score
(docs/proofs/selection.md).
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from fractions import Fraction

from pcor.errors import ParameterError, UnknownName
from pcor.mechanism.ordered_selection import Candidates, draw_first
from pcor.mechanism.randomness import MECHANISMS, Accepts, keep_accepted
from pcor.mechanism.samplers import draw_exponential, draw_permute_and_flip


class SystemRandomSource:
    """The random source of every real release: the operating system's."""

    private = True

    def uniform(self, count: int) -> int:
        """Return one of ``0 .. count-1``, each with the same chance."""
        if count < 1:
            raise ValueError("count must be at least 1")
        # As many bits as the largest answer has. secrets.randbelow takes one more for a power of
        # two, and so throws away every second number.
        bits = (count - 1).bit_length()
        while (drawn := secrets.randbits(bits)) >= count:
            pass
        return drawn

    def sample(self, size: int, accepts: Accepts, *, wanted: int, cap: int) -> list[int]:
        """Draw accepted indices uniformly with replacement."""
        return keep_accepted(size, accepts, wanted=wanted, cap=cap, uniform=self.uniform)

    def select_first(self, candidates: Candidates, *, eta: Fraction, mechanism: str) -> int | None:
        """Draw while the candidates arrive, best first."""
        return draw_first(candidates, eta, self.uniform, mechanism)

    def select(self, scores: Sequence[int], *, eta: Fraction, mechanism: str) -> int:
        """Draw one index by a private selection mechanism."""
        drawn = draw_exponential if mechanism == "exponential" else draw_permute_and_flip
        return drawn(scores, eta, self.uniform)


def check_exponent(eta: Fraction) -> None:
    """Refuse an exponent that float64 cannot hold: estimates of chances are made in it."""
    if eta <= 0:
        raise ParameterError("epsilon must be positive")
    if not Fraction(1, 10**300) < eta < 10**300:
        raise ParameterError("epsilon is too small or too large to draw with; try 0.01 to 10")


def check_mechanism(mechanism: str) -> str:
    """Return the name of a selection mechanism, or refuse it."""
    if mechanism not in MECHANISMS:
        raise UnknownName("selection", mechanism, MECHANISMS)
    return mechanism
