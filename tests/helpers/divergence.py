"""How far apart two releases are, by the definition: the slow twin of ``pcor.audit.divergence``."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from pcor.audit.divergence import Divergence

Logs = Mapping[Any, float]


def naive_divergence(here: Logs, there: Logs, epsilon: float) -> Divergence:
    """Add up the definition; without answers there is a refusal that the other side never gives."""
    if not there:
        return Divergence(1.0, None)

    def excess(p: Logs, q: Logs) -> float:
        factor = math.exp(epsilon)
        return math.fsum(
            max(0.0, math.exp(p[a]) - factor * (math.exp(q[a]) if a in q else 0.0)) for a in p
        )

    ratios = [abs(here[a] - there[a]) for a in here if a in there]
    return Divergence(max(excess(here, there), excess(there, here)), max(ratios, default=None))
