"""The nearest rows of each cell on each side of a metric, with nothing but GROUP BY.

Private: everything. An engine without a "nearest n" aggregate counts the rows of each cell in
layers. The first layers (``Layers``) come with the cells themselves, are the same for all records,
and show from where to where to read: in the tails, where outliers are, a layer holds few rows.
Where it holds many, rows are counted again by their distance from the record's metric, and where
they crowd together far away from it, by their distance from the nearest of the crowd. So a crowd
costs one more pass and no more rows. A pile of equal values is one pair, however high; a cell that
holds most of the rows is counted like any other, on each partition first. Where the engine marks
its rows, one more record number (-1) stands for all rows of every cell, so the same pass returns
the sums of their marks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pcor.rows.queries.queries import Floats, Integers, Pairs, Queries, column, named, select

# At most this many rows of a cell are read on one side of a metric.
_FEW = 512

# No metric is as far out as this (encoding.LARGEST_METRIC), so nothing lies beyond it.
_NOWHERE = 1e300

# Stands in the place of a record for all rows.
_NOBODY = -1

_Sides = NDArray[np.bool_]
RowsCheck = Callable[[pa.Table], None]


@dataclass(frozen=True, repr=False)
class Layers:
    """The rows of each cell, counted in ranges of the metric that do not overlap.

    Attributes:
        cells: the cell of each layer, rising.
        counts: its rows.
        lowest: the least of their metrics, rising in each cell.
        highest: the largest.
    """

    cells: Integers
    counts: Integers
    lowest: Floats
    highest: Floats

    @classmethod
    def sorted(cls, cells: Integers, counts: Integers, lowest: Floats, highest: Floats) -> Layers:
        """Return layers that come in any order."""
        order = np.lexsort((lowest, cells))
        return cls(cells[order], counts[order], lowest[order], highest[order])

    def bounds(self, value: float, wanted: int, cells: int) -> tuple[Floats, Integers]:
        """Return from where to where the wanted rows of each cell lie, and how many pairs that is.

        Both of shape (2, cells): below the value, and from it on. Where a side has fewer rows than
        wanted, all of them are taken in.
        """
        below, above = self.highest < value, self.lowest >= value
        split = ~(below | above)  # rows on either side, nobody knows how many
        pairs = np.where(self.lowest == self.highest, 1, self.counts)
        ends, sizes = np.empty((2, cells)), np.empty((2, cells), dtype=np.int64)
        for side, (inside, outward) in enumerate(((below, -1), (above, 1))):
            order = slice(None, None, outward)
            rows = _running(self.cells[order], (self.counts * inside)[order])[order]
            enough = inside & (rows >= wanted) & (rows - self.counts < wanted)
            ends[side] = self._ends(side, cells)
            ends[side, self.cells[enough]] = (self.lowest, self.highest)[side][enough]
            end = ends[side, self.cells]
            taken = inside & ((self.lowest >= end) if side == 0 else (self.highest <= end))
            sizes[side] = np.bincount(self.cells, pairs * (taken | split), cells)
        return ends, sizes

    def _ends(self, side: int, cells: int) -> Floats:
        """Return the least or the largest metric of each cell."""
        ends = np.full(cells, (np.inf, -np.inf)[side])
        (np.minimum, np.maximum)[side].at(ends, self.cells, (self.lowest, self.highest)[side])
        return ends


def _running(cells: Integers, counts: Integers) -> Integers:
    """Return running sums that begin anew with each cell; equal cells stand together."""
    total = np.cumsum(counts)
    new = np.flatnonzero(np.concatenate([[True], cells[1:] != cells[:-1]]))
    before = np.concatenate([[0], total])[new]
    sizes = np.diff(np.append(new, len(cells)))
    running: Integers = total - np.repeat(before, sizes)
    return running


@dataclass(frozen=True, repr=False)
class CountStep:
    """What to count next. One entry per record and cell with an open side.

    Attributes:
        records: the record.
        cells: the cell.
        anchors: rows at most the first are counted as below, at least the second as above; both
            outward from there. Shape (2, entries).
        have: how many nearer rows were counted before, on each side.
    """

    records: Integers
    cells: Integers
    anchors: Floats
    have: Integers


def nearest_by_layers(
    queries: Queries,
    codes: Integers,
    layers: Layers,
    values: Floats,
    wanted: int,
    check: RowsCheck,
) -> list[Pairs]:
    """Return, for each metric, the nearest rows of each cell on each side; all in common passes.

    Args:
        queries: to the engine.
        codes: of the cells.
        layers: of the cells.
        values: the metrics.
        wanted: how many rows on each side, where there are as many.
        check: refuses lines with the marks of other rows.
    """
    looked = [layers.bounds(value, wanted, len(codes)) for value in values.tolist()]
    bounds = np.stack([ends for ends, _ in looked], axis=1)
    crowded = np.stack([sizes for _, sizes in looked], axis=1) > _FEW
    step = _first_step(layers, values, crowded)
    while step is not None:
        step = _next_step(bounds, _distances(queries, codes, step, wanted, check))
    return _within(queries, codes, bounds, check)


def _first_step(layers: Layers, values: Floats, crowded: _Sides) -> CountStep | None:
    """Anchor each crowded side.

    At the metric itself; or at the end of the cell where all of it lies on one side, from where
    distances tell more.
    """
    records, cells = np.nonzero(crowded.any(axis=0))
    if len(cells) == 0:
        return None
    lowest, highest = (layers._ends(side, crowded.shape[2])[cells] for side in range(2))
    below = np.minimum(np.nextafter(values[records], -np.inf), highest)
    above = np.maximum(values[records], lowest)
    anchors = np.where(crowded[:, records, cells], [below, above], [[-_NOWHERE], [_NOWHERE]])
    return CountStep(records, cells, anchors, np.zeros((2, len(cells)), dtype=np.int64))


def _next_step(bounds: Floats, layers: dict[str, NDArray[Any]]) -> CountStep | None:
    """Narrow the bounds to the layers that hold the wanted rows; return what is left to count."""
    record, cell, side = layers["r"], layers["cell"], layers["side"]
    # Outward from V the layer ends with its lowest row below, with its highest above.
    outer = np.where(side == 0, layers["lowest"], layers["highest"])
    inner = np.where(side == 0, layers["highest"], layers["lowest"])
    bounds[side, record, cell] = outer
    crowded = np.flatnonzero((layers["n"] > _FEW) & (inner != outer))
    if len(crowded) == 0:
        return None
    entries = np.array([record[crowded], cell[crowded]])
    (records, cells), place = np.unique(entries, axis=1, return_inverse=True)
    anchors = np.broadcast_to([[-_NOWHERE], [_NOWHERE]], (2, len(cells))).copy()
    have = np.zeros((2, len(cells)), dtype=np.int64)
    anchors[side[crowded], place.reshape(-1)] = inner[crowded]
    nearer = layers["have"] + layers["upto"] - layers["n"]
    have[side[crowded], place.reshape(-1)] = nearer[crowded]
    return CountStep(records, cells, anchors, have)


def _distances(
    queries: Queries, codes: Integers, step: CountStep, wanted: int, check: RowsCheck
) -> dict[str, NDArray[Any]]:
    """Return, for each record, cell and side, the layer of distance that holds the wanted row.

    A side with fewer rows than wanted has none.
    """
    listed = (step.records, *step.anchors, *step.have)
    names = ("r", "a0", "a1", "h0", "h1")
    everybody = (_NOBODY, _NOWHERE, _NOWHERE, 0, 0)  # all rows are below, in one layer
    anchors = _list(queries, codes, "pcor_anchors", names, listed, step.cells, everybody)
    cells = ", ".join(queries.names)
    rows = [
        "a.r AS r",
        *(f"pcor_coded.{name} AS {name}" for name in queries.names),
        *(f"pcor_coded.{name} AS {name}" for name in ("x", *queries.marks)),
        "CASE WHEN pcor_coded.x <= a.a0 THEN 0 ELSE 1 END AS side",
        "CASE WHEN pcor_coded.x <= a.a0 THEN a.h0 ELSE a.h1 END AS have",
        "CASE WHEN pcor_coded.x <= a.a0 THEN a.a0 - pcor_coded.x ELSE pcor_coded.x - a.a1 END AS d",
    ]
    by = f"r, {cells}, side, have"
    layer = "CASE WHEN d > 0 THEN CAST(FLOOR(6 * LN(d)) AS INT) ELSE -100000 END AS layer"
    up_to = f"SUM(n) OVER (PARTITION BY r, {cells}, side ORDER BY layer) AS upto"
    joined = f"pcor_coded JOIN pcor_anchors a ON {_same_cell(queries, 'a')}"
    found = queries.ask(
        f"SELECT * FROM pcor_summed WHERE r = {_NOBODY} "
        f"OR (have + upto >= {wanted} AND have + upto - n < {wanted})",
        anchors,
        *queries.coded(),
        select("pcor_apart", rows, f"{joined} WHERE pcor_coded.x <= a.a0 OR pcor_coded.x >= a.a1"),
        select("pcor_layered", [by, "x", *queries.marks, layer], "pcor_apart"),
        select(
            "pcor_counted",
            [
                *[by, "layer", "COUNT(*) AS n", "MIN(x) AS lowest", "MAX(x) AS highest"],
                *named(queries.mark_sums.values(), queries.marks),
            ],
            f"pcor_layered GROUP BY {by}, layer",
        ),
        select(
            "pcor_summed", [by, "n", "lowest", "highest", *queries.marks, up_to], "pcor_counted"
        ),
    )
    found = _checked(queries, found, check)
    layers = {name: column(found, name, np.int64) for name in ("r", "side", "n", "have", "upto")}
    layers |= {name: column(found, name, np.float64) for name in ("lowest", "highest")}
    return layers | {"cell": queries.cell_numbers(found, codes).astype(np.int64)}


def _within(queries: Queries, codes: Integers, bounds: Floats, check: RowsCheck) -> list[Pairs]:
    """Return the pairs of each record between its bounds in each cell."""
    record, cell = np.divmod(np.arange(bounds[0].size), len(codes))
    listed = (record, *bounds.reshape(2, -1))
    by = ["r", *queries.names, "x"]
    rows = [
        "b.r AS r",
        *(f"pcor_coded.{name} AS {name}" for name in (*queries.names, *queries.marks)),
        f"CASE WHEN b.r = {_NOBODY} THEN 0 ELSE pcor_coded.x END AS x",
    ]
    joined = f"pcor_coded JOIN pcor_bounds b ON {_same_cell(queries, 'b')}"
    near = "pcor_coded.x >= b.low AND pcor_coded.x <= b.high"
    if not queries.marks:
        # First what needs no join: most rows are far from all of it.
        ends = queries.literal(bounds[0].min()), queries.literal(bounds[1].max())
        near = f"pcor_coded.x >= {ends[0]} AND pcor_coded.x <= {ends[1]} AND {near}"
    asked = queries.counted
    everybody = (_NOBODY, -_NOWHERE, _NOWHERE)
    found = queries.ask(
        f"SELECT {', '.join([*by, *named(asked.values(), asked)])} FROM pcor_close "
        f"GROUP BY {', '.join(by)}",
        _list(queries, codes, "pcor_bounds", ("r", "low", "high"), listed, cell, everybody),
        *queries.coded(),
        select("pcor_close", rows, f"{joined} WHERE {near}"),
    )
    found = _checked(queries, found, check)
    of_record = column(found, "r", np.int64)
    return [
        queries.pairs(found.filter(pa.array(of_record == record)), codes)
        for record in range(bounds.shape[1])
    ]


def _checked(queries: Queries, found: pa.Table, check: RowsCheck) -> pa.Table:
    """Check the lines that stand for all rows, and return the others."""
    if not queries.marks:
        return found
    of_nobody = column(found, "r", np.int64) == _NOBODY
    check(found.filter(pa.array(of_nobody)))
    return found.filter(pa.array(~of_nobody))


def _list(
    queries: Queries,
    codes: Integers,
    name: str,
    columns: Sequence[str],
    content: Sequence[NDArray[Any]],
    cells: Integers,
    everybody: tuple[float, ...],
) -> str:
    """Write a list of cells with something about each, for WITH.

    Where rows are marked, also every cell with ``everybody``.
    """
    parts = (part.tolist() for part in (*content, codes[cells]))
    rows = [(*row, *code) for *row, code in zip(*parts, strict=True)]
    if queries.marks:
        rows += [(*everybody, *code) for code in codes.tolist()]
    return queries.engine.dialect.values(name, (*columns, *queries.names), rows)


def _same_cell(queries: Queries, name: str) -> str:
    return " AND ".join(f"pcor_coded.{code} = {name}.{code}" for code in queries.names)
