"""Which people, leaving with all of their rows, change whether V is an outlier by LOF.

The walk of ``pcor._kernels.lof_walk`` gives each distinct window once, with as many rows more on
each side than LOF looks at as one person has at most: without any one person the window is still
whole. Somebody with one row in it is judged as ``pcor._kernels.lof_removal`` does, somebody with
several by the plain kernel on the window without them: verdicts agree to the last bit. Twin:
``pcor.audit.rejudged``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pcor._kernels import kernel, maker
from pcor._kernels.lof import window_verdict
from pcor._kernels.lof_bounds import Workspace, may_change, new_room
from pcor._kernels.lof_removal import verdict_without, weigh_removals
from pcor._kernels.lof_walk import (
    Sides,
    all_found,
    begin,
    leaf_numbers,
    leaf_population,
    leaf_window,
    next_leaf,
    no_flips,
    with_leaf,
)

Array = Any


@maker
def people_flips(
    sides: Sides, free: int, split: int, part: int, rule: tuple[int, float, int], most: int
) -> tuple[Array, Array, Array, Array, Array]:
    """Return the leaves of a part of the walk where a person changes the verdict, and who does.

    Args:
        sides: the rows; the number of a row is that of its person, -1 where it stays.
        free: how many free values there are.
        split: how many of them are decided by ``part``.
        part: the bits that decide them.
        rule: k, the threshold, and the smallest population (more than k).
        most: how many rows one person has at most.

    Returns:
        For each leaf: the values that are in, those that are open, and whether V was an outlier.
        For each change: the place of its leaf, and the number of the person who leaves.
    """
    k, _, smallest = rule
    # Enough rows to see whether all of somebody's can be spared.
    cap = max(2 * k + most, smallest + most - 1)
    walk = begin(sides, free, split, part, cap)
    room = new_room(2 * cap + 1, k)
    flips, found = np.empty(2 * cap + 1, np.int64), no_flips()
    rows_of = np.zeros(_people(sides), np.int64)
    while next_leaf(walk):
        spare = leaf_population(walk) - smallest
        # The population is below the smallest already: V is no outlier, and stays none.
        if spare < 0:
            continue
        # Where somebody may have too many rows to be spared, all rows of the context are looked at.
        n, place = leaf_window(walk, sides, 2 * k + most if spare >= most else cap, room.x)
        leaf_numbers(walk, sides, n, place, room.numbers)
        several = _count_rows(room.numbers, n, rows_of)
        singly = spare > 0 and may_change(room, n, place, rule)
        outlier, count = False, 0
        if several or singly or spare < most:
            outlier, count = _flipping(room, n, place, rule, spare, singly, rows_of, flips)
        rows_of[room.numbers[:n]] = 0
        if count:
            found = with_leaf(found, walk, outlier, flips[:count])
    listed: tuple[Array, Array, Array, Array, Array] = all_found(found)
    return listed


@kernel
def _people(sides: Sides) -> int:
    """Return how many people there are; and room for those who stay, who count as the last."""
    most = 0
    for numbers in (sides.numbers_below, sides.numbers_above):
        for number in numbers:
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
