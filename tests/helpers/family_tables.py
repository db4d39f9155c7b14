"""Random tables of random families, each with a record and its COE by the definition."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from functools import cached_property

import pyarrow as pa

import pcor
from pcor.public.context import mask_of
from tests.helpers import naive
from tests.helpers.families import members, random_schema

# Rules under which small populations have outliers, and what other people's programs say.
TWINS: dict[str, tuple[pcor.Detector, naive.Rule]] = {
    "lof": (
        pcor.LOF(k=3, threshold=1.5, ties="all", min_population=5),
        naive.lof(k=3, threshold=1.5, ties="all"),
    ),
    "grubbs": (
        pcor.Grubbs(alpha=0.2, min_population=5),
        naive.grubbs(alpha=0.2, tail="both"),
    ),
    "histogram": (
        pcor.Histogram(rare=0.15, min_population=5),
        naive.exact_histogram(rare="0.15"),
    ),
    "tail": (
        pcor.Tail(0.2, tail="upper", min_population=5),
        naive.counting(naive.tail("upper"), share="0.2"),
    ),
    "neighbourhood": (
        pcor.Neighbourhood(5, share=0.3, min_population=5),
        naive.counting(naive.neighbourhood(5), share="0.3"),
    ),
}


@dataclass(frozen=True)
class FamilyTable:
    """Rows as places of their values, the metric of each, and the queried row."""

    schema: pcor.Schema
    codes: tuple[tuple[int, ...], ...]
    metric: tuple[float, ...]
    record: int

    @cached_property
    def frame(self) -> pa.Table:
        """The rows as a table of columns."""
        columns = {
            a.name: [a.values[row[n]] for row in self.codes]
            for n, a in enumerate(self.schema.attributes)
        }
        return pa.table(columns | {"metric": list(self.metric)})

    @cached_property
    def table(self) -> pcor.Table:
        """The rows as pcor reads them."""
        return pcor.Table(self.frame, self.schema)

    @cached_property
    def members(self) -> list[int]:
        """The contexts of the record's family, by the definition."""
        return members(self.schema, self.codes[self.record])

    def populations(self, masks: list[int]) -> list[list[int]]:
        """Return the rows that each context covers."""
        rows = [mask_of(self.schema, row) for row in self.codes]
        return [[n for n, row in enumerate(rows) if not row & ~mask] for mask in masks]

    def coe(self, twin: naive.Rule, min_population: int) -> dict[int, int] | None:
        """Return the valid contexts of the family with their populations; none if undecided."""
        found = {}
        for mask, rows in zip(self.members, self.populations(self.members), strict=True):
            if len(rows) < min_population:
                continue
            answer = twin([self.metric[n] for n in rows])[rows.index(self.record)]
            if answer is None:
                return None
            if answer:
                found[mask] = len(rows)
        return found

    def of(self, record: int) -> FamilyTable:
        """Return the same rows with another record queried."""
        return replace(self, record=record)

    def without(self, row: int) -> FamilyTable:
        """Return the table with one row less, which is not the record's."""
        return FamilyTable(
            self.schema,
            self.codes[:row] + self.codes[row + 1 :],
            self.metric[:row] + self.metric[row + 1 :],
            self.record - (row < self.record),
        )


def family_table(
    seed: int, *, largest: int = 4, rows: int = 40, limits: bool = True
) -> FamilyTable:
    """Return a random table; its record is rather one that stands out."""
    numbers = random.Random(seed)  # noqa: S311 (test data)
    schema = random_schema(numbers, largest, limits=limits)
    codes = tuple(
        tuple(numbers.randrange(len(a.values)) for a in schema.attributes) for _ in range(rows)
    )
    metric = [float(numbers.randrange(20)) for _ in range(rows)]
    record = numbers.randrange(rows)
    metric[record] = float(numbers.choice([metric[record], 21, 25, 40, 90]))
    return FamilyTable(schema, codes, tuple(metric), record)
