"""The exact distribution of a release with its facts, on small tables. For the owner only.

Private: everything. Facts are drawn after the context, independently of one another, with noise
whose distribution is known in closed form (docs/proofs/facts.md): nothing is replayed here. An
answer is the context and what was drawn for its facts, before numbers are made plausible, which
only takes something away: a noisy count, or a place on the grid. Noise has no largest value, so all
counts beyond a public one are a single answer.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Any

from pcor.audit.exact import PATH_LIMIT, planned_log_chances, selection_log_chances
from pcor.errors import TooLarge, check_whole
from pcor.public.context import Context
from pcor.releasing.fact_draws import FactRows
from pcor.releasing.facts import PlannedCount, PlannedFact
from pcor.releasing.plan import Plan
from pcor.releasing.settings import Settings
from pcor.rows.table import Table

# A context, and for each draw of its facts what was drawn.
FactAnswer = tuple[Context, tuple[int, ...]]
LogChances = dict[int, float]


def exact_answers(
    table: Table,
    record: int | str,
    epsilon: object,
    *,
    most: int = 100,
    limit: int = PATH_LIMIT,
    **options: Any,
) -> dict[FactAnswer | None, float]:
    """Return the logarithm of the chance of every answer, context and facts together.

    For the owner only. ``None`` stands for "none was found". ``pcor.audit.largest_log_ratio``
    compares two tables.

    Args:
        table: the rows.
        record: the record's key.
        epsilon: the total cost.
        most: noisy counts from this on are one answer, and so are those up to minus it.
        limit: the most answers, and the most paths of decisions.
        **options: as for ``pcor.release``: facts, settings, or detector, search, ...

    Raises:
        TooLarge: there are more answers, or paths, than the limit.
    """
    check_whole("most", most)
    plan = Settings.of(**options).plan(table.schema, epsilon)
    answers: dict[FactAnswer | None, float] = {}
    for context, log, draws in fact_chances(plan, table, record, most=most, limit=limit):
        if context is None:
            answers[None] = log
            continue
        if len(answers) + math.prod(map(len, draws)) > limit:
            raise TooLarge(
                f"the release has more than {limit:,} answers; take fewer facts, a coarser grid, a "
                "smaller most=, or raise limit="
            )
        for drawn in itertools.product(*(chances.items() for chances in draws)):
            places = tuple(place for place, _ in drawn)
            answers[context, places] = log + math.fsum(more for _, more in drawn)
    return answers


def fact_chances(
    plan: Plan, table: Table, record: int | str, *, most: int, limit: int = PATH_LIMIT
) -> Iterator[tuple[Context | None, float, list[LogChances]]]:
    """Yield each context with the logarithm of its chance and, given it, those of each draw."""
    rows = FactRows.read(plan.facts, table, table.record(record))
    for context, log in planned_log_chances(plan, table, record, limit).items():
        if context is None:
            yield None, log, []
        else:
            draws = (chances_of(fact, rows, context.mask, most) for fact in plan.facts)
            yield context, log, list(itertools.chain.from_iterable(draws))


def chances_of(fact: PlannedFact, rows: FactRows, mask: int, most: int) -> list[LogChances]:
    """Return, for each draw of a fact, the logarithm of the chance of everything it can be."""
    if isinstance(fact, PlannedCount):
        return [noisy_log_chances(rows.number(fact, mask), float(fact.rate), most)]
    return [
        dict(
            enumerate(selection_log_chances(scores, eta=fact.eta, mechanism="exponential").tolist())
        )
        for scores in rows.scores(fact, mask)
    ]


def noisy_log_chances(number: int, rate: float, most: int) -> LogChances:
    """Return the logarithms of the chances of a number with discrete Laplace noise.

    What lies beyond ``most`` on either side counts as that.
    """
    shape = math.log(-math.expm1(-rate)) - math.log1p(math.exp(-rate))
    inside = {k: shape - rate * abs(k - number) for k in range(1 - most, most)}
    return {
        -most: _log_tail(number + most, rate),
        **inside,
        most: _log_tail(most - number, rate),
    }


def _log_tail(least: int, rate: float) -> float:
    """Return the logarithm of the chance that noise is at least this large."""
    if least > 0:
        return -rate * least - math.log1p(math.exp(-rate))
    return math.log1p(-math.exp(-rate * (1 - least)) / (1 + math.exp(-rate)))
