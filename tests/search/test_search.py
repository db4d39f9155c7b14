"""Searches: what they return, where they end, and that everything released is valid."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import pcor
from pcor.errors import NoValidContext, ParameterError, StartError, TooLarge, UnknownName
from pcor.search import SEARCHES, WidestFirst, get_search
from tests.helpers.neighbours import DETECTORS, SCHEMA, Row, every_search, small
from tests.helpers.small_tables import tables
from tests.helpers.valid_contexts import CHAIN, ISOLATED, TWO_PARTS, explore, lattice, start

ALL = every_search(samples=5)


@pytest.mark.parametrize("search", ALL, ids=lambda search: search.name)
@pytest.mark.parametrize(
    "detector",
    [*DETECTORS.values(), pcor.Estimator(lambda values: values > 12, min_population=3)],
    ids=lambda detector: detector.name,
)
@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.filter_too_much])
@given(rows=tables())
def test_every_released_context_is_valid(
    rows: list[Row], detector: pcor.Detector, search: pcor.Search
) -> None:
    here = small(rows, detector)
    assume(here.coe)
    released = pcor.release(here.table, 0, 0.5, detector, search)
    assert released.context in here.coe
    assert pcor.is_outlier(here.table, 0, released.context, detector)


@settings(max_examples=30, deadline=None)
@given(tables(), st.sampled_from(ALL))
def test_no_valid_context_is_said_and_nothing_is_released(
    rows: list[Row], search: pcor.Search
) -> None:
    never = pcor.Estimator(lambda values: values > 1e9)
    here = small(rows, never)
    with pytest.raises(NoValidContext, match="outlier"):
        pcor.release(here.table, 0, 0.5, never, search)


# -- a lattice laid out by hand: which contexts are valid is decided by a list ---------------------


def test_direct_returns_all_valid_contexts() -> None:
    assert sorted(explore(pcor.Direct(), TWO_PARTS)) == sorted(TWO_PARTS)


@pytest.mark.parametrize("search", [s for s in ALL if s.name != "direct"], ids=lambda s: s.name)
def test_every_sampling_search_ends_on_an_isolated_context(search: pcor.Search) -> None:
    assert set(explore(search, ISOLATED)) == {"10010"}


def test_uniform_ends_where_fewer_contexts_exist_than_samples() -> None:
    candidates = explore(pcor.Uniform(samples=40), TWO_PARTS)
    assert len(candidates) == 40
    assert set(candidates) == set(TWO_PARTS)


def test_uniform_ends_at_its_cap_with_what_it_has() -> None:
    assert len(explore(pcor.Uniform(samples=40, tries=7), TWO_PARTS)) <= 7


def test_a_random_walk_takes_n_steps_in_a_small_component_and_repeats_itself() -> None:
    walk = explore(pcor.RandomWalk(samples=30, start=start("10010")), TWO_PARTS)
    assert walk == ["10010", "11010"] * 15


def test_each_step_of_a_random_walk_changes_one_value() -> None:
    walk = explore(pcor.RandomWalk(samples=20), CHAIN)
    assert all(
        sum(a != b for a, b in zip(one, two, strict=True)) == 1 for one, two in pairwise(walk)
    )


@pytest.mark.parametrize("search", [pcor.DepthFirst, pcor.BreadthFirst])
def test_steered_searches_end_when_the_component_of_the_start_is_used_up(search: Any) -> None:
    assert sorted(explore(search(samples=9, start=start("10010")), TWO_PARTS)) == TWO_PARTS[:2]


@pytest.mark.parametrize("search", [pcor.DepthFirst, pcor.BreadthFirst])
@pytest.mark.parametrize("samples", [1, 2, 3, 4])
def test_steered_searches_collect_exactly_n_contexts_the_start_first(
    search: Any, samples: int
) -> None:
    visited = explore(search(samples=samples, start=start("11010")), CHAIN)
    assert len(visited) == samples == len(set(visited))
    assert visited[0] == "11010"


def test_depth_first_goes_back_where_it_can_go_no_further() -> None:
    # From the middle, one side is a dead end; the other is reached only by going back.
    visited = explore(pcor.DepthFirst(samples=4, start=start("11110")), CHAIN)
    assert sorted(visited) == sorted(CHAIN)


@pytest.mark.parametrize(
    "search", [pcor.RandomWalk, pcor.DepthFirst, pcor.BreadthFirst, WidestFirst]
)
def test_a_start_that_is_not_valid_is_refused(search: Any) -> None:
    with pytest.raises(StartError, match="not an outlier in the start context"):
        explore(search(start=start("11111")), TWO_PARTS)


def test_a_start_without_the_record_is_refused_after_the_charge() -> None:
    """Else refusals would tell any record's values for free, one start after the other."""
    table, detector = lattice(CHAIN)
    budget = pcor.Budget(1)
    with pytest.raises(StartError, match="record's own value"):
        pcor.release(table, 0, 1, detector, "breadth_first", start=start("01010"), budget=budget)
    assert budget.left == 0


