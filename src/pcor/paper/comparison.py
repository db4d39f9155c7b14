"""An experiment that releases in several ways: what is compared with which number of the paper.

Private: the rows it makes. Every line of the paper's tables is measured at the paper's settings, at
other readings where the paper contradicts itself, and as the library would by itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pcor.paper.measurement import KIND, measurement_order
from pcor.paper.published import PublishedResult
from pcor.paper.store import Store
from pcor.paper.subjects import GROUPS
from pcor.paper.summary import times, utilities
from pcor.paper.tables import LARGE, REDUCED, SPARSE
from pcor.paper.units import Unit
from pcor.paper.ways import Way

REPETITIONS = 200
QUICK = 10

PAPER = "the paper's settings"
OTHER = "another reading of the paper"
OURS = "our defaults"


@dataclass(frozen=True)
class ComparisonLine:
    """A way to release, and the number of the paper to hold it against.

    Attributes:
        label: what the paper calls it.
        way: the settings.
        reading: ``PAPER``, ``OTHER`` or ``OURS``.
        published: the paper's number, if it has one.
        real: whether this reading is the one that the paper's number is known to belong to.
        detector: the name of the detector.
    """

    label: str
    way: Way
    reading: str
    published: PublishedResult | None = None
    real: bool = True
    detector: str = "lof"


@dataclass(frozen=True)
class Comparison:
    """An experiment of releases.

    Attributes:
        name: of the command.
        title: what it shows.
        source: the tables and figures of the paper.
        lines: what is compared.
        remarks: what a reader must know: where the paper contradicts itself, and so on.
    """

    name: str
    title: str
    source: str
    lines: tuple[ComparisonLine, ...]
    remarks: tuple[str, ...] = ()
    usual: tuple[str, ...] = (*REDUCED, *LARGE, *SPARSE)
    fallback: str = "synthetic"

    def units(self, tables: Sequence[str], *, quick: bool, seed: int) -> list[Unit]:
        """Return the work: every repetition of every table and detector."""
        detectors = dict.fromkeys(line.detector for line in self.lines)
        return [
            Unit(KIND, table, detector, number, seed, self._parts(detector))
            for table in tables
            for detector in detectors
            for number in range(QUICK if quick else REPETITIONS)
        ]

    def _parts(self, detector: str) -> tuple[str, ...]:
        ways = [line.way for line in self.lines if line.detector == detector]
        return tuple(way.key for way in measurement_order(ways))

    def rows(self, store: Store, tables: Sequence[str], *, quick: bool, seed: int) -> list[Any]:
        """Return a row for every table, line and group of records."""
        units = self.units(tables, quick=quick, seed=seed)
        return [
            self._row(line, table, group, store, units)
            for table in tables
            for line in self.lines
            for group in GROUPS
            if group != "program" or table in REDUCED
        ]

    def _row(
        self, line: ComparisonLine, table: str, group: str, store: Store, units: Sequence[Unit]
    ) -> dict[str, Any]:
        found = [
            measured[line.way.key][group]
            for unit in units
            if (unit.table, unit.detector) == (table, line.detector)
            and group in (measured := store.found(unit)).get(line.way.key, {})
        ]
        return {
            "experiment": self.name,
            "table": table,
            "label": line.label,
            "reading": line.reading,
            "real": line.real,
            "group": group,
            "detector": line.detector,
            **line.way.row(),
            "repetitions": len(found),
            **utilities([one["utility"] for one in found]),
            **times([one["seconds"] for one in found if "seconds" in one]),
            "nothing_found": sum("nothing" in one for one in found),
            **self._published(line, table),
        }

    def _published(self, line: ComparisonLine, table: str) -> dict[str, Any]:
        given = line.published
        if given is None or "salary" not in table:  # where its numbers are from
            return {}
        names = ("paper_t_min", "paper_t_max", "paper_t_avg")
        return {
            "paper_utility": given.utility,
            "paper_low": given.low,
            "paper_high": given.high,
            **dict(zip(names, given.times, strict=True)),
        }
