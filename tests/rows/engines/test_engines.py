"""Rows that stay in an engine on this machine give the same answers as the same rows in memory."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pcor
from pcor.errors import RecordError, SourceError, TooLarge
from pcor.public.window import Window
from pcor.rows.cell_table import CellTable
from pcor.rows.queries.nearest import Layers
from pcor.rows.remote import RemoteCellTable
from pcor.search.coe import outlier_rows
from pcor.search.validity import Validity
from tests.helpers.engines import LOCAL, SCHEMA, people
from tests.helpers.same_rows import same_coe

DETECTORS = [
    pcor.LOF(k=5),
    pcor.Grubbs(tail="upper"),
    pcor.Grubbs(tail="lower"),
    pcor.Grubbs(),
    pcor.Histogram(rare=0.02),
    pcor.Tail(),
    pcor.Tail(tail="lower"),
    pcor.Neighbourhood(50.0),
    pcor.RareBin([500, 1500], 0.1),
    pcor.LOF(k=5, ties="all"),
]


@pytest.fixture(scope="module", params=list(LOCAL))
def table(
    request: pytest.FixtureRequest, rows: pa.Table, tmp_path_factory: pytest.TempPathFactory
) -> pcor.Table:
    return pcor.Table(LOCAL[request.param](rows, tmp_path_factory.mktemp("rows")), SCHEMA)


def sides(cells: CellTable, value: float, rows: int) -> dict[tuple[int, bool], list[float]]:
    """Return, for each cell's bits and side, the nearest metrics: a twin that sorts rows."""
    found: dict[tuple[int, bool], list[float]] = defaultdict(list)
    for required, metric, count in zip(cells.required, cells.values, cells.counts, strict=True):
        found[int(required[0]), bool(metric < value)] += [float(metric)] * int(count)
    return {
        (cell, below): sorted(metrics, reverse=below)[:rows]
        for (cell, below), metrics in found.items()
    }


@pytest.mark.parametrize("detector", DETECTORS, ids=lambda d: f"{d.name}-{getattr(d, 'tail', '')}")
def test_coe_is_the_same_as_in_memory(
    table: pcor.Table, rows: pa.Table, detector: pcor.detectors.Detector
) -> None:
    memory = pcor.Table(rows, SCHEMA)
    for place in (0, 50, 333):
        assert same_coe(table, memory, int(rows["key"][place].as_py()), detector)


def test_a_release_differs_in_nothing_but_the_engine(table: pcor.Table, rows: pa.Table) -> None:
    drawn = [
        pcor.release(t, 3, 1.0, "lof", chooser=pcor.testing.seeded(1)).to_dict()
        for t in (table, pcor.Table(rows, SCHEMA))
    ]
    engines = [certificate.pop("engine") for certificate in drawn]
    assert drawn[0] == drawn[1]
    assert engines[0].split()[0] in ("duckdb", "polars", "sqlite")
    assert engines[1].startswith("numpy ")


def test_differential_privacy_for_everyone_needs_no_pairs(table: pcor.Table) -> None:
    assert table.pushdown is not None
    narrow = pcor.Table(table.pushdown.engine, SCHEMA, pairs=400)
    released = pcor.release(narrow, 3, 1.0, "tail", guarantee="dp")
    assert released.promise.guarantee == pcor.PureDP()


def test_outliers_are_the_same_as_in_memory(table: pcor.Table, rows: pa.Table) -> None:
    expected = pcor.outliers(pcor.Table(rows, SCHEMA), "job is CEO; any year; any age", "grubbs")
    assert expected
    assert pcor.outliers(table, "job is CEO; any year; any age", "grubbs") == sorted(expected)


