"""Families: what is valid in them, and that every search stays inside."""

from __future__ import annotations

import math
import random
from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import pcor
from pcor.errors import NoValidContext, StartError
from pcor.releasing.request import Request
from pcor.releasing.run import best_first as best_first_of
from pcor.search import best_first, margin
from pcor.search.base import SamplingSearch
from pcor.search.validity import Validity
from pcor.testing import seeded
from tests.helpers.families import items
from tests.helpers.family_tables import TWINS, FamilyTable, family_table
from tests.helpers.neighbours import every_search

CASES = [family_table(seed) for seed in range(300)]


def coe(case: FamilyTable, detector: pcor.Detector) -> dict[int, int]:
    found = pcor.matching_contexts(case.table, case.record, detector)
    return dict(zip((c.mask for c in found.contexts), found.populations.tolist(), strict=True))


@pytest.mark.parametrize("name", sorted(TWINS))
def test_coe_is_the_valid_contexts_of_the_family_by_its_definition(name: str) -> None:
    """300 random schemas and tables of mixed families and limits, each listed member by member."""
    detector, twin = TWINS[name]
    sizes = Counter[bool]()
    for case in CASES:
        expected = case.coe(twin, detector.min_population)
        if expected is not None:
            assert coe(case, detector) == expected
            sizes[bool(expected)] += 1
    assert sizes.total() > 250
    assert min(sizes.values()) > 25  # or the comparison would be of nothing


def test_the_direct_draw_is_over_the_family_by_its_utilities() -> None:
    """The ordered draw has the chances of permute-and-flip over the listed members."""
    detector, twin = TWINS["grubbs"]
    compared = 0
    for case in CASES[:120]:
        expected = case.coe(twin, detector.min_population)
        if not expected or len(expected) > 12:
            continue
        chances = pcor.audit.exact_distribution(
            case.table, case.record, 1, detector=detector, selection="exponential"
        )
        best = max(expected.values())
        weights = {mask: math.exp(n - best) for mask, n in expected.items()}
        total = sum(weights.values())
        found = {context.mask: chance for context, chance in chances.items()}
        assert found == pytest.approx({m: w / total for m, w in weights.items()}, abs=1e-9)
        compared += 1
    assert compared > 20


@pytest.mark.parametrize("search", every_search(5), ids=lambda search: search.name)
@pytest.mark.parametrize("name", ["lof", "tail"])
def test_every_search_stays_in_the_family(search: pcor.Search, name: str) -> None:
    detector, twin = TWINS[name]
    released = 0
    for seed, case in enumerate(CASES[:100]):
        valid = case.coe(twin, detector.min_population)
        if valid is None:
            continue
        try:
            found = pcor.release(case.table, case.record, 1, detector, search, chooser=seeded(seed))
        except NoValidContext:
            assert not valid or isinstance(search, SamplingSearch)
            continue
        assert found.context.mask in valid
        released += 1
    assert released > 20


def test_dp_draws_members_alone() -> None:
    detector, _ = TWINS["tail"]
    for seed, case in enumerate(CASES[:60]):
        schema = pcor.Schema.from_dict(case.schema.to_dict() | {"dataset": {"positions": "public"}})
        table = pcor.Table(case.frame, schema)
        chances = pcor.audit.exact_distribution(
            table, case.record, 1, detector=detector, guarantee="dp"
        )
        assert {context.mask for context in chances} == set(case.members)
        drawn = pcor.release(table, case.record, 1, detector, guarantee="dp", chooser=seeded(seed))
        assert drawn.context.mask in set(case.members)


def test_a_start_outside_the_family_is_refused_with_the_reason() -> None:
    schema = pcor.Schema(
        metric="metric",
        attributes={"year": [2006, 2007, 2008, 2009], "job": ["a", "b"]},
        contexts={"year": "range"},
    )
    rows = {"year": [2006, 2007, 2008, 2009] * 6, "job": ["a", "b"] * 12}
    table = pcor.Table(pa.table(rows | {"metric": [1.0] * 23 + [9.0]}), schema)
    start = pcor.Context(schema, {"year": [2006, 2009]})
    budget = pcor.Budget(1)
    with pytest.raises(StartError, match="not one of the contexts that the schema allows"):
        pcor.release(table, 23, 1, search="random_walk", start=start, budget=budget)
    assert budget.left == 1  # the schema alone decides it, so nobody pays for it
    overlap = pcor.Overlap(start)  # to compare with, any context will do
    assert pcor.plan(schema, 1, utility=overlap)


