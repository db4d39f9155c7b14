"""COE match: against tables built anew from their rows, and what it promises to groups."""

from __future__ import annotations

import sys
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pcor
from pcor.audit import Match, coe_match, group_delta, group_epsilon
from pcor.audit.changed import Row as ChangedRow
from pcor.errors import ParameterError, TooLarge, UnknownName
from pcor.public.guarantee import Promise, PureDP, get_guarantee
from tests.helpers.neighbours import DETECTORS, SCHEMA, Row, small

MODULE = sys.modules["pcor.audit.match"]
LOF = DETECTORS["lof"]
PEOPLE: list[Row] = [
    ("a", "x", 40.0),
    *[("abc"[n % 3], "xy"[n // 2 % 2], float(n * n % 13)) for n in range(14)],
]


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[list[ChangedRow]]:
    """Remember which rows came or went."""
    kept: list[list[ChangedRow]] = []
    real = MODULE.changed_table

    def remember(table: pcor.Table, **changes: list[ChangedRow]) -> pcor.Table:
        kept.extend(changes.values())
        changed: pcor.Table = real(table, **changes)
        return changed

    monkeypatch.setattr(MODULE, "changed_table", remember)
    return kept


def as_row(row: ChangedRow) -> Row:
    job, city = row.places
    return "abc"[job], "xy"[city], row.value


def naive(
    rows: list[Row], changed: list[ChangedRow], kind: str, rule: pcor.Detector
) -> list[float]:
    """Build the changed table from its rows and compare the two sets."""
    others = list(rows)
    for row in map(as_row, changed):
        if kind == "removed":
            others.pop(others.index(row, 1))  # V is the first, and stays
        else:
            others.append(row)
    old, new = small(rows, rule).coe, small(others, rule).coe
    both, either = len(old & new), len(old | new)
    return [float(old == new), both / either if either else 1.0, both / len(old) if old else 1.0]


@pytest.mark.parametrize("kind", ["removed", "added"])
@pytest.mark.parametrize("name", sorted(DETECTORS))
def test_a_match_is_that_of_tables_built_anew(
    kind: str, name: str, drawn: list[list[ChangedRow]]
) -> None:
    rule = DETECTORS[name]
    found = coe_match(
        small(PEOPLE, rule).table, 0, rule, changes=(1, 3, 6), repeats=6, kind=kind, seed=5
    )
    assert [len(rows) for rows in drawn] == [1] * 6 + [3] * 6 + [6] * 6
    for place, match in enumerate(found):
        tables = [naive(PEOPLE, rows, kind, rule) for rows in drawn[place * 6 : place * 6 + 6]]
        expected = np.mean(tables, axis=0)
        assert [match.equal, match.overlap, match.kept] == pytest.approx(expected.tolist())
        assert (match.kind, match.changes, match.repeats) == (kind, (1, 3, 6)[place], 6)


@settings(max_examples=15, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from("abc"), st.sampled_from("xy"), st.integers(0, 9).map(float)),
        min_size=1,
        max_size=9,
    ),
    st.integers(0, 1000),
    st.sampled_from(["removed", "added"]),
)
def test_judging_only_what_a_change_touches_is_judging_everything(
    others: list[Row], seed: int, kind: str
) -> None:
    table = small([("a", "x", 40.0), *others], LOF).table
    options: dict[str, Any] = {"changes": (1,), "repeats": 3, "kind": kind, "seed": seed}
    found = coe_match(table, 0, LOF, **options)[0]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(MODULE, "_after", lambda _, validity, __: MODULE.verdicts(validity))
        assert coe_match(table, 0, LOF, **options)[0] == found


def test_everybody_but_the_record_can_be_removed_at_once() -> None:
    found = coe_match(small(PEOPLE, LOF).table, 0, LOF, changes=(14,), repeats=1)
    assert (found[0].equal, found[0].overlap, found[0].kept) == (0.0, 0.0, 0.0)


def test_the_record_itself_is_never_removed(drawn: list[list[ChangedRow]]) -> None:
    twins = [PEOPLE[0], PEOPLE[0], *PEOPLE[1:]]
    coe_match(small(twins, LOF).table, 0, LOF, changes=(15,), repeats=2)
    for rows in drawn:
        assert sorted(map(as_row, rows)) == sorted(twins[1:])


def test_added_rows_come_from_the_whole_domain_with_the_metrics_of_the_table(
    drawn: list[list[ChangedRow]],
) -> None:
    coe_match(small(PEOPLE, LOF).table, 0, LOF, changes=(200,), repeats=1, kind="added")
    rows = [as_row(row) for row in drawn[0]]
    assert {row[:2] for row in rows} == {(job, city) for job in "abc" for city in "xy"}
    assert {pay for _, _, pay in rows} == {pay for _, _, pay in PEOPLE}


def test_the_same_seed_gives_the_same_numbers_and_another_one_others() -> None:
    table = small(PEOPLE, LOF).table
    first, again, other = (
        [m.to_dict() for m in coe_match(table, 0, LOF, changes=(2, 4), repeats=8, seed=seed)]
        for seed in (1, 1, 2)
    )
    assert first == again != other


def test_progress_is_told_of_every_table() -> None:
    heard: list[tuple[int, int]] = []
    coe_match(
        small(PEOPLE, LOF).table,
        0,
        LOF,
        changes=(1, 2),
        repeats=2,
        progress=lambda done, total: heard.append((done, total)),
    )
    assert heard == [(1, 4), (2, 4), (3, 4), (4, 4)]


def test_a_group_is_promised_so_many_times_epsilon() -> None:
    match = Match("removed", 5, 50, 0.9, 0.99, 0.995)
    assert group_epsilon("0.2", 5) == Fraction(1)
    assert match.group(Promise(Fraction(1, 5))) == (
        "To a group of 5 whose absence leaves the set of valid contexts as it is, a release with "
        "epsilon 0.2 promises 1; in 90.0% of 50 random tries it did. To others OCDP promises "
        "nothing."
    )


def test_a_group_is_told_of_the_delta_that_grows_with_it() -> None:
    match = Match("added", 3, 50, 0.9, 0.99, 0.995)
    said = match.group(Promise(Fraction(1), Fraction(1, 1000)))
    assert "with epsilon 1 and delta 0.001 promises 3 with a delta of 0.0111;" in said
    assert group_delta(1, "0.001", 3) == pytest.approx(0.001 * (1 + np.e + np.e**2))
    assert group_delta(1, "0.001", 1) == pytest.approx(0.001)
    assert group_delta(100, "0.001", 25) == 1.0


@pytest.mark.parametrize("guarantee", ["ocdp", "dp"])
def test_a_promise_with_a_delta_says_how_it_grows_with_the_rows_of_a_person(guarantee: str) -> None:
    def said(delta: Fraction) -> str:
        promise = Promise(Fraction(1), delta, get_guarantee(guarantee))
        (line,) = [line for line in promise.not_protected if line.startswith("a person with")]
        assert line in str(promise)
        assert line in promise.to_html()
        return line

    assert said(Fraction(0)) == "a person with several rows, beyond epsilon for each of them"
    line = said(Fraction(1, 10**6))
    assert line.endswith("for k rows delta * (1 + exp(epsilon) + ... + exp((k - 1) * epsilon))")
    chance, delta = 0.0, 1e-6
    for _ in range(5):  # what cannot happen without any of five rows, one row after the other
        chance = np.exp(1) * chance + delta
    assert chance / delta == pytest.approx(85.8, abs=0.05)
    assert chance / delta == pytest.approx(sum(np.exp(place) for place in range(5)))
    assert group_delta(1, "1e-6", 5) == pytest.approx(chance)


def test_the_certificate_of_a_release_with_a_delta_says_how_it_grows() -> None:
    table = pcor.Table(pcor.demo.ten_people(), pcor.demo.ten_people_schema())
    rule = pcor.Grubbs(min_population=3)
    found = pcor.release(table, 8, 1, rule, "breadth_first", delta="1e-6")
    assert "delta * (1 + exp(epsilon) + ... + exp((k - 1) * epsilon))" in str(found.to_dict())


def test_under_dp_a_group_is_promised_without_a_condition() -> None:
    match = Match("removed", 5, 50, 0.9, 0.99, 0.995)
    said = match.group(Promise(Fraction(1, 5), guarantee=PureDP()))
    assert "promises 1, whatever their absence does" in said
    assert "OCDP" not in said


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from(["exponential", "permute_and_flip"]))
def test_between_tables_with_the_same_coe_a_group_is_worth_its_number_of_epsilons(
    seed: int, mechanism: str
) -> None:
    """Three rows at once, whatever COE does on the way: no log ratio is above three epsilons."""
    here = small(PEOPLE, LOF)
    numbers = np.random.default_rng(seed)
    gone = set((1 + numbers.choice(14, 3, replace=False)).tolist())
    there = small([row for place, row in enumerate(PEOPLE) if place not in gone], LOF)
    if here.coe != there.coe:
        return
    options: dict[str, Any] = {"detector": LOF, "selection": mechanism}
    sides = [pcor.audit.exact_log_chances(s.table, 0, 0.5, **options) for s in (here, there)]
    assert pcor.audit.largest_log_ratio(sides[0], sides[1]) <= 3 * 0.5 + 1e-9


def test_a_match_shows_nothing_unless_it_is_asked_to() -> None:
    assert repr(Match("removed", 1, 1, 1.0, 1.0, 1.0)) == "<Match: PRIVATE, for the owner only>"


def test_what_cannot_be_is_refused() -> None:
    table = small(PEOPLE, LOF).table
    with pytest.raises(UnknownName, match="did you mean 'removed'"):
        coe_match(table, 0, LOF, kind="remove")
    with pytest.raises(ParameterError, match="changes must be a whole number"):
        coe_match(table, 0, LOF, changes=(0,))
    with pytest.raises(ParameterError, match="repeats must be a whole number"):
        coe_match(table, 0, LOF, repeats=0)
    with pytest.raises(ParameterError, match="seed must be a whole number"):
        coe_match(table, 0, LOF, seed=-1)
    with pytest.raises(ParameterError, match="at most the number of rows beside the record"):
        coe_match(table, 0, LOF, changes=(15,))
    with pytest.raises(TooLarge, match="possible contexts"):
        coe_match(table, 0, LOF, limit=SCHEMA.most_contexts // 2)
