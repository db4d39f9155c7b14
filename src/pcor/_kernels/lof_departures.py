"""Which rows, or people with all of their rows, change whether V is an outlier by LOF by leaving.

The leaves of a walk (``pcor._kernels.lof_leaves``) give each distinct window once, with as many
rows more on each side than LOF looks at as leave at once: without those it is still whole. Most
windows are so far from the threshold that no single row matters (``pcor._kernels.lof_bounds``); in
the others all single rows are weighed at once (``pcor._kernels.lof_removal``). Where somebody has
several rows in a window the plain kernel judges it without them: verdicts agree to the last bit.
Twin: ``pcor.audit.rejudged``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pcor._kernels import kernel, maker
from pcor._kernels.boxes import Steps
from pcor._kernels.lof import window_verdict
from pcor._kernels.lof_bounds import Workspace, may_change, new_room
from pcor._kernels.lof_leaves import (
    Flips,
    all_found,
    new_gains,
    next_leaf,
    no_flips,
    note,
    with_room,
)
from pcor._kernels.lof_removal import verdict_without, weigh_removals
from pcor._kernels.subtree_walk import (
    SideRows,
    SubtreeWalk,
    begin,
    depths_of,
    population,
    window,
    window_numbers,
)

Array = Any


@maker
def departure_flips(
    rows: SideRows,
    steps: Steps,
    rule: tuple[int, float, int],
    box: tuple[int, int],
    numbers: tuple[Array, Array],
    most: int,
) -> tuple[Array, Array, Array, Array, Array]:
    """Return the leaves of a box where a departure changes the verdict, and whose.

    Args:
        rows: those near V.
        steps: of the space.
        rule: k, the threshold, and the smallest population (more than k).
        box: its base and its open steps.
        numbers: for the rows of each side that of the person, -1 where the row stays. If one row
            leaves at a time, rows that are alike have one number.
        most: how many rows leave at once, at most.

    Returns:
        For each leaf: the steps that are in, those that are open, and whether V was an outlier.
        For each change: the place of its leaf, and the number of who leaves.
    """
    walk = begin(rows, steps, rule, most, box, depths_of(steps))
    room = new_room(2 * walk.cap + 1, rule[0])
    flips, found, gains = np.empty(len(room.x), np.int64), no_flips(len(room.x)), new_gains()
    rows_of = np.zeros(_numbered(numbers), np.int64)
    while not _all_leaves(walk, room, gains, numbers, rows_of, flips, found):
        found = with_room(found)
    listed: tuple[Array, Array, Array, Array, Array] = all_found(found)
    return listed


@kernel
def _all_leaves(
    walk: SubtreeWalk,
    room: Workspace,
    gains: Array,
    numbers: tuple[Array, Array],
    rows_of: Array,
    flips: Array,
    found: Flips,
) -> bool:
    """Go on from leaf to leaf while there is room for what is found; tell whether that was all."""
    (k, _, smallest), most = walk.rule, walk.spare
    while next_leaf(walk, gains):
        depth = walk.depth[0]
        spare = population(walk, depth) - smallest
        # The population is below the smallest already: V is no outlier, and stays none.
        if spare < 0:
            continue
        # Where somebody may have too many rows to be spared, all rows of the context are looked at.
        n, place = window(walk, depth, 2 * k + most if spare >= most else walk.cap, room.x)
        singly = spare > 0 and may_change(room, n, place, walk.rule)
        if most == 1 and spare and not singly:
            continue
        window_numbers(walk, depth, n, place, numbers, room.numbers)
        several = _count_rows(room.numbers, n, rows_of)
        outlier, count = False, 0
        if several or singly or spare < most:
            outlier, count = _flipping(room, n, place, walk, spare, singly, rows_of, flips)
        for j in range(n):
            rows_of[room.numbers[j]] = 0
        if count and not note(found, walk, outlier, flips, count):
            return False
    return True


@kernel
def _numbered(numbers: tuple[Array, Array]) -> int:
    """Return how many numbers there are; and room for the rows that stay, as the last."""
    most = 0
    for side in numbers:
        for number in side:
            most = max(most, number + 1)
    return most + 1


@kernel
def _count_rows(numbers: Array, n: int, rows_of: Array) -> bool:
    """Count the rows of each person in a window; tell whether somebody has several."""
    several = False
    for j in range(n):
        number = numbers[j]
        rows_of[number] += 1
        several |= number >= 0 and rows_of[number] > 1
    return several


@kernel
def _flipping(
    room: Workspace,
    n: int,
    place: int,
    walk: SubtreeWalk,
    spare: int,
    singly: bool,
    rows_of: Array,
    flips: Array,
) -> tuple[bool, int]:
    """Tell whether V is an outlier in a window, and list who changes that by leaving.

    Returns the verdict and how many are listed. ``singly`` says whether one row alone can change
    it; ``rows_of`` has how many rows of each number are in the window.
    """
    rule = walk.rule
    outlier = window_verdict(room.x, n, place, rule, room.plain)
    low = high = 0
    if singly:
        low, high = weigh_removals(room, place, rule)
    count = 0
    for j in range(n):
        number = room.numbers[j]
        if number < 0 or rows_of[number] == 0:
            continue
        rows = rows_of[number] if walk.spare > 1 else 1
        rows_of[number] = 0  # all of them are looked at here
        if rows > spare:
            after = False
        elif rows > 1:
            after = _without_person(room, n, place, number, rule)
        elif not low <= j < high:
            after = outlier
        else:
            after = verdict_without(room, n, place, j, rule) if room.unsure[j] else room.after[j]
        if after != outlier:
            flips[count] = number
            count += 1
    return outlier, count


@kernel
def _without_person(
    room: Workspace, n: int, place: int, number: int, rule: tuple[int, float, int]
) -> bool:
    """Judge a window without the rows of one person."""
    kept = moved = 0
    for j in range(n):
        if room.numbers[j] != number:
            if j == place:
                moved = kept
            room.plain_x[kept] = room.x[j]
            kept += 1
    return bool(window_verdict(room.plain_x, kept, moved, rule, room.plain))
