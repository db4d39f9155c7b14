"""``pcor schema init`` and ``check`` from inside: what is read off the data is marked and fits."""

from __future__ import annotations

import datetime as dt
import math
import tomllib
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import csv, parquet

from pcor import Schema, Table
from pcor.audit.column_draft import MOST_VALUES
from pcor.audit.schema_draft import draft
from pcor.audit.schema_fit import misfits
from pcor.errors import MetricError, RecordError, SourceError
from pcor.public.guarantee import OWNER_ONLY
from pcor.public.schema import REVIEW
from tests.helpers.strategies import ID, METRIC, finite, names, texts


def read(text: str) -> Schema:
    return Schema.from_dict(tomllib.loads(text))


def drafted(cells: list[Any], kind: pa.DataType | None = None) -> Schema:
    """Draft a schema for one column and see that its own table fits."""
    table = pa.table({"m": [1.0] * len(cells), "a": pa.array(cells, kind)})
    schema = draft(table, metric="m", attributes=["a"]).schema
    assert misfits(table, schema) == []
    Table(table, schema)
    return schema


# -- draft ----------------------------------------------------------------------------------------


def test_every_attribute_and_whatever_else_was_read_off_the_data_is_marked_once() -> None:
    table = pa.table(
        {
            "m": ["1,5", "?"] * 30,
            "region": ["north", "south", "west"] * 20,
            "age": [float(i) for i in range(60)],
        }
    )
    found = draft(table, metric="m", attributes=["region", "age"])
    titles = [line for line in found.text.splitlines() if line.startswith("[")]
    assert titles == [
        "[dataset]",
        f"[metric]  {REVIEW}",
        f'[attributes."region"]  {REVIEW}',
        f'[attributes."age"]  {REVIEW}',
        "[release]",
        f"[source]  {REVIEW}",
    ]
    assert found.marks == 4
    assert read(found.text) == found.schema


def test_what_only_the_owner_can_say_is_there_as_a_comment() -> None:
    table = pa.table({"m": [1.0, 2.0], "region": ["north", "south"]})
    text = draft(table, metric="m", attributes=["region"]).text
    said = ['# rows = "claims"  #', '# unit = "dollars"  #', "groups = {...} in place of this"]
    assert all(comment in text for comment in said)
    uncommented = text.replace("# rows", "rows").replace("# unit", "unit").replace(REVIEW, "")
    assert read(uncommented).noun == "claims"


def test_the_grid_and_the_limits_stand_there_as_examples_that_no_row_changes() -> None:
    """Without their marks of comments they are a schema."""
    commented = ("# low", "# high", "# step", "# [contexts]", "# max_clauses")
    texts_ = [
        draft(pa.table({"m": metric, "a": ["x", "y"]}), metric="m", attributes=["a"]).text
        for metric in ([1.0, 2.0], [-7e9, 0.001])
    ]
    assert texts_[0] == texts_[1]
    for line in commented:
        texts_[0] = texts_[0].replace(f"\n{line}", f"\n{line[2:]}")
    schema = read(texts_[0])
    assert (schema.metric.low, schema.metric.high, schema.metric.step) == (0, 20000, 50)
    assert schema.max_clauses == 1


def unmarked(text: str) -> list[str]:
    """Return the lines that are in no part that is marked, comments aside."""
    lines, marked = [], False
    for line in text.splitlines():
        marked = REVIEW in line if line.startswith("[") else marked
        lines += [line] if line and not marked and not line.startswith("#") else []
    return lines


def test_nothing_from_the_data_is_outside_the_marked_parts() -> None:
    table = pa.table({"m": [7134459.25, 2.0], "a": ["canary", "zz"], "key": ["id-1", "id-2"]})
    text = draft(table, metric="m", attributes=["a"], id_column="key", name="claims").text
    assert unmarked(text) == [
        "[dataset]",
        'name = "claims"',
        'id = "key"',
        "[metric]",
        'column = "m"',
        "[release]",
        'detector = "grubbs"  # far from the mean, for so many rows',
    ]
    assert not any(cell in text for cell in ("7134459", "id-1", "id-2"))


