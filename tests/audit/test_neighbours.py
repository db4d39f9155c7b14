"""Which one-row changes change COE: against tables rebuilt without or with the row.

The slow twin builds the table anew and asks for COE. The fast way of LOF is also compared with the
generic one, on tables too large for that, and on real ones.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pcor
from pcor.audit import lof_windows
from pcor.audit.neighbours import Neighbour, insertions, removals
from pcor.errors import ParameterError, RecordError, TooLarge
from pcor.rows.cell_table import CellTable
from pcor.search import subtrees
from pcor.search.boxes import Boxes
from pcor.search.subtrees import MOST_NEIGHBOURS
from pcor.search.validity import Validity
from tests.helpers.family_tables import family_table

# A row: its attribute values as places in their domains, and its metric.
Row = tuple[tuple[int, ...], float]
# What changes: places and metric -> how many rows are alike, contexts lost, contexts gained.
Changes = dict[Row, tuple[int, list[int], list[int]]]

DETECTORS: list[pcor.Detector] = [
    pcor.LOF(k=1, threshold=1.2, min_population=2),
    pcor.LOF(k=2, threshold=1.3, min_population=4),
    pcor.LOF(k=2, threshold=1.05, min_population=5),
    pcor.LOF(k=3, threshold=1.5, min_population=1),
    pcor.LOF(k=2, threshold=1.3, min_population=8),  # more than LOF's own window shows
    pcor.LOF(k=2, threshold=1.3, min_population=4, ties="all"),
    pcor.Grubbs(alpha=0.3, min_population=4),
    pcor.Grubbs(alpha=0.2, tail="upper", min_population=3),
    pcor.Histogram(rare=0.3, min_population=4),
    pcor.Tail(share=0.2, min_population=5),
    pcor.Neighbourhood(radius=2.0, share=0.25, min_population=3),
]


@cache
def schema(shape: tuple[int, ...]) -> pcor.Schema:
    attributes = {f"a{i}": list(range(size)) for i, size in enumerate(shape)}
    return pcor.Schema(metric="pay", attributes=attributes)


@lru_cache(maxsize=100)  # a table with one row less is asked about with many thresholds
def encoded(shape: tuple[int, ...], rows: tuple[Row, ...]) -> pcor.Table:
    columns: dict[str, Any] = {
        f"a{i}": [places[i] for places, _ in rows] for i in range(len(shape))
    }
    columns["pay"] = [value for _, value in rows]
    return pcor.Table(pa.table(columns), schema(shape))


@dataclass(frozen=True)
class Small:
    """A small table; V is row 0."""

    shape: tuple[int, ...]
    rows: list[Row]

    def validity(self, detector: pcor.Detector) -> Validity:
        table = encoded(self.shape, tuple(self.rows))
        return Validity(table, table.record(0), detector)

    def coe(self, detector: pcor.Detector, rows: list[Row] | None = None) -> set[int]:
        """Return COE of these rows, or of the table's own."""
        table = encoded(self.shape, tuple(self.rows if rows is None else rows))
        masks = pcor.matching_contexts(table, 0, detector).masks
        return {int(index) for index in table.record(0).space.indices_of(masks)}


@st.composite
def small_tables(draw: st.DrawFn, most: int = 14) -> Small:
    """Draw V and a few rows: piles, ties, and populations around the smallest allowed."""
    shape = draw(st.sampled_from([(2, 2), (3, 2), (2, 3), (2, 2, 2), (4,)]))
    places = st.tuples(*(st.integers(0, size - 1) for size in shape))
    value = st.integers(0, 6).map(float) | st.sampled_from([2.5, 11.0, 1e6, -1e6, 1e-7])
    rows = draw(st.lists(st.tuples(places, value), min_size=2, max_size=most))
    copies = draw(st.lists(st.sampled_from(rows), max_size=3))
    far = draw(st.sampled_from([9.0, 14.0, 3.0, -5.0, 1e6]))
    return Small(shape, [(draw(places), far), *rows, *copies])


