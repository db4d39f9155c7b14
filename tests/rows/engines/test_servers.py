"""Rows in PostgreSQL and Spark give the same answers as the same rows in memory."""

from __future__ import annotations

import os
import signal
import sqlite3
import threading
from contextlib import closing
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import psycopg
import pyarrow as pa
import pytest
from pyarrow import parquet

import pcor
from pcor.errors import MetricError, NotAsked, RecordError, SourceError, Unfinished
from pcor.ledger import Ledger
from pcor.releasing.batch import run as running
from pcor.releasing.run import read_and_draw, release_from
from pcor.rows import database
from pcor.rows.engines.base import translated_errors
from pcor.rows.engines.databases import DatabaseEngine
from tests.helpers.engines import LOCAL, SCHEMA, SERVERS, change, people
from tests.helpers.postgres import postgres
from tests.helpers.spark import compiled, spark, spark_frame

# PySpark before 4.2 leaves its sockets to the garbage collector.
pytestmark = pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")

DETECTORS = [
    pcor.LOF(k=5),
    pcor.Grubbs(tail="upper"),
    pcor.Histogram(rare=0.02),
    pcor.Tail(),
    pcor.Neighbourhood(50.0),
]


@pytest.fixture(scope="module", params=list(SERVERS))
def table(
    request: pytest.FixtureRequest, rows: pa.Table, tmp_path_factory: pytest.TempPathFactory
) -> pcor.Table:
    return pcor.Table(SERVERS[request.param](rows, tmp_path_factory.mktemp("rows")), SCHEMA)


@pytest.mark.parametrize("detector", DETECTORS, ids=lambda d: d.name)
def test_coe_is_the_same_as_in_memory(
    table: pcor.Table, rows: pa.Table, detector: pcor.detectors.Detector
) -> None:
    memory = pcor.Table(rows, SCHEMA)
    for key in rows["key"].to_numpy()[[0, 50, 333]].tolist():
        expected = pcor.matching_contexts(memory, key, detector)
        found = pcor.matching_contexts(table, key, detector)
        assert np.array_equal(found.masks, expected.masks)
        assert np.array_equal(found.populations, expected.populations)


def test_outliers_are_the_same_as_in_memory(table: pcor.Table, rows: pa.Table) -> None:
    found = pcor.outliers(table, detector="grubbs")
    assert found == sorted(pcor.outliers(pcor.Table(rows, SCHEMA), detector="grubbs"))
    assert found


def test_a_row_number_names_nothing(table: pcor.Table) -> None:
    schema = pcor.Schema(metric="pay", attributes={"year": [2019, 2020, 2021]})
    assert table.pushdown is not None
    numbered = pcor.Table(table.pushdown.engine, schema)
    with pytest.raises(RecordError, match=r"have no order.*declare the id column"):
        numbered.record(3)


def test_the_engine_is_named_with_its_version(table: pcor.Table) -> None:
    assert table.engine.split()[0] in SERVERS
    assert table.engine.split()[1][0].isdigit()


@pytest.mark.parametrize("server", list(SERVERS))
def test_an_infinite_metric_is_refused_as_in_memory(server: str, tmp_path: Path) -> None:
    rows = people(30).set_column(4, "pay", pa.array([np.inf] + [1.0] * 29))
    with pytest.raises(MetricError, match="infinite or beyond 1e100"):
        pcor.Table(SERVERS[server](rows, tmp_path), SCHEMA)


@pytest.mark.parametrize("server", list(SERVERS))
def test_the_largest_metric_is_read_as_in_memory(server: str, tmp_path: Path) -> None:
    pay = np.random.default_rng(0).normal(1000, 100, 60).round()
    pay[:2] = 1e100, -9.9e99
    rows = people(60).set_column(4, "pay", pa.array(pay))
    expected = pcor.outliers(pcor.Table(rows, SCHEMA), detector="grubbs")
    assert expected
    table = pcor.Table(SERVERS[server](rows, tmp_path), SCHEMA)
    assert pcor.outliers(table, detector="grubbs") == sorted(expected)


