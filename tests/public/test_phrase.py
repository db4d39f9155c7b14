"""A sentence names the fewest items: values, ranges, or exceptions."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import pytest
from hypothesis import given

from pcor import Context, Schema
from pcor.public.phrase import Item, phrase, phrases
from pcor.public.schema import Attribute
from tests.helpers.strategies import few, some_context

CITY = Attribute("city", ("Oslo", "Rome", "Bern", "Bonn", "Wien"))
YEAR = Attribute("year", (2005, 2006, 2007, 2008, 2009))
AGE = Attribute("age", edges=(0, 18, 25, 65))


@pytest.mark.parametrize(
    ("attribute", "codes", "items", "excepted"),
    [
        (CITY, [0, 1, 2, 3, 4], [], False),
        (CITY, [1], [(1, 1)], False),
        (CITY, [1, 2], [(1, 1), (2, 2)], False),  # next to one another, but in no order
        (CITY, [0, 2, 3, 4], [(1, 1)], True),
        (YEAR, [0, 1, 2, 3, 4], [], False),
        (YEAR, [1, 2, 3], [(1, 3)], False),
        (YEAR, [0, 1, 3, 4], [(2, 2)], True),
        (YEAR, [0, 2, 4], [(1, 1), (3, 3)], True),
        (YEAR, [1, 3], [(1, 1), (3, 3)], False),
        (AGE, [0, 2], [(1, 1)], True),
        (AGE, [1, 2], [(1, 2)], False),  # as many as "except under 18": what it has
    ],
)
def test_the_fewest_items_are_named(
    attribute: Attribute, codes: list[int], items: list[tuple[int, int]], excepted: bool
) -> None:
    assert phrase(attribute, codes) == (attribute, tuple(Item(*item) for item in items), excepted)


def slow_count(attribute: Attribute, codes: set[int]) -> int:
    """Return the number of items by the definition, from every way to cut the values."""
    every = set(range(len(attribute.values)))
    if codes == every:
        return 0
    ordered = attribute.ordered
    items = [
        {*range(a, b)} for a, b in combinations(range(len(every) + 1), 2) if ordered or b == a + 1
    ]

    def fewest(wanted: set[int]) -> int:
        inside = [item for item in items if item <= wanted]
        ways = range(1, len(wanted) + 1)
        return next(
            n for n in ways if any(set().union(*c) == wanted for c in combinations(inside, n))
        )

    return min(fewest(codes), fewest(every - codes))


@pytest.mark.parametrize("attribute", [CITY, YEAR, AGE], ids=lambda a: a.name)
def test_no_other_way_names_fewer(attribute: Attribute) -> None:
    every = range(len(attribute.values))
    for count in range(1, len(every) + 1):
        for codes in combinations(every, count):
            assert len(phrase(attribute, codes).items) == slow_count(attribute, set(codes))


@pytest.mark.parametrize(
    ("declared", "ordered"),
    [
        ([1, 2, 5], True),
        ([5, 2.5, -1], True),
        ([1, 3, 2], False),
        ([7], False),  # one value has no order, and is never restricted
        (["1", "2", "3"], False),
        ([False, True], False),
        ({"values": [1, 2, 3], "other": 3}, False),
        ({"edges": [0, 1, 2]}, True),
        ({"edges": [0, 1, 2], "labels": ["b", "a"]}, True),
    ],
)
def test_an_order_is_that_of_bins_or_of_numbers_that_rise_or_fall(
    declared: Any, ordered: bool
) -> None:
    assert Schema(metric="pay", attributes={"x": declared}).attributes[0].ordered is ordered


@few
@given(context=some_context())
def test_a_context_names_what_its_attributes_do(context: Context) -> None:
    counts = [
        len(phrase(attribute, list(map(attribute.code, context.values[attribute.name]))).items)
        for attribute in context.schema.attributes
    ]
    assert context.named == sum(counts)
    assert len(phrases(context.schema, context.mask)) == sum(count > 0 for count in counts)
