"""Depth-first search (paper, Algorithm 4), each step bought.

Proof: docs/proofs/depth_first.md. Differs from the paper: a child differs from its parent in one
value (the paper's flips accumulate); exactly n contexts are collected (its loop collects one
more); the answer is drawn from all of them (its comment returns the top of the stack, its last
line does not).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from pcor.search.base import Explorer, SteeredSearch


@dataclass(frozen=True)
class DepthFirst(SteeredSearch):
    """From the newest context, buy a step to a new valid neighbour; go back where there is none."""

    name: ClassVar[str] = "depth_first"

    def explore(self, explorer: Explorer) -> list[int]:
        """Return the visited contexts, the start first."""
        stack = [explorer.begin(self.start, tries=self.tries)]
        visited = {stack[0]: None}  # a dictionary as a set that keeps its order
        while stack and len(visited) < self.samples:
            children = [c for c in explorer.valid_neighbours(stack[-1]) if c not in visited]
            if not children:
                stack.pop()
                continue
            stack.append(explorer.choose(children))
            visited[stack[-1]] = None
        return list(visited)
