"""Fields and schemas: what is written into a form is read from it again."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pcor import Schema
from pcor.audit.schema_draft import SchemaDraft
from pcor.errors import is_printable
from pcor.service.page.schema_form import FormRefused, draft_fields, entry, schema_of, text_of
from pcor.service.page.words import allowed_by, size_of


def sent(fields: dict[str, str]) -> dict[str, str]:
    """Return fields as a browser sends them and the page reads them."""
    return {name: text.replace("\n", "\r\n").strip() for name, text in fields.items()}


def again(schema: Schema) -> Schema:
    """Return a schema that has been through a form."""
    return schema_of(sent(draft_fields(SchemaDraft(schema, "", {}), "x.csv")))


texts = st.text(min_size=1, max_size=8).filter(is_printable)
BLANK = [" ", "a ", "\u3000a", '"', '"a"', "a = b", "=", "\ta", "a\nb", "a\u2028b", "\\", "007"]


@given(texts | st.sampled_from(BLANK))
def test_an_entry_is_read_as_it_was_written(text: str) -> None:
    assert text_of(entry(text).strip()) == text


@given(st.lists(texts | st.sampled_from(BLANK), min_size=1, max_size=6, unique=True), texts)
def test_words_of_any_kind_come_through_a_form(values: list[str], column: str) -> None:
    schema = Schema(metric=f"not {column}", attributes={column: values})
    assert again(schema) == schema


def test_the_grid_of_a_metric_comes_through_a_form() -> None:
    metric = {"column": "pay", "low": -5, "high": 1e3, "step": 0.5}
    schema = Schema(metric=metric, attributes={"job": ["a", "b"]})
    assert again(schema) == schema
    fields = sent(draft_fields(SchemaDraft(schema, "", {}), "x.csv"))
    for wrong, said in ({"metric.step": ""}, "has no step"), ({"metric.low": "x"}, "not 'x'"):
        with pytest.raises(FormRefused) as caught:
            schema_of(fields | wrong)
        assert said in caught.value.said["metric"]


DECLARED: list[dict[str, Any]] = [
    {"values": [1, 2, 3], "contexts": "range"},
    {"values": [0.5, 1.0, 2.25]},
    {"values": [True, False]},
    {"edges": [float("-inf"), 30, 40.5, float("inf")], "outside": "drop"},
    {"edges": ["2018-01-01", "2018-09-01", "2019-12-31"], "strip": True},
    {"date": {"by": "quarter", "from": "2018-01-01", "to": "2019-12-31"}, "contexts": "range"},
    {"values": ["a", "b"], "other": "b", "contexts": "one", "missing_values": ["?", "n/a"]},
    {"values": ["a=b", "b"], "aliases": {"A = 1": "a=b", "B": "b", ' "q" ': "b"}},
    {"values": ["a", "b"], "strip": True, "ignore_case": True},
]


@pytest.mark.parametrize("declared", DECLARED)
def test_every_kind_of_attribute_comes_through_a_form(declared: dict[str, Any]) -> None:
    metric = {"column": " pay ", "missing": "drop", "missing_values": ["?"]}
    source = {"separator": "tab", "thousands": "space", "currency": "€"}
    schema = Schema(metric, {"x": declared}, id="no ", max_clauses=1, source=source)
    assert again(schema) == schema
    assert again(schema).sha256 == schema.sha256


@pytest.mark.parametrize(
    ("attributes", "max_clauses", "size", "allowed"),
    [
        (2, None, "up to 1,024 contexts", "Few enough for everything"),
        (6, 1, "up to 187 contexts", "too many for the exposure audit"),
        (6, None, "up to 1,073,741,824 contexts", "Too many for the search direct"),
    ],
)
def test_the_size_of_a_schema_is_told_with_what_it_allows(
    attributes: int, max_clauses: int | None, size: str, allowed: str
) -> None:
    # Any set of six values that has the record's own: 2^5 for each attribute.
    declared = {f"a{n}": list("uvwxyz") for n in range(attributes)}
    schema = Schema("pay", declared, max_clauses=max_clauses)
    assert size in size_of(schema)
    assert allowed in allowed_by(schema)


@pytest.mark.parametrize("over", ["error", "keep"])
def test_people_come_through_a_form(over: str) -> None:
    schema = Schema("pay", {"x": ["a"]}, person=" who", rows_per_person=8, over=over)
    assert again(schema) == schema
    half = sent(draft_fields(SchemaDraft(schema, "", {}), "x.csv")) | {"rows_per_person": "many"}
    with pytest.raises(FormRefused) as refused:
        schema_of(half)
    assert "rows_per_person must be a whole number" in str(refused.value.said)
