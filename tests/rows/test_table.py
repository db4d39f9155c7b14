"""The same rows are the same table wherever they come from, and nothing of them is ever said."""

from __future__ import annotations

import math
import traceback
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from pyarrow import csv, parquet

from pcor import LOF, Context, Grubbs, Schema, Table, demo, matching_contexts, outliers
from pcor.errors import (
    DomainError,
    MetricError,
    ParameterError,
    PcorError,
    RecordError,
    SourceError,
)
from pcor.rows.snapshot import Snapshot
from tests.helpers.strategies import METRIC, Row, arrow, context_and_rows, covered, few

PAY = Schema(metric="pay", attributes={"job": ["CEO", "Lawyer"]}, id="key")
BY_ROW = Schema(metric="pay", attributes={"job": ["CEO", "Lawyer"]})

# Told apart from anything that a message could hold by chance.
MARK = "Zyzzyva-7391"
MARKED_NUMBER = 73917391.25


def people(**columns: Any) -> pa.Table:
    """Three rows; any column may be given anew."""
    rows = {"key": [1, 2, 3], "job": ["CEO", "Lawyer", "CEO"], "pay": [10.0, 20.0, 30.0]}
    return pa.table(rows | columns)


def counts(table: Table) -> list[int]:
    """How many rows have each value of the first attribute."""
    others = sum(table.schema.attribute_masks[1:])
    first = range(len(table.schema.attributes[0].values))
    return [int(n) for n in table.populations([1 << place | others for place in first])]


def from_text(folder: Path, text: str, schema: Schema = PAY) -> Table:
    path = folder / "rows.csv"
    path.write_text(text, encoding="utf-8", newline="")
    return Table(path, schema)


def job_schema(declared: Any, **metric: Any) -> Schema:
    return Schema(metric={"column": "pay"} | metric, attributes={"job": declared}, id="key")


# -- the same rows from anywhere ------------------------------------------------------------------


def as_csv(rows: pa.Table, folder: Path) -> Path:
    csv.write_csv(rows, folder / "rows.csv")
    return folder / "rows.csv"


def as_parquet(rows: pa.Table, folder: Path) -> Path:
    parquet.write_table(rows, folder / "rows.parquet", row_group_size=40)
    return folder / "rows.parquet"


def as_shuffled(rows: pa.Table, _: Path) -> pa.Table:
    return rows.take(np.random.default_rng(7).permutation(len(rows)))


def as_dictionaries(rows: pa.Table, _: Path) -> pa.Table:
    """Every text column as codes, in chunks whose dictionaries differ."""
    halves = [rows.slice(0, 90), rows.slice(90)]
    texts = [field.name for field in rows.schema if field.type == pa.string()]
    for number, half in enumerate(halves):
        for name in texts:
            place = half.schema.get_field_index(name)
            codes = half[name].combine_chunks().dictionary_encode()
            halves[number] = half = half.set_column(place, name, codes)
    return pa.concat_tables(halves)


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

STAFF = Schema(
    metric="pay",
    attributes={
        "job": ["CEO", "Lawyer", "Medical Doctor"],
        "city": ["Ottawa", "St. John's, NL"],
        "year": [2019, 2020],
        "full time": [True, False],
        "age": {"edges": [18, 30, 50, 99]},
    },
    id="key",
)


def staff() -> pa.Table:
    """180 rows of every kind of column, with ties and a few extremes."""
    rng = np.random.default_rng(11)
    size = 180
    pay = rng.integers(90, 110, size).astype(float)
    pay[[5, 60, 140]] = [400.5, 20.25, 300.0]
    return pa.table(
        {
            "key": rng.permutation(size) + 1000,
            "job": np.array(["CEO", "Lawyer", "Medical Doctor"])[rng.integers(0, 3, size)],
            "city": np.array(["Ottawa", "St. John's, NL"])[rng.integers(0, 2, size)],
            "year": rng.integers(2019, 2021, size),
            "full time": rng.integers(0, 2, size).astype(bool),
            "age": rng.integers(18, 100, size),
            "pay": pay,
            "unused": ["x"] * size,
        }
    )


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


# -- records --------------------------------------------------------------------------------------


