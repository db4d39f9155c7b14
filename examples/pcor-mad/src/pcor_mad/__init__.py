"""The robust z-score: how far a value lies from the median, in median distances.

Private: the numbers that pass through; nothing of them is kept. Source: Iglewicz and Hoaglin, *How
to Detect and Handle Outliers* (1993), who label a value whose score is beyond 3.5.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from pcor.detectors.base import Counts, Detector, Values, Verdicts, check_positive

# With this factor the score of a normally distributed value is about its z-score.
_NORMAL = 0.6745


@dataclass(frozen=True)
class MAD(Detector):
    """A value is an outlier if its robust z-score is beyond ``threshold`` on either side.

    The score is 0.6745 * (value - median) / MAD, where MAD is the median distance from the median.
    If more than half of a population is one value, MAD is 0 and nothing is an outlier.

    Attributes:
        threshold: the largest score, without its sign, that is still ordinary.
    """

    name: ClassVar[str] = "mad"
    threshold: float = 3.5

    def __post_init__(self) -> None:
        super().__post_init__()
        check_positive("threshold", self.threshold)

    def verdicts(self, values: Values, counts: Counts) -> Verdicts:
        """Score each distinct value and return which scores are beyond the threshold."""
        distances = np.abs(values - _median(values, counts))
        order = np.argsort(distances)
        mad = _median(distances[order], counts[order])
        beyond: Verdicts = _NORMAL * distances > self.threshold * mad
        return beyond & (mad > 0)


def _median(values: Values, counts: Counts) -> float:
    """Return the mean of the middle two of all rows; ``values`` rise and occur ``counts`` times."""
    rows = int(counts.sum())
    middle = np.searchsorted(np.cumsum(counts), [(rows - 1) // 2, rows // 2], side="right")
    return float(values[middle].mean())
