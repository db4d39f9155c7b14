"""Does one person change COE? Tables "COE Match", for salaries and homicides.

Private: all of it. For random outliers, some rows are removed at random (the paper's way) or added
(which it left out), and the record's valid contexts are found again. The paper does not say whether
its per cent are of tables on which COE is exactly the same, or of contexts; both are given here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pcor.audit.match import coe_match
from pcor.paper.published import CHANGES, MATCH
from pcor.paper.store import Store
from pcor.paper.subjects import one_subject, seed_of
from pcor.paper.summary import mean_and_interval
from pcor.paper.tables import REDUCED
from pcor.paper.units import Unit
from pcor.paper.ways import DETECTORS, authors_detector

KIND = "match"
KINDS = ("removed", "added")
RECORDS = 100
NEIGHBOURS = 50
QUICK = 2


def measure(unit: Unit) -> dict[str, Any]:
    """Return, for each kind of change, the shares of equal and of common contexts by size."""
    subject = one_subject(unit.table, unit.detector, unit.number, unit.seed)
    record, answer = subject.validity.record, {}
    for kind in unit.parts:
        seed = seed_of(unit.seed, KIND, kind, unit.table, unit.detector, unit.number)
        found = coe_match(
            subject.validity.table,
            record.key,
            authors_detector(unit.detector),
            changes=CHANGES,
            repeats=NEIGHBOURS,
            kind=kind,
            seed=seed,
        )
        answer[kind] = [[match.equal, round(match.overlap, 6)] for match in found]
    return answer


@dataclass(frozen=True)
class CoeMatch:
    """The experiment."""

    name: str = "coe_match"
    title: str = "COE match"
    source: str = "Tables 'COE Match', salary and homicide"
    remarks: tuple[str, ...] = (
        "Equal: the share of changed tables on which the record has exactly the same valid "
        "contexts. Common: valid contexts on both tables over those on either. The paper does not "
        "say which of the two its numbers are, and removed rows only.",
    )
    usual: tuple[str, ...] = REDUCED
    fallback: str = "synthetic_reduced"

    def units(self, tables: Sequence[str], *, quick: bool, seed: int) -> list[Unit]:
        """Return the work: every record of every table and detector."""
        return [
            Unit(KIND, table, detector, number, seed, KINDS)
            for table in tables
            for detector in DETECTORS
            for number in range(QUICK if quick else RECORDS)
        ]

    def rows(self, store: Store, tables: Sequence[str], *, quick: bool, seed: int) -> list[Any]:
        """Return a row for every table, detector, kind and number of changes."""
        units = self.units(tables, quick=quick, seed=seed)
        return [
            self._row(table, detector, kind, place, store, units)
            for table in tables
            for kind in KINDS
            for detector in DETECTORS
            for place in range(len(CHANGES))
        ]

    def _row(
        self,
        table: str,
        detector: str,
        kind: str,
        place: int,
        store: Store,
        units: Sequence[Unit],
    ) -> dict[str, Any]:
        found = [
            store.found(unit)[kind][place]
            for unit in units
            if (unit.table, unit.detector) == (table, detector) and not store.missing(unit)
        ]
        equal, low, high = mean_and_interval([one[0] for one in found])
        common, common_low, common_high = mean_and_interval([one[1] for one in found])
        return {
            "experiment": self.name,
            "table": table,
            "detector": detector,
            "kind": kind,
            "changed_rows": CHANGES[place],
            "records": len(found),
            "neighbours": NEIGHBOURS,
            "equal": equal,
            "equal_low": low,
            "equal_high": high,
            "common": common,
            "common_low": common_low,
            "common_high": common_high,
            **_published(table, detector, kind, place),
        }


def _published(table: str, detector: str, kind: str, place: int) -> dict[str, float]:
    for subject, numbers in MATCH.items():
        if subject in table and kind == "removed":
            return {"paper": numbers[detector][place] / 100}
    return {}


EXPERIMENT = CoeMatch()
