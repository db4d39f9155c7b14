"""A cell means the same value wherever the rows are, however it is spelled."""

from __future__ import annotations

import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import duckdb
import numpy as np
import psycopg
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import csv

import pcor
from pcor.errors import DomainError, MetricError, SourceError
from pcor.rows.queries import sql_encoding
from tests.helpers.engines import LOCAL, SERVERS, people
from tests.helpers.postgres import postgres
from tests.helpers.same_rows import cells as rows_of_places
from tests.helpers.same_rows import same_coe
from tests.helpers.spellings import Cells, Declared, cells, declarations, meaning, spelled_out

# PySpark before 4.2 leaves its sockets to the garbage collector.
pytestmark = pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")

ENGINES = ["memory", "duckdb", "polars", "sqlite"]

drawn = declarations().flatmap(lambda declared: st.tuples(st.just(declared), cells(declared)))


# The value of cells that no spelling fits, where every row is kept.
NOWHERE = "nowhere"


def with_a_place_for_the_rest(drawn: tuple[Declared, Cells]) -> tuple[Declared, Cells]:
    declared, column = drawn
    values = declared.get("values") or list(declared["merge"])
    kept = {key: rule for key, rule in declared.items() if key != "outside"}
    return kept | {"values": [*values, NOWHERE], "other": NOWHERE}, column


def schema_of(*declared: Declared) -> pcor.Schema:
    attributes = {f"a{place}": one for place, one in enumerate(declared)}
    return pcor.Schema(metric="m", attributes=attributes)


def table_of(*columns: Cells) -> pa.Table:
    named = {f"a{place}": pa.array(cells, pa.string()) for place, cells in enumerate(columns)}
    return pa.table(named | {"m": np.arange(1.0 * len(columns[0]))})


def twin(declared: Declared, column: Cells) -> dict[tuple[int, ...], int]:
    """Count the rows of each value by comparing every cell with every spelling."""
    found = Counter(meaning(declared, cell) for cell in column)
    return {(code,): count for code, count in found.items() if code is not None}


def rows_of_cells(table: pcor.Table) -> dict[tuple[int, ...], int]:
    """Return the rows of each cell by the place of each value in its own domain."""
    offsets = table.schema.offsets
    return {
        tuple(place - offset for place, offset in zip(cell, offsets, strict=True)): count
        for cell, count in rows_of_places(table).items()
    }


def source(engine: str, rows: pa.Table, folder: Path) -> Any:
    return rows if engine == "memory" else (LOCAL | SERVERS)[engine](rows, folder)


# -- attributes of texts --------------------------------------------------------------------------


def table_of_many(many: list[tuple[Declared, Cells]]) -> tuple[pcor.Schema, list[Cells]]:
    """Return one table of many columns, each with rules and cells of its own.

    No row is left out: what no spelling fits has a value of its own.
    """
    count = 1 + max(len(column) for _, column in many)
    columns = [[*column, *[NOWHERE] * (count - len(column))] for _, column in many]
    return schema_of(*(declared for declared, _ in many)), columns


def rows_by_twin(many: list[tuple[Declared, Cells]], columns: list[Cells]) -> dict[Any, int]:
    rules = [declared for declared, _ in many]
    return Counter(
        tuple(meaning(declared, cell) for declared, cell in zip(rules, row, strict=True))
        for row in zip(*columns, strict=True)
    )


@settings(max_examples=50, deadline=None)  # of ten columns each
@given(many=st.lists(drawn.map(with_a_place_for_the_rest), min_size=10, max_size=10))
def test_every_engine_reads_messy_columns_as_comparing_all_spellings_does(
    many: list[tuple[Declared, Cells]],
) -> None:
    schema, columns = table_of_many(many)
    expected = rows_by_twin(many, columns)
    with TemporaryDirectory() as folder:
        for engine in ENGINES:
            rows = source(engine, table_of(*columns), Path(folder))
            assert rows_of_cells(pcor.Table(rows, schema)) == expected, engine


@settings(max_examples=3, deadline=None)
@given(many=st.lists(drawn.map(with_a_place_for_the_rest), min_size=10, max_size=10))
@pytest.mark.parametrize("engine", list(SERVERS))
def test_servers_read_messy_columns_alike(engine: str, many: list[tuple[Declared, Cells]]) -> None:
    schema, columns = table_of_many(many)
    with TemporaryDirectory() as folder:
        rows = source(engine, table_of(*columns), Path(folder))
        assert rows_of_cells(pcor.Table(rows, schema)) == rows_by_twin(many, columns)


