"""What contexts weigh, by looking up half of the answer.

A context weighs what the cells weigh that need none of the steps that it lacks. The steps are
halved: for every set of the inner ones the cells that need no other inner step are summed, by what
they need of the outer ones, in one zeta transform (Yates 1937; Knuth, TAOCP 4A, 7.1.3). A context
is then one row of this table, summed over the few groups of cells whose outer steps it has, instead
of a pass over all cells. Twin: summing over the cells.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from pcor._kernels import kernel, maker

Array = Any


class TotalTable(NamedTuple):
    """The weights of contexts.

    Attributes:
        inner: the inner steps, one bit each.
        outer: what each group of cells needs of the outer steps.
        sums: for every set of the inner steps what each group weighs, shape (sets, groups).
    """

    inner: Array
    outer: Array
    sums: Array


@maker
def total_table(
    inner: Array, outer: Array, required: Array, groups: Array, weights: Array
) -> TotalTable:
    """Return the table of some cells, given the steps that each needs, its group and its weight."""
    sums = np.zeros((1 << len(inner), len(outer)), np.int64)
    for cell in range(len(required)):
        sums[_inner_set(inner, required[cell]), groups[cell]] += weights[cell]
    for place in range(len(inner)):
        bit = 1 << place
        for chosen in range(len(sums)):
            if chosen & bit:
                sums[chosen] += sums[chosen ^ bit]
    return TotalTable(inner, outer, sums)


@kernel
def _inner_set(inner: Array, context: int) -> int:
    """Return which inner steps a context has, as the number of a set."""
    chosen = 0
    for place in range(len(inner)):
        if context & inner[place]:
            chosen |= 1 << place
    return chosen


@kernel
def total(table: TotalTable, context: int) -> int:
    """Return what a context weighs."""
    sums, weight, lacks = table.sums[_inner_set(table.inner, context)], np.int64(0), ~context
    for group in range(len(sums)):
        # Added or not without a branch, so that several are added with one instruction.
        weight += sums[group] if not table.outer[group] & lacks else np.int64(0)
    return int(weight)
