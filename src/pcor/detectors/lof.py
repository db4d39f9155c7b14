"""Local outlier factor of one-dimensional values.

Source: M. M. Breunig, H.-P. Kriegel, R. T. Ng, J. Sander, "LOF: identifying density-based local
outliers", SIGMOD 2000, with the details that reproduce the authors' files: exactly k neighbours,
and 1e-10 added to the mean reachability distance (as scikit-learn does), so that piles of equal
values have a finite density.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pcor.detectors.base import Counts, Detector, Values, Verdicts, check_positive
from pcor.errors import ParameterError, UnknownName

TIES = ("lower", "all")
_PILE = 1e-10

Places = NDArray[np.int64]
Term = Callable[[Places, Places], NDArray[np.float64]]


@dataclass(frozen=True)
class LOF(Detector):
    """A record is an outlier if its local outlier factor is greater than ``threshold``.

    For a record p: its k nearest other records; ``kd(p)``, the distance to the k-th;
    ``reach(p, o) = max(|p - o|, kd(o))``; density ``lrd(p) = 1 / (mean reach over the neighbours
    + 1e-10)``; ``LOF(p) = mean lrd of the neighbours / lrd(p)``.

    Attributes:
        k: the number of neighbours.
        threshold: what the factor must exceed.
        ties: who counts when more records than needed lie at exactly kd: ``"lower"`` takes
            exactly k, lower values first; ``"all"`` takes all of them, the original definition.
    """

    name: ClassVar[str] = "lof"
    k: int = 20
    threshold: float = 1.5
    ties: str = "lower"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.k, int) or isinstance(self.k, bool) or self.k < 1:
            raise ParameterError("k must be a whole number of at least 1")
        check_positive("threshold", self.threshold)
        if self.ties not in TIES:
            raise UnknownName("tie rule", self.ties, TIES)

    def verdicts(self, values: Values, counts: Counts) -> Verdicts:
        """Compare the factor of every value with the threshold."""
        if int(counts.sum()) <= self.k:
            return np.zeros(len(values), dtype=bool)
        flagged: Verdicts = self.factors(values, counts) > self.threshold
        return flagged

    def verdict(self, values: Values, counts: Counts, place: int) -> bool:
        """Look only at what can matter: LOF is local.

        It needs a record's neighbours, theirs, and theirs: k distinct values on a side are
        always enough for k neighbours, so 3k distinct values on each side decide.
        """
        start = max(0, place - 3 * self.k)
        window = slice(start, place + 3 * self.k + 1)
        return bool(self.verdicts(values[window], counts[window])[place - start])

    def factors(self, values: Values, counts: Counts) -> NDArray[np.float64]:
        """Return the local outlier factor of each distinct value; more than k records needed.

        >>> values = np.array([*range(100, 121), 160], dtype=float)
        >>> factors = LOF().factors(values, np.ones(22, dtype=np.int64))
        >>> round(float(factors[-1]), 6), round(float(factors[10]), 6)
        (3.246198, 1.018153)
        """
        near = _neighbourhoods(values, counts, self.k, all_ties=self.ties == "all")

        def reach(p: Places, o: Places) -> NDArray[np.float64]:
            return np.maximum(np.abs(values[p] - values[o]), near.kd[o])

        density = 1.0 / (_sum_over(near, counts, reach) / near.size + _PILE)
        around = _sum_over(near, counts, lambda _, o: density[o])
        return around / near.size / density


class _Neighbourhoods(NamedTuple):
    """For each distinct value: the open range of places it draws neighbours from.

    All records strictly between ``left`` and ``right`` are neighbours, but for the record itself
    and for ``spare`` records of the value at ``last``.
    """

    left: NDArray[np.int64]
    right: NDArray[np.int64]
    last: NDArray[np.int64]
    spare: NDArray[np.int64]
    kd: NDArray[np.float64]
    size: NDArray[np.int64]


def _neighbourhoods(values: Values, counts: Counts, k: int, *, all_ties: bool) -> _Neighbourhoods:
    """Walk outward from every value at once, nearer side first, lower side first at a tie."""
    here = np.arange(len(values))
    fence = np.concatenate([[-np.inf], values, [np.inf]])  # place i is fence[i + 1]
    left, right, last = here - 1, here + 1, here.copy()
    missing = k - (counts - 1)  # equal records are neighbours at distance 0
    kd = np.zeros(len(values))
    while (walking := missing > 0).any():
        below, above = values - fence[left + 1], fence[right + 1] - values
        lower = below <= above
        taken = np.where(lower, left, right)
        kd[walking] = np.where(lower, below, above)[walking]
        last[walking] = taken[walking]
        missing[walking] -= counts[taken[walking]]
        left -= walking & lower
        right += walking & ~lower
    if not all_ties:
        return _Neighbourhoods(left, right, last, -missing, kd, np.full(len(values), k))
    # Distinct values: at most one more on each side can lie at exactly kd.
    left -= values - fence[left + 1] == kd
    right += fence[right + 1] - values == kd
    total = np.concatenate([[0], np.cumsum(counts)])
    size = total[right] - total[left + 1] - 1
    return _Neighbourhoods(left, right, last, np.zeros_like(counts), kd, size)


def _sum_over(near: _Neighbourhoods, counts: Counts, term: Term) -> NDArray[np.float64]:
    """Sum ``term(p, o)`` over the neighbours o of every p, nearest places first."""
    here = np.arange(len(counts))
    equals = counts - 1 - np.where(near.last == here, near.spare, 0)
    total = equals * term(here, here)
    farthest = int(max((here - near.left).max(), (near.right - here).max()))
    for step in range(1, farthest):
        for o in (here - step, here + step):
            p = here[(near.left < o) & (o < near.right)]
            o = o[p]
            weight = counts[o] - np.where(near.last[p] == o, near.spare[p], 0)
            total[p] += weight * term(p, o)
    return total
