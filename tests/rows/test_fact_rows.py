"""What facts need of the rows: the same numbers from every engine, and of one state of the rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import pcor
from pcor.errors import SourceError, TooLarge
from pcor.public.grid import MetricGrid
from pcor.releasing.fact_draws import FactRows
from pcor.releasing.run import look, prepare
from pcor.rows.queries.queries import Pairs, Queries
from pcor.rows.queries.row_pass import MOST_KEPT, RowPass
from pcor.rows.table import Record
from tests.helpers.changing_rows import CHANGES, DP, MAKERS, RECORD, Source
from tests.helpers.changing_rows import SCHEMA as CHANGING
from tests.helpers.changing_rows import people as changing_people
from tests.helpers.engines import LOCAL, SCHEMA, SERVERS, people
from tests.helpers.same_rows import fact_numbers

FACTS = ["count", "rank", "median", "quantile:0.9"]

# Numbers lie below it, above it, on its points and, with 0.05 between, halfway between two.
GRID = {"low": 300, "high": 1899.9, "step": 0.1}


def with_grid(schema: pcor.Schema, **grid: float) -> pcor.Schema:
    declared = schema.to_dict()
    return pcor.Schema.from_dict(declared | {"metric": declared["metric"] | grid})


PAID = with_grid(SCHEMA, **GRID)


@pytest.mark.parametrize("engine", [*LOCAL, *SERVERS])
def test_every_engine_has_the_numbers_of_the_rows_in_memory(engine: str, tmp_path: Path) -> None:
    """The true numbers decide the distribution of the facts, and nothing else does."""
    rows = people(300)
    rows = rows.set_column(4, "pay", pa.array(rows["pay"].to_numpy() + 0.05))
    here = pcor.Table(rows, PAID)
    there = pcor.Table({**LOCAL, **SERVERS}[engine](rows, tmp_path), PAID)
    for detector in (pcor.LOF(k=5), pcor.Tail(tail="lower")):
        plan = pcor.plan(PAID, 1, detector=detector, facts=FACTS)
        read = [FactRows.read(plan.facts, table, table.record(3)) for table in (here, there)]
        own = here.record(3).space.fixed
        for mask in (own, (1 << PAID.width) - 1, own | 0b1010101010):
            numbers = [fact_numbers(one, plan.facts, mask) for one in read]
            assert numbers[0] == numbers[1]


def test_a_coarser_grid_adds_up(tmp_path: Path) -> None:
    rows = people(300)
    full = (1 << PAID.width) - 1
    for source in (rows, LOCAL["duckdb"](rows, tmp_path)):
        table = pcor.Table(source, with_grid(SCHEMA, low=0, high=3000, step=1000))
        grid = table.schema.metric.grid
        assert grid is not None
        counts = table.cells.on_grid(grid, table.words([full])[0])
        values = np.clip(np.floor(rows["pay"].to_numpy() / 1000 + 0.5), 0, 3)
        assert counts.tolist() == np.bincount(values.astype(int), minlength=4).tolist()


def test_more_pairs_than_an_engine_may_hand_over_are_refused_before_the_charge(
    tmp_path: Path,
) -> None:
    table = pcor.Table(LOCAL["duckdb"](people(300), tmp_path), PAID, pairs=60)
    budget = pcor.Budget(1)
    with pytest.raises(TooLarge, match="a cell and a point of the metric's grid"):
        pcor.release(table, 3, 1, pcor.LOF(k=5), facts="median", budget=budget)
    assert budget.left == 1


# -- one state -------------------------------------------------------------------------------------

CHANGING_GRID = with_grid(CHANGING, low=800, high=1500, step=10)


def changing_table(source: Source) -> pcor.Table:
    return pcor.Table(source.given, CHANGING_GRID, memory=source.memory)


def refused_for_free(table: pcor.Table, **options: Any) -> bool:
    budget = pcor.Budget(1)
    try:
        pcor.release(table, RECORD, 1, budget=budget, **options)
    except SourceError:
        assert budget.left == 1
        return True
    assert budget.left == 0
    return False


LOF = pcor.LOF(k=3, min_population=5)


@pytest.mark.parametrize("facts", ["rank:low", "median"])
@pytest.mark.parametrize("maker", ["relation", "file", "csv", "folder", "scan"])
def test_rows_that_changed_before_the_draws_and_the_facts_rows_are_read_are_refused(
    maker: str, facts: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The change comes at the last moment: the record is looked up, and nothing else is read."""
    rows = changing_people()
    source = MAKERS[maker](rows, tmp_path)
    assert not refused_for_free(changing_table(source), facts=facts, **DP)
    prepare = pcor.Table.prepare
    for name, change in CHANGES.items():
        source.replace(rows)
        table = changing_table(source)

        def late(of: pcor.Table, *asked: Any, change: Any = change) -> None:
            source.replace(change(rows))
            prepare(of, *asked)

        monkeypatch.setattr(pcor.Table, "prepare", late)
        assert refused_for_free(table, facts=facts, **DP), name
        monkeypatch.undo()