def test_a_start_is_refused_where_the_search_has_none() -> None:
    table, detector = lattice(CHAIN)
    with pytest.raises(ParameterError, match="'direct' has no start context"):
        pcor.release(table, 0, 1, detector, "direct", start=start("10010"))


def test_a_start_of_another_schema_is_refused() -> None:
    other = pcor.Schema(metric="pay", attributes={"job": ["a"]})
    with pytest.raises(ParameterError, match="another schema"):
        pcor.plan(SCHEMA, 1, start=pcor.Context.full(other))


# -- names and limits ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(SEARCHES))
def test_every_search_is_known_by_its_name(name: str) -> None:
    assert get_search(name, SCHEMA).name == name


def test_auto_enumerates_a_small_space_and_climbs_in_a_large_one() -> None:
    large = pcor.Schema(metric="pay", attributes={"job": list(range(40))})
    assert get_search("auto", SCHEMA).name == "direct"
    assert get_search("auto", SCHEMA, samples=5).name == "widest_first"
    assert get_search("auto", SCHEMA, start=pcor.Context.full(SCHEMA)).name == "widest_first"
    assert get_search("auto", large).name == "widest_first"


def test_auto_draws_from_more_contexts_where_subtrees_are_settled_at_once() -> None:
    """2^29 contexts; what decides is public: detector, brevity, limits on whole contexts."""
    attributes = {"job": list(range(30))}
    large = pcor.Schema(metric="pay", attributes=attributes)
    for search in ("auto", "direct"):
        assert pcor.plan(large, 1, search=search).search == pcor.Direct(limit=1 << 30)
    assert pcor.plan(large, 1, samples=5).search.name == "widest_first"
    assert pcor.plan(large, 1, limit=1 << 28).search.name == "widest_first"
    assert pcor.plan(large, 1, brevity=3).search.name == "widest_first"
    assert pcor.plan(large, 1, detector="grubbs").search.name == "widest_first"
    assert pcor.plan(large, 1, detector=pcor.LOF(k=101)).search.name == "widest_first"
    with pytest.raises(pcor.errors.TooLarge, match="the limit of 16,777,216"):
        pcor.plan(large, 1, search="direct", detector="grubbs")
    larger = pcor.Schema(metric="pay", attributes={"job": list(range(32))})
    assert pcor.plan(larger, 1).search.name == "widest_first"
    assert pcor.plan(larger, 1, limit=1 << 40).search == pcor.Direct(limit=1 << 40)


def test_a_small_space_has_the_limit_that_it_had() -> None:
    """Its plan is the same request as before."""
    assert pcor.plan(SCHEMA, 1).search.describe() == {"name": "direct", "limit": 1 << 24}


def test_memory_is_no_part_of_a_request() -> None:
    assert pcor.Direct(memory=64) == pcor.Direct()
    assert pcor.Direct(memory=64).describe() == pcor.Direct().describe()
    with pytest.raises(ParameterError, match="memory"):
        pcor.Direct(memory=0)


def test_auto_lists_a_space_only_where_the_draw_need_not() -> None:
    """2^15 contexts: ordered draws end early, a refit of each would take minutes."""
    middling = pcor.Schema(metric="pay", attributes={"job": list(range(16))})
    assert pcor.plan(middling, 1).search.name == "direct"
    assert pcor.plan(middling, 1, selection="permute_and_flip").search.name == "direct"
    slow = pcor.Estimator(lambda values: values > 0)
    assert pcor.plan(middling, 1, detector=slow).search.name == "widest_first"