@settings(max_examples=40, deadline=None)
@given(drawn=drawn)
@pytest.mark.parametrize("engine", ENGINES)
def test_rows_that_no_spelling_fits_are_left_out_or_counted_as_declared(
    engine: str, drawn: tuple[Declared, Cells]
) -> None:
    declared, column = drawn
    column = [spelled_out(declared), *column]
    with TemporaryDirectory() as folder:
        rows = source(engine, table_of(column), Path(folder))
        assert rows_of_cells(pcor.Table(rows, schema_of(declared))) == twin(declared, column)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    "column", [[9, 10, 11, 12, None], [True, False, None], [9.0, 10.5, None]], ids=str
)
def test_a_column_that_holds_no_texts_is_cleaned_as_its_texts_would_be(
    engine: str, column: list[Any], tmp_path: Path
) -> None:
    if engine == "sqlite" and True in column[:1] and column[0] is True:
        return  # it has no such type: they are 0 and 1
    merge = {"low": ["9", "true", "9.0"], "high": ["10", "FALSE", "10.5"]}
    declared = {"merge": merge, "ignore_case": True, "strip": True, "outside": "drop"}
    rows = pa.table({"a0": column, "m": np.arange(1.0 * len(column))})
    texts = [None if cell is None else str(cell) for cell in column]
    table = pcor.Table(source(engine, rows, tmp_path), schema_of(declared))
    assert rows_of_cells(table) == twin(declared, texts) == {(0,): 1, (1,): 1}


@pytest.mark.parametrize("engine", ENGINES)
def test_many_spellings_are_joined_as_a_table(engine: str, tmp_path: Path) -> None:
    merge = {f"group {g}": [f"code {g}-{n}" for n in range(40)] for g in range(5)}
    declared = {"merge": merge, "strip": True, "ignore_case": True, "outside": "drop"}
    column: Cells = [f" CODE {n % 6}-{n % 41}\t" for n in range(500)]
    table = pcor.Table(source(engine, table_of(column), tmp_path), schema_of(declared))
    assert rows_of_cells(table) == twin(declared, column)


def test_more_values_than_can_be_read_one_by_one_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sql_encoding, "DISTINCT_LIMIT", 20)
    declared = {"values": ["a", "b"], "ignore_case": True, "other": "b"}
    rows = table_of([f"x{n}" for n in range(30)])
    for engine in ("memory", "duckdb"):  # which ignore case where the rows are
        assert rows_of_cells(pcor.Table(source(engine, rows, tmp_path), schema_of(declared))) == {
            (1,): 30
        }
    with pytest.raises(SourceError, match="because of ignore_case, and it has more than 20"):
        pcor.Table(source("polars", rows, tmp_path), schema_of(declared))


# -- the same contexts ----------------------------------------------------------------------------

CLEAN: dict[str, Any] = {
    "metric": {"column": "pay", "missing": "drop"},
    "attributes": {
        "job": {"values": ["Director", "Lawyer", "Writer"]},
        "year": {"values": [2019, 2020, 2021]},
        "age": {"edges": [18, 30, 50, 99], "outside": "drop"},
        "hired": {"edges": ["2000-01-01", "2010-01-01", "2019-12-31"], "outside": "drop"},
    },
    "dataset": {"id": "key"},
}
RULES: dict[str, Any] = {
    "metric": {"missing_values": ["n/a", "-1"]},
    "attributes": {
        "job": {
            "strip": True,
            "ignore_case": True,
            "aliases": {"Dir.": "Director", "écrivain": "Writer"},
            "merge": {"Lawyer": ["Attorney", "Counsel", "Lawyer"]},
        },
        "year": {"missing_values": ["?"]},
        "age": {"missing_values": ["?", "0", "99"]},
        "hired": {"strip": True, "missing_values": ["2005-00-00", "2009-09-09", "never"]},
    },
}
SPELLED = {
    "Director": ["Director", "DIRECTOR ", "dir.\u00a0", "\tDir."],
    "Lawyer": ["Lawyer", "attorney", "COUNSEL\n", " lawyer"],
    "Writer": ["Writer", "ÉCRIVAIN", "\u3000écrivain", "writer"],
}


def messy_schema() -> pcor.Schema:
    declared = {**CLEAN, "metric": CLEAN["metric"] | RULES["metric"]}
    declared["attributes"] = {
        name: domain | RULES["attributes"][name] for name, domain in CLEAN["attributes"].items()
    }
    return pcor.Schema.from_dict(declared)


