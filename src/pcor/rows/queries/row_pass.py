"""One pass over encoded rows that counts all that a release and its facts need of each cell.

Private: everything. An engine that runs in this process may hand over its rows in small batches.
Each is counted as it comes, into arrays whose size the schema bounds, and is gone: what is kept is
what the engine's aggregates would have told. Counting each cell's rows at each point of a grid is
the one question for which they are slow: as many groups as cells times points do not fit a
processor's cache as what they would have to be, one array.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pcor.public.grid import MetricGrid
from pcor.rows.cells import Range
from pcor.rows.engines.base import rows_changed
from pcor.rows.queries.queries import Floats, Integers, Pairs, Queries

# At most so many numbers are kept of all cells together: 128 MiB.
MOST_KEPT = 1 << 24


@dataclass(frozen=True, repr=False)
class RowPass:
    """What one pass has counted, for every combination of attribute values.

    Attributes:
        sizes: how many values each attribute has; a combination's number is its place among all.
        marks: the sums of the marks of its rows, shape (marks, combinations).
        points: how many of its rows belong to each point of the grid, one line for each.
        counts: how many are in each range, shape (ranges, combinations).
        below: for each metric asked about, the nearest below it; one line for each combination.
        above: and those from it on. Free places are infinite.
    """

    sizes: tuple[int, ...]
    marks: Integers
    points: Integers
    counts: Integers
    below: Floats
    above: Floats

    @classmethod
    def empty(
        cls, queries: Queries, grid: MetricGrid, ranges: int, values: int, wanted: int
    ) -> RowPass | None:
        """Return where to count; ``None`` where it would be too large, by public numbers alone."""
        sizes = tuple(len(attribute.values) for attribute in queries.schema.attributes)
        cells = math.prod(sizes)
        if cells * (len(queries.marks) + grid.size + ranges + 2 * values * wanted) > MOST_KEPT:
            return None
        return cls(
            sizes,
            np.zeros((len(queries.marks), cells), dtype=np.int64),
            np.zeros((cells, grid.size), dtype=np.int64),
            np.zeros((ranges, cells), dtype=np.int64),
            np.full((values, cells, wanted), -np.inf),
            np.full((values, cells, wanted), np.inf),
        )

    def read(
        self,
        queries: Queries,
        grid: MetricGrid,
        ranges: Sequence[Range],
        values: Sequence[float],
    ) -> None:
        """Count all rows."""
        from pcor._kernels import row_counts

        number = queries.names[0]
        for name, size in zip(queries.names[1:], self.sizes[1:], strict=True):
            number = f"({number}) * {size} + {name}"
        selected = ", ".join([f"CAST({number} AS INTEGER) AS cell", "x", *queries.marks])
        low, high = float(grid.low), float(grid.high)
        for batch in queries.batches(f"SELECT {selected} FROM pcor_coded {queries.where()}"):
            if any(column.null_count for column in batch.columns):
                raise rows_changed()  # none was missing when the cells were counted
            cells, metrics, *marks = (column.to_numpy() for column in batch.columns)
            if not np.isfinite(metrics).all():
                raise rows_changed()  # nor was any no number; kernels check no place of an array
            for column, sums in zip(marks, self.marks, strict=True):
                row_counts.add_sums(cells, column, sums)
            row_counts.count_points(cells, metrics, low, high, grid.steps_per_unit, self.points)
            for ends, counts in zip(ranges, self.counts, strict=True):
                row_counts.count_between(cells, metrics, *ends, counts)
            for value, below, above in zip(values, self.below, self.above, strict=True):
                row_counts.keep_nearest(cells, metrics, value, below, above)

    def numbers(self, codes: Integers) -> Integers:
        """Return the numbers of the cells with these codes; refuse rows of any other cell."""
        found = np.asarray(np.ravel_multi_index(tuple(codes.T), self.sizes), dtype=np.int64)
        if self.points.sum() != self.points[found].sum():
            raise rows_changed()
        return found

    def on_grid(self, numbers: Integers) -> Pairs:
        """Return how many rows of each cell belong to each point, a place for a metric."""
        counts = self.points[numbers]
        cells, places = np.nonzero(counts)
        return Pairs(cells.astype(np.int32), places.astype(np.float64), counts[cells, places])

    def nearest(self, place: int, numbers: Integers) -> Pairs:
        """Return the nearest rows of each cell on each side of a metric, as pairs of one row."""
        kept = np.concatenate([self.below[place, numbers], self.above[place, numbers]], axis=1)
        cells, columns = np.nonzero(np.isfinite(kept))
        values: NDArray[np.float64] = kept[cells, columns]
        order = np.argsort(values, kind="stable")
        ones = np.ones(len(order), dtype=np.int64)
        return Pairs(cells[order].astype(np.int32), values[order], ones)
