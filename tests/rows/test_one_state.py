"""Every release is a function of one state of the rows, also where rows change between two answers.

A table is made, then its rows change, then somebody asks. Either the answer has exactly the chances
of the rows that the table was made of, or it is refused before the charge. Chances are exact
(``pcor.audit``), so nothing here is sampled.
"""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from contextlib import closing
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import pcor
from pcor.audit.exact import exact_log_chances, largest_log_ratio
from pcor.errors import ParameterError, SourceError
from pcor.ledger import Ledger
from tests.helpers.changing_rows import (
    CHANGES,
    DP,
    MAKERS,
    RECORD,
    ROUNDING,
    SCHEMA,
    Median,
    Source,
    people,
    relation_source,
    spark_source,
    with_row,
)
from tests.helpers.engines import LOCAL, SERVERS, change

# PySpark before 4.2 leaves its sockets to the garbage collector.
pytestmark = pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")


@pytest.fixture(params=list(MAKERS))
def source(request: pytest.FixtureRequest, tmp_path: Path) -> Source:
    return MAKERS[request.param](people(), tmp_path)


# -- one state -------------------------------------------------------------------------------------


def check_one_state(table: pcor.Table, rows: pa.Table, **options: Any) -> bool:
    """Check that a release is that of these rows, or refused for free; tell whether it is."""
    budget = pcor.Budget(1)
    try:
        pcor.release(table, RECORD, 1, budget=budget, **options)
    except SourceError:
        assert budget.left == 1
        with pytest.raises(SourceError):
            exact_log_chances(table, RECORD, 1, **options)
        return False
    here = exact_log_chances(table, RECORD, 1, **options)
    expected = exact_log_chances(pcor.Table(rows, SCHEMA), RECORD, 1, **options)
    assert largest_log_ratio(here, expected) <= ROUNDING
    return True


WAYS: list[dict[str, Any]] = [
    DP,
    {"detector": pcor.LOF(k=3, min_population=5)},
    {"detector": "grubbs:tail=upper"},
]


def test_rows_that_stay_as_they_were_are_answered_about(source: Source) -> None:
    table = source.table()
    for options in WAYS:
        assert check_one_state(table, people(), **options)


@pytest.mark.parametrize("changed", CHANGES)
def test_a_row_that_changes_after_the_table_was_made_is_refused_before_the_charge(
    source: Source, changed: str
) -> None:
    rows = people()
    tables = [source.table() for _ in WAYS]  # a table that was asked may remember what it saw
    source.replace(CHANGES[changed](rows))
    for table, options in zip(tables, WAYS, strict=True):
        refused = not check_one_state(table, rows, **options)
        # In a cell that had nobody, nobody may be looked for.
        assert refused or changed == "a row in a cell that had nobody"
    if not source.made_once:  # who makes the table anew is answered about the rows of now
        anew = source.table()
        for options in WAYS:
            assert check_one_state(anew, CHANGES[changed](rows), **options)


@pytest.mark.parametrize(
    ("options", "names"),
    [
        (DP, list(CHANGES)),
        ({"detector": pcor.LOF(k=3, min_population=5)}, ["another metric", "a swap"]),
    ],
    ids=["dp", "lof"],
)
def test_spark_refuses_rows_that_change_before_the_charge(
    options: dict[str, Any], names: list[str], tmp_path: Path
) -> None:
    source = spark_source(people(), tmp_path)
    for name, changed in ((name, CHANGES[name]) for name in names):
        source.replace(people())
        table = source.table()
        source.replace(changed(people()))
        refused = not check_one_state(table, people(), **options)
        assert refused or name == "a row in a cell that had nobody"