def test_a_draft_shows_nothing_of_the_rows_where_it_is_printed_by_accident() -> None:
    table = pa.table({"m": [1.0, 2.0], "a": ["canary", "zz"]})
    assert "canary" not in repr(draft(table, metric="m", attributes=["a"]))


@settings(max_examples=60, deadline=None)
@given(st.lists(texts, min_size=1, max_size=8), names)
def test_the_draft_of_any_text_column_of_any_name_fits_its_own_table(
    cells: list[str], name: str
) -> None:
    keys = [str(i) for i in range(len(cells))]
    table = pa.table({METRIC: [1.0] * len(cells), name: cells, ID: keys})
    schema = read(draft(table, metric=METRIC, attributes=[name], id_column=ID).text)
    assert (schema.metric.column, schema.id, schema.attributes[0].name) == (METRIC, ID, name)
    assert misfits(table, schema) == []
    # A cell that is blank or a word for no value is none, unless there is nothing else.
    first = next(
        place for place, cell in enumerate(cells) if schema.attributes[0].cell_code(cell) >= 0
    )
    assert Table(table, schema).record(str(first)).key == first


@settings(max_examples=60, deadline=None)
@given(st.lists(finite | st.sampled_from([math.inf, -math.inf]), min_size=1, max_size=60))
def test_the_draft_of_any_column_of_numbers_fits_its_own_table(cells: list[float]) -> None:
    attribute = drafted(cells, pa.float64()).attributes[0]
    many = len(set(cells)) > MOST_VALUES
    assert attribute.edges is not None or not many


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(-(2**63), 2**63 - 1) | st.integers(-9, 9), min_size=1, max_size=60))
def test_the_draft_of_any_column_of_whole_numbers_fits_its_own_table(cells: list[int]) -> None:
    drafted(cells, pa.int64())


def test_many_numbers_become_a_few_bins_with_round_inner_edges_that_cover_all_rows() -> None:
    attribute = drafted([18 + i for i in range(100)]).attributes[0]
    assert attribute.edges == (-math.inf, 40, 60, 80, 100, math.inf)


@settings(max_examples=60, deadline=None)
@given(st.lists(finite, min_size=MOST_VALUES + 1, max_size=60, unique=True))
def test_edges_are_few_and_publish_neither_the_smallest_nor_the_largest_number(
    cells: list[float],
) -> None:
    edges = drafted(cells, pa.float64()).attributes[0].edges
    assert edges is not None
    assert (edges[0], edges[-1]) == (-math.inf, math.inf)
    assert len(edges) <= 12


def test_bins_follow_the_range_of_the_numbers_and_not_their_size() -> None:
    """Numbers near a million that differ by a hundred must not fall into one bin."""
    attribute = drafted([1_000_001 + i for i in range(100)]).attributes[0]
    assert attribute.edges is not None
    assert attribute.edges[1:-1] == (1_000_020, 1_000_040, 1_000_060, 1_000_080)


@pytest.mark.parametrize(
    ("cells", "kind", "values"),
    [
        (["b", "a", "b"], None, ("a", "b")),
        (["2", "10", "1"], None, (1, 2, 10)),
        (["1.5", "2", "0"], None, (0.0, 1.5, 2.0)),
        (["007", "12"], None, ("007", "12")),  # a name, and not the number 7
        (["1_0", "2"], None, ("1_0", "2")),
        (["nan", "1"], None, (1,)),  # a word for no value
        (["nan", " "], None, (" ", "nan")),  # unless there is nothing else
        (["7", "7.0"], None, ("7", "7.0")),  # one number, but two texts
        ([True, False], None, (False, True)),
        ([2019, 2020], pa.int16(), (2019, 2020)),
        ([9007199254740993, 1], None, (1, 9007199254740993)),  # no float64 holds it
        ([0.5, 1.0], None, (0.5, 1.0)),
        ([Decimal("1.10"), Decimal("2.00")], None, (1.1, 2.0)),
        ([dt.date(1020, 2, 1), dt.date(2020, 2, 1)], None, ("1020-02-01", "2020-02-01")),
        (["2020-02-01", "never"], None, ("2020-02-01", "never")),
        (["x", "y", "x"], pa.dictionary(pa.int8(), pa.string()), ("x", "y")),
    ],
)
def test_a_drafted_domain_is_in_natural_order_and_kind(
    cells: list[Any], kind: pa.DataType | None, values: tuple[Any, ...]
) -> None:
    drawn = drafted(cells, kind).attributes[0]
    assert drawn.values == values
    assert [type(value) for value in drawn.values] == [type(value) for value in values]


