"""Widest-first: candidates from verdicts and public knowledge alone, and never too many verdicts.

Where only the shape of COE matters it is laid out by a rule on the free values, without a table;
what the search may not look at is then not even there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import pcor
from pcor.errors import NoValidContext, ParameterError, SchemaError, StartError
from pcor.public.accounting import release_cost
from pcor.public.context import pack
from pcor.public.space import Space
from pcor.search import Explorer, WidestFirst, widest_first
from pcor.search.base import ContextBits, as_masks
from pcor.search.guess import Guess
from pcor.search.validity import Validity
from pcor.search.widest_first import usual_tries
from tests.helpers.families import with_steps
from tests.helpers.neighbours import DETECTORS, SCHEMA, Row, f_neighbours, worst_ratio
from tests.helpers.small_tables import NEARLY_EQUAL, ROUNDING, halve_the_noise, lowest, tables

Rule = Callable[[ContextBits], ContextBits]


class KnownVerdicts:
    """Stands in for ``Validity``: verdicts by a rule on the free values, counted."""

    def __init__(self, schema: pcor.Schema, rule: Rule) -> None:
        own = sum(1 << offset for offset in schema.offsets)  # the first value of every attribute
        self.record = SimpleNamespace(space=Space(schema, own))
        self.rule = rule
        self.asked = 0
        self.compiled = False  # counted by one thread

    def __call__(self, masks: Sequence[int]) -> ContextBits:
        self.asked += len(masks)
        space = self.record.space
        return self.rule(space.rows_of(pack(masks, space.schema.width)))

    def of_words(self, words: Any) -> ContextBits:
        return self([int.from_bytes(word.tobytes(), "little") for word in words.astype("<u8")])

    def judge_of_many(self) -> Rule:
        return self.of_words


class Listing(Explorer):
    """Lists a space without a table."""

    def every_valid(self) -> list[int]:
        return self.valid(list(self.space.masks()))


def domain(*sizes: int, **declared: Any) -> pcor.Schema:
    attributes = {f"a{i}": {"values": list(range(size))} for i, size in enumerate(sizes)}
    for name, more in declared.items():
        attributes[name] |= more
    return pcor.Schema(metric="m", attributes=attributes)


def found(search: pcor.Search, known: KnownVerdicts) -> tuple[list[int], ContextBits]:
    """Return the candidates, as masks and as rows of free values."""
    explorer = Listing(known, None, None, 0)  # type: ignore[arg-type]
    masks = search.explore(explorer)
    return masks, explorer.rows(masks)


def without(*positions: int) -> Rule:
    """Valid are the contexts that have none of these free values."""

    def rule(rows: ContextBits) -> ContextBits:
        return np.logical_not(rows[:, list(positions)].any(axis=1))

    return rule


# -- what it finds ---------------------------------------------------------------------------------


@pytest.mark.parametrize("values", [25, 60, 200, 1000])
def test_it_finds_wide_contexts_among_any_number_of_values(values: int) -> None:
    known = KnownVerdicts(
        domain(*[values // 5] * 5), without(0, 1, 2, 30 % (values - 5), values - 7)
    )
    search = WidestFirst(samples=50, tries=5000)
    masks, rows = found(search, known)
    assert known.rule(rows).all()
    assert len(set(masks)) == len(masks) == 50
    assert rows.sum(axis=1).max() >= 0.9 * (values - 10)


def test_no_more_contexts_are_verified_than_tries_and_the_start() -> None:
    schema = domain(10, 10, 10, 10)
    for tries in (1, 2, 3, 7, 50, 999, 20_000):
        known = KnownVerdicts(schema, without(3, 17))
        search = WidestFirst(tries=tries)
        found(
            replace(search, start=pcor.Context.from_mask(schema, known.record.space.fixed)), known
        )
        assert known.asked <= tries + 1


def test_parts_of_coe_that_no_single_step_connects_are_all_found() -> None:
    def rule(rows: ContextBits) -> ContextBits:
        one = rows[:, 0] & rows[:, 1] & ~rows[:, 20] & ~rows[:, 21]
        other = ~rows[:, 0] & ~rows[:, 1] & rows[:, 20] & rows[:, 21]
        return one | other

    _, rows = found(WidestFirst(tries=50_000), KnownVerdicts(domain(10, 10, 10), rule))
    assert set(rows[:, 0]) == {True, False}


def test_the_full_context_is_the_only_candidate_where_it_is_valid() -> None:
    for sizes in ((3, 2), (20, 20)):
        schema = domain(*sizes)
        known = KnownVerdicts(schema, lambda rows: np.ones(len(rows), dtype=bool))
        full = pcor.Context.full(schema).mask
        assert found(WidestFirst(), known)[0] == [full]
        start = pcor.Context.from_mask(schema, known.record.space.fixed)
        assert found(WidestFirst(start=start), known)[0] == [start.mask, full]


def test_a_space_of_no_more_contexts_than_tries_is_looked_at_whole() -> None:
    table = pcor.Table(pcor.demo.ten_people(), pcor.demo.ten_people_schema())
    rule = pcor.Grubbs(min_population=3)
    every = {context.mask for context in pcor.matching_contexts(table, 8, rule).contexts}
    explorer = Explorer(Validity(table, table.record(8), rule), None, None, 0)  # type: ignore[arg-type]
    assert set(WidestFirst(tries=64).explore(explorer)) == every


def test_a_needle_given_as_the_start_is_the_candidate() -> None:
    schema = domain(20, 20)
    needle = np.arange(38) % 3 == 0
    known = KnownVerdicts(schema, lambda rows: (rows == needle).all(axis=1))
    with pytest.raises(NoValidContext, match="no context was found"):
        found(WidestFirst(tries=3000), known)
    words = known.record.space.words_of_rows(needle[np.newaxis])
    start = pcor.Context.from_mask(schema, as_masks(words)[0])
    assert found(WidestFirst(tries=3000, start=start), known)[0] == [start.mask]


def test_a_start_is_kept_however_few_candidates_are() -> None:
    schema = domain(20, 20)
    known = KnownVerdicts(schema, without(5))
    start = pcor.Context.from_mask(schema, known.record.space.fixed)
    assert found(WidestFirst(samples=1, tries=3000, start=start), known)[0] == [start.mask]


def test_a_start_that_is_not_valid_is_refused() -> None:
    for sizes in ((3, 2), (20, 20)):
        schema = domain(*sizes)
        with pytest.raises(StartError, match="not an outlier in the start context"):
            found(WidestFirst(start=pcor.Context.full(schema)), KnownVerdicts(schema, without(0)))


@pytest.mark.parametrize("sizes", [(1,), (1, 1), (2,), (1, 40), (40,)])
def test_any_domain_will_do(sizes: tuple[int, ...]) -> None:
    free = sum(sizes) - len(sizes)
    known = KnownVerdicts(domain(*sizes), without(*range(free)))  # the record's own values alone
    assert found(WidestFirst(tries=500), known)[0] == [known.record.space.fixed]


def test_the_same_seed_gives_the_same_candidates_and_another_one_others() -> None:
    def run(seed: int) -> list[int]:
        rule = KnownVerdicts(domain(12, 12, 12), without(2, 15, 30))
        return found(WidestFirst(tries=4000, seed=seed), rule)[0]

    assert run(0) == run(0)
    assert set(run(0)) != set(run(1))


def test_sums_of_guesses_are_exact_in_any_order() -> None:
    """Whole numbers below 2^24: float32 adds them without rounding, however a library sums."""
    schema = domain(3, 900, a0={"shares": [1e-12, 0, 1e12]})
    guess = Guess(Space(schema, 0b1001), seed=4)
    weights = guess.weights(8)
    assert (weights == np.rint(weights)).all()
    assert weights.min() >= 1
    assert weights[:, 3:].sum(axis=1).max() < 1 << 24


# -- what it may not look at -----------------------------------------------------------------------


def repeated(times: np.ndarray[Any, Any]) -> pcor.Table:
    """Return a table with the same distinct rows whatever ``times`` says of their numbers."""
    numbers = np.random.default_rng(5)
    columns = [np.repeat(numbers.integers(0, 8, 300), times) for _ in range(3)]
    pay = np.repeat(np.arange(300), times)
    rows = {f"a{i}": column for i, column in enumerate(columns)} | {"m": pay.astype(float)}
    return pcor.Table(pa.table(rows), domain(8, 8, 8))


def test_tables_with_the_same_coe_get_the_same_candidates_whatever_their_populations() -> None:
    # Which distinct values there are decides, not how often: equal COE by construction.
    rule = pcor.Estimator(
        lambda values: (values == 0) & (len(set(values)) % 7 < 2), min_population=1
    )
    candidates, largest = [], []
    for seed in range(3):
        times = 1 + np.random.default_rng(seed).geometric(0.02, 300)
        table = repeated(times)
        explorer = Explorer(Validity(table, table.record(0), rule), None, None, 0)  # type: ignore[arg-type]
        candidates.append(WidestFirst(tries=2000).explore(explorer))
        largest.append(candidates[-1][int(table.populations(candidates[-1]).argmax())])
    assert candidates[0] == candidates[1] == candidates[2]
    assert len(candidates[0]) > 20
    assert len(set(largest)) > 1  # populations do tell the tables apart


def from_threads(count: int, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return the candidates where so many cores share the groups, the last ones first."""

    def share(parts: int, work: Callable[[int], None]) -> None:
        with ThreadPoolExecutor(count) as pool:
            list(pool.map(work, reversed(range(parts))))

    numbers = np.random.default_rng(7)
    rows: dict[str, Any] = {f"a{i}": numbers.integers(0, 8, 3000) for i in range(3)}
    # Paid like another a0: unusual only where that one is left out.
    rows["m"] = (100.0 * rows["a0"] + numbers.normal(0, 5, 3000)).round(2)
    rows["a0"][0], rows["m"][0] = 0, 301.0
    table = pcor.Table(pa.table(rows), domain(8, 8, 8))
    explorer = Explorer(Validity(table, table.record(0), pcor.LOF()), None, None, 0)  # type: ignore[arg-type]
    assert explorer.compiled
    monkeypatch.setattr(widest_first, "one_by_one", share)
    return WidestFirst(tries=80_000).explore(explorer)


