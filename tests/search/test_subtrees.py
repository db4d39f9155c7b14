"""Subtrees settled at once: the verdicts of the detector, on every context."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pcor
from pcor.public.schema import MOST_STEPS
from pcor.public.space import Space
from pcor.search import blocks as blocks_module
from pcor.search.blocks import Block, block, block_size, walked_blocks
from pcor.search.subtrees import Subtrees, subtrees
from pcor.search.validity import Validity
from tests.helpers import naive
from tests.helpers.family_tables import family_table
from tests.helpers.kernel_cases import EXAMPLES, SMALL, Case, cases, lofs, tied

# Enough free values for subtrees, few enough for every context to be judged by itself.
SHAPES = [*SMALL, (6, 6), (4, 4, 4), (11,), (3, 3, 3, 3)]


def walk_of(validity: Validity, space: Space | None = None) -> Subtrees:
    walk = subtrees(validity, validity.record.space if space is None else space)
    assert walk is not None
    return walk


def expected(validity: Validity) -> list[int]:
    """Return the indices of the valid contexts, each judged by itself."""
    space = validity.record.space
    return np.flatnonzero(validity.of_words(space.words(0, space.size))).tolist()


def found(validity: Validity) -> list[int]:
    return [
        int(index)
        for part in walked_blocks(validity, walk_of(validity), lambda block: block)
        for index in part.indices[part.valid]
    ]


def from_one_box(validity: Validity) -> list[int]:
    """Return what a walk finds that is not shared out: it decides every step itself."""
    walk = walk_of(validity)
    every = np.uint64((1 << len(walk.steps.lower)) - 1)
    return list(map(int, walk.boxes((np.uint64(0), every)).indices()))


@settings(max_examples=EXAMPLES)
@given(cases(SHAPES), lofs())
def test_subtrees_have_the_verdicts_of_their_contexts(case: Case, lof: pcor.LOF) -> None:
    """Ties, heaps of equal values, numbers far apart, minima below and above the window."""
    validity = case.validity(lof)
    assert found(validity) == expected(validity)
    if not walk_of(validity).counts_population:
        assert from_one_box(validity) == expected(validity)


@settings(max_examples=EXAMPLES)
@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from([1, 2, 3]),
    st.sampled_from([1.0, 1.2, 1.5, 2.0]),
    st.sampled_from([2, 5, 12]),
)
def test_subtrees_of_a_family_have_the_verdicts_of_their_contexts(
    seed: int, k: int, threshold: float, least: int
) -> None:
    """Ranges, groups and single values: chains of several steps; limits leave some out."""
    some = family_table(seed, largest=6)
    lof = pcor.LOF(k=k, threshold=threshold, min_population=least)
    validity = Validity(some.table, some.table.record(some.record), lof)
    assert found(validity) == expected(validity)


@settings(max_examples=EXAMPLES // 6)
@given(st.integers(0, 2**32 - 1))
def test_subtrees_have_the_coe_of_the_slow_twin(seed: int) -> None:
    """Every context of the family and every factor by the definition."""
    some = family_table(seed, largest=3, rows=24)
    definition = some.coe(naive.lof(k=3, threshold=1.5, ties="lower"), 5)
    if definition is None:
        return  # a factor too near the threshold for the twin to tell
    lof = pcor.LOF(k=3, threshold=1.5, min_population=5)
    validity = Validity(some.table, some.table.record(some.record), lof)
    assert sorted(map(validity.record.space.mask, found(validity))) == sorted(definition)


def many_contexts(seed: int) -> Validity:
    """Return a record of some 2^16 contexts, several blocks of them."""
    rng = np.random.default_rng(seed)
    sizes = {"a": 6, "b": 7, "c": 6}
    columns = {name: rng.integers(0, size, 900) for name, size in sizes.items()}
    pay = np.round(rng.normal(100, 10, 900) + 4.0 * columns["a"])
    pay[0] = 150.0
    schema = pcor.Schema(
        metric="pay", attributes={name: list(range(size)) for name, size in sizes.items()}
    )
    table = pcor.Table(pa.table(columns | {"pay": pay}), schema)
    return Validity(table, table.record(0), pcor.LOF(k=5, threshold=1.4))


@pytest.mark.parametrize("walked", [1 << 14, 1 << 22])
def test_blocks_of_a_walk_are_those_judged_one_by_one(
    walked: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blocks_module, "LARGEST_WALK", walked)
    validity = many_contexts(1)
    space = validity.record.space
    assert space.size == 4 * block_size(space)
    total = 0
    for number, part in enumerate(blocks_module.blocks(validity)):
        plain: Block = block(validity, space, number * block_size(space))
        assert np.array_equal(part.indices, plain.indices)
        assert np.array_equal(part.valid, plain.valid)
        assert np.array_equal(part.populations[part.valid], plain.populations[plain.valid])
        total += int(part.valid.sum())
    assert 0 < total < space.size


@pytest.mark.parametrize(("metric", "boxes"), [(500.0, 1), (50.5, 0)])
def test_one_box_is_enough_where_no_context_differs(metric: float, boxes: int) -> None:
    """Its own cell decides: every other row lies where it changes little."""
    from pcor._kernels.subtrees import valid_boxes

    pay = [metric, *range(100), *range(0, 100, 10)]
    job = [0] * 101 + list(range(1, 11))
    schema = pcor.Schema(metric="pay", attributes={"job": list(range(11))})
    table = pcor.Table(pa.table({"job": job, "pay": pa.array(pay, pa.float64())}), schema)
    walk = walk_of(Validity(table, table.record(0), pcor.LOF(k=5)))
    bases, opens = valid_boxes(
        walk.rows, walk.steps, walk.rule, (np.uint64(0), np.uint64((1 << 10) - 1))
    )
    assert len(bases) == boxes
    assert opens.tolist() == [(1 << 10) - 1] * boxes


@pytest.mark.parametrize(("values", "k"), [(8, 2), (12, 2), (12, 3), (13, 3)])
def test_steps_that_only_rows_need_that_do_not_matter_are_not_decided(values: int, k: int) -> None:
    from pcor._kernels.subtrees import valid_boxes

    validity = tied(values, k)
    walk, every = walk_of(validity), np.uint64((1 << (values - 1)) - 1)
    bases, opens = valid_boxes(walk.rows, walk.steps, walk.rule, (np.uint64(0), every))
    assert from_one_box(validity) == found(validity) == expected(validity)
    assert (bases.tolist(), opens.tolist()) == ([0], [int(every)])


def one_attribute(values: int) -> Validity:
    """Return V among rows that share its value, and others near it at values up to the last."""
    rng = np.random.default_rng(values)
    others = [1, 2, 31, 32, 33, values - 3, values - 2, values - 1]
    value = [0] * 31 + [one for one in others for _ in range(4)]
    pay = [60.0, *rng.normal(0, 10, 30), *(60 + rng.normal(0, 8, 4 * len(others)))]
    schema = pcor.Schema(metric="pay", attributes={"value": list(range(values))})
    table = pcor.Table(pa.table({"value": value, "pay": pay}), schema)
    lof = pcor.LOF(k=5, threshold=1.3, min_population=6)
    return Validity(table, table.record(0), lof)


def test_steps_fill_the_word() -> None:
    """As many steps as there may be: boxes have the verdicts of contexts drawn at random."""
    from pcor._kernels.subtrees import valid_boxes

    validity = one_attribute(MOST_STEPS + 1)
    space, walk = validity.record.space, walk_of(validity)
    assert len(walk.steps.lower) == MOST_STEPS
    every = (1 << MOST_STEPS) - 1
    bases, opens = valid_boxes(walk.rows, walk.steps, walk.rule, (np.uint64(0), np.uint64(every)))
    rng = np.random.default_rng(0)
    # Few steps of those that rows need, and any of the others.
    bits = rng.integers(0, every, 600, dtype=np.uint64, endpoint=True)
    bits[200:] &= rng.integers(0, every, 400, dtype=np.uint64, endpoint=True)
    bits[400:] &= rng.integers(0, every, 200, dtype=np.uint64, endpoint=True)
    bits[:2] = 0, every
    members = (bits[:, None] & ~opens) == bases
    verdicts = validity.of_words(space.words_of(walk.indices_of(bits)))
    assert members.sum(axis=1).tolist() == verdicts.astype(int).tolist()
    assert 0 < verdicts.sum() < len(bits)


def test_one_step_more_is_judged_one_by_one() -> None:
    validity = one_attribute(MOST_STEPS + 2)
    assert subtrees(validity, validity.record.space) is None


@pytest.mark.parametrize(
    "detector",
    [pcor.LOF(ties="all"), pcor.LOF(k=101), pcor.Grubbs(), pcor.Histogram()],
    ids=lambda one: f"{one.name} {getattr(one, 'k', '')}",
)
def test_detectors_without_bounds_are_judged_one_by_one(detector: pcor.Detector) -> None:
    validity = Validity(many_contexts(1).table, many_contexts(1).record, detector)
    assert subtrees(validity, validity.record.space) is None
