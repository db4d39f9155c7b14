"""The random source: every random decision of the library passes through one.

Public: the protocol. A release uses ``selection.SystemRandomSource``, whose randomness is the
operating system's. ``audit`` replays every possible decision instead and so computes exact output
distributions; ``testing.seeded`` repeats itself and marks its releases NOT PRIVATE.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import Protocol, TypeAlias

from pcor.mechanism.ordered_selection import Candidates
from pcor.support.arrays import NDArray, np

# Tells for each index whether it may be kept.
Accepts: TypeAlias = "Callable[[Sequence[int]], NDArray[np.bool_]]"

MECHANISMS = ("exponential", "permute_and_flip")


class RandomSource(Protocol):
    """Makes the random decisions of a release."""

    @property
    def private(self) -> bool:
        """Whether a release that uses it is private."""
        ...

    def uniform(self, count: int) -> int:
        """Return one of ``0 .. count-1``, each with the same chance."""
        ...

    def sample(self, size: int, accepts: Accepts, *, wanted: int, cap: int) -> list[int]:
        """Draw from ``0 .. size-1`` uniformly with replacement and keep what is accepted.

        Stops at ``wanted`` kept or after ``cap`` draws, both public. Where ``size <= cap``
        everything is tried once and the draws are made among the accepted: the distribution of
        the loop without a cap, and nothing that exists is missed.
        """
        ...

    def select_first(self, candidates: Candidates, *, eta: Fraction, mechanism: str) -> int | None:
        """Return the place of one candidate by a selection mechanism, while they arrive.

        The distribution of ``select`` over all candidates in the end; ``None`` if there are none.
        """
        ...

    def select(self, scores: Sequence[int], *, eta: Fraction, mechanism: str) -> int:
        """Return the index of one score, drawn by a private selection mechanism.

        ``"exponential"`` draws index i with a chance proportional to exp(eta * scores[i]);
        ``"permute_and_flip"`` visits the indices in random order and takes i with chance
        exp(eta * (scores[i] - max(scores))).
        """
        ...


def keep_accepted(
    size: int, accepts: Accepts, *, wanted: int, cap: int, uniform: Callable[[int], int]
) -> list[int]:
    """Carry out ``RandomSource.sample`` with a source of uniform numbers.

    Indices are tried in batches, which changes nothing: each is drawn alike, and the first
    ``wanted`` accepted ones are kept.
    """
    if size <= cap:
        accepted = [index for batch in _batches(size) for index in _kept(batch, accepts)]
        return [accepted[uniform(len(accepted))] for _ in range(wanted)] if accepted else []
    kept: list[int] = []
    for batch in _batches(cap):
        kept += _kept([uniform(size) for _ in batch], accepts)
        if len(kept) >= wanted:
            break
    return kept[:wanted]


def _batches(count: int, size: int = 64) -> Iterator[range]:
    return (range(start, min(count, start + size)) for start in range(0, count, size))


def _kept(indices: Sequence[int], accepts: Accepts) -> list[int]:
    return [index for index, yes in zip(indices, accepts(indices), strict=True) if yes]