def test_outliers_come_with_their_metrics_in_one_question(
    table: pcor.Table, rows: pa.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many distinct metrics they have."""
    many = pcor.Tail(share=0.1)
    expected = outlier_rows(pcor.Table(rows, SCHEMA), detector=many)
    assert len({value for _, value in expected}) > 2
    engine = table.pushdown.engine  # type: ignore[union-attr]
    run = Mock(wraps=engine.run)
    monkeypatch.setattr(engine, "run", run)
    found = outlier_rows(table, detector=many)
    assert found == sorted(expected, key=lambda row: (-row[1], row[0]))
    assert len([asked for asked in run.call_args_list if "wanted" in asked.args[0]]) == 1


@pytest.mark.parametrize("key", [3, "10", 4196])
def test_a_record_is_found_by_its_id(table: pcor.Table, rows: pa.Table, key: int | str) -> None:
    found, expected = table.record(key), pcor.Table(rows, SCHEMA).record(key)
    assert (found.key, found.value, found.space.fixed) == (
        expected.key,
        expected.value,
        expected.space.fixed,
    )


@pytest.mark.parametrize("key", [4, "003", "it's", 2**70, -1])
def test_a_key_that_names_nobody_is_refused(table: pcor.Table, key: int | str) -> None:
    with pytest.raises(RecordError, match="no record with key"):
        table.record(key)


def test_an_id_that_is_not_unique_is_refused(tmp_path: Path, rows: pa.Table) -> None:
    twice = pa.concat_tables([rows, rows.slice(0, 1)])
    for maker in LOCAL.values():
        folder = tmp_path / maker.__name__
        folder.mkdir()
        with pytest.raises(RecordError, match="more than one row"):
            pcor.Table(maker(twice, folder), SCHEMA).record(3)


@pytest.mark.parametrize("engine", ["duckdb", "polars", "files"])
def test_a_row_number_counts_all_rows_in_their_order(
    engine: str, rows: pa.Table, tmp_path: Path
) -> None:
    schema = pcor.Schema(
        metric="pay", attributes={"job": {"values": ["CEO", "Lawyer"], "outside": "drop"}}
    )
    table, memory = pcor.Table(LOCAL[engine](rows, tmp_path), schema), pcor.Table(rows, schema)
    jobs = rows["job"].to_pylist()
    for place in (0, 5, 599):
        if jobs[place] in ("CEO", "Lawyer"):
            assert table.record(place).value == memory.record(place).value
        else:
            with pytest.raises(RecordError):
                table.record(place)
    for place in (600, 10**9):
        with pytest.raises(RecordError, match="rows are counted from 0"):
            table.record(place)
    assert pcor.outliers(table, detector="grubbs") == pcor.outliers(memory, detector="grubbs")


# -- nearest rows --------------------------------------------------------------------------------


def crowds() -> pa.Table:
    """One cell with nine rows in ten: a pile, a crowd behind a gap, and a few near the record."""
    numbers = np.random.default_rng(5)
    count = 6000
    pay = np.concatenate(
        [
            np.full(1500, 700.0),
            900_000 + numbers.uniform(0, 1, 3000),
            numbers.normal(1000, 1, 900),
            numbers.normal(0, 1e6, 600),
        ]
    )
    job = np.where(np.arange(count) % 10 == 3, "Lawyer", "CEO")
    return pa.table({"key": np.arange(count), "job": job, "pay": pay})


CROWDED = pcor.Schema(metric="pay", attributes={"job": ["CEO", "Lawyer"]}, id="key")


@pytest.mark.parametrize("engine", list(LOCAL))
def test_a_hot_cell_piles_and_crowds_are_read_by_their_nearest_rows(
    engine: str, tmp_path: Path
) -> None:
    rows = crowds()
    table, memory = pcor.Table(LOCAL[engine](rows, tmp_path), CROWDED), pcor.Table(rows, CROWDED)
    for value in (700.0, 900_000.5, 1e9, -1e9, 50_000.0, 1000.0):
        assert isinstance(table.cells, RemoteCellTable)
        seen = table.cells.seen_through(Window(rows=41), value)
        assert sides(seen, value, 41) == sides(memory.cells.in_memory(), value, 41)
        assert len(seen.values) <= 2 * 2 * 41
    assert same_coe(table, memory, 1501, "lof")


@given(
    st.lists(
        st.tuples(st.integers(0, 1), st.floats(-1e6, 1e6) | st.integers(-3, 3)),
        min_size=1,
        max_size=60,
    ),
    st.floats(-2e6, 2e6) | st.integers(-4, 4),
    st.integers(1, 9),
)
def test_layers_take_in_the_wanted_rows(
    rows: list[tuple[int, float]], value: float, wanted: int
) -> None:
    """Whatever the layers, a bound takes in the wanted rows of a side or all that it has."""
    cell, metric = (np.array(part, dtype=float) for part in zip(*rows, strict=True))
    layer = np.floor(metric / 7)
    keys = sorted({*zip(cell.tolist(), layer.tolist(), strict=True)})
    inside = [metric[(cell == c) & (layer == n)] for c, n in keys]
    layers = Layers.sorted(
        np.array([int(c) for c, _ in keys]),
        np.array([len(some) for some in inside]),
        np.array([some.min() for some in inside]),
        np.array([some.max() for some in inside]),
    )
    (low, high), _ = layers.bounds(float(value), wanted, 2)
    for number in {int(c) for c in cell}:
        own = metric[cell == number]
        for side, bound in ((own[own < value], low), (own[own >= value], high)):
            taken = side[(side >= low[number]) & (side <= high[number])]
            del bound
            assert len(taken) >= min(wanted, len(side))


def test_what_comes_back_does_not_grow_with_the_rows() -> None:
    returned = []
    for count in (20_000, 200_000):
        relation = duckdb.sql(
            "SELECT i AS key, 'job ' || i % 3 AS job, "  # noqa: S608
            f"1000 + 100 * ln(1 + hash(i) % 1000003) AS pay FROM range({count}) t(i)"
        )
        schema = pcor.Schema(
            metric="pay", attributes={"job": ["job 0", "job 1", "job 2"]}, id="key"
        )
        table = pcor.Table(relation, schema)
        table.cells_for(table.record(17).value, pcor.LOF())
        returned.append(table.pushdown.bytes_returned)  # type: ignore[union-attr]
    assert returned[1] <= 1.01 * returned[0]


def test_records_that_are_prepared_together_share_the_pass(rows: pa.Table, tmp_path: Path) -> None:
    for engine in ("duckdb", "polars"):
        table = pcor.Table(LOCAL[engine](rows, tmp_path), SCHEMA)
        memory = pcor.Table(rows, SCHEMA)
        records = [table.record(key) for key in (3, 10, 353)]
        for detector in (pcor.LOF(k=5), pcor.Tail(), pcor.Grubbs(tail="upper")):
            table.prepare(records, detector)
            asked: list[str] = []
            run = table.pushdown.engine.run  # type: ignore[union-attr]

            def counted(query: str, run: Any = run, asked: list[str] = asked) -> pa.Table:
                asked.append(query)
                return run(query)

            table.pushdown.engine.run = counted  # type: ignore[union-attr,method-assign]
            found = [Validity(table, r, detector) for r in records]
            assert all(v.cell_moments is not None for v in found)
            assert asked == []
            table.pushdown.engine.run = run  # type: ignore[union-attr,method-assign]
            assert same_coe(table, memory, 10, detector)


# -- refusals ------------------------------------------------------------------------------------


def test_too_many_pairs_are_refused_with_the_setting_and_without_their_number(
    rows: pa.Table, tmp_path: Path
) -> None:
    table = pcor.Table(LOCAL["duckdb"](rows, tmp_path), SCHEMA, pairs=40)
    with pytest.raises(TooLarge, match=r"more than 40 .*pairs= \(--pairs\)") as caught:
        pcor.matching_contexts(table, 3, "grubbs")
    assert "600" not in str(caught.value)
    assert len(pcor.matching_contexts(table, 3, pcor.Tail())) > 0
    with pytest.raises(TooLarge, match="cells, combinations") as caught:
        pcor.Table(LOCAL["duckdb"](rows, tmp_path), SCHEMA, pairs=5)
    assert "detector" not in str(caught.value)  # none needs fewer cells


def test_a_part_is_never_taken_for_the_whole(table: pcor.Table) -> None:
    """A table with some pairs asks for whole populations where they are."""
    assert isinstance(table.cells, RemoteCellTable)
    seen = table.cells.seen_through(Window(low=2400.0), 2500.0)
    mask = table.words([(1 << SCHEMA.width) - 1])[0]
    assert int(seen.distribution(mask)[1].sum()) == 600
    assert int(seen.inside(mask).distribution(mask)[1].sum()) == 600


def test_a_record_that_has_gone_meanwhile_is_noticed() -> None:
    with duckdb.connect() as connection:
        connection.execute(
            "CREATE TABLE people AS SELECT i AS key, 'CEO' AS job, i / 7 AS pay FROM range(90) t(i)"
        )
        schema = pcor.Schema(metric="pay", attributes={"job": ["CEO"]}, id="key")
        table = pcor.Table(connection.table("people"), schema)
        record = table.record(50)
        connection.execute("DELETE FROM people WHERE key = 50")
        with pytest.raises(SourceError, match="rows changed"):
            Validity(table, record, pcor.LOF())


def test_work_on_single_rows_is_refused_in_an_engine(table: pcor.Table) -> None:
    with pytest.raises(SourceError, match="rows have to be in memory"):
        table.rows  # noqa: B018


def test_a_broken_query_tells_nothing_of_the_rows() -> None:
    frame = pl.LazyFrame({"job": ["MARK"], "pay": ["MARK"]}).with_columns(pl.col("pay").cast(int))
    schema = pcor.Schema(metric="pay", attributes={"job": ["MARK"]})
    with pytest.raises(SourceError, match="polars could not answer") as caught:
        pcor.Table(frame, schema)
    assert "MARK" not in str(caught.value)
    assert caught.value.__suppress_context__


@pytest.mark.parametrize(
    "said", [RuntimeError("Query interrupted"), duckdb.InterruptException("Interrupted!")]
)
def test_an_interrupt_inside_duckdb_is_an_interrupt_and_no_failure(said: Exception) -> None:
    table = pcor.Table(duckdb.from_arrow(people(60)), SCHEMA)
    assert table.pushdown is not None
    table.pushdown.engine._relation = Mock(query=Mock(side_effect=said))  # type: ignore[attr-defined]
    with pytest.raises(KeyboardInterrupt):
        pcor.release(table, 3, 1)


def test_a_query_that_fails_ends_the_snapshot_of_a_database(rows: pa.Table, tmp_path: Path) -> None:
    """Whether the transaction outlived it is not known, so no later answer may be mixed in."""
    table = pcor.Table(LOCAL["sqlite"](rows, tmp_path), SCHEMA)
    assert table.pushdown is not None
    assert table.record(3).key == 3
    with pytest.raises(Exception, match="no such table"):
        table.pushdown.engine.run("SELECT * FROM nowhere")
    with pytest.raises(SourceError, match=r"make the table anew: pcor\.Table"):
        table.record(3)


def test_a_missing_column_is_refused_as_in_memory(table: pcor.Table) -> None:
    schema = pcor.Schema(metric="pau", attributes={"job": ["CEO"]})
    source = pl.LazyFrame({"job": ["CEO"], "pay": [1.0]})
    with pytest.raises(SourceError, match="no column 'pau'") as refused:
        pcor.Table(source, schema)
    assert refused.value.__notes__ == ["it has: job, pay; did you mean 'pay'?"]
    assert "2500" not in repr(table)
