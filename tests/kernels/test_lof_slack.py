"""Boxes of contexts that no removal matters in: every context below, with and without each row."""

from __future__ import annotations

from itertools import chain, combinations
from typing import Any

import numpy as np
import pytest

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


def settled_by(room: Any, size: tuple[int, int, int], rule: Rule, spare: int, one: bool) -> bool:
    """Tell whether bounds show a verdict on rows that are filled in."""
    from pcor._kernels.lof_near import that_matter
    from pcor._kernels.lof_slack import rows_settled

    n, place, sure = size
    k = rule[0]
    if sure <= k + spare:  # some distance has no bound
        return False
    some = that_matter(room, n, place, k + spare)
    return bool(rows_settled(room, size, some, rule, spare, one))


@pytest.mark.parametrize(("k", "spare"), [(1, 1), (2, 1), (3, 1), (2, 2), (3, 0)])
def test_a_settled_box_has_one_verdict_whoever_leaves(k: int, spare: int) -> None:
    from pcor._kernels.lof_near import room_for

    numbers = np.random.default_rng(10 * k + spare)
    settled, alike, wrong = {True: 0, False: 0}, 0, 0
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
        wrong += any(
            settled_by(room, size, rule, 0, one) and found != {one} for one in (True, False)
        )
        for verdict in (True, False):
            if settled_by(room, size, rule, spare, verdict):
                assert found == {verdict}
                settled[verdict] += 1
    # The bounds are not empty words: usual are a quarter or more of those that could be settled.
    assert min(settled.values()) > 3
    assert sum(settled.values()) > alike / 10
    # Bounds without room for those who leave would have been found out.
    assert (wrong > 0) == (spare > 0)
