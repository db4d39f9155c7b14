"""Write queries about encoded rows as SQL, and read the answers.

Private: the answers. Nothing here decides what is asked; ``pushdown`` and ``nearest`` do.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pcor.errors import TooLarge
from pcor.public.schema import Schema
from pcor.rows.encoding import LARGEST_METRIC
from pcor.rows.engines.base import Engine, batches_of, marks_of, rows_changed, translated_errors
from pcor.rows.people import HASH_SIZE, hash_factor, no_single_person
from pcor.rows.queries.sql_encoding import sql_encoding

# How many cells, or (cell, value) pairs, may come back when nobody says otherwise; public. A pair
# takes about 30 bytes.
PAIRS_LIMIT = 1 << 22

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


class Pairs(NamedTuple):
    """Rows grouped by cell and metric, by rising metric. Private."""

    cells: NDArray[np.int32]
    values: Floats
    counts: Integers


class Queries:
    """The queries that one engine is asked about its rows under one schema.

    In every query ``pcor_coded`` are the encoded rows, with a code for each attribute (``names``)
    and the metric as ``x``; where the engine marks rows, also with the marks of the metric
    (``marks``). Where the schema says whose rows are whose and that only so many of a person are
    counted, it has no others that fit, except where everybody's are asked for or a record is looked
    up. No table of a user's begins with "pcor_".

    Args:
        engine: where the rows are.
        schema: what they are encoded against.
        limit: how many cells or pairs may come back.
    """

    def __init__(self, engine: Engine, schema: Schema, limit: int = PAIRS_LIMIT) -> None:
        self.engine, self.schema, self.limit = engine, schema, limit
        self.sql_encoding = sql_encoding(engine, schema)
        self.names = [f"c{place}" for place in range(len(schema.attributes))]
        self._marks = marks_of(engine, schema.metric.column)
        self.marks = [f"mark{place}" for place in range(len(self._marks))]
        self.bytes_returned = 0

    @property
    def mark_sums(self) -> dict[str, str]:
        """The aggregates by which an answer shows which rows it was computed from."""
        return {name: f"SUM({name})" for name in self.marks}

    @property
    def counted(self) -> dict[str, str]:
        """How many rows, and the sums of their marks."""
        return {"n": "COUNT(*)"} | self.mark_sums

    def ask(self, query: str, *tables: str) -> pa.Table:
        """Return the answer to a query over the given tables, by default the encoded rows."""
        with translated_errors(self.engine.dialect.name):
            found = self.engine.run(f"WITH {', '.join(tables or self.coded())} {query}")
        self.bytes_returned += found.nbytes
        return found

    @property
    def has_batches(self) -> bool:
        """Whether the engine runs in this process and hands over its rows in batches."""
        return batches_of(self.engine) is not None

    def batches(self, query: str) -> Iterator[pa.RecordBatch]:
        """Yield the answer to a query over the encoded rows, in batches."""
        batches = batches_of(self.engine)
        if batches is None:
            raise RuntimeError("this engine does not hand over rows in batches")
        with translated_errors(self.engine.dialect.name):
            for batch in batches(f"WITH {', '.join(self.coded())} {query}"):
                self.bytes_returned += batch.nbytes
                yield batch

    def coded(self, key: str = "", *, source: str = "", everybody: bool = False) -> list[str]:
        """Write the encoded rows as tables for WITH.

        Args:
            key: also select this, as ``k``.
            source: other than all rows.
            everybody: also those of people with more rows than are counted; with the person of
                each row as ``pcor_person``, where the schema says whose it is.
        """
        rows, codes = self._encoded_rows(source or self.engine.source)
        more = [f"{key} AS k"] if key else []
        if not everybody:
            return self._coded(codes, more, rows)
        more += [] if self._person is None else [f"{self._person} AS pcor_person"]
        return [*self.sql_encoding.lists, self._all_coded("pcor_coded", codes, more, rows)]

    def looked_up(self, key: str, where: str, source: str = "") -> list[str]:
        """Write the rows that meet a condition, counted or not: with ``k``, and 1 as ``counted``.

        A row is counted if one of its person that holds the same is: they are the same to all.

        Args:
            key: the key of a row ``s``.
            where: which rows are meant.
            source: other than all rows.
        """
        rows, codes = self._encoded_rows(source or self.engine.source)
        if not self.schema.unit.chooses:
            more = [f"{key} AS k", "1 AS counted"]
            coded = self._all_coded("pcor_coded", codes, more, f"{rows} WHERE {where}")
            return [*self.sql_encoding.lists, coded]
        more = [f"{key} AS k", f"CASE WHEN {where} THEN 1 ELSE 0 END AS asked"]
        most = self.schema.unit.rows
        counted = f"CASE WHEN pcor_alike <= {most} THEN 1 ELSE 0 END AS counted"
        columns = [*self.names, "x", "k", counted, "pcor_person"]
        asked = select("pcor_coded", columns, "pcor_ranked WHERE asked = 1")
        return [*self.sql_encoding.lists, *self._ranked(codes, more, rows), asked]

    def _encoded_rows(self, source: str) -> tuple[str, list[str]]:
        """Write what stands after FROM to encode rows one by one, and their codes."""
        keys = self.sql_encoding.keys
        return f"{source} s {self.sql_encoding.joins(keys)}", self.sql_encoding.codes(keys)

    def _coded(self, codes: Sequence[str], more: Sequence[str], rows: str) -> list[str]:
        if not self.schema.unit.chooses:
            return [*self.sql_encoding.lists, self._all_coded("pcor_coded", codes, more, rows)]
        counted = f"pcor_ranked WHERE pcor_fits = 0 OR pcor_number <= {self.schema.unit.rows}"
        chosen = select("pcor_coded", ["*"], counted)
        return [*self.sql_encoding.lists, *self._ranked(codes, more, rows), chosen]

    def _all_coded(self, name: str, codes: Sequence[str], more: Sequence[str], rows: str) -> str:
        columns = [
            *named(codes, self.names),
            f"{self.sql_encoding.metric} AS x",
            *named(self._marks, self.marks),
            *more,
        ]
        return select(name, columns, rows)

    def _ranked(self, codes: Sequence[str], more: Sequence[str], rows: str) -> list[str]:
        """Write the order of the rows of each person, as ``people.row_order`` has it.

        ``pcor_number`` numbers them; ``pcor_alike`` does too, with one number for rows that hold
        the same. The columns added here have names that no query gives to a column of its own: of
        two with the same name every engine takes the one that it likes.
        What does not fit the schema is apart: it is refused or dropped, and takes nobody's place.
        """
        largest = self.literal(LARGEST_METRIC)
        parts = [f"{name} IS NOT NULL" for name in self.names]
        fits = " AND ".join([*parts, "x IS NOT NULL", f"ABS(x) <= {largest}"])
        double = self.engine.dialect.double
        mixed = f"x * {self.literal(hash_factor(0))}"
        for place, name in enumerate(self.names, start=1):
            mixed = f"({mixed} + CAST({name} AS {double}) * {self.literal(hash_factor(place))})"
        turns = (
            f"CASE WHEN {fits} THEN {mixed} / {self.literal(HASH_SIZE)} ELSE 0 END AS pcor_turns"
        )
        window = (
            f"PARTITION BY pcor_person, pcor_fits ORDER BY pcor_hash, {', '.join(self.names)}, x"
        )
        ranks = [
            f"ROW_NUMBER() OVER ({window}) AS pcor_number",
            f"RANK() OVER ({window}) AS pcor_alike",
        ]
        more = [*more, f"{self._person} AS pcor_person"]
        fits = f"CASE WHEN {fits} THEN 1 ELSE 0 END AS pcor_fits"
        hashed = "pcor_turns - FLOOR(pcor_turns) AS pcor_hash"
        return [
            self._all_coded("pcor_everybody", codes, more, rows),
            select("pcor_mixed", ["*", fits, turns], "pcor_everybody"),
            select("pcor_hashed", ["*", hashed], "pcor_mixed"),
            select("pcor_ranked", ["*", *ranks], "pcor_hashed"),
        ]

    @cached_property
    def _person(self) -> str | None:
        """Write whose a row ``s`` is, NULL for nobody's; nothing where the schema does not say."""
        if self.schema.person is None:
            return None
        kind, dialect = self.engine.kinds[self.schema.person], self.engine.dialect
        column = f"s.{dialect.column(self.schema.person)}"
        if kind == "nested":
            raise no_single_person(self.schema)
        if kind == "text":
            return dialect.same_text.format(column)
        if kind == "float":
            return dialect.without_nan(column)
        return column

    def grouped(
        self,
        aggregates: Mapping[str, str],
        condition: str = "",
        *,
        also: Sequence[str] = (),
        flags: Sequence[str] = (),
        unfit: bool = False,
    ) -> pa.Table:
        """Return aggregates by codes, over the rows that meet a condition.

        Where that is the same, rows are grouped by what stands in their columns and the groups are
        encoded. Several lines may then have the same codes.

        Args:
            aggregates: name -> SQL over ``x``.
            condition: on ``x``.
            also: other columns to group by.
            flags: more columns of the rows.
            unfit: whether rows that do not fit the schema count, too.
        """
        tables, codes, joins = self._groups(aggregates, condition, also, flags, unfit)
        rest = [f"g.{name} AS {name}" for name in [*also, *aggregates]]
        return self.ask(
            f"SELECT {', '.join([*named(codes, self.names), *rest])} FROM pcor_grouped g {joins}",
            *tables,
        )

    def how_many_groups(self, also: Sequence[str]) -> int:
        """Return how many lines ``grouped`` would have, up to the limit and one."""
        tables, _, _ = self._groups({}, "", also, (), unfit=False)
        return int(
            self.ask("SELECT COUNT(*) AS n FROM pcor_grouped", *tables).column("n")[0].as_py()
        )

    def _groups(
        self,
        aggregates: Mapping[str, str],
        condition: str,
        also: Sequence[str],
        flags: Sequence[str],
        unfit: bool,
    ) -> tuple[list[str], list[str], str]:
        """Write the tables up to ``pcor_grouped``, and what encodes its lines: codes and joins."""
        keys = self.sql_encoding.keys
        by = [key if is_late else code for key, code, is_late in self._zipped(keys)]
        rows = f"{self.engine.source} s {self.sql_encoding.joins(keys, late=False)}"
        group = ", ".join([*self.names, *also])
        where = "" if unfit else self.where(condition)
        selected = [*self.names, *also, *named(aggregates.values(), aggregates)]
        groups = f"pcor_coded {where} GROUP BY {group} LIMIT {self.limit + 1}"
        there = [f"g.{name}" for name in self.names]
        codes = [code if is_late else key for key, code, is_late in self._zipped(there)]
        tables = [*self._coded(by, flags, rows), select("pcor_grouped", selected, groups)]
        return tables, codes, self.sql_encoding.joins(there, late=True)

    def _zipped(self, keys: Sequence[str]) -> list[tuple[str, str, bool]]:
        return list(zip(keys, self.sql_encoding.codes(keys), self.sql_encoding.late, strict=True))

    def where(self, condition: str = "") -> str:
        """Write a condition on encoded rows, and that they fit where some may not."""
        fit = [
            f"pcor_coded.{name} IS NOT NULL"
            for name, attribute in zip(self.names, self.schema.attributes, strict=True)
            if attribute.outside == "drop"
        ]
        fit += ["pcor_coded.x IS NOT NULL"] if self.schema.metric.missing == "drop" else []
        conditions = [*fit, *([f"({condition})"] if condition else [])]
        return f"WHERE {' AND '.join(conditions)}" if conditions else ""

    def between(self, low: float, high: float) -> str:
        """Write that a metric is in a closed range; nothing for all of them."""
        ends = [f"x >= {self.literal(low)}"] if low > -math.inf else []
        ends += [f"x <= {self.literal(high)}"] if high < math.inf else []
        return " AND ".join(ends)

    def covered(self, codes: Sequence[Integers]) -> str:
        """Write that a row has one of the codes of each attribute; nothing for all of them."""
        return " AND ".join(
            f"{name} IN ({', '.join(map(str, allowed.tolist())) or 'NULL'})"
            for name, allowed, attribute in zip(
                self.names, codes, self.schema.attributes, strict=True
            )
            if len(allowed) < len(attribute.values)
        )

    def literal(self, value: float) -> str:
        """Write a number."""
        return self.engine.dialect.literal(float(value))

    def check_size(self, lines: int, what: str) -> None:
        """Refuse an answer of more lines than the limit; the limit is public, the number is not."""
        if lines > self.limit:
            raise TooLarge(
                f"the engine would have to return more than {self.limit:,} {what}; raise pairs= "
                "(--pairs) if there is memory for about 30 bytes each"
            )

    def cell_numbers(self, found: pa.Table, cells: Integers) -> NDArray[np.int32]:
        """Return, for each line of an answer, which of the cells with these codes it speaks of."""
        codes = [column(found, name, np.int64) for name in self.names]
        numbers = self._numbers(np.concatenate([cells, np.array(codes).T]))
        known, asked = numbers[: len(cells)], numbers[len(cells) :]
        order = np.argsort(known)
        places = np.searchsorted(known, asked, sorter=order)
        cell: NDArray[np.int32] = order[np.minimum(places, len(cells) - 1)].astype(np.int32)
        if not (known[cell] == asked).all():
            raise rows_changed()
        return cell

    def pairs(self, found: pa.Table, cells: Integers) -> Pairs:
        """Return the lines of an answer as pairs of the cells with these codes."""
        values = column(found, "x", np.float64)
        order = np.argsort(values, kind="stable")
        counts = column(found, "n", np.int64)
        return Pairs(self.cell_numbers(found, cells)[order], values[order], counts[order])

    def _numbers(self, codes: Integers) -> Integers:
        """Return one number for each combination of codes."""
        if math.prod(self._sizes) < 1 << 62:
            return np.asarray(np.ravel_multi_index(tuple(codes.T), self._sizes), dtype=np.int64)
        return np.unique(codes, axis=0, return_inverse=True)[1].reshape(-1).astype(np.int64)

    @cached_property
    def _sizes(self) -> tuple[int, ...]:
        return tuple(len(attribute.values) for attribute in self.schema.attributes)


def named(expressions: Any, names: Any) -> list[str]:
    """Write expressions with the names of their columns."""
    return [f"{sql} AS {name}" for sql, name in zip(expressions, names, strict=True)]


def select(name: str, columns: Sequence[str], rest: str) -> str:
    """Write a query as a table of its own, for WITH."""
    return f"{name} AS (SELECT {', '.join(columns)} FROM {rest})"


def column(found: pa.Table, name: str, kind: Any) -> NDArray[Any]:
    """Return a column of an answer, as floats with NaN for NULL or as whole numbers."""
    answer = found.column(name).cast(pa.float64() if kind is np.float64 else pa.int64())
    return np.asarray(answer.to_numpy()).astype(kind)