def clean_and_messy(count: int = 400) -> tuple[pa.Table, pa.Table]:
    """Return the same rows, tidy and as an export has them: as text but for the id."""
    numbers = np.random.default_rng(7)
    rows = people(count)
    jobs = np.array(list(SPELLED))[numbers.choice(3, count, p=[0.6, 0.3, 0.1])].tolist()
    years = rows["year"].to_pylist()
    ages = [None if n % 37 == 5 else round(age, 1) for n, age in enumerate(rows["age"].to_pylist())]
    pay = [None if n % 41 == 7 else x for n, x in enumerate(rows["pay"].to_pylist())]
    hired = [
        None if n % 29 == 3 else f"20{d // 340:02}-{d // 28 % 12 + 1:02}-{d % 28 + 1:02}"
        for n, d in enumerate(numbers.integers(0, 6500, count).tolist())
    ]
    clean = {
        "key": rows["key"],
        "job": jobs,
        "year": years,
        "age": ages,
        "hired": hired,
        "pay": pay,
    }
    tidy_jobs = [SPELLED[job][n % 4] for n, job in enumerate(jobs)]
    messy = {
        "key": rows["key"],
        "job": tidy_jobs,
        "year": [str(year) for year in years],
        "age": [
            ["?", " ?\u00a0", "0", "99.0"][n % 4] if a is None else str(a)
            for n, a in enumerate(ages)
        ],
        "hired": [
            ["2005-00-00", "never ", "2009-09-09T08:00"][n % 3] if h is None else h + "\t" * (n % 2)
            for n, h in enumerate(hired)
        ],
        "pay": [
            ["n/a", " n/a ", "-1", "-1.00"][n % 4] if x is None else str(x)
            for n, x in enumerate(pay)
        ],
    }
    return pa.table(clean), pa.table(messy)


@pytest.mark.parametrize("engine", ["memory", "csv", "duckdb", "polars", "dataset", *SERVERS])
def test_a_messy_table_has_the_contexts_of_its_clean_twin(engine: str, tmp_path: Path) -> None:
    clean, messy = clean_and_messy()
    if engine == "csv":
        csv.write_csv(messy, tmp_path / "messy.csv")
    rows = tmp_path / "messy.csv" if engine == "csv" else source(engine, messy, tmp_path)
    table, twin = pcor.Table(rows, messy_schema()), pcor.Table(clean, pcor.Schema.from_dict(CLEAN))
    assert rows_of_cells(table) == rows_of_cells(twin)
    detector = pcor.LOF(k=3, min_population=5)
    keys = [int(clean["key"][n].as_py()) for n in (33, 66)]
    assert any(len(pcor.matching_contexts(twin, key, detector)) for key in keys)
    for key in keys:
        assert same_coe(table, twin, key, detector)


def test_a_messy_table_in_sqlite_has_the_contexts_of_its_clean_twin(tmp_path: Path) -> None:
    """SQLite reads no text as a number, so numbers are numbers there, and words are texts."""
    clean, messy = clean_and_messy()
    mixed = {name: messy[name].to_pylist() for name in messy.column_names}
    path = tmp_path / "rows.db"
    for name in ("age", "pay"):
        mixed[name] = [_number(cell) for cell in mixed[name]]
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE people (key, job, year, age, hired, pay)")
        connection.executemany(
            "INSERT INTO people VALUES (?, ?, ?, ?, ?, ?)", zip(*mixed.values(), strict=True)
        )
    table = pcor.Table(f"sqlite://{path}#people", messy_schema())
    twin = pcor.Table(clean, pcor.Schema.from_dict(CLEAN))
    assert rows_of_cells(table) == rows_of_cells(twin)
    assert same_coe(table, twin, int(clean["key"][33].as_py()), pcor.LOF(k=3, min_population=5))


def _number(cell: str) -> float | str:
    try:
        return float(cell)
    except ValueError:
        return cell


# -- words that mean no value ---------------------------------------------------------------------


