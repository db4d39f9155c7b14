"""Rare bins of an equal-width histogram.

Source: the paper, Section 6.5 (square root of the population many bins, rare below 2.5e-3 of it);
the rule that reproduces the authors' files counts "at most" as rare. They tested bin edges in
rounded arithmetic and so put some values in two bins; here one monotone formula decides the bin of
everybody.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

from pcor.detectors.all_records import Judge, SortedRows, judged_by
from pcor.detectors.base import Counts, Detector, Moments, Values, Verdicts
from pcor.detectors.histogram_blocks import HistogramBlocks
from pcor.errors import ParameterError, plain
from pcor.public.context import Words
from pcor.public.window import Window
from pcor.support.arrays import NDArray, np
from pcor.support.threads import in_slices

if TYPE_CHECKING:
    from pcor.detectors.context_block import BlockJudge
    from pcor.rows.cell_table import CellTable


@dataclass(frozen=True)
class Histogram(Detector):
    """A value is an outlier if its bin holds at most a share ``rare`` of the population.

    floor(sqrt(n)) bins of equal width span [min, max]; bins are half-open, the last one closed.

    Attributes:
        rare: the share, compared exactly as the decimal number that was written.
        include_maximum: whether the maximum can be an outlier as a member of the last bin.
            ``False`` is the authors' rule: it is counted there but never flagged.
    """

    name: ClassVar[str] = "histogram"
    has_kernel: ClassVar[bool] = True
    rare: float = 0.0025
    include_maximum: bool = True

    @property
    def in_words(self) -> str:
        """Bins, as ranges."""
        return (
            "hardly any others are in its range, where the group is divided into many ranges of "
            f"equal width: at most {plain(100 * self._share)} % of the group"
        )

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.rare, float) or not 0 < self.rare < 1:
            raise ParameterError("rare must be a share between 0 and 1, not included")
        if not isinstance(self.include_maximum, bool):
            raise ParameterError("include_maximum must be true or false")

    @cached_property
    def _share(self) -> Fraction:
        return Fraction(repr(float(self.rare)))

    def most(self, populations: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return how many rows a rare bin may hold at most, in populations of these sizes.

        In whole numbers, so that "0.0025 * 400 >= 1" is not left to rounding; in Python's where a
        share of many digits would overflow 64 bits.
        """
        numerator, denominator = self._share.numerator, self._share.denominator
        if denominator < 1 << 31 and int(populations.max(initial=0)) < 1 << 31:
            return populations * numerator // denominator
        return np.array([int(n) * numerator // denominator for n in populations], dtype=np.int64)

    def verdicts(self, values: Values, counts: Counts) -> Verdicts:
        """Count the bins and return which values lie in a rare one."""
        n = int(counts.sum())
        bins = bin_numbers(values, math.isqrt(n))
        in_bin = np.bincount(bins, counts).astype(np.int64)
        flagged: Verdicts = (in_bin <= self.most(np.array([n]))[0])[bins]
        if values[0] == values[-1]:
            flagged[:] = False
        elif not self.include_maximum:
            flagged[-1] = False
        return flagged

    def window_on(self, value: float, low: float, high: float) -> Window:
        """The value's bin, as wide as it can be: that of the fewest rows with a rare bin at all."""
        least = max(self.min_population, math.ceil(1 / self._share))
        width = 1.000001 * (high - low) / math.isqrt(least)
        return Window(low=value - width, high=value + width, ends=True)

    def batch(
        self, cells: CellTable, value: float, masks: Words, moments: Moments | None = None
    ) -> Verdicts:
        """Answer for many contexts with the compiled kernel."""
        from pcor._kernels.histogram import histogram_verdicts

        populations = cells.populations(masks) if moments is None else moments[0].astype(np.int64)
        rule = (self.include_maximum, self.min_population)
        most = self.most(populations)
        place = cells.place(value)
        out = np.empty(len(masks), dtype=bool)
        in_slices(
            len(masks),
            lambda s: histogram_verdicts(
                masks[s], cells.pairs, populations[s], most[s], place, rule, out[s]
            ),
        )
        return out

    def block_judge(self, cells: CellTable, value: float) -> BlockJudge | None:
        """Return what judges all contexts of a block."""
        return HistogramBlocks(self, cells, value) if type(self) is Histogram else None

    def all_records(self, rows: SortedRows) -> Judge | None:
        """Return the compiled kernel."""
        if type(self) is not Histogram:
            return None
        from pcor._kernels.histogram_all import histogram_in_contexts

        rule = (self.include_maximum, self.min_population)
        most = self.most(np.arange(len(rows) + 1))
        return judged_by(histogram_in_contexts, rows.codes, rows.values, most, rule)


def bin_numbers(values: Values, bins: int) -> NDArray[np.int64]:
    """Return the bin of each value; ``values`` rise.

    Each step rounds monotonically, so a larger value never lands in a lower bin; on whole numbers
    the product is exact, and so is a value on an edge.
    """
    low, high = values[0], values[-1]
    if low == high:
        return np.zeros(len(values), dtype=np.int64)
    places = np.floor((values - low) * bins / (high - low)).astype(np.int64)
    numbers: NDArray[np.int64] = np.minimum(places, bins - 1)
    return numbers
