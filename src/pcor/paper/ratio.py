"""Does the bound hold where COE differs? The paper's probability-ratio experiment (Section 6.7).

Private: all of it. The paper looks at tables that differ by one removed row and on which the
record's valid contexts (COE) are not the same: OCDP promises nothing there. It takes the contexts
that are valid on both, and the largest ratio of their chances; it reports that none exceeds
e^epsilon at epsilon 0.2. Here: the chances of the direct mechanism over COE with the paper's
exponent, epsilon / 2, for removals drawn at random; exact, no release is drawn.

Why it is right: a context's weight changes by exp(eta) if it covers the removed row and not at all
otherwise, and all chances share the ratio of the two totals.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pcor.audit.neighbours import Neighbour, removals
from pcor.paper.comparison import REPETITIONS
from pcor.paper.store import Store
from pcor.paper.subjects import one_subject, seed_of
from pcor.paper.tables import REDUCED
from pcor.paper.units import Unit
from pcor.paper.ways import DETECTORS
from pcor.public.context import pack
from pcor.rows.table import Table
from pcor.search.blocks import blocks
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
    chances = DirectChances(validity, EPSILON / 2)
    found = [chances.largest_log_ratio(change) for change in removals(validity, rows=rows)]
    common = [round(ratio, 6) for ratio in found if ratio is not None]
    return {_PART: {"log_ratios": common, "nothing_common": found.count(None)}}


def _keys(table: Table) -> list[int | str]:
    everything = (1 << table.schema.width) - 1
    return table.keys_in(everything, np.unique(table.cells.in_memory().values))


class DirectChances:
    """The direct mechanism over a record's valid contexts, before and after a removal. Private.

    Args:
        validity: the record, the detector and the table.
        eta: the exponent.
    """

    def __init__(self, validity: Validity, eta: float) -> None:
        parts = list(blocks(validity))
        self._validity = validity
        self._valid = np.concatenate([part.valid for part in parts])
        self._scores = eta * np.concatenate([part.populations for part in parts])
        self._eta = eta
        self._total = _log_total(self._scores[self._valid])

    def largest_log_ratio(self, change: Neighbour) -> float | None:
        """Return the largest |log(chance before / chance after)| of a context valid on both.

        ``None`` where no context is.
        """
        after = self._valid.copy()
        after[change.lost], after[change.gained] = False, True
        common = self._valid & after
        if not common.any():
            return None
        covers = self._covers(change)
        total = _log_total(self._scores[after] - self._eta * covers[after])
        ratios = total - self._total + self._eta * covers[common]
        return float(np.abs(ratios).max())

    def _covers(self, change: Neighbour) -> NDArray[np.bool_]:
        """Return which contexts cover the removed row."""
        space, schema = self._validity.record.space, self._validity.table.schema
        required = space.indices_of(pack([change.row.mask(schema)], schema.width))[0]
        return space.covering(np.arange(space.size, dtype=np.uint64), int(required))


def _log_total(scores: NDArray[np.float64]) -> float:
    best = float(scores.max())
    return best + float(np.log(np.exp(scores - best).sum()))


@dataclass(frozen=True)
class Ratio:
    """The experiment."""

    name: str = "ratio"
    title: str = "Chances where COE differs"
    source: str = "Section 6.7, the probability-ratio experiment"
    remarks: tuple[str, ...] = (
        "Ratios are exact: the direct mechanism with the paper's exponent epsilon / 2, on contexts "
        "that are valid both before and after the removal of one row. A context that is valid on "
        "one of the two tables only has no finite ratio at all; the paper leaves those out.",
    )
    usual: tuple[str, ...] = REDUCED[:1]  # the paper says: over the salary dataset
    fallback: str = "synthetic_reduced"

    def units(self, tables: Sequence[str], *, quick: bool, seed: int) -> list[Unit]:
        """Return the work: every record of every table and detector."""
        return [
            Unit(KIND, table, detector, number, seed, (_PART,))
            for table in tables
            for detector in DETECTORS
            for number in range(QUICK if quick else REPETITIONS)
        ]

    def rows(self, store: Store, tables: Sequence[str], *, quick: bool, seed: int) -> list[Any]:
        """Return a row for every table and detector."""
        units = self.units(tables, quick=quick, seed=seed)
        return [
            self._row(table, detector, [u for u in units if (u.table, u.detector) == pair], store)
            for table in tables
            for detector in DETECTORS
            for pair in [(table, detector)]
        ]

    def _row(
        self, table: str, detector: str, units: Sequence[Unit], store: Store
    ) -> dict[str, Any]:
        found = [store.found(unit)[_PART] for unit in units if not store.missing(unit)]
        ratios = np.array([ratio for one in found for ratio in one["log_ratios"]])
        beyond = [any(ratio > EPSILON + 1e-9 for ratio in one["log_ratios"]) for one in found]
        return {
            "experiment": self.name,
            "table": table,
            "detector": detector,
            "epsilon": str(EPSILON),
            "records": len(found),
            "removals_per_record": REMOVALS,
            "changes_of_coe": len(ratios) + sum(one["nothing_common"] for one in found),
            "beyond_the_bound": int((ratios > EPSILON + 1e-9).sum()),
            "records_beyond": sum(beyond),
            "largest_log_ratio": round(float(ratios.max()), 4) if len(ratios) else None,
            "nothing_common": sum(one["nothing_common"] for one in found),
            "paper_beyond": 0 if "salary" in table else None,
        }


EXPERIMENT = Ratio()
