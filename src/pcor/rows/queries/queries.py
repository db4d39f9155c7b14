"""Write queries about encoded rows as SQL, and read the answers.

Private: the answers. Nothing here decides what is asked; ``pushdown`` and ``nearest`` do.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pcor.errors import TooLarge
from pcor.public.schema import Schema
from pcor.rows.engines.base import Engine, marks_of, rows_changed, translated_errors
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
    (``marks``). Tables of ours begin with ``pcor_``: a table of somebody's may be called "coded".

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
        """Return the answer to a query over the given tables, by default ``pcor_coded`` alone."""
        with translated_errors(self.engine.dialect.name):
            found = self.engine.run(f"WITH {', '.join(tables or self.coded())} {query}")
        self.bytes_returned += found.nbytes
        return found

    def coded(self, key: str = "", *, source: str = "", where: str = "") -> list[str]:
        """Write the encoded rows as tables for WITH.

        Args:
            key: also select this, as ``k``.
            source: other than all rows.
            where: a condition on the rows as they are.
        """
        keys = self.sql_encoding.keys
        condition = f" WHERE {where}" if where else ""
        rows = f"{source or self.engine.source} s {self.sql_encoding.joins(keys)}{condition}"
        more = [f"{key} AS k"] if key else []
        return self._coded(self.sql_encoding.codes(keys), more, rows)

    def _coded(self, codes: Sequence[str], more: Sequence[str], rows: str) -> list[str]:
        columns = [
            *named(codes, self.names),
            f"{self.sql_encoding.metric} AS x",
            *named(self._marks, self.marks),
            *more,
        ]
        return [*self.sql_encoding.lists, select("pcor_coded", columns, rows)]

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

    def check_size(self, found: pa.Table, what: str) -> None:
        """Refuse an answer of more lines than the limit; the limit is public, the number is not."""
        if found.num_rows > self.limit:
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
