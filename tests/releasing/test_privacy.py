"""The guarantee itself: exact output distributions against every one-row neighbour with equal COE.

No sampling here. The replaying chooser takes every branch of the code that releases, so the
distributions are exact up to float64 rounding (ROUNDING) and the tests cannot flicker. The second
half breaks the mechanism on purpose and sees the same check say no.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import event, given
from hypothesis import strategies as st

import pcor
from pcor.public.accounting import release_cost
from pcor.search import Explorer
from tests.helpers.neighbours import DETECTORS, Row, f_neighbours, small, worst_ratio
from tests.helpers.small_tables import (
    EPSILON,
    EVEN,
    LARGE,
    NEARLY_EQUAL,
    NESTED,
    ROUNDING,
    STEEP,
    OnlyWithoutB,
    halve_the_noise,
    lowest,
    tables,
    unhurried,
)

ONE_SHOT: list[pcor.Search] = [
    pcor.Direct(),
    pcor.Uniform(samples=3),
    pcor.WidestFirst(samples=3),
]
FROM_A_FOUND_START: list[pcor.Search] = [
    pcor.RandomWalk(samples=2),
    pcor.DepthFirst(samples=2),
    pcor.BreadthFirst(samples=2),
]
FROM_A_GIVEN_START: list[pcor.Search] = [
    pcor.RandomWalk(samples=3),
    pcor.DepthFirst(samples=3),
    pcor.BreadthFirst(samples=3),
]


@unhurried
@given(tables(), st.sampled_from(sorted(DETECTORS)))
def test_no_search_moves_a_chance_by_more_than_the_charged_epsilon(
    rows: list[Row], name: str
) -> None:
    detector = DETECTORS[name]
    here, others = f_neighbours(rows, detector)
    event(f"f-neighbours: {min(len(others), 5)}{'+' if len(others) > 5 else ''}")
    if not others:
        return
    given_start = [replace(s, start=lowest(here)) for s in FROM_A_GIVEN_START]  # type: ignore[call-arg]
    for search in (*ONE_SHOT, *FROM_A_FOUND_START, *given_start):
        for accounting in ("tight", "paper"):
            worst = worst_ratio(
                here,
                others,
                epsilon=EPSILON,
                detector=detector,
                search=search,
                accounting=accounting,
            )
            assert worst <= EPSILON + ROUNDING, (search, accounting)


@unhurried
@given(tables())
def test_permute_and_flip_and_overlap_keep_the_charged_epsilon(rows: list[Row]) -> None:
    detector = DETECTORS["lof"]
    here, others = f_neighbours(rows, detector)
    if not others:
        return
    for search in (*ONE_SHOT, *FROM_A_FOUND_START):
        flipped = worst_ratio(
            here,
            others,
            epsilon=EPSILON,
            detector=detector,
            search=search,
            selection="permute_and_flip",
        )
        assert flipped <= EPSILON + ROUNDING, search
    for search in FROM_A_FOUND_START:
        overlap = worst_ratio(
            here, others, epsilon=EPSILON, detector=detector, search=search, utility="overlap"
        )
        assert overlap <= EPSILON + ROUNDING, search


@unhurried
@given(tables())
def test_a_utility_that_is_not_monotone_pays_double_and_keeps_its_epsilon(rows: list[Row]) -> None:
    detector = DETECTORS["lof"]
    here, others = f_neighbours(rows, detector)
    for search in (pcor.Direct(), pcor.BreadthFirst(samples=2)):
        if others:
            worst = worst_ratio(
                here,
                others,
                epsilon=EPSILON,
                detector=detector,
                search=search,
                utility=OnlyWithoutB(),
            )
            assert worst <= EPSILON + ROUNDING, search


@unhurried
@given(tables(), st.sampled_from([pcor.DepthFirst, pcor.BreadthFirst]))
def test_a_steered_search_that_sees_all_of_its_component_is_never_worse_by_default(
    rows: list[Row], kind: type[pcor.DepthFirst]
) -> None:
    """The visited contexts are then the same by either mechanism, and the last draw decides."""
    detector = DETECTORS["lof"]
    here = small(rows, detector)
    if not 1 < len(here.coe) < 7:  # more have too many paths to replay quickly
        return
    search = kind(samples=8, start=lowest(here))

    def expected(selection: str | None) -> float:
        chances = pcor.audit.exact_distribution(
            here.table, 0, EPSILON, detector=detector, search=search, selection=selection
        )
        sizes = here.table.populations([context.mask for context in chances])
        return float(sizes @ list(chances.values()))

    usual, exponential = expected(None), expected("exponential")
    assert usual == expected("permute_and_flip")
    assert usual >= exponential - ROUNDING


class TenTimes(pcor.PopulationSize):
    """Derived from the population, scored otherwise, and honest about it."""

    sensitivity = 10

    def score(self, population: pcor.Population) -> int:
        return 10 * population.size


@unhurried
@given(tables())
def test_a_derived_utility_is_scored_and_priced_by_its_own_word(rows: list[Row]) -> None:
    """Ten times the score at a tenth of the exponent: the very chances of the population."""
    detector = DETECTORS["lof"]
    here, others = f_neighbours(rows, detector)
    if not others:
        return
    for search in (pcor.Direct(), pcor.WidestFirst(samples=3), pcor.BreadthFirst(samples=2)):
        options: dict[str, Any] = {"epsilon": EPSILON, "detector": detector, "search": search}
        ten = pcor.audit.exact_distribution(here.table, 0, utility=TenTimes(), **options)
        assert ten == pytest.approx(pcor.audit.exact_distribution(here.table, 0, **options))
        assert worst_ratio(here, others, utility=TenTimes(), **options) <= EPSILON + ROUNDING


# -- the same check rejects what is broken ---------------------------------------------------------


@pytest.mark.parametrize(
    ("search", "rows"),
    [
        (pcor.Direct(), LARGE),
        (pcor.Uniform(samples=6), STEEP),
        (pcor.RandomWalk(samples=2), STEEP),
        (pcor.DepthFirst(samples=2), STEEP),
        (pcor.BreadthFirst(samples=2), STEEP),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_half_the_noise_is_found(
    search: pcor.Search, rows: list[Row], monkeypatch: pytest.MonkeyPatch
) -> None:
    detector = DETECTORS["lof"]
    here, others = f_neighbours(rows, detector)
    start = None if isinstance(search, pcor.Direct | pcor.Uniform) else lowest(here)
    options = {"epsilon": EPSILON, "detector": detector, "search": search, "start": start}
    assert worst_ratio(here, others, **options) <= EPSILON + ROUNDING
    monkeypatch.setattr("pcor.releasing.terms.release_cost", halve_the_noise(release_cost))
    assert worst_ratio(here, others, **options) > 1.3 * EPSILON


@dataclass(frozen=True)
class LargestStart(pcor.BreadthFirst):
    """Starts where most people are: the mistake that FINDINGS 6 warns of."""

    def explore(self, explorer: Explorer) -> list[int]:
        table = explorer._validity.table
        coe = explorer.valid(list(explorer.space.masks()))
        largest = coe[int(table.populations(coe).argmax())]
        start = pcor.Context.from_mask(table.schema, largest)
        return pcor.BreadthFirst(samples=self.samples, start=start).explore(explorer)


def test_a_start_context_chosen_by_population_is_found() -> None:
    detector = DETECTORS["lof"]
    here, others = f_neighbours(NEARLY_EQUAL, detector)
    honest = worst_ratio(
        here, others, epsilon=EPSILON, detector=detector, search=pcor.BreadthFirst(samples=2)
    )
    broken = worst_ratio(
        here, others, epsilon=EPSILON, detector=detector, search=LargestStart(samples=2)
    )
    assert honest <= EPSILON + ROUNDING
    assert broken == math.inf


@dataclass(frozen=True)
class TopOfTheStack(pcor.DepthFirst):
    """Algorithm 4 to the letter: ``<=`` in the loop, and the comment's "last in the stack"."""

    def explore(self, explorer: Explorer) -> list[int]:
        stack, visited = [explorer.begin(self.start, tries=self.tries)], list[int]()
        while len(visited) <= self.samples and stack:
            visited.append(stack[-1])
            children = [c for c in explorer.valid_neighbours(stack[-1]) if c not in visited]
            if children:
                # Goes round the explorer's guard, which refuses unpaid choices (next test).
                stack.append(children[explorer._paid(children)])
            else:
                stack.pop()
        return stack[-1:] or visited[-1:]


