"""Window: which metrics a detector looks at when it judges one of them.

Public: everything here. A window follows from the rule, the record's metric and the range of all
metrics alone; what is seen through it is private, and read elsewhere.
"""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Window:
    """Which pairs of a cell and a metric decide about one metric, in any context.

    Attributes:
        rows: only so many rows of each cell on each side; ``None`` for those of the range.
        low: all pairs from this metric on,
        high: and up to this one.
        ends: also the least and the largest metric of each cell, of whose rows one is enough.
    """

    rows: int | None = None
    low: float = -math.inf
    high: float = math.inf
    ends: bool = False

    @classmethod
    def nothing(cls) -> Window:
        """No pairs: sums over cells are enough."""
        return cls(low=math.inf, high=-math.inf)

    @property
    def everything(self) -> bool:
        """Whether it shows all pairs."""
        return self.rows is None and self.low == -math.inf and self.high == math.inf

    @property
    def bounded(self) -> bool:
        """Whether the cells alone bound how many pairs it shows."""
        return self.rows is not None or self.low > self.high