def test_a_record_is_found_by_its_id() -> None:
    record = Table(people(), PAY).record(2)
    assert (record.key, record.value, record.space.fixed) == (2, 20.0, 0b10)


def test_a_record_is_found_by_its_row_number_from_0() -> None:
    assert Table(people(), BY_ROW).record(2).value == 30.0


def test_dropped_rows_keep_their_row_numbers() -> None:
    schema = Schema(metric="pay", attributes={"job": {"values": ["CEO"], "outside": "drop"}})
    assert Table(people(), schema).record(2).value == 30.0


def test_outliers_are_named_by_the_row_numbers_of_the_source() -> None:
    schema = Schema(metric="pay", attributes={"job": {"values": ["CEO"], "outside": "drop"}})
    job = ["Astronaut", "CEO", *["CEO", "Astronaut"] * 30]
    pay = [1.0, 99.0, *[1.0, 5.0, 1.5, 5.0] * 15]
    rows = pa.table({"job": job, "pay": pay})
    assert outliers(Table(rows, schema), detector=Grubbs()) == [1]


@pytest.mark.parametrize(
    ("schema", "key"),
    [
        (PAY, 4),
        (PAY, "4"),
        (PAY, "two"),
        (PAY, 10**30),
        (PAY, -1),
        (BY_ROW, 3),
        (BY_ROW, -1),
        (BY_ROW, "x"),
    ],
)
def test_an_unknown_record_is_refused_by_its_name(schema: Schema, key: int | str) -> None:
    with pytest.raises(RecordError, match=f"no record with (key|row number) '?{key}"):
        Table(people(), schema).record(key)


def test_a_dropped_row_is_no_record() -> None:
    schema = Schema(metric="pay", attributes={"job": {"values": ["CEO"], "outside": "drop"}})
    with pytest.raises(RecordError, match="no record with row number 1 among the rows that fit"):
        Table(people(), schema).record(1)


@pytest.mark.parametrize("key", [True, 2.0, None, [2]])
def test_a_record_is_named_by_a_whole_number_or_a_text(key: Any) -> None:
    with pytest.raises(RecordError, match="named by a whole number or a text"):
        Table(people(), PAY).record(key)


def test_an_id_of_two_rows_names_no_record() -> None:
    with pytest.raises(RecordError, match="key 1 names more than one row; the id column must be"):
        Table(people(key=[1, 1, 2]), PAY).record(1)


@pytest.mark.parametrize(
    "keys",
    [
        pa.array([1, 2, 3]),
        pa.array(["1", "2", "3"]),
        pa.array([1.0, 2.0, None]),
        pa.array([2**64 - 1, 2, 3], pa.uint64()),
        pa.array([1, 2, 3]).dictionary_encode(),
        pa.array(["1", "2", None]).dictionary_encode(),
    ],
)
@pytest.mark.parametrize("asked", [2, "2", np.int64(2)])
def test_an_id_is_found_however_it_is_stored_and_asked_for(keys: pa.Array, asked: Any) -> None:
    record = Table(people(key=keys), PAY).record(asked)
    assert (record.key, record.value) == (2, 20.0)


def test_a_text_id_keeps_its_leading_zeros() -> None:
    table = Table(people(key=["7", "007", "07"]), PAY)
    assert (table.record("007").value, table.record("007").key) == (20.0, "007")


@pytest.mark.parametrize("key", ["o'Hara; --", "zwei Wörter", "🙂"])
def test_any_text_may_be_an_id(key: str) -> None:
    assert Table(people(key=["a", key, "b"]), PAY).record(key).value == 20.0


def test_every_outlier_can_be_asked_for_by_the_name_it_is_given(tmp_path: Path) -> None:
    names = outliers(Table(as_csv(staff(), tmp_path), STAFF))
    table = Table(staff(), STAFF)
    assert [table.record(name).key for name in names] == names


# -- rows that do not fit -------------------------------------------------------------------------

UNFIT = ["CEO", "Astronaut", None]


def test_a_value_outside_the_domain_refuses_the_table() -> None:
    with pytest.raises(DomainError, match="column 'job' has a value outside its declared domain"):
        Table(people(job=["CEO", "Astronaut", "CEO"]), PAY)


def test_a_missing_value_refuses_the_table() -> None:
    with pytest.raises(DomainError, match=r"'job'.*outside its declared domain .or none at all"):
        Table(people(job=["CEO", None, "CEO"]), PAY)