def test_what_is_found_does_not_depend_on_the_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    alone = from_threads(1, monkeypatch)
    assert len(alone) > 100
    assert from_threads(3, monkeypatch) == alone


# 8 contexts: with 7 tries it climbs, with 8 it looks at all of them.
CLIMBING, LISTING = WidestFirst(samples=3, tries=7, seed=2), WidestFirst(samples=3, tries=8)

# Job c hides the record, so the full context is not valid and several others are candidates.
HIDDEN: list[Row] = [
    ("a", "x", 40.0), ("a", "x", 3.0), ("a", "x", 5.0), ("a", "x", 6.0), ("a", "x", 8.0),
    ("b", "y", 2.0), ("b", "x", 4.0), ("b", "y", 7.0), ("a", "y", 5.0), ("a", "y", 1.0),
    ("c", "x", 39.0), ("c", "y", 40.0), ("c", "x", 41.0), ("c", "y", 41.0),
]  # fmt: skip


@st.composite
def hidden_tables(draw: st.DrawFn) -> list[Row]:
    """Draw a table as ``tables`` does, and people of job c who are paid like the record."""
    like = st.tuples(st.just("c"), st.sampled_from("xy"), st.integers(38, 42).map(float))
    return draw(tables()) + draw(st.lists(like, max_size=4))


