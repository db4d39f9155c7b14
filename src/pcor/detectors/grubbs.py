"""Grubbs' test, extremes removed one at a time.

Source: F. E. Grubbs, "Procedures for detecting outlying observations in samples", Technometrics
11(1), 1969; critical value and one- and two-sided levels as in the NIST/SEMATECH e-Handbook,
1.3.5.17.1. The paper does not say which side it tests: the authors' files are reproduced by
``tail="upper"``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from pcor.detectors.all_records import ContextOutliers, Judge, SortedRows, by_rule
from pcor.detectors.base import Counts, Detector, Moments, Values, Verdicts
from pcor.detectors.grubbs_blocks import GrubbsBlocks
from pcor.errors import ParameterError, UnknownName
from pcor.public.context import Words
from pcor.public.context_list import ListedContexts
from pcor.public.window import Window
from pcor.support.arrays import NDArray, np
from pcor.support.threads import in_slices

if TYPE_CHECKING:
    from pcor.detectors.context_block import BlockJudge
    from pcor.rows.cell_table import CellTable
    from pcor.rows.cells import Cells

TAILS = ("both", "upper", "lower")


@dataclass(frozen=True)
class Grubbs(Detector):
    """Grubbs' test for one outlier, repeated on what remains until it finds none.

    With n values left, ``G = |extreme - mean| / s`` (s with n-1) is compared with
    ``(n-1)/sqrt(n) * sqrt(t^2 / (n-2+t^2))``, t the upper alpha/n quantile of Student's t with
    n-2 degrees of freedom (alpha/(2n) for both tails). If G is greater, the extreme is an outlier
    and one row with that value is removed. Every row whose value was removed at least once is an
    outlier: equal rows cannot be told apart.

    Attributes:
        alpha: the level of each test.
        tail: which extremes count: ``"both"``, ``"upper"`` (the authors') or ``"lower"``. With
            both, the farther extreme goes first, the upper one where they are equally far.
    """

    name: ClassVar[str] = "grubbs"
    has_kernel: ClassVar[bool] = True
    wants_moments: ClassVar[bool] = True
    wants_tails: ClassVar[bool] = True
    alpha: float = 0.05
    tail: str = "both"

    @property
    def in_words(self) -> str:
        """Standard deviations, as what chance explains."""
        away = {"upper": "above", "lower": "below"}.get(self.tail, "from")
        return (
            f"it lies so far {away} the average of the group that chance hardly explains it, "
            "measured by how widely the values usually spread"
        )

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.alpha, float) or not 0 < self.alpha < 1:
            raise ParameterError("alpha must be a number between 0 and 1, not included")
        if self.tail not in TAILS:
            raise UnknownName("tail", self.tail, TAILS)

    @property
    def side(self) -> str | None:
        """That of the one tail, where one is chosen."""
        return {"upper": "high", "lower": "low"}.get(self.tail)

    def verdicts(self, values: Values, counts: Counts) -> Verdicts:
        """Remove extremes while the test finds one; return which values were removed."""
        flagged = np.zeros(len(values), dtype=bool)
        left = counts.copy()
        low, high = 0, len(values) - 1
        n = int(counts.sum())
        # With fewer than three values t has no degrees of freedom; with all equal, s is 0.
        while n >= 3 and low < high:
            above, below, deviation = _spread(values[low : high + 1], left[low : high + 1], n)
            upper = self.tail == "upper" or (self.tail == "both" and above >= below)
            distance = above if upper else below
            if not distance > critical_value(n, self.alpha, self.tail) * deviation:
                break
            place = high if upper else low
            flagged[place] = True
            left[place] -= 1
            n -= 1
            high -= upper and not left[high]
            low += (not upper) and not left[low]
        return flagged

    def batch(
        self, cells: CellTable, value: float, masks: Words, moments: Moments | None = None
    ) -> Verdicts:
        """Answer for many contexts with the compiled kernel; where it is unsure, by the rule."""
        from pcor._kernels.grubbs import UNSURE, YES, grubbs_verdicts

        if moments is None:
            moments = cells.several_totals(masks, cells.moments)
        critical = critical_values(int(moments[0].max(initial=0)), self.alpha, self.tail)
        rule = (TAILS.index(self.tail), value - cells.centre, self.min_population)
        pairs = (cells.required, cells.centred, cells.counts)
        out = np.empty(len(masks), dtype=np.int8)
        in_slices(
            len(masks),
            lambda s: grubbs_verdicts(masks[s], pairs, moments[:, s], critical, rule, out[s]),
        )
        verdicts: Verdicts = out == YES
        for place in np.flatnonzero(out == UNSURE):
            verdicts[place] = self.is_outlier(*cells.distribution(masks[place]), value)
        return verdicts

    def changed_verdicts(
        self,
        cells: CellTable,
        value: float,
        masks: Words,
        moments: Moments,
        metrics: Values,
        rows: int,
    ) -> tuple[Verdicts, Verdicts] | None:
        """Add each change to the moments; not sure where extremes would have to be removed."""
        if type(self) is not Grubbs:
            return None
        from pcor._kernels.grubbs import UNSURE, YES, grubbs_changed_verdicts

        critical = critical_values(int(moments[0].max(initial=0)) + 1, self.alpha, self.tail)
        rule = (TAILS.index(self.tail), value - cells.centre, self.min_population)
        pairs = (cells.required, cells.centred, cells.counts)
        changes = (metrics - cells.centre, np.sign(metrics - value), float(rows))
        out = np.empty((len(metrics), len(masks)), dtype=np.int8)
        in_slices(
            len(masks),
            lambda s: grubbs_changed_verdicts(
                masks[s], pairs, moments[:, s], critical, rule, changes, out[:, s]
            ),
        )
        return out == YES, out != UNSURE

    def cell_moments(self, cells: Cells, value: float) -> Moments:
        """Return count, sum and squares of each cell, the same above the value, and its equals.

        Sums are about the centre of the cells.
        """
        return np.concatenate([cells.moments, cells.above(value)])

    def block_judge(self, cells: CellTable, value: float) -> BlockJudge | None:
        """Return what settles most contexts of a block by sums alone."""
        return GrubbsBlocks(self, cells, value) if type(self) is Grubbs else None

    def window_on(self, value: float, low: float, high: float) -> Window:
        """The kernel removes extremes down to the value; with both tails, from both ends.

        A little beyond it: less the centre, values very close to one another may become equal.
        """
        if self.tail == "both":
            return Window()
        room = 1e-12 * max(abs(low), abs(high), abs(value))
        if self.tail == "upper":
            return Window(low=value - room, ends=True)
        return Window(high=value + room, ends=True)

    def all_records(self, rows: SortedRows) -> Judge | None:
        """Return the compiled kernel; where it is unsure of a context, the rule is asked."""
        if type(self) is not Grubbs:
            return None
        from pcor._kernels.grubbs_all import grubbs_in_contexts

        rule = (TAILS.index(self.tail), rows.centre, self.min_population)
        critical = critical_values(len(rows), self.alpha, self.tail)
        columns = (rows.codes, rows.values, critical)

        def judge(contexts: ListedContexts) -> ContextOutliers:
            populations, ends = np.empty((2, len(contexts.bits)), dtype=np.int64)
            places, unsure = grubbs_in_contexts(*contexts, *columns, rule, populations, ends)
            judged, parts, done = ContextOutliers(populations, ends, places), [], 0
            for number in np.flatnonzero(unsure).tolist():
                parts.append(judged.part(done, number))
                parts.append(by_rule(self, rows, contexts.only(number)))
                done = number + 1
            return ContextOutliers.joined([*parts, judged.part(done, len(populations))])

        return judge

    def lost_digits(self, moments: Moments, whole: Moments) -> Verdicts:
        """Tell where more than half was subtracted, of the rows or of the squares."""
        lost: Verdicts = (2 * moments[0] < whole[0]) | (2 * moments[2] < whole[2])
        return lost


# Critical values are computed in portions of so many.
_MANY = 1 << 20

_tables: dict[tuple[float, str], NDArray[np.float64]] = {}


def critical_values(largest: int, alpha: float, tail: str) -> NDArray[np.float64]:
    """Return the critical values for 0 to ``largest`` rows; remembered and extended as needed."""
    known = _tables.get((alpha, tail), np.full(3, np.inf))  # no test on fewer than three rows
    if largest >= len(known):
        # Twice as many as asked for, but of millions only those: they take 8 bytes each.
        size = 2 * largest + 1 if largest < _MANY else largest + 1
        starts = range(len(known), size, _MANY)
        parts = (np.arange(start, min(start + _MANY, size)) for start in starts)
        known = np.concatenate([known, *(_critical(n, alpha, tail) for n in parts)])
        _tables[alpha, tail] = known
    return known


class ShareTables(NamedTuple):
    """What sums over so many rows are compared with (docs/proofs/lattice_grubbs.md).

    G is above its critical value exactly if ``G*G*n / (G*G*n + n - 1)`` exceeds a share.

    Attributes:
        critical: the critical value for so many rows.
        most: the largest share for so many or fewer: who exceeds it is out for certain.
        shares: the share for so many.
        least: the least critical value for so many or more.
    """

    critical: NDArray[np.float64]
    most: NDArray[np.float64]
    shares: NDArray[np.float64]
    least: NDArray[np.float64]


@lru_cache(maxsize=4)
def share_tables(largest: int, alpha: float, tail: str) -> ShareTables:
    """Return what sums over 0 to ``largest`` rows are compared with."""
    critical = critical_values(largest, alpha, tail)[: largest + 1]
    rows = np.arange(len(critical), dtype=np.float64)
    with np.errstate(invalid="ignore", divide="ignore"):
        odds = critical**2 * rows / (rows - 1)
        shares = np.where(np.isfinite(odds), odds / (1 + odds), 1.0)
    shares[:3] = 0.0  # nothing is tested among fewer than three
    least = np.minimum.accumulate(critical[::-1])[::-1]
    return ShareTables(critical, np.maximum.accumulate(shares), shares, least)


def critical_value(n: int, alpha: float, tail: str) -> float:
    """Return the value that G must exceed among n values.

    >>> round(critical_value(22, 0.05, "upper"), 4), round(critical_value(21, 0.05, "upper"), 4)
    (2.6028, 2.5804)
    """
    return float(critical_values(n, alpha, tail)[n])


def _critical(n: NDArray[np.int64], alpha: float, tail: str) -> NDArray[np.float64]:
    from scipy import special  # takes a while to import

    share = alpha / (2 * n) if tail == "both" else alpha / n
    t = special.stdtrit(n - 2, share)  # the lower quantile: exact far out; only t^2 counts
    critical: NDArray[np.float64] = (n - 1) / np.sqrt(n) * np.sqrt(t * t / (n - 2 + t * t))
    return critical


def _spread(values: Values, counts: Counts, n: int) -> tuple[float, float, float]:
    """Return how far maximum and minimum lie from the mean, and the standard deviation (n-1).

    Measured from a middle value, so that nothing cancels, and in units of a power of two near the
    range, which is exact and lets no square vanish or overflow.
    """
    unit = math.frexp(values[-1] - values[0])[1]
    shifted = np.ldexp(values - values[len(values) // 2], -unit)
    mean = float(np.sum(shifted * counts)) / n
    squares = float(np.sum((shifted - mean) ** 2 * counts))
    return float(shifted[-1]) - mean, mean - float(shifted[0]), math.sqrt(squares / (n - 1))
