"""The condition of a context in SQL selects exactly its rows, and is no longer than it need be."""

from __future__ import annotations

import datetime as dt
import math
import re
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from itertools import product
from pathlib import Path
from typing import Any

import duckdb
import psycopg
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

from pcor import Context, Schema, Table
from pcor.public.context import mask_of
from pcor.public.context_list import ContextList
from tests.helpers.postgres import postgres
from tests.helpers.strategies import METRIC, Row, arrow, context_and_rows, covered, few, many


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


# How each kind of value is kept in a server's table; SQLite takes whatever comes.
COLUMNS = {
    "text": "text",
    "integer": "bigint",
    "boolean": "boolean",
    "number": "double precision",
    "bins": "double precision",
    "dates": "date",
}


def selected_there(connection: Any, context: Context, rows: Sequence[Row], mark: str) -> list[int]:
    """The numbers of the rows that a database finds, of a table with columns of their own type."""
    kinds = {METRIC: "number"} | {a.name: a.kind for a in context.schema.attributes}
    typed = [
        '"' + name.replace('"', '""') + f'" {COLUMNS[kind] if mark == "%s" else ""}'
        for name, kind in kinds.items()
    ]
    cursor = connection.cursor()
    cursor.execute(f'CREATE TEMP TABLE rows ("row number" integer, {", ".join(typed)})')
    try:
        places = ", ".join([mark] * (len(kinds) + 1))
        values = [
            (number, *(_cell(row[name], mark) for name in kinds)) for number, row in enumerate(rows)
        ]
        cursor.executemany(f"INSERT INTO rows VALUES ({places})", values)  # noqa: S608
        query = f'SELECT "row number" FROM rows WHERE {context.where()} ORDER BY 1'  # noqa: S608
        cursor.execute(query)
        return [number for (number,) in cursor.fetchall()]
    finally:
        cursor.execute("DROP TABLE rows")


def _cell(cell: Any, mark: str) -> Any:
    """SQLite has no dates: they are texts there."""
    return str(cell) if mark == "?" and isinstance(cell, dt.date) else cell


@pytest.fixture(scope="module")
def sqlite() -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(":memory:")) as connection:
        yield connection


@pytest.fixture(scope="module")
def postgresql() -> Iterator[psycopg.Connection]:
    with psycopg.connect(postgres().new_database(), autocommit=True) as connection:
        yield connection


@many
@given(drawn=context_and_rows())
def test_sqlite_selects_exactly_the_rows_of_the_population(
    drawn: tuple[Context, list[Row]], sqlite: sqlite3.Connection
) -> None:
    context, rows = drawn
    assert selected_there(sqlite, context, rows, "?") == covered(context, rows)


@many
@given(drawn=context_and_rows())
def test_postgresql_selects_exactly_the_rows_of_the_population(
    drawn: tuple[Context, list[Row]], postgresql: psycopg.Connection
) -> None:
    context, rows = drawn
    assert selected_there(postgresql, context, rows, "%s") == covered(context, rows)


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
    ways = {"x": {"values": [number, 12345.0]}, "y": {"edges": [number, math.inf]}}
    dropped = {name: declared | {"outside": "drop"} for name, declared in ways.items()}
    schema = Schema(metric=METRIC, attributes=dropped)
    context = Context(schema, {"x": [number], "y": schema.attributes[1].values})
    above, below = math.nextafter(number, math.inf), math.nextafter(number, -math.inf)
    table = pa.table({"x": [number, above, below], "y": [number] * 3, METRIC: [0.0] * 3})
    assert selected(database, context, table) == [0]


AGES = {"edges": [-math.inf, 18, 25, 65, 120]}


@pytest.mark.parametrize(
    ("bits", "where_all_fit", "where_some_are_dropped"),
    [
        ("1000", '"age" < 18', '"age" < 18'),
        ("0100", '("age" >= 18 AND "age" < 25)', '("age" >= 18 AND "age" < 25)'),
        ("0110", '("age" >= 18 AND "age" < 65)', '("age" >= 18 AND "age" < 65)'),
        ("0001", '"age" >= 65', '("age" >= 65 AND "age" <= 120)'),
        (
            "0101",
            '(("age" >= 18 AND "age" < 25) OR "age" >= 65)',
            '(("age" >= 18 AND "age" < 25) OR ("age" >= 65 AND "age" <= 120))',
        ),
        ("1111", "", '"age" <= 120'),
    ],
)
def test_bins_become_ranges_and_those_that_touch_become_one(
    bits: str, where_all_fit: str, where_some_are_dropped: str
) -> None:
    number = "CAST(\"age\" AS VARCHAR) NOT IN ('NaN', 'nan')"
    every = " /* all declared values */" if bits == "1111" else ""
    dropped = f"{where_some_are_dropped} AND {number}{every}"
    for outside, condition in (("error", where_all_fit or "TRUE"), ("drop", dropped)):
        schema = Schema(metric="pay", attributes={"age": AGES | {"outside": outside}})
        assert Context.from_bits(schema, bits).where() == condition


