"""Table: the rows, encoded once against a schema and grouped by cell and metric value.

Private: everything but the schema. Rows with the same attribute values form a cell; a context
covers whole cells, so populations are sums over cells. Rows of one cell with the same metric are
one pair with a count: nothing after this file depends on the order of the rows. The repr shows
the schema and nothing of the rows, not even how many there are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from pcor.context import Context, Space, unpack
from pcor.errors import RecordError
from pcor.schema import Schema
from pcor.sources.columns import read_columns
from pcor.sources.encoding import Rows, encode

# How many contexts are looked at together; bounds the memory of one step.
BATCH = 1024


@dataclass(frozen=True, repr=False)
class Record:
    """The queried record, V in the paper. It is public: the owner is allowed to report it.

    Any row can be looked up as one, though, so its repr shows nothing.
    """

    key: int | str
    value: float
    space: Space


class Table:
    """Rows encoded against a schema.

    Args:
        source: a pandas, Polars, Arrow or DuckDB frame, or a path to a CSV or Parquet file.
        schema: the public description of the table, or the path of a schema file.
    """

    def __init__(self, source: Any, schema: Schema | str | Path) -> None:
        self.schema = schema if isinstance(schema, Schema) else Schema.from_file(schema)
        self._rows = encode(read_columns(source, self.schema.columns), self.schema)
        self._cell_of_row, self._cells = _cells(self._rows.codes)
        self._cell_counts = np.bincount(self._cell_of_row)
        self._levels, level_of_row = np.unique(self._rows.metric, return_inverse=True)
        pairs = level_of_row * len(self._cells) + self._cell_of_row
        pairs, self._pair_counts = np.unique(pairs, return_counts=True)
        self._pair_level, self._pair_cell = np.divmod(pairs, len(self._cells))

    def __repr__(self) -> str:
        names = ", ".join(f"{a.name} ({len(a.values)})" for a in self.schema.attributes)
        return f"<Table {self.schema.name!r}: metric {self.schema.metric.column}; {names}>"

    def record(self, key: int | str) -> Record:
        """Return the record with this id (or 0-based row number), or say why there is none."""
        row = self._row(key)
        mask = 0
        for code, offset in zip(self._rows.codes[row], self.schema.offsets, strict=True):
            mask |= 1 << (offset + int(code))
        return Record(self._key(row), float(self._rows.metric[row]), Space(self.schema, mask))

    def populations(self, masks: Sequence[int]) -> NDArray[np.int64]:
        """Return how many rows each context covers. Private."""
        parts = [
            self._covered(masks[start : start + BATCH]) @ self._cell_counts
            for start in range(0, len(masks), BATCH)
        ]
        return np.concatenate(parts) if parts else np.zeros(0, dtype=np.int64)

    def distribution(self, mask: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Return the distinct metric values of a population, rising, and their counts. Private."""
        kept = self._covered([mask])[0][self._pair_cell]
        counts = np.bincount(self._pair_level[kept], self._pair_counts[kept])
        present = np.flatnonzero(counts)
        return self._levels[present], counts[present].astype(np.int64)

    def keys_in(self, mask: int, values: NDArray[np.float64]) -> list[int | str]:
        """Return the keys of the covered rows whose metric is one of ``values``. Private."""
        kept = self._covered([mask])[0][self._cell_of_row] & np.isin(self._rows.metric, values)
        keys = self._rows.keys
        if isinstance(keys, np.ndarray):
            return [int(key) for key in keys[kept]]
        return [_plain(key) for key in keys.filter(pa.array(kept)).to_pylist()]

    def _covered(self, masks: Sequence[int]) -> NDArray[np.bool_]:
        """Return which cells each context covers: one row per context."""
        bits = unpack(masks, self.schema.width)
        covered = np.ones((len(masks), len(self._cells)), dtype=bool)
        for column, offset in zip(self._cells.T, self.schema.offsets, strict=True):
            covered &= bits[:, offset + column]
        return covered

    def _key(self, row: int) -> int | str:
        """Return the row's own key, however the request spelled it."""
        keys = self._rows.keys
        return int(keys[row]) if isinstance(keys, np.ndarray) else _plain(keys[row].as_py())

    def _row(self, key: int | str) -> int:
        found = _matching(self._rows, key)
        if len(found) == 0:
            what = "row number" if self.schema.id is None else f"{self.schema.id}"
            raise RecordError(
                f"no record with {what} {key!r} among the rows that fit the schema"
                + ("; rows are counted from 0" if self.schema.id is None else "")
            )
        if len(found) > 1:
            raise RecordError(
                f"{self.schema.id} {key!r} names more than one row; the id column must be unique"
            )
        return int(found[0])


def covers_record(context: Context, record: Record) -> bool:
    """Tell whether the record's own values are in the context: a public fact."""
    return context.mask in record.space


def _cells(codes: NDArray[np.int32]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Number the distinct rows of codes; return the number of each row, and the cells' codes.

    Attributes are folded in one at a time and renumbered, so no product of domain sizes can
    overflow.
    """
    cell = np.zeros(len(codes), dtype=np.int64)
    for column in codes.T:
        _, cell = np.unique(cell * (int(column.max()) + 1) + column, return_inverse=True)
    _, first = np.unique(cell, return_index=True)
    return cell, codes[first].astype(np.int64)


def _plain(key: object) -> int | str:
    """Return an id as a whole number where it is written like one.

    A CSV file holds text and a Parquet file numbers; "17" and 17 are the same record, "017" is a
    name of its own.
    """
    text = str(int(key)) if isinstance(key, float) and key.is_integer() else str(key)
    try:
        return int(text) if str(int(text)) == text else text
    except ValueError:
        return text


def _matching(rows: Rows, key: int | str) -> NDArray[np.int64]:
    """Return the places of the rows with this key; a whole number may be given as text."""
    if isinstance(key, bool) or not isinstance(key, int | str | np.integer):
        raise RecordError("a record is named by a whole number or a text")
    keys = rows.keys
    try:
        if isinstance(keys, np.ndarray):
            return np.flatnonzero(keys == int(key))
        if pa.types.is_floating(keys.type):  # whole numbers beside missing ones
            equal = pc.equal(keys, float(key))
        else:
            text = str(int(key)) if pa.types.is_integer(keys.type) else str(key)
            equal = pc.equal(keys.cast(pa.string()), text)
    except (ValueError, OverflowError, pa.ArrowException):  # not comparable, so none of them
        return np.zeros(0, dtype=np.int64)
    return np.flatnonzero(equal.to_numpy(zero_copy_only=False).astype(bool))
