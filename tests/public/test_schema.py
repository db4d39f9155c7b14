"""A schema says what it means, in TOML and in Python, and refuses to contradict itself."""

from __future__ import annotations

import math
import pickle
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pcor import Attribute, Metric, Schema, Table
from pcor.errors import ContextError, SchemaError
from pcor.public.schema import REVIEW
from tests.helpers.strategies import few, names, schemas, texts

CLAIMS = """
[dataset]
name = "claims"
id = "claim"

[metric]
column = "amount"
missing = "drop"

[attributes.region]
values = ["north", "south", "elsewhere"]
other = "elsewhere"

[attributes.year]
values = [2019, 2020]

[attributes.urgent]
values = [true, false]

[attributes.rate]
values = [0.5, 1]
outside = "drop"

[attributes.age]
edges = [18, 25, 65, inf]
outside = "drop"
"""


def written(folder: Path, text: str) -> Path:
    path = folder / "schema.toml"
    path.write_text(text, encoding="utf-8")
    return path


def one(declared: Any) -> Attribute:
    """The only attribute of a schema that declares it so."""
    return Schema(metric="pay", attributes={"x": declared}).attributes[0]


def refusal(declared: dict[str, Any]) -> str:
    with pytest.raises(SchemaError) as refused:
        Schema.from_dict(declared)
    return str(refused.value)


def refusal_of_attribute(declared: Any) -> str:
    """What is said when attribute 'city' is declared so."""
    return refusal({"metric": {"column": "pay"}, "attributes": {"city": declared}})


# -- TOML -----------------------------------------------------------------------------------------


def test_a_schema_file_and_the_python_form_declare_the_same(tmp_path: Path) -> None:
    schema = Schema(
        metric={"column": "amount", "missing": "drop"},
        attributes={
            "region": {"values": ["north", "south", "elsewhere"], "other": "elsewhere"},
            "year": [2019, 2020],
            "urgent": [True, False],
            "rate": {"values": [0.5, 1], "outside": "drop"},
            "age": {"edges": [18, 25, 65, math.inf], "outside": "drop"},
        },
        id="claim",
        name="claims",
    )
    assert Schema.from_file(written(tmp_path, CLAIMS)) == schema


def test_a_schema_file_may_be_named_by_a_text(tmp_path: Path) -> None:
    path = written(tmp_path, CLAIMS)
    assert Schema.from_file(str(path)) == Schema.from_file(path)


@pytest.mark.parametrize(
    ("attribute", "kind"),
    [
        ("region", "text"),
        ("year", "integer"),
        ("urgent", "boolean"),
        ("rate", "number"),
        ("age", "bins"),
    ],
)
def test_the_kind_follows_from_the_declared_values(
    tmp_path: Path, attribute: str, kind: str
) -> None:
    assert Schema.from_file(written(tmp_path, CLAIMS)).attribute(attribute).kind == kind


def test_a_schema_file_may_begin_with_a_byte_order_mark(tmp_path: Path) -> None:
    marked = tmp_path / "marked.toml"
    marked.write_text(CLAIMS, encoding="utf-8-sig")
    assert Schema.from_file(marked) == Schema.from_file(written(tmp_path, CLAIMS))


def test_the_dataset_table_may_be_left_out() -> None:
    schema = Schema.from_dict({"metric": {"column": "pay"}, "attributes": {"a": {"values": ["b"]}}})
    assert (schema.name, schema.id, schema.metric.missing) == ("dataset", None, "error")