@pytest.mark.parametrize("bits", ["11", "10", "01"])
def test_nan_in_a_parquet_file_is_in_no_bin(
    bits: str, database: duckdb.DuckDBPyConnection, tmp_path: Path
) -> None:
    """By the file's statistics, which leave it out, DuckDB takes every row to be in the range."""
    bins = {"edges": [0, 5, 10], "outside": "drop"}
    context = Context.from_bits(Schema(metric=METRIC, attributes={"x": bins}), bits)
    rows = [{"x": value, METRIC: 0.0} for value in ([2.0] if bits == "10" else [7.0, 10.0])]
    rows.append({"x": math.nan, METRIC: 0.0})
    table = pa.table({"row number": range(len(rows)), "x": [row["x"] for row in rows]})
    parquet.write_table(table, tmp_path / "rows.parquet")
    kept = database.read_parquet(str(tmp_path / "rows.parquet")).filter(context.where())
    found = kept.order('"row number"').fetchall()
    assert [number for number, _ in found] == covered(context, rows)


def test_bins_over_all_numbers_leave_out_only_missing_ones() -> None:
    bins = {"edges": [-math.inf, math.inf], "outside": "drop"}
    schema = Schema(metric="pay", attributes={"x": bins})
    numbers = "\"x\" IS NOT NULL AND CAST(\"x\" AS VARCHAR) NOT IN ('NaN', 'nan')"
    assert Context.full(schema).where() == f"{numbers} /* all declared values */"


@pytest.mark.parametrize(
    ("words", "condition"),
    [
        ([], "\"pay\" IS NOT NULL AND CAST(\"pay\" AS VARCHAR) NOT IN ('NaN', 'nan')"),
        (
            ["-1"],
            "\"pay\" IS NOT NULL AND CAST(\"pay\" AS VARCHAR) NOT IN ('NaN', 'nan') "
            'AND "pay" <> -1.0',
        ),
    ],
)
def test_rows_without_a_metric_are_left_out_where_they_are_dropped(
    words: list[str], condition: str
) -> None:
    metric = {"column": "pay", "missing": "drop", "missing_values": words}
    schema = Schema(metric=metric, attributes={"x": ["a", "b"]})
    assert Context.full(schema).where() == condition
    assert Context(schema, {"x": ["a"]}).where() == f"\"x\" = 'a' AND {condition}"


@pytest.mark.parametrize("engine", ["duckdb", "sqlite", "postgresql"])
def test_words_that_mean_no_metric_are_left_out_of_a_column_of_texts(
    engine: str, request: pytest.FixtureRequest
) -> None:
    connection = request.getfixturevalue({"duckdb": "database"}.get(engine, engine))
    metric = {"column": "pay", "missing": "drop", "missing_values": ["?", "-1", "n/a"]}
    schema = Schema(metric=metric, attributes={"x": ["a", "b"]})
    cells = ["7", "?", None, " ", "", "-1", " n/a ", "8.5", "-1.0"]
    table = Table(pa.table({"pay": cells, "x": ["a"] * len(cells)}), schema)
    assert len(table.rows.metric) == 2
    cursor = connection.cursor()
    cursor.execute("CREATE TEMP TABLE paid (number INTEGER, pay TEXT, x TEXT)")
    mark = "%s" if engine == "postgresql" else "?"
    rows = [(number, cell, "a") for number, cell in enumerate(cells)]
    cursor.executemany(f"INSERT INTO paid VALUES ({mark}, {mark}, {mark})", rows)  # noqa: S608
    where = Context(schema, {"x": ["a"]}).where()
    cursor.execute(f"SELECT number FROM paid WHERE {where} ORDER BY 1")  # noqa: S608
    assert cursor.fetchall() == [(0,), (7,)]
    cursor.execute("DROP TABLE paid")


YEARS = [2005, 2006, 2007, 2008, 2009, 2010]


