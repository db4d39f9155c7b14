"""Grubbs' test on blocks of contexts.

Private: everything here. Proof: docs/proofs/lattice_grubbs.md. Most contexts need no removal: V is
out already, or enough rows on its side stay. Which rows to look at, those up to V and up to some
quantiles of all rows, is a guess that decides how many contexts are settled, and no verdict.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from pcor.detectors.context_block import BlockVerdicts, ContextBlock
from pcor.support.arrays import NDArray, np

if TYPE_CHECKING:
    from pcor.detectors.base import Moments
    from pcor.detectors.grubbs import Grubbs, ShareTables
    from pcor.rows.cell_table import CellTable

# Shares of all rows up to which rows may stay: tried in this order, from below and from above.
_QUANTILES = (0.75, 0.9, 0.5)

# Sums over a whole block cost as much as asking for one context in this many.
_FEW_OF = 64


class _Form(NamedTuple):
    """Rows that may stay: those on the far side of a point from all that is beyond it.

    Attributes:
        side: 1 for the rows up to the point, -1 for those from it on.
        own: whether the point is V.
        weights: of the rows of each cell that may stay the count, and the sums of their distances
            from the point and of the squares.
    """

    side: int
    own: bool
    weights: Moments


class GrubbsBlocks:
    """Judges one value; ``BlockJudge``."""

    def __init__(self, detector: Grubbs, cells: CellTable, value: float) -> None:
        self._detector, self._cells, self._value = detector, cells, value
        self._centred = cells.values - value
        self._moments = self._sums(slice(None), self._centred)
        self._lows, self._highs = cells.cell_extremes(self._centred)
        self._tail = ("both", "upper", "lower").index(detector.tail)
        self._forms: dict[int, _Form] = {}

    def __call__(self, block: ContextBlock) -> BlockVerdicts:
        """Settle most contexts, in rounds that look at more and more."""
        from pcor._kernels.grubbs import UNSURE, YES
        from pcor._kernels.grubbs_lattice import settle_by_kept, settle_outright

        tables = self._tables
        totals = block.totals(self._moments)
        extremes = block.extremes(self._lows, self._highs)
        rule = (self._tail, self._detector.min_population)
        out = np.empty(block.size, dtype=np.int8)
        unsure = settle_outright(totals, extremes, tables.most, rule, out)
        for number in range(len(self._points)):
            if _FEW_OF * unsure <= block.size:
                break
            form = self._form(number)
            kept, what = block.totals(form.weights), (self._tail, form.side, form.own)
            compared = tables.most, tables.shares, tables.least
            unsure = settle_by_kept(totals, extremes, kept, what, compared, out)
        self._leap(block, totals, out)
        return BlockVerdicts(out == YES, np.flatnonzero(out == UNSURE), totals[0].astype(np.int64))

    def _leap(self, block: ContextBlock, totals: Moments, out: NDArray[np.int8]) -> None:
        """Settle the contexts in which what is beyond V must be removed."""
        from pcor._kernels.grubbs import UNSURE
        from pcor._kernels.grubbs_lattice import LEAP_DOWN, LEAP_UP, settle_in_leaps

        if not self._leaps:
            out[out >= LEAP_DOWN] = UNSURE
        cells, at = self._cells, self._cells.place(self._value)
        end = int(np.searchsorted(cells.values, self._value, side="right"))
        for mark, side, part in ((LEAP_DOWN, 1, slice(at, None)), (LEAP_UP, -1, slice(0, end))):
            if (out == mark).any():
                pairs = block.pairs(cells, part)[::-side]
                distances, counts = side * self._centred[pairs], cells.counts[pairs]
                beyond = (cells.required[pairs], distances, counts.astype(np.float64))
                settle_in_leaps(block.words, totals, beyond, mark, self._tables.critical, out)

    @cached_property
    def _leaps(self) -> bool:
        """Whether fewer rows never need a larger share: what is out then stays out."""
        return np.array_equal(self._tables.most, self._tables.shares)

    @cached_property
    def _tables(self) -> ShareTables:
        from pcor.detectors.grubbs import share_tables

        rows = int(self._cells.cell_counts.sum())
        return share_tables(rows, self._detector.alpha, self._detector.tail)

    @cached_property
    def _points(self) -> list[tuple[float, int]]:
        """The points beyond V, with their side, in the order in which they are tried."""
        values, counts = self._cells.values, self._cells.counts
        up_to, rows = np.cumsum(counts), int(counts.sum())
        sides = {0: (1, -1), 1: (1,), 2: (-1,)}[self._tail]
        # First the side on which the whole table has its farther extreme: more is removed there.
        middle = float(values[0]) / 2 + float(values[-1]) / 2
        mean = float(np.average(self._centred, weights=counts)) + self._value
        if mean > middle:
            sides = sides[::-1]
        points: list[tuple[float, int]] = []
        for side in sides:
            for share in _QUANTILES:
                rank = share * rows if side > 0 else (1 - share) * rows
                h = float(values[min(int(np.searchsorted(up_to, rank)), len(values) - 1)])
                points.append((max(h, self._value) if side > 0 else min(h, self._value), side))
            points.append((self._value, side))
        return list(dict.fromkeys(points))

    def _form(self, number: int) -> _Form:
        """Return what is summed for one point; remembered, and the same from every thread."""
        if number not in self._forms:
            point, side = self._points[number]
            cells = self._cells
            if side > 0:
                part = slice(0, int(np.searchsorted(cells.values, point, side="right")))
            else:
                part = slice(cells.place(point), None)
            weights = self._sums(part, side * (point - cells.values[part]))
            self._forms[number] = _Form(side, point == self._value, weights)
        return self._forms[number]

    def _sums(self, part: slice, distances: NDArray[np.float64]) -> Moments:
        """Return, for each cell, how many rows a run of pairs has, and two sums over them."""
        cells, counts = self._cells, self._cells.counts[part]
        return np.array(
            [
                cells.by_cell(part, counts),
                cells.by_cell(part, counts * distances),
                cells.by_cell(part, counts * distances**2),
            ]
        )
