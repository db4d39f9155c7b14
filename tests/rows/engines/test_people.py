"""Whose rows are whose is asked where the rows are: the refusal, the choice and the record held."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv

import pcor
from pcor.errors import ParameterError, RecordError, SourceError, TooLarge
from pcor.releasing.fact_draws import FactRows
from pcor.releasing.run import prepare
from pcor.rows.engines.duck import relation_engine
from pcor.search.validity import Validity
from tests.helpers import naive
from tests.helpers.engines import LOCAL, SCHEMA, SERVERS, people
from tests.helpers.same_rows import fact_numbers, same_coe

# PySpark before 4.2 leaves its sockets to the garbage collector.
pytestmark = pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")

BOUND = 3
DETECTORS = [
    pcor.LOF(k=5),
    pcor.Grubbs(tail="upper"),
    pcor.Histogram(rare=0.02),
    pcor.Tail(),
]


def declared(over: str = "keep", most: int = BOUND, **changes: Any) -> pcor.Schema:
    """Return the schema of the rows with a person and a grid in it."""
    whole = SCHEMA.to_dict()
    whole["metric"] |= {"low": 300, "high": 1900, "step": 50}
    whole["dataset"] |= {"person": "who", "rows_per_person": most, "over": over} | changes
    return pcor.Schema.from_dict(whole)


@pytest.fixture(scope="module")
def careers() -> pa.Table:
    """Return rows of people with 1 to about 15 of them; some rows of a person hold the same."""
    rows, numbers = people(), np.random.default_rng(5)
    who = np.minimum(numbers.geometric(0.02, len(rows)), 150)
    rows = rows.append_column("who", pa.array([f"PERSON-{number}" for number in who]))
    twins = rows.slice(0, 200).set_column(0, "key", pa.array(np.arange(200) * 7 + 5))
    return pa.concat_tables([rows, twins])


def csv_file(rows: pa.Table, folder: Path) -> Any:
    csv.write_csv(rows, folder / "rows.csv")
    return str(folder / "rows.csv")


def in_memory(rows: pa.Table, folder: Path) -> Any:
    del folder
    return rows


PLACES = LOCAL | SERVERS | {"csv": csv_file, "pandas": lambda rows, _: rows.to_pandas()}


@pytest.fixture(scope="module", params=list(PLACES))
def source(
    request: pytest.FixtureRequest, careers: pa.Table, tmp_path_factory: pytest.TempPathFactory
) -> Any:
    """Return the rows in another order, wherever they may be."""
    shuffled = careers.take(np.random.default_rng(9).permutation(len(careers)))
    return PLACES[request.param](shuffled, tmp_path_factory.mktemp("rows"))


@pytest.fixture(scope="module")
def table(source: Any) -> pcor.Table:
    return pcor.Table(source, declared())


@pytest.fixture(scope="module")
def memory(careers: pa.Table) -> pcor.Table:
    return pcor.Table(careers, declared())


def pairs(table: pcor.Table) -> list[tuple[int, float, int]]:
    """Return the rows that are counted: bits of the cell, metric, how many."""
    cells = table.cells.in_memory()
    found: dict[tuple[int, float], int] = {}
    columns = (cells.required[:, 0], cells.values, cells.counts)
    for required, value, count in zip(*(c.tolist() for c in columns), strict=True):
        found[required, value] = found.get((required, value), 0) + count
    return sorted((*pair, count) for pair, count in found.items())


def test_the_same_rows_are_kept_wherever_they_are_and_in_any_order(
    table: pcor.Table, memory: pcor.Table, careers: pa.Table
) -> None:
    assert 0.3 * len(careers) < memory.cells.cell_counts.sum() < 0.6 * len(careers)
    assert pairs(table) == pairs(memory)


def test_no_other_row_changes_which_rows_of_a_person_are_kept(tmp_path: Path) -> None:
    """Polars divides one way or the other, as there are more rows or fewer.

    Both rows of P have nearly the same hash where remainders are taken of 2^31 - 1: a rounding
    decides which is less.
    """
    schema = pcor.Schema("pay", {"job": ["a"]}, person="who", rows_per_person=1, over="keep")
    pays, kept = [66087104443221.0, 936841615181.0], set()
    for others in (0, 1, 2, 7):
        rows = {"pay": [*pays, *[5.0] * others], "who": [*"PP", *map(str, range(others))]}
        given = pa.table(rows | {"job": ["a"] * (others + 2)})
        for source in (given, LOCAL["polars"](given, tmp_path)):
            values = pcor.Table(source, schema).distribution(1)[0].tolist()
            kept.add(tuple(set(values) & set(pays)))
    assert len(kept) == 1


def test_a_record_is_found_and_held_also_where_its_row_is_not_kept(
    table: pcor.Table, memory: pcor.Table, careers: pa.Table
) -> None:
    keys = careers["key"].to_pylist()[:40]
    expected = [memory.record(key) for key in keys]
    assert 10 < sum(not record.counted for record in expected) < 35
    assert [table.record(key) for key in keys] == expected
    by_batch = table.find(keys[0])
    assert len(by_batch) == 1


@pytest.mark.parametrize("detector", DETECTORS, ids=lambda d: d.name)
def test_coe_is_the_same_as_in_memory(
    table: pcor.Table, memory: pcor.Table, careers: pa.Table, detector: pcor.detectors.Detector
) -> None:
    """Of records that are kept, that are not, and that lie beyond all that are."""
    keys = [key for key in careers["key"].to_pylist() if not memory.record(key).counted]
    far_out = sorted(keys, key=lambda key: -memory.record(key).value)
    for key in (careers["key"][0].as_py(), far_out[0], far_out[-1]):
        assert same_coe(table, memory, key, detector)


def test_facts_are_about_the_rows_that_are_kept_and_the_record(
    table: pcor.Table, memory: pcor.Table, careers: pa.Table
) -> None:
    """The true numbers decide the distribution of the facts, and nothing else does."""
    plan = pcor.plan(memory.schema, 1, detector=pcor.LOF(k=5), facts=["count", "rank", "median"])
    low = pcor.plan(memory.schema, 1, detector=pcor.LOF(k=5), facts="rank:low")
    records = [memory.record(key) for key in careers["key"].to_pylist()[:20]]
    for counted in (True, False):
        record = next(record for record in records if record.counted == counted)
        facts = [*plan.facts, *low.facts]
        read = [FactRows.read(facts, t, t.record(record.key)) for t in (table, memory)]
        own, held = record.space.fixed, memory.holding(record)
        for mask in (own, (1 << memory.schema.width) - 1, own | 0b1010101010):
            numbers, expected = (fact_numbers(rows, facts, mask) for rows in read)
            assert numbers == expected
            assert numbers[0] == held.people_in([mask])[0]
            assert numbers[0] == naive_people(held, mask)
            for number, side in ((numbers[1], "high"), (numbers[3], "low")):
                assert number == naive_people(held, mask, record.value, side)


def test_people_of_other_rows_are_refused() -> None:
    connection = duckdb.connect()
    rows = "SELECT i AS key, i // 2 AS who, 10.0 * i AS pay, 'a' AS job FROM range(9) t(i)"
    connection.sql(f"CREATE TABLE pay AS {rows}")
    schema = pcor.Schema("pay", {"job": ["a"]}, "key", person="who", rows_per_person=2)
    table = pcor.Table(connection.table("pay"), schema)
    connection.sql("UPDATE pay SET pay = 11 WHERE key = 3")
    with pytest.raises(SourceError, match="rows changed"):
        table.read_people()


OTHERS = {
    "nobody's": "NULL WHERE key IN (3, 8)",
    "one person's": "7",
    "one person's with one row too many": "0 WHERE key = 3",
}


@pytest.mark.parametrize("facts", ["count", "rank,median"])
@pytest.mark.parametrize("changed", list(OTHERS))
def test_people_who_are_not_as_declared_any_more_are_refused_before_the_charge(
    changed: str, facts: str
) -> None:
    """Metrics stay as they were, so no mark tells of it."""
    connection = duckdb.connect()
    rows = "SELECT i AS key, i // 2 AS who, 10.0 * i AS pay, 'a' AS job FROM range(40) t(i)"
    connection.sql(f"CREATE TABLE pay AS {rows}")
    metric = {"column": "pay", "low": 0, "high": 400, "step": 10}
    schema = pcor.Schema(metric, {"job": ["a"]}, "key", person="who", rows_per_person=2)
    table, budget = pcor.Table(connection.table("pay"), schema), pcor.Budget(1)
    connection.sql(f"UPDATE pay SET who = {OTHERS[changed]}")  # noqa: S608
    with pytest.raises(SourceError, match="rows changed"):
        pcor.release(table, 39, 1, pcor.LOF(k=2), facts=facts, budget=budget)
    assert budget.left == 1
    connection.sql("UPDATE pay SET who = (key + 1) % 20")
    assert pcor.release(table, 39, 1, pcor.Tail(share=0.5), facts=facts, budget=budget).facts


def test_more_people_than_an_engine_may_hand_over_are_refused_before_the_charge() -> None:
    rows = duckdb.sql("SELECT i AS key, i AS who, 10.0 * i AS pay, 'a' AS job FROM range(9) t(i)")
    schema = pcor.Schema("pay", {"job": ["a"]}, "key", person="who", rows_per_person=2)
    budget = pcor.Budget(1)
    with pytest.raises(TooLarge, match="pairs of a person and a cell"):
        pcor.release(
            pcor.Table(rows, schema, pairs=8), 3, 1, pcor.LOF(k=2), facts="count", budget=budget
        )
    assert budget.left == 1


def naive_people(
    table: pcor.Table, mask: int, value: float | None = None, side: str = "high"
) -> int:
    """Count the people with a row in a context, as extreme as a metric if one is given."""
    schema, rows = table.schema, table.rows
    listed = zip(map(str, table.people), rows.cells[rows.cell].tolist(), rows.metric, strict=True)
    extreme = [
        (who, tuple(codes), metric)
        for who, codes, metric in listed
        if value is None or (metric >= value if side == "high" else metric <= value)
    ]
    allowed = [
        {code for code in range(len(attribute.values)) if mask >> offset + code & 1}
        for attribute, offset in zip(schema.attributes, schema.offsets, strict=True)
    ]
    return naive.people(extreme, allowed)


@pytest.mark.parametrize("place", ["duckdb", "polars"])
def test_a_record_is_found_by_its_number_too(careers: pa.Table, place: str, tmp_path: Path) -> None:
    whole = declared().to_dict()
    del whole["dataset"]["id"]
    schema = pcor.Schema.from_dict(whole)
    table, memory = (pcor.Table(s, schema) for s in (LOCAL[place](careers, tmp_path), careers))
    for number in (0, 1, 2, 3, 4, 5, 700):
        assert table.record(number) == memory.record(number)
    with pytest.raises(RecordError, match="no record with row number 9999"):
        table.record(9999)


def test_many_records_are_released_as_one_by_one(
    table: pcor.Table, memory: pcor.Table, careers: pa.Table
) -> None:
    keys = careers["key"].to_pylist()[:12]
    certificates = []
    for rows in (table, memory):
        many = pcor.release_many(
            rows, keys, 1, detector="tail", guarantee="dp", chooser=pcor.testing.seeded(3)
        )
        certificates.append([one.to_dict() | {"engine": ""} for one in many.releases])
    assert certificates[0] == certificates[1]


def test_what_is_prepared_for_records_that_are_held_is_not_read_again(tmp_path: Path) -> None:
    """V lies beyond all rows that are counted, which widens what a detector has to see."""
    schema = pcor.Schema(
        "pay", {"job": ["a", "b"]}, "key", person="who", rows_per_person=1, over="keep"
    )
    rows = {"key": range(40), "who": [*"VV", *map(str, range(38))], "job": ["a", "a", *"ab" * 19]}
    for far in range(1000, 1100):
        given = pa.table(rows | {"pay": [float(far), 3.0, *[float(n % 9) for n in range(38)]]})
        if not pcor.Table(given, schema).record(0).counted:
            break
    table = pcor.Table(LOCAL["sqlite"](given, tmp_path), schema)
    assert table.pushdown is not None
    records = [table.record(key) for key in (0, 5, 6)]
    assert [record.counted for record in records] == [False, True, True]
    engine = table.pushdown.engine
    ask = engine.run
    for detector in DETECTORS:
        plan = pcor.plan(schema, 1, detector=detector, facts=["count", "rank:high"])
        prepare(plan, table, records)
        asked: list[str] = []

        def noted(query: str, asked: list[str] = asked) -> pa.Table:
            asked.append(query)
            return ask(query)

        engine.run = noted  # type: ignore[method-assign]
        for record in records:
            Validity(table, record, detector).read()
            FactRows.read(plan.facts, table, record)
        engine.run = ask  # type: ignore[method-assign]
        assert asked == [], detector.name


def test_a_person_with_too_many_rows_is_refused_and_not_named(
    source: Any, careers: pa.Table
) -> None:
    most = max(int(n) for n in np.unique(careers["who"], return_counts=True)[1])
    pcor.Table(source, declared("error", most))
    with pytest.raises(SourceError) as refused:
        pcor.Table(source, declared("error", most - 1))
    said = str(refused.value)
    assert "column 'who' has a person with more rows than rows_per_person" in said
    assert "PERSON" not in said
    assert f"{most}" not in said.replace(f"{most - 1}", "")
    assert not getattr(refused.value, "__notes__", [])


def test_people_are_counted_in_the_rows_that_the_cells_are_made_of(careers: pa.Table) -> None:
    with duckdb.connect() as connection:
        connection.register("given", careers)
        connection.execute("CREATE TABLE salaries AS SELECT * FROM given")
        engine = relation_engine(connection.table("salaries"))
        ask = engine.run

        def later(query: str) -> pa.Table:
            if "pcor_people" in query:
                connection.execute("UPDATE salaries SET pay = pay + 1 WHERE key = 3")
            return ask(query)

        engine.run = later  # type: ignore[method-assign]
        with pytest.raises(SourceError, match="the rows changed since the table was made"):
            pcor.Table(engine, declared("error", len(careers)))


def test_a_row_without_a_person_is_refused(careers: pa.Table, tmp_path: Path) -> None:
    place = careers.schema.get_field_index("who")
    names: list[str | None] = careers["who"].to_pylist()
    names[17] = None
    unnamed = careers.set_column(place, "who", pa.array(names))
    for maker in (*LOCAL.values(), in_memory):
        folder = tmp_path / str(len(list(tmp_path.iterdir())))
        folder.mkdir()
        for over in ("error", "keep"):
            with pytest.raises(SourceError, match="a row without a person"):
                pcor.Table(maker(unnamed, folder), declared(over, 500))
            for file in folder.iterdir():
                file.unlink()


def test_people_may_be_numbers(careers: pa.Table, tmp_path: Path, memory: pcor.Table) -> None:
    place = careers.schema.get_field_index("who")
    names = careers["who"].to_pylist()
    for kind in (pa.int32(), pa.float64()):
        numbers = pa.array([int(name.removeprefix("PERSON-")) for name in names]).cast(kind)
        rows = careers.set_column(place, "who", numbers)
        for maker in (LOCAL["duckdb"], LOCAL["polars"], in_memory):
            assert pairs(pcor.Table(maker(rows, tmp_path), declared())) == pairs(memory)


def test_what_comes_back_does_not_grow_with_the_number_of_people(careers: pa.Table) -> None:
    place = careers.schema.get_field_index("who")
    of_one = careers.set_column(place, "who", pa.array(["one"] * len(careers)))
    each = careers.set_column(place, "who", pa.array([str(n) for n in range(len(careers))]))
    for over in ("error", "keep"):
        sizes = {
            pcor.Table(duckdb.from_arrow(rows), declared(over, len(careers))).bytes_returned
            for rows in (of_one, each)
        }
        assert len(sizes) == 1


def test_people_are_counted_in_memory_alone(table: pcor.Table, careers: pa.Table) -> None:
    key = careers["key"][0].as_py()
    asked: dict[str, Any] = {"detector": "grubbs", "utility": "people"}
    if table.pushdown is None:
        pcor.release(table, key, 1, **asked)
        return
    budget = pcor.Budget(1)
    with pytest.raises(ParameterError, match="take utility 'population'"):
        pcor.release(table, key, 1, **asked, budget=budget)
    assert budget.left == 1


def test_a_table_of_the_user_may_have_any_name(careers: pa.Table) -> None:
    with duckdb.connect() as connection:
        connection.register("coded", careers)
        relation = connection.sql("SELECT * FROM coded")
        table = pcor.Table(relation, declared())
        assert int(table.cells.cell_counts.sum()) > 0
