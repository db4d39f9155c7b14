"""What a batch of rows adds to what is kept of each cell: counts, sums and the nearest metrics.

Rows come as two columns, the number of their cell and their metric, in any order. Twins:
``tests.helpers.naive.grid_point`` and ``nearest_metrics``, with all rows at once.
"""

from __future__ import annotations

import math
from typing import Any

from pcor._kernels import kernel

Array = Any


@kernel
def add_sums(cells: Array, numbers: Array, sums: Array) -> None:
    """Add a whole number of each row to the sum of its cell."""
    for row in range(len(cells)):
        sums[cells[row]] += numbers[row]


@kernel
def count_between(cells: Array, metrics: Array, low: float, high: float, counts: Array) -> None:
    """Count the rows of each cell in a closed range."""
    for row in range(len(cells)):
        if low <= metrics[row] <= high:
            counts[cells[row]] += 1


@kernel
def count_points(
    cells: Array, metrics: Array, low: float, high: float, steps_per_unit: float, counts: Array
) -> None:
    """Count the rows of each cell that belong to each point of a grid.

    The operations are those of ``MetricGrid.places``, in that order.
    """
    last = counts.shape[1] - 1
    for row in range(len(cells)):
        metric = metrics[row]
        if metric >= high:
            point = last
        elif metric <= low:
            point = 0
        else:
            point = min(last, math.floor((metric - low) * steps_per_unit + 0.5))
        counts[cells[row], point] += 1


@kernel
def keep_nearest(cells: Array, metrics: Array, value: float, below: Array, above: Array) -> None:
    """Keep the rows of each cell nearest to a metric: below it, and from it on.

    Each line of ``below`` falls and each of ``above`` rises. Places that are still free hold
    an infinite number, which any row takes the place of.
    """
    for row in range(len(cells)):
        cell, metric = cells[row], metrics[row]
        place = below.shape[1] - 1
        if metric < value:
            if metric > below[cell, place]:
                while place > 0 and metric > below[cell, place - 1]:
                    below[cell, place] = below[cell, place - 1]
                    place -= 1
                below[cell, place] = metric
        elif metric < above[cell, place]:
            while place > 0 and metric < above[cell, place - 1]:
                above[cell, place] = above[cell, place - 1]
                place -= 1
            above[cell, place] = metric