def brute_force_removals(small: Small, detector: pcor.Detector) -> Changes:
    before = small.coe(detector)
    changes: Changes = {}
    others = small.rows[1:]
    for row in set(others):
        place = 1 + others.index(row)
        after = small.coe(detector, small.rows[:place] + small.rows[place + 1 :])
        if after != before:
            changes[row] = others.count(row), sorted(before - after), sorted(after - before)
    return changes


def brute_force_insertions(small: Small, detector: pcor.Detector, values: list[float]) -> Changes:
    before = small.coe(detector)
    changes: Changes = {}
    for row in product(product(*(range(size) for size in small.shape)), values):
        after = small.coe(detector, [*small.rows, row])
        if after != before:
            changes[row] = 1, sorted(before - after), sorted(after - before)
    return changes


def said(neighbours: list[Neighbour]) -> Changes:
    changes = {
        (one.places, one.value): (one.rows, one.lost.tolist(), one.gained.tolist())
        for one in neighbours
    }
    assert len(changes) == len(neighbours)
    return changes


def generic(monkeypatch: pytest.MonkeyPatch, work: Callable[[], list[Neighbour]]) -> Changes:
    """Run work without LOF's own way."""
    with monkeypatch.context() as patch:
        patch.setattr(lof_windows, "walkable_rule", lambda _: None)
        return said(work())


# -- acceptance: equal to recomputation -----------------------------------------------------------


def test_removals_are_those_of_rebuilt_tables() -> None:
    sizes: list[int] = []

    @settings(max_examples=150, deadline=None)
    @given(small_tables(), st.sampled_from(DETECTORS))
    def compare(small: Small, detector: pcor.Detector) -> None:
        expected = brute_force_removals(small, detector)
        assert said(removals(small.validity(detector))) == expected
        sizes.append(len(expected))

    compare()
    assert sum(size > 0 for size in sizes) >= len(sizes) // 10  # usual are 30 to 60 %


def test_insertions_are_those_of_rebuilt_tables() -> None:
    sizes: list[int] = []

    @settings(max_examples=60, deadline=None)
    @given(
        small_tables(most=10),
        st.sampled_from(DETECTORS),
        st.lists(
            st.sampled_from([0.0, 3.0, 2.5, 9.0, 14.0, 1e6, -2e6]),
            min_size=2,
            max_size=3,
            unique=True,
        ),
    )
    def compare(small: Small, detector: pcor.Detector, values: list[float]) -> None:
        expected = brute_force_insertions(small, detector, values)
        assert said(insertions(small.validity(detector), values)) == expected
        sizes.append(len(expected))

    compare()
    assert sum(size > 0 for size in sizes) >= len(sizes) // 10  # usual are 30 to 60 %


@pytest.mark.parametrize(
    ("k", "threshold", "least"), [(1, 1.1, 1), (2, 1.3, 4), (3, 1.2, 12), (5, 1.5, 6)]
)
def test_the_fast_way_of_lof_is_the_generic_one(
    monkeypatch: pytest.MonkeyPatch, k: int, threshold: float, least: int
) -> None:
    detector = pcor.LOF(k=k, threshold=threshold, min_population=least)

    @settings(max_examples=60, deadline=None)
    @given(small_tables(most=30))
    def compare(small: Small) -> None:
        validity = small.validity(detector)
        values = sorted({value for _, value in small.rows} | {2.25, 8.0})
        assert lof_windows.walkable_rule(validity) is not None
        assert said(removals(validity)) == generic(monkeypatch, lambda: removals(validity))
        assert said(insertions(validity, values)) == generic(
            monkeypatch, lambda: insertions(validity, values)
        )

    compare()


