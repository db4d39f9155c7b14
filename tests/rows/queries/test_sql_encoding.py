"""Values and bins in SQL are those of memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import dataset, parquet

import pcor
from pcor.errors import DomainError, MetricError, PcorError, SourceError
from pcor.public.schema import Attribute, find_code
from pcor.rows.queries.sql_encoding import direct_values
from tests.helpers.engines import LOCAL, SCHEMA, people
from tests.helpers.same_rows import cells, same_coe

COLUMNS: dict[str, list[Any]] = {
    "text": ["1", "2", " 2 ", "2.0", "True", "x", "", "02", "1e0", None],
    "whole": [0, 1, 2, 3, -1, None],
    "float": [0.0, 1.0, 2.0, 2.5, -1.0, None],
    "flag": [True, False, None],
}
DOMAINS: list[list[Any]] = [
    ["1", "2", "x"],
    ["True", "False", "02"],
    [1, 2, 3],
    [1.0, 2.5],
    [True, False],
]


@pytest.mark.parametrize("rule", [{"outside": "drop"}, "other"])
@pytest.mark.parametrize("column", list(COLUMNS))
@pytest.mark.parametrize("domain", DOMAINS, ids=str)
@pytest.mark.parametrize("engine", ["duckdb", "polars", "sqlite"])
def test_values_compare_as_in_memory(
    engine: str, domain: list[Any], column: str, rule: Any, tmp_path: Path
) -> None:
    if engine == "sqlite" and column == "flag":
        return  # it has no such type: they are 0 and 1
    kept = {"other": domain[0]} if rule == "other" else rule
    schema = pcor.Schema(metric="m", attributes={"a": {"values": domain, **kept}})
    values = COLUMNS[column] * 2
    rows = pa.table({"a": values, "m": np.arange(len(values)) / 2})
    try:
        expected = cells(pcor.Table(rows, schema))
    except PcorError as refusal:
        with pytest.raises(type(refusal)):
            pcor.Table(LOCAL[engine](rows, tmp_path), schema)
    else:
        assert cells(pcor.Table(LOCAL[engine](rows, tmp_path), schema)) == expected


@given(
    st.lists(st.integers(-(2**70), 2**70) | st.floats(-1e20, 1e20), min_size=1, max_size=5),
    st.lists(st.floats(allow_nan=False) | st.integers(-(2**62), 2**62), max_size=8),
)
def test_direct_values_are_those_of_find_code(domain: list[Any], cells: list[Any]) -> None:
    attribute = Attribute("a", tuple(dict.fromkeys(domain)))
    for kind, python in (("float", float), ("integer", int)):
        known = dict(direct_values(attribute, kind) or [])
        mine = [c for c in [*cells, *domain] if isinstance(c, python) and abs(c) < 2**63]
        for cell in mine:
            assert known.get(cell, -1) == find_code(attribute, cell)


@pytest.mark.parametrize("engine", list(LOCAL))
def test_bins_are_those_of_memory(engine: str, tmp_path: Path) -> None:
    edges = [-np.inf, 0, 0.1, 3, np.inf]
    schema = pcor.Schema(metric="m", attributes={"a": {"edges": edges[1:], "outside": "drop"}})
    values = [-1.0, -0.0, 0.0, 0.1, np.nextafter(0.1, 0), 3.0, 1e300, np.inf, None]
    rows = pa.table({"a": values * 2, "m": np.arange(2.0 * len(values))})
    assert cells(pcor.Table(LOCAL[engine](rows, tmp_path), schema)) == cells(
        pcor.Table(rows, schema)
    )


@pytest.mark.parametrize("engine", list(LOCAL))
def test_a_null_in_every_column_is_refused_or_dropped_as_declared(
    engine: str, tmp_path: Path
) -> None:
    rows = people(40)
    for place, name in enumerate(rows.column_names):
        column = rows[name].to_pylist()
        column[place] = None
        rows = rows.set_column(place, name, pa.array(column, rows[name].type))
    source = LOCAL[engine](rows, tmp_path)
    with pytest.raises(MetricError, match="rows with no value"):
        pcor.Table(source, SCHEMA)
    declared: dict[str, Any] = SCHEMA.to_dict()
    declared["metric"]["missing"] = "drop"
    with pytest.raises(DomainError, match="'job' has a value outside its declared domain"):
        pcor.Table(source, pcor.Schema.from_dict(declared))
    for attribute in declared["attributes"].values():
        attribute["outside"] = "drop"
    loose = pcor.Schema.from_dict(declared)
    table, memory = pcor.Table(source, loose), pcor.Table(rows, loose)
    assert cells(table) == cells(memory)
    # The row without an id is still one of the rows.
    assert int(table.cells.cell_counts.sum()) == 36
    assert same_coe(table, memory, int(rows["key"][9].as_py()), pcor.LOF(k=3, min_population=5))


@pytest.mark.parametrize("engine", ["duckdb", "polars", "sqlite"])
def test_an_attribute_of_five_thousand_values_is_joined(engine: str, tmp_path: Path) -> None:
    names = [f"employer {place}" for place in range(5000)]
    numbers = np.random.default_rng(0)
    rows = pa.table(
        {
            "key": np.arange(3000),
            "employer": np.array(names)[numbers.integers(0, 5000, 3000)],
            "pay": numbers.normal(size=3000),
        }
    )
    schema = pcor.Schema(metric="pay", attributes={"employer": names}, id="key")
    table, memory = pcor.Table(LOCAL[engine](rows, tmp_path), schema), pcor.Table(rows, schema)
    assert cells(table) == cells(memory)
    assert pcor.is_outlier(table, 7, pcor.Context.full(schema)) == pcor.is_outlier(
        memory, 7, pcor.Context.full(schema)
    )


NAN = float("nan")
PARQUET: dict[str, Any] = {
    "file": lambda path: str(path),  # with memory=
    "list": lambda path: [str(path)],
    "folder": lambda path: str(path.parent),
    "pattern": lambda path: str(path.parent / "*.parquet"),
    "relation": lambda path: duckdb.connect().read_parquet(str(path)),
    "dataset": lambda path: dataset.dataset(path),
    "scan": lambda path: pl.scan_parquet(path),
}


def judged(source: Any, schema: pcor.Schema, memory: str | None = None) -> Any:
    """Return the cells of a table, or by which error, in which words, it is refused."""
    try:
        return cells(pcor.Table(source, schema, memory=memory))
    except PcorError as refusal:
        return type(refusal), str(refusal)


@pytest.mark.parametrize("kind", [pa.float64(), pa.float32()], ids=str)
@pytest.mark.parametrize("column", ["m", "age", "year", "who"])
@pytest.mark.parametrize("maker", list(PARQUET))
def test_nan_in_a_parquet_file_is_missing_as_in_memory(
    maker: str, column: str, kind: pa.DataType, tmp_path: Path
) -> None:
    """Statistics of such a file leave NaN out: all that an engine concludes from them is wrong."""
    plain: dict[str, Any] = {"m": [0, 1, 2, 3] * 3, "age": [1, 5, 9, 10] * 3, "year": [7, 8] * 6}
    plain = {name: pa.array(map(float, values), kind) for name, values in plain.items()}
    plain["who"] = pa.array(np.arange(12) // 2, kind)
    values = plain[column].to_pylist()
    rows = pa.table(plain | {column: pa.array([*values[:3], NAN, *values[4:]], kind)})
    parquet.write_table(rows, tmp_path / "rows.parquet")
    source, memory = PARQUET[maker](tmp_path / "rows.parquet"), "1GiB" if maker == "file" else None
    for outside, over in (("error", "error"), ("drop", "error"), ("error", "keep")):
        schema = pcor.Schema(
            metric={"column": "m", "missing": outside},
            attributes={
                "age": {"edges": [0, 5, 10], "outside": outside},
                "year": {"values": [7, 8], "outside": outside},
            },
            person="who",
            rows_per_person=2,
            over=over,
        )
        expected = judged(rows, schema)
        assert judged(source, schema, memory) == expected
        assert (outside == "error" or column == "who") == isinstance(expected, tuple)


@pytest.mark.parametrize("engine", ["duckdb", "polars"])
def test_text_that_is_no_number_is_refused(engine: str, tmp_path: Path) -> None:
    schema = pcor.Schema(metric="m", attributes={"a": {"edges": [0, 10], "outside": "drop"}})
    fine = pa.table({"a": ["1", " 2.5 ", "", None], "m": ["1e2", "-3", "nan", "4"]})
    loose = pcor.Schema(
        metric={"column": "m", "missing": "drop"},
        attributes={"a": {"edges": [0, 10], "outside": "drop"}},
    )
    assert cells(pcor.Table(LOCAL[engine](fine, tmp_path), loose)) == {(0,): 2}
    for name, error in (("m", MetricError), ("a", SourceError)):
        wrong = {"a": ["1", "2"], "m": ["1", "2"]} | {name: ["1", "1_000"]}
        with pytest.raises(error, match="not numeric"):
            pcor.Table(LOCAL[engine](pa.table(wrong), tmp_path), schema)
