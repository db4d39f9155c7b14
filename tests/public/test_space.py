"""The contexts of a record in a family are those of its definition, however they are asked for."""

from __future__ import annotations

import random
from itertools import product

import numpy as np
import pytest

from pcor import Context, Schema
from pcor.public.context import mask_of, pack
from pcor.public.family import named_items
from pcor.public.schema import Attribute
from pcor.public.space import Space
from tests.helpers.families import allowed, items, members, random_schema, sets_of


def worlds(count: int) -> list[tuple[Schema, tuple[int, ...], Space]]:
    numbers = random.Random(18)  # noqa: S311 (which schemas to look at)
    found = []
    for _ in range(count):
        schema = random_schema(numbers, largest=4)
        codes = tuple(numbers.randrange(len(a.values)) for a in schema.attributes)
        found.append((schema, codes, Space(schema, mask_of(schema, codes))))
    return found


WORLDS = worlds(100)


def test_a_space_has_the_members_of_its_definition() -> None:
    numbers = random.Random(1)  # noqa: S311 (which contexts)
    for schema, codes, space in WORLDS:
        wanted = members(schema, codes)
        assert sorted(space.masks()) == sorted(wanted)
        inside = set(wanted)
        for context in (numbers.getrandbits(schema.width) for _ in range(200)):
            for mask in (context, context | space.fixed):
                assert (mask in space) == (mask in inside)


def test_a_schema_counts_the_members_of_the_record_with_most() -> None:
    for schema, _, _ in WORLDS[:40]:
        places = [range(len(a.values)) for a in schema.attributes]
        counts = [len(members(schema, codes)) for codes in product(*places)]
        assert max(counts) <= schema.most_contexts
        if not (schema.max_named and any(a.ordered for a in schema.attributes)):
            # Otherwise the most of each size may be those of different records.
            assert max(counts) == schema.most_contexts
        assert schema.most_contexts <= schema.most_walked <= schema.most_numbered


def test_numbers_and_words_name_the_same_contexts() -> None:
    for schema, _, space in WORLDS:
        indices = np.arange(space.size, dtype=np.uint64)
        words = space.words_of(indices)
        masks = [space.mask(int(index)) for index in indices]
        assert (words == pack(masks, schema.width)).all()
        assert (space.indices_of(words) == indices).all()
        assert (space.words_of_rows(space.rows_of(words)) == words).all()
        admitted = [mask in space for mask in masks]
        assert space.admitted(words).tolist() == admitted
        assert space.every_admitted().tolist() == admitted


def test_the_first_context_that_covers_a_row_is_below_all_that_do() -> None:
    numbers = random.Random(3)  # noqa: S311 (which rows)
    for schema, _, space in WORLDS:
        row = mask_of(schema, [numbers.randrange(len(a.values)) for a in schema.attributes])
        required = int(space.indices_of(pack([row], schema.width))[0])
        indices = np.arange(space.size, dtype=np.uint64)
        covers = [not row & ~space.mask(int(index)) for index in indices]
        assert space.covering(indices, required).tolist() == covers
        assert space.count_covering(required) == sum(covers)


def test_neighbours_are_next_to_each_other_in_the_order_of_inclusion() -> None:
    """One attribute differs, and no set of its family is between the two."""
    for schema, codes, space in WORLDS:
        inside = members(schema, codes)
        wanted: dict[int, set[int]] = {mask: set() for mask in inside}
        for one in inside:
            for other in inside:
                if one != other and _next_to_each_other(schema, codes, one, other):
                    wanted[one].add(other)
        for mask in inside:
            found = space.neighbours(mask)
            assert len(found) == len(set(found))
            assert set(found) == wanted[mask]


def _next_to_each_other(schema: Schema, codes: tuple[int, ...], one: int, other: int) -> bool:
    differing = [n for n, own in enumerate(schema.attribute_masks) if (one ^ other) & own]
    if len(differing) != 1 or one & other not in (one, other):
        return False
    place = differing[0]
    small, large = sorted(
        (_places(schema, mask, place) for mask in (one, other)), key=lambda chosen: len(chosen)
    )
    between = sets_of(schema.attributes[place], codes[place])
    return not any(small < chosen < large for chosen in between)


def _places(schema: Schema, mask: int, place: int) -> frozenset[int]:
    part = (mask & schema.attribute_masks[place]) >> schema.offsets[place]
    return frozenset(n for n in range(part.bit_length()) if part >> n & 1)


def test_where_everything_is_allowed_an_index_counts_in_binary() -> None:
    schema = Schema(metric="m", attributes={"a": ["x", "y", "z"], "b": ["p", "q"]})
    space = Space(schema, Context(schema, {"a": ["y"], "b": ["p"]}).mask)
    assert space.binary
    assert space.size == 8
    assert [space.mask(index) for index in (0, 1, 2, 4, 7)] == [10, 11, 14, 26, 31]
    assert space.neighbours(10) == [11, 14, 26]


@pytest.mark.parametrize("kind", ["any", "range"])
def test_items_are_counted_for_many_sets_as_for_one(kind: str) -> None:
    for values in (("a", "b", "c", "d", "e"), (1, 2, 3, 4, 5), (3, 1, 2)):
        attribute = Attribute("x", values, contexts=kind)
        chosen = [frozenset(n for n in range(5) if bits >> n & 1) for bits in range(1, 32)]
        chosen = [s for s in chosen if max(s) < len(values)]
        rows = np.array([[n in s for n in range(len(values))] for s in chosen])
        assert named_items(attribute, rows).tolist() == [items(attribute, s) for s in chosen]
        assert all(allowed(attribute, s, min(s)) for s in chosen) == (kind == "any")
