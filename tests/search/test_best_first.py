"""Contexts, best first: each once, by falling utility, drawn as from the whole list."""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import pcor
from pcor.audit.exact import selection_chances
from pcor.mechanism.ordered_selection import Candidates, draw_first
from pcor.mechanism.selection import SystemRandomSource
from pcor.public.context import Words
from pcor.releasing.run import best_first, draw
from pcor.releasing.settings import plan
from pcor.search import best_first as best_first_module
from pcor.search.best_first import BestFirst
from pcor.search.utility import Scorer
from pcor.search.validity import Validity
from pcor.testing import SeededRandomSource
from tests.helpers.neighbours import DETECTORS
from tests.helpers.scripted_draws import FALSE_ALARM, Arriving, Script, ends

# -- contexts, best first -------------------------------------------------------------------------


ATTRIBUTES = {"job": ["a", "b", "c"], "city": ["x", "y", "z"], "sex": ["f", "m"]}
Row = tuple[str, str, str, float]


def table_of(rows: Sequence[Row]) -> pcor.Table:
    schema = pcor.Schema(metric="pay", attributes=ATTRIBUTES)
    names = (*ATTRIBUTES, "pay")
    return pcor.Table(pa.table({n: [row[i] for row in rows] for i, n in enumerate(names)}), schema)


rows = st.lists(
    st.tuples(*(st.sampled_from(v) for v in ATTRIBUTES.values()), st.integers(0, 9).map(float)),
    min_size=4,
    max_size=25,
)


def chosen_utility(name: str, table: pcor.Table) -> Any:
    """Population, or the overlap with a context that is not the record's own."""
    some = {"job": ["a", "b"], "city": ["y", "z"], "sex": ["f", "m"]}
    return "population" if name == "population" else pcor.Overlap(pcor.Context(table.schema, some))


def by_hand(validity: Validity, utility: Any) -> dict[int, int]:
    """Return every valid context with its score: one by one, each scored through its population."""
    table = validity.table
    rule = pcor.PopulationSize() if utility == "population" else utility
    masks = list(validity.record.space.masks())
    valid = itertools.compress(masks, validity(masks))
    return {
        mask: rule.score(pcor.Population(pcor.Context.from_mask(table.schema, mask), table))
        for mask in valid
    }


def scores(ordered: Candidates) -> list[int]:
    return [run.utility for run in ordered.ranked() for _ in range(run.count)]


@settings(max_examples=60)
@given(
    rows,
    st.sampled_from(sorted(DETECTORS)),
    st.sampled_from(["population", "overlap"]),
    st.sampled_from([1, 3, 128]),
    st.sampled_from([1, 5, 1 << 13]),
)
def test_best_first_meets_every_valid_context_once_by_falling_utility(
    crowd: list[Row], detector: str, utility: str, step: int, sort_after: int
) -> None:
    table = table_of([("a", "x", "f", 40.0), *crowd])
    validity = Validity(table, table.record(0), DETECTORS[detector])
    chosen = chosen_utility(utility, table)
    expected = by_hand(validity, chosen)
    planned = plan(table.schema, 1, detector=DETECTORS[detector], search="direct", utility=chosen)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(best_first_module, "FIRST_STEP", step)
        patch.setattr(best_first_module, "LARGEST_STEP", step)
        patch.setattr(best_first_module, "_SORT_AFTER", sort_after)
        ordered = best_first(planned, validity)
        assert ordered is not None
        before: list[int] = []
        while not ordered.finished:
            ranked = dict(zip(ordered.masks(), scores(ordered), strict=True)) if before else {}
            left = [score for mask, score in expected.items() if mask not in ranked]
            for least in set(left):  # never fewer than there are, never of less utility
                bound = sum(run.count for run in ordered.remaining() if run.utility >= least)
                assert bound >= sum(score >= least for score in left)
            ordered.advance()
            assert ordered.masks()[: len(before)] == before  # what was met keeps its place
            before = ordered.masks()
    assert ordered.remaining() == []
    assert sorted(ordered.masks()) == sorted(expected)
    assert [expected[mask] for mask in ordered.masks()] == scores(ordered)
    assert scores(ordered) == sorted(scores(ordered), reverse=True)


