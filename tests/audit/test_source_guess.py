"""How a table is written is guessed for its draft, and marked like all that the file says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import pcor
from pcor.audit.schema_draft import draft
from pcor.audit.schema_fit import misfits
from pcor.audit.source_guess import guess_layout, guess_numbers
from pcor.errors import MetricError, SourceError
from pcor.public.schema import REVIEW
from pcor.public.source_format import SourceFormat
from pcor.rows.columns import read_columns
from tests.helpers.dialects import ATTRIBUTES, DIALECTS, ID, METRIC, OUTLIER, people, written

DETECTOR = "grubbs:min_population=5"


def drafted(source: Any, **given: str) -> tuple[str, pcor.Schema]:
    found = draft(
        source, metric=METRIC, attributes=ATTRIBUTES, id_column=ID, name="pay", given=given
    )
    return found.text, found.schema


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_draft_of_any_dialect_has_the_domains_and_the_contexts_of_the_clean_table(
    dialect: str, tmp_path: Path
) -> None:
    path = written(dialect, tmp_path)
    text, schema = drafted(path)
    clean, expected = pa.table(people()), drafted(pa.table(people()))[1]
    assert schema.source == DIALECTS[dialect][1]
    assert schema.domains == expected.domains
    assert [a.edges for a in schema.attributes] == [a.edges for a in expected.attributes]
    assert (f"[source]  {REVIEW}" in text) == bool(schema.source.to_dict())
    assert misfits(path, schema) == []
    found = pcor.matching_contexts(pcor.Table(path, schema), 100 + OUTLIER, DETECTOR)
    known = pcor.matching_contexts(pcor.Table(clean, expected), 100 + OUTLIER, DETECTOR)
    assert len(known) > 0
    assert np.array_equal(found.masks, known.masks)
    assert np.array_equal(found.populations, known.populations)


def test_what_is_given_is_not_guessed_and_not_marked(tmp_path: Path) -> None:
    path = written("euros", tmp_path)
    text, schema = drafted(path, separator=";", currency="€")
    assert schema.source == DIALECTS["euros"][1]
    assert f"[source]  {REVIEW}" in text
    text, _ = drafted(path, **schema.source.to_dict())
    assert "[source]\n" in text


def guessed(cells: list[str | None], separator: str = ",") -> SourceFormat:
    table = pa.table({"m": pa.array(cells, pa.string())})
    given = {"separator": separator}
    return guess_numbers(table["m"], "m", guess_layout(table, given), given)


@pytest.mark.parametrize(
    ("cells", "separator", "found"),
    [
        (["1.5", "2"], ",", {}),
        (["1.234", "2.345"], ";", {}),  # as it was always read
        (["1,5", "2", None, " "], ";", {"decimal": ","}),
        (["26,557", "9"], ",", {"thousands": ","}),
        (["26,557", "9"], ";", {"decimal": ","}),
        (["1,234,567"], ";", {"thousands": ","}),
        (["1.234.567"], ",", {"decimal": ",", "thousands": "."}),
        (["-$5", "$1,000.50"], ",", {"thousands": ",", "currency": "$"}),
        (["5 kr", "5e3"], ",", {"currency": "kr"}),
    ],
)
def test_numbers_are_judged_by_what_all_of_them_have_in_common(
    cells: list[str | None], separator: str, found: dict[str, str]
) -> None:
    assert guessed(cells, separator) == SourceFormat(separator=separator, **found)


@pytest.mark.parametrize(
    "cells", [["1,5", "1.5"], ["$5", "5 €"], ["none", "5"], ["1,5", "lots"], ["12-5"]]
)
def test_where_numbers_have_nothing_in_common_nothing_is_guessed(cells: list[str | None]) -> None:
    assert guessed(cells) == SourceFormat()
    with pytest.raises(MetricError) as caught:
        draft(pa.table({"m": cells, "a": cells}), metric="m", attributes=["a"])
    assert "not numbers, first" in caught.value.__notes__[0]


@pytest.mark.parametrize(
    ("text", "separator"),
    [
        ("a,b;c\n1,2;3\n", ","),
        ("a;b\n1,5;2,5\n", ";"),
        ('a;b\n"x;y";2\n', ";"),
        ("a|b|c\n1|2|3\n", "|"),
        ("a\tb\n1,2\t3\n4,5\t6\n", "\t"),
    ],
)
def test_the_separator_is_the_one_that_makes_rows_as_long_as_the_header(
    text: str, separator: str, tmp_path: Path
) -> None:
    path = tmp_path / "rows.csv"
    path.write_text(text, encoding="utf-8")
    header = text.partition("\n")[0].split(separator)
    layout = guess_layout(path, {})
    assert layout.separator == separator
    assert read_columns(path, header[:1], layout).column_names == header[:1]


def test_the_header_decides_about_the_separator_of_a_ragged_file(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("a;b\n1;2;3\n", encoding="utf-8")
    with pytest.raises(SourceError, match="separated by ';', with as many cells") as caught:
        draft(tmp_path / "rows.csv", metric="a", attributes=["b"])
    assert caught.value.__notes__ == ["the header has 2 cells, line 2 has 3"]


def test_the_misfits_of_a_format_are_shown_to_the_owner() -> None:
    schema = pcor.Schema(
        metric="m", attributes={"a": {"edges": [0, 5]}}, source={"decimal": ",", "thousands": "."}
    )
    rows = pa.table({"m": ["1,5", "1.5", "\u00a0"], "a": ["1", "2,5", "2.5"]})
    found = [str(one) for one in misfits(rows, schema)]
    assert found[0].startswith("column 'm': not a number in 1 row, for example '1.5' (1)")
    assert found[1].startswith("column 'a': not a number in 1 row, for example '2.5' (1)")


def test_a_file_that_is_not_there_is_named() -> None:
    with pytest.raises(SourceError, match=r"no such file: 'nowhere\.csv'"):
        draft(Path("nowhere.csv"), metric="m", attributes=["a"])
