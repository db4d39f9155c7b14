"""The same rows are the same table wherever they come from, and nothing of them is ever said."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from pyarrow import parquet

from pcor import LOF, Context, Grubbs, Schema, Table, demo, matching_contexts, outliers
from tests.helpers.pay_tables import (
    MARKED_NUMBER,
    PAY,
    STAFF,
    as_csv,
    as_dictionaries,
    as_parquet,
    as_shuffled,
    counts,
    job_schema,
    people,
    staff,
)
from tests.helpers.strategies import METRIC, Row, arrow, context_and_rows, covered, few

# -- the same rows from anywhere ------------------------------------------------------------------


SOURCES: dict[str, Callable[[pa.Table, Path], Any]] = {
    "pandas": lambda rows, _: rows.to_pandas(),
    "pandas with categories": lambda rows, _: rows.to_pandas().astype({"job": "category"}),
    "pandas on Arrow": lambda rows, _: rows.to_pandas(types_mapper=pd.ArrowDtype),
    "Polars": lambda rows, _: pl.from_arrow(rows),
    "Polars with categories": lambda rows, _: pl.DataFrame(rows).cast({"job": pl.Categorical}),
    "Polars, lazy": lambda rows, _: pl.DataFrame(rows).lazy(),
    "Arrow, shuffled": as_shuffled,
    "Arrow in dictionaries": as_dictionaries,
    "a DuckDB relation": lambda rows, _: duckdb.from_arrow(rows),
    "pandas, shuffled": lambda rows, folder: as_shuffled(rows, folder).to_pandas(),
    "a CSV file": as_csv,
    "a CSV file, shuffled": lambda rows, folder: as_csv(as_shuffled(rows, folder), folder),
    "a CSV file named by text": lambda rows, folder: str(as_csv(rows, folder)),
    "a Parquet file": as_parquet,
    "a Parquet file named by text": lambda rows, folder: str(as_parquet(rows, folder)),
}


def facts(table: Table) -> dict[str, Any]:
    """Everything the rest of the library learns of a table."""
    record = int(staff()["key"][5].as_py())
    masks = list(table.record(record).space.masks())
    found = matching_contexts(table, record, Grubbs())
    return {
        "populations": table.populations(masks).tolist(),
        "distributions": [[part.tolist() for part in table.distribution(m)] for m in masks],
        "record": table.record(record),
        "COE": (found.masks.tolist(), found.populations.tolist()),
        "outliers": sorted(outliers(table, detector=LOF()), key=str),
    }


@pytest.fixture(scope="module")
def expected() -> dict[str, Any]:
    found = facts(Table(staff(), STAFF))
    assert found["COE"][0], "the record must have valid contexts, or nothing is compared"
    assert found["outliers"], "the table must have outliers, or nothing is compared"
    return found


@pytest.mark.parametrize("source", SOURCES)
def test_the_same_rows_are_the_same_table_from_anywhere(
    source: str, tmp_path: Path, expected: dict[str, Any]
) -> None:
    assert facts(Table(SOURCES[source](staff(), tmp_path), STAFF)) == expected


@few
@given(drawn=context_and_rows())
def test_a_distribution_is_the_multiset_of_the_metric_in_the_population(
    drawn: tuple[Context, list[Row]],
) -> None:
    context, rows = drawn
    values, multiplicities = Table(arrow(context.schema, rows), context.schema).distribution(
        context.mask
    )
    found = np.repeat(values, multiplicities).tolist()
    assert found == sorted(rows[number][METRIC] for number in covered(context, rows))


@few
@given(drawn=context_and_rows())
def test_a_population_in_polars_and_parquet_is_that_of_plain_loops(
    drawn: tuple[Context, list[Row]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    context, rows = drawn
    plain = arrow(context.schema, rows)
    path = tmp_path_factory.mktemp("rows") / "rows.parquet"
    parquet.write_table(plain, path)
    found = [
        Table(source, context.schema).populations([context.mask]).item()
        for source in (pl.DataFrame(plain), path)
    ]
    assert found == [len(covered(context, rows))] * 2


def test_no_contexts_have_no_populations() -> None:
    assert Table(people(), PAY).populations([]).tolist() == []


def test_more_contexts_than_one_batch_are_all_counted() -> None:
    assert Table(people(), PAY).populations([1, 2, 3] * 1000).tolist() == [2, 1, 3] * 1000


def test_an_empty_population_has_an_empty_distribution() -> None:
    table = Table(people(job=["CEO"] * 3), PAY)
    assert [part.tolist() for part in table.distribution(0b10)] == [[], []]


def test_a_schema_may_be_given_by_its_path(tmp_path: Path) -> None:
    path = tmp_path / "schema.toml"
    path.write_text(PAY.to_toml(), encoding="utf-8")
    assert [Table(people(), path).schema, Table(people(), str(path)).schema] == [PAY, PAY]


@pytest.mark.parametrize(
    "years", [[2019, 2020, 2020], [2019.0, 2020.0, 2020.0], ["2019", "2020", "2020"]]
)
def test_years_may_be_stored_as_whole_numbers_floats_or_text(years: list[Any]) -> None:
    assert counts(Table(people(job=years), job_schema([2019, 2020]))) == [1, 2]


@pytest.mark.parametrize("kind", [pa.int8(), pa.uint64(), pa.float32(), pa.decimal128(30, 2)])
def test_numbers_may_be_stored_in_any_numeric_type(kind: pa.DataType) -> None:
    columns = {name: pa.array([19, 20, 20]).cast(kind) for name in ("job", "pay")}
    table = Table(people(**columns), job_schema([19, 20]))
    assert (counts(table), table.distribution(3)[0].tolist()) == ([1, 2], [19.0, 20.0])


@pytest.mark.parametrize(
    "kind", [pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string())]
)
def test_texts_may_be_stored_in_any_text_type(kind: pa.DataType) -> None:
    job = pa.array(["CEO", "Lawyer", "CEO"], kind)
    assert counts(Table(people(job=job), PAY)) == [2, 1]


# -- nothing is shown -----------------------------------------------------------------------------


@pytest.mark.parametrize("show", [repr, str])
def test_a_table_shows_its_schema_and_nothing_else(show: Callable[[object], str]) -> None:
    assert show(Table(people(), PAY)) == "<Table 'dataset': metric pay; job (2)>"


@pytest.mark.parametrize("show", [repr, str])
def test_tables_of_other_rows_look_the_same(show: Callable[[object], str]) -> None:
    more = pa.concat_tables([people(), people(pay=[1.0, 2.0, 3.0])])
    assert show(Table(more, PAY)) == show(Table(people(), PAY))


def test_the_encoded_rows_show_nothing_of_themselves() -> None:
    shown = repr(Table(people(job=["CEO"] * 3, pay=[MARKED_NUMBER] * 3), PAY).rows)
    assert str(MARKED_NUMBER) not in shown


# -- size -----------------------------------------------------------------------------------------


def test_the_demo_table_is_counted_right() -> None:
    rows = demo.salaries(5_000)
    table = Table(rows, demo.salary_schema())
    context = Context.parse(
        table.schema, "job_title is Dean or Professor; any employer; year is 2010 or 2012"
    )
    expected = sum(
        job in ("Dean", "Professor") and year in (2010, 2012)
        for job, year in zip(rows["job_title"].to_pylist(), rows["year"].to_pylist(), strict=True)
    )
    assert table.populations([context.mask]).tolist() == [expected]


@pytest.mark.parametrize(("attributes", "values"), [(70, 2), (3, 90), (1, 300)])
def test_any_number_of_attributes_and_values_is_counted_right(attributes: int, values: int) -> None:
    rng = np.random.default_rng(attributes)
    codes = rng.integers(0, values, (200, attributes))
    domain = [f"v{v}" for v in range(values)]
    names = [f"a{a}" for a in range(attributes)]
    schema = Schema(metric="pay", attributes=dict.fromkeys(names, domain))
    columns = {name: np.array(domain)[codes[:, a]] for a, name in enumerate(names)}
    table = Table(pa.table(columns | {"pay": rng.random(200)}), schema)
    chosen = dict.fromkeys(names, domain) | {names[0]: domain[: values // 2]}
    kept = codes[:, 0] < values // 2
    expected = [200, int(kept.sum())]
    contexts_of = (Context.full(schema), Context(schema, chosen))
    assert table.populations([context.mask for context in contexts_of]).tolist() == expected
