"""The ordered draw over subtrees: the candidates of ``BestFirst``, in its order."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pcor
from pcor.mechanism.ordered_selection import draw_first
from pcor.search import best_first, heaviest_valid, subtrees_first
from pcor.search.best_first import BestFirst
from pcor.search.subtrees_first import SubtreesFirst, valid_first
from pcor.search.validity import Validity
from tests.helpers.family_tables import FamilyTable, family_table
from tests.helpers.kernel_cases import EXAMPLES, Case, cases, lofs, tied

SHAPES = [(4,), (3, 3), (2, 3, 2), (5, 4), (3, 3, 3)]

steps = st.sampled_from([1, 3, 128])
sort_after = st.sampled_from([1, 6, 40, 1 << 13])
walk_after = st.sampled_from([0, 2, 20])
looks = st.sampled_from([1, 7, 1 << 15])

# The boxes that a heap may have, and how many contexts a range may have that is walked after it.
boxes = st.sampled_from([(1, 1), (3, 4), (20, 1 << 16), (1 << 20, 1 << 16)])


def whole_order(ordered: BestFirst, valid: dict[int, int]) -> list[int]:
    """Run to the end; check on the way that bounds hold and that what is ranked keeps its place."""
    before: list[int] = []
    while not ordered.finished:
        ranked = set(before)
        left = [score for mask, score in valid.items() if mask not in ranked]
        for least in set(left):
            bound = sum(run.count for run in ordered.remaining() if run.utility >= least)
            assert bound >= sum(score >= least for score in left)
        ordered.advance()
        now = ordered.masks() if ordered.ranked() else []
        assert now[: len(before)] == before
        before = now
    assert ordered.remaining() == []
    return before


def check(
    validity: Validity, step: int, sort: int, walk: int, most: int, room: tuple[int, int]
) -> None:
    """Compare with the order in which contexts are met one by one."""
    weights = validity.table.cells.cell_counts
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(heaviest_valid, "_BYTES", (1 << 20) // room[0])
        patch.setattr(heaviest_valid, "_MOST_OF_RANGE", room[1])
        patch.setattr(best_first, "FIRST_STEP", step)
        patch.setattr(best_first, "LARGEST_STEP", step)
        patch.setattr(best_first, "_SORT_AFTER", sort)
        patch.setattr(subtrees_first, "_WALK_AFTER", walk)
        patch.setattr(subtrees_first, "_FIRST_LOOKS", min(most, 4))
        patch.setattr(subtrees_first, "_MOST_LOOKS", most)
        plain, walked = BestFirst(validity, weights), valid_first(validity, weights, memory=1)
        while not plain.finished:
            plain.advance()
        expected = plain.masks() if plain.ranked() else []
        scores = [run.utility for run in plain.ranked() for _ in range(run.count)]
        assert type(walked) is SubtreesFirst
        assert whole_order(walked, dict(zip(expected, scores, strict=True))) == expected
        assert list(walked.ranked()) == list(plain.ranked())
        assert [walked.mask(place) for place in range(len(expected))] == expected


@pytest.mark.parametrize(("values", "k"), [(11, 2), (12, 2), (12, 3)])
@pytest.mark.parametrize("room", [(1, 1), (1 << 20, 1 << 16)])
def test_piles_of_ties_lose_no_context(values: int, k: int, room: tuple[int, int]) -> None:
    check(tied(values, k), 3, 1 << 13, 0, 7, room)


@settings(max_examples=EXAMPLES)
@given(cases(SHAPES), lofs(), steps, sort_after, walk_after, looks, boxes)
def test_subtrees_give_the_order_of_contexts_met_one_by_one(
    case: Case, lof: pcor.LOF, step: int, sort: int, walk: int, most: int, room: tuple[int, int]
) -> None:
    check(case.validity(lof), step, sort, walk, most, room)


def plain_family(seed: int) -> FamilyTable:
    """Return a table of a family without limits on whole contexts."""
    while True:
        some = family_table(seed, largest=5)
        if not some.schema.limited:
            return some
        seed += 1


@settings(max_examples=EXAMPLES)
@given(st.integers(0, 2**32 - 1), steps, sort_after, walk_after, looks, boxes)
def test_subtrees_of_a_family_give_the_order_of_contexts_met_one_by_one(
    seed: int, step: int, sort: int, walk: int, most: int, room: tuple[int, int]
) -> None:
    some = plain_family(seed)
    lof = pcor.LOF(k=2, threshold=1.2, min_population=4)
    check(Validity(some.table, some.table.record(some.record), lof), step, sort, walk, most, room)


@pytest.mark.parametrize("mechanism", ["exponential", "permute_and_flip"])
def test_a_scripted_draw_is_that_of_contexts_met_one_by_one(
    mechanism: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each number points to the same context, whichever way contexts are met."""
    monkeypatch.setattr(subtrees_first, "_WALK_AFTER", 0)
    codes: list[tuple[int, ...]] = [(row % 3, row % 4) for row in range(40)]
    case = Case((3, 4), codes, [float(row) for row in range(39)] + [90.0], 39)
    validity = case.validity(pcor.LOF(k=2, min_population=4))
    weights = case.table.cells.cell_counts
    chances = np.random.default_rng(0)
    drawn = set()
    for _ in range(40):
        bits = chances.bytes(1 << 14)
        answers = []
        for ordered in (BestFirst(validity, weights), valid_first(validity, weights, memory=1)):
            script = Replayed(bits)
            place = draw_first(ordered, Fraction(1, 3), script, mechanism)
            assert place is not None
            answers.append((ordered.mask(place), script.used))
        assert answers[0] == answers[1]
        drawn.add(answers[0][0])
    assert len(drawn) > 1


class Replayed:
    """Uniform numbers from given bytes, the same for whoever asks."""

    def __init__(self, given_bytes: bytes) -> None:
        self._bytes, self.used = given_bytes, 0

    def __call__(self, n: int) -> int:
        size = max(1, math.ceil((n - 1).bit_length() / 8)) + 8
        chunk = self._bytes[self.used : self.used + size]
        self.used += size
        return int.from_bytes(chunk, "little") % n


def test_other_searches_for_the_widest_stay_as_they_are() -> None:
    some = plain_family(7)
    record, weights = some.table.record(some.record), some.table.cells.cell_counts
    grubbs, lof = (Validity(some.table, record, rule) for rule in (pcor.Grubbs(), pcor.LOF()))
    assert type(valid_first(grubbs, weights, memory=1)) is BestFirst
    assert type(valid_first(lof, weights, brevity=3, memory=1)) is BestFirst
