"""Is it locality that makes the searches work? A control: outliers assigned at random (ROA).

Private: the records asked about. The paper's source has a paragraph that its published version
leaves out: a rule without any structure calls V an outlier of C iff MD5(C, V) = 0 mod 128, and
breadth-first search then finds hardly anything beside its start. Beside it, the real detectors.

Why it is right: the search sees a table only through verdicts, so putting other verdicts in their
place is all that is needed. The contexts hashed are those that contain the record's own values, as
for every other rule.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pcor.paper.comparison import REPETITIONS
from pcor.paper.experiment import Experiment, Found, ResultRow
from pcor.paper.published import RANDOM_ASSIGNMENT
from pcor.paper.subjects import Subject, one_subject, seed_of, valid_context
from pcor.paper.tables import REDUCED
from pcor.paper.units import Unit
from pcor.paper.ways import DETECTORS, paper
from pcor.public.context import Words
from pcor.releasing.run import explore
from pcor.rows.cell_table import CellTable
from pcor.search.validity import Validity
from pcor.testing import seeded

KIND = "locality"
MODULUS = 128
SAMPLES = 50
QUICK = 5

_REAL, _RANDOM = "detector", "random"
_TRIES = 1 << 16


class RandomAssignment(Validity):
    """Verdicts by a hash of the context and the record: no structure at all."""

    def judge(
        self, cells: CellTable, words: Words, moments: NDArray[np.float64] | None = None
    ) -> NDArray[np.bool_]:
        """Return whether MD5(context, record) is 0 modulo 128, for each context."""
        del cells, moments
        record = str(self.record.key).encode()
        return np.array([_is_zero(word.tobytes() + record) for word in words.astype("<u8")])


def _is_zero(content: bytes) -> bool:
    digest = hashlib.md5(content, usedforsecurity=False).digest()
    return int.from_bytes(digest, "big") % MODULUS == 0


def measure(unit: Unit) -> dict[str, Any]:
    """Count the samples that breadth-first search collects, by the detector and at random."""
    subject = one_subject(unit.table, unit.detector, unit.number, unit.seed, "many")
    seed = seed_of(unit.seed, KIND, unit.table, unit.detector, unit.number)
    return {part: _collected(subject, seed, at_random=part == _RANDOM) for part in unit.parts}


def _collected(subject: Subject, seed: int, *, at_random: bool) -> int:
    """Return how many samples there are; 0 where not even a start was found."""
    known, chooser = subject.validity, seeded(seed)
    kind = RandomAssignment if at_random else Validity
    validity = kind(known.table, known.record, known.detector)
    start = valid_context(validity, chooser, _TRIES) if at_random else subject.start
    if start is None:
        return 0
    plan = paper("breadth_first", "0.2", SAMPLES).plan(known.table.schema, known.detector, start)
    candidates, _ = explore(plan, validity, chooser)
    return len(candidates)


class Locality(Experiment):
    """The experiment."""

    def repetitions(self, *, quick: bool) -> int:
        """Return how many records are asked about."""
        return QUICK if quick else REPETITIONS

    def parts(self, detector: str) -> tuple[str, ...]:
        """Return the rules; the random one needs to be tried with one detector's records only."""
        return (_REAL, _RANDOM) if detector == "lof" else (_REAL,)

    def table_rows(self, table: str, found: Found) -> Iterator[ResultRow]:
        """Yield a row for every rule."""
        rules = [(name, name, _REAL) for name in DETECTORS]
        for rule, detector, part in (*rules, ("at random", "lof", _RANDOM)):
            sizes = [unit[part] for unit in found[detector] if part in unit]
            counted = Counter(sizes)
            published = rule == "at random" and "salary" in table
            yield {
                "rule": rule,
                "records": len(sizes),
                "full_sets": counted[SAMPLES],
                "start_only": counted[1],
                "two": counted[2],
                "three": counted[3],
                "mean_samples": round(float(np.mean(sizes)), 2) if sizes else 0.0,
                "sizes": sorted(counted.items()),
                **(RANDOM_ASSIGNMENT if published else {}),
            }


EXPERIMENT = Locality(
    name="locality",
    title="Locality: outliers assigned at random",
    source="the paragraph 'Random Outlier Assignment' of the paper's source",
    kind=KIND,
    remarks=(
        "How many samples breadth-first search (n = 50) collects before nothing is in reach. "
        "'At random' puts MD5(context, record) = 0 mod 128 in place of the detector.",
    ),
    usual=(*REDUCED, "salary_51k"),
)