def test_to_allow_every_set_in_so_many_words_is_the_same_schema() -> None:
    for case in CASES[:20]:
        domains = {a.name: list(a.values) for a in case.schema.attributes}
        plain = pcor.Schema(metric="metric", attributes=domains)
        worded = {name: {"values": values, "contexts": "any"} for name, values in domains.items()}
        assert pcor.Schema(metric="metric", attributes=worded).sha256 == plain.sha256


# -- brevity --------------------------------------------------------------------------------------


def named(case: FamilyTable, mask: int) -> int:
    """Return how many items the words for a context name, attribute by attribute."""
    context = pcor.Context.from_mask(case.schema, mask)
    return sum(
        items(a, frozenset(a.code(value) for value in context.values[a.name]))
        for a in case.schema.attributes
    )


@pytest.mark.parametrize("search", [pcor.Direct(), pcor.WidestFirst()], ids=lambda s: s.name)
def test_brevity_takes_rows_off_for_each_thing_named(search: pcor.Search) -> None:
    """The chances are those of the exponential mechanism over population - 3 * named."""
    detector, twin = TWINS["grubbs"]
    compared = 0
    for case in CASES[:120]:
        valid = case.coe(twin, detector.min_population)
        if not valid or len(valid) > 12:
            continue
        chances = pcor.audit.exact_distribution(
            case.table,
            case.record,
            1,
            detector=detector,
            search=search,
            selection="exponential",
            brevity=3,
        )
        full = (1 << case.schema.width) - 1
        if isinstance(search, pcor.WidestFirst) and full in valid:
            valid = {full: valid[full]}
        scores = {mask: n - 3 * named(case, mask) for mask, n in valid.items()}
        best = max(scores.values())
        weights = {mask: math.exp(score - best) for mask, score in scores.items()}
        found = {context.mask: chance for context, chance in chances.items()}
        total = sum(weights.values())
        assert found == pytest.approx({m: w / total for m, w in weights.items()}, abs=1e-9)
        compared += 1
    assert compared > 20