def test_the_bounds_count_every_context_not_visited_in_a_space_of_2_to_the_62() -> None:
    """Their sum is exact, where float64 would lose what was visited."""
    values = [str(i) for i in range(63)]
    schema = pcor.Schema(metric="pay", attributes={"a": values})
    frame = pa.table({"a": ["0", *values], "pay": [99.0, *map(float, range(63))]})
    table = pcor.Table(frame, schema)
    validity = Validity(table, table.record(0), DETECTORS["lof"])
    ordered = BestFirst(validity, table.cells.cell_counts)
    for visited in (128, 384):
        ordered.advance()
        assert sum(run.count for run in ordered.remaining()) == (1 << 62) - visited


@dataclass(frozen=True)
class TwicePopulation:
    """A utility of the user's own."""

    sensitivity = 2
    monotonic = True

    def score(self, population: pcor.Population) -> int:
        return 2 * population.size


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, True),
        ({"utility": "overlap"}, True),
        ({"selection": "permute_and_flip"}, True),
        ({"utility": TwicePopulation()}, False),
        ({"search": "uniform", "samples": 3}, False),
    ],
    ids=str,
)
def test_public_facts_alone_decide_whether_the_draw_is_ordered(
    options: dict[str, Any], expected: bool
) -> None:
    table = table_of([("a", "x", "f", 40.0), ("b", "y", "m", 1.0)])
    if options.get("utility") == "overlap":
        options = options | {"utility": chosen_utility("overlap", table)}
    planned = plan(table.schema, 1, **({"search": "direct"} | options))
    validity = Validity(table, table.record(0), planned.detector)
    assert (best_first(planned, validity) is not None) == expected


@settings(max_examples=40)
@given(rows, st.sampled_from(sorted(DETECTORS)), st.sampled_from(["population", "overlap"]))
def test_the_exact_distribution_is_the_exhaustive_exponential_mechanism(
    crowd: list[Row], detector: str, utility: str
) -> None:
    table = table_of([("a", "x", "f", 40.0), *crowd])
    chosen = chosen_utility(utility, table)
    expected = by_hand(Validity(table, table.record(0), DETECTORS[detector]), chosen)
    if not expected:
        return
    masks = list(expected)
    found = ends(list(expected.values()), Fraction(1, 5), 200)
    total = found[-1][1]
    starts = [Fraction(0), *(end for _, end in found[:-1])]
    chances = {
        mask: float((end - start) / total)
        for mask, start, (_, end) in zip(masks, starts, found, strict=True)
    }
    stated = pcor.audit.exact_distribution(
        table,
        0,
        "0.2",
        detector=DETECTORS[detector],
        search="direct",
        utility=chosen,
        selection="exponential",
    )
    assert {context.mask for context in stated} == set(chances)
    distance = sum(abs(chances[c.mask] - chance) for c, chance in stated.items()) / 2
    assert distance < 1e-12


# -- a larger table -------------------------------------------------------------------------------


def larger(sizes: Sequence[int], number: int) -> pcor.Table:
    """Return a table whose record 0 stands out nearly everywhere."""
    numbers = random.Random(3)  # noqa: S311 (test data)
    domains = {f"a{i}": [f"v{j}" for j in range(size)] for i, size in enumerate(sizes)}
    columns: dict[str, list[Any]] = {
        name: [values[0], *numbers.choices(values, k=number)] for name, values in domains.items()
    }
    columns["pay"] = [1000.0, *(numbers.gauss(100.0, 15.0) for _ in range(number))]
    return pcor.Table(pa.table(columns), pcor.Schema(metric="pay", attributes=domains))


class Scripted(SeededRandomSource):
    """Draws with a scripted number."""

    def __init__(self, number: Fraction) -> None:
        super().__init__(0)
        self.script = Script(number)

    def select_first(self, candidates: Candidates, *, eta: Fraction, mechanism: str) -> int | None:
        return draw_first(candidates, eta, self.script, mechanism)


class Counting(Validity):
    """Counts the contexts that were judged."""

    judged = 0

    def judge(self, cells: Any, words: Words, moments: Any = None) -> Any:
        self.judged += len(words)
        return super().judge(cells, words, moments)


