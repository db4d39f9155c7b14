"""Detectors that count: an outlier is where hardly anybody is.

Public: the share, and the region of numbers that belongs to the record's value; the region depends
on nothing else. Private: how many rows lie in it. V is an outlier in a context of n rows, c of them
in its region (V is one of them), if c is less than the share of n: ``share * n - c > 0``.

What the other detectors lack and a guarantee for everybody can be built on: one row changes that
margin by little. With ``share = a / b``, a row outside the region raises ``a*n - b*c`` by a, a row
inside lowers it by b - a, and these are whole numbers: no verdict is left to rounding.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar

from pcor.detectors.base import Counts, Detector, Moments, Values, Verdicts
from pcor.detectors.context_block import BlockJudge, BlockVerdicts, ContextBlock
from pcor.errors import ParameterError, UnknownName, plain
from pcor.public.context import Words
from pcor.public.window import Window
from pcor.support.arrays import NDArray, np

if TYPE_CHECKING:
    from pcor.rows.cell_table import CellTable
    from pcor.rows.cells import Cells

TAILS = ("upper", "lower")

# With it, products with counts of rows stay far below 2^63.
LARGEST_DENOMINATOR = 10**6


@dataclass(frozen=True)
class CountDetector(Detector):
    """A value is an outlier if less than a share of the population lies in its region.

    Subclasses have a field ``share`` and say what the region of a value is, in ``in_region`` for
    one value and in ``region_totals`` for all; it may depend on the value and on public settings
    alone.

    Attributes:
        share: between 0 and 1, compared exactly as the decimal number that was written.
    """

    has_kernel: ClassVar[bool] = True
    wants_moments: ClassVar[bool] = True
    # No field here: each subclass declares it after what its region needs, Neighbourhood(5, 0.01).
    share = 0.05

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.share, float) or not 0 < self.share < 1:
            raise ParameterError("share must be a number between 0 and 1, not included")
        if self.share_exact.denominator > LARGEST_DENOMINATOR:
            raise ParameterError(
                "share must have at most 6 digits after the point, to be compared exactly"
            )

    @property
    def count_rule(self) -> CountDetector:
        """The rule itself."""
        return self

    @cached_property
    def share_exact(self) -> Fraction:
        """The share as it was written: 0.05 is one twentieth."""
        return Fraction(repr(float(self.share)))

    @property
    def percent(self) -> str:
        """The share as people write it: "5 %"."""
        return f"{plain(100 * self.share_exact)} %"

    def in_region(self, values: Values, value: float) -> Verdicts:
        """Tell which of ``values`` lie in the region of ``value``; the value itself always does."""
        raise NotImplementedError(f"{type(self).__name__} must define in_region()")

    def region_totals(self, values: Values, counts: Counts) -> Counts:
        """Return how many rows lie in the region of each distinct value; ``values`` rise."""
        raise NotImplementedError(f"{type(self).__name__} must define region_totals()")

    def region_counts(self, cells: Cells, value: float) -> Counts:
        """Return how many rows of each cell lie in the region of ``value``."""
        ends = self.region_ends(value)
        if ends is not None:
            return cells.rows_between(*ends)
        pairs = cells.in_memory()
        inside = self.in_region(pairs.values, value)
        return pairs.by_cell(inside, pairs.counts[inside]).astype(np.int64)

    def window_on(self, value: float, low: float, high: float) -> Window:
        """No pairs where the region is a range: its rows are counted. Otherwise all of them."""
        ranged = self.region_ends(value) is not None
        return Window.nothing() if ranged else super().window_on(value, low, high)

    def verdicts(self, values: Values, counts: Counts) -> Verdicts:
        """Compare every region with the share."""
        return self._few(counts.sum(), self.region_totals(values, counts))

    def batch(
        self, cells: CellTable, value: float, masks: Words, moments: Moments | None = None
    ) -> Verdicts:
        """Answer for many contexts from sums over their cells."""
        if moments is None:
            moments = cells.several_totals(masks, self.cell_moments(cells, value))
        rows, inside = moments.astype(np.int64)
        verdicts: Verdicts = (rows >= self.min_population) & self._few(rows, inside)
        return verdicts

    def cell_moments(self, cells: Cells, value: float) -> Moments:
        """Return the rows of each cell, and how many of them lie in the region."""
        return np.array([cells.cell_counts, self.region_counts(cells, value)], dtype=np.float64)

    def block_judge(self, cells: CellTable, value: float) -> BlockJudge | None:
        """Compare sums over all contexts of a block, where ``batch`` does no more."""
        if type(self).batch is not CountDetector.batch:
            return None
        counts = self.cell_moments(cells, value)

        def judge(block: ContextBlock) -> BlockVerdicts:
            rows, inside = block.totals(counts).astype(np.int64)
            valid = (rows >= self.min_population) & self._few(rows, inside)
            return BlockVerdicts(valid, np.zeros(0, dtype=np.int64), rows)

        return judge

    def _few(self, rows: Counts | np.int64, inside: Counts | np.int64) -> Verdicts:
        share = self.share_exact
        return np.asarray(share.numerator * rows > share.denominator * inside)


@dataclass(frozen=True)
class Tail(CountDetector):
    """A value is an outlier if less than ``share`` of the population lies as far out.

    >>> Tail(share=0.2, min_population=5).flags([1, 1, 2, 3, 5, 8]).tolist()
    [False, False, False, False, False, True]

    Attributes:
        share: see ``CountDetector``.
        tail: ``"upper"`` counts the values at least as large, ``"lower"`` those at most as large.
    """

    name: ClassVar[str] = "tail"
    share: float = 0.05
    tail: str = "upper"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.tail not in TAILS:
            raise UnknownName("tail", self.tail, TAILS)

    @property
    def in_words(self) -> str:
        """The share of the group, itself included."""
        return f"less than {self.percent} of the group have one at least as {self.side}"

    @property
    def side(self) -> str | None:
        """That of the one tail."""
        return {"upper": "high", "lower": "low"}.get(self.tail)

    def in_region(self, values: Values, value: float) -> Verdicts:
        """Tell which values are as far out."""
        return values >= value if self.tail == "upper" else values <= value

    def region_ends(self, value: float) -> tuple[float, float] | None:
        """Return the value and infinity."""
        return (value, math.inf) if self.tail == "upper" else (-math.inf, value)

    def region_totals(self, values: Values, counts: Counts) -> Counts:
        """Add up the counts from the far end."""
        del values  # they rise
        return np.cumsum(counts[::-1])[::-1] if self.tail == "upper" else np.cumsum(counts)


@dataclass(frozen=True)
class Neighbourhood(CountDetector):
    """A value is an outlier if less than ``share`` of the population lies near it.

    Attributes:
        radius: how far away is near: ``|x - value| <= radius``, the difference as float64 has it.
        share: see ``CountDetector``.
    """

    name: ClassVar[str] = "neighbourhood"
    radius: float
    share: float = 0.05

    def __post_init__(self) -> None:
        super().__post_init__()
        number = isinstance(self.radius, int | float) and not isinstance(self.radius, bool)
        if not number or not 0 <= self.radius <= sys.float_info.max:
            raise ParameterError("radius must be a finite number of at least 0")

    @property
    def in_words(self) -> str:
        """The share of the group, itself included."""
        return f"less than {self.percent} of the group have one within {self.radius:,} of it"

    def in_region(self, values: Values, value: float) -> Verdicts:
        """Tell which values are near."""
        near: Verdicts = np.abs(values - value) <= float(self.radius)
        return near

    def region_ends(self, value: float) -> tuple[float, float] | None:
        """Return the last numbers that are near by the very test of ``in_region``."""
        return self._last_near(value, -1.0), self._last_near(value, 1.0)

    def _last_near(self, value: float, side: float) -> float:
        """Find the end by bisection: rounded differences still rise with distance."""
        radius = float(self.radius)
        if radius > 1e101:
            return side * math.inf  # no metric is farther out
        near, beyond = value, value + side * (2 * radius + abs(value) + 1)
        while (middle := near + (beyond - near) / 2) not in (near, beyond):
            if abs(middle - value) <= radius:
                near = middle
            else:
                beyond = middle
        return near

    def region_totals(self, values: Values, counts: Counts) -> Counts:
        """Find both ends of each neighbourhood and add up the counts between."""
        first = self._first_near(values)
        last = len(values) - 1 - self._first_near(-values[::-1])[::-1]
        up_to = np.concatenate([[0], np.cumsum(counts)])
        totals: Counts = up_to[last + 1] - up_to[first]
        return totals

    def _first_near(self, values: Values) -> NDArray[np.int64]:
        """Return, for each value, the place of the lowest one near it.

        By bisection with the very test of ``in_region``: looking up ``value - radius`` would round
        differently. Rounded differences still rise with distance, so what is near is a range.
        """
        low, high = np.zeros(len(values), dtype=np.int64), np.arange(len(values))
        while (low < high).any():
            middle = (low + high) // 2
            near = values - values[middle] <= float(self.radius)
            low, high = np.where(near, low, middle + 1), np.where(near, middle, high)
        return low


@dataclass(frozen=True)
class RareBin(CountDetector):
    """A value is an outlier if less than ``share`` of the population lies in its bin.

    >>> RareBin([0, 10, 20], share=0.2, min_population=5).flags([-5, 0, 3, 9, 10, 12, 20]).tolist()
    [True, False, False, False, False, False, True]

    Attributes:
        edges: of a public grid, rising. A bin has its lower edge and not its upper one; below the
            first edge and from the last one on there is one more bin each. Also as text, for the
            command line: ``"0|1000|5000"``.
        share: see ``CountDetector``.
    """

    name: ClassVar[str] = "rare_bin"
    edges: Sequence[float] | str
    share: float = 0.05

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "edges", _checked_edges(self.edges))

    @property
    def in_words(self) -> str:
        """The share of the group, itself included."""
        return f"less than {self.percent} of the group are in its range of a scale fixed beforehand"

    def in_region(self, values: Values, value: float) -> Verdicts:
        """Tell which values share a bin with this one."""
        same: Verdicts = self._bins(values) == self._bins(np.array([value]))
        return same

    def region_ends(self, value: float) -> tuple[float, float] | None:
        """Return the lower edge of the value's bin, and the last number before the upper one."""
        place = int(self._bins(np.array([value]))[0])
        edges = (-math.inf, *map(float, self.edges), math.inf)
        above = edges[place + 1]
        return edges[place], above if math.isinf(above) else math.nextafter(above, -math.inf)

    def region_totals(self, values: Values, counts: Counts) -> Counts:
        """Count every bin."""
        bins = self._bins(values)
        return np.bincount(bins, counts).astype(np.int64)[bins]

    def _bins(self, values: Values) -> NDArray[np.int64]:
        return np.searchsorted(np.array(self.edges, dtype=np.float64), values, side="right")

    def describe(self) -> dict[str, Any]:
        """Return the public parameters; the edges as JSON has them."""
        return super().describe() | {"edges": list(self.edges)}


def _checked_edges(given: Any) -> tuple[float, ...]:
    """Read the edges of a grid; a single one may come as a number."""
    if isinstance(given, str):
        given = given.split("|")
    elif isinstance(given, int | float):
        given = [given]
    try:
        edges = tuple(float(edge) for edge in given)
    except (TypeError, ValueError, OverflowError):
        edges = ()
    rising = all(low < high for low, high in pairwise(edges))
    if not edges or not rising or not all(math.isfinite(edge) for edge in edges):
        raise ParameterError(
            "edges must be one or more finite numbers in rising order, such as [0, 1000, 5000] or "
            "'0|1000|5000'"
        )
    return edges
