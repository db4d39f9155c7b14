"""A block of contexts that share their outer levels, as detectors judge them all at once.

Private: everything here. ``search.blocks`` walks a record's space in such blocks. A detector that
can settle most contexts of one from sums over all of them does so in a ``BlockJudge``; about those
that it leaves open it is asked context by context.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from pcor.public.context import Words
from pcor.support.arrays import NDArray, np

if TYPE_CHECKING:
    from pcor.detectors.base import Counts, Moments, Verdicts
    from pcor.public.space import Space
    from pcor.rows.cell_table import CellTable
    from pcor.rows.cells import Cells


@dataclass(frozen=True)
class ContextBlock:
    """The contexts of a space from one index on that share their outer levels. Private.

    Attributes:
        space: numbers the contexts.
        first: the index of the first of them.
        size: how many there are.
        radices: how many levels each inner chain has.
        cells: of the whole table, with the record.
    """

    space: Space
    first: int
    size: int
    radices: NDArray[np.int64]
    cells: Cells

    @cached_property
    def largest(self) -> Words:
        """The context that holds all others."""
        last = self.first + self.size - 1
        largest: Words = self.space.words(last, last + 1)[0]
        return largest

    @cached_property
    def words(self) -> Words:
        """The contexts."""
        return self.space.words(self.first, self.first + self.size)

    @cached_property
    def inside(self) -> NDArray[np.int64]:
        """The places of the cells that some context covers."""
        from pcor._kernels.coverage import covered_places

        places: NDArray[np.int64] = covered_places(self.largest, self.cells.cell_required)
        return places

    @cached_property
    def _required(self) -> NDArray[np.uint64]:
        """For each cell inside the first context of the block that covers it."""
        needed = self.space.indices_of(self.cells.cell_required[self.inside])
        return needed % np.uint64(self.size)

    def totals(self, weights: Moments) -> Moments:
        """Return summed weights of the cells that each context covers: shape (kinds, size)."""
        from pcor._kernels.lattice import block_totals

        totals = np.zeros((len(weights), self.size))
        block_totals(self._required, self.radices, weights[:, self.inside], totals)
        return totals

    def extremes(self, lows: Moments, highs: Moments) -> Moments:
        """Return the least of ``lows`` and the largest of ``highs`` over the covered cells."""
        from pcor._kernels.lattice import block_extremes

        extremes = np.empty((2, self.size))
        places = self.inside
        block_extremes(self._required, self.radices, lows[places], highs[places], extremes)
        return extremes

    def pairs(self, cells: CellTable, part: slice) -> NDArray[np.int64]:
        """Return which of a run of pairs some context covers."""
        from pcor._kernels.coverage import covered_places

        places: NDArray[np.int64] = covered_places(self.largest, cells.required[part])
        return places + (part.start or 0)


class BlockVerdicts(NamedTuple):
    """The verdicts on a block. Private.

    Attributes:
        valid: for each context, where it is settled.
        unsure: the places of the contexts that are not settled.
        populations: how many rows each covers.
    """

    valid: Verdicts
    unsure: NDArray[np.int64]
    populations: Counts


# Judges one value of a table in the contexts of a block: settles what can be settled at once.
BlockJudge: TypeAlias = Callable[[ContextBlock], BlockVerdicts]