@pytest.mark.parametrize("changed", CHANGES)
@pytest.mark.parametrize("maker", ["relation", "file", "csv", "folder", "scan"])
def test_all_that_asks_notices_a_change(maker: str, changed: str, tmp_path: Path) -> None:
    """All but what asks for nothing that has changed."""
    source = MAKERS[maker](people(), tmp_path)
    table = source.table()
    source.replace(CHANGES[changed](people()))
    for detector in (pcor.Histogram(), pcor.Grubbs(), pcor.Estimator(np.isnan), pcor.RareBin([5])):
        with pytest.raises(SourceError, match="the rows changed since the table was made"):
            pcor.matching_contexts(table, RECORD, detector)
    if changed != "a swap":  # all metrics together are the same then
        with pytest.raises(SourceError, match="rows changed"):
            table.distribution((1 << SCHEMA.width) - 1)
        with pytest.raises(SourceError, match="rows changed"):
            table.keys_in((1 << SCHEMA.width) - 1, np.array([1000.0]))


@pytest.mark.parametrize("maker", ["relation", "scan"])
def test_a_change_that_is_taken_back_is_noticed_all_the_same(maker: str, tmp_path: Path) -> None:
    """Each answer tells which rows it was computed from; no check before or after it could."""
    source = MAKERS[maker](people(), tmp_path)
    table = source.table()
    assert table.pushdown is not None
    engine = table.pushdown.engine
    run, asked = engine.run, 0

    def meanwhile(query: str) -> pa.Table:
        nonlocal asked
        asked += 1
        if "GROUP BY" in query:
            source.replace(with_row(people(), "CEO", "Ottawa", 1500.0))
        answer = run(query)
        source.replace(people())
        return answer

    engine.run = meanwhile  # type: ignore[method-assign]
    budget = pcor.Budget(1)
    for options in (DP, {"detector": pcor.LOF(k=3)}, {"detector": "grubbs"}):
        with pytest.raises(SourceError, match="rows changed"):
            pcor.release(table, RECORD, 1, budget=budget, **options)
    assert asked > 3
    assert budget.left == 1


def test_a_ledger_charges_nothing_for_rows_that_changed(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "books.db")
    ledger.set_budget("people", 5)
    source = relation_source(people(), tmp_path)
    table = source.table()
    ledger.release(table, RECORD, 1, dataset="people", **DP)
    source.replace(CHANGES["a row in the record's region"](people()))
    for record, options in ((1, DP), (RECORD, {"detector": pcor.LOF(k=3)})):
        with pytest.raises(SourceError, match="rows changed"):
            ledger.release(table, record, 1, dataset="people", **options)
    assert ledger.status("people").left == 4
    assert ledger.release(table, RECORD, 1, dataset="people", **DP)  # it was answered before


def test_a_batch_charges_nothing_for_rows_that_changed(tmp_path: Path) -> None:
    source = relation_source(people(), tmp_path)
    for options in (DP, {"detector": pcor.LOF(k=3)}, {"detector": "grubbs"}):
        source.replace(people())
        table, budget = source.table(), pcor.Budget(3)
        source.replace(CHANGES["a swap"](people()))
        with pytest.raises(SourceError, match="rows changed"):
            pcor.release_many(table, [0, 1, 2], 1, budget=budget, **options)
        assert budget.left == 3


@pytest.mark.parametrize(
    "options",
    [
        DP,
        {"detector": pcor.LOF(k=3, min_population=5)},
        {"detector": pcor.LOF(k=3, min_population=5), "utility": Median()},
        {"detector": "grubbs:tail=upper"},
        {"detector": pcor.Histogram(rare=0.1)},
        {"detector": pcor.Estimator(lambda values: values > 1400)},
    ],
    ids=["dp", "lof", "utility", "grubbs", "histogram", "estimator"],
)
@pytest.mark.parametrize("maker", ["relation", "scan"])
def test_nothing_is_read_after_the_charge_where_rows_may_change(
    maker: str, options: dict[str, Any], tmp_path: Path
) -> None:
    table = MAKERS[maker](people(), tmp_path).table()
    assert table.pushdown is not None
    engine = table.pushdown.engine
    run, events = engine.run, []

    def seen(query: str) -> pa.Table:
        events.append("read")
        return run(query)

    class Purse(pcor.Budget):
        def spend(self, *amounts: Fraction) -> None:
            super().spend(*amounts)
            events.append("charge")

    engine.run = seen  # type: ignore[method-assign]
    pcor.release(table, RECORD, 1, budget=Purse(1), **options)
    assert events[-1] == "charge"
    assert events.count("read") >= 2


