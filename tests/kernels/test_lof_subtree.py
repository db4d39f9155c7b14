"""Bounds on boxes of contexts: every context below, with and without each few rows."""

from __future__ import annotations

from itertools import chain, combinations, product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.helpers import naive
from tests.helpers.kernel_cases import EXAMPLES

Rule = tuple[int, float, int]


def verdicts(x: Any, sure: Any, place: int, rule: Rule, spare: int) -> set[bool]:
    """Return every verdict on V: all rows between, and up to so many that leave."""
    from pcor._kernels.lof import window_room, window_verdict

    k, _, smallest = rule
    room, found = window_room(k), set()
    open_rows = np.flatnonzero(~sure).tolist()
    others = [p for p in range(len(x)) if p != place]
    for come in chain.from_iterable(
        combinations(open_rows, size) for size in range(len(open_rows) + 1)
    ):
        there = sure.copy()
        there[list(come)] = True
        for gone in chain.from_iterable(combinations(others, size) for size in range(spare + 1)):
            left = there.copy()
            left[list(gone)] = False
            rows, at = x[left], int(left[:place].sum())
            enough = len(rows) >= max(smallest, k + 1)
            found.add(enough and bool(window_verdict(rows, len(rows), at, rule, room)))
    return found


def settled_by(room: Any, size: tuple[int, int, int], rule: Rule, spare: int) -> bool:
    """Tell whether bounds show that rows that are filled in have one verdict."""
    from pcor._kernels.lof_near import that_matter
    from pcor._kernels.lof_subtree import settled

    n, place, sure = size
    k = rule[0]
    if sure <= k + spare:  # some distance has no bound
        return False
    candidates, theirs = that_matter(room, n, place, k + spare)
    return bool(settled(room, size, candidates, theirs, rule, spare))


@pytest.mark.parametrize(("k", "spare"), [(1, 1), (2, 1), (3, 1), (2, 2), (3, 0)])
def test_a_settled_box_has_one_verdict_whoever_leaves(k: int, spare: int) -> None:
    from pcor._kernels.lof_near import room_for

    numbers = np.random.default_rng(10 * k + spare)
    settles, alike, wrong = {True: 0, False: 0}, 0, 0
    for _ in range(400):
        n = int(numbers.integers(k + 3, 3 * k + 6))
        drawn = (np.arange(n), numbers.integers(0, 4, n), numbers.lognormal(0, 2, n))
        x = np.sort(drawn[numbers.integers(3)].astype(np.float64))
        if numbers.integers(2):
            x[-1] += 10.0  # far enough to stay an outlier
        place = n - 1 if numbers.integers(2) else int(numbers.integers(n))
        sure = np.ones(n, dtype=bool)
        sure[numbers.choice(n, int(numbers.integers(4)), replace=False)] = False
        sure[place] = True
        rule = (k, float(numbers.choice([1.05, 1.5, 2.0])), int(numbers.integers(k + 1, k + 4)))
        room = room_for(n, k + spare)
        room.x[:], room.sure[:] = x, sure
        found = verdicts(x, sure, place, rule, spare)
        alike += len(found) == 1
        size = n, place, int(sure.sum())
        wrong += settled_by(room, size, rule, 0) and len(found) > 1
        if settled_by(room, size, rule, spare):
            (verdict,) = found
            settles[verdict] += 1
    # The bounds are not empty words: usual are a quarter or more of those that could be settled.
    assert min(settles.values()) > 3
    assert sum(settles.values()) > alike / 10
    # Bounds without room for those who leave would have been found out.
    assert (wrong > 0) == (spare > 0)


