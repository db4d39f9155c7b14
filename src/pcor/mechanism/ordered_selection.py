"""Draw by a selection mechanism while the candidates are still being found.

Private: the utilities. Candidates arrive best first; of those not yet met an upper bound on number
and utility is known. The draw inverts a distribution function: a uniform number U, whose bits are
fetched as needed, is compared with bounds on it. More candidates and more digits narrow the bounds;
once everything that U can mean is one candidate, that one is taken. Nothing is cut off or rounded:
the chance of every candidate, met or not, is exactly the mechanism's (docs/proofs/ordered.md).

- Exponential mechanism: U points into the total weight Z, in the order of the candidates.
- Permute-and-flip: every candidate flips its coin, and one of those that succeed is taken, all
  alike. U tells which one succeeds last; those before it then flip theirs.

All comparisons are between integers that bound the real numbers from below and above.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

from pcor.mechanism.samplers import UniformDraw, exp_bounds, pick_success
from pcor.support.arrays import np

# Bits of precision of the first attempt; doubled until the draw is decided.
FIRST_BITS = 192


@dataclass(frozen=True, slots=True)
class Run:
    """A run of candidates with equal utility, or an upper bound on one."""

    utility: int
    count: int


class Candidates(Protocol):
    """Candidates that arrive best first."""

    @property
    def finished(self) -> bool:
        """Whether all candidates are ranked."""
        ...

    def ranked(self) -> Sequence[Run]:
        """Return the candidates ranked so far: utilities never rise."""
        ...

    def remaining(self) -> Sequence[Run]:
        """Return upper bounds on the candidates not ranked yet; empty once all are."""
        ...

    def advance(self) -> None:
        """Rank more candidates."""
        ...


def draw_first(
    candidates: Candidates,
    eta: Fraction,
    uniform: UniformDraw,
    mechanism: str = "exponential",
) -> int | None:
    """Return the place of one candidate, drawn by a selection mechanism with exponent eta.

    ``None`` if there is no candidate at all. ``uniform(n)`` gives one of ``0 .. n-1``.
    """
    decide = _pointed_at if mechanism == "exponential" else _last_success
    while not candidates.ranked():
        if candidates.finished:
            return None
        candidates.advance()
    bits = FIRST_BITS
    point = uniform(1 << bits)  # U lies in [point, point + 1) / 2^bits
    while (place := decide(candidates, eta, point, bits)) is None:
        if not candidates.finished:
            candidates.advance()
        else:
            point = point << bits | uniform(1 << bits)
            bits *= 2
    if mechanism == "exponential":
        return place
    ranked = candidates.ranked()
    utilities = np.repeat([run.utility for run in ranked], [run.count for run in ranked])[
        : place + 1
    ]
    return pick_success(utilities[0] - utilities, eta, uniform)


def _pointed_at(candidates: Candidates, eta: Fraction, point: int, bits: int) -> int | None:
    """Return the candidate that U points to, if that is certain by now."""
    ranked = candidates.ranked()
    best = ranked[0].utility
    weights = [exp_bounds(eta * (best - run.utility), bits) for run in ranked]
    rest = sum(
        run.count * exp_bounds(eta * max(best - run.utility, 0), bits)[1]
        for run in candidates.remaining()
    )
    low = sum(run.count * lower for run, (lower, _) in zip(ranked, weights, strict=True))
    high = sum(run.count * upper for run, (_, upper) in zip(ranked, weights, strict=True))
    # U * Z, rounded outward: Z is at least what was met, at most that and all the rest.
    least, most = point * low >> bits, ((point + 1) * (high + rest) >> bits) + 1
    place = below = above = 0  # candidates before this run, and bounds on their weight
    for run, (lower, upper) in zip(ranked, weights, strict=True):
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


def _last_success(candidates: Candidates, eta: Fraction, point: int, bits: int) -> int | None:
    """Return the last candidate whose coin succeeds, if that is certain by now.

    T = the chance that nobody from some place on succeeds: it rises with the place, from 0 at the
    first, who always does, to 1 after the end. The last success is where T passes U.
    """
    ranked, one = candidates.ranked(), 1 << bits
    best = ranked[0].utility
    rest = sum(
        run.count * exp_bounds(eta * max(best - run.utility, 0), bits)[1]
        for run in candidates.remaining()
    )
    # Bounds on T after everything met: (1 - q)^n >= 1 - n*q.
    low, high = max(one - rest, 0), one
    place = sum(run.count for run in ranked)
    for run in reversed(ranked):
        if point + 1 > low:
            return None  # a later candidate may succeed
        least, most = exp_bounds(eta * (best - run.utility), bits)
        place -= run.count
        lower = low * _power(one - most, run.count, bits, up=False) >> bits
        if point + 1 <= lower:  # no candidate of this run succeeds
            low, high = lower, -(-high * _power(one - least, run.count, bits, up=True) >> bits)
            continue
        back = 1 + bisect_left(  # how many of the run, from its end, until T may have passed U
            range(1, run.count),
            True,
            key=lambda n: point + 1 > low * _power(one - most, n, bits, up=False) >> bits,
        )
        passed = point >= -(-high * _power(one - least, back, bits, up=True) >> bits)
        return place + run.count - back if passed else None
    return None


def _power(base: int, exponent: int, bits: int, *, up: bool) -> int:
    """Return a power of base / 2^bits in the same units, rounded down or up at every step."""
    result = 1 << bits
    for digit in f"{exponent:b}":
        for factor in (result, base) if digit == "1" else (result,):
            result = -(-result * factor >> bits) if up else result * factor >> bits
    return result