def test_a_column_of_nothing_refuses_the_table() -> None:
    with pytest.raises(DomainError, match="column 'job'"):
        Table(people(job=pa.nulls(3)), PAY)


def test_drop_leaves_out_what_does_not_fit() -> None:
    schema = job_schema({"values": ["Lawyer", "CEO"], "outside": "drop"})
    assert counts(Table(people(job=UNFIT), schema)) == [0, 1]


def test_other_takes_what_does_not_fit() -> None:
    schema = job_schema({"values": ["CEO", "else"], "other": "else"})
    assert counts(Table(people(job=UNFIT), schema)) == [1, 2]


def test_not_a_number_in_a_numeric_attribute_is_no_value() -> None:
    schema = job_schema({"values": [1.5, 2.5], "outside": "drop"})
    assert counts(Table(people(job=[1.5, math.nan, 2.5]), schema)) == [1, 1]


def test_a_table_with_no_fitting_row_is_refused() -> None:
    schema = job_schema({"values": ["Astronaut"], "outside": "drop"})
    with pytest.raises(SourceError, match="no row of the table fits the schema"):
        Table(people(), schema)


@pytest.mark.parametrize(
    "pay", [[1.0, None, 3.0], [1.0, math.nan, 3.0], ["1", "", "3"], ["1", " ", "3"]]
)
def test_a_missing_metric_refuses_the_table(pay: list[Any]) -> None:
    with pytest.raises(MetricError, match="the metric 'pay' has rows with no value"):
        Table(people(pay=pay), PAY)


@pytest.mark.parametrize(
    "pay",
    [
        pa.array([1.0, None, 3.0]),
        pa.array([1.0, math.nan, 3.0]),
        pa.array(["1", "", "3"]),
        pa.array([1, None, 3]),
        pa.array([1.0, None, 3.0]).dictionary_encode(),
        pa.array([Decimal("1.00"), None, Decimal("3.00")]),
    ],
)
def test_drop_leaves_out_rows_without_a_metric(pay: pa.Array) -> None:
    table = Table(people(pay=pay), job_schema(["CEO", "Lawyer"], missing="drop"))
    assert [part.tolist() for part in table.distribution(3)] == [[1.0, 3.0], [1, 1]]


@pytest.mark.parametrize("missing", ["error", "drop"])
@pytest.mark.parametrize("value", [math.inf, -math.inf, 1.1e100])
def test_an_infinite_metric_refuses_the_table(value: float, missing: str) -> None:
    with pytest.raises(MetricError, match="the metric 'pay' has values that are infinite"):
        Table(people(pay=[1.0, value, 2.0]), job_schema(["CEO", "Lawyer"], missing=missing))


@pytest.mark.parametrize(
    "pay",
    [
        pa.array(["1", "two", "3"]),
        pa.array(["1", "NA", "3"]),
        pa.array([True, False, True]),
        pa.array([1, 2, 3], pa.timestamp("s")),
        pa.array([[1.0], [2.0], [3.0]]),
    ],
)
def test_a_metric_that_is_not_numeric_refuses_the_table(pay: pa.Array) -> None:
    with pytest.raises(MetricError, match="the metric 'pay' is not numeric"):
        Table(people(pay=pay), PAY)


@pytest.mark.parametrize("job", [[["CEO"]] * 3, [{"title": "CEO"}] * 3])
def test_an_attribute_of_nested_values_is_refused(job: list[Any]) -> None:
    with pytest.raises(SourceError, match="attribute 'job': its column does not hold single"):
        Table(people(job=job), PAY)


@pytest.mark.parametrize(
    ("cell", "expected"),
    [
        (17.999, None),
        (18, 0),
        (math.nextafter(25, 0), 0),
        (25, 1),
        (65, 2),
        (120, 2),
        (120.001, None),
        (math.nan, None),
        (None, None),
        (math.inf, None),
        (-math.inf, None),
        ("25", 1),
        ("", None),
    ],
)
def test_bins_take_their_lower_edge_and_the_last_both(cell: Any, expected: int | None) -> None:
    schema = job_schema({"edges": [18, 25, 65, 120], "outside": "drop"})
    kind = pa.string() if isinstance(cell, str) else pa.float64()
    rows = people(
        job=pa.array([cell, 18, 18] if kind == pa.float64() else [cell, "18", "18"], kind)
    )
    own = [int(place == expected) for place in range(3)]
    assert counts(Table(rows, schema)) == [own[0] + 2, *own[1:]]