unhurried = settings(
    max_examples=12, deadline=None, suppress_health_check=[HealthCheck.filter_too_much]
)


@unhurried
@given(hidden_tables(), st.sampled_from(sorted(DETECTORS)), st.integers(0, 3))
@example(HIDDEN, "lof", 2)
def test_no_chance_moves_by_more_than_the_charged_epsilon(
    rows: list[Row], name: str, seed: int
) -> None:
    detector = DETECTORS[name]
    here, others = f_neighbours(rows, detector)
    for search in (CLIMBING, LISTING, replace(CLIMBING, start=lowest(here) if others else None)):
        for selection in ("exponential", "permute_and_flip") if others else ():
            worst = worst_ratio(
                here,
                others,
                epsilon=1,
                detector=detector,
                search=replace(search, seed=seed),
                selection=selection,
            )
            assert worst <= 1 + ROUNDING, (search, selection)


@pytest.mark.parametrize("search", [CLIMBING, LISTING])
def test_half_the_noise_is_found(search: pcor.Search, monkeypatch: pytest.MonkeyPatch) -> None:
    detector = DETECTORS["lof"]
    here, others = f_neighbours(HIDDEN, detector)
    options: dict[str, Any] = {"epsilon": 1, "detector": detector, "search": search}
    assert worst_ratio(here, others, **options) <= 1 + ROUNDING
    monkeypatch.setattr("pcor.releasing.terms.release_cost", halve_the_noise(release_cost))
    assert worst_ratio(here, others, **options) > 1.3


