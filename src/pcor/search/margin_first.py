"""Margin scores by falling score, without listing or visiting the contexts in between.

Private: everything. Where no limit on whole contexts and no brevity is in play, contexts come from
a heap of boxes (``_kernels.margin_heap``), ordered by a bound on the score rather than by utility:
what holds many rows of the record's region is passed over whole. In spaces that can be listed the
rest is, once many boxes were looked at, as ``MarginOrder`` does. The same candidates, each with the
same score, so the same draw (docs/proofs/pure.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from pcor.detectors import CountDetector
from pcor.mechanism.ordered_selection import Run
from pcor.public.schema import MOST_STEPS
from pcor.search.best_first import bounds, stretches
from pcor.search.boxes import indices_of, steps_of
from pcor.search.margin import MarginOrder, Numbers
from pcor.search.total_table import total_table
from pcor.search.validity import Validity
from pcor.support.arrays import np

if TYPE_CHECKING:
    from pcor._kernels.boxes import Steps
    from pcor._kernels.margin_heap import MarginTables
    from pcor._kernels.total_table import TotalTable

# Boxes looked at for one context that is asked for, before what was found is handed on.
_LOOKS = 8


def margin_first(
    validity: Validity,
    detector: CountDetector,
    weights: Numbers,
    steepness: int,
    brevity: int = 0,
) -> MarginOrder:
    """Return all contexts of a record by falling margin score, by the fastest way there is."""
    space = validity.record.space
    fits = len(space.steps) <= MOST_STEPS and not space.schema.limited and not brevity
    order = BoxedMarginOrder if fits else MarginOrder
    return order(validity, detector, weights, steepness, brevity)


class BoxedMarginOrder(MarginOrder):
    """All contexts of a record by falling margin score, from boxes of contexts."""

    _size = 1  # boxes left; at first the whole space
    _heap: Numbers | None = None

    @cached_property
    def _steps(self) -> Steps:
        return steps_of(self._space)

    @cached_property
    def _tables(self) -> MarginTables:
        from pcor._kernels.margin_heap import MarginTables

        counts, share = self._cells.cell_counts, self._detector.share_exact
        margins = share.numerator * counts - share.denominator * self._region
        required = self._space.step_bits(self._descent.required.astype(np.uint64))

        def table(weights: Numbers) -> TotalTable:
            return total_table(self._space, required, weights)

        rows = table(counts)
        return MarginTables(
            rows if np.array_equal(self._weights, counts) else table(self._weights),
            rows,
            table(np.maximum(margins, 0)),
            table(np.maximum(-margins, 0)),
            (share.denominator, self._detector.min_population - 1, self._steepness),
        )

    def _boxes(self) -> Numbers:
        """Return the heap, which begins with the whole space."""
        if self._heap is None:
            from pcor._kernels.boxes import all_steps
            from pcor._kernels.margin_heap import highest_score

            everything = all_steps(self._steps)
            bound = highest_score(self._tables, np.uint64(0), np.uint64(everything))
            self._heap = np.array([[bound, 0, everything]], dtype=np.int64)
        return self._heap

    @property
    def _nothing_unvisited(self) -> bool:
        return self._listed or self._size == 0

    def remaining(self) -> Sequence[Run]:
        """Return bounds on all others: those that wait, and those of the boxes."""
        from pcor._kernels.margin_heap import sizes

        waiting = stretches(self._scores)
        if self._nothing_unvisited:
            return waiting
        heap = self._boxes()
        open_boxes = bounds(heap[: self._size, 0], sizes(heap, self._size, self._steps))
        return [*waiting, *open_boxes]

    def _visit(self) -> None:
        """Take boxes from the heap, and rank the contexts that are found."""
        from pcor._kernels.margin_heap import next_best

        found, looks = np.empty((self._step, 2), dtype=np.int64), _LOOKS * self._step
        self._heap, self._size, count, left = next_best(
            self._tables, self._steps, self._boxes(), self._size, looks, found
        )
        self._visited += looks - left
        bits = found[:count, 1].astype(np.uint64)
        indices = indices_of(bits, self._space, self._steps).astype(np.int64)
        self._append(indices, found[:count, 0])
