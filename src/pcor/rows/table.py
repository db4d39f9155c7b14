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
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from pcor.errors import ParameterError, RecordError, SourceError, check_whole
from pcor.public.context import Words, mask_of, pack
from pcor.public.grid import MetricGrid
from pcor.public.schema import Schema
from pcor.public.space import Space
from pcor.rows.cell_table import CellTable
from pcor.rows.cells import Cells, Distribution, Range, Rule, cell_bits
from pcor.rows.columns import check_columns, check_separator, read_columns
from pcor.rows.encoded_rows import EncodedRows
from pcor.rows.encoding import encode
from pcor.rows.engines.source import open_engine
from pcor.rows.keys import check_key, find_rows, plain_key
from pcor.rows.people_cells import PeopleCells
from pcor.rows.queries.pushdown import KeyedRow, Pushdown
from pcor.rows.queries.queries import PAIRS_LIMIT
from pcor.rows.remote import RemoteCellTable, allowed_codes
from pcor.support.threads import in_slices

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
    # Whether it is among the rows that are counted, also where a person has more.
    counted: bool = True
    # Whose it is in an engine, where it is not counted. Private.
    person: object = field(default=None, compare=False)


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
        self._people_known = True  # whether the cells are made of these rows and no others
        self._held: int | str | None = None
        self._without_held: Table | None = None  # the same table without that record
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
        own_key, value, codes, counted, person = found[0]
        space = Space(self.schema, mask_of(self.schema, codes))
        return Record(plain_key(own_key), value, space, counted, None if counted else person)

    def find(self, key: int | str) -> list[KeyedRow]:
        """Return the rows that a key names; more than one only to say so. Private."""
        if self._find is not None:
            return self._find(key)
        if self.pushdown is not None:
            return find_rows(self.pushdown, key)
        rows, others = self.rows, self.rows.left_out
        found = [_keyed(rows, int(row)) for row in _matching(rows, key)]
        if others is not None:
            for row in _matching(others, key).tolist():
                counted = rows.twin(others, row) is not None
                found.append(_keyed(others, row)._replace(counted=counted))
        return found

    def holding(self, record: Record) -> Table:
        """Return the table with the queried record among the rows that are counted. Private.

        It is, but for a record of somebody of whom only some rows are counted. A record is public,
        and held in addition to the rows of its person that are.
        """
        if self.holds(record):
            return self
        if self._without_held is not None:
            return self._without_held.holding(record)
        required = self.words([record.space.fixed])[0]
        places = np.flatnonzero([record.space.fixed >> bit & 1 for bit in range(self.schema.width)])
        other = self.with_cells(self.cells.with_row(required, places, record.value))
        if self._encoded is not None:
            others = self.rows.left_out or self.rows
            other._encoded = self.rows.joined(others, int(_matching(others, record.key)[0]))
        other._people_known = self._people_known
        other._held, other._without_held = record.key, self
        return other

    def row_of(self, record: Record) -> int:
        """Return the place of the row that stands for a record among the rows in memory. Private.

        It is the record's own; or one of the same person that holds the same, where of the two only
        one is counted. ``holding`` has one for every record.
        """
        rows, others = self.rows, self.rows.left_out
        own = _matching(rows, record.key)
        if len(own) == 0 and others is not None:
            twin = rows.twin(others, int(_matching(others, record.key)[0]))
            own = np.array([] if twin is None else [twin])
        if len(own) == 0:
            raise RecordError("the record is not among the rows that are counted")
        return int(own[0])

    def holds(self, record: Record) -> bool:
        """Tell whether a record, or a row that stands for it, is among those counted. Private."""
        return record.counted or self._held == record.key

    def person_of(self, record: Record) -> int:
        """Return the number of a record's person among ``people``. Private."""
        for rows in (self.rows, self.rows.left_out):
            if rows is not None and rows.people is not None:
                for row in _matching(rows, record.key).tolist():
                    return int(rows.people[row])
        raise RecordError("it is not known whose row the record is")

    def found_by(self, find: Callable[[int | str], list[KeyedRow]]) -> Table:
        """Return the same table with another way to find the rows that a key names. Private."""
        other = copy(self)
        other._find = find
        return other

    def with_cells(self, cells: Cells) -> Table:
        """Return a table of other cells; its keys are those of this one. Private.

        Whose rows the cells are made of is not known of it; ``without_rows`` keeps that.
        """
        other = copy(self)
        other.cells, other._people_known = cells, False
        return other

    def without_rows(
        self, rows: Sequence[int] | NDArray[np.int64], back: Sequence[int] = ()
    ) -> Table:
        """Return a table without some of the rows in memory, such as all of one person. Private.

        Args:
            rows: their places among ``rows``. At least one other row must be left.
            back: the places, among the rows left out, of those that are counted instead.
        """
        kept = np.delete(np.arange(len(self.rows.metric)), np.asarray(rows, dtype=np.int64))
        other = copy(self)
        left = replace(self.rows.taken(kept), left_out=self.rows.left_out)
        for place in sorted(back, reverse=True):
            left = left.joined(left.left_out or left, place)
        other._encoded = left
        other.cells = _cell_table(other._encoded, self.schema)
        return other

    def with_person(self, codes: NDArray[np.int64], metric: NDArray[np.float64]) -> Table:
        """Return a table with one person more, who has these rows. Private.

        Args:
            codes: for each row, its attribute values as places in their domains.
            metric: the metric of each row.
        """
        other = copy(self)
        other._encoded = self.rows.with_person(codes, metric)
        other.cells = _cell_table(other._encoded, self.schema)
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
        counted: Sequence[Range] = (),
        grid: MetricGrid | None = None,
    ) -> None:
        """Read what several records need of rows that lie elsewhere, in few passes. Private.

        What was prepared is remembered until somebody asks for more, so that nothing need be read
        after a charge. ``counted`` are ranges whose rows will be counted besides, and ``grid`` is
        the one at whose points they will be.
        """
        self.cells.prepare([record.value for record in records], detector, counted, grid)

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

    def people_in(self, masks: Sequence[int]) -> NDArray[np.int64]:
        """Return how many people have a row that each context covers. Private."""
        from pcor._kernels.coverage import people_totals

        self.check_people_known()
        words, out = self.words(masks), np.empty(len(masks), dtype=np.int64)
        groups, required = self.rows.groups, self.cells.cell_required
        columns = groups.starts, groups.cells, groups.counts
        in_slices(len(masks), lambda s: people_totals(words[s], required, *columns, out[s]), 64)
        return out

    def people_cells(self, record: Record) -> PeopleCells:
        """Return which cells each person has rows in, the record's row among them. Private.

        Raises:
            TooLarge: an engine may not hand over that many lines, whatever the record.
        """
        if self.pushdown is None:
            held = self.holding(record)
            people, cells = held.people.astype(np.int64), held.rows.cell.astype(np.int64)
            return PeopleCells(people, cells, held.rows.metric, held.rows.metric)
        names, lines = self.pushdown.people
        if record.counted:
            return lines
        # The record's own person may have rows that are counted, too.
        person = pc.index(names, pa.scalar(record.person, names.type)).as_py()
        required = self.words([record.space.fixed])[0]
        here = (self.holding(record).cells.cell_required == required).all(axis=1)
        own = None if person < 0 else person
        return lines.with_row(own, int(np.flatnonzero(here)[0]), record.value)

    def read_people(self) -> None:
        """Read which cells each person has rows in, where an engine has to be asked. Private."""
        if self.pushdown is not None:
            self.pushdown.people  # noqa: B018 (remembered)

    def check_people_known(self) -> None:
        """Refuse to count people where it is not known here whose rows are whose.

        Raises:
            ParameterError: the rows are in an engine, or nobody said whose they are.
        """
        known = self._encoded is not None and self._encoded.people is not None
        if not known or not self._people_known:
            raise ParameterError(
                "people are counted one by one, so the rows have to be in memory, with their "
                "person in the schema: give a file or a frame such as pandas, Polars or Arrow; or "
                "take utility 'population', which counts rows in any engine"
            )

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
        named = Counter[int | str]()
        for rows in (self.rows, self.rows.left_out):
            if rows is not None:
                named.update(_all_keys(rows))
        return [key for key in keys if named[plain_key(key)] != 1]

    def key_of(self, row: int) -> int | str:
        """Return the row's own key, however the request spelled it. Private."""
        return _key_of(self.rows, row)

    @property
    def people(self) -> NDArray[np.int32]:
        """For each row in memory, a number that stands for its person. Private.

        Rows of one person have the same number. Where the schema does not say whose rows are whose,
        each row is a person of its own.

        Raises:
            SourceError: the rows are not in memory.
        """
        people = self.rows.people
        if self.schema.unit.is_person and not self._people_known:
            raise SourceError("it is not known whose the rows of these cells are")
        return np.arange(len(self.rows.metric), dtype=np.int32) if people is None else people


def _all_keys(rows: EncodedRows) -> Iterable[int | str]:
    """Return the keys of rows that have one."""
    if rows.keys is None:
        return range(len(rows.metric))
    values = rows.keys.tolist() if isinstance(rows.keys, np.ndarray) else rows.keys.to_pylist()
    return [plain_key(value) for value in values if value is not None]


def _key_of(rows: EncodedRows, row: int) -> int | str:
    keys = rows.keys
    if keys is None:
        return row
    return int(keys[row]) if isinstance(keys, np.ndarray) else plain_key(keys[row].as_py())


def _keyed(rows: EncodedRows, row: int) -> KeyedRow:
    codes = tuple(rows.cells[rows.cell[row]])
    return KeyedRow(_key_of(rows, row), float(rows.metric[row]), codes)


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
