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
from pcor.public.space import Space
from pcor.search.best_first import bounds, stretches
from pcor.search.boxes import indices_of, steps_of
from pcor.search.margin import MarginOrder, Numbers
from pcor.search.total_table import total_table
from pcor.search.validity import Validity
from pcor.support.arrays import np

if TYPE_CHECKING:
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

    @cached_property
    def _boxes(self) -> MarginHeap:
        """The boxes that are left; at first the whole space."""
        from pcor._kernels.margin_heap import MarginTables

        counts, share = self._cells.cell_counts, self._detector.share_exact
        margins = share.numerator * counts - share.denominator * self._region
        required = self._space.step_bits(self._descent.required.astype(np.uint64))

        def table(weights: Numbers) -> TotalTable:
            return total_table(self._space, required, weights)

        rows = table(counts)
        tables = MarginTables(
            rows if np.array_equal(self._weights, counts) else table(self._weights),
            rows,
            table(np.maximum(margins, 0)),
            table(np.maximum(-margins, 0)),
            (share.denominator, self._detector.min_population - 1, self._steepness),
        )
        return MarginHeap(tables, self._space)

    @property
    def _nothing_unvisited(self) -> bool:
        return self._listed or self._boxes.finished

    def remaining(self) -> Sequence[Run]:
        """Return bounds on all others: those that wait, and those of the boxes."""
        waiting = stretches(self._scores)
        return waiting if self._nothing_unvisited else [*waiting, *bounds(*self._boxes.sizes())]

    def _visit(self) -> None:
        """Take boxes from the heap, and rank the contexts that are found."""
        indices, scores, looked = self._boxes.find(self._step, _LOOKS * self._step)
        self._visited += looked
        self._append(indices, scores)


class MarginHeap:
    """The contexts of a space by falling margin score. Private."""

    def __init__(self, tables: MarginTables, space: Space) -> None:
        from pcor._kernels.boxes import all_steps
        from pcor._kernels.margin_heap import highest_score

        self._tables, self._space, self._steps = tables, space, steps_of(space)
        everything = all_steps(self._steps)
        bound = highest_score(tables, np.uint64(0), np.uint64(everything))
        self._heap: Numbers = np.array([[bound, 0, everything]], dtype=np.int64)
        self._size = 1

    @property
    def finished(self) -> bool:
        """Whether every context was found."""
        return self._size == 0

    def find(self, count: int, looks: int) -> tuple[Numbers, Numbers, int]:
        """Return the next contexts and their scores, and how many boxes were looked at."""
        from pcor._kernels.margin_heap import next_best

        found = np.empty((count, 2), dtype=np.int64)
        self._heap, self._size, number, left = next_best(
            self._tables, self._steps, self._heap, self._size, looks, found
        )
        bits = found[:number, 1].astype(np.uint64)
        indices = indices_of(bits, self._space).astype(np.int64)
        return indices, found[:number, 0], looks - left

    def sizes(self) -> tuple[Numbers, Numbers]:
        """Return of each box that is left the most a context can score, and how many it has."""
        from pcor._kernels.margin_heap import sizes

        return self._heap[: self._size, 0], sizes(self._heap, self._size, self._steps)
