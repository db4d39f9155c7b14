"""Random walk (paper, Algorithm 3): from the start to a random valid neighbour, again and again.

Proof: docs/proofs/random_walk.md. Differs from the paper: its C_conn is rebuilt on every turn and
so never empties; here a step picks uniformly among the valid neighbours, which is what trying them
in random order without replacement comes to, and an isolated context ends the walk.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from pcor.search.base import Explorer, GraphSearch


@dataclass(frozen=True)
class RandomWalk(GraphSearch):
    """Walk ``samples - 1`` steps at random; contexts met twice count twice."""

    name: ClassVar[str] = "random_walk"
    most_samples: ClassVar[int] = 100_000  # each looks at all neighbours of a context

    def explore(self, explorer: Explorer) -> list[int]:
        """Return the contexts of the walk, the start included."""
        walk = [explorer.begin(self.start, tries=self.tries)]
        while len(walk) < self.samples:
            neighbours = explorer.valid_neighbours(walk[-1])
            if not neighbours:
                break
            walk.append(explorer.pick(neighbours))
        return walk