@pytest.mark.parametrize(
    ("declared", "chosen", "condition"),
    [
        (["a", "b'c"], ["b'c"], "\"x\" = 'b''c'"),
        (["a", "b", "c", "d", "e"], ["a", "c"], "\"x\" IN ('a', 'c')"),
        (["a", "b", "c", "d"], ["a", "c", "d"], "\"x\" <> 'b'"),
        (["a", "b", "c", "d", "e"], ["a", "b", "c"], "\"x\" NOT IN ('d', 'e')"),
        (["a", "b"], ["a", "b"], "TRUE"),
        ([1, -2, 3], [-2, 3], '"x" <> 1'),
        ([True, False], [False], '"x" = FALSE'),
        ([0.5, 2], [0.5], '"x" = 0.5'),
        (YEARS, [2006, 2007, 2008, 2009], '"x" BETWEEN 2006 AND 2009'),
        (YEARS, [2005, 2006, 2007], '"x" <= 2007'),
        (YEARS, [2008, 2009, 2010], '"x" >= 2008'),
        (YEARS, [2005, 2006, 2010], '"x" NOT BETWEEN 2007 AND 2009'),
        (YEARS[::-1], [2008, 2007, 2009, 2006], '"x" BETWEEN 2006 AND 2009'),
        ([10, 30, 20, 40, 11], [10, 11, 20], '"x" <= 20'),  # whatever the declared order
        ([1, 30, 2, 40, 3], [1, 2, 3], '"x" NOT IN (30, 40)'),  # '30' < '4' where it holds texts
        # Where other rows may be there, a range could select them.
        (
            {"values": YEARS, "outside": "drop"},
            [2006, 2007, 2008],
            '"x" IN (2006, 2007, 2008)',
        ),
        (
            {"values": ["a", "b", "c", "d"], "outside": "drop"},
            ["a", "b", "c"],
            "\"x\" IN ('a', 'b', 'c')",
        ),
        (
            {"values": ["a", "b"], "outside": "drop"},
            ["a", "b"],
            "\"x\" IN ('a', 'b') /* all declared values */",
        ),
        (
            {"values": ["a", "b", "o"], "other": "o"},
            ["o"],
            "(\"x\" IS NULL OR \"x\" NOT IN ('a', 'b'))",
        ),
        (
            {"values": ["a", "b", "o"], "other": "o"},
            ["a", "o"],
            '("x" IS NULL OR "x" <> \'b\')',
        ),
        ({"values": ["a", "b", "o"], "other": "o"}, ["a", "b"], "\"x\" IN ('a', 'b')"),
        ({"values": [1, 2, 3, 9], "other": 9}, [1, 2, 3], '"x" IN (1, 2, 3)'),
        ({"values": ["a", "o"], "other": "o"}, ["a", "o"], "TRUE"),
    ],
)
def test_each_kind_of_value_has_its_sql(declared: Any, chosen: list[Any], condition: str) -> None:
    schema = Schema(metric="pay", attributes={"x": declared})
    assert Context(schema, {"x": chosen}).where() == condition


def test_conditions_are_joined_and_what_is_not_restricted_is_left_out() -> None:
    declared = {"a": ["x", "y"], "b": [1, 2], "c": {"values": ["z"], "outside": "drop"}}
    context = Context(Schema(metric="pay", attributes=declared), {"a": "x"})
    assert context.where() == "\"a\" = 'x' AND \"c\" = 'z' /* all declared values */"


@pytest.mark.parametrize("number", [2006.5, None, -1e300])
def test_numbers_between_declared_ones_are_not_selected_where_they_are_dropped(
    number: float | None, database: duckdb.DuckDBPyConnection
) -> None:
    schema = Schema(metric="pay", attributes={"x": {"values": YEARS, "outside": "drop"}})
    table = pa.table({"x": pa.array([2006.0, number, 2008.0], pa.float64())})
    for chosen in (YEARS, YEARS[1:4], YEARS[:4]):
        assert selected(database, Context(schema, {"x": chosen}), table) == [0, 2]


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


# -- numbers that are kept as text ----------------------------------------------------------------

