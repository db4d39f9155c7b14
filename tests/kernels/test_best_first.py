"""Contexts by falling utility: each once, in memory of their own size."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

import pcor
from pcor._kernels.lattice import all_totals, heaviest_first
from pcor.detectors.base import Counts, Moments, Values, Verdicts
from pcor.mechanism.ordered_selection import Run
from pcor.public.context import Words
from pcor.rows.cell_table import CellTable
from pcor.search import best_first
from pcor.search.best_first import BestFirst
from pcor.search.utility import Overlap, PopulationSize
from tests.helpers.kernel_cases import SPACES, Case, cases, detectors, sometimes


@dataclass(frozen=True)
class Everybody(pcor.Detector):
    """Calls every value an outlier, so that every context is valid."""

    name: ClassVar[str] = "everybody"
    min_population: int = 1

    def verdicts(self, values: Values, counts: Counts) -> Verdicts:
        del counts
        return np.ones(len(values), dtype=bool)

    def batch(
        self, cells: CellTable, value: float, masks: Words, moments: Moments | None = None
    ) -> Verdicts:
        del cells, value, moments
        return np.ones(len(masks), dtype=bool)


def weights_of(case: Case, chosen: int | None) -> NDArray[np.int64]:
    if chosen is None:
        return PopulationSize().cell_weights(case.table)
    return Overlap(pcor.Context.from_mask(case.table.schema, chosen)).cell_weights(case.table)


def utility_of(case: Case, mask: int, chosen: int | None) -> int:
    return len(case.covered(mask if chosen is None else mask & chosen))


def ranked_utilities(search: BestFirst) -> list[int]:
    return [run.utility for run in search.ranked() for _ in range(run.count)]


def check_bounds(bounds: Sequence[Run], unvisited: Sequence[int]) -> None:
    """From every utility upward, there are at least as many in the bounds as were not visited."""
    for utility in {*unvisited, *(run.utility for run in bounds)}:
        stated = sum(run.count for run in bounds if run.utility >= utility)
        assert stated >= sum(1 for u in unvisited if u >= utility)


@sometimes
@given(
    cases(SPACES, most=60),
    st.booleans(),
    st.integers(1, 40),
    st.sampled_from([1, 10, 50, 1 << 40]),
    st.sampled_from([1, 2, 256]),
)
def test_best_first_meets_every_context_once_by_falling_utility(
    case: Case, overlap: bool, step: int, sort_after: int, bounds: int
) -> None:
    chosen = case.masks[2] if overlap else None
    space = case.table.record(case.row).space
    utility = {mask: utility_of(case, mask, chosen) for mask in space.masks()}
    before: list[int] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(best_first, "FIRST_STEP", step)
        patch.setattr(best_first, "LARGEST_STEP", 2 * step)
        patch.setattr(best_first, "_SORT_AFTER", sort_after)
        patch.setattr(best_first, "_BOUNDS", bounds)
        search = BestFirst(case.validity(Everybody()), weights_of(case, chosen))
        check_bounds(search.remaining(), list(utility.values()))
        while not search.finished:
            search.advance()
            ranked = search.masks()
            assert ranked[: len(before)] == before
            assert ranked_utilities(search) == [utility[mask] for mask in ranked]
            assert ranked_utilities(search) == sorted(ranked_utilities(search), reverse=True)
            assert len(set(ranked)) == len(ranked)
            check_bounds(
                search.remaining(), [u for m, u in utility.items() if m not in set(ranked)]
            )
            before = ranked
    assert set(before) == set(utility)
    assert [search.mask(place) for place in range(len(before))] == before
    assert search.remaining() == []


@sometimes
@given(cases(SPACES, most=60), detectors, st.booleans(), st.sampled_from([1, 10, 50, 1 << 40]))
def test_best_first_keeps_the_valid_contexts_however_it_ends(
    case: Case, detector: pcor.Detector, overlap: bool, sort_after: int
) -> None:
    chosen = case.masks[2] if overlap else None
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(best_first, "FIRST_STEP", 5)
        patch.setattr(best_first, "_SORT_AFTER", sort_after)
        search = BestFirst(case.validity(detector), weights_of(case, chosen))
        while not search.finished:
            search.advance()
    masks = list(case.table.record(case.row).space.masks())
    valid = [m for m, yes in zip(masks, case.verdicts(detector, masks), strict=True) if yes]
    ranked = search.masks()
    assert sorted(ranked) == sorted(valid)
    assert ranked_utilities(search) == [utility_of(case, mask, chosen) for mask in ranked]
    assert ranked_utilities(search) == sorted(ranked_utilities(search), reverse=True)


@pytest.mark.parametrize("free", [10, 30, 50, 53, 54, 60, 62])
def test_bounds_on_a_huge_space_count_all_that_was_not_visited(free: int) -> None:
    sizes = (2,) * free
    rng = np.random.default_rng(free)
    codes = [tuple(int(c) for c in row) for row in rng.integers(0, 2, (200, free)) < 1]
    codes = [tuple(c * int(rng.random() < 0.1) for c in row) for row in codes]
    case = Case(sizes, codes, [0.0] * 200, 0)
    search = BestFirst(case.validity(Everybody()), weights_of(case, None))
    for _ in range(3):
        search.advance()
        left = (1 << free) - len(search.masks())
        assert sum(run.count for run in search.remaining()) >= left


@sometimes
@given(cases(SPACES, most=60), st.integers(0, 2**32 - 1))
def test_all_totals_of_a_space_and_their_order_are_those_of_sorting(case: Case, seed: int) -> None:
    space, cells = case.table.record(case.row).space, case.cells
    rng = np.random.default_rng(seed)
    weights = rng.integers(0, 5, len(cells.cell_numbers))
    found = all_totals(
        space.indices_of(cells.cell_required).astype(np.int64),
        weights,
        np.array(space.radices, np.int64),
    )
    assert found.tolist() == cells.totals(space.words(0, space.size), weights).tolist()
    visited = rng.random(space.size) < rng.choice([0.0, 0.5, 1.0])
    order = [index for index in range(space.size) if not visited[index]]
    order.sort(key=lambda index: -int(found[index]))
    assert heaviest_first(found, visited).tolist() == order


def test_contexts_are_sorted_in_memory_of_their_own_size_however_many_rows_there_are() -> None:
    """Totals near 2^50, as of a table with that many rows: no list as long as that is made."""
    case = Case((3, 3, 2), [(0, 0, 0), (1, 0, 1), (2, 1, 0), (0, 2, 1)], [0.0] * 4, 0)
    weights = weights_of(case, None) << 50
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(best_first, "FIRST_STEP", 2)
        patch.setattr(best_first, "_SORT_AFTER", 1)
        search = BestFirst(case.validity(Everybody()), weights)
        while not search.finished:
            search.advance()
    space = case.table.record(case.row).space
    expected = sorted((utility_of(case, mask, None) << 50 for mask in space.masks()), reverse=True)
    assert ranked_utilities(search) == expected
