"""Ask an engine for what a release needs of its rows: never the rows themselves.

Private: every answer. What comes back is bounded by the number of cells (rows that fit the schema,
grouped by their attribute values) and by a public limit on (cell, value) pairs, not by the rows.
Encoding, grouping and counting happen in the engine; the same queries to any engine, or to the
rows in memory, have the same answers. One question is the exception: where an engine runs in this
process, the rows at each point of a grid are counted here, as they are read (``row_pass``).

All answers are about one state of the rows: the one that the cells were counted in. An engine
promises it, or marks its rows (``engine.Engine``): then each answer also says, cell by cell, the
sum of the marks of the very rows that it was computed from, and it is refused unless these sums
are those of the cells. So a change cannot slip in between two answers, nor come and go between two
checks. Rows that are not in the answer are not in the sums either, and matter to nobody.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pcor.errors import SourceError, TooLarge
from pcor.public.grid import MetricGrid
from pcor.public.schema import Schema
from pcor.rows.cells import Range
from pcor.rows.encoding import (
    LARGEST_METRIC,
    check_metric,
    check_outside,
    check_rows,
    nothing_fits,
    unreadable_column,
)
from pcor.rows.engines.base import Engine, rows_changed
from pcor.rows.people import check_bound, check_named
from pcor.rows.people_cells import PeopleCells
from pcor.rows.queries.nearest import Layers, nearest_by_layers
from pcor.rows.queries.queries import (
    PAIRS_LIMIT,
    Floats,
    Integers,
    Pairs,
    Queries,
    column,
    named,
    select,
)
from pcor.rows.queries.row_pass import RowPass
from pcor.rows.queries.sql import Cell

# The centre of sums is the mean of so many rows. Any centre gives the same verdicts: a detector
# that cannot trust its sums does without them. A good one only saves time.
_CENTRE_ROWS = 1000

_POINTS = "pairs of a cell and a point of the metric's grid"

# This many records share one query; each adds two columns to it.
_RECORDS_AT_ONCE = 16


@dataclass(frozen=True, repr=False)
class CellSums:
    """What is known of every cell. Private.

    Attributes:
        codes: its value of each attribute as a place in the domain, shape (cells, attributes).
        counts: its rows.
        sums: the sum of their metrics less the centre.
        squares: the sum of the squares of those differences.
        lowest: the least metric.
        highest: the largest.
        centre: what sums are measured from.
        marks: the sums of the marks of their rows, shape (marks, cells).
    """

    codes: Integers
    counts: Integers
    sums: Floats
    squares: Floats
    lowest: Floats
    highest: Floats
    centre: float
    marks: Integers

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return int(self.counts.sum())


class KeyedRow(NamedTuple):
    """A row that a key names, and whether it is counted. Private."""

    key: object
    value: float
    codes: tuple[int, ...]
    counted: bool = True
    person: object = None  # whose it is, where it may not be counted


class Counted(NamedTuple):
    """What was counted at once. Private.

    Attributes:
        nearest: for each metric asked about, the nearest rows of each cell on each side.
        counts: for each range, how many rows of each cell are in it.
        on_grid: how many rows of each cell belong to each point, a place of the grid for a metric.
    """

    nearest: list[Pairs]
    counts: Integers
    on_grid: Pairs | None


class Pushdown:
    """What one engine computes from its rows under one schema.

    Args:
        engine: where the rows are.
        schema: what they are encoded against.
        limit: how many cells or pairs may come back.
    """

    def __init__(self, engine: Engine, schema: Schema, limit: int = PAIRS_LIMIT) -> None:
        self.engine, self.schema = engine, schema
        self._questions = Queries(engine, schema, limit)
        self._largest = self._questions.literal(LARGEST_METRIC)
        self._layers: Layers | None = None
        self.cells = self._checked_cells()
        if schema.unit.is_person:
            self._check_people()

    @property
    def engine_name(self) -> str:
        """The engine and its version, for a certificate."""
        return f"{self.engine.dialect.name} {self.engine.version}"

    @property
    def bytes_returned(self) -> int:
        """How many bytes of answers came back so far."""
        return self._questions.bytes_returned

    @property
    def may_change(self) -> bool:
        """Whether the rows may change between two answers, which is then noticed."""
        return bool(self._questions.marks)

    @cached_property
    def fits(self) -> bool:
        """Whether all pairs together are within the limit.

        It is a question about the table, asked once: what any one record needs of the pairs, and
        so any one row of it, decides nothing.
        """
        limit = self._questions.limit
        return self.cells.rows <= limit or self._questions.how_many_groups(["x"]) <= limit

    def check_fits(self) -> None:
        """Refuse to read pairs of a table that has too many."""
        if not self.fits:
            raise TooLarge(
                f"the table has more than {self._questions.limit:,} distinct pairs of a cell and a "
                "metric, too many to read for any record; raise pairs= (--pairs) if there is "
                "memory for about 30 bytes each, or take a detector that looks at fewer: lof, "
                "tail, neighbourhood, rare_bin"
            )

    def find(self, ids: Sequence[Cell]) -> list[KeyedRow]:
        """Return the row with each of these ids that fits the schema; twice if there are more."""
        kind = self.engine.kinds[str(self.schema.id)]
        compared = self._key
        if kind not in ("integer", "float"):
            compared = self.engine.dialect.same_text.format(self._key)
        listed = ", ".join(map(self.engine.dialect.literal, ids))
        key = compared if kind == "text" else self._key
        return self._found(self._questions.looked_up(key, f"{compared} IN ({listed})"))

    def row(self, number: int) -> list[KeyedRow]:
        """Return the row of this number, if there is one and it fits the schema."""
        if self.schema.unit.chooses and self.engine.numbered is not None:
            # Whether it is counted depends on other rows.
            meant = f"s.pcor_row = {number}"
            return self._found(
                self._questions.looked_up(str(number), meant, source=self.engine.numbered)
            )
        source = f"(SELECT * FROM {self.engine.source} LIMIT 1 OFFSET {number})"
        return self._found(self._questions.looked_up(str(number), "1 = 1", source=source))

    def _found(self, tables: Sequence[str]) -> list[KeyedRow]:
        names, where = [*self._questions.names, "x", "counted"], self._questions.where()
        only = ", ".join(f"MIN({name}) AS {name}" for name in names)
        own = ", pcor_person" if self.schema.unit.chooses else ""
        by = f"k{own}"
        query = f"SELECT {by}, COUNT(*) AS n, {only} FROM pcor_coded {where} GROUP BY {by}"
        found = self._questions.ask(query, *tables)
        columns = [found.column(name).to_pylist() for name in (*names, "k", "n")]
        whose = found.column("pcor_person").to_pylist() if own else [None] * found.num_rows
        return [
            KeyedRow(key, float(value), tuple(map(int, codes)), bool(counted), person)
            for *codes, value, counted, key, count, person in zip(*columns, whose, strict=True)
            for _ in range(min(count, 2))
        ]

    def pairs(self, low: float = -math.inf, high: float = math.inf) -> Pairs:
        """Return all pairs whose metric is in a closed range, or refuse if the table has too many.

        Where the rows may change, all pairs: the marks are of whole cells.
        """
        self.check_fits()
        inside = "" if self.may_change else self._questions.between(low, high)
        found = self._questions.grouped(self._questions.counted, inside, also=["x"])
        self._check_state(found)
        return self._questions.pairs(found, self.cells.codes)

    def counted(
        self,
        ranges: Sequence[Range],
        values: Sequence[float] = (),
        wanted: int = 1,
        grid: MetricGrid | None = None,
    ) -> Counted:
        """Return several counts at once, in as few passes over the rows as the engine can.

        Args:
            ranges: closed ranges, whose rows are counted.
            values: metrics, of which the nearest rows of each cell on each side are wanted:
            wanted: at least so many on a side where the cell has them; some more may come along.
            grid: of which the rows at each point are counted.
        """
        if grid is not None and self._questions.has_batches:
            kept = RowPass.empty(self._questions, grid, len(ranges), len(values), wanted)
            if kept is not None:
                return self._counted_by_row(kept, ranges, values, grid)
        if values and self._layers is None:
            nearest, counts = self._nearest_aggregates(values, wanted, ranges)
        else:
            nearest = self._nearest_by_layers(values, wanted)
            counts = self._rows_between(ranges)
        return Counted(nearest, counts, None if grid is None else self.on_grid(grid))

    def _counted_by_row(
        self,
        kept: RowPass,
        ranges: Sequence[Range],
        values: Sequence[float],
        grid: MetricGrid,
    ) -> Counted:
        """Count rows here, as the engine hands them over."""
        kept.read(self._questions, grid, ranges, values)
        numbers = kept.numbers(self.cells.codes)
        if not np.array_equal(kept.marks[:, numbers], self.cells.marks):
            raise rows_changed()
        on_grid = kept.on_grid(numbers)
        self._questions.check_size(len(on_grid.cells), _POINTS)
        nearest = [kept.nearest(place, numbers) for place in range(len(values))]
        return Counted(nearest, kept.counts[:, numbers], on_grid)

    def _nearest_by_layers(self, values: Sequence[float], wanted: int) -> list[Pairs]:
        if self._layers is None or not values:
            return []
        return nearest_by_layers(
            self._questions,
            self.cells.codes,
            self._layers,
            np.array(values),
            wanted,
            self._check_state,
        )

    def _nearest_aggregates(
        self, values: Sequence[float], wanted: int, ranges: Sequence[Range]
    ) -> tuple[list[Pairs], Integers]:
        """Ask for the nearest rows as aggregates, where the engine has such; and for counts."""
        found, counts = self._nearest_at_once(values[:_RECORDS_AT_ONCE], wanted, ranges)
        for first in range(_RECORDS_AT_ONCE, len(values), _RECORDS_AT_ONCE):
            some = values[first : first + _RECORDS_AT_ONCE]
            found += self._nearest_at_once(some, wanted, ())[0]
        return found, counts

    def _nearest_at_once(
        self, values: Sequence[float], wanted: int, ranges: Sequence[Range]
    ) -> tuple[list[Pairs], Integers]:
        sides = {
            f"side{place}_{side}": aggregate.format(n=wanted, v=self._questions.literal(value))
            for place, value in enumerate(values)
            for side, aggregate in enumerate(self.engine.dialect.nearest or ())
        }
        counts = self._range_counts(ranges)
        found = self._questions.grouped(sides | counts | self._questions.mark_sums)
        self._check_state(found)
        cells = self._cell_numbers(found)
        nearest = [
            _joined([_unlisted(cells, found.column(f"side{place}_{side}")) for side in range(2)])
            for place in range(len(values))
        ]
        return nearest, self._summed(found, cells, counts).astype(np.int64)

    def _rows_between(self, ranges: Sequence[Range]) -> Integers:
        """Return how many rows of each cell have a metric in each closed range, all in one pass."""
        if not ranges:
            return np.zeros((0, len(self.cells.counts)), dtype=np.int64)
        low, high = min(low for low, _ in ranges), max(high for _, high in ranges)
        inside = self._questions.between(low, high)
        return self._by_cell(self._range_counts(ranges), inside).astype(np.int64)

    def _range_counts(self, ranges: Sequence[Range]) -> dict[str, str]:
        return {f"n{place}": self._count(*ends) for place, ends in enumerate(ranges)}

    def on_grid(self, grid: MetricGrid) -> Pairs:
        """Return how many rows of each cell belong to each point of a grid.

        As pairs with a place of the grid for a metric: at most cells times points of them, and no
        more than the table's rows. The operations are those of ``MetricGrid.places``.
        """
        numbers = (grid.low, grid.high, grid.steps_per_unit)
        low, high, steps = map(self._questions.literal, numbers)
        metric, last = f"({self._questions.sql_encoding.metric})", grid.size - 1
        place = f"CAST(FLOOR(({metric} - {low}) * {steps} + {self._questions.literal(0.5)}) AS INT)"
        ends = f"WHEN {metric} >= {high} THEN {last} WHEN {metric} <= {low} THEN 0"
        places = f"CASE {ends} ELSE {place} END"
        found = self._questions.grouped(
            self._questions.counted, also=["pcor_point"], flags=[f"{places} AS pcor_point"]
        )
        self._questions.check_size(found.num_rows, _POINTS)
        self._check_state(found)
        at = np.minimum(column(found, "pcor_point", np.float64), last)
        return Pairs(self._cell_numbers(found), at, column(found, "n", np.int64))

    @cached_property
    def people(self) -> tuple[pa.Array, PeopleCells]:
        """Who has rows in which cells, counted rows alone: the people, and a line for each cell.

        Whose a row is may have changed meanwhile, which no mark tells. So what the schema says of
        people is checked of these rows again: the answer is theirs.
        """
        queries = self._questions
        by = ", ".join(["pcor_person", *queries.names])
        asked = queries.counted | {"lowest": "MIN(x)", "highest": "MAX(x)"}
        found = queries.ask(
            f"SELECT {by}, {', '.join(named(asked.values(), asked))} FROM pcor_coded "
            f"{queries.where()} GROUP BY {by} LIMIT {queries.limit + 1}",
            *queries.coded(everybody=not self.schema.unit.chooses),
        )
        queries.check_size(found.num_rows, "pairs of a person and a cell")
        self._check_state(found)
        whose = found.column("pcor_person").combine_chunks().dictionary_encode()
        if whose.null_count:
            raise rows_changed()
        rows = np.bincount(whose.indices.to_numpy(), column(found, "n", np.int64))
        if rows.max() > self.schema.unit.rows:
            raise rows_changed()
        lines = PeopleCells(
            whose.indices.to_numpy().astype(np.int64),
            self._cell_numbers(found).astype(np.int64),
            column(found, "lowest", np.float64),
            column(found, "highest", np.float64),
        )
        return whose.dictionary, lines

    def above(self, values: Sequence[float]) -> Floats:
        """Return of each cell's rows above each metric count, sum, squares; and how many equal it.

        Shape (values, 4, cells), all in one pass.
        """
        apart = self._apart(self.cells.centre)
        asked: dict[str, str] = {}
        for place, value in enumerate(values):
            beyond = f"CASE WHEN x > {self._questions.literal(value)} THEN"
            asked |= {
                f"n{place}": f"SUM({beyond} 1 ELSE 0 END)",
                f"s{place}": f"SUM({beyond} {apart} ELSE 0 END)",
                f"q{place}": f"SUM({beyond} ({apart}) * ({apart}) ELSE 0 END)",
                f"e{place}": self._count(value, value),
            }
        found = self._by_cell(asked, self._questions.between(min(values), math.inf))
        return found.reshape(len(values), 4, -1)

    def distribution(self, codes: Sequence[Integers]) -> tuple[Floats, Integers]:
        """Return the distinct metrics, rising, and their counts, of rows with some of the codes.

        Args:
            codes: for each attribute, the places in its domain that count.
        """
        self.check_fits()
        where = self._questions.where(self._questions.covered(codes))
        asked = self._questions.counted
        found = self._questions.ask(
            f"SELECT x, {', '.join(named(asked.values(), asked))} "
            f"FROM pcor_coded {where} GROUP BY x"
        )
        self._check_covered(found, codes)
        values, counts = column(found, "x", np.float64), column(found, "n", np.int64)
        order = np.argsort(values)
        return values[order], counts[order]

    def rows(self, codes: Sequence[Integers], values: Floats) -> list[tuple[Any, float]]:
        """Return the key and the metric of the rows with some of the codes and of the metrics."""
        if len(values) == 0:
            return []
        source = self.engine.numbered if self.schema.id is None else self.engine.source
        if source is None:
            raise SourceError(no_order(self.engine.dialect.name))
        key = "s.pcor_row" if self.schema.id is None else self._key
        listed = self.engine.dialect.values("pcor_wanted", ("v",), [(float(v),) for v in values])
        where = self._questions.where(self._questions.covered(codes))
        # All others are one line, without a metric and a key: their marks count too.
        columns = [
            "w.v AS v",
            "CASE WHEN w.v IS NOT NULL THEN pcor_coded.k END AS k",
            *(f"pcor_coded.{name} AS {name}" for name in self._questions.marks),
        ]
        asked = self._questions.counted
        found = self._questions.ask(
            f"SELECT v, k, {', '.join(named(asked.values(), asked))} FROM pcor_keyed "
            f"GROUP BY v, k LIMIT {self._questions.limit + 1}",
            listed,
            *self._questions.coded(key, source=source),
            select(
                "pcor_keyed",
                columns,
                f"pcor_coded LEFT JOIN pcor_wanted w ON pcor_coded.x = w.v {where}",
            ),
        )
        self._questions.check_size(found.num_rows, "rows")
        self._check_covered(found, codes)
        lines = zip(*(found.column(name).to_pylist() for name in ("v", "k", "n")), strict=True)
        return [(k, float(v)) for v, k, count in lines if v is not None for _ in range(count)]

    def _checked_cells(self) -> CellSums:
        """Group all rows, refuse what the schema refuses, and return the cells that are left."""
        centre, scale = self._centre()
        found = self._all_groups(centre, scale)
        rows, present = (column(found, name, np.int64) for name in ("n", "m"))
        numbers = [column(found, name, np.float64) for name in ("s", "q", "lowest", "highest")]
        largest = float(np.nanmax(np.abs(numbers[2:]), initial=0))
        check_metric(self.schema.metric, missing=bool((rows > present).any()), largest=largest)
        names = self._questions.names
        codes = np.array([column(found, name, np.float64) for name in names]).T
        for attribute, code in zip(self.schema.attributes, codes.T, strict=True):
            check_outside(attribute, fits=not np.isnan(code).any())
        kept = np.flatnonzero((present > 0) & ~np.isnan(codes).any(axis=1))
        if len(kept) == 0:
            raise nothing_fits()
        check_rows(int(present[kept].sum()))
        marks = [column(found, name, np.int64)[kept] for name in self._questions.marks]
        cells, place = np.unique(codes[kept].astype(np.int64), axis=0, return_inverse=True)
        lines = (present[kept], *(number[kept] for number in numbers))
        place = place.reshape(-1)
        summed = _by_place(marks, place, len(cells))
        return self._merged(cells, place, lines, centre, summed)

    def _check_people(self) -> None:
        """Count the rows of each person where they are; only the largest number comes back."""
        marks, fits = self._questions.marks, self._questions.where()
        summed = named(self._questions.mark_sums.values(), marks)
        nobody = "SUM(CASE WHEN pcor_person IS NULL THEN 1 ELSE 0 END) AS nobody"
        by_person = ", ".join(["COUNT(*) AS n", nobody, *summed])
        asked = ", ".join(["MAX(n) AS most", "SUM(nobody) AS nobody", *summed])
        found = self._questions.ask(
            f"SELECT {asked} FROM (SELECT {by_person} FROM pcor_coded {fits} GROUP BY pcor_person) "
            "pcor_people",
            *self._questions.coded(everybody=True),
        )
        most, nobody_ = (int(column(found, name, np.int64)[0]) for name in ("most", "nobody"))
        check_named(self.schema, nobody=nobody_ > 0)
        if self.schema.unit.chooses:
            return
        check_bound(self.schema, most)
        # They were counted in the rows that the cells are made of.
        sums = [int(column(found, name, np.int64)[0]) for name in marks]
        if sums != self.cells.marks.sum(axis=1).tolist():
            raise rows_changed()

    def _merged(
        self,
        codes: Integers,
        place: Integers,
        lines: tuple[NDArray[Any], ...],
        centre: float,
        marks: Integers,
    ) -> CellSums:
        """Add up the lines of each cell: its layers, and values that are written differently."""
        counts, sums, squares, lowest, highest = lines
        if self.engine.dialect.nearest is None:
            self._layers = Layers.sorted(place, counts, lowest, highest)
        low, high = np.full(len(codes), np.inf), np.full(len(codes), -np.inf)
        np.minimum.at(low, place, lowest)
        np.maximum.at(high, place, highest)
        rows, total, square = (
            np.bincount(place, line, len(codes)).astype(np.float64)
            for line in (counts, sums, squares)
        )
        return CellSums(codes, rows.astype(np.int64), total, square, low, high, centre, marks)

    def _all_groups(self, centre: float, scale: float) -> pa.Table:
        """Group all rows, those that do not fit included."""
        apart = self._apart(centre)
        if self.engine.dialect.overflows:
            apart = f"CASE WHEN ABS(x) <= {self._largest} THEN {apart} ELSE 0 END"
        unreadable = self._questions.sql_encoding.unreadable
        wrong = {f"w{place}": sql for place, sql in enumerate(unreadable.values())}
        asked = {
            "n": "COUNT(*)",
            "m": "COUNT(x)",
            "s": f"SUM({apart})",
            "q": f"SUM(({apart}) * ({apart}))",
            "lowest": "MIN(x)",
            "highest": "MAX(x)",
        }
        flags = [f"CASE WHEN {sql} THEN 1 ELSE 0 END AS {name}" for name, sql in wrong.items()]
        also = []
        if self.engine.dialect.nearest is None:
            also = ["layer"]
            flags.append(f"{self._layer(centre, scale)} AS layer")
        expected = self._questions.sql_encoding.distinct_marks
        read = {f"read{place}": sql for place, sql in enumerate(expected)}
        flags += named(read.values(), read)
        sums = {name: f"SUM({name})" for name in [*wrong, *read]}
        # Rows without a metric are dropped from now on, if they are not refused.
        sums |= {
            name: f"SUM(CASE WHEN x IS NULL THEN 0 ELSE {name} END)"
            for name in self._questions.marks
        }
        found = self._questions.grouped(asked | sums, also=also, flags=flags, unfit=True)
        cells = "cells, combinations of attribute values that occur"
        self._questions.check_size(found.num_rows, cells)
        for name, bad in zip(unreadable, wrong, strict=True):
            if column(found, bad, np.int64).any():
                raise unreadable_column(self.schema, name)
        for name, sql in read.items():
            if int(column(found, name, np.int64).sum()) != expected[sql]:
                raise rows_changed()
        return found

    def _layer(self, centre: float, scale: float) -> str:
        """Write the layer of a row: finer near the centre, and about 25 on each side of it."""
        x, middle = self._questions.sql_encoding.metric, self._questions.literal(centre)
        apart = f"ABS(({x}) - {middle}) / {self._questions.literal(scale)}"
        number = f"CAST(FLOOR(4 * LN({apart} + 0.05)) AS INT)"
        huge = f"ABS({x}) > {self._largest}"  # about to be refused
        return (
            f"CASE WHEN {huge} THEN 0 WHEN ({x}) < {middle} THEN -1000 - {number} ELSE {number} END"
        )

    def _centre(self) -> tuple[float, float]:
        """Return the mean of some rows, and how far they lie from it."""
        found = self._questions.ask(
            "SELECT AVG(x) AS centre, SUM(x * x) / COUNT(x) AS square FROM "
            f"(SELECT x FROM pcor_coded WHERE ABS(x) <= {self._largest} LIMIT {_CENTRE_ROWS}) "
            "pcor_few",
            *self._questions.coded(everybody=True),
        )
        centre, square = (found.column(name)[0].as_py() for name in ("centre", "square"))
        if centre is None:
            return 0.0, 1.0
        apart = math.sqrt(max(square - centre * centre, 0.0))
        return float(centre), max(apart, 1e-9 * abs(centre), 1e-100)

    def _by_cell(self, aggregates: dict[str, str], condition: str) -> Floats:
        """Return aggregates over the rows that meet a condition: shape (aggregates, cells)."""
        if self.may_change:  # the marks are of whole cells
            condition = ""
        found = self._questions.grouped(aggregates | self._questions.mark_sums, condition)
        self._check_state(found)
        return self._summed(found, self._cell_numbers(found), aggregates)

    def _summed(
        self, found: pa.Table, cells: NDArray[np.int32], aggregates: dict[str, str]
    ) -> Floats:
        """Return columns of an answer, added up by cell: shape (aggregates, cells)."""
        out = np.zeros((len(aggregates), len(self.cells.counts)))
        for row, name in zip(out, aggregates, strict=True):
            np.add.at(row, cells, column(found, name, np.float64))
        return out

    def _check_state(self, found: pa.Table) -> None:
        """Refuse an answer by cells that was not computed from the rows of the cells."""
        if self.may_change:
            marks = [column(found, name, np.int64) for name in self._questions.marks]
            summed = _by_place(marks, self._cell_numbers(found), len(self.cells.counts))
            if not np.array_equal(summed, self.cells.marks):
                raise rows_changed()

    def _check_covered(self, found: pa.Table, codes: Sequence[Integers]) -> None:
        """Refuse an answer about several cells together that was not computed from their rows."""
        pairs = zip(self.cells.codes.T, codes, strict=True)
        covered = np.all([np.isin(own, allowed) for own, allowed in pairs], axis=0)
        expected = self.cells.marks[:, covered].sum(axis=1)
        marks = [int(column(found, name, np.int64).sum()) for name in self._questions.marks]
        if marks != expected.tolist():
            raise rows_changed()

    def _count(self, low: float, high: float) -> str:
        inside = self._questions.between(low, high) or "1 = 1"
        return f"SUM(CASE WHEN {inside} THEN 1 ELSE 0 END)"

    def _apart(self, centre: float) -> str:
        return f"x - {self._questions.literal(centre)}"

    def _cell_numbers(self, found: pa.Table) -> NDArray[np.int32]:
        return self._questions.cell_numbers(found, self.cells.codes)

    @property
    def _key(self) -> str:
        return (
            "NULL" if self.schema.id is None else f"s.{self.engine.dialect.column(self.schema.id)}"
        )


def _by_place(lines: Sequence[Integers], place: NDArray[Any], size: int) -> Integers:
    """Add up whole numbers by place, exactly: shape (kinds, size)."""
    out = np.zeros((len(lines), size), dtype=np.int64)
    for row, line in zip(out, lines, strict=True):
        np.add.at(row, place, line)
    return out


def no_order(engine: str) -> str:
    """Return the error for a row number where rows have no order."""
    return (
        f"rows of {engine} have no order, so a row number names none of them; declare the id "
        "column in the schema"
    )


def _unlisted(cells: NDArray[np.int32], lists: Any) -> tuple[NDArray[np.int32], Floats]:
    """Spread a column of lists: the cell and the value of each entry."""
    lists = lists.combine_chunks()
    sizes = np.nan_to_num(lists.value_lengths().to_numpy(zero_copy_only=False)).astype(np.int64)
    values = lists.flatten().to_numpy(zero_copy_only=False).astype(np.float64)
    return np.repeat(cells, sizes), values


def _joined(sides: Sequence[tuple[NDArray[np.int32], Floats]]) -> Pairs:
    """Put the rows of several sides together as pairs of one row each."""
    cells = np.concatenate([cells for cells, _ in sides])
    values = np.concatenate([values for _, values in sides])
    order = np.argsort(values, kind="stable")
    return Pairs(cells[order], values[order], np.ones(len(order), dtype=np.int64))
