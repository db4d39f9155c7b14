"""Every context of a family in one list: what is in it, and in which order."""

from __future__ import annotations

import random
from collections import Counter
from itertools import product
from typing import Any

import pytest

import pcor
from pcor.errors import TooLarge
from pcor.public.context_list import ContextList, check_listable, count_contexts
from tests.helpers.families import members, random_schema

SCHEMAS = [random_schema(random.Random(seed), largest=4) for seed in range(100)]  # noqa: S311


def masks(listed: ContextList, first: int, count: int) -> list[int]:
    words = listed.words(first, count)
    return [int.from_bytes(row.astype("<u8").tobytes(), "little") for row in words]


def test_the_list_has_every_context_that_is_a_member_for_some_record() -> None:
    kinds = Counter[bool]()
    for schema in SCHEMAS:
        records = product(*(range(len(a.values)) for a in schema.attributes))
        expected = {mask for codes in records for mask in members(schema, codes)}
        listed = ContextList(schema)
        found = masks(listed, 0, listed.size)
        assert listed.size == count_contexts(schema) == len(found)
        assert sorted(found) == sorted(expected)
        kinds[schema.limited] += 1
    assert min(kinds.values()) > 8


def test_any_part_of_the_list_is_what_stands_there_and_says_what_changed() -> None:
    """The slowest attribute in which a context differs from the one before it."""
    numbers = random.Random(1)  # noqa: S311 (test data)
    for schema in SCHEMAS[:80]:
        listed = ContextList(schema)
        whole = masks(listed, 0, listed.size)
        first = numbers.randrange(listed.size)
        count = min(20, listed.size - first)
        some = listed.part(first, count)
        assert masks(listed, first, count) == whole[first : first + count]
        bits = [sum(1 << place for place, bit in enumerate(row) if bit) for row in some.bits]
        assert bits == whole[first : first + count]
        assert some.changed[0] == len(schema.attributes) - 1
        for one, other, changed in zip(bits, bits[1:], some.changed[1:], strict=False):
            differ = [bool((one ^ other) & own) for own in schema.attribute_masks]
            assert differ[changed]
            assert not any(differ[changed + 1 :])
        last = some.only(len(bits) - 1)
        assert last.bits.tolist() == some.bits[-1:].tolist()
        assert last.changed.tolist() == [len(schema.attributes) - 1]


@pytest.mark.parametrize("single", [0, 59, 62, 63, 64, 130])
def test_contexts_are_numbered_by_their_sets_the_first_attribute_fastest(single: int) -> None:
    attributes = {f"s{i}": ["x"] for i in range(single)} | {"b": ["x", "y", "z"], "c": ["x", "y"]}
    listed = ContextList(pcor.Schema(metric="pay", attributes=attributes))
    assert listed.size == 21
    always = (1 << single) - 1
    sets = [(c, b) for c in range(1, 4) for b in range(1, 8)]
    expected = [always | b << single | c << (single + 3) for c, b in sets]
    assert masks(listed, 0, 21) == expected
    assert masks(listed, 5, 3) == expected[5:8]


def test_counting_lists_nothing() -> None:
    """A thousand values are counted at once, whatever the family."""
    many: dict[str, Any] = {"values": list(range(1000))}
    for family, sets in (("one", 1001), ("range", 500_500), ("any", 2**1000 - 1)):
        schema = pcor.Schema(metric="pay", attributes={"a": many | {"contexts": family}})
        assert count_contexts(schema) == sets
    named = pcor.Schema(metric="pay", attributes={"a": many}, max_named=1)
    assert count_contexts(named) == 500_500 + 998 * 999 // 2  # a run, or all but one


def test_what_cannot_be_listed_is_refused_with_what_to_do() -> None:
    many: dict[str, Any] = {"a": [f"v{n}" for n in range(60)], "b": ["x", "y"]}
    with pytest.raises(TooLarge, match=r"contexts; all of them can be listed up to 281,474,976"):
        check_listable(pcor.Schema(metric="pay", attributes=many))
    with pytest.raises(TooLarge, match=r"attribute 'a' has .* sets of values; where max_clauses"):
        check_listable(pcor.Schema(metric="pay", attributes=many, max_named=1))
    for contexts, sets in (({"a": "one"}, 61), ({"a": "range"}, 1830)):
        small = pcor.Schema(metric="pay", attributes=many, contexts=contexts, max_clauses=1)
        assert ContextList(small).size == sets + 2