@few
@given(schema=schemas())
def test_toml_gives_back_the_schema(
    schema: Schema, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("toml") / "schema.toml"
    path.write_text(schema.to_toml(), encoding="utf-8")
    assert Schema.from_file(path) == schema


@few
@given(metric=names, key=names, name=texts.filter(bool))
def test_toml_gives_back_every_name(
    metric: str, key: str, name: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    schema = Schema(metric=metric + "1", attributes={key + "2": ["a"]}, id=key + "3", name=name)
    path = tmp_path_factory.mktemp("toml") / "schema.toml"
    path.write_text(schema.to_toml(), encoding="utf-8")
    read = Schema.from_file(path)
    assert (read.metric, read.attributes, read.id, read.name) == (
        schema.metric,
        schema.attributes,
        schema.id,
        schema.name,
    )


@pytest.mark.parametrize("missing", ["error", "drop"])
def test_toml_gives_back_what_a_missing_metric_does(tmp_path: Path, missing: str) -> None:
    schema = Schema(metric=Metric("pay", missing), attributes={"a": ["b"]})
    read = Schema.from_file(written(tmp_path, schema.to_toml()))
    assert read.metric.missing == missing


@few
@given(schema=schemas())
def test_a_dictionary_gives_back_the_schema(schema: Schema) -> None:
    assert Schema.from_dict(schema.to_dict()) == schema


@few
@given(schema=schemas())
def test_a_pickled_schema_is_the_same_schema(schema: Schema) -> None:
    assert pickle.loads(pickle.dumps(schema)) == schema  # noqa: S301 (our own bytes)


# -- the Python form ------------------------------------------------------------------------------


def test_width_and_offsets_count_the_declared_values() -> None:
    schema = Schema(metric="pay", attributes={"a": ["x", "y"], "b": {"edges": [0, 1, 2, 3]}})
    assert (schema.width, schema.offsets) == (5, (0, 2))


def test_the_columns_are_those_that_a_table_must_have() -> None:
    schema = Schema(metric="pay", attributes={"a": ["x"], "b": ["y"]}, id="key")
    assert schema.columns == ("pay", "a", "b", "key")


def test_bins_are_half_open_and_the_last_is_closed() -> None:
    assert one({"edges": [18, 25.5, math.inf]}).values == ("[18, 25.5)", "[25.5, inf]")


@few
@given(edges=st.lists(st.floats(allow_nan=False), min_size=2, max_size=8, unique=True).map(sorted))
def test_no_two_bins_have_the_same_label(edges: list[float]) -> None:
    assert len(set(one({"edges": edges}).values)) == len(edges) - 1


def test_an_other_value_needs_no_word_about_outside() -> None:
    assert one({"values": ["a", "b"], "other": "b"}) == one(
        {"values": ["a", "b"], "other": "b", "outside": "other"}
    )


@pytest.mark.parametrize(
    ("domain", "plain"),
    [
        (np.array(["a", "b"]), ["a", "b"]),
        (np.array([2019, 2020]), [2019, 2020]),
        (np.array([0.5, 1.5]), [0.5, 1.5]),
        (np.array([True, False]), [True, False]),
        ({"edges": list(np.linspace(0, 1, 3))}, {"edges": [0.0, 0.5, 1.0]}),
        ({"edges": list(np.arange(3))}, {"edges": [0, 1, 2]}),
    ],
)
def test_numpy_values_become_plain_ones(domain: Any, plain: Any) -> None:
    of_numpy = Schema(metric="pay", attributes={"x": domain})
    assert of_numpy.to_toml() == Schema(metric="pay", attributes={"x": plain}).to_toml()


@pytest.mark.parametrize(
    ("domain", "cell", "expected"),
    [
        ([2019, 2020], "2020", 1),
        ([2019, 2020], " 2020 ", 1),
        ([2019, 2020], 2020.0, 1),
        ([2019, 2020], "2020.0", 1),
        ([0, 1], True, None),  # a truth value is not a number
        ([2019, 2020], 2020.5, None),
        ([2019, 2020], 10**400, None),
        ([2019, 2020], "twenty", None),
        ([2019, 2020], math.nan, None),
        ([2**53, 2**53 + 1], 2**53 + 1, 1),
        ([2**53, 2**53 + 1], str(2**53 + 1), 1),  # a float would round it to the other one
        ([0.1, 0.5], "0.5", 1),
        ([0.1, 0.5], "5e-1", 1),
        ([True, False], "FALSE", 1),
        ([True, False], 0, 1),
        ([True, False], 0.0, 1),
        ([True, False], 0.5, None),
        ([True, False], "no", None),
        (["7", "007"], "007", 1),
        (["7", "007"], 7, 0),
        (["a", "A"], "A", 1),
        (["a", "b"], " a", None),
        (["a", "b"], None, None),
    ],
)
def test_each_kind_takes_its_own_spellings(domain: Any, cell: Any, expected: int | None) -> None:
    attribute = one(domain)
    if expected is None:
        with pytest.raises(ContextError, match="attribute 'x' has no value"):
            attribute.code(cell)
    else:
        assert attribute.code(cell) == expected


def test_an_unknown_value_is_refused_with_the_nearest_one() -> None:
    with pytest.raises(
        ContextError, match=r"'Otawa'; did you mean 'Ottawa'.*allowed: Ottawa, Rome"
    ):
        one(["Ottawa", "Rome"]).code("Otawa")


def test_a_long_domain_is_not_listed_whole() -> None:
    with pytest.raises(ContextError, match=r"\(13 in all\)"):
        one([f"v{n}" for n in range(13)]).code("w")


def test_an_unknown_attribute_is_refused_with_the_nearest_one() -> None:
    schema = Schema(metric="pay", attributes={"city": ["Rome"], "job": ["CEO"]})
    with pytest.raises(ContextError, match="no attribute 'ctiy'; did you mean 'city'"):
        schema.attribute("ctiy")


def test_a_schema_cannot_be_changed() -> None:
    schema = Schema(metric="pay", attributes={"a": ["b"]})
    with pytest.raises(AttributeError):
        schema.name = "other"  # type: ignore[misc]


# -- fingerprint ----------------------------------------------------------------------------------

BASE: dict[str, Any] = {
    "dataset": {"name": "d", "id": "key"},
    "metric": {"column": "pay", "missing": "error"},
    "attributes": {
        "a": {"values": ["x", "y"]},
        "b": {"values": [0, 1]},
        "c": {"edges": [0, 1, 2]},
    },
}


def changed(table: str, key: str, content: Any) -> dict[str, Any]:
    return BASE | {table: BASE[table] | {key: content}}


@pytest.mark.parametrize(
    "other",
    [
        changed("dataset", "name", "e"),
        changed("dataset", "id", "key2"),
        BASE | {"dataset": {"name": "d"}},
        BASE | {"dataset": {"name": "d", "positions": "public"}},
        changed("metric", "column", "wage"),
        changed("metric", "missing", "drop"),
        changed("attributes", "a", {"values": ["x", "z"]}),
        changed("attributes", "a", {"values": ["y", "x"]}),
        changed("attributes", "a", {"values": ["x", "y", "z"]}),
        changed("attributes", "a", {"values": ["x", "y"], "outside": "drop"}),
        changed("attributes", "a", {"values": ["x", "y"], "other": "y"}),
        changed("attributes", "b", {"values": ["0", "1"]}),
        changed("attributes", "b", {"values": [False, True]}),
        changed("attributes", "c", {"edges": [0, 1, 2.5]}),
        changed("attributes", "c", {"edges": [0, 1, 2], "outside": "drop"}),
        changed("attributes", "d", {"values": ["x"]}),
        BASE | {"attributes": dict(reversed(BASE["attributes"].items()))},
    ],
)
def test_another_declaration_is_another_schema_with_another_fingerprint(
    other: dict[str, Any],
) -> None:
    here, there = Schema.from_dict(BASE), Schema.from_dict(other)
    assert (here != there, here.sha256 != there.sha256) == (True, True)


def test_the_same_declaration_said_otherwise_has_the_same_fingerprint() -> None:
    said_otherwise = Schema(
        metric=Metric("pay"),
        attributes={"a": ("x", "y"), "b": [0, 1], "c": {"edges": (0, 1, 2), "outside": "error"}},
        name="d",
        id="key",
    )
    assert said_otherwise.sha256 == Schema.from_dict(BASE).sha256


@few
@given(one=schemas(), other=schemas())
def test_schemas_are_equal_exactly_when_their_fingerprints_are(one: Schema, other: Schema) -> None:
    assert (one == other) == (one.sha256 == other.sha256)


def test_equal_schemas_have_equal_hashes() -> None:
    assert hash(Schema.from_dict(BASE)) == hash(Schema.from_dict(BASE))


def test_public_positions_are_a_declaration_of_their_own() -> None:
    declared = BASE | {"dataset": {"name": "d", "positions": "public"}}
    schema = Schema.from_dict(declared)
    assert Schema.from_dict(tomllib.loads(schema.to_toml())) == schema
    assert schema != Schema.from_dict(BASE | {"dataset": {"name": "d"}})
    assert (schema.names_records, Schema.from_dict(BASE).names_records) == (True, True)
    assert not Schema.from_dict(BASE | {"dataset": {"name": "d"}}).names_records


def test_the_fingerprint_is_the_same_on_every_machine() -> None:
    # What sha256sum says of {"dataset":{"name":"dataset"},"metric":{"column":"pay",
    # "missing":"error"},"attributes":{"a":{"values":["\u00e9"]}}} written on one line.
    schema = Schema(metric="pay", attributes={"a": ["é"]})
    expected = "c9c6500c0cefb5759ae57f80a1c8fa7b75992ac211264ff3aca80cfde43cb513"
    assert schema.sha256 == expected


# -- what is refused, and how it is said ----------------------------------------------------------


@pytest.mark.parametrize(
    ("declared", "sentence"),
    [
        ({"values": []}, "attribute 'city' has an empty domain"),
        ({}, "attribute 'city' has an empty domain"),
        ({"values": ["Rome", "Rome"]}, "attribute 'city': the value 'Rome' is declared twice"),
        ({"values": [1, 1.0]}, "attribute 'city': the value 1.0 is declared twice"),
        ({"values": ["Rome", 1]}, "attribute 'city': values must all be text"),
        ({"values": [1, True]}, "attribute 'city': values must all be text"),
        ({"values": [["Rome"]]}, "attribute 'city': values must all be text"),
        ({"values": [math.nan]}, "attribute 'city': values must all be text"),
        ({"values": [1.0, math.inf]}, "attribute 'city': values must all be text"),
        ({"values": "Rome"}, "attribute 'city': values must be a list"),
        ("Rome", "attribute 'city': the domain must be a list of values"),
        (7, "attribute 'city': the domain must be a list of values"),
        ({"edges": [0, 5, 5]}, "attribute 'city': bins overlap"),
        ({"edges": [0, 5, 3]}, "attribute 'city': bins overlap"),
        ({"edges": [2**53, 2**53 + 1]}, "attribute 'city': bins overlap"),  # equal as floats
        ({"edges": [0, 10**400]}, "attribute 'city': an edge is too large"),
        ({"edges": [0]}, "attribute 'city': edges must be at least two numbers"),
        ({"edges": []}, "attribute 'city': edges must be at least two numbers"),
        ({"edges": [0, "1"]}, "attribute 'city': edges must be all numbers or all dates, not some"),
        ({"edges": [False, True]}, "attribute 'city': edges must be numbers"),
        ({"edges": [0, math.nan]}, "attribute 'city': edges must be numbers"),
        ({"edges": 5}, "attribute 'city': edges must be a list"),
        (
            {"values": ["a"], "edges": [0, 1]},
            "attribute 'city': give its values, its edges or its date",
        ),
        ({"values": ["a"], "outside": "ignore"}, "attribute 'city': outside must be one of error"),
        ({"values": ["a"], "outside": "other"}, "attribute 'city': other = None must be one of"),
        (
            {"values": ["a"], "other": "b"},
            "attribute 'city': other = 'b' must be one of its values",
        ),
        ({"values": [0, 1], "other": True}, "attribute 'city': other = True must be one of its"),
        (
            {"values": ["a"], "other": "a", "outside": "drop"},
            "attribute 'city': other = 'a' and outside = 'drop' exclude each other",
        ),
        ({"edges": [0, 1], "other": "[0, 1]"}, "attribute 'city': a binned attribute has no 'oth"),
        ({"vaules": ["a"]}, "unknown key 'vaules'; did you mean 'values'?; allowed: values, edges"),
    ],
)
def test_a_bad_attribute_is_refused_by_name(declared: Any, sentence: str) -> None:
    assert sentence in refusal_of_attribute(declared)


GOOD: dict[str, Any] = {"metric": {"column": "pay"}, "attributes": {"city": {"values": ["Rome"]}}}


@pytest.mark.parametrize(
    ("declared", "sentence"),
    [
        ({}, "the schema has no [metric] table"),
        ({"metric": {"column": "pay"}}, "the schema has no [attributes] table"),
        (GOOD | {"attributes": {}}, "a schema needs at least one attribute"),
        (GOOD | {"atributes": {}}, "unknown key 'atributes'; did you mean 'attributes'"),
        (GOOD | {"metric": "pay"}, "[metric] must be a table of its own"),
        (GOOD | {"attributes": ["city"]}, "[attributes] must be a table of its own"),
        (GOOD | {"dataset": "claims"}, "[dataset] must be a table of its own"),
        (GOOD | {"metric": {}}, "[metric] has no column"),
        (GOOD | {"metric": {"colum": "pay"}}, "[metric] has an unknown key 'colum'; did you mean"),
        (GOOD | {"metric": {"column": ""}}, "the metric column must be named by a text"),
        (GOOD | {"metric": {"column": 5}}, "the metric column must be named by a text"),
        (
            GOOD | {"metric": {"column": "pay", "missing": "ignore"}},
            "metric 'pay': missing must be one of error, drop, not 'ignore'",
        ),
        (GOOD | {"dataset": {"nmae": "x"}}, "[dataset] has an unknown key 'nmae'; did you mean"),
        (GOOD | {"dataset": {"name": ""}}, "the dataset must be named by a text"),
        (GOOD | {"dataset": {"name": 5}}, "the dataset must be named by a text"),
        (GOOD | {"dataset": {"id": 5}}, "the id column must be named by a text"),
        (GOOD | {"dataset": {"id": ""}}, "the id column must be named by a text"),
        (GOOD | {"dataset": {"id": "city"}}, "column 'city' is declared twice"),
        (GOOD | {"dataset": {"id": "pay"}}, "column 'pay' is declared twice"),
        (GOOD | {"metric": {"column": "city"}}, "column 'city' is declared twice"),
        (GOOD | {"attributes": {"": ["a"]}}, "an attribute must be named by a text"),
    ],
)
def test_a_bad_schema_is_refused_with_its_reason(declared: dict[str, Any], sentence: str) -> None:
    assert sentence in refusal(declared)


@pytest.mark.parametrize("kind", [set, frozenset])
def test_a_set_is_no_domain_because_its_order_is_an_accident(kind: type[Any]) -> None:
    declared = kind(["Ottawa", "Rome"])
    refused = r"attribute 'x': .* a set .* order .* list"
    with pytest.raises(SchemaError, match=refused):
        one(declared)
    with pytest.raises(SchemaError, match=refused):
        Attribute("x", declared)
    with pytest.raises(SchemaError, match=refused):
        Attribute("x", ("a", "b"), shares=kind([0.25, 0.75]))


def test_the_keys_of_a_dictionary_are_a_domain_in_their_order() -> None:
    assert one({"Rome": 1, "Ottawa": 2}.keys()).values == ("Rome", "Ottawa")


def test_attributes_without_names_are_refused() -> None:
    with pytest.raises(SchemaError, match="attributes must map each column's name"):
        Schema(metric="pay", attributes=["city"])  # type: ignore[arg-type]


def test_a_metric_that_is_no_name_is_refused() -> None:
    with pytest.raises(SchemaError, match="the metric must be named by a text"):
        Schema(metric=None, attributes={"a": ["b"]})  # type: ignore[arg-type]


def test_a_file_that_is_not_toml_is_refused_with_the_line(tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match=r"schema.toml' is not TOML: .*line 2"):
        Schema.from_file(written(tmp_path, "[metric]\ncolumn = \n"))


def test_a_draft_is_refused_until_somebody_says_that_it_is_one(tmp_path: Path) -> None:
    draft = written(tmp_path, CLAIMS.replace("\n", f"{REVIEW}\n", 1))
    with pytest.raises(SchemaError, match="is a draft: parts marked REVIEW"):
        Schema.from_file(draft)
    with pytest.raises(SchemaError, match="is a draft"):
        Table(tmp_path / "nowhere.csv", draft)
    assert Schema.from_file(draft, draft=True) == Schema.from_file(written(tmp_path, CLAIMS))


def test_a_missing_file_is_refused_with_its_name(tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match=r"no schema file '.*nowhere.toml'"):
        Schema.from_file(tmp_path / "nowhere.toml")


def test_a_folder_is_no_schema_file(tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match="cannot be read"):
        Schema.from_file(tmp_path)


def test_a_file_that_is_not_text_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "schema.toml"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(SchemaError, match="cannot be read"):
        Schema.from_file(path)


def test_a_table_declared_twice_in_a_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match="is not TOML"):
        Schema.from_file(written(tmp_path, CLAIMS + "\n[attributes.age]\nedges = [0, 1]\n"))


@pytest.mark.parametrize("bad", ["\ud800", "\x00", "\x1b[2J", "\x7f", "\u202e"], ids=ascii)
@pytest.mark.parametrize(
    "declared",
    [
        lambda bad: {"name": f"claims{bad}"},
        lambda bad: {"id": f"claim{bad}"},
        lambda bad: {"metric": f"amount{bad}"},
        lambda bad: {"metric": {"column": bad}},
        lambda bad: {"attributes": {f"region{bad}": ["north"]}},
        lambda bad: {"attributes": {f"region{bad}": {"vlaues": ["north"]}}},
        lambda bad: {"attributes": {"region": ["north", f"south{bad}"]}},
    ],
)
def test_text_that_cannot_be_printed_or_sent_is_refused_wherever_it_is_declared(
    declared: Any, bad: str
) -> None:
    given: dict[str, Any] = {"metric": "amount", "attributes": {"region": ["north"]}}
    with pytest.raises(SchemaError, match="cannot be printed") as refused:
        Schema(**given | declared(bad))
    str(refused.value).encode()  # the refusal itself can be sent


def test_tabs_line_breaks_and_letters_of_any_script_are_fine() -> None:
    Schema(
        metric="Pay\n(USD)", attributes={"a\tb": ["S\u00e3o Paulo", "\u6771\u4eac", "\U0001f642"]}
    )


def test_a_schema_file_of_brackets_is_refused_in_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match="nested too deeply"):
        Schema.from_file(written(tmp_path, "x = " + "[" * 100_000))
