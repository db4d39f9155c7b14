"""A context as a sentence: short, in the words of the schema, and read back to itself."""

from __future__ import annotations

import json
import math
import tomllib
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from pcor import Context, Schema
from pcor.errors import ContextError, SchemaError
from pcor.public.wording import among, sentence
from tests.helpers.old_words import old_sentence
from tests.helpers.strategies import METRIC, contexts, few, many, schemas, some_context

SCHEMA = Schema(metric="pay", attributes={"job": ["CEO", "Lawyer"], "city": ["Ottawa", "Rome"]})

CLAIMS = Schema(
    metric="amount",
    attributes={
        "region": ["urban", "rural", "coast", "north"],
        "year": [2005, 2006, 2007, 2008, 2009, 2010],
        "age": {"edges": [-math.inf, 18, 25, 45, 65, math.inf], "unit": "years"},
        "marital": {"values": ["single", "married", "widowed"], "label": "marital status"},
        "car": {"edges": [0, 3, 10, 25], "labels": ["new", "used", "old"], "label": "the car"},
        "claims": {"edges": [0, 1, 2.5, 5]},
    },
    rows="claims",
)


# -- what is written ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("chosen", "said"),
    [
        ({"region": "urban"}, "region is urban"),
        ({"region": ["urban", "coast"]}, "region is urban or coast"),
        ({"region": ["urban", "rural", "north"]}, "any region except coast"),
        ({"year": [2006, 2007, 2008]}, "year is 2006 to 2008"),
        ({"year": [2006, 2008, 2009]}, "year is 2006 or 2008 to 2009"),
        ({"year": [2005, 2006, 2009, 2010]}, "any year except 2007 to 2008"),
        ({"age": ["[18, 25)", "[25, 45)"]}, "age is 18 to under 45 years"),
        ({"age": ["[-inf, 18)", "[18, 25)"]}, "age is under 25 years"),
        ({"age": ["[65, inf]"]}, "age is 65 or more years"),
        ({"age": ["[-inf, 18)", "[65, inf]"]}, "any age except 18 to under 65 years"),
        ({"marital": "married"}, "marital status is married"),
        ({"car": ["new", "used"]}, "the car is new to used"),
        ({"claims": ["[1, 2.5)", "[2.5, 5]"]}, "claims is 1 to 5"),
        ({"claims": ["[1, 2.5)"]}, "claims is 1 to under 2.5"),
        ({"region": "urban", "year": 2007}, "region is urban; year is 2007"),
    ],
)
def test_only_what_is_restricted_is_said_in_the_words_of_the_schema(
    chosen: dict[str, Any], said: str
) -> None:
    context = Context(CLAIMS, chosen)
    assert str(context) == said
    assert among(CLAIMS, context.mask) == f"claims where {said}"


def test_a_context_with_every_value_is_all_rows() -> None:
    assert str(Context.full(SCHEMA)) == "all rows"
    assert among(CLAIMS, Context.full(CLAIMS).mask) == "all claims"


def test_numbers_that_fall_are_a_range_in_their_own_order() -> None:
    schema = Schema(metric="pay", attributes={"year": [2009, 2008, 2007, 2006]})
    context = Context(schema, {"year": [2008, 2007]})
    assert str(context) == "year is 2008 to 2007"
    assert Context.parse(schema, "year is 2007 to 2008") == context


@pytest.mark.parametrize(
    ("edge", "written"), [(1_000_000, "1000000"), (2.5e6, "2500000"), (0.1, "0.1"), (1e16, "1e+16")]
)
def test_an_edge_is_written_as_people_write_it(edge: float, written: str) -> None:
    schema = Schema(metric="pay", attributes={"x": {"edges": [-5, edge, 1e17]}})
    assert str(Context.from_bits(schema, "10")) == f"x is -5 to under {written}"


