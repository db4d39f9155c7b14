"""A context is one set of values in many spellings: bits, mask, dictionary, sentence, JSON, SQL."""

from __future__ import annotations

import copy
import json
import pickle
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from pcor import Context, Schema, Table, demo
from pcor.errors import ContextError
from pcor.public.context import pack, unpack
from pcor.public.space import Space
from tests.helpers.strategies import METRIC, contexts, few, schemas, some_context, wide_schema

SCHEMA = Schema(metric="pay", attributes={"job": ["CEO", "Lawyer"], "city": ["Ottawa", "Rome"]})


def values_of(context: Context) -> set[tuple[str, Any]]:
    return {(name, value) for name, chosen in context.values.items() for value in chosen}


# -- spellings ------------------------------------------------------------------------------------


def test_the_worked_example_of_the_paper_has_its_bits() -> None:
    # Section 3: CEO or Lawyer, in Toronto, in the historic district.
    context = Context(
        demo.ten_people_schema(),
        {"job_title": ["CEO", "Lawyer"], "city": ["Toronto"], "district": ["Historic"]},
    )
    assert context.bits == "101001010"


def test_bits_may_be_written_as_the_paper_writes_them() -> None:
    context = Context.from_bits(demo.ten_people_schema(), "<101001010>")
    assert str(context) == (
        "any job_title except Medical Doctor; city is Toronto; district is Historic"
    )


def test_bit_0_of_the_mask_is_the_first_value() -> None:
    assert Context(SCHEMA, {"job": ["CEO"], "city": ["Rome"]}).mask == 0b1001


@few
@given(context=some_context())
def test_every_spelling_gives_back_the_context(context: Context) -> None:
    schema = context.schema
    assert Context.from_bits(schema, context.bits) == context
    assert Context.from_mask(schema, context.mask) == context
    assert Context(schema, context.values) == context
    assert Context.parse(schema, str(context)) == context
    assert Context.parse(schema, json.dumps(context.values)) == context
    assert Context.parse(schema, f" <{context.bits}>\n") == context
    assert pickle.loads(pickle.dumps(context)) == context  # noqa: S301 (our own bytes)


@few
@given(context=some_context())
def test_no_two_contexts_share_a_sentence(context: Context) -> None:
    sentences = {str(neighbour) for neighbour in context.neighbours()} | {str(context)}
    assert len(sentences) == len(list(context.neighbours())) + 1


def test_values_come_in_the_order_of_the_domain() -> None:
    context = Context(SCHEMA, {"city": ["Rome", "Ottawa"], "job": ["Lawyer"]})
    assert context.values == {"job": ["Lawyer"], "city": ["Ottawa", "Rome"]}


def test_a_single_value_needs_no_list() -> None:
    assert Context(SCHEMA, {"job": "CEO", "city": "Rome"}).bits == "1001"


@pytest.mark.parametrize("text", ["job is CEO", '{"job": ["CEO"]}', "job is CEO;"])
def test_an_attribute_that_is_not_named_may_have_any_value(text: str) -> None:
    whole = Context(SCHEMA, {"job": ["CEO"], "city": ["Ottawa", "Rome"]})
    assert Context.parse(SCHEMA, text) == whole
    assert Context(SCHEMA, {"job": ["CEO"]}) == whole


def test_a_context_that_names_nothing_has_every_value() -> None:
    assert Context(SCHEMA, {}) == Context.parse(SCHEMA, "{}") == Context.full(SCHEMA)


def test_the_repr_shows_the_sentence() -> None:
    assert repr(Context.full(SCHEMA)) == "<Context all rows>"


# -- one bit --------------------------------------------------------------------------------------


@few
@given(context=some_context(), data=st.data())
def test_flipping_a_value_twice_gives_back_the_context(
    context: Context, data: st.DataObject
) -> None:
    free = [p for p in range(context.schema.width) if context.mask | 1 << p != context.mask]
    assume(free)
    position = data.draw(st.sampled_from(free))
    assert context.flip(position).flip(position) == context


@few
@given(context=some_context())
def test_neighbours_are_the_one_bit_changes_that_leave_no_attribute_empty(context: Context) -> None:
    expected = []
    for position in range(context.schema.width):
        bits = list(context.bits)
        bits[position] = "0" if bits[position] == "1" else "1"
        ends = [*context.schema.offsets[1:], context.schema.width]
        parts = ["".join(bits[a:b]) for a, b in zip(context.schema.offsets, ends, strict=True)]
        if all("1" in part for part in parts):
            expected.append("".join(bits))
    assert [neighbour.bits for neighbour in context.neighbours()] == expected


