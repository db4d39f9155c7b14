"""Does the bound hold where COE differs? The paper's probability-ratio experiment (Section 6.7).

Private: all of it. The paper looks at tables that differ by one removed row and on which the
record's valid contexts (COE) are not the same: OCDP promises nothing there. It takes the contexts
that are valid on both, and the largest ratio of their chances; it reports that none exceeds
e^epsilon at epsilon 0.2. Here: the chances of the direct mechanism over COE with the paper's
exponent, epsilon / 2, for removals drawn at random; exact, no release is drawn: the audit computes
the same ratios for every exposed person (``pcor.audit.comparison``).
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import numpy as np

from pcor.audit.comparison import AnswerComparison, AuditCase, comparison
from pcor.audit.neighbours import removals
from pcor.paper.comparison import REPETITIONS
from pcor.paper.experiment import Experiment, Found, ResultRow
from pcor.paper.subjects import one_subject, seed_of
from pcor.paper.tables import REDUCED
from pcor.paper.units import Unit
from pcor.paper.ways import DETECTORS
from pcor.releasing.settings import Settings
from pcor.rows.table import Table
from pcor.search.validity import Validity

KIND = "ratio"
EPSILON = 0.2
REMOVALS = 100  # rows whose removal is looked at, for each record
QUICK = 3

_PART = "removed"


def measure(unit: Unit) -> dict[str, Any]:
    """Return the largest |log ratio| of every looked-at removal that changes COE."""
    subject = one_subject(unit.table, unit.detector, unit.number, unit.seed)
    validity = subject.validity
    numbers = random.Random(seed_of(unit.seed, KIND, unit.table, unit.detector, unit.number))  # noqa: S311
    rows = numbers.sample(_keys(validity.table), REMOVALS)
    answers = direct_comparison(validity)
    found = [answers.against(change).ratio for change in removals(validity, rows=rows)]
    common = [round(ratio, 6) for ratio in found if ratio is not None]
    return {_PART: {"log_ratios": common, "nothing_common": found.count(None)}}


def _keys(table: Table) -> list[int | str]:
    everything = (1 << table.schema.width) - 1
    return table.keys_in(everything, np.unique(table.cells.in_memory().values))


def direct_comparison(validity: Validity) -> AnswerComparison:
    """Return the direct mechanism over a record's valid contexts, as the paper has it. Private."""
    settings = Settings(
        detector=validity.detector, search="direct", accounting="paper", selection="exponential"
    )
    plan = settings.plan(validity.table.schema, EPSILON)
    return comparison(AuditCase(validity.table, validity.record.key, plan))


class Ratio(Experiment):
    """The experiment."""

    def repetitions(self, *, quick: bool) -> int:
        """Return how many records are looked at."""
        return QUICK if quick else REPETITIONS

    def parts(self, detector: str) -> tuple[str, ...]:  # noqa: ARG002 (the same for all)
        """Return the one kind of change."""
        return (_PART,)

    def table_rows(self, table: str, found: Found) -> Iterator[ResultRow]:
        """Yield a row for every detector."""
        for detector in DETECTORS:
            measured = [unit[_PART] for unit in found[detector] if _PART in unit]
            ratios = np.array([ratio for one in measured for ratio in one["log_ratios"]])
            beyond = [any(r > EPSILON + 1e-9 for r in one["log_ratios"]) for one in measured]
            nothing_common = sum(one["nothing_common"] for one in measured)
            yield {
                "detector": detector,
                "epsilon": str(EPSILON),
                "records": len(measured),
                "removals_per_record": REMOVALS,
                "changes_of_coe": len(ratios) + nothing_common,
                "beyond_the_bound": int((ratios > EPSILON + 1e-9).sum()),
                "records_beyond": sum(beyond),
                "largest_log_ratio": round(float(ratios.max()), 4) if len(ratios) else None,
                "nothing_common": nothing_common,
                "paper_beyond": 0 if "salary" in table else None,
            }


EXPERIMENT = Ratio(
    name="ratio",
    title="Chances where COE differs",
    source="Section 6.7, the probability-ratio experiment",
    kind=KIND,
    remarks=(
        "Ratios are exact: the direct mechanism with the paper's exponent epsilon / 2, on contexts "
        "that are valid both before and after the removal of one row. A context that is valid on "
        "one of the two tables only has no finite ratio at all; the paper leaves those out.",
    ),
    usual=REDUCED[:1],  # the paper says: over the salary dataset
)
