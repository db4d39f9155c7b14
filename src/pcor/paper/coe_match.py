"""Does one person change COE? Tables "COE Match", for salaries and homicides.

Private: all of it. For random outliers, some rows are removed at random (the paper's way) or added
(which it left out), and the record's valid contexts are found again. The paper does not say whether
its per cent are of tables on which COE is exactly the same, or of contexts; both are given here.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pcor.audit.match import KINDS, coe_match
from pcor.paper.experiment import Experiment, Found, ResultRow
from pcor.paper.published import CHANGES, MATCH
from pcor.paper.subjects import one_subject, seed_of
from pcor.paper.summary import mean_and_interval
from pcor.paper.units import Unit
from pcor.paper.ways import DETECTORS, authors_detector

KIND = "match"
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


class CoeMatch(Experiment):
    """The experiment."""

    def repetitions(self, *, quick: bool) -> int:
        """Return how many records are looked at."""
        return QUICK if quick else RECORDS

    def parts(self, detector: str) -> tuple[str, ...]:  # noqa: ARG002 (the same for all)
        """Return the kinds of change."""
        return KINDS

    def table_rows(self, table: str, found: Found) -> Iterator[ResultRow]:
        """Yield a row for every kind, detector and number of changes."""
        for kind in KINDS:
            for detector in DETECTORS:
                measured = [unit[kind] for unit in found[detector] if kind in unit]
                for place, changed in enumerate(CHANGES):
                    equal, low, high = mean_and_interval([one[place][0] for one in measured])
                    common, *interval = mean_and_interval([one[place][1] for one in measured])
                    yield {
                        "detector": detector,
                        "kind": kind,
                        "changed_rows": changed,
                        "records": len(measured),
                        "neighbours": NEIGHBOURS,
                        "equal": equal,
                        "equal_low": low,
                        "equal_high": high,
                        "common": common,
                        "common_low": interval[0],
                        "common_high": interval[1],
                        **_published(table, detector, kind, place),
                    }


def _published(table: str, detector: str, kind: str, place: int) -> dict[str, float]:
    for subject, numbers in MATCH.items():
        if subject in table and kind == "removed":
            return {"paper": numbers[detector][place] / 100}
    return {}


EXPERIMENT = CoeMatch(
    name="coe_match",
    title="COE match",
    source="Tables 'COE Match', salary and homicide",
    kind=KIND,
    remarks=(
        "Equal: the share of changed tables on which the record has exactly the same valid "
        "contexts. Common: valid contexts on both tables over those on either. The paper does not "
        "say which of the two its numbers are, and removed rows only.",
    ),
)
