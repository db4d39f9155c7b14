"""Sets of contexts as boxes: what they list is what trying every context finds."""

from __future__ import annotations

import random

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import pcor
from pcor.public.context import mask_of
from pcor.public.space import Space
from pcor.search.boxes import Boxes
from tests.helpers.families import random_schema


def random_space(seed: int) -> Space:
    numbers = random.Random(seed)  # noqa: S311 (test data)
    schema = random_schema(numbers, 5)
    places = [numbers.randrange(len(attribute.values)) for attribute in schema.attributes]
    return Space(schema, mask_of(schema, places))


def random_boxes(space: Space, seed: int, count: int) -> Boxes:
    """Return boxes between two contexts each, the second one with more steps."""
    numbers = np.random.default_rng(seed)
    bits = space.step_bits(numbers.integers(0, space.size, 2 * count, dtype=np.uint64))
    bases, others = bits[:count], bits[count:]
    every = space.step_bits(np.arange(space.size, dtype=np.uint64)).tolist()
    smallest = np.array([every.index(base) for base in bases.tolist()], np.uint64)
    return Boxes(space, smallest, others & ~bases)


def listed(boxes: Boxes) -> list[int]:
    """The slow twin: try every context."""
    space = boxes.space
    every = space.step_bits(np.arange(space.size, dtype=np.uint64)).tolist()
    bases = [every[index] for index in boxes.bases.tolist()]
    return [
        index
        for base, opens in zip(bases, boxes.opens.tolist(), strict=True)
        for index, bits in enumerate(every)
        if bits & ~opens == base
    ]


@given(st.integers(0, 2**32 - 1), st.integers(0, 3))
def test_boxes_have_every_context_between(seed: int, count: int) -> None:
    space = random_space(seed)
    boxes = random_boxes(space, seed, count)
    expected = listed(boxes)
    assert boxes.indices().tolist() == sorted(expected)
    assert len(boxes) == len(expected)
    marks = np.zeros(space.size, dtype=bool)
    boxes.mark(0, marks)
    assert np.flatnonzero(marks).tolist() == sorted(set(expected))


@given(st.integers(0, 2**32 - 1), st.integers(1, 3))
def test_those_that_cover_a_context_have_all_of_its_steps(seed: int, count: int) -> None:
    space = random_space(seed)
    boxes = random_boxes(space, seed, count)
    required = seed % space.size
    (needs,) = space.step_bits(np.array([required], dtype=np.uint64)).tolist()
    bits = space.step_bits(boxes.indices()).tolist()
    expected = [
        index
        for index, have in zip(boxes.indices().tolist(), bits, strict=True)
        if have & needs == needs
    ]
    assert boxes.covering(required).indices().tolist() == expected


def test_single_contexts_need_no_steps_that_fit_a_word() -> None:
    schema = pcor.Schema(metric="pay", attributes={"job": list(range(70))})
    space, some = Space(schema, 1), np.array([5, 1], dtype=np.uint64)
    assert len(space.steps) > 64
    assert Boxes.of(space, some).indices().tolist() == [1, 5]
    assert len(Boxes.of(space, some)) == 2
    assert Boxes.of(space, some).chosen(np.array([True, False])).indices().tolist() == [5]