def test_a_limit_is_up_to_where_auto_is_direct() -> None:
    large = pcor.Schema(metric="pay", attributes={"job": list(range(31))})
    found = [pcor.plan(large, 1, limit=limit).search.name for limit in (1 << 29, 1 << 30)]
    assert found == ["widest_first", "direct"]
    assert pcor.plan(large, 1, search="direct", limit=1 << 30).search == pcor.Direct(limit=1 << 30)
    assert pcor.plan(SCHEMA, 1, limit=1).search.name == "widest_first"


@pytest.mark.parametrize("limit", [0, 2.5, True, (1 << 60) + 1])
def test_a_limit_that_cannot_be_counted_to_is_refused(limit: Any) -> None:
    with pytest.raises(ParameterError, match="limit must be a whole number from 1 to 1,152,9"):
        pcor.plan(SCHEMA, 1, limit=limit)


def test_a_limit_is_refused_where_the_search_takes_none() -> None:
    with pytest.raises(ParameterError, match="limit goes with search 'direct' or 'auto'"):
        pcor.plan(SCHEMA, 1, search="uniform", limit=9)


def test_direct_is_refused_on_a_large_space_with_the_alternative_named() -> None:
    large = pcor.Schema(metric="pay", attributes={"job": list(range(40))})
    with pytest.raises(TooLarge, match=r"549,755,813,888 contexts.*widest_first"):
        pcor.plan(large, 1, search="direct")


def test_a_domain_of_any_size_is_planned_and_refused_in_words() -> None:
    huge = pcor.Schema(metric="pay", attributes={"job": list(range(20_000))})
    assert "2^19999 contexts" in str(pcor.plan(huge, 1))
    assert pcor.plan(huge, 1).to_dict()["possible_contexts"] == "2^19999"
    with pytest.raises(TooLarge, match=r"2\^19999 contexts.*widest_first"):
        pcor.plan(huge, 1, search="direct")


def test_an_unknown_search_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(UnknownName, match="did you mean 'breadth_first'"):
        pcor.plan(SCHEMA, 1, search="breath_first")


@pytest.mark.parametrize("samples", [0, -1, True, 2.5])
def test_samples_must_be_a_positive_whole_number(samples: Any) -> None:
    with pytest.raises(ParameterError, match="must be a whole number from 1 to 10,000"):
        pcor.BreadthFirst(samples=samples)


@pytest.mark.parametrize("search", ["uniform", "random_walk", "widest_first", "depth_first"])
def test_more_samples_than_could_ever_be_collected_are_refused_by_a_public_number(
    search: str,
) -> None:
    """On 4 contexts too: the draws would be made one by one, and never end."""
    tiny = pcor.Schema(metric="pay", attributes={"job": ["a", "b", "c"]})
    with pytest.raises(ParameterError, match=rf"samples of search '{search}' .* from 1 to 1\d*,0"):
        pcor.plan(tiny, 1, search=search, samples=10**12)


def test_more_tries_than_could_ever_be_made_are_refused() -> None:
    with pytest.raises(ParameterError, match="tries must be a whole number from 1 to 100,000,000"):
        pcor.Uniform(tries=10**12)


def test_samples_are_refused_where_the_search_takes_none() -> None:
    with pytest.raises(ParameterError, match="takes no samples"):
        pcor.plan(SCHEMA, 1, search="direct", samples=5)


def test_something_that_is_no_search_is_refused() -> None:
    with pytest.raises(ParameterError, match="search must be a name"):
        pcor.plan(SCHEMA, 1, search=17)  # type: ignore[arg-type]


def test_a_large_domain_takes_no_memory_proportional_to_the_space() -> None:
    values = [f"v{i}" for i in range(300)]
    kinds = [values[i % 40] for i in range(400)]
    pay = [1000.0 if i == 399 else float(i % 7) for i in range(400)]
    schema = pcor.Schema(metric="pay", attributes={"kind": values})
    released = pcor.release(
        pcor.Table(pa.table({"kind": kinds, "pay": pay}), schema),
        399,
        1,
        pcor.Grubbs(),
        "breadth_first",
        samples=3,
    )
    assert released.context.covers({"kind": kinds[399]})