def test_a_loop_that_goes_on_and_returns_the_top_of_the_stack_is_found() -> None:
    detector = DETECTORS["lof"]
    here, others = f_neighbours(NESTED, detector)
    start = pcor.Context.from_bits(here.table.schema, "10011")
    # Nearly all of the budget goes to the one step that is paid for; it takes three.
    one_step: dict[str, Any] = {"samples": 2, "start": start, "final_share": 0.1}
    options: dict[str, Any] = {"epsilon": EPSILON, "detector": detector}
    honest = worst_ratio(here, others, search=pcor.DepthFirst(**one_step), **options)
    broken = worst_ratio(here, others, search=TopOfTheStack(**one_step), **options)
    assert honest <= EPSILON + ROUNDING
    assert broken > 1.8 * EPSILON


@dataclass(frozen=True)
class Overspending(pcor.DepthFirst):
    """Declares n - 1 paid choices and asks for one more."""

    def explore(self, explorer: Explorer) -> list[int]:
        start = explorer.begin(self.start, tries=self.tries)
        return [explorer.choose([start]) for _ in range(self.samples)]


def test_a_search_cannot_buy_more_choices_than_it_declared() -> None:
    here = small(NESTED, DETECTORS["lof"])
    with pytest.raises(RuntimeError, match="more paid choices"):
        pcor.release(
            here.table, 0, EPSILON, detector=DETECTORS["lof"], search=Overspending(samples=3)
        )