def test_open_ended_bins_take_infinite_values() -> None:
    schema = job_schema({"edges": [-math.inf, 0, math.inf]})
    assert counts(Table(people(job=[-math.inf, 0.0, math.inf]), schema)) == [1, 2]


def test_bins_of_text_that_is_not_numeric_are_refused() -> None:
    with pytest.raises(SourceError, match="'job' has declared edges, but its column is not num"):
        Table(people(), job_schema({"edges": [0, 1]}))


def test_categories_may_be_missing_in_bins() -> None:
    schema = job_schema({"edges": [0, 1, 2], "outside": "drop"})
    assert counts(Table(people(job=pa.array([0.5, None, 1.5]).dictionary_encode()), schema)) == [
        1,
        1,
    ]


# -- CSV ------------------------------------------------------------------------------------------


def test_leading_zeros_of_a_csv_file_are_kept(tmp_path: Path) -> None:
    table = from_text(tmp_path, "key,job,pay\n1,007,1\n2,7,2\n3,7,3\n", job_schema(["007", "7"]))
    assert counts(table) == [1, 2]


def test_an_empty_cell_of_a_csv_file_is_missing(tmp_path: Path) -> None:
    schema = job_schema({"values": ["CEO"], "outside": "drop"}, missing="drop")
    text = 'key,job,pay\n1,CEO,1\n2,,2\n3,"",3\n4,CEO,\n'
    assert from_text(tmp_path, text, schema).distribution(1)[0].tolist() == [1.0]


@pytest.mark.parametrize("word", ["NA", "null", "None", "nan", "N/A"])
def test_no_word_of_a_csv_file_is_missing(tmp_path: Path, word: str) -> None:
    table = from_text(tmp_path, f"key,job,pay\n1,{word},1\n2,CEO,2\n", job_schema([word, "CEO"]))
    assert counts(table) == [1, 1]


def test_quoted_commas_quotes_and_line_breaks_are_part_of_a_cell(tmp_path: Path) -> None:
    domain = ["a, b", 'say "c"', "d\ne"]
    text = 'key,job,pay\r\n1,"a, b",1\r\n2,"say ""c""",2\r\n3,"d\ne",3\r\n'
    assert counts(from_text(tmp_path, text, job_schema(domain))) == [1, 1, 1]


def test_line_breaks_inside_cells_do_not_break_a_long_file(tmp_path: Path) -> None:
    # Longer than one block of the reader, so that a block ends inside a quoted cell.
    rows = "".join(f'{n},CEO,1,"{"x" * 50}\n{"y" * 50}"\n' for n in range(20_000))
    assert counts(from_text(tmp_path, "key,job,pay,note\n" + rows)) == [20_000, 0]


def test_a_byte_order_mark_is_not_part_of_a_name(tmp_path: Path) -> None:
    assert counts(from_text(tmp_path, "\ufeffkey,job,pay\n1,CEO,1\n")) == [1, 0]


@pytest.mark.parametrize("name", ["rows.CSV", "rows.PARQUET", "rows.pq"])
def test_the_ending_of_a_file_may_be_written_otherwise(tmp_path: Path, name: str) -> None:
    write = csv.write_csv if "CSV" in name else parquet.write_table
    write(people(), tmp_path / name)
    assert counts(Table(tmp_path / name, PAY)) == [2, 1]