def test_a_flip_that_would_empty_an_attribute_is_refused_by_its_name() -> None:
    with pytest.raises(ContextError, match="no value of attribute 'job'"):
        Context.from_bits(SCHEMA, "1001").flip(0)


@pytest.mark.parametrize("position", [-1, 4])
def test_a_flip_outside_the_bits_is_refused(position: int) -> None:
    with pytest.raises(ContextError, match="position must be from 0 to 3"):
        Context.full(SCHEMA).flip(position)


# -- order, equality, immutability ----------------------------------------------------------------


@st.composite
def several(draw: st.DrawFn) -> tuple[Context, Context, Context]:
    """Three contexts of one schema, often nested."""
    schema = draw(schemas())
    first, second, third = (draw(contexts(schema)) for _ in range(3))
    if draw(st.booleans()):
        second = Context.from_mask(schema, first.mask | second.mask)
        third = Context.from_mask(schema, second.mask | third.mask)
    return first, second, third


@few
@given(chosen=several())
def test_contexts_are_ordered_and_equal_as_their_sets_of_values_are(
    chosen: tuple[Context, ...],
) -> None:
    a, b, c = chosen
    assert (a <= b) == (values_of(a) <= values_of(b))
    assert (a >= b) == (b <= a)
    assert (a == b) == (a.values == b.values)
    reflexive = a <= a
    antisymmetric = not (a <= b and b <= a) or a == b
    transitive = not (a <= b and b <= c) or a <= c
    assert (reflexive, antisymmetric, transitive) == (True, True, True)


@few
@given(context=some_context())
def test_the_full_context_contains_every_other(context: Context) -> None:
    assert context <= Context.full(context.schema)


@few
@given(context=some_context())
def test_an_equal_context_is_the_same_key_of_a_dictionary(context: Context) -> None:
    again = Context.from_bits(Schema.from_dict(context.schema.to_dict()), context.bits)
    assert {context: "found"}[again] == "found"


@pytest.mark.parametrize("other", [[True, False], [1.0, 0.0], ["1", "0"]])
def test_the_same_bits_of_another_schema_are_another_context(other: list[Any]) -> None:
    one = Context.full(Schema(metric="pay", attributes={"x": [1, 0]}))
    assert one != Context.full(Schema(metric="pay", attributes={"x": other}))


def test_a_context_equals_nothing_but_contexts() -> None:
    assert Context.full(SCHEMA) != Context.full(SCHEMA).mask


def test_contexts_of_different_schemas_cannot_be_compared() -> None:
    with pytest.raises(ContextError, match="different schemas"):
        _ = Context.full(SCHEMA) <= Context.full(wide_schema(2, 2))


@few
@given(context=some_context())
def test_the_length_is_the_number_of_values(context: Context) -> None:
    assert len(context) == len(values_of(context))


@pytest.mark.parametrize("name", ["mask", "schema", "anything"])
def test_a_context_cannot_be_changed(name: str) -> None:
    with pytest.raises(AttributeError, match="cannot be changed"):
        setattr(Context.full(SCHEMA), name, 1)


def test_nothing_of_a_context_can_be_deleted() -> None:
    with pytest.raises(AttributeError, match="cannot be changed"):
        del Context.full(SCHEMA).mask


def test_a_copied_context_is_the_same_context() -> None:
    context = Context.from_bits(SCHEMA, "1011")
    assert copy.deepcopy(context) == context


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ({"job": "CEO", "city": "Rome"}, True),
        ({"job": "Lawyer", "city": "Rome"}, False),
        ({"job": "CEO", "city": "Ottawa"}, False),
    ],
)
def test_a_context_covers_the_rows_whose_values_it_has(row: dict[str, Any], expected: bool) -> None:
    assert Context.from_bits(SCHEMA, "1001").covers(row) is expected


@pytest.mark.parametrize("row", [{}, {"job": "CEO"}, {"city": "Rome"}])
def test_a_row_has_a_value_of_every_attribute(row: dict[str, Any]) -> None:
    with pytest.raises(ContextError, match="a row has one value of every attribute"):
        Context.full(SCHEMA).covers(row)


