"""Sources whose rows can be changed while they are asked, and what may happen to them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
from pyarrow import csv, dataset, parquet

import pcor
from tests.helpers.spark import spark

SCHEMA = pcor.Schema(
    metric="pay",
    attributes={"job": ["CEO", "Lawyer", "Nurse"], "city": ["Ottawa", "Toronto"]},
    id="key",
)
RECORD = 0
ROUNDING = 1e-9
DP: dict[str, Any] = {"detector": pcor.Tail(0.5), "guarantee": "dp"}


def people(count: int = 60) -> pa.Table:
    """Return rows with ties; row 0 is far out, and no nurse is in Toronto."""
    numbers = np.random.default_rng(4)
    pay = np.round(numbers.normal(1000, 100, count), -1)
    pay[0] = 1450.0
    job = numbers.choice(["CEO", "Lawyer", "Nurse"], count)
    city = np.where(job == "Nurse", "Ottawa", numbers.choice(["Ottawa", "Toronto"], count))
    job[:4], city[:4], pay[1:4] = "CEO", "Ottawa", [990, 1000, 1010]
    return pa.table({"key": np.arange(count), "job": job, "city": city, "pay": pay})


def with_row(rows: pa.Table, job: str, city: str, pay: float) -> pa.Table:
    row = {"key": [1000], "job": [job], "city": [city], "pay": [pay]}
    return pa.concat_tables([rows, pa.table(row, rows.schema)])


def with_pay(rows: pa.Table, changed: dict[int, float]) -> pa.Table:
    pay = rows["pay"].to_pylist()
    pay = [changed.get(place, own) for place, own in enumerate(pay)]
    return rows.set_column(3, "pay", pa.array(pay))


def swapped(rows: pa.Table) -> pa.Table:
    """Exchange what a lawyer and a CEO earn: every count of a cell and of a metric is the same."""
    jobs, pay = rows["job"].to_pylist(), rows["pay"].to_pylist()
    other = next(p for p, job in enumerate(jobs) if job == "Lawyer" and pay[p] != pay[1])
    return with_pay(rows, {1: pay[other], other: pay[1]})


CHANGES: dict[str, Callable[[pa.Table], pa.Table]] = {
    "a row in the record's region": lambda rows: with_row(rows, "CEO", "Ottawa", 1500.0),
    "a row in a cell that had nobody": lambda rows: with_row(rows, "Nurse", "Toronto", 1000.0),
    "a row less": lambda rows: rows.filter(pa.array(rows["key"].to_numpy() != 2)),
    "another metric": lambda rows: with_pay(rows, {2: 1000.1}),
    "a swap": swapped,
}


class Source(NamedTuple):
    """What a table is made of, and how to put other rows in its place."""

    given: Any
    replace: Callable[[pa.Table], object]
    memory: str | None = None
    made_once: bool = False  # it remembers what its files looked like

    def table(self, pairs: int = 1 << 22) -> pcor.Table:
        return pcor.Table(self.given, SCHEMA, memory=self.memory, pairs=pairs)


def relation_source(rows: pa.Table, folder: Path) -> Source:
    del folder
    connection = duckdb.connect()

    def replace(rows: pa.Table) -> None:
        connection.register("other", rows)
        connection.execute("BEGIN; DELETE FROM people; INSERT INTO people FROM other; COMMIT")
        connection.unregister("other")

    connection.register("first", rows)
    connection.execute("CREATE TABLE people AS FROM first")
    connection.unregister("first")
    return Source(connection.table("people"), replace)


def _parquet_file(rows: pa.Table, folder: Path) -> Callable[[pa.Table], None]:
    def replace(rows: pa.Table) -> None:
        parquet.write_table(rows, folder / "rows.parquet")

    replace(rows)
    return replace


def _file(rows: pa.Table, folder: Path) -> Source:
    replace = _parquet_file(rows, folder)
    return Source(folder / "rows.parquet", replace, "1GiB")


def _csv_file(rows: pa.Table, folder: Path) -> Source:
    def replace(rows: pa.Table) -> None:
        csv.write_csv(rows, folder / "rows.csv")

    replace(rows)
    return Source(folder / "rows.csv", replace, "1GiB")


def _folder(rows: pa.Table, folder: Path) -> Source:
    """Give a pattern: what is not among the first forty rows is in another file."""
    (folder / "parts").mkdir()

    def replace(rows: pa.Table) -> None:
        parquet.write_table(rows.slice(0, 40), folder / "parts" / "a.parquet")
        parquet.write_table(rows.slice(40), folder / "parts" / f"b{len(rows)}.parquet")
        for part in (folder / "parts").glob("b*"):
            if part.name != f"b{len(rows)}.parquet":
                part.unlink()

    replace(rows)
    return Source(str(folder / "parts" / "*.parquet"), replace)


def _dataset(rows: pa.Table, folder: Path) -> Source:
    replace = _parquet_file(rows, folder)
    return Source(dataset.dataset(folder / "rows.parquet"), replace, made_once=True)


def _memory_dataset(rows: pa.Table, folder: Path) -> Source:
    """Give a dataset of a file in Arrow's own format, whose content nobody remembers."""

    def replace(rows: pa.Table) -> None:
        with (
            pa.OSFile(str(folder / "rows.arrow"), "wb") as sink,
            pa.ipc.new_file(sink, rows.schema) as writer,
        ):
            writer.write_table(rows)

    replace(rows)
    return Source(dataset.dataset(folder / "rows.arrow", format="ipc"), replace)


def _scan(rows: pa.Table, folder: Path) -> Source:
    source = _csv_file(rows, folder)
    kinds = {"pay": pl.Float64(), "year": pl.String()}
    given = pl.scan_csv(folder / "rows.csv", schema_overrides=kinds)
    return Source(given, source.replace)


def _parquet_scan(rows: pa.Table, folder: Path) -> Source:
    replace = _parquet_file(rows, folder)
    return Source(pl.scan_parquet(folder / "rows.parquet"), replace, made_once=True)


def spark_source(rows: pa.Table, folder: Path) -> Source:
    """Give a file of one name and one size, as Spark reads no other than it found at first."""

    def replace(rows: pa.Table) -> None:
        lines = zip(*(column.to_pylist() for column in rows.columns), strict=True)
        text = "\n".join(",".join(map(str, line)) for line in lines)
        (folder / "rows.csv").write_text(text + "\n" * (4096 - len(text)))

    replace(rows)
    kinds = "key INT, job STRING, city STRING, pay DOUBLE"
    return Source(spark().read.schema(kinds).csv(str(folder / "rows.csv")), replace)


Maker = Callable[[pa.Table, Path], Source]
MAKERS: dict[str, Maker] = {
    "relation": relation_source,
    "file": _file,
    "csv": _csv_file,
    "folder": _folder,
    "dataset": _dataset,
    "ipc dataset": _memory_dataset,
    "scan": _scan,
    "parquet scan": _parquet_scan,
}


class Median:
    """A utility of somebody's own, that looks at the metrics of a population."""

    sensitivity, monotonic = 1, False

    def score(self, population: Any) -> int:
        return int(population.metric[len(population.metric) // 2] > 1000)