@pytest.mark.parametrize("facts", ["rank:low", "median", "count,rank,median"])
@pytest.mark.parametrize("detector", [LOF, pcor.Tail(share=0.2)], ids=["lof", "tail"])
@pytest.mark.parametrize("maker", ["relation", "file", "scan"])
def test_what_facts_need_is_read_with_what_the_draw_needs(
    maker: str,
    detector: pcor.Detector,
    facts: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """So a change in between cannot come: the answer is that of the rows as they were."""
    rows = changing_people()
    source = MAKERS[maker](rows, tmp_path)
    memory = pcor.Table(rows, CHANGING_GRID)
    plan = pcor.plan(CHANGING_GRID, 1, detector=detector, facts=facts)
    read = FactRows.read.__func__  # type: ignore[attr-defined]
    full = (1 << CHANGING_GRID.width) - 1
    expected = FactRows.read(plan.facts, memory, memory.record(RECORD))
    for change in CHANGES.values():
        source.replace(rows)
        table = changing_table(source)

        def late(
            cls: type[FactRows], asked: Any, of: pcor.Table, record: Record, change: Any = change
        ) -> FactRows:
            source.replace(change(rows))
            found: FactRows = read(cls, asked, of, record)
            return found

        monkeypatch.setattr(FactRows, "read", classmethod(late))
        found = look(plan, table, RECORD).facts
        monkeypatch.undo()
        assert fact_numbers(found, plan.facts, full) == fact_numbers(expected, plan.facts, full)


def test_one_pass_over_the_rows_is_enough_for_the_draw_and_all_facts(tmp_path: Path) -> None:
    table = changing_table(MAKERS["file"](changing_people(), tmp_path))
    record = table.record(RECORD)
    assert table.pushdown is not None
    engine: Any = table.pushdown.engine
    batches, passes = engine.batches, []

    def noted(query: str) -> Any:
        passes.append(query)
        return batches(query)

    engine.batches = noted
    engine.run = None  # nothing else is asked
    plan = pcor.plan(CHANGING_GRID, 1, detector=LOF, facts=FACTS)
    prepare(plan, table, [record])
    assert len(passes) == 1
    numbers = fact_numbers(FactRows.read(plan.facts, table, record), plan.facts, (1 << 5) - 1)
    assert len(numbers) == len(FACTS)
    assert len(table.cells_for(record.value, LOF).values) > 0
    assert len(passes) == 1


@pytest.mark.parametrize("engine", ["duckdb", "dataset"])
@given(seed=st.integers(0, 2**32 - 1), wanted=st.integers(1, 9), ranges=st.integers(0, 2))
@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_rows_counted_here_are_those_that_the_engine_counts(
    engine: str, tmp_path: Path, seed: int, wanted: int, ranges: int
) -> None:
    rows = people(200, seed)
    rows = rows.set_column(4, "pay", pa.array(rows["pay"].to_numpy() + 0.05))
    pushdown = pcor.Table(LOCAL[engine](rows, tmp_path), PAID).pushdown
    grid = PAID.metric.grid
    assert pushdown is not None
    assert grid is not None
    values = [*rows["pay"].to_numpy()[:2], 1000.0]
    ends = [(values[0], np.inf), (900.0, values[1])][:ranges]
    here = pushdown.counted(ends, values, wanted, grid)
    there = pushdown.counted(ends, values, wanted)
    assert there.on_grid is None
    assert here.on_grid is not None
    assert np.array_equal(here.counts, there.counts)
    for ours, theirs in zip(here.nearest, there.nearest, strict=True):
        assert by_cell(ours) == by_cell(theirs)
    assert by_cell(here.on_grid) == by_cell(pushdown.on_grid(grid))


def by_cell(pairs: Pairs) -> list[tuple[int, float, int]]:
    return sorted(zip(*(column.tolist() for column in pairs), strict=True))


def test_an_array_that_would_be_too_large_is_not_made(tmp_path: Path) -> None:
    """The engine then groups by point itself: what decides is public."""
    pushdown = pcor.Table(LOCAL["duckdb"](people(50), tmp_path), PAID).pushdown
    grid = PAID.metric.grid
    assert pushdown is not None
    assert grid is not None
    queries = pushdown._questions
    cells = 4 * 3 * 3
    assert RowPass.empty(queries, grid, 0, 0, 1) is not None
    assert RowPass.empty(queries, grid, 0, MOST_KEPT // cells // 2 // 41 + 1, 41) is None
    few, many = (Queries(pushdown.engine, with_jobs(jobs)) for jobs in (100, 200))
    fine = MetricGrid(0, 99_000, 1)
    assert RowPass.empty(few, fine, 0, 0, 1) is not None
    assert RowPass.empty(many, fine, 0, 0, 1) is None


def test_all_that_is_kept_of_the_cells_counts(tmp_path: Path) -> None:
    """A batch has a range for each of 64 records, which may be more than a grid has points."""
    pushdown = pcor.Table(LOCAL["duckdb"](people(50), tmp_path), PAID).pushdown
    assert pushdown is not None
    queries, grid = Queries(pushdown.engine, with_jobs(10_000)), MetricGrid(0, 99, 1)
    kept = RowPass.empty(queries, grid, 64, 10, 60)
    assert kept is not None
    assert sum(of.size for of in vars(kept).values() if isinstance(of, np.ndarray)) <= MOST_KEPT
    for ranges, values in ((2_000, 0), (0, 16), (400, 12)):
        assert RowPass.empty(queries, grid, ranges, values, 60) is None


@pytest.mark.parametrize("metric", [np.nan, np.inf, None])
def test_a_metric_that_is_no_number_by_now_reaches_no_kernel(
    metric: float | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What counts points checks no place of its array."""
    pushdown = pcor.Table(LOCAL["duckdb"](people(50), tmp_path), PAID).pushdown
    grid = PAID.metric.grid
    assert pushdown is not None
    assert grid is not None
    queries = pushdown._questions
    kept = RowPass.empty(queries, grid, 1, 1, 1)
    assert kept is not None
    columns: dict[str, Any] = {"cell": pa.array([0, 1], pa.int32()), "x": [1000.0, metric]}
    batch = pa.record_batch(columns | {name: [1, 2] for name in queries.marks})
    monkeypatch.setattr(queries, "batches", lambda _: iter([batch]))
    with pytest.raises(SourceError, match="rows changed"):
        kept.read(queries, grid, [(0.0, np.inf)], [1000.0])
    assert not kept.points.any()
    assert not kept.marks.any()


def with_jobs(count: int) -> pcor.Schema:
    jobs = {"job": [f"job {place}" for place in range(count)]}
    return pcor.Schema(metric="pay", attributes=jobs, id="key")


def test_a_batch_reads_facts_before_any_charge(tmp_path: Path) -> None:
    rows = changing_people()
    source = MAKERS["relation"](rows, tmp_path)
    table = changing_table(source)
    assert table.pushdown is not None
    asked: list[str] = []
    run = table.pushdown.engine.run

    class Budget(pcor.Budget):
        def charge(self, request: Any) -> Any:
            asked.append("charge")
            return super().charge(request)

    def noted(query: str) -> pa.Table:
        asked.append("query")
        return run(query)

    table.pushdown.engine.run = noted  # type: ignore[method-assign]
    results = pcor.release_many(table, [0, 1, 2], 1, budget=Budget(5), facts=FACTS, **DP)
    assert len(results.releases) == 3
    assert "query" not in asked[asked.index("charge") :]