@pytest.mark.parametrize(
    ("cells", "by", "first", "last"),
    [
        (["2019-05-06", "2019-06-07"], "quarter", "2019-01-01", "2019-12-31"),
        (["2017-12-31T23:59", "2019-01-01"], "quarter", "2017-01-01", "2019-12-31"),
        ([dt.date(2016, 12, 31), dt.date(2019, 1, 1)], "year", "2016-01-01", "2019-12-31"),
        ([dt.datetime(1969, 12, 31, 23, 59)], "quarter", "1969-01-01", "1969-12-31"),
    ],
)
def test_dates_are_drafted_as_whole_years_in_ranges(
    cells: list[Any], by: str, first: str, last: str
) -> None:
    attribute = drafted(cells).attributes[0]
    assert attribute.to_dict() == {
        "date": {"by": by, "from": first, "to": last},
        "contexts": "range",
    }


@settings(max_examples=40, deadline=None)
@given(st.lists(st.dates(), min_size=1, max_size=5), st.booleans())
def test_the_draft_of_any_column_of_dates_fits_its_own_table(
    cells: list[dt.date], as_text: bool
) -> None:
    drafted([str(cell) for cell in cells] if as_text else cells)


def test_the_same_table_as_csv_and_as_parquet_gets_the_same_draft(tmp_path: Path) -> None:
    days = [dt.date(2019, 3, 14), dt.date(2020, 2, 29)]
    table = pa.table(
        {
            **{"m": [1.5, 2.5], "year": [2019, 2020], "job": ["a b", "c,d"], "k": [1, 2]},
            "day": days,
        }
    )
    csv.write_csv(table, tmp_path / "t.csv")
    parquet.write_table(table, tmp_path / "t.parquet")
    texts_ = [
        draft(tmp_path / name, metric="m", attributes=["year", "job", "day"], id_column="k").text
        for name in ("t.csv", "t.parquet")
    ]
    assert texts_[0] == texts_[1]
    assert read(texts_[0]).name == "t"


def test_a_missing_value_is_no_value_and_the_owner_is_told() -> None:
    table = pa.table({"m": [1.0] * 302, "a": ["x"] * 300 + [None, None]})
    found = draft(table, metric="m", attributes=["a"])
    assert found.schema.attributes[0].values == ("x",)
    assert '2 rows have no value, which outside = "drop" leaves out' in found.noticed["a"]
    declared = found.schema.to_dict()
    del declared["attributes"]["a"]["outside"]
    assert [str(m) for m in misfits(table, Schema.from_dict(declared))] == [
        "column 'a': no value in 2 rows; other = ... counts them as one value, "
        'outside = "drop" leaves such rows out'
    ]


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        ({"metric": "m", "attributes": []}, "name at least one attribute"),
        ({"metric": "m", "attributes": ["a", "a"]}, "column 'a' is named twice"),
        ({"metric": "m", "attributes": ["m"]}, "column 'm' is named twice"),
        ({"metric": "m", "attributes": ["a"], "id_column": "a"}, "column 'a' is named twice"),
        ({"metric": "m", "attributes": ["aa"]}, "no column 'aa'; it needs the columns: m, aa"),
        ({"metric": "a", "attributes": ["m"]}, "the metric 'a' is not numeric"),
        ({"metric": "m", "attributes": ["none"]}, "attribute 'none': its column has no values"),
        ({"metric": "m", "attributes": ["lists"]}, "attribute 'lists': its column does not hold"),
    ],
)
def test_what_cannot_be_drafted_is_refused_with_the_column_and_no_cell(
    asked: dict[str, Any], sentence: str
) -> None:
    nothing = pa.nulls(2, pa.string())
    table = pa.table({"m": [1.0, 2.0], "a": ["canary", "b"], "none": nothing, "lists": [[1], [2]]})
    with pytest.raises(SourceError) as caught:
        draft(table, **asked)
    assert sentence in str(caught.value)
    assert "canary" not in str(caught.value)


