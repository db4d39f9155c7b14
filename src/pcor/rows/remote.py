"""Rows that stay in an engine, seen as a view.

Private: everything. A distant view knows every cell and none of the pairs. What a detector needs of
the pairs it says as a ``Need``; only that is read, into a small view of its own. Whoever asks for
all pairs gets them up to a public limit, or a refusal that names it. So nothing can mistake a part
for the whole. Whether the limit holds is decided for the table as a whole: a refusal says nothing
of the record that is asked about.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pcor.public.schema import Schema
from pcor.rows.cells import View, Words, cell_bits
from pcor.rows.engines.base import rows_changed
from pcor.rows.queries.pushdown import Pushdown
from pcor.rows.queries.queries import Pairs

_PAIRS = ("needs", "values", "counts", "pair_cells")


@dataclass(frozen=True)
class Need:
    """Which pairs a detector looks at when it judges one metric in any context.

    Attributes:
        reach: only so many rows of each cell on each side; ``None`` for those of the range.
        low: all pairs from this metric on,
        high: and up to this one.
        ends: also the least and the largest metric of each cell, of whose rows one is enough.
    """

    reach: int | None = None
    low: float = -math.inf
    high: float = math.inf
    ends: bool = False

    @classmethod
    def nothing(cls) -> Need:
        """No pairs: sums over cells are enough."""
        return cls(low=math.inf, high=-math.inf)

    @property
    def everything(self) -> bool:
        """Whether all pairs are needed."""
        return self.reach is None and self.low == -math.inf and self.high == math.inf

    @property
    def bounded(self) -> bool:
        """Whether the cells alone bound how many pairs are needed."""
        return self.reach is not None or self.low > self.high


class DistantView(View):
    """All rows of an engine: cells at hand, pairs read when somebody asks."""

    _pushdown: Pushdown
    _schema: Schema
    _remembered: dict[Any, Any]

    @classmethod
    def over(cls, pushdown: Pushdown) -> DistantView:
        """Return the view of an engine's rows."""
        schema, cells = pushdown.schema, pushdown.cells
        places = cells.codes + np.array(schema.offsets)
        view = object.__new__(cls)
        known = {
            "cell_needs": cell_bits(places, schema.width),
            "cell_counts": cells.counts,
            "cell_sums": cells.sums,
            "cell_squares": cells.squares,
            "centre": cells.centre,
            "cells": np.arange(len(cells.counts)),
            "cell_places": places,
            "ask": None,
            "_pushdown": pushdown,
            "_schema": schema,
            "_remembered": {},
        }
        for name, value in known.items():
            object.__setattr__(view, name, value)
        return view

    def __getattr__(self, name: str) -> Any:
        if name not in _PAIRS:
            raise AttributeError(name)
        self.read_all()
        return self.__dict__[name]

    def read_all(self) -> None:
        """Read all pairs, unless they were read."""
        if self._is_here:
            return
        for known, value in self._columns(self._pushdown.pairs()).items():
            object.__setattr__(self, known, value)

    @property
    def _is_here(self) -> bool:
        """Whether all pairs were read."""
        return "values" in self.__dict__

    def distribution(self, mask: Words) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Return the distinct metric values of a population, rising, and their counts."""
        if self._is_here:
            return super().distribution(mask)
        return self._pushdown.distribution(allowed_codes(self._schema, mask))

    def rows_between(self, low: float, high: float) -> NDArray[np.int64]:
        """Return how many rows of each cell have a metric in a closed range."""
        if self._is_here:
            return super().rows_between(low, high)
        key = ("rows", low, high)
        remembered = self._remembered  # another thread may put a new one in its place
        if key not in remembered:
            remembered[key] = self._pushdown.rows_between([(low, high)])[0]
        counted: NDArray[np.int64] = remembered[key]
        return counted

    def above(self, value: float) -> NDArray[np.float64]:
        """Return of each cell's rows above a metric count, sum, squares; and how many equal it."""
        if self._is_here:
            return super().above(value)
        key = ("above", value)
        remembered = self._remembered
        if key not in remembered:
            remembered[key] = self._pushdown.above([value])[0]
        moments: NDArray[np.float64] = remembered[key]
        return moments

    def seen_from(self, value: float, need: Need) -> View:
        """Return a view with the pairs that are needed to judge one metric."""
        self._read_whole([need])
        if need.everything or self._is_here:
            return self
        remembered = self._remembered
        if ("seen", value, need) not in remembered:
            remembered = self._remember(self._read([(value, need)]))
        view: View = remembered["seen", value, need]
        return view

    def prepare(
        self,
        seen: Sequence[tuple[float, Need]] = (),
        ranges: Sequence[tuple[float, float]] = (),
        values: Sequence[float] = (),
    ) -> None:
        """Read what several records need, all of them in one pass of each kind, and remember it.

        What was remembered before is forgotten.

        Args:
            seen: metrics, and what is needed to judge each.
            ranges: of which rows will be counted.
            values: above which moments will be asked for.
        """
        self._read_whole([need for _, need in seen])
        self._remember({} if self._is_here else self._read(seen, ranges, values))

    def _read_whole(self, needs: Sequence[Need]) -> None:
        """Read all pairs where the cells do not bound what is needed; refuse if they are too many.

        Where all answers come from one state of the rows, a range is read when it is asked for.
        Elsewhere a later question might meet other rows, and whatever may be asked must be here.
        """
        unbounded = [need for need in needs if not need.bounded]
        if unbounded:
            self._pushdown.check_fits()
            if self._pushdown.may_change or any(need.everything for need in unbounded):
                self.read_all()

    def _remember(self, found: dict[Any, Any]) -> dict[Any, Any]:
        object.__setattr__(self, "_remembered", found)
        return found

    def _read(
        self,
        seen: Sequence[tuple[float, Need]],
        ranges: Sequence[tuple[float, float]] = (),
        values: Sequence[float] = (),
    ) -> dict[Any, Any]:
        """Read what several records need, as ``prepare`` says."""
        found: dict[Any, Any] = {}
        if ranges:
            counted = self._pushdown.rows_between(ranges)
            found |= {("rows", *r): n for r, n in zip(ranges, counted, strict=True)}
        if values:
            moments = self._pushdown.above(values)
            found |= {("above", v): m for v, m in zip(values, moments, strict=True)}
        for reach in {need.reach for _, need in seen if need.reach is not None}:
            alike = [(value, need) for value, need in seen if need.reach == reach]
            nearest = self._pushdown.nearest([value for value, _ in alike], reach)
            for (value, need), pairs in zip(alike, nearest, strict=True):
                # More equal rows than the reach change nothing.
                fewer = pairs._replace(counts=np.minimum(pairs.counts, reach))
                found["seen", value, need] = self._part(fewer).nearest(value, reach)
        in_range = [(v, n) for v, n in seen if n.reach is None and not n.everything]
        return found | self._read_ranges(in_range)

    def _read_ranges(self, seen: Sequence[tuple[float, Need]]) -> dict[Any, Any]:
        """Read the hull of all ranges once and cut each one's own out of it."""
        found: dict[Any, Any] = {}
        wanted = [need for _, need in seen if need.low <= need.high]
        pairs = Pairs(np.zeros(0, np.int32), np.zeros(0), np.zeros(0, np.int64))
        if wanted:
            pairs = self._pushdown.pairs(
                min(need.low for need in wanted), max(need.high for need in wanted)
            )
        for value, need in seen:
            first = int(np.searchsorted(pairs.values, need.low))
            last = max(first, int(np.searchsorted(pairs.values, need.high, side="right")))
            part = slice(first, last)
            own = Pairs(pairs.cells[part], pairs.values[part], pairs.counts[part])
            own = self._with_ends(own, need) if need.ends else own
            found["seen", value, need] = self._part(own)
        return found

    def _with_ends(self, pairs: Pairs, need: Need) -> Pairs:
        """Add one row at each end of each cell that lies outside the range."""
        cells = self._pushdown.cells
        ends = np.concatenate([cells.lowest, cells.highest])
        numbers = np.tile(np.arange(len(cells.counts), dtype=np.int32), 2)
        missing = (ends < need.low) | (ends > need.high)
        values = np.concatenate([pairs.values, ends[missing]])
        order = np.argsort(values, kind="stable")
        counts = np.append(pairs.counts, np.ones(int(missing.sum()), np.int64))
        return Pairs(np.append(pairs.cells, numbers[missing])[order], values[order], counts[order])

    def _part(self, pairs: Pairs) -> View:
        """Return a view of all cells and some pairs, which asks here for whole populations."""
        columns = self._columns(pairs)
        return View(
            columns["needs"],
            columns["values"],
            columns["counts"],
            self.cell_needs,
            self.cell_counts,
            self.cell_sums,
            self.cell_squares,
            self.centre,
            self.cells,
            columns["pair_cells"],
            self.cell_places,
            self.distribution,
        )

    def _columns(self, pairs: Pairs) -> dict[str, NDArray[Any]]:
        return {
            "needs": self.cell_needs[pairs.cells],
            "counts": pairs.counts.astype(np.int32),  # a table has at most 2^31 - 1 rows
            "pair_cells": pairs.cells,
            "values": pairs.values,  # the last: with it all are here
        }


def check_present(value: float, view: View, need: Need) -> None:
    """Refuse to go on where the record itself is no longer among the rows that were read."""
    if not need.everything and need.low <= value <= need.high:
        place = view.place(value)
        if place == len(view.values) or view.values[place] != value:
            raise rows_changed()


def allowed_codes(schema: Schema, mask: Words) -> list[NDArray[np.int64]]:
    """Return, for each attribute, the codes that a context has."""
    bits = np.unpackbits(mask.astype("<u8").view(np.uint8), bitorder="little")
    return [
        np.flatnonzero(bits[offset : offset + len(attribute.values)]).astype(np.int64)
        for attribute, offset in zip(schema.attributes, schema.offsets, strict=True)
    ]
