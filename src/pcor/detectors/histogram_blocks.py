"""Rare bins on blocks of contexts.

Private: everything here. Rows and extremes of all contexts of a block come from one transform each;
what is left is to count V's bin.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pcor.detectors.context_block import BlockVerdicts, ContextBlock
from pcor.support.arrays import NDArray, np

if TYPE_CHECKING:
    from pcor.detectors.base import Counts, Moments
    from pcor.detectors.histogram import Histogram
    from pcor.rows.cell_table import CellTable


class HistogramBlocks:
    """Judges one value; ``BlockJudge``."""

    def __init__(self, detector: Histogram, cells: CellTable, value: float) -> None:
        self._detector, self._cells, self._value = detector, cells, value
        self._rows = cells.cell_counts[np.newaxis].astype(np.float64)
        self._lows, self._highs = cells.cell_extremes(cells.values)

    def __call__(self, block: ContextBlock) -> BlockVerdicts:
        """Settle all contexts."""
        from pcor._kernels.histogram_lattice import histogram_in_block

        detector, cells = self._detector, self._cells
        populations = block.totals(self._rows)[0].astype(np.int64)
        extremes = block.extremes(self._lows, self._highs)
        pairs = block.pairs(cells, self._window(populations, extremes))
        values = cells.values[pairs]
        valid = np.empty(block.size, dtype=np.bool_)
        histogram_in_block(
            block.words,
            (cells.required[pairs], values, cells.counts[pairs]),
            (populations, detector.most(populations), extremes),
            int(np.searchsorted(values, self._value)),
            self._value,
            (detector.include_maximum, detector.min_population),
            valid,
        )
        return BlockVerdicts(valid, np.zeros(0, dtype=np.int64), populations)

    def _window(self, populations: Counts, extremes: Moments) -> slice:
        """Return a run of pairs that holds V's bin in all contexts, and a pair beyond each end."""
        widths = (extremes[1] - extremes[0]) / np.maximum(np.floor(np.sqrt(populations)), 1)
        width = 1.000001 * float(widths.max())  # rounding moves the end of a bin by far less
        values: NDArray[np.float64] = self._cells.values
        first = int(np.searchsorted(values, self._value - width))
        last = int(np.searchsorted(values, self._value + width, side="right"))
        return slice(max(0, first - 1), last + 1)