def test_an_owner_is_noted_the_first_cells_of_a_metric_that_are_not_numbers() -> None:
    table = pa.table({"m": ["1", "n/a", None, "n/a", " 2 ", *"abcdef"], "a": ["x"] * 11})
    with pytest.raises(MetricError) as caught:
        draft(table, metric="m", attributes=["a"])
    (note,) = caught.value.__notes__
    assert note.startswith(f"{OWNER_ONLY} 6 not numbers, first 'a' in row 5, 'b' in row 6, ")
    assert "'e' in row 9 (rows are counted from 0)" in note
    assert "'f'" not in note
    assert "n/a" not in note  # known to mean no value, and no culprit


# -- misfits --------------------------------------------------------------------------------------

SCHEMA = Schema(
    metric="m",
    attributes={"job": ["a", "b"], "age": {"edges": [0, 10, 20]}},
    id="key",
)
GOOD: dict[str, list[Any]] = {
    "m": ["1", "2", "3", "4"],
    "job": ["a", "b", "a", "b"],
    "age": ["1", "11", "20", "0"],
    "key": ["p", "q", "r", "s"],
}


def told(schema: Schema = SCHEMA, **changed: list[Any]) -> list[str]:
    return [str(misfit) for misfit in misfits(pa.table(GOOD | changed), schema)]


def test_a_table_that_fits_has_no_misfits() -> None:
    assert told() == []


@pytest.mark.parametrize(
    ("column", "cells", "sentence"),
    [
        (
            "job",
            ["zz", "yy", "zz", "a"],
            "outside the declared domain in 3 rows, for example 'zz' (2), 'yy' (1)",
        ),
        ("job", [None, "a", None, "b"], "no value in 2 rows"),
        ("age", ["1", "2", "3", "20.5"], "outside the declared domain in 1 row, for example"),
        ("age", ["1", "old", "3", "old"], "not a number in 2 rows, for example 'old' (2)"),
        ("m", ["1", "lots", "3", "x"], "not a number in 2 rows, for example 'lots' (1), 'x' (1)"),
        ("m", ["1_0", "٢", "3", " 4 "], "not a number in 2 rows, for example '1_0' (1), '٢' (1)"),
        ("m", ["1", "", "nan", None], "no value in 3 rows"),
        ("m", ["inf", "2", "-inf", "1e101"], "infinite or beyond 1e100 in 3 rows"),
        ("key", ["p", "p", "q", "p"], "an id that is not unique in 3 rows, for example 'p'"),
        ("job", [["a"], ["b"], [], None], "not a single value in 4 rows"),
    ],
)
def test_each_misfit_names_the_column_the_values_and_how_many(
    column: str, cells: list[Any], sentence: str
) -> None:
    (only,) = told(SCHEMA, **{column: cells})
    assert only.startswith(f"column {column!r}: {sentence}")


def test_an_id_that_several_rows_have_keeps_no_other_row_from_a_release() -> None:
    rows = GOOD | {"key": ["p", "p", None, None]}  # rows without an id are asked about by nobody
    (only,) = misfits(pa.table(rows), SCHEMA)
    assert (only.problem, only.rows, only.refused) == ("an id that is not unique", 2, False)
    table = Table(pa.table(rows), SCHEMA)
    with pytest.raises(RecordError, match="names more than one row"):
        table.record("p")