@pytest.mark.parametrize("listed", [True, False])
@pytest.mark.parametrize("brevity", [0, 1, 7])
def test_candidates_come_by_falling_score_whatever_brevity(
    brevity: int, listed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every valid context once; and at every moment the bounds cover what is not ranked."""
    monkeypatch.setattr(best_first, "FIRST_STEP", 2)
    monkeypatch.setattr(best_first, "LARGEST_STEP", 2)
    monkeypatch.setattr(best_first, "_SORT_AFTER", 4 if listed else 1 << 30)
    detector, twin = TWINS["grubbs"]
    met = 0
    for case in CASES[:150]:
        valid = case.coe(twin, detector.min_population)
        if not valid:
            continue
        expected = {mask: n - brevity * named(case, mask) for mask, n in valid.items()}
        table = case.table
        validity = Validity(table, table.record(case.record), detector)
        order = best_first.BestFirst(validity, table.cells.cell_counts, brevity)
        while not order.finished:
            ranked = set(order.masks()) if order.ranked() else set()
            bounds = order.remaining()
            for least in set(expected.values()):
                left = sum(s >= least for mask, s in expected.items() if mask not in ranked)
                assert left <= sum(run.count for run in bounds if run.utility >= least)
            order.advance()
        scores = [run.utility for run in order.ranked() for _ in range(run.count)]
        assert dict(zip(order.masks(), scores, strict=True)) == expected
        assert scores == sorted(scores, reverse=True)
        met += 1
    assert met > 40


def test_brevity_must_be_a_whole_number() -> None:
    schema = CASES[0].schema
    for wrong in (-1, 1.5, True, "2"):
        with pytest.raises(pcor.errors.ParameterError, match="brevity must be a whole number"):
            pcor.plan(schema, 1, brevity=wrong)  # type: ignore[arg-type]
    assert "brevity" not in pcor.plan(schema, 1).to_dict()
    assert pcor.plan(schema, 1, brevity=5).to_dict()["brevity"] == 5


# -- few members of many contexts ------------------------------------------------------------------


def narrow(attributes: int = 30) -> tuple[pcor.Table, pcor.Schema]:
    """Return 30 attributes of which two may be restricted: 466 members of 2^30 contexts."""
    domains = {f"a{n}": {"values": ["x", "y"], "contexts": "one"} for n in range(attributes)}
    schema = pcor.Schema(metric="metric", attributes=domains, max_clauses=2)
    numbers = random.Random(0)  # noqa: S311 (test data)
    columns = {name: [numbers.choice("xy") for _ in range(60)] for name in domains}
    metric = [float(numbers.randrange(20)) for _ in range(59)] + [90.0]
    return pcor.Table(pa.table(columns | {"metric": metric}), schema), schema


@pytest.mark.parametrize("search", every_search(5), ids=lambda search: search.name)
def test_few_members_are_found_among_many_contexts(search: pcor.Search) -> None:
    table, schema = narrow()
    assert (schema.most_contexts, schema.most_numbered) == (466, 1 << 30)
    detector = pcor.Grubbs(min_population=5)
    found = pcor.matching_contexts(table, 59, detector)
    assert 0 < len(found) <= 466
    drawn = pcor.release(table, 59, 1, detector, search, chooser=seeded(1))
    assert drawn.context in set(found.contexts)


@dataclass(frozen=True)
class Rows:
    """A utility of one's own, which the direct mechanism lists contexts for."""

    sensitivity = 1
    monotonic = True

    def score(self, population: pcor.Population) -> int:
        return population.size


def test_a_utility_of_ones_own_is_drawn_from_members_alone() -> None:
    table, _ = narrow(20)
    detector = pcor.Grubbs(min_population=5)
    drawn = pcor.release(table, 59, 1, detector, "direct", Rows(), chooser=seeded(1))
    assert drawn.context in set(pcor.matching_contexts(table, 59, detector).contexts)


@pytest.mark.parametrize("brevity", [0, 3])
def test_the_pruned_descent_meets_every_member_once(
    brevity: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in spaces that cannot be listed: no context is sorted, and limits cut on the way down."""
    monkeypatch.setattr(best_first, "LARGEST_LIST", 0)
    monkeypatch.setattr(best_first, "FIRST_STEP", 3)
    monkeypatch.setattr(best_first, "LARGEST_STEP", 3)
    detector, twin = TWINS["grubbs"]
    met = 0
    for case in CASES[:150]:
        valid = case.coe(twin, detector.min_population)
        if not valid or not case.schema.limited:
            continue
        table = case.table
        validity = Validity(table, table.record(case.record), detector)
        order = best_first.BestFirst(validity, table.cells.cell_counts, brevity)
        while not order.finished:
            order.advance()
        expected = {mask: n - brevity * named(case, mask) for mask, n in valid.items()}
        scores = [run.utility for run in order.ranked() for _ in range(run.count)]
        assert dict(zip(order.masks(), scores, strict=True)) == expected
        met += 1
    assert met > 20


def test_old_questions_keep_their_fingerprints() -> None:
    """Or a ledger would charge for them again. Written down before there were families."""
    schema = pcor.Schema(metric="pay", attributes={"job": ["a", "b"], "city": ["x", "y"]}, id="id")
    plain = pcor.plan(schema, "0.2", detector="lof")
    request = Request.of(plain, 8, dataset="d", analyst="a")
    assert request.key == ("20354d8939b66439841df51cd3add4940724fd575791b506691a3b9bfa44ea16")
    brief = pcor.plan(schema, "0.2", detector="lof", brevity=5)
    assert Request.of(brief, 8, dataset="d", analyst="a").key != request.key


def test_a_context_outside_the_family_is_judged_like_any_other() -> None:
    """``is_outlier`` is about rows; the family says which contexts are released."""
    rows = {"a": ["x", "y", "z"] * 30, "m": [*map(float, range(89)), 900.0]}
    wide = pcor.Schema(metric="m", attributes={"a": ["x", "y", "z"]})
    narrow = pcor.Schema(metric="m", attributes={"a": ["x", "y", "z"]}, contexts={"a": "one"})
    for values in (["z"], ["y", "z"], ["x", "z"], ["x", "y"], ["x", "y", "z"]):
        found = [
            pcor.is_outlier(pcor.Table(pa.table(rows), schema), 89, {"a": values}, "grubbs")
            for schema in (wide, narrow)
        ]
        assert found == ["z" in values] * 2


def ranked(case: FamilyTable, guarantee: str, brevity: int) -> list[tuple[int, int]]:
    """Return all candidates of the direct mechanism with their utilities, best first."""
    schema = pcor.Schema.from_dict(case.schema.to_dict() | {"dataset": {"positions": "public"}})
    table = pcor.Table(case.frame, schema)
    plan = pcor.plan(schema, 1, detector=TWINS["tail"][0], guarantee=guarantee, brevity=brevity)
    order = best_first_of(plan, Validity(table, table.record(case.record), plan.detector))
    assert order is not None
    while not order.finished:
        order.advance()
    utilities = [run.utility for run in order.ranked() for _ in range(run.count)]
    masks = [order.mask(place) for place in range(len(utilities))]
    return sorted(zip(utilities, masks, strict=True), key=lambda one: (-one[0], one[1]))


@pytest.mark.parametrize("guarantee", ["ocdp", "dp"])
def test_members_are_listed_where_the_others_are_too_many_to_be_walked(
    guarantee: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    limited = [case for case in CASES if case.schema.lists_members][:40]
    expected = [ranked(case, guarantee, brevity) for case in limited for brevity in (0, 3)]
    monkeypatch.setattr(best_first, "MOST_STEPS", -1)
    monkeypatch.setattr(best_first, "LARGEST_LIST", 0)
    monkeypatch.setattr(margin, "LARGEST_LIST", 0)
    found = [ranked(case, guarantee, brevity) for case in limited for brevity in (0, 3)]
    assert found == expected
    assert sum(map(len, expected)) > 100


def test_few_members_of_long_ranges_are_drawn_from_directly() -> None:
    """Of 5 ranges of 40 values 13 million million contexts are numbered, and 2,096 are members."""
    numbers = random.Random(1)  # noqa: S311 (a table)
    names = {f"a{n}": list(range(40)) for n in range(5)}
    rows = {name: [numbers.randrange(40) for _ in range(300)] for name in names}
    rows = {name: [20, *column[1:]] for name, column in rows.items()}
    schema = pcor.Schema(
        metric="m", attributes=names, contexts=dict.fromkeys(names, "range"), max_clauses=1
    )
    table = pcor.Table(pa.table(rows | {"m": [99.0, *map(float, range(299))]}), schema)
    assert schema.most_contexts == 1 + 5 * (20 * 21 - 1)
    assert pcor.plan(schema, 1).search.name == "direct"
    found = pcor.matching_contexts(table, 0, pcor.Tail(0.9, min_population=5))
    drawn = pcor.release(table, 0, 1, pcor.Tail(0.9, min_population=5), chooser=seeded(1))
    assert table.words([drawn.context.mask])[0].tolist() in found.masks.tolist()


def test_limits_that_leave_many_contexts_do_not_list_them() -> None:
    names = {f"a{n}": list(range(10)) for n in range(6)}
    rows = {name: [n % 10 for n in range(200)] for name in names}
    schema = pcor.Schema(metric="m", attributes=names, max_clauses=5)
    table = pcor.Table(pa.table(rows | {"m": [999.0, *map(float, range(199))]}), schema)
    assert schema.most_contexts > 1 << 40
    assert table.record(0).space.members is None
    assert pcor.release(table, 0, 1, "grubbs", "uniform", samples=5, chooser=seeded(1))


def test_where_limits_leave_few_contexts_each_of_them_is_judged_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    numbers = np.random.default_rng(3)
    attributes = {f"a{n}": {"values": [0, 1, 2], "contexts": "one"} for n in range(12)}
    schema = pcor.Schema(metric="pay", attributes=attributes, max_clauses=3)
    columns = {name: numbers.integers(0, 3, 400) for name in attributes}
    table = pcor.Table(pa.table(columns | {"pay": numbers.normal(0, 1, 400)}), schema)
    validity = Validity(table, table.record(0), pcor.LOF(k=3))
    judged: list[int] = []
    batch = pcor.LOF.batch

    def counting(rule: pcor.LOF, cells: Any, value: float, masks: Any, *rest: Any) -> Any:
        judged.append(len(masks))
        return batch(rule, cells, value, masks, *rest)

    monkeypatch.setattr(pcor.LOF, "batch", counting)
    order = best_first.BestFirst(validity, table.cells.cell_counts)
    while not order.finished:
        order.advance()
    assert schema.most_numbered == 4096
    assert sum(judged) == schema.most_contexts == 299
    found = pcor.matching_contexts(table, 0, pcor.LOF(k=3))
    assert set(order.masks()) == {context.mask for context in found.contexts}