def test_spark_runs_on_several_partitions_without_a_hot_cell() -> None:
    """One cell holds nine rows in ten, most of them of one value, and all partitions have some."""
    count = 20_000
    numbers = np.random.default_rng(1)
    pay = np.where(np.arange(count) % 3 == 0, 500.0, numbers.normal(1000, 50, count))
    pay[7] = 1700.0
    job = np.where(np.arange(count) % 10 < 9, "CEO", "Lawyer")
    rows = pa.table({"key": np.arange(count), "job": job, "pay": pay})
    schema = pcor.Schema(metric="pay", attributes={"job": ["CEO", "Lawyer"]}, id="key")
    frame = spark_frame(rows)
    assert frame.rdd.getNumPartitions() > 1
    with compiled():
        table = pcor.Table(frame, schema)
        for key in (7, 9, 12):
            expected = pcor.matching_contexts(pcor.Table(rows, schema), key)
            assert np.array_equal(pcor.matching_contexts(table, key).masks, expected.masks)


def test_no_python_runs_on_the_executors_of_spark(
    rows: pa.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame = spark_frame(rows)
    asked: list[str] = []
    from pcor.rows.engines.spark import SparkEngine

    def explained(self: SparkEngine, query: str) -> pa.Table:
        text = query.replace("{", "{{").replace("}", "}}").replace(self.source, "{source}")
        plan = self._session.sql(text, source=self._frame)._jdf.queryExecution().toString()
        asked.append(plan.lower())
        return run(self, query)

    run = SparkEngine.run
    monkeypatch.setattr(SparkEngine, "run", explained)
    pcor.matching_contexts(pcor.Table(frame, SCHEMA), 3, "lof")
    assert len(asked) > 3
    assert not any("python" in plan or "udf" in plan for plan in asked)


def test_what_is_cached_of_a_spark_frame_is_read_and_stays_cached(rows: pa.Table) -> None:
    frame = spark_frame(rows).cache()
    context = spark().sparkContext._jsc.sc()
    try:
        pcor.matching_contexts(pcor.Table(frame, SCHEMA), 3, "lof")
        assert "InMemoryTableScan" in frame.select("pay")._jdf.queryExecution().toString()
        assert sum(cached.numCachedPartitions() for cached in context.getRDDStorageInfo()) > 0
    finally:
        frame.unpersist()


def test_a_running_spark_session_is_used() -> None:
    from pcor.rows.engines.spark import local_session

    assert local_session() is spark()


def test_one_snapshot_answers_all_questions() -> None:
    """Rows that somebody adds meanwhile do not turn up half way."""
    url = SERVERS["postgresql"](people(), Path())
    table = pcor.Table(url, SCHEMA)
    before = len(pcor.matching_contexts(table, 3))
    change(
        url.partition("#")[0],
        lambda cursor: cursor.execute(
            "INSERT INTO people SELECT key + 100000, job, year, age, pay FROM people"
        ),
    )
    assert len(pcor.matching_contexts(table, 3)) == before
    assert int(table.distribution((1 << SCHEMA.width) - 1)[1].sum()) == 600


def test_the_connection_cannot_write() -> None:
    table = pcor.Table(SERVERS["postgresql"](people(60), Path()), SCHEMA)
    with pytest.raises(Exception, match="read-only"):
        table.pushdown.engine.run(  # type: ignore[union-attr]
            "INSERT INTO people SELECT * FROM people RETURNING key"
        )


def end_connection(url: str, table: pcor.Table) -> None:
    """Let the server end the connection that a table reads through."""
    assert table.pushdown is not None
    number = table.pushdown.engine.run("SELECT pg_backend_pid() AS pid").column("pid")[0].as_py()
    end = f"SELECT pg_terminate_backend({number}, 10000)"
    change(url.partition("#")[0], lambda cursor: cursor.execute(end))
    table.prepare([], pcor.LOF())  # what it had read, it forgets


@pytest.fixture
def books(tmp_path: Path) -> Ledger:
    opened = Ledger(tmp_path / "books.db")
    opened.set_budget("people", 10)
    return opened


@pytest.mark.parametrize("detector", ["lof:k=5", "histogram:rare=0.02", "tail", "grubbs"])
def test_a_dropped_connection_leaves_a_release_unfinished_and_it_goes_on_free(
    books: Ledger, detector: str
) -> None:
    url = SERVERS["postgresql"](people(), Path())
    table = pcor.Table(url, SCHEMA)

    def dropped(*words: Any) -> pcor.Release:
        end_connection(url, table)
        table.record(3)  # a draw that asks for more; most have read all they need
        return release_from(*words)

    with (
        patch("pcor.releasing.run.release_from", dropped),
        pytest.raises(Unfinished, match=r"could not answer.*charged and unfinished"),
    ):
        books.release(table, 3, 1, dataset="people", detector=detector)
    assert [entry.kind for entry in books.entries()] == ["budget", "charge"]
    with pytest.raises(SourceError, match=r"make the table anew: pcor.Table"):
        books.release(table, 3, 1, dataset="people", detector=detector)  # never another snapshot
    found = books.release(pcor.Table(url, SCHEMA), 3, 1, dataset="people", detector=detector)
    assert found.record == 3
    assert books.left("people") == 9
    assert books.verify().ok


@pytest.mark.parametrize("workers", [1, 2])
def test_a_dropped_connection_burns_no_record_of_a_list(books: Ledger, workers: int) -> None:
    url = SERVERS["postgresql"](people(), Path())
    table, keys = pcor.Table(url, SCHEMA), people()["key"].to_pylist()[:8]

    def dropped(plan: pcor.Plan, rows: pcor.Table, record: Any, *words: Any) -> pcor.Release:
        if record == keys[3]:
            end_connection(url, table)
        return read_and_draw(plan, rows, record, *words)

    how: dict[str, Any] = {"ledger": books, "dataset": "people", "workers": workers}
    how |= {"detector": "lof:k=5,threshold=1.01"}
    with patch.object(running, "read_and_draw", dropped):
        results = pcor.release_many(table, keys, 1, **how)
    assert results.exit_code == 2
    kinds = {type(found) for found in results}
    assert kinds & {Unfinished, NotAsked}
    assert kinds <= {pcor.Release, Unfinished, NotAsked}
    assert len(results.releases) == sum(entry.kind == "answer" for entry in books.entries()) <= 3
    rest = pcor.release_many(pcor.Table(url, SCHEMA), keys, 1, **how)
    assert rest.exit_code == 0
    assert books.left("people") == 2
    assert books.verify().ok


@pytest.mark.parametrize("raised", [KeyboardInterrupt, SourceError], ids=["Ctrl-C", "its limit"])
def test_an_interrupt_inside_postgresql_is_told_from_a_limit_of_the_server(
    raised: type[BaseException],
) -> None:
    url = SERVERS["postgresql"](people(60), Path())
    table = pcor.Table(url, SCHEMA)
    engine = table.pushdown.engine  # type: ignore[union-attr]
    number = engine.run("SELECT pg_backend_pid() AS pid").column("pid")[0].as_py()

    def interrupt() -> None:
        busy = f"SELECT 1 FROM pg_stat_activity WHERE pid = {number} AND wait_event = 'PgSleep'"  # noqa: S608
        with psycopg.connect(url.partition("#")[0], autocommit=True) as connection:
            while connection.execute(busy).fetchone() is None:
                pass
        os.kill(os.getpid(), signal.SIGINT)

    if raised is KeyboardInterrupt:
        threading.Thread(target=interrupt).start()
    else:
        engine.run("SELECT set_config('statement_timeout', '10', false) AS x")
    with pytest.raises(raised), translated_errors("postgresql"):
        engine.run("SELECT pg_sleep(60)::text AS x")


def test_a_password_is_in_no_message() -> None:
    url = f"postgresql://pcor:MARKED@localhost:1/nowhere#people?{postgres() and ''}"
    with pytest.raises(SourceError, match="cannot connect") as caught:
        pcor.Table(url, SCHEMA)
    assert "MARKED" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert "MARKED" not in repr(database(url))


def test_a_table_that_is_not_there_is_refused() -> None:
    with pytest.raises(SourceError, match="no table 'nothing'"):
        pcor.Table(f"{postgres().new_database()}#nothing", SCHEMA)


@pytest.mark.parametrize("name", ["coded", "grouped", "counted"])
@pytest.mark.parametrize("where", ["sqlite", "postgresql"])
def test_a_table_may_be_called_like_a_step_of_a_query(
    where: str, name: str, tmp_path: Path
) -> None:
    rows = people(200)
    if where == "sqlite":
        LOCAL["sqlite"](rows, tmp_path)
        with closing(sqlite3.connect(tmp_path / "rows.db")) as connection:
            connection.execute(f"ALTER TABLE people RENAME TO {name}")
        source = database(f"sqlite://{tmp_path / 'rows.db'}", name)
    else:
        url = postgres().new_database()
        change(url, lambda cursor: cursor.adbc_ingest(name, rows))
        source = database(f"{url}#{name}")
    here, there = pcor.Table(rows, SCHEMA), pcor.Table(source, SCHEMA)
    for rule in (pcor.LOF(k=3, threshold=1.2), pcor.Grubbs()):
        expected, found = (pcor.matching_contexts(table, 3, rule) for table in (here, there))
        assert found.masks.tolist() == expected.masks.tolist()


@pytest.mark.parametrize("kind", ["numeric(12, 2)", "real", "integer"])
def test_every_numeric_type_of_postgresql_is_a_metric(kind: str) -> None:
    url = SERVERS["postgresql"](people(80), Path())
    change(
        url.partition("#")[0],
        lambda cursor: cursor.execute(
            f"CREATE VIEW other AS SELECT key, job, year, age, pay::{kind} FROM people"  # noqa: S608
        ),
    )
    table = pcor.Table(url.replace("#people", "#other"), SCHEMA)
    assert int(table.cells.cell_counts.sum()) == 80
    assert isinstance(table.pushdown.engine, DatabaseEngine)  # type: ignore[union-attr]


@pytest.mark.skipif("PCOR_DATA" not in os.environ, reason="needs the real tables: set PCOR_DATA")
@pytest.mark.parametrize("server", list(SERVERS))
def test_coe_on_a_real_table_is_the_same(server: str, tmp_path: Path) -> None:
    rows = parquet.read_table(Path(os.environ["PCOR_DATA"]) / "salary_11k.parquet")
    rows = rows.append_column("key", pa.array(np.arange(len(rows))))
    schema = with_id(pcor.Schema.from_file(Path(os.environ["PCOR_DATA"]) / "salary_11k.toml"))
    memory, table = pcor.Table(rows, schema), pcor.Table(SERVERS[server](rows, tmp_path), schema)
    salaries = np.argsort(rows["salary"].to_numpy())
    for key, detector in zip(
        salaries[[-1, -20, -300]].tolist(), ["lof", "grubbs", "histogram"], strict=True
    ):
        expected = pcor.matching_contexts(memory, key, detector)
        assert np.array_equal(pcor.matching_contexts(table, key, detector).masks, expected.masks)


def with_id(schema: pcor.Schema) -> pcor.Schema:
    declared: dict[str, Any] = schema.to_dict()
    declared["dataset"]["id"] = "key"
    return pcor.Schema.from_dict(declared)
