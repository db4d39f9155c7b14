"""The same row is in the same bin of dates wherever the rows are, and however its day is kept."""

from __future__ import annotations

import datetime as dt
import sqlite3
from collections.abc import Callable
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import psycopg
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import csv, parquet

import pcor
from pcor.errors import DomainError, SourceError
from tests.helpers.engines import LOCAL, SERVERS
from tests.helpers.postgres import postgres
from tests.helpers.same_rows import cells, same_coe
from tests.helpers.strategies import bins_of_dates, days, near

# PySpark before 4.2 leaves its sockets to the garbage collector.
pytestmark = pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")

Moments = list[dt.datetime | None]

EDGES = ["1969-12-30", "1970-01-01", "2020-02-29", "2020-12-31"]
MOMENTS: Moments = [
    dt.datetime(1969, 12, 29, 23, 59, 59),
    dt.datetime(1969, 12, 30),
    dt.datetime(1969, 12, 31, 23, 59, 59),
    dt.datetime(1970, 1, 1),
    dt.datetime(2020, 2, 28, 23, 59, 59),
    dt.datetime(2020, 2, 29),
    dt.datetime(2020, 12, 31, 23, 59, 59),
    dt.datetime(2021, 1, 1),
    None,
]


def schema_of(**declared: Any) -> pcor.Schema:
    attributes = {"day": {"outside": "drop", "contexts": "range"} | declared}
    return pcor.Schema(metric="m", attributes=attributes, id="key")


def rows_of(moments: Moments, column: Callable[[Moments], pa.Array]) -> pa.Table:
    count = len(moments)
    return pa.table({"key": np.arange(count), "day": column(moments), "m": np.arange(1.0 * count)})


def twin(schema: pcor.Schema, moments: Moments) -> dict[tuple[int, ...], int]:
    """Count the rows of each bin by comparing dates, which is slow and obvious."""
    edges: list[Any] = list(schema.attributes[0].edges or ())
    found: dict[tuple[int, ...], int] = {}
    for moment in moments:
        for code, (low, high) in enumerate(pairwise(edges)):
            is_last = code == len(edges) - 2
            day = None if moment is None else moment.date()
            if day is not None and (low <= day < high or (is_last and day == high)):
                found[code,] = found.get((code,), 0) + 1
    return found


def texts(moments: Moments) -> pa.Array:
    return pa.array([None if m is None else str(m.date()) for m in moments], pa.string())


def long_texts(moments: Moments) -> pa.Array:
    """With a time and sometimes a zone, which is not converted; and without a value as a blank."""
    zones = ["", "Z", "+14:00", "-11", ".123456", " UTC", " +0200"]
    written = [" " if m is None else m.isoformat(" T"[m.second % 2]) for m in moments]
    return pa.array([t if t == " " else t + zones[i % len(zones)] for i, t in enumerate(written)])


def of_type(kind: pa.DataType) -> Callable[[Moments], pa.Array]:
    def column(moments: Moments) -> pa.Array:
        if pa.types.is_date(kind):
            return pa.array([None if m is None else m.date() for m in moments], kind)
        return pa.array(moments, pa.timestamp("us")).cast(kind)

    return column


COLUMNS: dict[str, Callable[[Moments], pa.Array]] = {
    "text": texts,
    "text with times": long_texts,
    "date": of_type(pa.date32()),
    "timestamp": of_type(pa.timestamp("us")),
}
MORE_COLUMNS = {
    "large text": lambda moments: texts(moments).cast(pa.large_string()),
    "categories": lambda moments: texts(moments).dictionary_encode(),
    "date64": of_type(pa.date64()),
    "seconds": of_type(pa.timestamp("s")),
    "milliseconds": of_type(pa.timestamp("ms")),
    "nanoseconds": of_type(pa.timestamp("ns")),
}


# -- in memory ------------------------------------------------------------------------------------


@pytest.mark.parametrize("column", [*COLUMNS, *MORE_COLUMNS])
def test_every_type_of_arrow_that_has_a_day_is_binned_by_it(column: str) -> None:
    schema = schema_of(edges=EDGES)
    rows = rows_of(MOMENTS, (COLUMNS | MORE_COLUMNS)[column])
    assert cells(pcor.Table(rows, schema)) == {(0,): 2, (1,): 2, (2,): 2} == twin(schema, MOMENTS)


