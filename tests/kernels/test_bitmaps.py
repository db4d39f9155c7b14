"""Contexts judged and weighed by bitmaps, against the rule and against sums over cells."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pcor
from pcor._kernels import bitmaps as module
from pcor._kernels.bitmaps import CHUNK, bitmaps, planes_of, totals_of_many
from pcor._kernels.coverage import totals
from pcor.public.context import pack
from pcor.rows import cells
from pcor.search.validity import Validity
from tests.helpers.kernel_cases import EXAMPLES, Case, cases, lofs, merged, often, split


def in_many(case: Case, detector: pcor.LOF) -> list[bool]:
    """Return the verdicts, whether rows of equal metric are one pair or several."""
    free = pack([(1 << sum(case.sizes)) - 1 & ~case.required[case.row]], sum(case.sizes))[0]
    found = [
        None if judge is None else judge(case.words).tolist()
        for some in (split(case.cells), merged(case.cells))
        for judge in [detector.judge_of_many(some, case.value, free)]
    ]
    assert found[0] == found[1]
    verdicts: list[bool] = case.validity(detector).judge_of_many()(case.words).tolist()
    assert found[0] in (None, verdicts)
    return verdicts


@often
@given(cases(), lofs())
def test_verdicts_on_many_contexts_are_those_of_the_rule(case: Case, detector: pcor.LOF) -> None:
    assert in_many(case, detector) == case.verdicts(detector)


@often
@given(cases(), lofs(), st.data())
def test_verdicts_on_many_contexts_are_right_where_the_factor_is_the_threshold(
    case: Case, detector: pcor.LOF, data: st.DataObject
) -> None:
    for exact in case.at_factor(detector, data.draw(st.sampled_from(case.masks))):
        assert in_many(case, exact) == case.verdicts(exact)


@pytest.mark.parametrize("rows", [CHUNK - 1, CHUNK, 3 * CHUNK + 5])
def test_rows_near_v_may_be_in_any_chunk(rows: int) -> None:
    numbers = np.random.default_rng(rows)
    codes = [tuple(map(int, numbers.integers(0, 40, 3))) for _ in range(rows)]
    case = Case((40, 40, 40), codes, np.sort(numbers.normal(0, 1, rows)).tolist(), rows // 2)
    own = case.required[case.row]
    chosen = numbers.random((200, 120)) < numbers.random((200, 1))
    masks = [own | sum(1 << int(p) for p in np.flatnonzero(row)) for row in chosen]
    for threshold in (1.01, 1.2):
        detector = pcor.LOF(k=5, threshold=threshold, min_population=6)
        verdicts = in_many(replace(case, masks=masks), detector)
        assert verdicts == detector.batch(case.cells, case.value, case.table.words(masks)).tolist()
        assert True in verdicts
        assert False in verdicts


def test_with_too_many_rows_for_bitmaps_pairs_are_asked_one_by_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    case = Case(
        (2, 2), [(0, 0), (0, 1), (1, 0)] * 9, [*map(float, range(26)), 99.0], 26, [6, 7, 14, 15]
    )
    detector = pcor.LOF(k=2, min_population=3)
    expected = in_many(case, detector)
    monkeypatch.setattr(module, "_LARGEST", 0)
    assert detector.judge_of_many(case.cells, case.value, case.words[0]) is None
    assert in_many(case, detector) == expected == case.verdicts(detector)


def test_whoever_has_verdicts_of_its_own_is_asked_for_them() -> None:
    class Other(Validity):
        def of_words(self, words: np.ndarray) -> np.ndarray:
            return np.ones(len(words), dtype=bool)

    case = Case((2,), [(0,)] * 3, [1.0, 2.0, 3.0], 0, [1, 3])
    other = Other(case.table, case.table.record(0), pcor.LOF())
    assert other.judge_of_many()(case.words).all()
    assert not case.validity(pcor.LOF()).judge_of_many()(case.words).any()


@settings(max_examples=EXAMPLES, deadline=None)
@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from([1, 70, CHUNK, 2 * CHUNK + 3]),
    st.sampled_from([1, 2, 3]),
    st.sampled_from([0, 1, 9, 2**40]),
)
def test_totals_by_bitmaps_are_those_of_one_cell_after_another(
    seed: int, size: int, words: int, most: int
) -> None:
    numbers = np.random.default_rng(seed)

    def some(count: int, share: float) -> np.ndarray:
        bits = numbers.random((count, 64 * words)) < share
        return np.packbits(bits, axis=1, bitorder="little").view(np.uint64)

    required, masks = some(size, 0.03), some(50, numbers.choice([0.7, 0.95, 1.0]))
    weights = numbers.integers(0, most + 1, size)
    order = np.argsort(-weights, kind="stable")
    needing, found, expected = bitmaps(required, order), *np.empty((2, 50), np.int64)
    planes, free = planes_of(weights, order, len(needing)), np.bitwise_or.reduce(required)
    totals_of_many(masks, needing, planes, free, found)
    totals(masks, required, weights, expected)
    assert found.tolist() == expected.tolist()


def test_populations_are_the_same_with_bitmaps_and_without(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    numbers = np.random.default_rng(3)
    codes = [tuple(map(int, numbers.integers(0, 30, 3))) for _ in range(2000)]
    case = Case((30, 30, 30), codes, numbers.normal(0, 1, 2000).tolist(), 0)
    masks = [int(bits) for bits in numbers.integers(0, 1 << 62, 1500)]
    words = case.table.words([mask | mask << 28 for mask in masks])
    with_them = case.cells.populations(words)
    monkeypatch.setattr(cells, "_MANY", 1 << 62)
    assert (case.cells.populations(words) == with_them).all()
    assert with_them.max() > with_them.min()