# -- what is refused ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"job": ["CEO"], "city": []}, "no value of attribute 'city'"),
        ({"city": []}, "no value of attribute 'city'"),
        ({"jbo": ["CEO"]}, "no attribute 'jbo'; did you mean 'job'.*attributes: job, city"),
        ({"job": ["Lawer"]}, "attribute 'job' has no value 'Lawer'; did you mean 'Lawyer'"),
        ({"job": ["CEO"], "city": None}, "attribute 'city' has no value None"),
        ({"job": ["CEO"], "city": [["Rome"]]}, r"attribute 'city' has no value \['Rome'\]"),
    ],
)
def test_a_context_the_schema_does_not_allow_is_refused(
    values: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(ContextError, match=sentence):
        Context(SCHEMA, values)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "a context reads like 'job is CEO or Lawyer; year is 2006 to 2008;"),
        ("job is CEO; any town", "no attribute 'town'"),
        ("job is CEO; city is Roma", "attribute 'city' has no value 'Roma'; did you mean 'Rome'"),
        ("job is CEO; city is", "attribute 'city' has no value ''"),
        ("job is CEO or; any city", "attribute 'job' has no value ''"),
        ("job is CEO; job is Lawyer; any city", "speaks of attribute 'job' twice"),
        ("everything", "a context reads like 'job is CEO or Lawyer; year is 2006 to 2008;"),
        ('job is "C\\x"; any city', "a quoted text in the context is not well formed"),
        ("101", "bits must be 4 zeros and ones"),
        ("<10101>", "bits must be 4 zeros and ones"),
        ("1100", "no value of attribute 'city'"),
        ('{"job": ["CEO"], "city": []}', "no value of attribute 'city'"),
        ('{"job": ["CEO"], "city": null}', "attribute 'city' has no value None"),
        ('{"job": ["CEO"', "the context is not well-formed JSON"),
    ],
)
def test_a_text_that_is_no_context_is_refused(text: str, sentence: str) -> None:
    with pytest.raises(ContextError, match=sentence):
        Context.parse(SCHEMA, text)


@pytest.mark.parametrize("mask", [-1, 1 << 4])
def test_a_mask_with_foreign_bits_is_refused(mask: int) -> None:
    with pytest.raises(ContextError, match="a context of this schema has 4 bits"):
        Context.from_mask(SCHEMA, mask)


@pytest.mark.parametrize("bits", ["", "10", "10a1", "10011", "1 01"])
def test_bits_that_do_not_fit_are_refused(bits: str) -> None:
    with pytest.raises(ContextError, match="bits must be 4 zeros and ones"):
        Context.from_bits(SCHEMA, bits)


# -- the space of a record ------------------------------------------------------------------------


def test_the_space_of_a_record_is_every_context_with_its_own_values() -> None:
    space = Space(SCHEMA, Context(SCHEMA, {"job": "CEO", "city": "Rome"}).mask)
    bits = {Context.from_mask(SCHEMA, mask).bits for mask in space.masks()}
    assert bits == {"1001", "1101", "1011", "1111"}


@few
@given(context=some_context(), data=st.data())
def test_the_neighbours_inside_a_space_are_neighbours_that_keep_the_record(
    context: Context, data: st.DataObject
) -> None:
    row = {name: data.draw(st.sampled_from(chosen)) for name, chosen in context.values.items()}
    own = Context(context.schema, {name: [value] for name, value in row.items()})
    space = Space(context.schema, own.mask)
    if space.binary:  # other families have steps of their own: test_space.py
        expected = {c.mask for c in context.neighbours() if own <= c}
        assert set(space.neighbours(context.mask)) == expected


@few
@given(context=some_context())
def test_packed_words_hold_bit_j_for_the_jth_value_and_unpacked_bits_are_the_bits(
    context: Context,
) -> None:
    width = context.schema.width
    words = pack([context.mask], width)[0]
    bits = "".join(str(int(words[j // 64]) >> (j % 64) & 1) for j in range(width))
    assert bits == context.bits
    row = unpack([context.mask], width)[0]
    assert "".join("1" if bit else "0" for bit in row) == context.bits


def test_no_contexts_pack_into_no_rows() -> None:
    assert pack([], 70).shape == (0, 2)


# -- size -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("schema", [wide_schema(1, 65), wide_schema(70, 3), wide_schema(2, 128)])
def test_contexts_of_any_width_count_their_rows(schema: Schema) -> None:
    rng = np.random.default_rng(0)
    draws = rng.integers(0, len(schema.attributes[0].values), (50, len(schema.attributes)))
    columns = {a.name: np.array(a.values)[draws[:, n]] for n, a in enumerate(schema.attributes)}
    table = Table(pa.table(columns | {METRIC: np.arange(50.0), "the id": np.arange(50)}), schema)
    space = table.record(7).space
    mask = (1 << schema.width) - 1 - sum(space.steps[::5])
    kept = [
        all(mask >> (offset + code) & 1 for offset, code in zip(schema.offsets, row, strict=True))
        for row in draws.tolist()
    ]
    assert table.populations([mask]).tolist() == [sum(kept)]
