"""The condition of a context in SQL selects exactly its rows."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pcor import Context, Schema, Table
from tests.helpers.strategies import METRIC, arrow, context_and_rows, covered, few, many, schemas


@pytest.fixture(scope="module")
def database() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        yield connection


def selected(database: duckdb.DuckDBPyConnection, context: Context, table: pa.Table) -> list[int]:
    """The numbers of the rows that a database finds for the context."""
    numbered = table.append_column("row number", pa.array(range(len(table))))
    database.register("rows", numbered)
    try:
        query = f'SELECT "row number" FROM rows WHERE {context.where()} ORDER BY 1'  # noqa: S608
        return [number for (number,) in database.execute(query).fetchall()]
    finally:
        database.unregister("rows")


@many
@given(drawn=context_and_rows())
def test_a_database_selects_exactly_the_rows_of_the_population(
    drawn: tuple[Context, list[dict[str, Any]]], database: duckdb.DuckDBPyConnection
) -> None:
    context, rows = drawn
    assert selected(database, context, arrow(context.schema, rows)) == covered(context, rows)


@many
@given(drawn=context_and_rows())
def test_a_table_counts_exactly_the_rows_of_the_population(
    drawn: tuple[Context, list[dict[str, Any]]],
) -> None:
    context, rows = drawn
    table = Table(arrow(context.schema, rows), context.schema)
    assert table.populations([context.mask]).tolist() == [len(covered(context, rows))]


@few
@given(number=st.floats(allow_nan=False, allow_infinity=False))
def test_a_number_in_sql_is_exactly_the_declared_one(
    number: float, database: duckdb.DuckDBPyConnection
) -> None:
    schema = Schema(
        metric=METRIC, attributes={"x": [number, 12345.0], "y": {"edges": [number, math.inf]}}
    )
    context = Context(schema, {"x": [number], "y": schema.attributes[1].values})
    above, below = math.nextafter(number, math.inf), math.nextafter(number, -math.inf)
    table = pa.table({"x": [number, above, below], "y": [number] * 3, METRIC: [0.0] * 3})
    assert selected(database, context, table) == [0]


AGES = Schema(metric="pay", attributes={"age": {"edges": [-math.inf, 18, 25, 65, 120]}})


@pytest.mark.parametrize(
    ("bits", "condition"),
    [
        ("1000", '("age" < 18)'),
        ("0100", '("age" >= 18 AND "age" < 25)'),
        ("0110", '("age" >= 18 AND "age" < 65)'),
        ("0001", '("age" >= 65 AND "age" <= 120)'),
        ("0101", '(("age" >= 18 AND "age" < 25) OR ("age" >= 65 AND "age" <= 120))'),
        ("1111", '("age" <= 120) /* all declared values */'),
    ],
)
def test_bins_become_ranges_and_those_that_touch_become_one(bits: str, condition: str) -> None:
    assert Context.from_bits(AGES, bits).where() == condition


def test_bins_over_all_numbers_leave_out_only_missing_ones() -> None:
    schema = Schema(metric="pay", attributes={"x": {"edges": [-math.inf, math.inf]}})
    assert Context.full(schema).where() == '"x" IS NOT NULL /* all declared values */'


@pytest.mark.parametrize(
    ("declared", "chosen", "condition"),
    [
        (["a", "b'c"], ["b'c"], "\"x\" = 'b''c'"),
        (["a", "b", "c"], ["a", "c"], "\"x\" IN ('a', 'c')"),
        ([1, -2, 3], [-2, 3], '"x" IN (-2, 3)'),
        ([True, False], [False], '"x" = FALSE'),
        ([0.5, 2], [0.5], '"x" = 0.5'),
        (
            {"values": ["a", "b", "o"], "other": "o"},
            ["o"],
            "(\"x\" IS NULL OR NOT \"x\" IN ('a', 'b'))",
        ),
        ({"values": ["a", "b", "o"], "other": "o"}, ["b"], "\"x\" = 'b'"),
        (["a", "b"], ["a", "b"], "\"x\" IN ('a', 'b') /* all declared values */"),
        ({"values": ["a", "o"], "other": "o"}, ["a", "o"], "TRUE /* all declared values */"),
    ],
)
def test_each_kind_of_value_has_its_sql(declared: Any, chosen: list[Any], condition: str) -> None:
    schema = Schema(metric="pay", attributes={"x": declared})
    assert Context(schema, {"x": chosen}).where() == condition


@few
@given(schema=schemas())
def test_full_attributes_say_so(schema: Schema) -> None:
    said = Context.full(schema).where().count("/* all declared values */")
    assert said == len(schema.attributes)


ATTACKS = [
    "'; DROP TABLE victims; --",
    "' OR '1'='1",
    '" OR 1=1 --',
    "*/ OR TRUE /*",
    "\\' OR 1=1 --",
]


@pytest.mark.parametrize("attack", ATTACKS)
def test_sql_in_a_value_is_only_text(attack: str, database: duckdb.DuckDBPyConnection) -> None:
    schema = Schema(metric="pay", attributes={"x": ["a", attack, "b"]})
    table = pa.table({"x": ["a", attack, "b"]})
    assert selected(database, Context(schema, {"x": [attack]}), table) == [1]


@pytest.mark.parametrize("attack", ATTACKS)
def test_sql_in_a_name_is_only_a_name(attack: str, database: duckdb.DuckDBPyConnection) -> None:
    schema = Schema(metric="pay", attributes={attack: ["a", "b"]})
    table = pa.table({attack: ["a", "b", "a"]})
    assert selected(database, Context(schema, {attack: ["a"]}), table) == [0, 2]


@pytest.mark.parametrize("attack", ATTACKS)
def test_an_attack_leaves_other_tables_alone(attack: str) -> None:
    schema = Schema(metric="pay", attributes={attack: [attack, "b"]})
    with duckdb.connect() as database:
        database.execute("CREATE TABLE victims AS SELECT 1 AS one")
        selected(database, Context(schema, {attack: [attack]}), pa.table({attack: ["b"]}))
        assert database.execute("SELECT one FROM victims").fetchall() == [(1,)]