@pytest.mark.parametrize(("k", "threshold", "least"), [(1, 1.1, 2), (2, 1.3, 4), (3, 1.2, 12)])
def test_the_fast_way_of_lof_is_the_generic_one_in_families(
    monkeypatch: pytest.MonkeyPatch, k: int, threshold: float, least: int
) -> None:
    """Ranges, groups and single values: chains of several steps."""
    detector = pcor.LOF(k=k, threshold=threshold, min_population=least)
    sizes: list[int] = []

    @settings(max_examples=60, deadline=None)
    @given(st.integers(0, 2**32 - 1))
    def compare(seed: int) -> None:
        some = family_table(seed, largest=5, rows=30, limits=False)
        validity = Validity(some.table, some.table.record(some.record), detector)
        assert lof_windows.walkable_rule(validity) is not None
        values = sorted({*some.metric, 2.25})
        expected = generic(monkeypatch, lambda: removals(validity))
        assert said(removals(validity)) == expected
        assert said(insertions(validity, values)) == generic(
            monkeypatch, lambda: insertions(validity, values)
        )
        sizes.append(len(expected) * (not validity.record.space.binary))

    compare()
    assert sum(size > 0 for size in sizes) >= len(sizes) // 10  # usual are 30 % and more


def synthetic(shape: tuple[int, ...], count: int, seed: int, digits: int) -> Small:
    """Return skewed metrics, rounded so that some tie, and V where they thin out."""
    numbers = np.random.default_rng(seed)
    values = np.round(numbers.lognormal(3, 0.5, count), digits)
    values[0] = np.sort(values)[-count // 40] * 1.1
    places = zip(*(numbers.zipf(1.6, count) % size for size in shape), strict=True)
    return Small(
        shape, [(tuple(map(int, p)), float(v)) for p, v in zip(places, values, strict=True)]
    )


@pytest.mark.parametrize(("seed", "digits"), [(0, 0), (5, 1), (2, 6)])
def test_the_fast_way_is_the_generic_one_with_twenty_neighbours(
    monkeypatch: pytest.MonkeyPatch, seed: int, digits: int
) -> None:
    validity = synthetic((4, 4, 4), 400, seed, digits).validity(pcor.LOF(threshold=1.3))
    values = np.quantile(
        validity.table.cells.in_memory().values, [0.0, 0.5, 0.9, 0.98, 1.0]
    ).tolist()
    fast = said(removals(validity))
    assert fast == generic(monkeypatch, lambda: removals(validity))
    assert fast
    added = said(insertions(validity, values))
    assert added == generic(monkeypatch, lambda: insertions(validity, values))
    assert added


@pytest.mark.parametrize("shape", [(6, 6), (4, 4, 4), (11,)])
def test_boxes_that_are_left_out_have_no_changes(
    monkeypatch: pytest.MonkeyPatch, shape: tuple[int, ...]
) -> None:
    """So many free values that most contexts are never looked at by themselves."""
    rules = [(1, 1.1, 2), (2, 1.3, 4), (3, 1.5, 8), (5, 1.2, 6)]
    total = 0
    for seed in range(10):
        k, threshold, least = rules[seed % len(rules)]
        small = synthetic(shape, 60, seed, digits=seed % 3)
        validity = small.validity(pcor.LOF(k=k, threshold=threshold, min_population=least))
        fast = said(removals(validity))
        assert fast == generic(monkeypatch, lambda v=validity: removals(v))  # type: ignore[misc]
        total += len(fast)
    assert total > 0


@pytest.mark.parametrize("min_population", [4, 21])
def test_in_a_family_rows_that_no_context_looks_at_are_not_tried(
    monkeypatch: pytest.MonkeyPatch, min_population: int
) -> None:
    small = synthetic((6, 6, 6), 600, seed=3, digits=1)
    declared = schema(small.shape).to_dict() | {"contexts": {"max_clauses": 2}}
    for attribute in declared["attributes"].values():
        attribute["contexts"] = "range"
    table = encoded(small.shape, tuple(small.rows)).in_family(pcor.Schema.from_dict(declared))
    rule = pcor.LOF(k=5, threshold=1.2, min_population=min_population)
    validity = Validity(table, table.record(0), rule)
    tried: list[int] = []
    found = said(removals(validity, progress=lambda _, every: tried.append(every)))
    assert found
    monkeypatch.setattr(CellTable, "nearest_in", lambda cells, *_: cells)
    every: list[int] = []
    assert found == said(removals(validity, progress=lambda _, rows: every.append(rows)))
    # With a smallest population beyond the window everybody counts.
    assert tried[0] < every[0] / 2 if min_population == 4 else tried[0] == every[0]


def test_whoever_keeps_the_population_large_enough_is_found_however_far_from_the_record() -> None:
    """One cell, all rows on one side, a minimum far beyond LOF's own window: everybody counts."""
    rows: list[Row] = [((0, 0), 90.0), *[((0, 0), float(value)) for value in range(24)]]
    detector = pcor.LOF(k=2, threshold=1.3, min_population=25)
    small = Small((2, 2), rows)
    found = removals(small.validity(detector))
    assert [one.value for one in found] == [float(value) for value in range(24)]
    assert all(len(one.lost) == 4 for one in found)
    alike = Small((2, 2), [rows[0], *[((0, 0), 1.0)] * 20, *rows[1:5]])
    assert said(removals(alike.validity(detector))) == brute_force_removals(alike, detector)


def test_a_threshold_that_a_factor_equals_after_a_removal_is_not_exceeded() -> None:
    """The fast way adds in another order than the plain kernel: the last bit must not show."""
    small = synthetic((2,), 40, 1, 3)
    values = sorted(value for _, value in small.rows)
    v, k, changed = small.rows[0][1], 5, 0
    for gone in (value for value in values if value != v):
        rest = np.array([value for value in values if value != gone])
        factors = pcor.LOF(k=k).factors(rest, np.ones(len(rest), dtype=np.int64))
        factor = float(factors[np.searchsorted(rest, v)])
        for threshold in (factor, float(np.nextafter(factor, 0))):
            detector = pcor.LOF(k=k, threshold=threshold, min_population=30)
            expected = brute_force_removals(small, detector)
            assert said(removals(small.validity(detector))) == expected
            changed += bool(expected)
    assert changed > 10


@pytest.mark.parametrize("k", [1, 2, 5])
def test_every_factor_before_and_after_a_removal_is_within_the_bounds(k: int) -> None:
    """Equal spacing, piles, and skewed values; in some windows the upper bound is the factor."""
    from pcor._kernels.lof import window_factor
    from pcor._kernels.lof_bounds import SLACK, _bounds, _neighbours, _quick_bound, new_room

    numbers, size = np.random.default_rng(k), 4 * k + 3
    room = new_room(size, k)

    def factor(x: Any, place: int) -> float:
        low = max(0, place - 2 * k)
        return float(window_factor(x[low : place + 2 * k + 1], place - low, k, room.plain))

    tightest = np.inf
    for _ in range(400):
        below, above = numbers.integers(0, 2 * k + 2, 2).tolist()
        place, n = below, below + 1 + above
        if n < k + 2:
            continue
        drawn = (np.arange(n), numbers.integers(0, 4, n), numbers.lognormal(0, 3, n))
        x = np.sort(drawn[numbers.integers(3)].astype(np.float64))
        room.x[:n] = x
        quick = _quick_bound(room, place, k, *_neighbours(room, n, place, k))
        least, most = _bounds(room, place, k)
        others = [j for j in range(n) if j != place]
        factors = [factor(np.delete(x, j), place - (j < place)) for j in others]
        factors.append(factor(x, place))
        assert least * (1 - SLACK) <= min(factors)
        assert max(factors) <= min(quick, most) * (1 + SLACK)
        tightest = min(tightest, most / max(factors))
    assert tightest < 1.001  # so that a bound that is too low would be seen


def test_a_walk_in_parts_is_the_walk_in_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """The walk in one finds more leaves than it has room for at first, and goes on."""
    small = synthetic((6, 6, 6), 900, 3, 1)
    validity = small.validity(pcor.LOF(k=7, threshold=1.4))
    values = sorted({value for _, value in small.rows})[::20]
    in_parts = said(removals(validity)), said(insertions(validity, values))
    monkeypatch.setattr(subtrees, "_PARTS", 1)  # as many as one
    walked: list[int] = []
    walk = lof_windows.Windows.walk

    def counted(self: Any, find: Any, progress: Any) -> Any:
        found = walk(self, find, progress)
        walked.append(len(found.leaves.bases))
        return found

    monkeypatch.setattr(lof_windows.Windows, "walk", counted)
    assert (said(removals(validity)), said(insertions(validity, values))) == in_parts
    assert min(walked) > 256


def test_the_fast_way_is_for_as_many_neighbours_as_its_rounding_is_proven_for() -> None:
    from pcor._kernels.lof_bounds import ROUNDING

    small = synthetic((2, 2), 10, 0, 0)
    assert (4 * MOST_NEIGHBOURS + 3) * 2.0**-53 < ROUNDING
    assert lof_windows.walkable_rule(small.validity(pcor.LOF(k=MOST_NEIGHBOURS))) is not None
    assert lof_windows.walkable_rule(small.validity(pcor.LOF(k=MOST_NEIGHBOURS + 1))) is None


# -- what is asked and answered -------------------------------------------------------------------

PILE = Small(
    (2, 2),
    [
        ((0, 0), 9.0),
        *[((0, 0), 9.0)] * 2,
        *[((0, 1), float(v)) for v in range(6)],
        *[((1, 0), 3.0)] * 4,
    ],
)


def test_the_record_itself_is_never_removed_but_rows_like_it_are() -> None:
    detector = pcor.Tail(share=0.2, min_population=3)
    own = [one for one in removals(PILE.validity(detector)) if one.value == 9.0]
    assert [(one.places, one.rows) for one in own] == [((0, 0), 2)]
    alone = Small(PILE.shape, [PILE.rows[0], *PILE.rows[3:]])
    assert all(one.value != 9.0 for one in removals(alone.validity(detector)))


@pytest.mark.parametrize("detector", [DETECTORS[1], DETECTORS[6]], ids=["lof", "grubbs"])
def test_some_rows_are_answered_like_all_rows(detector: pcor.Detector) -> None:
    small = synthetic((3, 3), 40, 1, 0)
    validity = small.validity(detector)
    everything = said(removals(validity))
    keys = list(range(0, 40, 3))  # V is among them and passed over
    wanted = {small.rows[key] for key in keys[1:]}
    assert said(removals(validity, rows=keys)) == {
        row: change for row, change in everything.items() if row in wanted
    }


def test_a_row_that_does_not_exist_is_refused() -> None:
    with pytest.raises(RecordError, match="no record"):
        removals(PILE.validity(DETECTORS[1]), rows=[99])


def test_changes_come_by_rising_metric() -> None:
    validity = synthetic((4, 3), 60, 5, 0).validity(pcor.LOF(k=3, threshold=1.2, min_population=4))
    listed = [one.value for one in removals(validity)]
    assert listed == sorted(listed)
    assert len(set(listed)) > 1


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_an_added_metric_must_be_finite(value: float) -> None:
    with pytest.raises(ParameterError, match="values must be finite"):
        insertions(PILE.validity(DETECTORS[1]), [value])


@pytest.mark.parametrize("detector", [DETECTORS[1], DETECTORS[6]], ids=["lof", "grubbs"])
def test_too_many_verdicts_are_refused_with_what_to_do(detector: pcor.Detector) -> None:
    with pytest.raises(TooLarge, match=r"4 possible contexts.*limit of 3.*limit= if .* million$"):
        removals(PILE.validity(detector), limit=3)
    with pytest.raises(TooLarge, match=r"4 possible contexts.*limit of 4.*fewer values$"):
        insertions(PILE.validity(detector), [1.0, 2.0], limit=4)


def test_fewer_rows_are_advised_where_they_would_help() -> None:
    with pytest.raises(TooLarge, match=r"4 possible contexts.*limit of 4.*limit=.*rows= to look"):
        removals(PILE.validity(pcor.Grubbs(min_population=3)), limit=4)


@pytest.mark.parametrize("detector", [DETECTORS[1], DETECTORS[6]], ids=["lof", "grubbs"])
def test_progress_ends_with_everything_done(detector: pcor.Detector) -> None:
    steps: list[tuple[int, int]] = []
    validity = synthetic((6, 6, 4), 100, 3, 1).validity(detector)
    removals(validity, rows=[1, 2, 3], progress=lambda done, of: steps.append((done, of)))
    assert steps == sorted(steps)
    assert steps[-1][0] == steps[-1][1]


def test_a_neighbour_shows_nothing_of_the_row() -> None:
    space = synthetic((2, 2), 10, 0, 0).validity(pcor.LOF()).record.space
    nobody = Boxes.of(space, np.zeros(0, dtype=np.uint64))
    one = Neighbour("removed", (7, 3), 123.0, 55, nobody, nobody)
    assert repr(one) == "<Neighbour: PRIVATE, for the owner only>"


# -- real tables ----------------------------------------------------------------------------------

ROWS = 50


def real(name: str) -> tuple[pa.Table, pcor.Table]:
    folder = os.environ.get("PCOR_DATA")
    if not folder:
        pytest.skip("PCOR_DATA is not set: it names the folder with the salary tables")
    path = Path(folder) / name
    rows = pq.read_table(path.with_suffix(".parquet"))
    return rows, pcor.Table(rows, pcor.Schema.from_file(path.with_suffix(".toml")))


def outlier(table: pcor.Table, seed: int) -> int:
    numbers = random.Random(seed)  # noqa: S311 (which record)
    return int(numbers.choice(pcor.outliers(table)))


@pytest.mark.parametrize(("name", "most"), [("salary_11k", 1 << 11), ("salary_51k", 1 << 13)])
def test_fifty_rows_of_a_real_table_are_those_of_rebuilt_tables(name: str, most: int) -> None:
    """Half of the rows near V; of contexts, the changed ones and as many others as said."""
    rows, table = real(name)
    key = outlier(table, 7)
    record, detector = table.record(key), pcor.LOF()
    validity = Validity(table, record, detector)
    found = said(removals(validity))
    metric = rows[table.schema.metric.column].to_numpy()
    near = np.argsort(np.abs(metric - record.value), kind="stable")[1:200]
    numbers = np.random.default_rng(0)
    chosen = [*numbers.choice(len(metric), ROWS // 2), *numbers.choice(near, ROWS // 2)]
    changed = 0
    for row in (int(row) for row in chosen if row != key):
        mask = table.record(row).space.fixed
        places = tuple(
            next(p for p in range(len(a.values)) if mask >> (o + p) & 1)
            for a, o in zip(table.schema.attributes, table.schema.offsets, strict=True)
        )
        _, lost, gained = found.get((places, float(metric[row])), (0, [], []))
        indices = np.arange(record.space.size, dtype=np.uint64)
        if len(indices) > most:
            some = numbers.choice(len(indices), most).astype(np.uint64)
            indices = np.unique(np.concatenate([some, np.array(lost + gained, dtype=np.uint64)]))
        words = record.space.words_of(indices)
        smaller = pcor.Table(pa.concat_tables([rows[:row], rows[row + 1 :]]), table.schema)
        before, after = (
            validity.of_words(words),
            Validity(smaller, record, detector).of_words(words),
        )
        assert set(indices[before & ~after].tolist()) == set(lost)
        assert set(indices[after & ~before].tolist()) == set(gained)
        changed += bool(lost or gained)
    assert changed >= 3
