"""The valid contexts of a space by falling total weight, in a bounded amount of memory.

Private: everything. At first they come from a heap of boxes (``_kernels.subtree_heap``), which
looks at no box twice. When the heap has as many boxes as it may, it is thrown away: from then on
the contexts of one range of weights after the other are found depth first
(``_kernels.subtree_rounds``), each range wider than the last up to a public part of the weights, so
that boxes are looked at a few times each. Both find the same contexts in the same order of weights.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from pcor.search.subtrees import Subtrees
from pcor.search.total_table import total_table
from pcor.support.arrays import NDArray, np

if TYPE_CHECKING:
    from pcor._kernels.total_table import TotalTable
    from pcor.rows.cells import Cells

# Bytes of a box in the heap, with the room that it leaves unused when it grows.
_BYTES = 350

# How many ranges of equal width the first one begins with, from the heaviest context down to 0.
_RANGES = 64

# No range is wider than one part in this many of the weights below the last one: boxes grow in
# number as weights fall, and most of those of a range too wide would be looked at in vain.
_WIDEST = 8

# Bins of weights for the contexts that are lighter than a range.
_BINS = 256

# Contexts that a range may have; a range with more is made smaller.
_MOST_OF_RANGE = 1 << 16

Numbers: TypeAlias = "NDArray[np.int64]"


class HeaviestValid:
    """The valid contexts of a space by falling total weight. Private.

    Args:
        walk: the rows near the record, and the steps of the space.
        cells: those of the table.
        weights: what each adds to a context that covers it.
        memory: how many bytes boxes may take.
    """

    def __init__(self, walk: Subtrees, cells: Cells, weights: Numbers, memory: int) -> None:
        self._walk = walk
        required = walk.space.step_bits(walk.space.indices_of(cells.cell_required))
        table = total_table(walk.space, required, weights)
        self._source: Heap | Rounds = Heap(walk, table, memory // _BYTES)

    @property
    def finished(self) -> bool:
        """Whether every valid context was found."""
        return self._source.finished

    @property
    def ceiling(self) -> int:
        """The most that a context not yet found can weigh."""
        return self._source.ceiling

    def find(self, count: int, looks: int) -> tuple[Numbers, Numbers, int]:
        """Return the next contexts and their weights, and how many looks at a box are left."""
        found, left = self._source.find(count, looks)
        self._source = self._source.then()
        bits = found[:, 1].astype(np.uint64)
        return self._walk.indices_of(bits).astype(np.int64), found[:, 0], left

    def sizes(self) -> tuple[Numbers, Numbers]:
        """Return of each box that is left the most a context can weigh, and how many it has."""
        return self._source.sizes()


class Heap:
    """Valid contexts by falling weight from a heap of boxes, until they are too many. Private."""

    def __init__(self, walk: Subtrees, weights: TotalTable, most_boxes: int) -> None:
        from pcor._kernels.subtree_heap import start

        self._walk, self._weights, self._most_boxes = walk, weights, most_boxes
        self._state, self._boxes = start(walk.rows, walk.steps, walk.rule, weights)
        self._last = np.zeros((0, 2), dtype=np.int64)  # the lightest found, all of equal weight

    @property
    def finished(self) -> bool:
        """Whether every valid context was found."""
        return bool(self._boxes.used[0] == 0)

    @property
    def ceiling(self) -> int:
        """The most that a context not yet found can weigh."""
        return int(self._boxes.heap[0, 0])

    def find(self, count: int, looks: int) -> tuple[Numbers, int]:
        """Return at most so many contexts, each with its weight, and how many looks are left."""
        from pcor._kernels.subtree_heap import next_valid

        # Each look adds one box, each context found one for each step.
        room = max(1, self._most_boxes - int(self._boxes.used[0]))
        found = np.empty((min(count, room), 2), dtype=np.int64)
        looking = min(looks, room)
        self._boxes, number, left = next_valid(
            self._state, self._weights, self._boxes, looking, found
        )
        found = found[:number]
        if number:
            before = self._last[self._last[:, 0] == found[-1, 0]]
            self._last = np.concatenate([before, found[found[:, 0] == found[-1, 0]]])
        return found, looks - looking + left

    def then(self) -> Heap | Rounds:
        """Return what finds the others: rounds, if there are as many boxes as there may be."""
        if self.finished or self._boxes.used[0] < self._most_boxes:
            return self
        return Rounds(self._walk, self._weights, self.ceiling, self._last[:, 1])

    def sizes(self) -> tuple[Numbers, Numbers]:
        """Return of each box the most that a context can weigh, and how many it has."""
        from pcor._kernels.subtree_heap import open_boxes

        boxes: Numbers = open_boxes(self._boxes, self._walk.steps)
        return boxes[:, 0], boxes[:, 1]


class Rounds:
    """Valid contexts by falling weight, one range of weights after the other. Private.

    Args:
        walk: as for ``HeaviestValid``.
        weights: what contexts weigh.
        ceiling: the most that a context not yet found can weigh.
        found: contexts of this weight that were found, as bits: they are left out.
    """

    def __init__(self, walk: Subtrees, weights: TotalTable, ceiling: int, found: Numbers) -> None:
        self._walk, self._weights, self.ceiling, self._found = walk, weights, ceiling, found
        self._width = ceiling // _RANGES + 1
        self._room = _MOST_OF_RANGE
        # Until the first range is done: any context may be left.
        self._lighter = np.array([walk.space.size], dtype=np.int64)

    @property
    def finished(self) -> bool:
        """Whether every valid context was found."""
        return self.ceiling < 0

    def find(self, count: int, looks: int) -> tuple[Numbers, int]:
        """Return the contexts of the next range, however many, and how many looks are left."""
        from pcor._kernels.subtree_rounds import valid_between

        del count
        low = max(0, self.ceiling + 1 - self._width)
        found = np.empty((self._room, 2), dtype=np.int64)
        lighter = np.zeros(_BINS, dtype=np.int64)
        number, looked = valid_between(
            *(self._walk.rows, self._walk.steps, self._walk.rule, self._weights),
            *((low, self.ceiling + 1), found, lighter),
        )
        if number == len(found):  # there may be more
            if self._width > 1:
                self._width = (self._width + 1) // 2
            else:
                self._room *= 2
            return found[:0], looks - looked
        self._width = min(2 * self._width, low // _WIDEST + 1)
        self.ceiling, self._lighter = low - 1, lighter
        found = found[:number][np.argsort(-found[:number, 0], kind="stable")]
        return found[~np.isin(found[:, 1], self._found)], looks - looked

    def then(self) -> Rounds:
        """Return itself: it finds all others."""
        return self

    def sizes(self) -> tuple[Numbers, Numbers]:
        """Return how many contexts are left at most, by the most that they can weigh."""
        if self.finished:
            return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
        width = (self.ceiling + 1) // len(self._lighter) + 1
        tops = np.minimum(width * np.arange(1, len(self._lighter) + 1) - 1, self.ceiling)
        some = self._lighter > 0
        return tops[some], self._lighter[some]