# As text "100" comes before "9", and "7", "007" and "7.0" are three values.
AS_TEXT = Schema(
    metric=METRIC,
    attributes={
        "floor": {"values": ["-1", "9", "10", "11", "100"], "contexts": "range"},
        "code": {"values": ["007", "7", "7.0", "1e1"], "contexts": "one"},
        "zone": {"values": ["1", "2", "10", "20"], "groups": {"tens": ["10", "20"]}},
        "box": ["1", "2", "10", "11", "3"],
    },
    max_named=3,
)
# Declared as numbers, and text in the table all the same.
AS_NUMBERS = Schema(
    metric=METRIC,
    attributes={
        "floor": {"values": [-1, 9, 10, 11, 100], "contexts": "range"},
        "zone": {"values": [1, 2, 10, 20], "groups": {"tens": [10, 20]}},
        "box": [1, 2, 10, 11, 3],
    },
)
# All of as many digits: as text they come in the same order.
WITH_YEARS = Schema(
    metric=METRIC,
    attributes={
        "year": {"values": YEARS, "contexts": "range"},
        "floor": {"values": [9, 10, 11, 100], "contexts": "range"},
        "box": [1, 2, 10, 11, 3],
    },
)
HELD = [("duckdb", AS_TEXT), ("sqlite", AS_TEXT), ("postgresql", AS_TEXT)]
HELD += [("duckdb", AS_NUMBERS), ("sqlite", AS_NUMBERS), ("sqlite", WITH_YEARS)]


@pytest.mark.parametrize(
    ("engine", "schema"),
    HELD,
    ids=["-".join((e, s.attributes[0].name, s.attributes[0].kind)) for e, s in HELD],
)
def test_in_a_family_numbers_kept_as_text_are_selected_exactly(
    engine: str, schema: Schema, request: pytest.FixtureRequest
) -> None:
    """Every kind of context of the family: by a range, a group, a list, or what it lacks."""
    connection = request.getfixturevalue({"duckdb": "database"}.get(engine, engine))
    rows = list(product(*(range(len(a.values)) for a in schema.attributes)))
    names = [a.name for a in schema.attributes]
    cursor = connection.cursor()
    texts = ", ".join(f"{name} TEXT" for name in names)
    cursor.execute(f"CREATE TEMP TABLE kept (number INTEGER, {texts})")
    mark = "%s" if engine == "postgresql" else "?"
    places = ", ".join([mark] * (len(names) + 1))
    values = [
        (n, *(str(a.values[code]) for a, code in zip(schema.attributes, row, strict=True)))
        for n, row in enumerate(rows)
    ]
    cursor.executemany(f"INSERT INTO kept VALUES ({places})", values)  # noqa: S608
    listed = ContextList(schema)
    said, ranges = set(), set()
    for context in _some(listed):
        where = context.where()
        cursor.execute(f"SELECT number FROM kept WHERE {where} ORDER BY 1")  # noqa: S608
        found = [number for (number,) in cursor.fetchall()]
        fits = [mask_of(schema, row) & ~context.mask == 0 for row in rows]
        assert found == [number for number, fit in enumerate(fits) if fit]
        said |= {word for word in ("NOT IN", " IN ", "<>", " = ") if word in where}
        ranges |= set(re.findall(r'"(\w+)" (?:NOT BETWEEN|BETWEEN|<=|>=|<|>) ', where))
    cursor.execute("DROP TABLE kept")
    assert said == {"NOT IN", " IN ", "<>", " = "}
    # Of text a range goes by letters: there is one only where those come in the same order.
    assert ranges == {"year"} & {a.name for a in schema.attributes}


def test_duckdb_finds_no_text_between_numbers_and_selects_nothing_wrong(
    database: duckdb.DuckDBPyConnection,
) -> None:
    where = Context(WITH_YEARS, {"year": [2006, 2007, 2008]}).where()
    assert where == '"year" BETWEEN 2006 AND 2008'
    with pytest.raises(duckdb.BinderException):
        database.execute(f"SELECT * FROM (SELECT '2007' AS year) kept WHERE {where}")  # noqa: S608


def test_postgresql_compares_no_text_with_numbers_and_selects_nothing_wrong(
    postgresql: psycopg.Connection,
) -> None:
    where = Context(AS_NUMBERS, {"floor": [9]}).where()
    query = f"SELECT * FROM (SELECT CAST(9 AS text) AS floor) kept WHERE {where}"  # noqa: S608
    with pytest.raises(psycopg.errors.UndefinedFunction):
        postgresql.execute(query.encode())


def _some(listed: ContextList) -> Iterator[Context]:
    """Yield contexts from all over a list."""
    for number in range(0, listed.size, max(1, listed.size // 150)):
        mask = int.from_bytes(listed.words(number, 1)[0].astype("<u8").tobytes(), "little")
        yield Context.from_mask(listed.schema, mask)
