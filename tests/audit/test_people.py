"""Audits by person: equal to tables rebuilt without all rows of somebody, or with a newcomer's."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import pcor
from pcor.audit import (
    coe_match,
    exact_log_chances,
    exposure,
    exposures,
    joint_delta,
    joint_exposure,
    lof_windows,
)
from pcor.audit.changed import Row
from pcor.audit.neighbours import Neighbour, insertions, removals
from pcor.audit.people import kinds_of_people
from pcor.errors import ParameterError
from pcor.search.validity import Validity
from tests.helpers.divergence import naive_divergence
from tests.helpers.people_tables import (
    EPSILON,
    ROUNDING,
    RULES,
    SCHEMA,
    PersonRow,
    changed_sources,
    check_found,
    check_people,
    coe,
    people_table,
    random_people,
    without,
)

MATCH = sys.modules["pcor.audit.match"]
LOF = RULES["lof"]


def with_dataset(**declared: Any) -> pcor.Schema:
    return pcor.Schema.from_dict(SCHEMA.to_dict() | {"dataset": {"id": "id", **declared}})


# -- acceptance: equal to recomputation -----------------------------------------------------------


def test_audits_by_person_are_those_of_rebuilt_tables() -> None:
    """Every rule on a few tables; 300 were compared once by the same function."""
    exposed: Counter[str] = Counter()
    for seed, rule in enumerate([*RULES.values()] * 2):
        exposed += check_people(random_people(seed), rule, [40.0 if seed % 2 else 3.0])
    assert min(exposed[kind] for kind in ("removed", "added", "several rows", "own")) > 2


OVERLAP = pcor.Overlap(pcor.Context(SCHEMA, {"job": ["a", "b"], "city": ["x"]}))


@pytest.mark.parametrize(
    "options",
    [
        {"utility": "people"},
        {"utility": OVERLAP, "selection": "exponential"},
        {"search": pcor.WidestFirst(samples=3)},
        {"search": "random_walk", "samples": 2},
    ],
    ids=["people", "overlap", "widest_first", "random_walk"],
)
def test_every_way_to_compare_answers_is_that_of_rebuilt_tables(options: dict[str, Any]) -> None:
    exposed: Counter[str] = Counter()
    for seed in range(30, 33):
        exposed += check_people(random_people(seed, people=5), LOF, [40.0], **options)
    assert exposed["removed"] > 0


def test_the_other_rows_of_the_records_own_person_go_and_the_record_stays() -> None:
    """Counted as a person; by the utility people they change no score, for V is there anyway."""
    cells = [("a", "x", float(pay)) for pay in (1, 2, 2, 3)]
    rows = [PersonRow(n, "v", cell) for n, cell in enumerate([("a", "x", 40.0), *cells[:3]])]
    rows.append(PersonRow(4, "other", cells[3]))
    rule = pcor.LOF(k=2, threshold=1.3, min_population=5)
    found = exposure(people_table(rows), 0, EPSILON, detector=rule, insert=[])
    assert (found.people, found.exposed_people) == (2, 2)
    own = next(one for one in found.exposed if one.kept)
    assert [row.metric for row in own.rows] == [1.0, 2.0, 2.0]
    assert [row.metric for row in own.kept] == [40.0]
    assert own.delta == 1.0  # without them there is no valid context


def test_the_fast_way_of_lof_is_the_generic_one_for_people(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Populations around the smallest, and windows in which somebody has several rows."""
    total = 0
    rules = [(1, 1.1, 1), (2, 1.3, 4), (3, 1.2, 12), (5, 1.5, 30)]
    for seed, (k, threshold, least) in enumerate(rules * 6):
        table = crowd(seed, 60 if k < 5 else 200)
        rule = pcor.LOF(k=k, threshold=threshold, min_population=least)
        validity = Validity(table, table.record(0), rule)
        assert lof_windows.walkable_rule(validity) is not None
        fast = [said(removals(validity)), said(insertions(validity, [3.0, 25.0]))]
        with monkeypatch.context() as patch:
            patch.setattr(lof_windows, "walkable_rule", lambda _: None)
            slow = [said(removals(validity)), said(insertions(validity, [3.0, 25.0]))]
        assert fast == slow
        total += sum(len(key[1]) > 1 for found in fast for key in found)
    assert total > 30


