"""What every experiment has: a name, tables to run on, units of work, and rows of results.

Private: the rows. An experiment repeats a measurement on every table and with every detector; each
repetition is a unit.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pcor.paper.store import Store
from pcor.paper.tables import REDUCED
from pcor.paper.units import Unit
from pcor.paper.ways import DETECTORS

ResultRow = dict[str, Any]

# What was measured on one table, by detector: of each repetition its parts, as far as it is done.
Found = Mapping[str, list[dict[str, Any]]]


@dataclass(frozen=True)
class Experiment(ABC):
    """A table or a figure of the paper again.

    Attributes:
        name: of the command.
        title: what it shows.
        source: the tables and figures of the paper.
        remarks: what a reader must know: where the paper contradicts itself, and so on.
        usual: the tables it runs on by default.
        fallback: the synthetic table for where none of those is there.
        kind: of its units.
    """

    name: str
    title: str
    source: str
    remarks: tuple[str, ...] = ()
    usual: tuple[str, ...] = REDUCED
    fallback: str = "synthetic_reduced"
    kind: str = ""

    @abstractmethod
    def repetitions(self, *, quick: bool) -> int:
        """Return how often each measurement is repeated."""

    @abstractmethod
    def parts(self, detector: str) -> tuple[str, ...]:
        """Return what a unit with this detector measures."""

    @abstractmethod
    def table_rows(self, table: str, found: Found) -> Iterable[ResultRow]:
        """Return the results of one table, a row for each line of the paper's."""

    def detectors(self) -> Iterable[str]:
        """Return the names of the detectors."""
        return DETECTORS

    def units(self, tables: Sequence[str], *, quick: bool, seed: int) -> list[Unit]:
        """Return the work: every repetition of every table and detector."""
        return [
            Unit(self.kind, table, detector, number, seed, self.parts(detector))
            for table in tables
            for detector in self.detectors()
            for number in range(self.repetitions(quick=quick))
        ]

    def rows(
        self, store: Store, tables: Sequence[str], *, quick: bool, seed: int
    ) -> list[ResultRow]:
        """Return the results of finished work."""
        found: dict[str, dict[str, list[dict[str, Any]]]] = {table: {} for table in tables}
        for unit in self.units(tables, quick=quick, seed=seed):
            found[unit.table].setdefault(unit.detector, []).append(store.found(unit))
        return [
            {"experiment": self.name, "table": table, **row}
            for table in tables
            for row in self.table_rows(table, found[table])
        ]