@pytest.mark.parametrize("nobody", [None, float("nan")])
def test_a_row_without_a_person_is_told_whatever_stands_for_none(nobody: float | None) -> None:
    schema = Schema(metric="m", attributes={"job": ["a"]}, person="who", rows_per_person=2)
    rows = pa.table({"m": [1.0, 2.0], "job": ["a", "a"], "who": pa.array([7.0, nobody])})
    (only,) = misfits(rows, schema)
    assert (only.problem, only.rows) == ("nobody's rows", 1)
    with pytest.raises(SourceError, match="without a person"):
        Table(rows, schema).record(0)


def test_a_metric_of_another_type_is_wrong_in_every_row_that_has_one() -> None:
    days = pa.array([dt.date(2020, 1, 1), None, None, None])
    (only,) = told(m=days)
    assert only.startswith("column 'm': not a number in 1 row, for example '2020-01-01' (1); ")


def test_check_tells_what_is_no_date_and_what_is_outside_every_bin_of_dates() -> None:
    span = {"by": "year", "from": "2018-01-01", "to": "2019-12-31"}
    schema = Schema(metric="m", attributes={"day": {"date": span}})

    def said(days: list[Any]) -> list[str]:
        table = pa.table({"m": [1.0] * len(days), "day": days})
        return [str(misfit) for misfit in misfits(table, schema)]

    assert said(["2018-01-01", "2019-12-31T23:59"]) == []
    assert said(["2018-01-01", "2019-02-29", "x", " "]) == [
        "column 'day': not a date in 2 rows, for example '2019-02-29' (1), 'x' (1); write each "
        "like 2019-03-14, without a zone"
    ]
    assert said([dt.date(2018, 1, 1), dt.date(2020, 1, 1), None]) == [
        "column 'day': outside the declared domain in 1 row, for example '2020-01-01' (1); declare "
        'what could occur, or outside = "drop" leaves such rows out',
        "column 'day': no value in 1 row; outside = \"drop\" leaves such rows out",
    ]
    (zone,) = said([dt.datetime(2018, 1, 1, tzinfo=dt.UTC)])
    assert zone.startswith("column 'day': not a date in 1 row")


def test_all_misfits_are_told_at_once() -> None:
    found = told(m=["x", "2", "3", "4"], job=["zz", "a", "a", "a"], key=["p", "p", "q", "r"])
    assert [line.split(":")[0] for line in found] == ["column 'm'", "column 'job'", "column 'key'"]


def test_missing_columns_are_told_beside_what_the_others_hold() -> None:
    table = pa.table({"m": ["1"], "job": ["zz"], "age": ["5"]})
    assert [str(m) for m in misfits(table, SCHEMA)] == [
        "column 'key': the table has no such column",
        "column 'job': outside the declared domain in 1 row, for example 'zz' (1); declare what "
        'could occur, or other = ... counts them as one value, outside = "drop" leaves such rows '
        "out",
    ]


def test_a_missing_column_is_offered_the_nearest_that_there_is() -> None:
    table = pa.table({"m": ["1"], "Job": ["a"], "age": ["5"], "key": ["p"]})
    assert [str(m) for m in misfits(table, SCHEMA)] == [
        "column 'job': the table has no such column; did you mean 'Job'?"
    ]


@pytest.mark.parametrize(
    ("column", "cells", "remedy"),
    [
        ("job", ["zz", "a", "a", "a"], 'or other = ... counts them as one value, outside = "drop"'),
        ("age", ["99", "1", "1", "1"], 'declare what could occur, or outside = "drop" leaves'),
        ("age", ["old", "1", "1", "1"], "or declare values instead of edges"),
        ("m", ["1", "", "3", "4"], 'missing = "drop" under [metric] leaves such rows out'),
        (
            "m",
            ["1", "x", "3", "4"],
            'or name them in missing_values and set missing = "drop" under [metric]',
        ),
        ("m", ["inf", "2", "3", "4"], "correct or remove them"),
        ("key", ["p", "p", "q", "r"], "or declare no id: rows are then counted from 0"),
        ("job", [["a"], ["b"], [], None], "leave this attribute out"),
    ],
)
def test_each_misfit_comes_with_a_remedy(column: str, cells: list[Any], remedy: str) -> None:
    (only,) = misfits(pa.table(GOOD | {column: cells}), SCHEMA)
    assert remedy in only.remedy
    assert str(only).endswith(f"; {only.remedy}")


