"""Context and facts together: exact distributions against every one-row neighbour.

No sampling here. Chances are computed (``pcor.audit.exact_answers``), so the tests cannot flicker.
The second half breaks a fact on purpose and sees the same check say no.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

import pcor
from pcor.audit.exact import selection_log_chances
from pcor.public.grid import MetricGrid
from pcor.releasing import facts as facts_module
from pcor.releasing.fact_draws import FactRows, rank_scores
from pcor.releasing.facts import PlannedQuantile
from tests.helpers.fact_ratios import APART, SCHEMA, WIDE, facts_ratio, joint_ratio
from tests.helpers.neighbours import DETECTORS, Row, f_neighbours, one_row_neighbours, small
from tests.helpers.small_tables import EPSILON, EVEN, LARGE, NESTED, ROUNDING, tables, unhurried

ALL = ["count", "rank", "median", "quantile:0.9"]
GRUBBS = DETECTORS["grubbs"]
TAIL = pcor.Tail(0.4, min_population=3)
DP: dict[str, Any] = {"detector": TAIL, "guarantee": "dp"}


def everyone(
    rows: list[Row], detector: pcor.Detector, schema: pcor.Schema = SCHEMA
) -> tuple[pcor.Table, list[pcor.Table]]:
    """Return a table and all its one-row neighbours, whatever their COE."""
    others = [small(other, detector, schema).table for other in one_row_neighbours(rows)]
    return small(rows, detector, schema).table, others


@pytest.mark.parametrize(
    "rows", [LARGE, NESTED, EVEN, APART], ids=["large", "nested", "even", "apart"]
)
def test_context_and_facts_cost_no_more_than_the_charged_epsilon(rows: list[Row]) -> None:
    for name in ("grubbs", "lof"):
        here, others = f_neighbours(rows, DETECTORS[name], SCHEMA)
        for there in others:
            options = {"detector": DETECTORS[name], "facts": ALL}
            worst = joint_ratio(here.table, there.table, EPSILON, **options)
            assert worst <= EPSILON + ROUNDING, name


@unhurried
@given(tables(), st.sampled_from([["count"], ["rank:low"], ["median"], ALL]))
def test_on_any_small_table(rows: list[Row], facts: list[str]) -> None:
    here, others = f_neighbours(rows, GRUBBS, SCHEMA)
    for there in others[:8]:
        worst = joint_ratio(here.table, there.table, EPSILON, detector=GRUBBS, facts=facts)
        assert worst <= EPSILON + ROUNDING


@pytest.mark.parametrize("rows", [LARGE, APART], ids=["large", "apart"])
def test_under_dp_it_holds_for_every_neighbour(rows: list[Row]) -> None:
    here, others = everyone(rows, TAIL)
    for there in others:
        assert joint_ratio(here, there, EPSILON, facts=ALL, **DP) <= EPSILON + ROUNDING


def test_the_facts_of_a_context_are_private_whatever_becomes_of_coe() -> None:
    here, others = everyone(NESTED, GRUBBS)
    changed = 0
    for there in others:
        given = {"detector": GRUBBS, "facts": ALL, "facts_share": "1/2"}
        assert facts_ratio(here, there, 2, **given) <= 1 + ROUNDING
        same = [set(pcor.matching_contexts(t, 0, GRUBBS).contexts) for t in (here, there)]
        changed += same[0] != same[1]
    assert changed > 0


def test_all_answers_one_by_one_are_what_the_parts_say() -> None:
    here, others = f_neighbours(EVEN, GRUBBS, SCHEMA)
    options: dict[str, Any] = {"epsilon": EPSILON, "detector": GRUBBS, "facts": ["count", "rank"]}
    chances = pcor.audit.exact_answers(here.table, 0, most=40, **options)
    assert math.isclose(math.fsum(map(math.exp, chances.values())), 1)
    there = pcor.audit.exact_answers(others[0].table, 0, most=40, **options)
    whole = pcor.audit.largest_log_ratio(chances, there)
    assert math.isclose(whole, joint_ratio(here.table, others[0].table, **options))
    assert whole <= EPSILON + ROUNDING
    # The context alone has the chance that all answers with it have together.
    alone = pcor.audit.exact_distribution(here.table, 0, **options)
    for context, chance in alone.items():
        own = [math.exp(log) for key, log in chances.items() if key and key[0] == context]
        assert math.isclose(math.fsum(own), chance)


def test_more_answers_than_the_limit_are_refused() -> None:
    here = small(EVEN, GRUBBS, SCHEMA).table
    with pytest.raises(pcor.errors.TooLarge, match="coarser grid"):
        pcor.audit.exact_answers(here, 0, 1, detector=GRUBBS, facts=ALL)


# -- broken on purpose -----------------------------------------------------------------------------

# Nearly all of epsilon is for the facts, so that they alone can break it.
SHARE = "0.95"


@pytest.mark.parametrize(("fact", "epsilon"), [("count", 1), ("rank", 1), ("median", 6)])
def test_a_fact_with_seven_tenths_of_its_sensitivity_is_noticed(
    fact: str, epsilon: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, others = everyone(APART, TAIL, WIDE)

    def worst() -> float:
        given: dict[str, Any] = {"facts": [fact], "facts_share": SHARE, **DP}
        return max(joint_ratio(here, there, epsilon, **given) for there in others)

    assert 0.9 * epsilon < worst() <= epsilon + ROUNDING
    planned = facts_module._planned
    monkeypatch.setattr(
        facts_module,
        "_planned",
        lambda *given: replace(planned(*given), most=Fraction(7, 10)),  # type: ignore[arg-type]
    )
    assert worst() > epsilon


@pytest.mark.parametrize("share", [Fraction(1, 2), Fraction(9, 10), Fraction(1, 20)])
@pytest.mark.parametrize("place", range(3), ids=["value", "low", "high"])
@pytest.mark.parametrize("replaced", [False, True], ids=["more", "in the place of another"])
def test_each_draw_of_a_quantile_costs_a_third_and_not_less(
    share: Fraction, place: int, replaced: bool
) -> None:
    """Two heaps of rows, and nobody between them: one more row moves the draw by nearly all.

    Which heap has the wanted rank, and by how little, is tried out. Where only some rows of a
    person are kept, one that arrives also takes the place of one of either heap.
    """
    grid = MetricGrid(0, 100, 1)
    most = [0.0, 0.0]
    for broken, rows in enumerate((1, Fraction(7, 10))):
        fact = PlannedQuantile("q", Fraction(1), rows, share, grid, replaced)  # type: ignore[arg-type]
        target = fact.targets[place]
        total = 40 * fact.shift
        for lower in range(int(share * total) + target - 3, int(share * total) + target + 4):
            heaps = np.zeros(grid.size, dtype=np.int64)
            heaps[10], heaps[90] = lower, total - lower
            before = rank_log_chances(heaps, fact, target)
            for at, left in product((0, 50, 100), (10, 90) if replaced else (10,)):
                after = heaps.copy()
                after[at] += 1
                after[left] -= replaced
                moved = np.abs(rank_log_chances(after, fact, target) - before).max()
                most[broken] = max(most[broken], float(moved))
    assert 0.8 / 3 < most[0] <= 1 / 3 + ROUNDING
    assert most[1] > 1 / 3


def rank_log_chances(
    rows: NDArray[np.int64], fact: PlannedQuantile, target: int
) -> NDArray[np.float64]:
    scores = rank_scores(rows, fact, target).tolist()
    return selection_log_chances(scores, eta=fact.eta, mechanism="exponential")


def test_a_fact_of_another_state_of_the_rows_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The context is of these rows, the facts of others: two more have arrived meanwhile."""
    here, others = f_neighbours(EVEN, GRUBBS, SCHEMA)
    options: dict[str, Any] = {"detector": GRUBBS, "facts": ["count"], "facts_share": "0.9"}
    honest = max(joint_ratio(here.table, there.table, EPSILON, **options) for there in others)
    assert honest <= EPSILON + ROUNDING
    later = small([*EVEN, ("a", "x", 3.0), ("a", "x", 4.0)], GRUBBS, SCHEMA).table
    read = FactRows.read.__func__  # type: ignore[attr-defined]

    def stale(cls: type[FactRows], facts: Any, table: pcor.Table, record: Any) -> FactRows:
        found: FactRows = read(cls, facts, later if table is here.table else table, record)
        return found

    monkeypatch.setattr(FactRows, "read", classmethod(stale))
    assert max(joint_ratio(here.table, there.table, EPSILON, **options) for there in others) > 1
