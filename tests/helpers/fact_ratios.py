"""Small tables with a grid, and the largest log ratio of context and facts between two of them."""

from __future__ import annotations

from typing import Any

import pcor
from pcor.audit.fact_answers import fact_chances
from pcor.releasing.settings import Settings
from tests.helpers.neighbours import Row

# 41 points: between two pays lie points that nobody has.
GRID = {"column": "pay", "low": 0, "high": 40, "step": 1}
SCHEMA = pcor.Schema(
    metric=GRID, attributes={"job": ["a", "b", "c"], "city": ["x", "y"]}, id="id", rows="people"
)
MOST = 40  # noisy counts from here on are one answer

# Everybody at one of two pays, far apart: a median between them is moved most by one more row.
APART: list[Row] = [("a", "x", 40.0), *[("a", "x", 5.0)] * 5, *[("b", "y", 36.0)] * 3]
WIDE = pcor.Schema(
    metric=GRID | {"low": -40, "high": 80},
    attributes={"job": ["a", "b", "c"], "city": ["x", "y"]},
    id="id",
)


def joint_ratio(here: pcor.Table, there: pcor.Table, epsilon: object, **options: Any) -> float:
    """Return the largest absolute log ratio of any answer, context and facts together.

    Draws are independent given the context: an answer's ratio is a sum, and the largest sum has the
    largest of every part.
    """
    plan = Settings.of(**options).plan(here.schema, epsilon)
    found = [
        {c: (log, draws) for c, log, draws in fact_chances(plan, table, 0, most=MOST)}
        for table in (here, there)
    ]
    assert found[0].keys() == found[1].keys()
    worst = 0.0
    for context, (log, draws) in found[0].items():
        other, others = found[1][context]
        moves = [[a[k] - b[k] for k in a] for a, b in zip(draws, others, strict=True)]
        up = log - other + sum(map(max, moves))
        down = other - log - sum(map(min, moves))
        worst = max(worst, up, down)
    return worst


def facts_ratio(here: pcor.Table, there: pcor.Table, epsilon: object, **options: Any) -> float:
    """Return the largest absolute log ratio of the facts of any one context, by themselves."""
    plan = Settings.of(**options).plan(here.schema, epsilon)
    kept, other = (
        {c: draws for c, _, draws in fact_chances(plan, table, 0, most=MOST)}
        for table in (here, there)
    )
    ratios = [0.0]
    for context in kept.keys() & other.keys():
        pairs = list(zip(kept[context], other[context], strict=True))
        for sign in (1, -1):
            ratios.append(sum(max(sign * (a[k] - b[k]) for k in a) for a, b in pairs))
    return max(ratios)