def test_words_of_the_sentence_are_quoted_where_they_are_values() -> None:
    schema = Schema(metric="pay", attributes={"is it": ["yes or no", "maybe"]})
    assert str(Context(schema, {"is it": ["yes or no"]})) == '"is it" is "yes or no"'


def test_a_long_list_ends_after_some_items_where_people_read_it() -> None:
    schema = Schema(metric="pay", attributes={"x": [f"v{n}" for n in range(40)]})
    context = Context(schema, {"x": [f"v{n}" for n in range(0, 40, 3)]})
    assert sentence(schema, context.mask, most=3) == "x is v0 or v3 or v6 ... and 11 more"
    assert sentence(schema, context.mask, most=13) == str(context)  # "and 1 more" is no shorter


# -- what is read ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "bits"),
    [
        ("job is CEO or Lawyer; any city", "1111"),
        ("job IS CEO OR Lawyer; ANY city", "1111"),
        ("city is Rome; job is CEO", "1001"),
        ("any job EXCEPT CEO; city is Rome", "0101"),
        ("any job except CEO", "0111"),
        ("among rows where job is CEO.", "1011"),
        ("all rows", "1111"),
        ("All  rows", "1111"),
        ("among all rows.", "1111"),
    ],
)
def test_sentences_old_and_new_are_read(text: str, bits: str) -> None:
    assert Context.parse(SCHEMA, text).bits == bits


@pytest.mark.parametrize(
    ("text", "chosen"),
    [
        ("age is [18, 25) or [25, 45)", {"age": ["[18, 25)", "[25, 45)"]}),
        ("age is 18 to under 45", {"age": ["[18, 25)", "[25, 45)"]}),
        ("age is under 18 or 65 OR MORE years", {"age": ["[-inf, 18)", "[65, inf]"]}),
        ("age is 18.0 to under 25 years", {"age": ["[18, 25)"]}),
        ("marital is married", {"marital": ["married"]}),
        ("marital status is single or widowed", {"marital": ["single", "widowed"]}),
        ("among claims where the car is used to old.", {"car": ["used", "old"]}),
        ("car is old or new", {"car": ["new", "old"]}),
        ("claims is 2.5 or more", {"claims": ["[2.5, 5]"]}),
        ("all claims", {}),
    ],
)
def test_columns_labels_bins_and_ranges_are_read(text: str, chosen: dict[str, Any]) -> None:
    assert Context.parse(CLAIMS, text) == Context(CLAIMS, chosen)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("age is 20 to under 45", "'age' has no value '20 to under 45'"),
        ("age is 18 to 45", "'age' has no value '18 to 45'"),
        ("age is 45 to under 18", "'age' has no value '45 to under 18'"),
        ("region is urban to coast", "'region' has no value 'urban to coast'"),
        ("any region except urban or rural or coast or north", "no value of attribute 'region'"),
        ("year is 2006; year is 2007", "'year' twice"),
        ("marital status is 3; marital is single", "has no value '3'"),
        ("rows", "a context reads like"),
    ],
)
def test_what_cannot_be_read_is_refused_with_a_reason(text: str, said: str) -> None:
    with pytest.raises(ContextError, match=said):
        Context.parse(CLAIMS, text)


def test_the_end_of_a_released_sentence_is_read_back() -> None:
    schema = Schema(metric="pay", attributes={"firm": ["Acme.", "Acme", "Bolt"], "city": ["Rome"]})
    for firm in ("Acme.", "Acme", "Bolt"):
        context = Context(schema, {"firm": firm})
        assert Context.parse(schema, f"among {among(schema, context.mask)}.") == context
    assert Context.parse(schema, "firm is Acme.; any city").values["firm"] == ["Acme."]


def test_an_attribute_may_be_called_all_rows() -> None:
    schema = Schema(metric="pay", attributes={"all rows": ["yes", "no"]})
    assert Context.parse(schema, "all rows is yes").bits == "10"


