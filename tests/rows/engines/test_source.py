"""Files, patterns and databases are opened where the rows are."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest
from pyarrow import csv, parquet
from typer.testing import CliRunner

import pcor
from pcor.cli import app
from pcor.errors import ParameterError, SourceError
from pcor.rows.remote import RemoteCellTable
from tests.helpers.engines import LOCAL, SCHEMA, people
from tests.helpers.same_rows import same_coe

# -- files ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["folder", "list", "memory", "csv", "hive"])
def test_many_files_are_one_table(form: str, rows: pa.Table, tmp_path: Path) -> None:
    memory: str | None = None
    source: Any = tmp_path
    if form == "csv":
        for part in range(2):
            csv.write_csv(rows.slice(part * 300, 300), tmp_path / f"part{part}.csv")
        source = str(tmp_path / "*.csv")
    elif form == "hive":
        for year in (2019, 2020, 2021):
            (tmp_path / f"year={year}").mkdir()
            some = rows.filter(pa.array(rows["year"].to_numpy() == year)).drop_columns("year")
            parquet.write_table(some, tmp_path / f"year={year}" / "rows.parquet")
    elif form == "memory":
        parquet.write_table(rows, tmp_path / "rows.parquet")
        source, memory = tmp_path / "rows.parquet", "1GiB"
    else:
        LOCAL["files"](rows, tmp_path)
        source = sorted(tmp_path.glob("*.parquet")) if form == "list" else tmp_path
    table = pcor.Table(source, SCHEMA, memory=memory)
    assert isinstance(table.cells, RemoteCellTable)
    assert same_coe(table, pcor.Table(rows, SCHEMA), 3, pcor.LOF(k=5))


def test_files_of_two_kinds_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="files of one kind"):
        pcor.Table([tmp_path / "a.csv", tmp_path / "b.parquet"], SCHEMA)


def test_a_polars_that_is_too_old_for_lazy_frames_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pl, "__version__", "1.43.2")
    with pytest.raises(SourceError, match=r"1\.44 or newer, and 1\.43\.2 is installed.*collect"):
        pcor.Table(pl.LazyFrame({"key": [1]}), SCHEMA)


def test_a_pattern_that_finds_nothing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"no file matches the pattern '.*\*\.parquet'"):
        pcor.Table(str(tmp_path / "*.parquet"), SCHEMA)


def test_a_file_that_is_not_there_is_named_whatever_reads_it(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"no such file: '.*gone\.parquet'"):
        pcor.Table(tmp_path / "gone.parquet", SCHEMA, memory="1GiB")
    with pytest.raises(SourceError, match=r"no such file: '.*gone\.db', for the SQLite database"):
        pcor.Table(f"sqlite://{tmp_path / 'gone.db'}#claims", SCHEMA)


@pytest.mark.parametrize("memory", ["lots", "1MiB", "-4GiB", ""])
def test_an_amount_of_memory_that_is_none_is_refused(memory: str, tmp_path: Path) -> None:
    parquet.write_table(people(), tmp_path / "rows.parquet")
    with pytest.raises(ParameterError, match="at least 512MiB"):
        pcor.Table(tmp_path / "rows.parquet", SCHEMA, memory=memory)


def test_memory_is_for_files(rows: pa.Table) -> None:
    with pytest.raises(ParameterError, match="set where the rows are"):
        pcor.Table(rows, SCHEMA, memory="1GiB")


# -- the command line ----------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["pattern", "memory", "database"])
def test_the_command_line_releases_from_where_the_rows_are(
    form: str, rows: pa.Table, tmp_path: Path
) -> None:
    (tmp_path / "people.toml").write_text(SCHEMA.to_toml())
    source, more = LOCAL["files"](rows, tmp_path), []
    if form == "memory":
        source, more = str(tmp_path / "part0.parquet"), ["--memory", "1GiB", "--pairs", "100000"]
    elif form == "database":
        database = LOCAL["sqlite"](rows, tmp_path)
        source = f"{database.url}#{database.table}"
    words = [source, "--schema", str(tmp_path / "people.toml"), "--record", "3", "--epsilon", "1"]
    assert CliRunner().invoke(app, ["plan", *words]).exit_code == 0
    done = CliRunner().invoke(app, ["release", *words, "--json", *more])
    assert done.exit_code == 0, done.stderr
    engine = "sqlite" if form == "database" else "duckdb"
    assert json.loads(done.stdout)["engine"].startswith(engine)
