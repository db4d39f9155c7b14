"""What facts need of the rows: the same numbers from every engine, and of one state of the rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import pcor
from pcor.errors import SourceError, TooLarge
from pcor.releasing.fact_draws import FactRows
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


@pytest.mark.parametrize("facts", ["rank:low", "median"])
@pytest.mark.parametrize("maker", ["relation", "file", "csv", "folder", "scan"])
def test_facts_of_rows_that_changed_after_the_draws_rows_were_read_are_refused(
    maker: str, facts: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The change comes at the last moment: all that the draw needs is read, the facts' is not."""
    rows = changing_people()
    source = MAKERS[maker](rows, tmp_path)
    read = FactRows.read.__func__  # type: ignore[attr-defined]
    assert not refused_for_free(changing_table(source), facts=facts, **DP)
    for name, change in CHANGES.items():
        source.replace(rows)
        table = changing_table(source)

        def late(
            cls: type[FactRows], asked: Any, of: pcor.Table, record: Record, change: Any = change
        ) -> FactRows:
            source.replace(change(rows))
            found: FactRows = read(cls, asked, of, record)
            return found

        monkeypatch.setattr(FactRows, "read", classmethod(late))
        assert refused_for_free(table, facts=facts, **DP), name
        monkeypatch.undo()


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