@pytest.mark.parametrize("save", [as_csv, as_parquet])
def test_a_snapshot_of_a_file_is_read_as_the_file_is_and_stays_what_it_was(
    tmp_path: Path, save: Callable[[pa.Table, Path], Path]
) -> None:
    path = save(people(), tmp_path)
    snapshot = Snapshot(path)
    path.unlink()
    assert counts(Table(snapshot, PAY)) == [2, 1]
    assert repr(snapshot) == f"<Snapshot of {path.name!r}>"


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "is empty"),
        (b"key;job;pay\n1;CEO;1\n", "semicolons"),
        (b"key,job,pay\n1,CEO\n", "as many cells in each row"),
        ("key,job,pay\n1,CEO,é\n".encode("latin-1"), "iconv"),
    ],
)
def test_a_snapshot_that_cannot_be_read_is_refused_as_its_file_is(
    tmp_path: Path, content: bytes, words: str
) -> None:
    path = tmp_path / "rows.csv"
    path.write_bytes(content)
    with pytest.raises(SourceError, match=words) as of_file:
        Table(path, PAY)
    with pytest.raises(SourceError, match=words) as of_snapshot:
        Table(Snapshot(path), PAY)
    assert str(of_snapshot.value) == str(of_file.value)
    assert getattr(of_snapshot.value, "__notes__", []) == getattr(of_file.value, "__notes__", [])


@pytest.mark.parametrize("name", ["a.b", 'a"b', "a b", "[0]", "job[0]", "🙂"])
@pytest.mark.parametrize("save", [as_csv, as_parquet])
def test_columns_of_files_may_have_any_name(
    tmp_path: Path, name: str, save: Callable[[pa.Table, Path], Path]
) -> None:
    schema = Schema(metric="pay", attributes={name: ["x", "y"]})
    path = save(pa.table({name: ["x", "y", "y"], "pay": [1, 2, 3]}), tmp_path)
    assert counts(Table(path, schema)) == [1, 2]


# -- what cannot be read --------------------------------------------------------------------------


@pytest.mark.parametrize("source", ["Arrow", "pandas", "Polars", "CSV", "Parquet"])
def test_a_missing_column_is_refused_with_the_nearest_name(source: str, tmp_path: Path) -> None:
    rows = people().rename_columns(["key", "jbo", "pay"])
    given_as: dict[str, Callable[[], Any]] = {
        "Arrow": lambda: rows,
        "pandas": rows.to_pandas,
        "Polars": lambda: pl.DataFrame(rows),
        "CSV": lambda: as_csv(rows, tmp_path),
        "Parquet": lambda: as_parquet(rows, tmp_path),
    }
    with pytest.raises(SourceError, match="has no column 'job'") as refused:
        Table(given_as[source](), PAY)
    # A note is for the owner: the service sends the sentence alone, without words of the file.
    assert "jbo" not in str(refused.value)
    assert refused.value.__notes__ == ["it has: key, jbo, pay; did you mean 'jbo'?"]


def test_a_file_without_a_header_is_told_which_one_it_needs(tmp_path: Path) -> None:
    with pytest.raises(
        SourceError, match=r"none of the declared columns.*header with: pay, job, key"
    ):
        from_text(tmp_path, "1,CEO,10\n2,Lawyer,20\n")


def test_a_column_named_twice_in_a_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="has more than one column 'job'"):
        from_text(tmp_path, "key,job,job,pay\n1,CEO,CEO,1\n")


def test_a_column_named_twice_in_a_frame_is_refused() -> None:
    frame = pd.DataFrame([[1, "CEO", "CEO", 1.0]], columns=["key", "job", "job", "pay"])
    with pytest.raises(SourceError, match="two columns of the same name"):
        Table(frame, PAY)


def test_a_frame_whose_columns_are_numbered_is_refused() -> None:
    with pytest.raises(SourceError, match="none of the declared columns"):
        Table(pd.DataFrame([[1, "CEO", 1.0]]), PAY)


@pytest.mark.parametrize("source", [None, 5, {"pay": [1]}, [1, 2], b"rows.csv", pd.Series([1])])
def test_what_is_no_table_is_refused_with_what_would_be(source: Any) -> None:
    with pytest.raises(SourceError, match=r"cannot read rows from a .*; give a pandas, Polars"):
        Table(source, PAY)


@pytest.mark.parametrize("name", ["nowhere.csv", "nowhere.parquet"])
def test_a_file_that_is_not_there_is_named(tmp_path: Path, name: str) -> None:
    with pytest.raises(SourceError, match=f"no such file: '.*{name}'"):
        Table(tmp_path / name, PAY)


