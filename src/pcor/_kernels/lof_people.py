"""Which people, leaving with all of their rows, change whether V is an outlier by LOF.

The leaves of a walk (``pcor._kernels.lof_leaves``) give each distinct window once, with as many
rows more on each side than LOF looks at as one person has at most: without any one person the
window is still whole. Somebody with one row in it is judged as ``pcor._kernels.lof_removal`` does,
somebody with several by the plain kernel on the window without them: verdicts agree to the last
bit. Twin: ``pcor.audit.rejudged``.
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
    full,
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
    population,
    window,
    window_numbers,
)

Array = Any


@maker
def people_flips(
    rows: SideRows,
    steps: Steps,
    rule: tuple[int, float, int],
    box: tuple[int, int],
    numbers: tuple[Array, Array],
    most: int,
) -> tuple[Array, Array, Array, Array, Array]:
    """Return the leaves of a box where a person changes the verdict, and who does.

    Args:
        rows: those near V.
        steps: of the space.
        rule: k, the threshold, and the smallest population (more than k).
        box: its base and its open steps.
        numbers: for the rows of each side that of the person, -1 where the row stays.
        most: how many rows one person has at most.

    Returns:
        For each leaf: the steps that are in, those that are open, and whether V was an outlier.
        For each change: the place of its leaf, and the number of the person who leaves.
    """
    walk = begin(rows, steps, rule, most, box, len(steps.lower) + 2)
    room = new_room(2 * walk.cap + 1, rule[0])
    flips, found, gains = np.empty(len(room.x), np.int64), no_flips(len(room.x)), new_gains()
    rows_of = np.zeros(_people(numbers), np.int64)
    while not _all_leaves(walk, room, gains, numbers, most, rows_of, flips, found):
        found = with_room(found)
    listed: tuple[Array, Array, Array, Array, Array] = all_found(found)
    return listed


@kernel
def _all_leaves(
    walk: SubtreeWalk,
    room: Workspace,
    gains: Array,
    numbers: tuple[Array, Array],
    most: int,
    rows_of: Array,
    flips: Array,
    found: Flips,
) -> bool:
    """Go on from leaf to leaf while there is room for what is found; tell whether that was all."""
    k, _, smallest = walk.rule
    while next_leaf(walk, gains, True):
        depth = walk.depth[0]
        spare = population(walk, depth) - smallest
        # The population is below the smallest already: V is no outlier, and stays none.
        if spare < 0:
            continue
        # Where somebody may have too many rows to be spared, all rows of the context are looked at.
        n, place = window(walk, depth, 2 * k + most if spare >= most else walk.cap, room.x)
        window_numbers(walk, depth, n, place, numbers, room.numbers)
        several = _count_rows(room.numbers, n, rows_of)
        singly = spare > 0 and may_change(room, n, place, walk.rule)
        outlier, count = False, 0
        if several or singly or spare < most:
            outlier, count = _flipping(room, n, place, walk.rule, spare, singly, rows_of, flips)
        for j in range(n):
            rows_of[room.numbers[j]] = 0
        if count:
            note(found, walk, outlier, flips, count)
            if full(found):
                return False
    return True


@kernel
def _people(numbers: tuple[Array, Array]) -> int:
    """Return how many people there are; and room for those who stay, who count as the last."""
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
    rule: tuple[int, float, int],
    spare: int,
    singly: bool,
    rows_of: Array,
    flips: Array,
) -> tuple[bool, int]:
    """Tell whether V is an outlier in a window, and list the people who change that by leaving.

    Returns the verdict and how many are listed. ``singly`` says whether one row alone can change
    it; ``rows_of`` has how many rows each person has in the window.
    """
    outlier = window_verdict(room.x, n, place, rule, room.plain)
    low = high = 0
    if singly:
        low, high = weigh_removals(room, place, rule)
    count = 0
    for j in range(n):
        number = room.numbers[j]
        if number < 0 or rows_of[number] == 0:
            continue
        rows, rows_of[number] = rows_of[number], 0  # all of theirs are looked at here
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
