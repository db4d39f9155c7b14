"""A record's rows by the steps that can come or go: one word for each, however wide the schema.

Private: the rows. A context of the record's space has all of its own values and some steps up the
chains (``pcor.public.space``), and it covers a row if it has the step of each of the row's values.
Where a schema has thousands of values a record has few steps, and its contexts are then judged on
rows of one word in the place of many: the same verdicts, from a fraction of the memory.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

from pcor.public.context import unpack
from pcor.public.schema import MOST_STEPS
from pcor.public.space import Indices, Space
from pcor.search.validity import Validity
from pcor.support.arrays import NDArray, np

if TYPE_CHECKING:
    from pcor.rows.cell_table import CellTable


class StepRows:
    """The rows that can matter for a record, and contexts, as steps.

    Args:
        validity: the record, the detector and its rows.
        space: numbers the contexts; the record's, in any order of chains.
    """

    def __init__(self, validity: Validity, space: Space) -> None:
        self._validity, self._space = validity, space

    @property
    def helps(self) -> bool:
        """Whether rows get shorter by it, and no engine is asked in the words of the schema."""
        cells = self._validity.cells
        fits = len(self._space.steps) <= MOST_STEPS and self._validity.compiled
        return fits and cells.required.shape[1] > 1

    def judge(self, indices: Indices) -> NDArray[np.bool_]:
        """Return which contexts, given by their indices, are valid."""
        return self._validity.judge(self._cells, self._space.step_bits(indices)[:, np.newaxis])

    @cached_property
    def _cells(self) -> CellTable:
        from pcor._kernels.coverage import place_sums

        bits = np.zeros(self._space.schema.width, dtype=np.uint64)
        for number, step in enumerate(self._space.steps):
            bits[unpack([step], len(bits))[0]] = 1 << number
        whole, cells = self._validity.table.cells, self._validity.cells
        # A value has one step and each attribute its own, so that sums are unions.
        required = np.zeros(len(whole.cell_places), dtype=np.uint64)
        place_sums(whole.cell_places, bits, required)
        return replace(
            cells,
            required=required[cells.pair_cells, np.newaxis],
            cell_required=required[cells.cell_numbers, np.newaxis],
        )