def test_a_folder_is_not_a_file(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").mkdir()
    with pytest.raises(SourceError, match=r"rows.csv' is not a file"):
        Table(tmp_path / "rows.csv", PAY)


@pytest.mark.parametrize("name", ["rows.xlsx", "rows", "rows.csv.gz"])
def test_an_unknown_ending_is_refused_with_the_known_ones(tmp_path: Path, name: str) -> None:
    with pytest.raises(SourceError, match=f"what '.*{name}' is.*allowed: .csv, .parquet, .pq"):
        Table(tmp_path / name, PAY)


def test_a_file_that_may_not_be_read_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = as_csv(people(), tmp_path)

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError

    monkeypatch.setattr(Path, "open", refuse)  # the tests may run as root, who reads everything
    with pytest.raises(SourceError, match=r"rows.csv' may not be read by this user"):
        Table(path, PAY)


def test_a_name_that_no_file_can_have_is_refused() -> None:
    with pytest.raises(SourceError, match="may not be read"):
        Table("x" * 5000 + ".csv", PAY)


@pytest.mark.parametrize("name", ["rows.csv", "rows.parquet"])
def test_an_empty_file_is_named(tmp_path: Path, name: str) -> None:
    (tmp_path / name).touch()
    with pytest.raises(SourceError, match=f"{name}' is empty"):
        Table(tmp_path / name, PAY)


def test_a_file_of_a_header_alone_has_no_row_that_fits(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="no row of the table fits the schema"):
        from_text(tmp_path, "key,job,pay\n")


@pytest.mark.parametrize("content", [b"PAR1garbagePAR1", b"key,job,pay\n1,CEO,1\n", b"\x00" * 100])
def test_garbage_is_not_parquet(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "rows.parquet").write_bytes(content)
    with pytest.raises(SourceError, match=r"rows.parquet' cannot be read as Parquet"):
        Table(tmp_path / "rows.parquet", PAY)


@pytest.mark.parametrize(
    "content",
    [b"key,job,pay\n1,CEO\n", b"key,job,pay\n1,\xff\xfe,1\n", b"\xff\xfe,job,pay\n1,CEO,1\n"],
)
def test_garbage_is_not_csv(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "rows.csv").write_bytes(content)
    with pytest.raises(SourceError, match=r"rows.csv' cannot be read as CSV"):
        Table(tmp_path / "rows.csv", PAY)


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ("1,CEO,1\n2,CEO\n", "line 3 has 2"),
        ('1,"C\nE\nO",1\n\n2,CEO,1,1\n3,CEO\n', "line 6 has 4, line 7 has 2"),
    ],
)
def test_the_owner_is_told_which_lines_are_ragged(tmp_path: Path, rows: str, said: str) -> None:
    with pytest.raises(SourceError, match="as many cells in each row as names") as refused:
        from_text(tmp_path, f"key,job,pay\n{rows}")
    assert "line" not in str(refused.value)
    assert refused.value.__notes__ == [f"the header has 3 cells, {said}"]


def test_a_header_in_another_case_is_told_apart_from_none() -> None:
    for frame in ({"KEY": [1], "JOB": ["CEO"], "PAY": [1.0]}, {"Pay ": [1.0], " JOB": ["CEO"]}):
        with pytest.raises(SourceError, match="has no column 'pay'") as refused:
            Table(pa.table(frame), PAY)
        near = next(name for name in frame if "pay" in name.lower())
        assert refused.value.__notes__[0].endswith(f"did you mean {near!r}?")


@pytest.mark.parametrize(("mark", "name"), [(";", "semicolons"), ("\t", "tabs"), ("|", "bars")])
def test_a_csv_file_with_another_separator_is_told_so(tmp_path: Path, mark: str, name: str) -> None:
    for row in ("1,CEO,1", "1,CEO,1.5"):
        text = f"key,job,pay\n{row}\n".replace(",", mark).replace(".", ",")
        with pytest.raises(SourceError, match=rf"cannot be read as CSV: .*separated by {name}"):
            from_text(tmp_path, text)


@pytest.mark.parametrize(("encoding", "said"), [("latin-1", "Latin-1"), ("utf-16", "UTF-16")])
def test_a_csv_file_that_is_not_utf_8_is_told_how_to_convert_it(
    tmp_path: Path, encoding: str, said: str
) -> None:
    (tmp_path / "rows.csv").write_bytes("key,job,pay\n1,Bäcker,1\n".encode(encoding))
    with pytest.raises(SourceError, match=rf"not UTF-8 text \(.*{said}.*iconv -f") as caught:
        Table(tmp_path / "rows.csv", PAY)
    assert "cker" not in str(caught.value)