@pytest.mark.parametrize("engine", [*ENGINES, "postgresql"])
@pytest.mark.parametrize("kind", [pa.int64(), pa.float64(), pa.decimal128(5, 1), pa.string()])
def test_a_number_among_the_words_means_that_number_however_it_is_written(
    engine: str, kind: pa.DataType, tmp_path: Path
) -> None:
    if engine == "sqlite" and kind in (pa.string(), pa.decimal128(5, 1)):
        return  # no text is a number there, and no number is decimal
    schema = pcor.Schema(
        metric={"column": "m", "missing": "drop", "missing_values": ["-1", "9e0"]},
        attributes={"a": {"edges": [-5, 0, 5], "outside": "drop", "missing_values": ["-1", "2.0"]}},
    )
    a, m = [-1, 2, -2, 3, 4, None, 1], [1, 2, 3, -1, 9, 5, 6]
    small = [pa.array(column, pa.int8()).cast(kind) for column in (a, m)]
    rows = pa.table(dict(zip("am", small, strict=True)))
    assert rows_of_cells(pcor.Table(source(engine, rows, tmp_path), schema)) == {(0,): 1, (1,): 1}


@pytest.mark.parametrize("engine", [*ENGINES, "postgresql"])
@pytest.mark.parametrize("kind", [pa.date32(), pa.timestamp("us"), pa.string()], ids=str)
def test_a_day_among_the_words_means_any_moment_of_it(
    engine: str, kind: pa.DataType, tmp_path: Path
) -> None:
    if engine == "sqlite" and kind != pa.string():
        return  # it has no dates
    words = ["2019-03-14", "9999-12-31", "?"]
    declared = {"edges": ["2019-01-01", "2019-12-31"], "outside": "drop", "missing_values": words}
    days = pa.array(["2019-03-13", "2019-03-14", "2019-03-15"])
    rows = pa.table({"a": days if kind == pa.string() else days.cast(kind), "m": [1.0, 2.0, 3.0]})
    schema = pcor.Schema(metric="m", attributes={"a": declared})
    assert rows_of_cells(pcor.Table(source(engine, rows, tmp_path), schema)) == {(0,): 2}


@pytest.mark.parametrize("engine", ENGINES)
def test_a_word_is_missing_and_refuses_the_table_unless_it_is_dropped(
    engine: str, tmp_path: Path
) -> None:
    rows = source(engine, pa.table({"a": ["x", "?"], "m": [1.0, -1.0]}), tmp_path)
    declared: dict[str, Any] = {"values": ["x", "y"], "missing_values": ["?"]}
    metric = {"column": "m", "missing_values": ["-1"]}
    with pytest.raises(MetricError, match="has rows with no value"):
        pcor.Table(rows, pcor.Schema(metric=metric, attributes={"a": declared}))
    with pytest.raises(DomainError, match="outside its declared domain"):
        pcor.Table(rows, pcor.Schema(metric="m", attributes={"a": declared}))
    loose = pcor.Schema(metric="m", attributes={"a": declared | {"outside": "drop"}})
    assert rows_of_cells(pcor.Table(rows, loose)) == {(0,): 1}


# -- the rows of a context ------------------------------------------------------------------------


def all_contexts(schema: pcor.Schema) -> list[pcor.Context]:
    return [pcor.Context.from_mask(schema, mask) for mask in range(1, 1 << schema.width)]


def covered(context: pcor.Context, declared: Declared, column: Cells) -> list[int]:
    codes = [meaning(declared, cell) for cell in column]
    return [n for n, code in enumerate(codes) if code is not None and context.bits[code] == "1"]


def check_selected(run: Any, declared: Declared, column: Cells) -> None:
    """Check that each context's SQL selects its rows: the raw table is ``rows (n, a0)``."""
    strict = {key: rule for key, rule in declared.items() if key != "outside"}
    fitting = [cell for cell in column if meaning(strict, cell) is not None]
    for rules, rows in ((declared, column), (strict, fitting)):
        run("DELETE FROM rows", [])
        for row in enumerate(rows):
            run("INSERT INTO rows VALUES (?, ?)", row)
        for context in all_contexts(schema_of(rules)):
            query = f"SELECT n FROM rows WHERE {context.where()} ORDER BY 1"  # noqa: S608
            assert [n for (n,) in run(query, []).fetchall()] == covered(context, rules, rows)


@settings(max_examples=100, deadline=None)
@given(drawn=drawn)
def test_duckdb_and_sqlite_select_the_rows_of_a_context_from_the_raw_table(
    drawn: tuple[Declared, Cells],
) -> None:
    declared, column = drawn
    with duckdb.connect() as there, closing(sqlite3.connect(":memory:")) as here:
        for connection in (there, here):
            connection.execute("CREATE TABLE rows (n INTEGER, a0 TEXT)")
            check_selected(connection.execute, declared, [spelled_out(declared), *column])


