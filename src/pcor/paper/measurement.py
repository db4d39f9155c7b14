"""Release for one record in several ways, and see how good each context is. NOT PRIVATE.

Private: all of it. Utility is the population of the released context over that of the largest
valid one; with the overlap utility, rows shared with the start context over all its rows, which is
the most that a valid context can share. A release that comes back with nothing has utility 0.

Every release is really drawn, with seeded decisions. Times are processor time of a process that
keeps to one core: what a release takes on one core of a quiet machine. The direct mechanism walks
the contexts best first; draws at several epsilons share one walk, so only the first of them is
timed.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from pcor.errors import NoValidContext
from pcor.mechanism.randomness import RandomSource
from pcor.paper.subjects import Subject, as_the_program_did, seed_of, subjects
from pcor.paper.units import Unit
from pcor.paper.ways import Way
from pcor.releasing.plan import Plan
from pcor.releasing.run import draw
from pcor.search.best_first import BestFirst
from pcor.search.validity import Validity
from pcor.testing import seeded

KIND = "releases"

Measured = dict[str, Any]

_warm: set[tuple[str, str, object]] = set()


def measure(unit: Unit) -> dict[str, Any]:
    """Measure all ways of a unit; the answer has one entry for each group and way."""
    answer: dict[str, Any] = {}
    ways = [Way.read(part) for part in unit.parts]
    asked = (unit.table, unit.detector, unit.number, unit.seed)
    for subject in (*subjects(*asked), *as_the_program_did(*asked)):
        walk = _SubjectReleases(subject)
        for way in ways:
            chooser = seeded(seed_of(unit.seed, unit.table, unit.detector, unit.number, way.key))
            if (unit.table, unit.detector, way.settings.search) not in _warm:
                # What is compiled at first use must not count as time of a release.
                _warm.add((unit.table, unit.detector, way.settings.search))
                _SubjectReleases(subject).measured(way, seeded(0))
            result = walk.measured(way, chooser)
            for group in subject.groups:
                answer.setdefault(way.key, {})[group] = result
    return {part: answer.get(part, {}) for part in unit.parts}


class _SubjectReleases:
    """The releases for one subject; the direct mechanism's order is kept."""

    def __init__(self, subject: Subject) -> None:
        self._subject = subject
        self._order: BestFirst | None = None

    def measured(self, way: Way, chooser: RandomSource) -> Measured:
        validity = self._subject.validity
        plan = way.plan(validity.table.schema, validity.detector, self._subject.start)
        begun = time.process_time()
        fresh = Validity(validity.table, validity.record, validity.detector)
        shares_walk = way.direct and not way.overlaps
        timed = not (shares_walk and self._order is not None)
        try:
            mask = self._direct(plan, fresh, chooser) if shares_walk else draw(plan, fresh, chooser)
        except NoValidContext:
            return {"utility": 0.0, "seconds": time.process_time() - begun, "nothing": True}
        seconds = time.process_time() - begun
        measured: Measured = {"utility": round(self._utility(way, mask), 6)}
        return measured | ({"seconds": round(seconds, 6)} if timed else {})

    def _direct(self, plan: Plan, validity: Validity, chooser: RandomSource) -> int:
        """Draw as ``release.draw`` does, going on with a walk that was begun before."""
        if self._order is None:
            self._order = BestFirst(validity, validity.table.cells.cell_counts)
        place = chooser.select_first(self._order, eta=plan.bill.eta, mechanism=plan.selection)
        assert place is not None  # noqa: S101 (a subject has valid contexts)
        return self._order.mask(place)

    def _utility(self, way: Way, mask: int) -> float:
        table, start = self._subject.validity.table, self._subject.start.mask
        if way.overlaps:
            shared, most = table.populations([mask & start, start])
            return int(shared) / int(most)
        return int(table.populations([mask])[0]) / self._largest()

    def _largest(self) -> int:
        """Return the population of the largest valid context."""
        if self._order is None:
            validity = self._subject.validity
            self._order = BestFirst(validity, validity.table.cells.cell_counts)
        while not self._order.ranked():
            self._order.advance()
        return self._order.ranked()[0].utility


def measurement_order(ways: Sequence[Way]) -> list[Way]:
    """Return the ways in the order in which they are measured: the timed direct draw first.

    The paper's epsilon is 0.2, so the direct mechanism is timed there.
    """
    unique = list(dict.fromkeys(ways))
    return sorted(unique, key=lambda way: (not way.direct, way.epsilon != "0.2"))