def test_a_utility_that_is_falsely_declared_monotone_is_found() -> None:
    detector = DETECTORS["lof"]
    here, others = f_neighbours(EVEN, detector)
    options: dict[str, Any] = {"epsilon": 0.1, "detector": detector, "search": pcor.Direct()}
    assert worst_ratio(here, others, utility=OnlyWithoutB(), **options) <= 0.1 + ROUNDING
    assert worst_ratio(here, others, utility=OnlyWithoutB(monotonic=True), **options) > 0.1


# -- the audit itself ------------------------------------------------------------------------------


@pytest.mark.parametrize("search", [*ONE_SHOT, *FROM_A_FOUND_START], ids=lambda search: search.name)
@pytest.mark.parametrize("selection", ["exponential", "permute_and_flip"])
def test_the_chances_add_up_to_one_over_valid_contexts(search: pcor.Search, selection: str) -> None:
    detector = DETECTORS["lof"]
    here = small(STEEP, detector)
    chances = pcor.audit.exact_distribution(
        here.table, 0, 1, detector=detector, search=search, selection=selection
    )
    assert sum(chances.values()) == pytest.approx(1.0, abs=1e-12)
    assert set(chances) <= here.coe


def test_direct_draws_in_proportion_to_the_exponential_of_the_population() -> None:
    detector = DETECTORS["lof"]
    here = small(LARGE, detector)
    found = pcor.matching_contexts(here.table, 0, detector)
    weights = [math.exp(0.3 * int(n)) for n in found.populations]
    chances = pcor.audit.exact_distribution(
        here.table, 0, 0.3, detector=detector, search="direct", selection="exponential"
    )
    for context, weight in zip(found.contexts, weights, strict=True):
        assert chances[context] == pytest.approx(weight / sum(weights), rel=1e-12)


def test_uniform_with_few_tries_can_come_back_with_nothing_and_says_how_often() -> None:
    detector = DETECTORS["lof"]
    here = small(LARGE, detector)
    search = pcor.Uniform(samples=1, tries=3)  # fewer than the 8 contexts: draws, not a list
    chances = pcor.audit.exact_distribution(here.table, 0, 1, detector=detector, search=search)
    valid = len(here.coe) / 8
    assert sum(chances.values()) == pytest.approx(1 - (1 - valid) ** 3)


def test_too_many_paths_are_refused() -> None:
    here = small(LARGE, DETECTORS["lof"])
    with pytest.raises(pcor.errors.TooLarge, match="paths of decisions"):
        pcor.audit.exact_distribution(
            here.table, 0, 1, detector=DETECTORS["lof"], search="random_walk", samples=50, limit=500
        )


def test_chances_too_small_for_a_float_are_still_compared() -> None:
    """One context 700 to 800 rows larger than the other: exp(-745) is 0 in float64."""
    detector = pcor.Estimator(lambda values: values == 1.0, min_population=1)
    schema = pcor.Schema(metric="pay", attributes={"job": ["a", "b"]}, id="id")
    ratios = []
    for rows in (700, 744, 745, 746, 800):
        logs = []
        for extra in (rows, rows + 1):
            jobs = ["a"] + ["b"] * extra
            pay = [1.0] + [0.0] * extra
            table = pcor.Table(pa.table({"id": range(extra + 1), "job": jobs, "pay": pay}), schema)
            logs.append(pcor.audit.exact_log_chances(table, 0, 1, detector=detector))
        ratios.append(pcor.audit.largest_log_ratio(*logs))
    assert ratios == pytest.approx([1.0] * 5)