@settings(max_examples=30, deadline=None)
@given(drawn=drawn)
def test_postgresql_selects_the_rows_of_a_context_from_the_raw_table(
    drawn: tuple[Declared, Cells],
) -> None:
    declared, column = drawn
    with psycopg.connect(postgres().new_database()) as connection:
        connection.execute("CREATE TABLE rows (n INTEGER, a0 TEXT)")

        def run(query: str, values: Any) -> Any:
            if values:
                return connection.execute("INSERT INTO rows VALUES (%s, %s)", values)
            return connection.execute(query.encode())

        check_selected(run, declared, [spelled_out(declared), *column])


LONG = "The quick brown fox jumps over 100% of the lazy_dogs!"
LONGER = f"{LONG} Съешь же ещё этих мягких французских булок, да выпей чаю"


@pytest.mark.parametrize(
    "values", [[LONG, "Pack my box"], [LONGER, "x"], ["Pack my", "box", LONGER]]
)
def test_spellings_with_many_letters_are_still_parsed_and_selected(values: list[str]) -> None:
    declared = {"values": values, "ignore_case": True, "strip": True, "outside": "drop"}
    column: Cells = [
        form
        for value in values
        for form in (value, value.upper(), value.lower(), value.title(), f" {value}\n")
    ]
    column += [value.replace("o", "0") for value in values] + [f"{v}x" for v in values] + [None]
    column += [LONG.replace("_", "-").upper(), LONG.replace("%", "%%"), LONG.replace("!", "?")]
    with duckdb.connect() as there, closing(sqlite3.connect(":memory:")) as here:
        for connection in (there, here):
            connection.execute("CREATE TABLE rows (n INTEGER, a0 TEXT)")
            check_selected(connection.execute, declared, column)
            other = {key: rule for key, rule in declared.items() if key != "outside"}
            check_selected(connection.execute, other | {"other": values[-1]}, column)


@pytest.mark.parametrize("strip", [True, False])
@pytest.mark.parametrize("database", ["duckdb", "sqlite", "postgresql"])
def test_words_inside_the_bins_are_not_selected(database: str, strip: bool) -> None:
    schema = pcor.Schema(
        metric="m",
        attributes={
            "age": {"edges": [0, 50, 100], "outside": "drop", "missing_values": ["0", "99", "?"]},
            "day": {
                "edges": ["2018-01-01", "2019-01-01", "2019-12-31"],
                "outside": "drop",
                "strip": strip,
                "missing_values": ["2018-99-99", "2019-03-14", "unknown"],
            },
        },
    )
    ages = [0, 1, 50, 99, 100, 101, None]
    fine = " 2018-05-05\t" if strip else "2018-05-05"
    days = ["2018-99-99\t", fine, "2019-03-14T10:00", "2019-12-31", "unknown", None]
    rows = [(n, age, day) for n, (age, day) in enumerate((a, d) for a in ages for d in days)]
    codes = {1: 0, 50: 1, 100: 1}, {fine: 0, "2019-12-31": 1}
    memory = pcor.Table(
        pa.table(
            {"age": [r[1] for r in rows], "day": [r[2] for r in rows], "m": [1.0] * len(rows)}
        ),
        schema,
    )
    assert rows_of_cells(memory) == {(0, 0): 1, (0, 1): 1, (1, 0): 2, (1, 1): 2}
    connection: Any
    with closing(_connection(database)) as connection:
        connection.execute("CREATE TABLE rows (n INTEGER, age INTEGER, day TEXT)")
        for n, age, day in rows:
            shown = ["NULL" if age is None else str(age), "NULL" if day is None else f"'{day}'"]
            connection.execute(f"INSERT INTO rows VALUES ({n}, {', '.join(shown)})")  # noqa: S608
        for context in [c for m in range(16) if (c := _context(schema, m)) is not None]:
            expected = [
                n
                for n, age, day in rows
                if age in codes[0]
                and day in codes[1]
                and context.bits[codes[0][age]] == context.bits[2 + codes[1][day]] == "1"
            ]
            query = f"SELECT n FROM rows WHERE {context.where()} ORDER BY 1"  # noqa: S608
            assert [n for (n,) in connection.execute(query).fetchall()] == expected


def _connection(database: str) -> Any:
    if database == "postgresql":
        return psycopg.connect(postgres().new_database())
    return duckdb.connect() if database == "duckdb" else sqlite3.connect(":memory:")


def _context(schema: pcor.Schema, mask: int) -> pcor.Context | None:
    """Return the context of these bits, if each attribute has a value."""
    return pcor.Context.from_mask(schema, mask) if mask & 3 and mask & 12 else None
