"""The climbs of widest-first step by step, in plain Python: twins of ``pcor._kernels.climb``.

Contexts are sets of the numbers of their steps. Nothing here imports pcor.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

WORD = (1 << 64) - 1
SLOTS, RIVALS = 8, 16


class SplitMix:
    """Numbers from 0 to 1, as its authors wrote it (Steele, Lea and Flood 2014)."""

    def __init__(self, state: int) -> None:
        self.state = state

    def next(self) -> float:
        self.state = (self.state + 0x9E3779B97F4A7C15) & WORD
        z = self.state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & WORD
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & WORD
        return ((z ^ (z >> 31)) >> 11) / 2**53

    def below(self, size: int) -> int:
        return int(self.next() * size)


class Climbing(NamedTuple):
    """A space and one guess: the attribute and the rows of each step, of each own value; chains."""

    attribute: Sequence[int]
    rows: Sequence[float]
    own: Sequence[float]
    chains: Sequence[tuple[int, int]]

    @property
    def size(self) -> int:
        return len(self.attribute)

    def width(self, context: set[int]) -> float:
        """Return the logarithm of the guessed rows."""
        sums = list(self.own)
        for step in context:
            sums[self.attribute[step]] += self.rows[step]
        return sum(math.log(some) for some in sums)

    def in_family(self, context: set[int]) -> set[int]:
        """Return as many steps of each chain, from its start."""
        for first, end in self.chains:
            chain = set(range(first, end))
            context = (context - chain) | set(range(first, first + len(context & chain)))
        return context

    def slots(self, steps: Sequence[int], power: float) -> list[int]:
        """Return each step once, and more by a power of its rows."""
        pulls = {step: math.sqrt(self.rows[step]) ** power for step in steps}
        total = sum(pulls.values())
        return [
            step
            for step in steps
            for _ in range(1 + int(pulls[step] / total * (SLOTS - 1) * self.size))
        ]

    def proposal(self, at: set[int], numbers: SplitMix) -> set[int]:
        """Return a context with steps added and, half of the time, some dropped."""
        missing = [step for step in range(self.size) if step not in at]
        coming, going = self.slots(missing, 1), self.slots(sorted(at), -1)
        adds = int(math.exp(numbers.next() * math.log(len(missing) + 1)))
        added = {coming[numbers.below(len(coming))] for _ in range(adds if missing else 0)}
        dropped: set[int] = set()
        if numbers.next() < 0.5:
            drops = int(math.exp(numbers.next() * math.log(min(len(at), adds) + 1)))
            dropped = {going[numbers.below(len(going))] for _ in range(drops if at else 0)}
        return self.in_family((at | added) - dropped)


def beginning(
    guesses: Sequence[Climbing], tops: Sequence[set[int]], numbers: SplitMix
) -> tuple[int, set[int]]:
    """Return which guess a climber takes, and where it begins."""
    taken = numbers.below(len(guesses))
    rivals = [tops[numbers.below(len(tops))] for _ in range(RIVALS)]
    top = max(rivals, key=guesses[taken].width)  # the first of equals
    share = (len(top) + 1) ** numbers.next() / max(len(top), 1)
    kept = {step for step in sorted(top) if numbers.next() >= share}
    return taken, guesses[taken].in_family(kept)