@pytest.mark.parametrize("column", list(COLUMNS))
def test_pandas_and_polars_and_files_are_binned_alike(column: str, tmp_path: Path) -> None:
    schema = schema_of(edges=EDGES)
    rows = rows_of(MOMENTS, COLUMNS[column])
    csv.write_csv(rows, tmp_path / "rows.csv")
    parquet.write_table(rows, tmp_path / "rows.parquet")
    sources = [
        rows.to_pandas(),
        rows.to_pandas(date_as_object=False),
        rows.to_pandas(types_mapper=pd.ArrowDtype),
        pl.from_arrow(rows),
        tmp_path / "rows.csv",
        tmp_path / "rows.parquet",
        str(tmp_path / "*.csv"),
    ]
    for source in sources:
        assert cells(pcor.Table(source, schema)) == twin(schema, MOMENTS)


def test_a_date_outside_every_bin_refuses_the_table_unless_it_is_dropped() -> None:
    schema = schema_of(edges=EDGES, outside="error")
    for moments in (MOMENTS[:2], MOMENTS[1:]):
        with pytest.raises(DomainError, match="column 'day' has a value outside its declared"):
            pcor.Table(rows_of(moments, texts), schema)
    assert cells(pcor.Table(rows_of(MOMENTS[1:7], texts), schema)) == {(0,): 2, (1,): 2, (2,): 2}


# -- in every engine ------------------------------------------------------------------------------


def fits(engine: str, column: str) -> bool:
    """SQLite has no dates: they are texts there."""
    return engine != "sqlite" or column.startswith("text")


@settings(max_examples=25, deadline=None)
@given(
    declared=bins_of_dates(),
    moments=st.lists(
        st.none() | st.builds(dt.datetime.combine, near | days, st.times()), min_size=1, max_size=9
    ),
    column=st.sampled_from(list(COLUMNS)),
)
@pytest.mark.parametrize("engine", ["memory", "duckdb", "polars", "sqlite"])
def test_engines_bin_any_dates_as_comparing_dates_does(
    engine: str, declared: dict[str, Any], moments: Moments, column: str
) -> None:
    schema = schema_of(**declared)
    inside = schema.attributes[0].days[0][0]
    # One row fits, or there is no table at all; no second has a part, which Arrow would cut off.
    moments = [dt.datetime.combine(inside, dt.time(23, 59, 59)), *moments]
    moments = [None if moment is None else moment.replace(microsecond=0) for moment in moments]
    rows = rows_of(moments, COLUMNS[column if fits(engine, column) else "text"])
    with TemporaryDirectory() as folder:
        source = rows if engine == "memory" else LOCAL[engine](rows, Path(folder))
        assert cells(pcor.Table(source, schema)) == twin(schema, moments)


@pytest.mark.parametrize("column", list(COLUMNS))
@pytest.mark.parametrize("engine", [*LOCAL, *SERVERS])
def test_engines_and_memory_find_the_same_contexts(
    engine: str, column: str, tmp_path: Path
) -> None:
    if not fits(engine, column):
        return
    span = {"by": "quarter", "from": "2019-02-01", "to": "2020-04-01"}
    schema = schema_of(date=span)
    start = dt.datetime(2019, 1, 30)
    moments: Moments = [*(start + dt.timedelta(hours=40 * i) for i in range(270)), None]
    rows = rows_of(moments, COLUMNS[column])
    table = pcor.Table((LOCAL | SERVERS)[engine](rows, tmp_path), schema)
    assert cells(table) == twin(schema, moments)
    memory = pcor.Table(rows, schema)
    assert same_coe(table, memory, 200, pcor.Tail(0.3, min_population=5))


WRONG = ["2019-02-29", "14.03.2019", "2019-3-14", " 2019-03-14", "2019-03-14\n", "2019-03-14Tnoon"]
WRONG += ["2019-03-14T", "20190314", "x", "2019-03-14x", "2019-03", "10000-01-01", "2019-03-14 \t"]


