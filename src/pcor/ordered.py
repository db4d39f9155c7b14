"""Draw from the exponential mechanism while the candidates are still being found.

Private: the utilities. Candidates arrive best first; of those not yet met an upper bound on number
and utility is known. The draw inverts the distribution function: a uniform number U, whose bits are
fetched as needed, points into the total weight Z, of which an interval is known. More candidates
narrow that interval, more digits narrow the weights; once everything that U*Z can be lies in the
share of one candidate, that one is drawn. Nothing is cut off or rounded: the chance of every
candidate, met or not, is exactly the mechanism's (docs/proofs/ordered.md).

All comparisons are between integers that bound the real numbers from below and above.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

from pcor.drawing import exp_bounds

# Digits of the first attempt, in bits; doubled as often as needed.
FIRST_BITS = 192


@dataclass(frozen=True, slots=True)
class Run:
    """So many candidates, one after the other, of the same utility; or at most these."""

    utility: int
    count: int


class Candidates(Protocol):
    """Candidates that arrive best first."""

    @property
    def finished(self) -> bool:
        """Whether everything was met."""
        ...

    def met(self) -> Sequence[Run]:
        """Return the candidates met so far, in order: utilities never rise."""
        ...

    def remaining(self) -> Sequence[Run]:
        """Return upper bounds on all that was not met; empty once everything was."""
        ...

    def advance(self) -> None:
        """Meet some more."""
        ...


def draw_first(candidates: Candidates, eta: Fraction, uniform: Callable[[int], int]) -> int | None:
    """Return the place of one candidate, drawn with a chance proportional to exp(eta * utility).

    ``None`` if there is no candidate at all. ``uniform(n)`` gives one of ``0 .. n-1``.
    """
    while not candidates.met():
        if candidates.finished:
            return None
        candidates.advance()
    bits = FIRST_BITS
    point = uniform(1 << bits)  # U lies in [point, point + 1) / 2^bits
    while (place := _pointed_at(candidates, eta, point, bits)) is None:
        if not candidates.finished:
            candidates.advance()
        else:
            point = point << bits | uniform(1 << bits)
            bits *= 2
    return place


def _pointed_at(candidates: Candidates, eta: Fraction, point: int, bits: int) -> int | None:
    """Return the candidate that U points to, if that is certain by now."""
    met = candidates.met()
    best = met[0].utility
    weights = [exp_bounds(eta * (best - run.utility), bits) for run in met]
    rest = sum(
        run.count * exp_bounds(eta * max(best - run.utility, 0), bits)[1]
        for run in candidates.remaining()
    )
    low = sum(run.count * lower for run, (lower, _) in zip(met, weights, strict=True))
    high = sum(run.count * upper for run, (_, upper) in zip(met, weights, strict=True))
    # U * Z, rounded outward: Z is at least what was met, at most that and all the rest.
    least, most = point * low >> bits, ((point + 1) * (high + rest) >> bits) + 1
    place = below = above = 0  # candidates before this run, and bounds on their weight
    for run, (lower, upper) in zip(met, weights, strict=True):
        if most <= below + run.count * lower:
            if least < above or lower == 0:
                return None
            first, last = (least - above) // upper, (most - below - 1) // lower
            return place + first if first == last < run.count else None
        place, below, above = (
            place + run.count,
            below + run.count * lower,
            above + run.count * upper,
        )
    return None
