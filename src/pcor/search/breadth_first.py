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
        newest = explorer.begin(self.start, tries=self.tries)
        visited = {newest: None}  # dictionaries as sets that keep their order
        in_reach: dict[int, None] = {}
        while len(visited) < self.samples:
            children = explorer.valid_neighbours(newest)
            in_reach |= {child: None for child in children if child not in visited}
            if not in_reach:
                break
            newest = explorer.choose(list(in_reach))
            visited[newest] = in_reach.pop(newest)
        return list(visited)
