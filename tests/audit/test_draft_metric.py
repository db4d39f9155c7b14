"""A draft of columns as people export them: words among numbers, blanks in names."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from pcor.audit.schema_draft import draft
from pcor.errors import MetricError, SourceError
from pcor.public.source_format import SourceFormat

EUROS = [f"{i}.{100 + i},5" for i in range(1, 61)]


def drafted_metric(cells: list[str]) -> tuple[dict[str, Any], dict[str, list[str]], SourceFormat]:
    table = pa.table({"m": cells, "a": ["x", "y"] * (len(cells) // 2) + ["x"] * (len(cells) % 2)})
    found = draft(table, metric="m", attributes=["a"])
    return found.schema.to_dict()["metric"], found.noticed, found.schema.source


def test_a_few_words_among_numbers_are_drafted_as_no_value_whatever_the_dialect() -> None:
    for numbers in (EUROS, [str(i) for i in range(60)]):
        metric, noticed, written = drafted_metric([*numbers, "k.A.", " offen ", "offen", "n/a"])
        assert metric["missing"] == "drop"
        assert metric["missing_values"] == ["n/a", "k.A.", "offen"]
        assert noticed["m"] == [
            "4 rows without a number, which are left out",
            "nearly all cells are numbers; taken for no value, in missing_values: 'k.A.' in 1 row, "
            "'offen' in 2 rows",
        ]
    assert not written.to_dict()
    assert drafted_metric([*EUROS, "offen"])[2].to_dict() == {"decimal": ",", "thousands": "."}


@pytest.mark.parametrize(
    ("wrong", "shown"),
    [
        (["4.23"], "1 not numbers, first '4.23' in row 60 "),  # a misprint is no word
        (["offen", "ca. 500"], "2 not numbers, first 'offen' in row 60, 'ca. 500' in row 61 "),
        ([chr(97 + i) for i in range(8)], "8 not numbers, first 'a' in row 60"),  # more than a few
    ],
)
def test_only_what_is_no_number_by_the_dialect_of_the_others_is_named(
    wrong: list[str], shown: str
) -> None:
    with pytest.raises(MetricError) as caught:
        drafted_metric([*EUROS, *wrong])
    assert shown in caught.value.__notes__[0]


def test_a_column_whose_name_ends_in_a_blank_is_found_without_it() -> None:
    table = pa.table({"Region ": ["x", "y"] * 9, "pay": range(18), "who\t": list("abcdefghi") * 2})
    found = draft(table, metric=" pay", attributes=["Region"], person="who")
    assert [one.name for one in found.schema.attributes] == ["Region "]
    assert (found.schema.metric.column, found.schema.person) == ("pay", "who\t")
    assert '[attributes."Region "]' in found.text


def test_blanks_are_told_apart_where_two_columns_differ_by_them() -> None:
    table = pa.table({"a": ["x", "y"], "a ": ["p", "q"], "b ": [1, 2], " b": [3, 4], "m": [1, 2]})
    exact = draft(table, metric="m", attributes=["a", "a "]).schema
    assert [one.name for one in exact.attributes] == ["a", "a "]
    with pytest.raises(SourceError, match="no column 'b'"):
        draft(table, metric="m", attributes=["b"])
    with pytest.raises(SourceError, match="column 'm' is named twice"):
        draft(table, metric="m", attributes=["a", "m "])
