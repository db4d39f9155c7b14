"""A lower bound on epsilon from draws: how much do the answers on two tables differ at least?

Private: everything; for the owner only. For mechanisms whose distribution cannot be computed: a
bound from below can show that a claim is broken, never that it holds.

One half of the draws chooses an event, a set of answers that is likelier on one table; the other
half, which the choice has not seen, tests it. The chance of the event is bounded from below on the
one table and from above on the other (Clopper and Pearson 1934), each wrong with a chance of at
most half of what the confidence leaves. So the bound is above the true epsilon with a chance of at
most 1 - confidence, whatever the mechanism and however the event was chosen.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pcor.audit.owner_only import OwnerOnly
from pcor.errors import NoValidContext, ParameterError, check_whole
from pcor.mechanism.selection import SystemRandomSource
from pcor.public.context import Context
from pcor.releasing.run import check_start, draw
from pcor.releasing.settings import Settings
from pcor.rows.table import Table
from pcor.search.validity import Validity

DrawFunction = Callable[[], Hashable]
Tally = Counter[Hashable]
Counts = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, repr=False)
class SampledEpsilon(OwnerOnly):
    """What the draws show. Private: for the owner only.

    Attributes:
        epsilon: with the stated confidence no epsilon below this holds between the two tables; 0
            where the draws show nothing.
        delta: the additive slack that was granted.
        confidence: the chance that the bound is not above the truth, at least.
        draws: how many answers were drawn on each table.
        likelier: where the event is likelier: ``"here"`` or ``"there"``.
        event: the answers that tell the tables apart.
    """

    epsilon: float
    delta: float
    confidence: float
    draws: int
    likelier: str
    event: frozenset[Hashable]

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers for the owner's programs; answers as text, sorted."""
        return dict(vars(self)) | {"event": sorted(map(str, self.event))}


def sampled_epsilon(
    draw_here: DrawFunction,
    draw_there: DrawFunction,
    draws: int,
    *,
    confidence: float = 0.95,
    delta: float = 0.0,
) -> SampledEpsilon:
    """Return an epsilon that the two mechanisms exceed, with a confidence. For the owner only.

    The larger it can be shown to be depends on the draws: with n of them on each table and a
    confidence of 0.95 it never exceeds about ln(n / 8), even where one answer is impossible on one
    side.

    Args:
        draw_here: draws one answer on the table; ``answers`` makes such a function.
        draw_there: the same on the other table.
        draws: how many answers to draw on each table; half choose the event, half test it.
        confidence: the chance that what is returned is not above the truth, at least.
        delta: an additive slack that the mechanism may use.

    Raises:
        ParameterError: ``draws``, ``confidence`` or ``delta`` is out of range.
    """
    check_whole("draws", draws)
    if draws < 2:
        raise ParameterError("draws must be at least 2: one half chooses the event, one tests it")
    if not 0 < confidence < 1:
        raise ParameterError("confidence must be a number above 0 and below 1, such as 0.95")
    if not 0 <= delta < 1:
        raise ParameterError("delta must be a number of at least 0 and below 1")
    chosen = draws // 2
    risk = (1 - confidence) / 2
    here, there = _tally(draw_here, chosen), _tally(draw_there, chosen)
    forward = _event(here, there, chosen, risk, delta)
    backward = _event(there, here, chosen, risk, delta)
    likelier = "here" if forward[0] >= backward[0] else "there"
    event = forward[1] if likelier == "here" else backward[1]
    tested = draws - chosen
    hits = {
        "here": _hits(_tally(draw_here, tested), event),
        "there": _hits(_tally(draw_there, tested), event),
    }
    other = "there" if likelier == "here" else "here"
    sides = np.array([hits[likelier]]), np.array([hits[other]])
    bound = float(_bounds(*sides, tested, risk, delta)[0])
    return SampledEpsilon(max(0.0, bound), delta, confidence, draws, likelier, event)


def answers(table: Table, record: int | str, epsilon: object, **options: Any) -> DrawFunction:
    """Return a function that draws one answer of a release. For the owner only; nothing is charged.

    The answers are contexts, and ``None`` where none was found. Every draw is by the operating
    system's randomness and the code of ``pcor.release``.

    Args:
        table: the rows.
        record: the record's key.
        epsilon: the total cost of a release.
        **options: the options of ``pcor.release``.
    """
    plan = Settings.of(**options).plan(table.schema, epsilon)
    queried = table.record(record)
    check_start(plan.search, queried)
    validity, chooser = Validity(table, queried, plan.detector), SystemRandomSource()

    def answer() -> Context | None:
        try:
            return Context.from_mask(table.schema, draw(plan, validity, chooser))
        except NoValidContext:
            return None

    return answer


def _tally(draw_one: DrawFunction, draws: int) -> Tally:
    return Counter(draw_one() for _ in range(draws))


def _hits(tally: Tally, event: frozenset[Hashable]) -> int:
    return sum(tally[answer] for answer in event)


def _event(
    likely: Tally, unlikely: Tally, draws: int, risk: float, delta: float
) -> tuple[float, frozenset[Hashable]]:
    """Return what would show most if these draws were the test, and the event that shows it.

    Answers are taken by falling ratio of their counts: a good choice, and the bound holds for any.
    """
    order = sorted(likely, key=lambda a: (-likely[a] / (unlikely[a] + 1), -likely[a], str(a)))
    hits = np.cumsum([likely[answer] for answer in order])
    misses = np.cumsum([unlikely[answer] for answer in order])
    bounds = _bounds(hits, misses, draws, risk, delta)
    best = int(np.argmax(bounds))
    return float(bounds[best]), frozenset(order[: best + 1])


def _bounds(hits: Counts, misses: Counts, draws: int, risk: float, delta: float) -> Floats:
    """Return the log ratios that both bounds leave, minus infinity where they leave none."""
    from scipy import stats  # takes long to import

    low = np.where(hits > 0, stats.beta.ppf(risk, np.maximum(hits, 1), draws - hits + 1), 0.0)
    room = np.maximum(draws - misses, 1)
    high = np.where(misses < draws, stats.beta.ppf(1 - risk, misses + 1, room), 1.0)
    left = np.maximum(low - delta, 0.0)
    bounds: Floats = np.log(left, out=np.full(len(left), -np.inf), where=left > 0) - np.log(high)
    return bounds