def test_the_fast_way_is_the_generic_one_for_people_in_boxes_of_families(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Years as ranges: two chains; and enough values that boxes of contexts are settled at once."""
    schema = pcor.Schema(
        metric="pay",
        attributes={
            "job": list("abcdef"),
            "city": list("xyz"),
            "year": {"values": list(range(2001, 2006)), "contexts": "range"},
        },
        id="id",
        person="who",
        rows_per_person=4,
    )
    total = 0
    for seed, (k, threshold) in enumerate([(2, 1.3), (3, 1.5), (4, 1.2), (5, 2.0)]):
        numbers = np.random.default_rng(seed)
        rows = crowd_columns(seed, 300)
        rows["job"] = np.array(list("abcdef"))[numbers.integers(0, 6, 300)]
        rows["city"] = np.array(list("xyz"))[numbers.integers(0, 3, 300)]
        rows["year"] = numbers.integers(2001, 2006, 300)
        table = pcor.Table(pa.table(rows), schema)
        rule = pcor.LOF(k=k, threshold=threshold, min_population=k + 2)
        validity = Validity(table, table.record(0), rule)
        assert not validity.record.space.binary
        near = [int(key) for key in np.argsort(np.abs(rows["pay"] - rows["pay"][0]))[:60]]
        fast = [said(removals(validity, rows=near)), said(insertions(validity, [25.0]))]
        with monkeypatch.context() as patch:
            patch.setattr(lof_windows, "walkable_rule", lambda _: None)
            slow = [said(removals(validity, rows=near)), said(insertions(validity, [25.0]))]
        assert fast == slow
        total += sum(len(key[1]) > 1 for found in fast for key in found)
    assert total > 30


def test_nobody_walks_where_nobody_can_leave(monkeypatch: pytest.MonkeyPatch) -> None:
    table = crowd(0, 60)
    validity = Validity(table, table.record(0), LOF)
    rule = lof_windows.walkable_rule(validity)
    assert rule is not None
    monkeypatch.delattr(lof_windows, "Windows")
    assert list(lof_windows.departure_changes(validity, rule, [], None)) == []


def crowd(seed: int, size: int) -> pcor.Table:
    return pcor.Table(pa.table(crowd_columns(seed, size)), SCHEMA)


def crowd_columns(seed: int, size: int) -> dict[str, np.ndarray]:
    """Return people with one to four rows near one another, and V where they thin out."""
    numbers = np.random.default_rng(seed)
    who = np.repeat(np.arange(size), numbers.integers(1, 5, size))[:size]
    levels = numbers.lognormal(3, 0.4, size)
    pay = np.round(levels[who] * numbers.normal(1, 0.02, size), 1)
    pay[0] = np.sort(pay)[-size // 30] * 1.1
    return {
        "id": np.arange(size),
        "who": who,
        "job": np.array(["a", "b", "c"])[numbers.zipf(1.6, size) % 3],
        "city": np.array(["x", "y"])[numbers.integers(0, 2, size)],
        "pay": pay,
    }


Said = dict[tuple[str, tuple[Row, ...], tuple[Row, ...]], tuple[int, list[int], list[int]]]


def said(neighbours: list[Neighbour]) -> Said:
    found = {
        (one.kind, one.changed, one.kept): (one.rows, one.lost.tolist(), one.gained.tolist())
        for one in neighbours
    }
    assert len(found) == len(neighbours)
    return found


# -- differential privacy for everyone but the record ---------------------------------------------


@pytest.mark.parametrize("name", ["tail", "neighbourhood", "rare bin"])
def test_under_dp_the_largest_ratio_is_that_of_every_person_and_newcomer(name: str) -> None:
    rows = random_people(7, people=5)
    options: dict[str, Any] = {"detector": RULES[name], "guarantee": "dp"}
    found = exposure(people_table(rows), 0, EPSILON, insert=[0.0, 40.0], **options)
    before = exact_log_chances(people_table(rows), 0, EPSILON, **options)
    ratios = [
        naive_divergence(
            before, exact_log_chances(people_table(there), 0, EPSILON, **options), EPSILON
        ).ratio
        for there in changed_sources(rows, [0.0, 40.0]).values()
    ]
    largest = max(ratio for ratio in ratios if ratio is not None)
    assert found.everyone == pytest.approx(largest, abs=ROUNDING)
    assert largest <= EPSILON + ROUNDING
    assert "people, with all of their rows, or a newcomer" in found.verdict


# -- several records, COE match, chosen rows ------------------------------------------------------


def test_a_list_keeps_the_rows_of_all_its_records_in_the_table() -> None:
    rows = random_people(3)
    queried = [0, next(row.key for row in rows[1:] if row.who == "v"), 5]
    found = exposures(people_table(rows), queried, EPSILON, detector=LOF, insert=[40.0])
    together = joint_exposure(found)
    for one in found:
        check_found(one, rows, LOF, [40.0], queried)
    old = [coe(people_table(rows), LOF, key) for key in queried]
    exposed = 0
    for who in dict.fromkeys(row.who for row in rows):
        there = people_table(without(rows, who, queried))
        exposed += old != [coe(there, LOF, key) for key in queried]
    assert together.exposed_people == exposed > 0
    worst = together.exposed[0]
    alike = [
        one.delta
        for each in found
        for one in each.exposed
        if one.to_dict()["rows"] == worst.to_dict()["rows"]
    ]
    assert worst.delta == pytest.approx(joint_delta(alike))
    assert "with all rows but those of the records" in together.verdict


def test_audits_that_left_other_rows_in_the_table_are_not_put_together() -> None:
    table = people_table(random_people(3))
    alone = [exposure(table, key, EPSILON, detector=LOF, insert=[]) for key in (0, 5)]
    with pytest.raises(ParameterError, match=r"audited together: pcor\.audit\.exposures"):
        joint_exposure(alone)


@pytest.mark.parametrize("seed", [1, 4, 6])
def test_where_only_some_rows_of_a_person_are_counted_the_audit_counts_those(seed: int) -> None:
    """V is held in the table, also where of its person other rows are counted."""
    schema = with_dataset(person="who", rows_per_person=2, over="keep")
    rows = random_people(seed)
    table = people_table(rows, schema)
    found = exposure(table, 0, EPSILON, detector=LOF, insert=[])
    old = coe(table, LOF)
    before = exact_log_chances(table, 0, EPSILON, detector=LOF)
    expected = []
    for who in dict.fromkeys(row.who for row in rows):
        there = people_table(without(rows, who), schema)
        if coe(there, LOF) != old:
            after = exact_log_chances(there, 0, EPSILON, detector=LOF)
            expected.append(naive_divergence(before, after, EPSILON).delta)
    seen = [one.delta for one in found.exposed for _ in range(one.people)]
    assert sorted(seen) == pytest.approx(sorted(expected), abs=ROUNDING)
    assert all(len(one.rows) <= 2 for one in found.exposed)


CHOSEN: dict[str, dict[str, Any]] = {
    "lof": {"detector": LOF},
    "tail": {"detector": RULES["tail"]},
    "grubbs": {"detector": RULES["grubbs"]},
    "people": {"detector": LOF, "utility": "people"},
    "widest_first": {"detector": LOF, "search": pcor.WidestFirst(samples=3)},
    "exponential": {"detector": LOF, "selection": "exponential"},
}


def queried_rows(rows: list[PersonRow]) -> list[int]:
    """Return V, another row of its person and several of others: some are counted, some not."""
    return [0, *[row.key for row in rows[1:] if row.who == "v"][:1], 3, 4, 6, 7]


@pytest.mark.parametrize("name", CHOSEN)
def test_queried_rows_that_were_left_out_are_counted_when_the_others_went(name: str) -> None:
    """As K(D') in docs/proofs/people.md: what comes then exposes people as what goes does."""
    options, told = CHOSEN[name], 0
    for seed, most in zip(range(50, 56), [1, 2] * 3, strict=True):
        schema = with_dataset(person="who", rows_per_person=most, over="keep")
        rows = random_people(seed, people=6)
        table, public = people_table(rows, schema), queried_rows(rows)
        found = exposure(table, 0, EPSILON, insert=[], public=public, **options)
        old = coe(table, options["detector"])
        before = exact_log_chances(table, 0, EPSILON, **options)
        expected = []
        for who in names(rows):
            there = people_table(without(rows, who, public), schema)
            if coe(there, options["detector"]) != old:
                after = exact_log_chances(there, 0, EPSILON, **options)
                expected.append(naive_divergence(before, after, EPSILON))
        seen = [(one.delta, one.ratio) for one in found.exposed for _ in range(one.people)]
        assert in_order(seen) == pytest.approx(in_order(expected), abs=ROUNDING)
        record = table.record(0)
        kinds = kinds_of_people(table.holding(record), record, public=public)
        told += sum(bool(kind.come) for kind in kinds)
    assert told > 3


def in_order(found: Sequence[tuple[float, float | None]]) -> list[float]:
    """Return deltas and ratios, those that are none as -1."""
    pairs = sorted((round(delta, 9), -1.0 if ratio is None else ratio) for delta, ratio in found)
    return [number for pair in pairs for number in pair]


def test_under_dp_what_comes_when_others_went_is_in_the_largest_ratio() -> None:
    options: dict[str, Any] = {"detector": RULES["tail"], "guarantee": "dp"}
    schema = with_dataset(person="who", rows_per_person=1, over="keep")
    for seed in range(50, 54):
        rows = random_people(seed, people=6)
        table, public = people_table(rows, schema), queried_rows(rows)
        found = exposure(table, 0, EPSILON, insert=[], public=public, **options)
        before = exact_log_chances(table, 0, EPSILON, **options)
        ratios = []
        for who in names(rows):
            there = people_table(without(rows, who, public), schema)
            after = exact_log_chances(there, 0, EPSILON, **options)
            ratios.append(naive_divergence(before, after, EPSILON).ratio or 0.0)
        assert found.everyone == pytest.approx(max(ratios), abs=ROUNDING)


@pytest.mark.parametrize("kind", ["removed", "added"])
def test_a_match_by_person_is_that_of_tables_built_anew(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows, real = random_people(11), MATCH.changed_table
    drawn: list[list[Row]] = []

    def remember(table: pcor.Table, **changes: list[Row]) -> pcor.Table:
        drawn.extend(changes.values())
        changed: pcor.Table = real(table, **changes)
        return changed

    monkeypatch.setattr(MATCH, "changed_table", remember)
    [found] = coe_match(people_table(rows), 0, LOF, changes=(2,), repeats=8, kind=kind)
    old, equal = coe(people_table(rows), LOF), 0
    whole = [sorted(as_row(row.cell) for row in rows[1:] if row.who == who) for who in names(rows)]
    for changed in drawn:
        cells = [as_row(row.cell) for row in rows[1:]]
        if kind == "removed":
            assert any(sorted(a + b) == sorted(changed) for a in whole for b in whole if a is not b)
            for row in changed:
                cells.remove(row)
        else:
            cells += changed
        new = [rows[0], *(PersonRow(n + 1, f"{n}", as_cell(row)) for n, row in enumerate(cells))]
        equal += coe(people_table(new), LOF) == old
    assert found.equal == equal / 8
    with pytest.raises(ParameterError, match="at most the number of people beside the record"):
        coe_match(people_table(rows), 0, LOF, changes=(len(rows),))


def names(rows: list[PersonRow]) -> list[str]:
    return list(dict.fromkeys(row.who for row in rows))


def as_row(cell: tuple[str, str, float]) -> Row:
    return Row(("abc".index(cell[0]), "xy".index(cell[1])), cell[2])


def as_cell(row: Row) -> tuple[str, str, float]:
    return "abc"[row.places[0]], "xy"[row.places[1]], row.value


# -- what it says ---------------------------------------------------------------------------------


def test_an_audit_by_person_says_what_was_taken_away_and_what_was_tried() -> None:
    found = exposure(people_table(random_people(0)), 0, EPSILON, detector=LOF, insert=[40.0])
    assert "A person goes with all of their rows; the record stays, being public" in found.verdict
    assert (
        "possible newcomers (each with 1 row or 4 rows, all alike; no others were tried)"
        in found.verdict
    )
    told = found.to_dict()
    assert told["newcomers"]["rows"] == [1, 4]
    assert told["newcomers"]["tried"] == 2 * 6
    assert {"rows", "kept"} <= set(told["exposed"][0])


def test_some_people_can_be_named_by_any_of_their_rows() -> None:
    rows = random_people(0)
    table = people_table(rows)
    everybody = exposure(table, 0, EPSILON, detector=LOF, insert=[])
    for key in (row.key for row in rows if row.who == rows[1].who):
        some = exposure(table, 0, EPSILON, detector=LOF, insert=[], rows=[key])
        assert 1 <= some.people < everybody.people


def test_without_a_person_an_audit_says_nothing_of_people_with_several_rows() -> None:
    found = exposure(people_table(random_people(0), with_dataset()), 0, EPSILON, detector=LOF)
    assert "all of their rows" not in found.verdict
    assert "rows" not in found.to_dict()["newcomers"]
    assert all({"rows", "kept"}.isdisjoint(one.to_dict()) for one in found.newcomers)