def test_an_exception_does_not_read_like_another_attribute() -> None:
    schema = Schema(metric="pay", attributes={"job": ["a", "b", "c"], "job except b": ["a", "b"]})
    context = Context(schema, {"job": ["a", "c"]})
    assert str(context) == 'any "job" except b'
    assert Context.parse(schema, str(context)) == context
    assert Context.parse(schema, "any job except b") == Context.full(schema)  # as it always was


# -- whatever is printed is read back -------------------------------------------------------------

WORDS = ["to", "except", "any", "or", "and", "is", "under", "more", "all", "rows", "among", "where"]
SAID = [
    "a",
    "b",
    "a to b",
    "1 to 2",
    "a or more",
    "under 5",
    "a.",
    "b.",
    ".",
    "any a except b",
    "5",
]

nasty = (
    st.sampled_from([*WORDS, *SAID])
    | st.lists(st.sampled_from([*WORDS, "a", "1", ".", ";", '"']), min_size=1, max_size=4).map(
        " ".join
    )
    | st.text('aor. "\\;{\u00a0\u2028é', min_size=1, max_size=4)
)
words = nasty.map(str.strip).filter(bool)


@st.composite
def worded(draw: st.DrawFn) -> Schema:
    """Draw a schema whose names, values and words look like the grammar."""
    columns = draw(st.lists(words, min_size=1, max_size=3, unique=True))
    attributes: dict[str, dict[str, Any]] = {}
    for column in columns:
        kind = draw(st.sampled_from(["text", "numbers", "bins", "named bins"]))
        numbers = draw(st.lists(st.integers(-3, 5), min_size=2, max_size=6, unique=True))
        if kind == "text":
            declared: dict[str, Any] = {
                "values": draw(st.lists(nasty, min_size=2, max_size=5, unique=True))
            }
        elif kind == "numbers":
            declared = {"values": draw(st.sampled_from([numbers, sorted(numbers)]))}
        else:
            ends = draw(st.sampled_from([[], [math.inf], [-math.inf], [-math.inf, math.inf]]))
            edges = sorted([*numbers, *ends])
            declared = {"edges": edges}
            if kind == "named bins":
                count = len(edges) - 1
                labels = st.lists(words, min_size=count, max_size=count, unique=True)
                declared["labels"] = draw(labels)
        if kind != "text":
            declared["unit"] = draw(st.none() | words)
        declared["label"] = draw(st.none() | words | st.sampled_from(columns))
        attributes[column] = {key: word for key, word in declared.items() if word is not None}
    try:
        return Schema(metric=METRIC, attributes=attributes, rows=draw(st.none() | words))
    except SchemaError:  # a label that another attribute has is refused
        assume(False)
        raise


@st.composite
def worded_context(draw: st.DrawFn) -> Context:
    """Draw a context of such a schema."""
    return draw(contexts(draw(worded())))


def printed(context: Context) -> list[str]:
    """Every text that a context is printed as, alone and at the end of a certificate."""
    rows = among(context.schema, context.mask)
    forms = [str(context), context.in_full, json.dumps(context.values), context.bits]
    return [*forms, f"<{context.bits}>", f"among {rows}.", f"{context}."]


@many
@given(context=some_context())
def test_whatever_is_printed_is_read_back(context: Context) -> None:
    for text in printed(context):
        assert Context.parse(context.schema, text) == context, text


@many
@given(context=worded_context())
def test_words_that_look_like_the_grammar_are_read_back(context: Context) -> None:
    for text in printed(context):
        assert Context.parse(context.schema, text) == context, text


@many
@given(context=st.one_of(worded_context(), some_context()))
def test_sentences_of_older_versions_are_read_as_they_were_meant(context: Context) -> None:
    assert Context.parse(context.schema, old_sentence(context)) == context


@few
@given(context=worded_context())
def test_the_form_for_requests_is_the_old_sentence_without_labels(context: Context) -> None:
    assert context.in_full == old_sentence(context)


