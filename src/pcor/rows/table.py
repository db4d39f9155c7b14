"""Table: the rows, encoded once against a schema and grouped by cell and metric value.

Private: everything but the schema. Rows with the same attribute values form a cell; a context
covers whole cells, so populations are sums over cells. Rows of one cell with the same metric are
one pair with a count: nothing after this file depends on the order of the rows. The repr shows
the schema and nothing of the rows, not even how many there are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from pcor.errors import ParameterError, RecordError, SourceError, check_whole
from pcor.public.context import Words, mask_of, pack
from pcor.public.schema import Schema
from pcor.public.space import Space
from pcor.rows.cell_table import CellTable
from pcor.rows.cells import Cells, Distribution, Rule, cell_bits
from pcor.rows.columns import check_columns, check_separator, read_columns
from pcor.rows.encoding import EncodedRows, encode
from pcor.rows.engines.source import open_engine
from pcor.rows.keys import check_key, find_rows, plain_key
from pcor.rows.queries.pushdown import KeyedRow, Pushdown
from pcor.rows.queries.queries import PAIRS_LIMIT
from pcor.rows.remote import RemoteCellTable, allowed_codes

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


def check_table(table: object) -> None:
    """Raise if this is not a Table yet, such as the name of its file."""
    if not isinstance(table, Table):
        raise ParameterError(
            "table must be a pcor.Table; a file or a frame becomes one with its schema: "
            "pcor.Table('claims.csv', 'claims.toml')"
        )


class Table:
    """Rows encoded against a schema.

    Frames in memory and single files are read. Whatever is lazy stays where it is, and only what a
    release needs of it is asked for: a Polars LazyFrame, a DuckDB relation, an Arrow dataset, a
    Spark DataFrame, several files or a folder, a table in PostgreSQL or SQLite.

    Args:
        source: a pandas, Polars, Arrow, DuckDB or Spark frame; a path to a CSV (also packed, as
            ``.csv.gz`` or alone in a ``.zip``), Parquet or Excel file; a pattern or folder of CSV
            or Parquet files, or a list of paths; ``pcor.rows.database(url, table)`` or its URL,
            ``postgresql://host/name#table``; an engine of your own.
        schema: the public description of the table, or the path of a schema file. Its ``source``
            says how files, and numbers in texts, are written.
        memory: the most memory to use, such as "4GiB"; for files, which are then never read whole.
        pairs: how many cells or (cell, metric) pairs an engine may hand over.

    Raises:
        ParameterError: the arguments are not a source and its schema.
        SchemaError: the schema file cannot be read.
        SourceError: the source cannot be read, or does not fit the schema.
    """

    def __init__(
        self,
        source: Any,
        schema: Schema | str | Path,
        *,
        memory: str | None = None,
        pairs: int = PAIRS_LIMIT,
    ) -> None:
        if isinstance(source, Schema) or not isinstance(schema, Schema | str | Path):
            raise ParameterError(
                "the rows come first and their schema second, as a pcor.Schema or the path of its "
                "file: pcor.Table(rows, schema)"
            )
        self.schema = schema if isinstance(schema, Schema) else Schema.from_file(schema)
        check_whole("pairs", pairs)
        engine = open_engine(source, memory, self.schema.source)
        self.pushdown: Pushdown | None = None
        self._encoded: EncodedRows | None = None
        self._find: Callable[[int | str], list[KeyedRow]] | None = None
        if engine is None:
            columns = read_columns(source, self.schema.columns, self.schema.source)
            self._encoded = encode(columns, self.schema)
            self.cells: Cells = _cell_table(self._encoded, self.schema)
        else:
            names = list(engine.kinds)
            if isinstance(source, str | Path) and Path(source).is_file():
                check_separator(Path(source), names, self.schema.columns, self.schema.source)
            check_columns("the table", names, self.schema.columns)
            self.pushdown = Pushdown(engine, self.schema, pairs)
            self.cells = RemoteCellTable(self.pushdown)

    def __repr__(self) -> str:
        names = ", ".join(f"{a.name} ({len(a.values)})" for a in self.schema.attributes)
        return f"<Table {self.schema.name!r}: metric {self.schema.metric.column}; {names}>"

    @property
    def engine(self) -> str:
        """What holds the rows, with its version, for certificates."""
        if self.pushdown is None:
            return f"numpy {np.__version__}"
        return self.pushdown.engine_name

    @property
    def bytes_returned(self) -> int:
        """How many bytes of answers an engine has handed over; 0 for rows in memory. Private."""
        return 0 if self.pushdown is None else self.pushdown.bytes_returned

    @property
    def rows(self) -> EncodedRows:
        """The rows one by one, where they are in memory. Private.

        Raises:
            SourceError: they are not.
        """
        if self._encoded is None:
            raise SourceError(
                "this looks at every row one by one, so the rows have to be in memory: give a file "
                "or a frame such as pandas, Polars or Arrow"
            )
        return self._encoded

    def record(self, key: int | str) -> Record:
        """Return the record with this id (or 0-based row number), or say why there is none.

        Raises:
            ParameterError: this cannot be a key.
            RecordError: no row has this key, or several have.
        """
        check_key(key)
        self.schema.check_id(key)
        found = self.find(key)
        if len(found) == 0:
            what = "row number" if self.schema.id is None else f"{self.schema.id}"
            raise RecordError(
                f"no record with {what} {key!r} among the rows that fit the schema; "
                + ("rows are counted from 0" if self.schema.id is None else "check the id")
            )
        if len(found) > 1:
            raise RecordError(
                f"{self.schema.id} {key!r} names more than one row; the id column must be unique"
            )
        own_key, value, codes = found[0]
        return Record(plain_key(own_key), value, Space(self.schema, mask_of(self.schema, codes)))

    def find(self, key: int | str) -> list[KeyedRow]:
        """Return the rows that a key names; more than one only to say so. Private."""
        if self._find is not None:
            return self._find(key)
        if self.pushdown is not None:
            return find_rows(self.pushdown, key)
        rows = self.rows
        return [
            KeyedRow(
                self.key_of(int(row)), float(rows.metric[row]), tuple(rows.cells[rows.cell[row]])
            )
            for row in _matching(rows, key)
        ]

    def found_by(self, find: Callable[[int | str], list[KeyedRow]]) -> Table:
        """Return the same table with another way to find the rows that a key names. Private."""
        other = copy(self)
        other._find = find
        return other

    def with_cells(self, cells: Cells) -> Table:
        """Return a table of other cells; its keys are those of this one. Private."""
        other = copy(self)
        other.cells = cells
        return other

    def in_family(self, schema: Schema) -> Table:
        """Return the same rows under a schema that differs in which contexts it allows. Private."""
        other = copy(self)
        other.schema = schema
        return other

    def cells_for(self, value: float, detector: Rule) -> CellTable:
        """Return all of the table that can matter for one metric under one detector. Private."""
        return self.cells.visible(value, detector)

    def prepare(
        self,
        records: Sequence[Record],
        detector: Rule,
        counted: Sequence[tuple[float, float]] = (),
    ) -> None:
        """Read what several records need, in one pass over rows that lie elsewhere. Private.

        What was prepared is remembered until the next call, so that nothing need be read after a
        charge. ``counted`` are ranges whose rows will be counted besides.
        """
        self.cells.prepare([record.value for record in records], detector, counted)

    def read_all(self) -> None:
        """Read the metrics of all rows that lie elsewhere and may change. Private.

        Raises:
            TooLarge: the table has more than an engine may hand over, whatever the record.
        """
        self.cells.read_all()

    def words(self, masks: Sequence[int]) -> Words:
        """Return contexts as kernels read them."""
        return pack(masks, self.schema.width)

    def populations(self, masks: Sequence[int]) -> NDArray[np.int64]:
        """Return how many rows each context covers. Private."""
        return self.cells.populations(self.words(masks))

    def distribution(self, mask: int) -> Distribution:
        """Return the distinct metric values of a population, rising, and their counts. Private."""
        return self.cells.distribution(self.words([mask])[0])

    def covered_cells(self, mask: int) -> NDArray[np.bool_]:
        """Return which cells a context covers. Private."""
        missing = self.cells.cell_required & ~self.words([mask])[0]
        return np.asarray(~missing.any(axis=1))

    def keys_in(self, mask: int, values: NDArray[np.float64]) -> list[int | str]:
        """Return the keys of the covered rows whose metric is one of ``values``. Private."""
        return [key for key, _ in self.rows_in(mask, values)]

    def rows_in(self, mask: int, values: NDArray[np.float64]) -> list[tuple[int | str, float]]:
        """Return the key and the metric of the covered rows with one of ``values``. Private.

        In the order of the rows; where they have none, by rising key.
        """
        if self.pushdown is not None:
            codes = allowed_codes(self.schema, self.words([mask])[0])
            found = [(plain_key(key), value) for key, value in self.pushdown.rows(codes, values)]
            return sorted(found, key=lambda row: (isinstance(row[0], str), row))
        covered = self.covered_cells(mask)[self.rows.cell]
        kept = np.flatnonzero(covered & np.isin(self.rows.metric, values))
        return [(self.key_of(int(row)), float(self.rows.metric[row])) for row in kept]

    def not_one_row(self, keys: Iterable[int | str]) -> list[int | str]:
        """Return the keys that name no row, or several. Private."""
        own = self.rows.keys
        if own is None:
            named = Counter[int | str](range(len(self.rows.metric)))
        else:
            values = own.tolist() if isinstance(own, np.ndarray) else own.to_pylist()
            named = Counter(plain_key(value) for value in values if value is not None)
        return [key for key in keys if named[plain_key(key)] != 1]

    def key_of(self, row: int) -> int | str:
        """Return the row's own key, however the request spelled it. Private."""
        keys = self.rows.keys
        if keys is None:
            return row
        return int(keys[row]) if isinstance(keys, np.ndarray) else plain_key(keys[row].as_py())


def _cell_table(rows: EncodedRows, schema: Schema) -> CellTable:
    """Sort the rows by metric and put those of one cell and metric together."""
    places = rows.cells + np.array(schema.offsets)
    required = cell_bits(places, schema.width)
    centre = float(np.mean(rows.metric))
    size = len(rows.cells)
    centred = rows.metric - centre
    sums = np.bincount(rows.cell, centred, minlength=size)
    squares = np.bincount(rows.cell, np.square(centred, out=centred), minlength=size)
    del centred
    values, cell, counts = _pairs(rows.metric, rows.cell, size)
    return CellTable(
        cell_required=required,
        cell_counts=np.bincount(rows.cell, minlength=size).astype(np.int64),
        cell_sums=sums.astype(np.float64),
        cell_squares=squares.astype(np.float64),
        centre=centre,
        cell_numbers=np.arange(size),
        cell_places=places,
        required=required[cell],
        values=values,
        counts=counts,
        pair_cells=cell,
    )


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


def _matching(rows: EncodedRows, key: int | str) -> NDArray[np.int64]:
    """Return the places of the rows with this key; a whole number may be given as text."""
    check_key(key)
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
