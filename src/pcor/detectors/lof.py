"""Local outlier factor of one-dimensional values.

Source: M. M. Breunig, H.-P. Kriegel, R. T. Ng, J. Sander, "LOF: identifying density-based local
outliers", SIGMOD 2000, with the details that reproduce the authors' files: exactly k neighbours,
and 1e-10 added to the mean reachability distance (as scikit-learn does), so that piles of equal
values have a finite density.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, TypeAlias

from pcor.detectors.all_records import Judge, SortedRows, judged_by
from pcor.detectors.base import (
    Counts,
    Detector,
    FactorRule,
    Moments,
    Values,
    Verdicts,
    check_positive,
)
from pcor.errors import UnknownName, check_whole
from pcor.public.context import Words
from pcor.support.arrays import NDArray, np
from pcor.support.threads import in_slices

if TYPE_CHECKING:
    from pcor.rows.cell_table import CellTable

TIES = ("lower", "all")
_PILE = 1e-10

Places: TypeAlias = "NDArray[np.int64]"
Term: TypeAlias = "Callable[[Places, Places], NDArray[np.float64]]"


# The paper's threshold, and what came of it on a table that anybody may look at.
USUAL_THRESHOLD = 1.5
LOW_BAR = (
    "lof with a threshold of 1.5 or less is a low bar: it flags whoever stands a little apart from "
    "a heap of equal values. Of the 657,813 salaries that Ontario disclosed from 1996 to 2013 it "
    "flags 32,857 at 1.5, where grubbs flags 7,170. The detector belongs to the dataset: declare "
    'one under [release] in the schema (detector = "grubbs"), and let pcor calibrate tell its '
    "owner how many rows stand out"
)


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
    has_kernel: ClassVar[bool] = True
    k: int = 20
    threshold: float = USUAL_THRESHOLD
    ties: str = "lower"

    @property
    def in_words(self) -> str:
        """Density, as room around a value."""
        return (
            f"it has more room around it than the {self.k} values nearest to it have around them, "
            f"more than {self.threshold:g} times as much"
        )

    def __post_init__(self) -> None:
        super().__post_init__()
        check_whole("k", self.k)
        check_positive("threshold", self.threshold)
        if self.ties not in TIES:
            raise UnknownName("tie rule", self.ties, TIES)

    @property
    def caution(self) -> str:
        """How low the bar is, at the paper's threshold or below."""
        return LOW_BAR if self.threshold <= USUAL_THRESHOLD else ""

    @property
    def factor_rule(self) -> FactorRule | None:
        """The rule, where it takes exactly k neighbours; a derived class may have another."""
        if type(self) is not LOF or self.ties != "lower":
            return None
        return FactorRule(self.k, float(self.threshold), max(self.k + 1, self.min_population))

    @property
    def window_rows(self) -> int | None:
        """The kernel looks at 2k rows on each side; counting the population needs the rest."""
        return 2 * self.k + 1 if self.ties == "lower" else None

    def verdicts(self, values: Values, counts: Counts) -> Verdicts:
        """Compare the factor of every value with the threshold."""
        if int(counts.sum()) <= self.k:
            return np.zeros(len(values), dtype=bool)
        flagged: Verdicts = self.factors(values, counts) > self.threshold
        return flagged

    def verdict(self, values: Values, counts: Counts, place: int) -> bool:
        """Look only at what can matter: 2k values on each side (pcor._kernels.lof says why).

        With all ties counted a neighbourhood can be larger, but never k distinct values wide.
        """
        width = 3 * self.k if self.ties == "all" else 2 * self.k
        start = max(0, place - width)
        window = slice(start, place + width + 1)
        return bool(self.verdicts(values[window], counts[window])[place - start])

    def batch(
        self, cells: CellTable, value: float, masks: Words, moments: Moments | None = None
    ) -> Verdicts:
        """Answer for many contexts with the compiled kernel; all ties have none."""
        if self.ties == "all":
            return super().batch(cells, value, masks, moments)
        from pcor._kernels.lof import lof_verdicts

        out = np.empty(len(masks), dtype=bool)
        # The kernel counts up to 2k + 1 rows; a larger minimum is checked by counting them all.
        rule = (
            self.k,
            float(self.threshold),
            max(self.k, min(self.min_population - 1, 2 * self.k)) + 1,
        )
        columns = (cells.pairs, cells.place(value), rule)
        in_slices(len(masks), lambda s: lof_verdicts(masks[s], *columns, out[s]))
        if self.min_population > 2 * self.k + 1:
            out &= cells.populations(masks) >= self.min_population
        return out

    def judge_of_many(
        self, cells: CellTable, value: float, free: Words
    ) -> Callable[[Words], Verdicts] | None:
        """Return the compiled kernel on bitmaps of the rows near the value; all ties have none."""
        rule = self.factor_rule
        if rule is None or rule.smallest > 2 * self.k + 1:
            return None
        from pcor._kernels.bitmaps import affordable
        from pcor._kernels.lof_bitmaps import side, verdicts_in_many

        if not affordable(len(cells.values), len(free)):
            return None
        at, most = cells.place(value), 2 * self.k + 1
        above, below = side(cells.pairs, at, 1, most), side(cells.pairs, at - 1, -1, most)
        limits = (rule.k, rule.threshold, rule.smallest)

        def judge(masks: Words) -> Verdicts:
            out = np.empty(len(masks), dtype=bool)
            in_slices(
                len(masks),
                lambda s: verdicts_in_many(masks[s], above, below, free, limits, out[s]),
            )
            return out

        return judge

    def all_records(self, rows: SortedRows) -> Judge | None:
        """Return the compiled kernel; all ties have none."""
        if self.factor_rule is None:
            return None
        from pcor._kernels.lof_all import lof_in_contexts

        # With no more rows than k nobody is judged, however large k is.
        rule = (min(self.k, len(rows)), float(self.threshold), self.min_population)
        return judged_by(lof_in_contexts, rows.codes, rows.values, rule)

    def factors(self, values: Values, counts: Counts) -> NDArray[np.float64]:
        """Return the local outlier factor of each distinct value; more than k records needed.

        >>> values = np.array([*range(100, 121), 160], dtype=float)
        >>> factors = LOF().factors(values, np.ones(22, dtype=np.int64))
        >>> round(float(factors[-1]), 6), round(float(factors[10]), 6)
        (3.246198, 1.018153)
        """
        if self.ties == "all":
            return _factors_of_all_ties(values, counts, self.k)
        return _factors_of_k(values, counts, self.k)