@dataclass(frozen=True)
class LargestFirst(WidestFirst):
    """Keeps the candidates with the most people: the mistake that the guess is there to avoid."""

    def explore(self, explorer: Explorer) -> list[int]:
        table = explorer._validity.table
        coe = explorer.every_valid()
        return [coe[int(table.populations(coe).argmax())]]


def test_candidates_kept_by_population_are_found() -> None:
    detector = DETECTORS["lof"]
    here, others = f_neighbours(NEARLY_EQUAL, detector)
    options: dict[str, Any] = {"epsilon": 1, "detector": detector}
    assert worst_ratio(here, others, search=WidestFirst(samples=1), **options) <= 1 + ROUNDING
    assert worst_ratio(here, others, search=LargestFirst(samples=1), **options) == np.inf


# -- shares ----------------------------------------------------------------------------------------


def either(rows: ContextBits) -> ContextBits:
    """Valid are contexts without the first free value, or without the second."""
    valid: ContextBits = ~(rows[:, 0] & rows[:, 1])
    return valid


@pytest.mark.parametrize("heavy", [0, 1])
def test_declared_shares_say_which_of_two_values_is_the_wider(heavy: int) -> None:
    shares = [1.0] * 20
    shares[1 + heavy] = 5.0  # the record's own value comes first
    schema = domain(20, 20, a0={"shares": shares})  # a1 has none: guessed
    _, rows = found(WidestFirst(samples=1, tries=20_000), KnownVerdicts(schema, either))
    assert rows[0, heavy]
    assert not rows[0, 1 - heavy]


def test_shares_are_part_of_the_schema_and_come_back_from_its_file(tmp_path: Any) -> None:
    schema = domain(3, 2, a0={"shares": [1, 0.25, 0]})
    path = tmp_path / "schema.toml"
    path.write_text(schema.to_toml(), encoding="utf-8")
    again = pcor.Schema.from_file(path)
    assert again == schema == pcor.Schema.from_dict(schema.to_dict())
    assert again.attributes[0].shares == (1.0, 0.25, 0.0)
    assert again.attributes[1].shares is None
    assert schema.sha256 != domain(3, 2).sha256
    bins = pcor.Schema(metric="m", attributes={"age": {"edges": [0, 18, 99], "shares": [2, 8]}})
    assert pcor.Schema.from_dict(bins.to_dict()) == bins