@pytest.mark.parametrize("engine", ["memory", "duckdb", "polars", "sqlite", *SERVERS])
def test_a_text_that_is_no_date_is_refused_and_not_repeated(engine: str, tmp_path: Path) -> None:
    schema = schema_of(date={"by": "year", "from": "2018-01-01", "to": "2020-12-31"})
    said = set()
    for number, wrong in enumerate(WRONG if engine not in SERVERS else WRONG[::4]):
        rows = pa.table({"key": [1, 2], "day": ["2019-03-14", wrong], "m": [1.0, 2.0]})
        (folder := tmp_path / str(number)).mkdir()
        source = rows if engine == "memory" else (LOCAL | SERVERS)[engine](rows, folder)
        with pytest.raises(SourceError, match="'day' has bins of dates, but its column") as refused:
            pcor.Table(source, schema)
        said.add(str(refused.value))
    assert len(said) == 1  # whatever the text is


@pytest.mark.parametrize("engine", ["memory", "duckdb", "polars", "postgresql"])
@pytest.mark.parametrize("kind", [pa.timestamp("us", "UTC"), pa.int64()], ids=str)
def test_moments_with_a_zone_and_numbers_have_no_day(
    engine: str, kind: pa.DataType, tmp_path: Path
) -> None:
    rows = pa.table({"key": [1, 2], "day": pa.array([1, 2]).cast(kind), "m": [1.0, 2.0]})
    source = rows if engine == "memory" else (LOCAL | SERVERS)[engine](rows, tmp_path)
    with pytest.raises(SourceError, match=r"'day' has bins of dates.*without time zone"):
        pcor.Table(source, schema_of(edges=EDGES))


# -- the rows of a context ------------------------------------------------------------------------


def covered(context: pcor.Context, moments: Moments) -> list[int]:
    """The numbers of the rows whose bin, by ``twin``, the context has."""
    codes = [next(iter(twin(context.schema, [moment])), None) for moment in moments]
    return [i for i, code in enumerate(codes) if code is not None and context.bits[code[0]] == "1"]


def contexts_of(schema: pcor.Schema) -> list[pcor.Context]:
    return [pcor.Context.from_mask(schema, mask) for mask in range(1, 1 << schema.width)]


@pytest.mark.parametrize("column", list(COLUMNS))
def test_duckdb_selects_the_rows_of_a_context(column: str) -> None:
    rows = rows_of(MOMENTS, COLUMNS[column])
    for context in contexts_of(schema_of(edges=EDGES)):
        query = f"SELECT key FROM rows WHERE {context.where()} ORDER BY 1"  # noqa: S608
        found = duckdb.query_df(rows.to_pandas(types_mapper=pd.ArrowDtype), "rows", query)
        assert [key for (key,) in found.fetchall()] == covered(context, MOMENTS)


@pytest.mark.parametrize("column", ["text", "text with times"])
def test_sqlite_selects_the_rows_of_a_context(column: str) -> None:
    values = enumerate(COLUMNS[column](MOMENTS).to_pylist())
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute("CREATE TABLE rows (key, day)")
        connection.executemany("INSERT INTO rows VALUES (?, ?)", values)
        for context in contexts_of(schema_of(edges=EDGES)):
            query = f"SELECT key FROM rows WHERE {context.where()} ORDER BY 1"  # noqa: S608
            assert [key for (key,) in connection.execute(query)] == covered(context, MOMENTS)


@pytest.mark.parametrize("kind", ["date", "timestamp", "text"])
def test_postgresql_selects_the_rows_of_a_context(kind: str) -> None:
    with psycopg.connect(postgres().new_database()) as connection:
        connection.execute(f"CREATE TABLE rows (key integer, day {kind})")
        cursor = connection.cursor()
        cells_ = [None if moment is None else moment.isoformat() for moment in MOMENTS]
        cursor.executemany("INSERT INTO rows VALUES (%s, %s)", list(enumerate(cells_)))
        for context in contexts_of(schema_of(edges=EDGES)):
            query = f"SELECT key FROM rows WHERE {context.where()} ORDER BY 1"  # noqa: S608
            cursor.execute(query)
            assert [key for (key,) in cursor.fetchall()] == covered(context, MOMENTS)