@pytest.mark.parametrize("utility", ["population", "overlap"])
@pytest.mark.parametrize("sort_after", [256, 1 << 20])
def test_unvisited_contexts_keep_their_chance_and_most_are_never_visited(
    utility: str, sort_after: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(best_first_module, "_SORT_AFTER", sort_after)
    table = larger((6, 6, 5), 500)
    first = {"a0": ["v0", "v1", "v2", "v3"], "a1": [f"v{j}" for j in range(6)], "a2": ["v0", "v1"]}
    overlap = pcor.Overlap(pcor.Context(table.schema, first))
    chosen: Any = "population" if utility == "population" else overlap
    detector = pcor.Grubbs(min_population=3)
    planned = plan(
        table.schema,
        "0.3",
        detector=detector,
        search="direct",
        utility=chosen,
        selection="exponential",
    )
    everything = best_first(planned, Validity(table, table.record(0), detector))
    assert everything is not None
    while not everything.finished:
        everything.advance()
    masks, utilities = everything.masks(), scores(everything)
    assert len(masks) > 10_000  # of 16,384

    found = ends(utilities, planned.bill.eta, 512)
    total = found[-1][1]
    for place in (0, 1, 2, 100, 1_000, 5_000, len(masks) - 2, len(masks) - 1):
        start = found[place - 1][1] if place else Fraction(0)
        middle = (start + found[place][0]) / 2 / total
        validity = Counting(table, table.record(0), detector)
        number = Fraction(int(middle * 2**600), 2**600)
        assert draw(planned, validity, Scripted(number)) == masks[place]
        if place == 0:
            assert validity.judged <= 128 + 256


def p_value(observed: Sequence[int], chances: Sequence[float]) -> float:
    """Test draws against chances; candidates are put together, best first, in shares of 1/20."""
    order = np.argsort(-np.array(chances), kind="stable")
    ranks = np.empty(len(order), dtype=np.int64)
    group = np.minimum((np.cumsum(np.array(chances)[order]) * 20).astype(np.int64), 19)
    ranks[order] = np.unique(group, return_inverse=True)[1]
    expected = np.bincount(ranks, chances)
    counts = np.bincount(ranks[list(observed)], minlength=len(expected))
    assert expected.min() * len(observed) > 20
    return float(stats.chisquare(counts, len(observed) * expected / expected.sum()).pvalue)


@pytest.mark.parametrize(("factor", "accepted"), [("1", True), ("0.7", False), ("1.3", False)])
def test_releases_from_2_to_the_10_contexts_have_the_exact_chances_and_no_others(
    factor: str, accepted: bool
) -> None:
    table = larger((5, 4, 4), 400)
    detector = pcor.Grubbs(min_population=3)
    planned = plan(table.schema, "0.02", detector=detector, search="direct")
    expected = by_hand(Validity(table, table.record(0), detector), "population")
    assert len(expected) > 500
    place = {mask: i for i, mask in enumerate(expected)}
    chances = selection_chances(
        list(expected.values()), eta=planned.bill.eta, mechanism=planned.selection
    )
    epsilon = Fraction("0.02") * Fraction(factor)
    draws = [
        place[pcor.release(table, 0, epsilon, detector, "direct").context.mask] for _ in range(500)
    ]
    assert (p_value(draws, chances.tolist()) > FALSE_ALARM) == accepted


UTILITIES, ETA, DRAWS = [300, 200, 200, 100, 0], Fraction(1, 100), 12_000


@cache
def drawn_from_a_list() -> list[int]:
    """Draw once: all comparisons are with the same draws."""
    chooser = SystemRandomSource()
    return [chooser.select(UTILITIES, eta=ETA, mechanism="exponential") for _ in range(DRAWS)]


@pytest.mark.parametrize(("factor", "accepted"), [("1", True), ("0.7", False), ("1.3", False)])
def test_the_ordered_draw_and_the_draw_from_a_list_are_alike(factor: str, accepted: bool) -> None:
    items = [(utility, True) for utility in UTILITIES]
    chooser, eta = SystemRandomSource(), ETA * Fraction(factor)
    ours = [
        chooser.select_first(Arriving(items, [2]), eta=eta, mechanism="exponential")
        for _ in range(DRAWS)
    ]
    both = (drawn_from_a_list(), ours)
    counts = [np.bincount(np.array(drawn), minlength=5) for drawn in both]
    assert (stats.chi2_contingency(np.array(counts)).pvalue > FALSE_ALARM) == accepted


def test_no_valid_context_is_an_answer_of_the_ordered_draw_too() -> None:
    table = table_of([("a", "x", "f", 1.0)] * 30)
    with pytest.raises(pcor.errors.NoValidContext):
        pcor.release(table, 0, 1, search="direct")


def test_scores_of_the_order_are_those_of_the_scorer() -> None:
    table = larger((3, 3, 3), 60)
    detector = pcor.Grubbs(min_population=3)
    planned = plan(table.schema, 1, detector=detector, search="direct")
    ordered = best_first(planned, Validity(table, table.record(0), detector))
    assert ordered is not None
    while not ordered.finished:
        ordered.advance()
    assert Scorer(planned.utility, table)(ordered.masks()) == scores(ordered)