def test_a_word_that_means_no_value_is_told_as_one_and_a_spelling_is_no_misfit() -> None:
    words = ["?", "-1"]
    schema = Schema(
        metric={"column": "m", "missing_values": words},
        attributes={
            "job": {"values": ["a", "b"], "missing_values": words, "strip": True},
            "age": {"edges": [-5, 5], "missing_values": words},
            "day": {"edges": ["2019-01-01", "2020-01-01"], "missing_values": words, "strip": True},
        },
    )
    fine = {"m": "1", "job": " a", "age": "2", "day": "2019-03-14 "}
    rows = [fine, dict.fromkeys(fine, "?"), dict.fromkeys(fine, "-1"), fine]
    found = misfits(pa.Table.from_pylist(rows), schema)
    assert [(m.column, m.problem, m.rows, m.examples) for m in found] == [
        (name, "no value", 2, ()) for name in fine
    ]
    wrong = misfits(pa.Table.from_pylist([*rows, dict.fromkeys(fine, "x")]), schema)
    assert [(m.column, m.examples) for m in wrong if m.examples] == [
        (name, ("'x' (1)",)) for name in fine
    ]


def test_a_table_with_none_of_the_columns_is_told_column_by_column() -> None:
    found = misfits(pa.table({"other": [1]}), SCHEMA)
    assert [m.column for m in found] == ["m", "job", "age", "key"]


@pytest.mark.parametrize("rows", [0, 3])
def test_check_agrees_with_a_release_that_no_row_is_left(rows: int) -> None:
    """An error says "`pcor schema check` says why", so it has to."""
    schema = Schema(metric="m", attributes={"a": {"values": ["x"], "outside": "drop"}})
    table = pa.table({"m": pa.array([1.0] * rows), "a": pa.array(["y"] * rows, pa.string())})
    with pytest.raises(SourceError, match="schema check"):
        Table(table, schema)
    (only,) = misfits(table, schema)
    assert "no row is left" in str(only)
    assert only.rows == rows


def test_where_no_row_is_left_each_column_says_how_many_it_drops() -> None:
    drop = {"outside": "drop"}
    schema = Schema(
        metric={"column": "m", "missing": "drop"},
        attributes={
            "job": {"values": ["a", "b"], **drop},
            "age": {"values": ["young", "old"], **drop},
        },
    )
    assert told(schema, m=["1", "", "3", "4"]) == [
        """column 'm': no row is left; missing = "drop" applies in 1 row""",
        """column 'age': no row is left; outside = "drop" applies in 4 rows, for example """
        "'1' (1), '11' (1), '20' (1), '0' (1)",
    ]


def test_what_the_schema_drops_or_counts_as_other_is_no_misfit() -> None:
    schema = Schema(
        metric={"column": "m", "missing": "drop"},
        attributes={
            "job": {"values": ["a", "else"], "other": "else"},
            "age": {"edges": [0, 10], "outside": "drop"},
        },
    )
    assert told(schema, m=["1", "", "3", "4"], job=["a", "zz", None, "a"]) == []


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.sampled_from(["a", "b", "c", None]), min_size=1, max_size=9),
    st.lists(st.sampled_from(["1", "x", "inf", "", "2"]), min_size=9, max_size=9),
)
def test_check_finds_a_misfit_exactly_where_a_table_is_refused(
    jobs: list[str | None], pay: list[str]
) -> None:
    schema = Schema(metric="m", attributes={"job": ["a", "b"]})
    table = pa.table({"job": pa.array(jobs, pa.string()), "m": pay[: len(jobs)]})
    try:
        Table(table, schema)
    except SourceError:
        refused = True
    else:
        refused = False
    assert bool(misfits(table, schema)) == refused