def test_what_the_users_own_code_says_of_the_rows_is_paid_for(tmp_path: Path) -> None:
    """Were it free, one could ask for it."""

    class Failing(pcor.CountDetector):
        name = "failing"

        def in_region(self, values: Any, value: float) -> Any:
            del values, value
            raise ValueError("a cell: 990.0")

    for table in (relation_source(people(), tmp_path).table(), pcor.Table(people(), SCHEMA)):
        budget = pcor.Budget(1)
        with pytest.raises(ParameterError, match=r"failed with a ValueError.*paid for") as caught:
            pcor.release(table, RECORD, 1, Failing(), budget=budget)
        assert budget.left == 0
        assert "990" not in str(caught.value)


@pytest.mark.parametrize("maker", ["relation", "csv", "scan"])
def test_values_that_are_read_one_by_one_belong_to_the_same_rows(
    maker: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A year as text is judged value by value before the rows are counted."""
    years = np.random.default_rng(1).choice(["2019", "2020.0"], 60)
    rows = people().append_column("year", pa.array(years))
    later = rows.set_column(4, "year", pa.array([*years[:-1], "2e3"]))
    schema = pcor.Schema(
        metric="pay", attributes={"year": {"values": [2000, 2019, 2020], "outside": "drop"}}
    )
    source = MAKERS[maker](rows, tmp_path)
    assert int(pcor.Table(source.given, schema, memory=source.memory).cells.cell_counts.sum()) == 60
    from pcor.rows.queries import sql_encoding

    distinct = sql_encoding._distinct_values

    def then_another_arrives(*args: Any) -> Any:
        found = distinct(*args)
        source.replace(later)
        return found

    monkeypatch.setattr(sql_encoding, "_distinct_values", then_another_arrives)
    with pytest.raises(SourceError, match="rows changed"):
        pcor.Table(source.given, schema, memory=source.memory)


# -- engines that keep one state -------------------------------------------------------------------


WRITE = """
import sqlite3, sys
with sqlite3.connect(sys.argv[1], timeout=0, isolation_level=None) as connection:
    connection.execute("INSERT INTO people SELECT key + 1000, job, city, pay + 500 FROM people")
"""


@pytest.mark.parametrize("mode", ["delete", "wal"])
def test_sqlite_answers_from_one_snapshot(mode: str, tmp_path: Path) -> None:
    """With a log, others write beside it; without, they wait until the table is gone."""
    given = LOCAL["sqlite"](people(), tmp_path)
    with closing(sqlite3.connect(tmp_path / "rows.db")) as connection:
        connection.execute(f"PRAGMA journal_mode = {mode}")
    table = pcor.Table(given, SCHEMA)
    done = subprocess.run(  # noqa: S603 (our own words)
        [sys.executable, "-c", WRITE, str(tmp_path / "rows.db")], capture_output=True, text=True
    )
    assert (done.returncode == 0) == (mode == "wal"), done.stderr
    assert mode == "wal" or "locked" in done.stderr
    for options in (DP, {"detector": pcor.LOF(k=3, min_population=5)}, {"detector": "grubbs"}):
        assert check_one_state(table, people(), **options)


def test_postgresql_answers_from_one_snapshot() -> None:
    url = SERVERS["postgresql"](people(), Path())
    table = pcor.Table(url, SCHEMA)
    more = "INSERT INTO people SELECT key + 1000, job, city, pay + 500 FROM people"
    change(url.partition("#")[0], lambda cursor: cursor.execute(more))
    for options in (DP, {"detector": pcor.LOF(k=3, min_population=5)}, {"detector": "grubbs"}):
        assert check_one_state(table, people(), **options)
