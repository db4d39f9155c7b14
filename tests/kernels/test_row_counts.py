"""Rows counted in batches: the same as all of them at once, whatever the batches."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pcor._kernels import row_counts
from pcor.public.grid import MetricGrid
from tests.helpers import naive

CELLS, WANTED = 3, 4

metrics = st.integers(-30, 130).map(lambda tenths: tenths / 10) | st.floats(-1e100, 1e100)
rows = st.lists(st.tuples(st.integers(0, CELLS - 1), metrics), max_size=60)
grids = st.sampled_from([MetricGrid(0, 10, 0.1), MetricGrid(-2, 11, 1), MetricGrid(0.3, 0.9, 0.3)])


@given(rows, grids, metrics, st.tuples(metrics, metrics), st.integers(1, 20))
def test_batches_add_up_to_what_plain_loops_count(
    listed: list[tuple[int, float]],
    grid: MetricGrid,
    value: float,
    ends: tuple[float, float],
    size: int,
) -> None:
    cell = np.array([cell for cell, _ in listed], dtype=np.int32)
    metric = np.array([metric for _, metric in listed], dtype=float)
    number = np.arange(len(listed), dtype=np.int64)
    sums, counts = np.zeros((2, CELLS), dtype=np.int64)
    points = np.zeros((CELLS, grid.size), dtype=np.int64)
    below, above = np.full((CELLS, WANTED), -np.inf), np.full((CELLS, WANTED), np.inf)
    scale = float(grid.low), float(grid.high), grid.steps_per_unit
    for first in range(0, len(listed), size):
        batch = slice(first, first + size)
        row_counts.add_sums(cell[batch], number[batch], sums)
        row_counts.count_between(cell[batch], metric[batch], *ends, counts)
        row_counts.count_points(cell[batch], metric[batch], *scale, points)
        row_counts.keep_nearest(cell[batch], metric[batch], value, below, above)
    assert (
        points.sum(axis=0).tolist()
        == np.bincount(grid.places(metric), minlength=grid.size).tolist()
    )
    for place in range(CELLS):
        own = [metric for cell, metric in listed if cell == place]
        assert sums[place] == sum(n for n, (cell, _) in enumerate(listed) if cell == place)
        assert counts[place] == sum(ends[0] <= metric <= ends[1] for metric in own)
        expected = [naive.grid_point(metric, *scale, grid.size - 1) for metric in own]
        assert points[place].tolist() == [expected.count(point) for point in range(grid.size)]
        kept = [line[place][np.isfinite(line[place])].tolist() for line in (below, above)]
        assert kept == list(naive.nearest_metrics(own, value, WANTED))