def _factors_of_k(values: Values, counts: Counts, k: int) -> NDArray[np.float64]:
    """Return the factors with exactly k neighbours, lower values first at a tie.

    Records stand in a row by rising value; the k nearest of each and itself are k+1 neighbours in
    that row. Sums run from low to high, as the kernel's do, so that both agree to the last bit.
    """
    copies = np.minimum(counts, k + 1)  # more equal records than that change nothing
    x = np.repeat(values, copies)
    p = np.arange(len(x))
    start = np.maximum(p - k, 0)
    for _ in range(k):
        beyond = np.minimum(start + k + 1, len(x) - 1)
        nearer = (start < p) & (start + k + 1 < len(x)) & (x[beyond] - x < x - x[start])
        start += nearer
    kd = np.maximum(x - x[start], x[start + k] - x)
    reach, around = np.zeros(len(x)), np.zeros(len(x))
    for step in range(k + 1):
        o = start + step
        reach += np.where(o == p, 0.0, np.maximum(np.abs(x - x[o]), kd[o]))
    density = 1.0 / (reach / k + _PILE)
    for step in range(k + 1):
        o = start + step
        around += np.where(o == p, 0.0, density[o])
    factors: NDArray[np.float64] = (around / k / density)[np.cumsum(copies) - copies]
    return factors


def _factors_of_all_ties(values: Values, counts: Counts, k: int) -> NDArray[np.float64]:
    """Return the factors with everybody within the k-distance as a neighbour, by distinct value."""
    here = np.arange(len(values))
    fence = np.concatenate([[-np.inf], values, [np.inf]])  # place i is fence[i + 1]
    left, right = here - 1, here + 1  # neighbours lie strictly between
    missing = k - (counts - 1)  # equal records are neighbours at distance 0
    kd = np.zeros(len(values))
    while (walking := missing > 0).any():
        below, above = values - fence[left + 1], fence[right + 1] - values
        lower = below <= above
        kd[walking] = np.where(lower, below, above)[walking]
        missing[walking] -= counts[np.where(lower, left, right)[walking]]
        left -= walking & lower
        right += walking & ~lower
    # Distinct values: at most one more on each side can lie at exactly kd.
    left -= values - fence[left + 1] == kd
    right += fence[right + 1] - values == kd
    total = np.concatenate([[0], np.cumsum(counts)])
    size = total[right] - total[left + 1] - 1

    def reach(p: Places, o: Places) -> NDArray[np.float64]:
        return np.maximum(np.abs(values[p] - values[o]), kd[o])

    density = 1.0 / (_sum_between(left, right, counts, reach) / size + _PILE)
    around = _sum_between(left, right, counts, lambda _, o: density[o])
    factors: NDArray[np.float64] = around / size / density
    return factors


def _sum_between(left: Places, right: Places, counts: Counts, term: Term) -> NDArray[np.float64]:
    """Sum ``term(p, o)`` over the records between ``left[p]`` and ``right[p]`` but p itself."""
    here = np.arange(len(counts))
    total = (counts - 1) * term(here, here)
    farthest = int(max((here - left).max(), (right - here).max()))
    for step in range(1, farthest):
        for o in (here - step, here + step):
            p = here[(left < o) & (o < right)]
            total[p] += counts[o[p]] * term(p, o[p])
    return total
