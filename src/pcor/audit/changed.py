"""The table as it would be with some rows less or more, without reading anything again.

Private: everything; for the owner only. Rows are named by what a table keeps of them: the places of
their attribute values in the domains, and the metric. The queried record is never changed, so a
changed table still finds it by its key.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pcor.detectors import Detector
from pcor.public.context import Words, mask_of, pack
from pcor.public.schema import Schema
from pcor.public.space import Space
from pcor.rows.cell_table import CellTable
from pcor.rows.table import Record, Table
from pcor.search.blocks import blocks
from pcor.search.validity import Validity


class Row(NamedTuple):
    """A row: the places of its attribute values in their domains, and its metric."""

    places: tuple[int, ...]
    value: float

    @classmethod
    def of(cls, schema: Schema, mask: int, value: float) -> Row:
        """Return the row whose attribute values have these bits."""
        positions = [position for position in range(schema.width) if mask >> position & 1]
        return cls(tuple(p - o for p, o in zip(positions, schema.offsets, strict=True)), value)

    def mask(self, schema: Schema) -> int:
        """Return the bits of its attribute values."""
        return mask_of(schema, self.places)

    def required(self, schema: Schema, space: Space) -> int:
        """Return what a context needs to cover it, as the index of the first that does."""
        return int(space.indices_of(pack([self.mask(schema)], schema.width))[0])


def cell_codes(table: Table) -> NDArray[np.int64]:
    """Return the values of each cell as places in their domains, one column per attribute."""
    codes: NDArray[np.int64] = table.cells.cell_places - np.array(table.schema.offsets)
    return codes


def cell_places(table: Table) -> list[tuple[int, ...]]:
    """Return the values of each cell as places in their domains, one tuple per cell."""
    return list(map(tuple, cell_codes(table).tolist()))


def changed_cells(cells: CellTable, schema: Schema, kind: str, rows: Iterable[Row]) -> CellTable:
    """Return the cells with some rows ``"removed"`` or ``"added"``."""
    for row in rows:
        required = pack([row.mask(schema)], schema.width)[0]
        if kind == "removed":
            cells = cells.without_row(required, row.value)
        else:
            places = np.array(row.places) + np.array(schema.offsets)
            cells = cells.with_row(required, places, row.value)
    return cells


def changed_table(table: Table, *, removed: Sequence[Row] = (), added: Sequence[Row] = ()) -> Table:
    """Return the table with some rows less and some more. Its keys are those of the old one.

    Args:
        table: the rows.
        removed: rows that are there, each as often as it is to go. V must not be among them.
        added: rows of any values that the schema has.
    """
    cells = table.cells.in_memory()
    for kind, rows in (("removed", removed), ("added", added)):
        cells = changed_cells(cells, table.schema, kind, rows)
    return table.with_cells(cells)


def verdicts(validity: Validity) -> NDArray[np.bool_]:
    """Return the verdict on each context of the record's space, by index."""
    valid = np.zeros(validity.record.space.size, dtype=bool)
    for block in blocks(validity):
        valid[block.indices] = block.valid
    return valid


class KnownVerdicts(Validity):
    """Verdicts that are known beforehand: a search then runs as it would on that table.

    Args:
        table: the rows that scores are taken from.
        record: the queried record.
        detector: the rule.
        valid: the verdict on each context of the record's space, by index.
    """

    def __init__(
        self, table: Table, record: Record, detector: Detector, valid: NDArray[np.bool_]
    ) -> None:
        super().__init__(table, record, detector)
        self._valid = valid

    def judge(
        self, cells: CellTable, words: Words, moments: NDArray[np.float64] | None = None
    ) -> NDArray[np.bool_]:
        """Look the verdicts up."""
        del cells, moments
        return self._valid[self.record.space.indices_of(words)]
