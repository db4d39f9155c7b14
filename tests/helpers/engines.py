"""The same rows in every engine, for tests; and a table that has a little of everything."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import dataset, parquet

import pcor
from pcor.rows import database
from tests.helpers.postgres import postgres
from tests.helpers.spark import spark_frame

SCHEMA = pcor.Schema(
    metric="pay",
    attributes={
        "job": ["CEO", "Lawyer", 'it\'s {a} \\ "job"', "Écrivain"],
        "year": [2019, 2020, 2021],
        "age": {"edges": [18, 30, 50, 99]},
    },
    id="key",
)


def people(count: int = 600, seed: int = 0) -> pa.Table:
    """Return rows with ties, some far out, in uneven cells."""
    numbers = np.random.default_rng(seed)
    jobs = np.array(SCHEMA.attribute("job").values)
    pay = np.round(numbers.normal(1000, 100, count), 1)
    pay[:: max(1, count // 12)] = numbers.choice(
        [200.25, 1900.5, 2500.0], len(pay[:: max(1, count // 12)])
    )
    return pa.table(
        {
            "key": np.arange(count) * 7 + 3,
            "job": jobs[numbers.choice(len(jobs), count, p=[0.6, 0.2, 0.15, 0.05])],
            "year": numbers.integers(2019, 2022, count),
            "age": numbers.uniform(18, 99, count),
            "pay": pay,
        }
    )


def _duckdb(rows: pa.Table, folder: Path) -> Any:
    del folder
    return duckdb.from_arrow(rows)


def _polars(rows: pa.Table, folder: Path) -> Any:
    del folder
    frame = pl.from_arrow(rows)
    assert isinstance(frame, pl.DataFrame)
    return frame.lazy()


def _dataset(rows: pa.Table, folder: Path) -> Any:
    parquet.write_table(rows, folder / "rows.parquet", row_group_size=100)
    return dataset.dataset(folder / "rows.parquet")


def _files(rows: pa.Table, folder: Path) -> Any:
    for part in range(3):
        some = rows.slice(
            part * len(rows) // 3, (part + 1) * len(rows) // 3 - part * len(rows) // 3
        )
        parquet.write_table(some, folder / f"part{part}.parquet")
    return str(folder / "part*.parquet")


def _sqlite(rows: pa.Table, folder: Path) -> Any:
    columns = ", ".join('"' + name + '"' for name in rows.column_names)
    with sqlite3.connect(folder / "rows.db") as connection:
        connection.execute(f"CREATE TABLE people ({columns})")
        places = ", ".join("?" * rows.num_columns)
        values = zip(*(column.to_pylist() for column in rows.columns), strict=True)
        connection.executemany(f"INSERT INTO people VALUES ({places})", values)  # noqa: S608
    connection.close()
    return database(f"sqlite://{folder / 'rows.db'}", "people")


def _postgresql(rows: pa.Table, folder: Path) -> Any:
    del folder
    url = postgres().new_database()
    change(url, lambda cursor: cursor.adbc_ingest("people", rows))
    return f"{url}#people"


def change(url: str, action: Callable[[Any], object]) -> None:
    """Change a PostgreSQL database."""
    driver = pytest.importorskip("adbc_driver_postgresql.dbapi", reason="needs the ADBC drivers")
    with driver.connect(url) as connection:
        with connection.cursor() as cursor:
            action(cursor)
        connection.commit()


def _spark(rows: pa.Table, folder: Path) -> Any:
    del folder
    return spark_frame(rows)


Maker = Callable[[pa.Table, Path], Any]
LOCAL: dict[str, Maker] = {
    "duckdb": _duckdb,
    "polars": _polars,
    "dataset": _dataset,
    "files": _files,
    "sqlite": _sqlite,
}
SERVERS: dict[str, Maker] = {"postgresql": _postgresql, "spark": _spark}
