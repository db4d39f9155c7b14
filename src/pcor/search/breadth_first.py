"""Breadth-first search (paper, Algorithm 5), each step bought.

Proof: docs/proofs/breadth_first.md. Differs from the paper: a child differs from its parent in one
value (the paper's flips accumulate) and exactly n contexts are collected (its loop collects one
more).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from pcor.search.base import Explorer, SteeredSearch


@dataclass(frozen=True)
class BreadthFirst(SteeredSearch):
    """From all that is in reach, buy the next context to visit; its neighbours come into reach."""

    name: ClassVar[str] = "breadth_first"

    def explore(self, explorer: Explorer) -> list[int]:
        """Return the visited contexts, the start first."""
        visited = [explorer.begin(self.start, tries=self.tries)]
        in_reach: list[int] = []
        while len(visited) < self.samples:
            in_reach += [
                child
                for child in explorer.valid_neighbours(visited[-1])
                if child not in visited and child not in in_reach
            ]
            if not in_reach:
                break
            visited.append(explorer.choose(in_reach))
            in_reach.remove(visited[-1])
        return visited