def test_the_columns_of_a_file_are_a_note_for_the_owner_and_no_part_of_the_message(
    tmp_path: Path,
) -> None:
    with pytest.raises(SourceError) as caught:
        from_text(tmp_path, "key,pay,town\n1,2,Rome\n")
    assert str(caught.value).endswith("it needs the columns: pay, job, key")
    assert caught.value.__notes__ == ["it has: key, pay, town"]


# -- no message quotes a cell ---------------------------------------------------------------------


def text_file(text: str) -> Callable[[Path], Table]:
    return lambda folder: from_text(folder, text)


BAD_TABLES: dict[str, Callable[[Path], Table]] = {
    "outside the domain": lambda _: Table(people(job=["CEO", MARK, "CEO"]), PAY),
    "outside whole numbers": lambda _: Table(people(job=["1", MARK, "2"]), job_schema([1, 2])),
    "outside the bins": lambda _: Table(
        people(job=[1.0, MARKED_NUMBER, 2.0]), job_schema({"edges": [0, 5]})
    ),
    "text in bins": lambda _: Table(people(job=["1", MARK, "2"]), job_schema({"edges": [0, 5]})),
    "text as metric": lambda _: Table(people(pay=["1", MARK, "2"]), PAY),
    "a huge metric": lambda _: Table(people(pay=[1.0, MARKED_NUMBER * 1e100, 2.0]), PAY),
    "a missing metric": lambda _: Table(people(key=[MARK, "b", "c"], pay=[None, 1.0, 2.0]), PAY),
    "mixed objects": lambda _: Table(
        pd.DataFrame(
            {"key": [1, 2], "job": ["CEO", "CEO"], "pay": pd.Series([1, MARK], dtype=object)}
        ),
        PAY,
    ),
    "a mixed attribute": lambda _: Table(
        pd.DataFrame({"key": [1, 2], "job": pd.Series([1, MARK], dtype=object), "pay": [1, 2]}), PAY
    ),
    "a lazy frame that fails": lambda _: Table(
        pl.LazyFrame({"key": [1], "job": ["CEO"], "pay": [MARK]}).cast({"pay": pl.Int64}), PAY
    ),
    "a query that fails": lambda _: Table(
        duckdb.from_arrow(people(pay=["1", MARK, "2"])).project(
            "key, job, CAST(pay AS INTEGER) AS pay"
        ),
        PAY,
    ),
    "a nested attribute": lambda _: Table(people(job=[[MARK]] * 3), PAY),
    "no header": text_file(f"1,{MARK},5\n2,CEO,6\n"),
    "a ragged line": text_file(f"key,job,pay\n1,{MARK}\n"),
    "text as metric in a file": text_file(f"key,job,pay\n1,CEO,{MARK}\n"),
    "outside the domain in a file": text_file(f"key,job,pay\n1,{MARK},1\n"),
    "an unknown record": lambda _: unknown_record(people(job=["CEO"] * 3, key=[MARK, MARK, "x"])),
}


def unknown_record(rows: pa.Table) -> Table:
    table = Table(rows, PAY)
    table.record("somebody else")
    return table


@pytest.mark.parametrize("bad", BAD_TABLES)
def test_no_refusal_quotes_a_cell(bad: str, tmp_path: Path) -> None:
    with pytest.raises(PcorError) as refused:
        BAD_TABLES[bad](tmp_path)
    printed = "".join(traceback.format_exception(refused.value)) + repr(refused.value)
    assert (MARK in printed, "73917391" in printed.replace(".", "")) == (False, False)


@pytest.mark.parametrize(
    ("source", "schema"),
    [(PAY, pa.table({"pay": [1.0]})), (PAY, "rows.csv"), (PAY, PAY), ({"pay": [1.0]}, {"pay": 1})],
)
def test_arguments_in_the_wrong_order_are_told_so(source: Any, schema: Any) -> None:
    with pytest.raises(ParameterError, match=r"rows come first .* pcor\.Table\(rows, schema\)"):
        Table(source, schema)


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
