"""RemoteCellTable: the cells of rows that stay in an engine.

Private: everything. Every cell is known here and none of the pairs. What a detector needs of the
pairs it says as a ``Window``; only that is read, into a small ``CellTable`` of its own. Whoever
asks for all pairs gets them up to a public limit, or a refusal that names it. So nothing can
mistake a part for the whole. Whether the limit holds is decided for the table as a whole: a refusal
says nothing of the record that is asked about.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields

import numpy as np
from numpy.typing import NDArray

from pcor.public.context import Words
from pcor.public.grid import MetricGrid
from pcor.public.schema import Schema
from pcor.public.window import Window
from pcor.rows.cell_table import CellTable
from pcor.rows.cells import Cells, Distribution, Range, Rule, cell_bits
from pcor.rows.engines.base import rows_changed
from pcor.rows.queries.pushdown import Pushdown
from pcor.rows.queries.queries import Pairs


@dataclass(frozen=True, repr=False)
class Answers:
    """What an engine has answered so far. It is forgotten as a whole.

    Attributes:
        parts: for a metric and a window, the cells with the pairs that the window shows.
        counts: for a range, the rows of each cell in it.
        tails: for a metric, the moments of each cell above it.
    """

    parts: dict[tuple[float, Window], CellTable] = field(default_factory=dict)
    counts: dict[Range, NDArray[np.int64]] = field(default_factory=dict)
    tails: dict[float, NDArray[np.float64]] = field(default_factory=dict)

    def have(
        self,
        windows: Sequence[tuple[float, Window]],
        ranges: Sequence[Range],
        values: Sequence[float],
    ) -> bool:
        """Tell whether all of this is among them."""
        # What a window of everything or of nothing shows is not kept here.
        return (
            all(asked in self.parts for asked in windows if not asked[1].everything)
            and all(range_ in self.counts for range_ in ranges)
            and all(value in self.tails for value in values)
        )


class RemoteCellTable(Cells):
    """All rows of an engine: cells at hand, pairs read when somebody asks.

    Args:
        pushdown: asks the engine.
    """

    def __init__(self, pushdown: Pushdown) -> None:
        schema, cells = pushdown.schema, pushdown.cells
        places = cells.codes + np.array(schema.offsets)
        super().__init__(
            cell_required=cell_bits(places, schema.width),
            cell_counts=cells.counts,
            cell_sums=cells.sums,
            cell_squares=cells.squares,
            centre=cells.centre,
            cell_numbers=np.arange(len(cells.counts)),
            cell_places=places,
        )
        self._pushdown = pushdown
        self._answers = Answers()
        self._whole: CellTable | None = None  # with all pairs, once they were read
        self._on_grid: dict[MetricGrid, Pairs] = {}  # places in the place of metrics

    def in_memory(self) -> CellTable:
        """Return all pairs; they are read once."""
        if self._whole is None:
            self._whole = self._with_pairs(self._pushdown.pairs())
        return self._whole

    def with_row(self, required: Words, places: NDArray[np.int64], value: float) -> Cells:
        """Return the same with one row more, which is here and not in the engine."""
        from pcor.rows.held_row import HeldRow

        return HeldRow(self, required, places, value)

    def without_pairs(self) -> CellTable:
        """Return all cells, and no pairs."""
        return self._part(Pairs(np.zeros(0, np.int32), np.zeros(0), np.zeros(0, np.int64)))

    def window(self, value: float, rule: Rule, held: Sequence[float] = ()) -> Window:
        """Return what a rule has to see of the rows to judge a metric.

        Args:
            value: the metric. It may lie beyond all rows: its own is then not counted, but held.
            rule: what judges.
            held: metrics of rows that are here and not in the engine.
        """
        cells = self._pushdown.cells
        low, high = float(cells.lowest.min()), float(cells.highest.max())
        return rule.window_on(value, min(low, value, *held), max(high, value, *held))

    def read_all(self) -> None:
        """Read all pairs where the rows may change; refuse if an engine may not hand them over."""
        self._pushdown.check_fits()
        if self._pushdown.may_change:
            self.in_memory()

    def distribution(self, mask: Words) -> Distribution:
        """Return the distinct metric values of a population, rising, and their counts."""
        if self._whole is not None:
            return self._whole.distribution(mask)
        return self._pushdown.distribution(allowed_codes(self._pushdown.schema, mask))

    def rows_between(self, low: float, high: float) -> NDArray[np.int64]:
        """Return how many rows of each cell have a metric in a closed range."""
        if self._whole is not None:
            return self._whole.rows_between(low, high)
        known = self._answers.counts  # another thread may put new answers in their place
        if (low, high) not in known:
            known[low, high] = self._pushdown.counted([(low, high)]).counts[0]
        return known[low, high]

    def above(self, value: float) -> NDArray[np.float64]:
        """Return of each cell's rows above a metric count, sum, squares; and how many equal it."""
        if self._whole is not None:
            return self._whole.above(value)
        known = self._answers.tails
        if value not in known:
            known[value] = self._pushdown.above([value])[0]
        return known[value]

    def visible(self, value: float, rule: Rule) -> CellTable:
        """Return the pairs in the rule's window; refuse where the record itself is not in it."""
        window = self.window(value, rule)
        seen = self.seen_through(window, value)
        check_present(value, seen, window)
        return seen

    def seen_through(self, window: Window, value: float) -> CellTable:
        """Return the pairs that a window on one metric shows."""
        self._read_whole([window])
        if window.everything or self._whole is not None:
            return self.in_memory()
        known = self._answers.parts
        if (value, window) not in known:
            read = self._read([(value, window)])
            self._answers, known = read, read.parts
        return known[value, window]  # another thread may have read something else meanwhile

    def read_grid(self, grid: MetricGrid) -> None:
        """Read how many rows of each cell belong to each point of a grid, once for the table."""
        if self._whole is None and grid not in self._on_grid:
            self._read((), grid=grid)

    def on_grid(self, grid: MetricGrid, mask: Words) -> NDArray[np.int64]:
        """Return how many rows of a population belong to each point of a grid."""
        if self._whole is not None:
            return self._whole.on_grid(grid, mask)
        self.read_grid(grid)
        pairs = self._on_grid[grid]
        covered: NDArray[np.bool_] = np.all((self.cell_required & ~mask) == 0, axis=1)
        inside = covered[pairs.cells]
        places = pairs.values[inside].astype(np.int64)
        return np.bincount(places, pairs.counts[inside], minlength=grid.size).astype(np.int64)

    def prepare(
        self,
        values: Sequence[float],
        rule: Rule,
        counted: Sequence[Range] = (),
        grid: MetricGrid | None = None,
        held: Sequence[float] = (),
    ) -> None:
        """Read what a rule needs to judge several metrics, in as few passes as the engine can.

        What was read before is forgotten, unless it has all that is wanted now. Whether a metric's
        own row is counted or held in addition makes no difference to what is read.
        """
        ends = [rule.region_ends(value) for value in values]
        windows = [(value, self.window(value, rule, held)) for value in values]
        self._read_whole([window for _, window in windows])
        if self._whole is not None:
            self._answers = Answers()
            return
        ranges = [range_ for range_ in ends if range_ is not None]
        ranges = list(dict.fromkeys([*ranges, *counted]))
        tails = values if rule.wants_tails else ()
        grid = None if grid in self._on_grid else grid
        if not values or grid is not None or not self._answers.have(windows, ranges, tails):
            self._answers = self._read(windows, ranges, tails, grid)

    def _read_whole(self, windows: Sequence[Window]) -> None:
        """Read all pairs where the cells do not bound what is needed; refuse if they are too many.

        Where all answers come from one state of the rows, a range is read when it is asked for.
        Elsewhere a later question might meet other rows, and whatever may be asked must be here.
        """
        unbounded = [window for window in windows if not window.bounded]
        if unbounded:
            self._pushdown.check_fits()
            if self._pushdown.may_change or any(window.everything for window in unbounded):
                self.in_memory()

    def _read(
        self,
        windows: Sequence[tuple[float, Window]],
        ranges: Sequence[Range] = (),
        values: Sequence[float] = (),
        grid: MetricGrid | None = None,
    ) -> Answers:
        """Read what several records need.

        Args:
            windows: metrics, and the window on each.
            ranges: of which rows will be counted.
            values: above which moments will be asked for.
            grid: at whose points rows will be counted; that is remembered for the table.
        """
        answers = Answers()
        if values:
            answers.tails.update(zip(values, self._pushdown.above(values), strict=True))
        # One rule asks for all windows: they have the same number of rows, or none has any.
        rows = next((window.rows for _, window in windows if window.rows is not None), 1)
        alike = [(value, window) for value, window in windows if window.rows == rows]
        if alike or ranges or grid is not None:
            found = self._pushdown.counted(ranges, [value for value, _ in alike], rows, grid)
            answers.counts.update(zip(ranges, found.counts, strict=True))
            if grid is not None and found.on_grid is not None:
                self._on_grid[grid] = found.on_grid
            for (value, window), pairs in zip(alike, found.nearest, strict=True):
                # More equal rows than the window has change nothing.
                fewer = pairs._replace(counts=np.minimum(pairs.counts, rows))
                answers.parts[value, window] = self._part(fewer).nearest(value, rows)
        in_range = [(v, w) for v, w in windows if w.rows is None and not w.everything]
        answers.parts.update(self._read_ranges(in_range))
        return answers

    def _read_ranges(
        self, windows: Sequence[tuple[float, Window]]
    ) -> dict[tuple[float, Window], CellTable]:
        """Read the hull of all ranges once and cut each one's own out of it."""
        parts: dict[tuple[float, Window], CellTable] = {}
        open_ = [window for _, window in windows if window.low <= window.high]
        pairs = Pairs(np.zeros(0, np.int32), np.zeros(0), np.zeros(0, np.int64))
        if open_:
            pairs = self._pushdown.pairs(
                min(window.low for window in open_), max(window.high for window in open_)
            )
        for value, window in windows:
            first = int(np.searchsorted(pairs.values, window.low))
            last = max(first, int(np.searchsorted(pairs.values, window.high, side="right")))
            inside = slice(first, last)
            own = Pairs(pairs.cells[inside], pairs.values[inside], pairs.counts[inside])
            own = self._with_ends(own, window) if window.ends else own
            parts[value, window] = self._part(own)
        return parts

    def _with_ends(self, pairs: Pairs, window: Window) -> Pairs:
        """Add one row at each end of each cell that lies outside the range."""
        cells = self._pushdown.cells
        ends = np.concatenate([cells.lowest, cells.highest])
        numbers = np.tile(np.arange(len(cells.counts), dtype=np.int32), 2)
        missing = (ends < window.low) | (ends > window.high)
        values = np.concatenate([pairs.values, ends[missing]])
        order = np.argsort(values, kind="stable")
        counts = np.append(pairs.counts, np.ones(int(missing.sum()), np.int64))
        return Pairs(np.append(pairs.cells, numbers[missing])[order], values[order], counts[order])

    def _part(self, pairs: Pairs) -> CellTable:
        """Return all cells and some pairs, which asks here for whole populations."""
        return self._with_pairs(pairs, ask=self.distribution)

    def _with_pairs(
        self, pairs: Pairs, ask: Callable[[Words], Distribution] | None = None
    ) -> CellTable:
        return CellTable(
            **{column.name: getattr(self, column.name) for column in fields(Cells)},
            required=self.cell_required[pairs.cells],
            values=pairs.values,
            counts=pairs.counts.astype(np.int32),  # a table has at most 2^31 - 1 rows
            pair_cells=pairs.cells,
            ask=ask,
        )


def check_present(value: float, cells: CellTable, window: Window) -> None:
    """Refuse to go on where the record itself is no longer among the rows that were read."""
    if not window.everything and window.low <= value <= window.high:
        place = cells.place(value)
        if place == len(cells.values) or cells.values[place] != value:
            raise rows_changed()


def allowed_codes(schema: Schema, mask: Words) -> list[NDArray[np.int64]]:
    """Return, for each attribute, the codes that a context has."""
    bits = np.unpackbits(mask.astype("<u8").view(np.uint8), bitorder="little")
    return [
        np.flatnonzero(bits[offset : offset + len(attribute.values)]).astype(np.int64)
        for attribute, offset in zip(schema.attributes, schema.offsets, strict=True)
    ]
