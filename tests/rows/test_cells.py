"""The cells of a table: populations, sums and distributions are those of plain loops."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import fields, replace
from functools import reduce
from operator import add

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pcor
from pcor.rows import encoding, table
from pcor.rows.cell_table import CellTable
from tests.helpers.kernel_cases import (
    Case,
    cases,
    check_cells,
    detectors,
    lofs,
    merged,
    often,
    sometimes,
    split,
)

# -- populations, sums, distributions -------------------------------------------------------------


@often
@given(cases())
def test_populations_and_distributions_are_those_of_plain_loops(case: Case) -> None:
    nobody = (1 << sum(case.sizes)) - 1 ^ case.required[case.row]
    check_cells(case, case.cells, [*case.masks, nobody, 0])


@often
@given(cases(), st.integers(0, 2**32 - 1))
def test_totals_are_sums_over_the_covered_cells(case: Case, seed: int) -> None:
    cells, rng = case.cells, np.random.default_rng(seed)
    weights = rng.integers(0, 2**40, len(cells.cell_numbers))
    several = rng.integers(-(2**40), 2**40, (3, len(cells.cell_numbers))).astype(
        float
    )  # sums are exact
    bits = [int.from_bytes(row.astype("<u8").tobytes(), "little") for row in cells.cell_required]
    assert sorted(bits) == sorted(set(case.required))
    covered = [[i for i, required in enumerate(bits) if required & ~m == 0] for m in case.masks]
    assert cells.totals(case.words, weights).tolist() == [
        sum(int(weights[i]) for i in kept) for kept in covered
    ]
    assert cells.several_totals(case.words, several).tolist() == [
        [math.fsum(kind[i] for i in kept) for kept in covered] for kind in several
    ]


@often
@given(cases())
def test_cells_have_the_sums_of_their_rows(case: Case) -> None:
    cells = case.cells
    counted = Counter(case.required)
    for place, row in enumerate(cells.cell_required):
        required = int.from_bytes(row.astype("<u8").tobytes(), "little")
        centred = [
            m - cells.centre
            for m, n in zip(case.metric, case.required, strict=True)
            if n == required
        ]
        assert cells.cell_counts[place] == counted[required]
        # Added in the order of the rows, here as there; `sum` would correct its rounding from
        # Python 3.12 on.
        assert cells.cell_sums[place] == reduce(add, centred)
        assert cells.cell_squares[place] == reduce(add, (c * c for c in centred))


@often
@given(cases(), detectors, st.data())
def test_cells_near_a_context_answer_for_it_and_all_its_neighbours(
    case: Case, detector: pcor.Detector, data: st.DataObject
) -> None:
    mask = data.draw(st.sampled_from(case.masks))
    near = case.cells.near(case.table.words([mask])[0])
    positions = range(sum(case.sizes))
    if len(positions) > 20:  # a few of many neighbours
        positions_drawn = data.draw(st.lists(st.sampled_from(positions), max_size=10))
    else:
        positions_drawn = list(positions)
    check_cells(case, near, [mask, *(mask ^ 1 << position for position in positions_drawn)])
    validity = case.validity(detector)
    free = [position for position in positions_drawn if not case.required[case.row] >> position & 1]
    around = [mask, *(mask ^ 1 << position for position in free)]
    expected = case.verdicts(detector, around)
    assert validity.judge(near, case.table.words(around)).tolist() == expected
    assert detector.batch(near, case.value, case.table.words(around)).tolist() == expected


@often
@given(cases(), detectors)
def test_the_verdicts_on_neighbours_are_those_on_them_one_by_one(
    case: Case, detector: pcor.Detector
) -> None:
    validity = case.validity(detector)
    neighbours = validity.record.space.neighbours(case.masks[-1])[:25]
    found = validity.of_neighbours(case.masks[-1])[:25]
    assert found.tolist() == case.verdicts(detector, neighbours)


@often
@given(cases(), detectors, st.data())
def test_cells_inside_a_context_answer_for_all_that_it_contains(
    case: Case, detector: pcor.Detector, data: st.DataObject
) -> None:
    outer = data.draw(st.sampled_from(case.masks))
    inside = case.cells.inside(case.table.words([outer])[0])
    contained = [mask & outer for mask in case.masks]
    check_cells(case, inside, contained)
    expected = case.verdicts(detector, contained)
    words = case.table.words(contained)
    assert case.validity(detector).judge(inside, words).tolist() == expected
    assert detector.batch(inside, case.value, words).tolist() == expected


@often
@given(cases(), st.integers(0, 2**32 - 1))
def test_the_totals_of_all_neighbours_are_those_one_by_one(case: Case, seed: int) -> None:
    cells, width = case.cells, sum(case.sizes)
    weights = np.random.default_rng(seed).integers(0, 2**40, len(cells.cell_numbers))
    for mask, word in zip(case.masks[:4], case.words[:4], strict=True):
        neighbours = case.table.words([mask ^ 1 << position for position in range(width)])
        found = cells.neighbour_totals(word, weights, width)
        assert found.tolist() == cells.totals(neighbours, weights).tolist()
        # Several kinds in floating point; whole numbers below 2^53 are exact there too.
        kinds = np.array([weights, -weights, weights % 7], dtype=np.float64)
        whole, each = cells.neighbour_moments(word, kinds, width)
        assert whole.tolist() == cells.several_totals(word[np.newaxis], kinds)[:, 0].tolist()
        assert each.tolist() == cells.several_totals(neighbours, kinds).tolist()


@often
@given(cases(), lofs(), st.data())
def test_the_nearest_rows_of_each_cell_are_enough_for_lof(
    case: Case, detector: pcor.LOF, data: st.DataObject
) -> None:
    assert detector.window_rows is not None
    for cells in (case.cells, split(case.cells), merged(case.cells)):
        nearest = cells.nearest(case.value, detector.window_rows)
        assert nearest.populations(case.words).tolist() == [
            len(case.covered(mask)) for mask in case.masks
        ]
        # No cell keeps a pair beyond the one with which it has enough.
        for cell in range(len(cells.cell_numbers)):
            for side in (nearest.values < case.value, nearest.values >= case.value):
                kept = nearest.counts[side & (nearest.pair_cells == cell)]
                assert kept.sum() - kept.max(initial=0) < detector.window_rows
        found = detector.batch(nearest, case.value, case.words)
        assert found.tolist() == case.verdicts(detector)
    mask = data.draw(st.sampled_from(case.masks))
    validity = case.validity(detector)
    assert validity.of_words(case.words).tolist() == case.verdicts(detector)
    assert bool(
        validity.judge(validity.cells.near(case.table.words([mask])[0]), case.table.words([mask]))[
            0
        ]
    ) == (case.verdict(mask, detector))


# -- building a table -----------------------------------------------------------------------------


def same_arrays(here: CellTable, there: CellTable) -> bool:
    return all(np.array_equal(getattr(here, f.name), getattr(there, f.name)) for f in fields(here))


@often
@given(cases(), detectors)
def test_merging_equal_rows_into_pairs_changes_no_answer(
    case: Case, detector: pcor.Detector
) -> None:
    expected = case.verdicts(detector)
    for cells in (split(case.cells), merged(case.cells)):
        check_cells(case, cells, case.masks)
        assert case.validity(detector).judge(cells, case.words).tolist() == expected
        assert detector.batch(cells, case.value, case.words).tolist() == expected


@often
@given(cases())
def test_rows_are_merged_only_where_many_repeat(case: Case) -> None:
    cells = case.cells
    many = 2 * len(set(case.metric)) <= len(case.metric)
    expected = merged(cells) if many else split(cells)
    assert cells.values.tolist() == expected.values.tolist()
    assert sorted(cells.counts.tolist()) == sorted(expected.counts.tolist())
    assert Counter(zip(case.metric, case.required, strict=True)) == {
        (value, sum(word << 64 * i for i, word in enumerate(required))): count
        for value, required, count in zip(
            merged(cells).values.tolist(),
            merged(cells).required.tolist(),
            merged(cells).counts.tolist(),
            strict=True,
        )
    }


@sometimes
@given(cases())
def test_both_ways_to_number_pairs_and_cells_build_the_same_cells(case: Case) -> None:
    tables, keys = [], []
    for module, most in ((table, 0), (table, 1 << 30), (encoding, 0), (encoding, 1 << 22)):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(module, "_MOST_COMBINATIONS", most)
            built = replace(case).table
        tables.append(built.cells.in_memory())
        keys.append(built.record(case.row))
    assert all(same_arrays(cells, case.cells) for cells in tables)
    assert all(key == case.table.record(case.row) for key in keys)


@often
@given(cases())
def test_the_moments_that_grubbs_wants_are_those_of_plain_loops(case: Case) -> None:
    cells = case.cells
    found = pcor.Grubbs().cell_moments(cells, case.value)
    for place, row in enumerate(cells.cell_required):
        required = int.from_bytes(row.astype("<u8").tobytes(), "little")
        own = [m for m, n in zip(case.metric, case.required, strict=True) if n == required]
        pairs = zip(cells.values, cells.counts, cells.pair_cells, strict=True)
        above = [(v - cells.centre, n) for v, n, cell in pairs if cell == place and v > case.value]
        assert found[:3, place].tolist() == cells.moments[:, place].tolist()
        # Added in the order of the pairs, here as there.
        assert found[3:, place].tolist() == [
            sum(m > case.value for m in own),
            sum(n * centred for centred, n in above),
            sum(n * (centred * centred) for centred, n in above),
            own.count(case.value),
        ]


@often
@given(cases(), detectors, st.data())
def test_the_moments_of_a_part_of_the_cells_are_that_part_of_the_moments(
    case: Case, detector: pcor.Detector, data: st.DataObject
) -> None:
    cells = case.cells
    whole = detector.cell_moments(cells, case.value)
    word = case.table.words([data.draw(st.sampled_from(case.masks))])[0]
    for part in (cells.near(word), cells.inside(word), cells.inside(word).near(case.words[0])):
        found = detector.cell_moments(part, case.value)
        assert found.tolist() == whole[:, part.cell_numbers].tolist()
