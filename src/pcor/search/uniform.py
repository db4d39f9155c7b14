"""Uniform sampling (paper, Algorithm 2): valid contexts drawn at random, then one draw among them.

Proof: docs/proofs/uniform.md. Differs from the paper: samples are a multiset (drawn with
replacement) and the number of tries is capped by a public constant, so the loop ends where fewer
than n valid contexts exist; exactly n are collected, not n+1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from pcor.search.base import Explorer, SamplingSearch


@dataclass(frozen=True)
class Uniform(SamplingSearch):
    """Draw ``samples`` valid contexts uniformly, with replacement."""

    name: ClassVar[str] = "uniform"

    def explore(self, explorer: Explorer) -> list[int]:
        """Return the samples; fewer only where ``tries`` ran out."""
        return explorer.sample(wanted=self.samples, cap=self.tries)