@pytest.mark.parametrize(
    ("shares", "sentence"),
    [
        ([1, 2], "attribute 'a0': shares must be one number for each of its 3 values"),
        ([1, 2, 3, 4], "in their order; 4 are given"),
        ([1, 2, "3"], "shares must be numbers"),
        ([1, 2, True], "shares must be numbers"),
        ([1, 2, -1], "0 or more, finite, and not all 0"),
        ([1, 2, float("nan")], "0 or more, finite, and not all 0"),
        ([1, 2, float("inf")], "0 or more, finite, and not all 0"),
        ([0, 0, 0], "0 or more, finite, and not all 0"),
        ([1, 2, 10**400], "too large"),
        ({"x": 1}, "shares must be a list"),
        (0.5, "shares must be a list"),
    ],
)
def test_shares_that_make_no_sense_are_refused(shares: Any, sentence: str) -> None:
    with pytest.raises(SchemaError, match=sentence):
        domain(3, a0={"shares": shares})


# -- in a release ----------------------------------------------------------------------------------


def test_the_tries_of_a_plan_are_a_public_number() -> None:
    large = domain(30, 30)
    slow = pcor.Estimator(lambda values: values > 0)
    assert pcor.plan(large, 1).search.describe()["tries"] == usual_tries(58) == 2_000_000
    assert pcor.plan(large, 1, detector=slow).search.describe()["tries"] == 2000
    given = WidestFirst(tries=77, seed=3)
    assert pcor.plan(large, 1, search=given).search == given
    assert pcor.plan(large, 1, search=given).bill.steps[-1].calls == 1


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"tries": 0}, "tries must be a whole number from 1 to 100,000,000"),
        ({"samples": 0}, "must be a whole number from 1 to 1,000,000"),
        ({"seed": -1}, "seed must be a whole number of at least 0"),
        ({"seed": 1.5}, "seed must be a whole number of at least 0"),
    ],
)
def test_parameters_are_checked(options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ParameterError, match=sentence):
        WidestFirst(**options)


def test_how_many_verifications_to_expect_is_known_before() -> None:
    assert WidestFirst(tries=100).verifications(with_steps(6)) == (64, 64)
    assert WidestFirst(tries=100).verifications(with_steps(30)) == (1, 100)
    start = pcor.Context.full(SCHEMA)
    assert WidestFirst(tries=100, start=start).verifications(with_steps(30)) == (2, 101)
    assert WidestFirst().verifications(with_steps(106)) == (1, usual_tries(106))


@pytest.mark.parametrize("values", [60, 200, 1000])
def test_a_release_from_many_values_is_valid(values: int) -> None:
    numbers = np.random.default_rng(values)
    size, count = values // 5, 2000
    columns: dict[str, Any] = {f"a{i}": numbers.integers(0, size, count) for i in range(5)}
    # Pay goes by a0. The record is paid like another a0: unusual only where that one is left out.
    columns["m"] = 100.0 * columns["a0"] + numbers.normal(0, 5, count).round(1)
    columns["a0"][0], columns["m"][0] = 0, 301.0
    schema = pcor.Schema(metric="m", attributes={f"a{i}": list(range(size)) for i in range(5)})
    table = pcor.Table(pa.table(columns), schema)
    released = pcor.release(table, 0, 0.5, search=WidestFirst(tries=5000))
    assert pcor.is_outlier(table, 0, released.context)
    assert not pcor.is_outlier(table, 0, pcor.Context.full(schema))


def test_the_page_says_how_many_tries_are_usual() -> None:
    page = Path(__file__).parents[2] / "docs" / "proofs" / "widest_first.md"
    said = " ".join(page.read_text(encoding="utf-8").split())
    few, most = widest_first._FEW_VALUES, widest_first._MOST_TRIES
    square, refits = widest_first._TRIES_TIMES_VALUES_SQUARED, widest_first._TRIES_OF_REFITS
    assert (
        f"`usual_tries`: {usual_tries(few):,} up to {few} free values; beyond, {square:,} divided "
        f"by the square of their number, but at most {most:,} and at least {refits:,}. It is "
        f"{usual_tries(few, compiled=False):,} where the detector has no kernel"
    ) in said
    free = few + 1
    assert usual_tries(free) == min(most, max(refits, square // free**2)) != usual_tries(few)