# -- words of the schema --------------------------------------------------------------------------


@few
@given(schema=st.one_of(worded(), schemas()))
def test_words_survive_a_schema_file(schema: Schema) -> None:
    assert Schema.from_dict(tomllib.loads(schema.to_toml())) == schema


def test_a_schema_without_words_keeps_its_fingerprint() -> None:
    declared = SCHEMA.to_dict()
    assert declared["dataset"] == {"name": "dataset"}
    assert declared["metric"] == {"column": "pay", "missing": "error"}
    assert declared["attributes"]["job"] == {"values": ["CEO", "Lawyer"]}


def test_words_are_part_of_the_fingerprint() -> None:
    one, other = (Schema("pay", {"x": {"values": [1, 2], "unit": unit}}) for unit in "ab")
    assert one != other


@pytest.mark.parametrize(
    ("declared", "said"),
    [
        ({"x": {"values": ["a", "b"], "unit": "years"}}, "'x': a unit follows numbers"),
        ({"x": {"values": [True, False], "unit": "years"}}, "'x': a unit follows numbers"),
        ({"x": {"values": [1, 2], "labels": ["a", "b"]}}, "'x': labels name bins"),
        ({"x": {"edges": [0, 1, 2], "labels": ["a"]}}, "'x': labels must be 2 different names"),
        ({"x": {"edges": [0, 1, 2], "labels": ["a", "a"]}}, "'x': labels must be 2 different"),
        ({"x": {"edges": [0, 1, 2], "labels": ["a", ""]}}, "'x': each of its labels must be a"),
        ({"x": {"edges": [0, 1, 2], "labels": ["a", 2]}}, "'x': each of its labels must be a"),
        ({"x": {"edges": [0, 1, 2], "labels": "ab"}}, "'x': labels must be a list"),
        ({"x": {"edges": [0, 1, 2], "labels": {"a", "b"}}}, "'x': labels must be a list"),
        ({"x": {"values": ["a"], "label": ""}}, "'x': its label must be a text"),
        ({"x": {"values": ["a"], "label": " b"}}, "'x': its label must be .* without spaces"),
        ({"x": {"values": ["a"], "label": 3}}, "'x': its label must be a text"),
        ({"x": {"values": ["a"], "label": "\x1b"}}, "'x': its label '.x1b'"),
        ({"x": {"values": [1], "unit": "\x1b"}}, "'x': its unit '.x1b'"),
        ({"x": {"values": [1], "label": "y"}, "y": [1]}, "'x': its label 'y' is also what .*'y'"),
        (
            {"x": {"values": [1], "label": "z"}, "y": {"values": [1], "label": "z"}},
            "'x': its label 'z' is also what attribute 'y'",
        ),
    ],
)
def test_words_that_would_mislead_are_refused(declared: dict[str, Any], said: str) -> None:
    with pytest.raises(SchemaError, match=said):
        Schema(metric="pay", attributes=declared)


@pytest.mark.parametrize("word", ["", " ", "a ", 3, "\x1b"])
def test_the_words_of_the_metric_and_the_rows_are_checked(word: Any) -> None:
    for said, metric, rows in (
        ("metric 'pay': its label", {"label": word}, None),
        ("metric 'pay': its unit", {"unit": word}, None),
        ("the word for rows", {}, word),
    ):
        with pytest.raises(SchemaError, match=said):
            Schema(metric={"column": "pay"} | metric, attributes={"x": [1]}, rows=rows)


def test_a_label_may_be_the_name_of_its_own_column_or_of_the_metric() -> None:
    schema = Schema(
        "pay", {"x": {"values": [1, 2], "label": "x"}, "y": {"values": [1], "label": "pay"}}
    )
    assert [attribute.spoken for attribute in schema.attributes] == ["x", "pay"]
    assert replace(schema.metric, label="wage").spoken == "wage"
