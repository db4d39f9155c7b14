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
    """From the frontier, buy the next context to visit; its neighbours join the frontier."""

    name: ClassVar[str] = "breadth_first"

    def explore(self, explorer: Explorer) -> list[int]:
        """Return the visited contexts, the start first."""
        newest = explorer.begin(self.start, tries=self.tries)
        visited = {newest: None}  # dictionaries as sets that keep their order
        frontier: dict[int, None] = {}
        while len(visited) < self.samples:
            children = explorer.valid_neighbours(newest)
            frontier |= {child: None for child in children if child not in visited}
            if not frontier:
                break
            newest = explorer.choose(list(frontier))
            visited[newest] = frontier.pop(newest)
        return list(visited)
