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

from pcor.context import Space, pack
from pcor.errors import RecordError
from pcor.schema import Schema
from pcor.sources.columns import read_columns
from pcor.sources.encoding import Rows, encode
from pcor.view import View

# Cells and levels are paired by a table of all combinations while it has at most this many entries.
_MOST_COMBINATIONS = 1 << 24


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
        self.view = _view(self._rows, self.schema)

    def __repr__(self) -> str:
        names = ", ".join(f"{a.name} ({len(a.values)})" for a in self.schema.attributes)
        return f"<Table {self.schema.name!r}: metric {self.schema.metric.column}; {names}>"

    def record(self, key: int | str) -> Record:
        """Return the record with this id (or 0-based row number), or say why there is none."""
        row = self._row(key)
        mask = 0
        codes = self._rows.cells[self._rows.cell[row]]
        for code, offset in zip(codes, self.schema.offsets, strict=True):
            mask |= 1 << (offset + int(code))
        return Record(self._key(row), float(self._rows.metric[row]), Space(self.schema, mask))

    def words(self, masks: Sequence[int]) -> NDArray[np.uint64]:
        """Return contexts as kernels read them."""
        return pack(masks, self.schema.width)

    def populations(self, masks: Sequence[int]) -> NDArray[np.int64]:
        """Return how many rows each context covers. Private."""
        return self.view.populations(self.words(masks))

    def distribution(self, mask: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Return the distinct metric values of a population, rising, and their counts. Private."""
        return self.view.distribution(self.words([mask])[0])

    def covered_cells(self, mask: int) -> NDArray[np.bool_]:
        """Return which cells a context covers. Private."""
        missing = self.view.cell_needs & ~self.words([mask])[0]
        return np.asarray(~missing.any(axis=1))

    def keys_in(self, mask: int, values: NDArray[np.float64]) -> list[int | str]:
        """Return the keys of the covered rows whose metric is one of ``values``. Private."""
        covered = self.covered_cells(mask)[self._rows.cell]
        kept = np.flatnonzero(covered & np.isin(self._rows.metric, values))
        return [self._key(int(row)) for row in kept]

    def _key(self, row: int) -> int | str:
        """Return the row's own key, however the request spelled it."""
        keys = self._rows.keys
        if keys is None:
            return row
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


def _view(rows: Rows, schema: Schema) -> View:
    """Sort the rows by metric and put those of one cell and metric together."""
    needs = _needs(rows.cells, schema)
    centre = float(np.mean(rows.metric))
    size = len(rows.cells)
    centred = rows.metric - centre
    sums = np.bincount(rows.cell, centred, minlength=size)
    squares = np.bincount(rows.cell, np.square(centred, out=centred), minlength=size)
    del centred
    values, cell, counts = _pairs(rows.metric, rows.cell, size)
    return View(
        needs[cell],
        values,
        counts,
        needs,
        np.bincount(rows.cell, minlength=size).astype(np.int64),
        sums.astype(np.float64),
        squares.astype(np.float64),
        centre,
        np.arange(size),
        cell,
        rows.cells + np.array(schema.offsets),
    )


def _needs(cells: NDArray[np.int64], schema: Schema) -> NDArray[np.uint64]:
    """Return the bits of each cell's values."""
    needs = np.zeros((len(cells), (schema.width + 63) // 64), dtype=np.uint64)
    for column, offset in zip(cells.T, schema.offsets, strict=True):
        word, bit = np.divmod(offset + column, 64)
        needs[np.arange(len(cells)), word] |= np.uint64(1) << bit.astype(np.uint64)
    return needs


def _pairs(
    metric: NDArray[np.float64], cell: NDArray[np.int32], cells: int
) -> tuple[NDArray[np.float64], NDArray[np.int32], NDArray[np.int32]]:
    """Return the pairs by rising metric: value, cell, count.

    Where few values repeat, a pair per row serves as well and saves a second sort.
    """
    order = np.argsort(metric)
    values, cell = metric[order], cell[order]
    del order
    new = np.concatenate([[True], values[1:] != values[:-1]])
    levels = int(new.sum())
    if 2 * levels > len(values):
        return values, cell, np.ones(len(values), dtype=np.int32)
    keys = (np.cumsum(new) - 1) * cells + cell
    if levels * cells <= _MOST_COMBINATIONS:
        counted = np.bincount(keys, minlength=levels * cells)
        found = np.flatnonzero(counted)
        counts = counted[found]
    else:
        found, counts = np.unique(keys, return_counts=True)
    level, cell_of_pair = np.divmod(found, cells)
    return values[new][level], cell_of_pair.astype(np.int32), counts.astype(np.int32)


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
        if isinstance(key, str) and str(int(key) if _counts_by_number(keys) else key) != key:
            return np.zeros(0, dtype=np.int64)  # "017" is not the number 17
        if keys is None:
            return np.flatnonzero([0 <= int(key) < len(rows.metric)]) + int(key)
        if isinstance(keys, np.ndarray):
            return np.flatnonzero(keys == int(key))
        if pa.types.is_floating(keys.type):  # whole numbers beside missing ones
            equal = pc.equal(keys, float(key))
        elif pa.types.is_integer(keys.type):
            equal = pc.equal(keys, pa.scalar(int(key), keys.type))
        else:
            equal = pc.equal(keys.cast(pa.string()), str(key))
    except (ValueError, OverflowError, pa.ArrowException):  # not comparable, so none of them
        return np.zeros(0, dtype=np.int64)
    return np.flatnonzero(equal.to_numpy(zero_copy_only=False).astype(bool))


def _counts_by_number(keys: Any) -> bool:
    return keys is None or isinstance(keys, np.ndarray) or pa.types.is_integer(keys.type)