@settings(max_examples=EXAMPLES)
@given(
    st.integers(0, 2**32 - 1), st.integers(1, 6), st.sampled_from([3, 30, 3000]), st.integers(0, 2)
)
def test_ratios_are_within_their_bounds_in_every_context_of_a_box(
    seed: int, k: int, largest: int, spare: int
) -> None:
    """Those of the definition: every set of the uncertain rows, and whichever few rows leave."""
    from pcor._kernels import lof_near, lof_ratios

    numbers = np.random.default_rng(seed)
    certain, uncertain = int(numbers.integers(k + spare + 1, 3 * k + 4)), int(numbers.integers(5))
    n = certain + uncertain
    near = lof_near.room_for(n, k + spare)
    near.x[:] = np.sort(numbers.integers(0, largest, n)) * 0.1
    near.sure[:] = numbers.permutation(n) < certain
    place = int(numbers.choice(np.flatnonzero(near.sure)))
    candidates, theirs = lof_near.that_matter(near, n, place, k + spare)
    lof_near.narrowest(near, n, *theirs, k)
    lof_ratios.ratios_in_all(near, candidates, place, k, spare)
    bounds: list[np.ndarray] = []
    for upper in (False, True):
        lof_ratios.bound_ratios(near, place, candidates, theirs, k, spare, upper)
        bounds.append(near.ratios.copy())
    least, most = bounds
    open_rows, others = np.flatnonzero(~near.sure), [p for p in range(n) if p != place]
    departures = [*chain.from_iterable(combinations(others, size) for size in range(spare + 1))]
    if len(departures) > 40:
        departures = [departures[p] for p in numbers.choice(len(departures), 40)]
    for come, gone in product(range(1 << len(open_rows)), departures):
        covered = near.sure.copy()
        covered[open_rows] = [come >> number & 1 for number in range(len(open_rows))]
        covered[list(gone)] = False
        rows = np.flatnonzero(covered)
        densities, neighbours = naive.lof_densities(near.x[rows].tolist(), k, "lower")
        own = int(np.searchsorted(rows, place))
        for o in neighbours[own]:
            ratio = densities[o] / densities[own]
            assert candidates[0] <= rows[o] < candidates[1]
            # The twin rounds as well.
            assert least[rows[o]] * (1 - 1e-9) <= ratio <= most[rows[o]] * (1 + 1e-9)


_DISTANCE = st.integers(0, 8).map(lambda eighths: eighths / 8)


@settings(max_examples=EXAMPLES)
@given(_DISTANCE, _DISTANCE, _DISTANCE, _DISTANCE, st.sampled_from([0.25, 0.5, 1.0, 2.0, 4.0]))
def test_the_worst_of_a_row_is_that_of_every_distance_it_may_have(
    far: float, apart: float, one: float, other: float, times: float
) -> None:
    """Distances are eighths, so that where the difference bends is among those tried."""
    from pcor._kernels.lof_ratios import worst_of_both

    least, most = min(one, other), max(one, other)
    tried = np.arange(least, most + 1 / 16, 1 / 8)
    differences = np.maximum(far, tried) - times * np.maximum(apart, tried)
    assert worst_of_both(far, apart, times, least, most, 1.0) == differences.max()
    assert worst_of_both(far, apart, times, least, most, -1.0) == -differences.min()


@pytest.mark.parametrize(("k", "spare"), [(1, 0), (2, 1), (3, 2), (5, 1), (5, 3)])
def test_rows_that_are_dropped_change_no_factor_whoever_leaves(k: int, spare: int) -> None:
    """To the last bit, in every context below and with whichever few rows gone, drawn at random."""
    from pcor._kernels import subtree_walk
    from pcor._kernels.boxes import Steps
    from pcor._kernels.lof import window_parts, window_room
    from pcor._kernels.lof_near import that_matter

    numbers = np.random.default_rng(10 * k + spare)
    bits = np.array([1, 2, 4], dtype=np.uint64)
    steps, rule, room = Steps(bits, bits, bits), (k, 1.5, k + 1), window_room(k)
    dropped = compared = 0
    for _ in range(60):
        below, above = (np.sort(numbers.lognormal(0, 2, 6 * k + 12)) for _ in range(2))
        sides = [-below, above] if numbers.integers(2) else [-np.round(below), np.round(above)]
        needs = [numbers.choice([0, 0, 0, 1, 2, 4, 6], len(side)) for side in sides]
        needed = [np.array(some, dtype=np.uint64) for some in needs]
        rows = subtree_walk.SideRows(0.0, sides[0], needed[0], sides[1], needed[1])
        box = np.uint64(0), np.uint64(7)
        walk = subtree_walk.begin(rows, steps, rule, spare, box, 1)
        n, place, certain = subtree_walk.gather(walk, 0, box[1])
        if certain <= k + spare:
            continue
        x, required = walk.near.x[:n].copy(), walk.near.required[:n].copy()
        _, theirs = that_matter(walk.near, n, place, k + spare)
        left, moved = subtree_walk.trim(walk, 0, n, place, theirs, box[1])
        dropped += left < n
        low = place - moved
        assert np.array_equal(walk.near.x[:left], x[low : low + left])
        for context in range(8):
            there = required & ~np.uint64(context) == 0
            others = np.flatnonzero(there & (np.arange(n) != place))
            there[numbers.choice(others, numbers.integers(spare + 1), replace=False)] = False
            kept = there[low : low + left]
            whole, part = x[there], x[low : low + left][kept]
            at = int(there[:place].sum())
            expected = window_parts(whole, len(whole), at, rule, room)
            assert window_parts(part, len(part), int(kept[:moved].sum()), rule, room) == expected
            compared += 1
    assert dropped > 10
    assert compared > 100
