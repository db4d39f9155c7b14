"""The compiled climbs against plain Python: the same contexts from the same numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pcor
from pcor._kernels import climb
from pcor.public.context import pack
from pcor.public.space import Space
from pcor.search.guess import Guess
from tests.helpers.climb import Climbing, SplitMix, beginning

ANY = {"a": list(range(6)), "b": list(range(5)), "c": [0, 1]}
SCHEMAS = {
    "any sets": pcor.Schema(metric="m", attributes=ANY),
    "chains": pcor.Schema(
        metric="m",
        attributes=ANY,
        contexts={"a": "range", "b": "one"},
    ),
    "more than 64 values": pcor.Schema(
        metric="m", attributes={f"a{n}": list(range(40)) for n in range(3)}
    ),
    "more than 32 attributes": pcor.Schema(
        metric="m", attributes={f"a{n}": [0, 1, 2] for n in range(40)}
    ),
}
SIDE, TOPS = 7, 9


class Case:
    """Climbers anywhere in a space, their guesses and their numbers."""

    def __init__(self, name: str, seed: int) -> None:
        schema = SCHEMAS[name]
        own = sum(1 << offset for offset in schema.offsets)
        self.space = Space(schema, own << (1 if name == "chains" else 0))
        self.guess = Guess(self.space, seed)
        self.steps, self.guesses = self.guess.steps, self.guess.climbers_guesses
        numbers = np.random.default_rng(seed)
        chosen = numbers.random((SIDE, len(self.space.steps))) < numbers.random((SIDE, 1))
        self.at = chosen.astype(np.uint8)
        for row in self.at:
            climb.into_family(row, self.steps.chains)
        self.state = numbers.integers(1, 1 << 60, 1).astype(np.uint64)
        self.numbers = SplitMix(int(self.state[0]))
        self.of = [self.climbing(number) for number in range(len(self.guesses.rows))]
        which = numbers.integers(0, len(self.of), SIDE)
        height = np.array(
            [self.of[g].width(c) for g, c in zip(which, self.contexts(), strict=True)]
        )
        stuck, arrived = numbers.integers(0, 4, SIDE), numbers.random(SIDE) < 0.5
        self.climbers = climb.Climbers(self.at, which, height, stuck, arrived)

    def climbing(self, number: int) -> Climbing:
        rows, own = self.guesses.rows[number].tolist(), self.guesses.own[number].tolist()
        chains = [tuple(chain) for chain in self.steps.chains.tolist()]
        return Climbing(self.steps.attribute.tolist(), rows, own, chains)

    def contexts(self) -> list[set[int]]:
        return [set(np.flatnonzero(row).tolist()) for row in self.at]

    def mask(self, context: set[int]) -> int:
        mask = self.space.fixed
        for step in context:
            mask |= self.space.steps[step]
        return mask


def places(table: Any, factors: Any, context: set[int]) -> int:
    key = sum(int(factors[step]) for step in context) & ((1 << 64) - 1)
    return (key >> 16) % (64 * len(table))


cases = pytest.mark.parametrize("name", sorted(SCHEMAS))
seeds = pytest.mark.parametrize("seed", range(3))


@cases
@seeds
@pytest.mark.parametrize("bits", [64, 1 << 16])
def test_proposals_are_those_of_the_plain_rule(name: str, bits: int, seed: int) -> None:
    case = Case(name, seed)
    table, factors = np.zeros(bits // 64, dtype=np.uint64), case.guess.factors()
    out = climb.Proposals(
        np.zeros((SIDE**2 + 1, case.at.shape[1]), dtype=np.uint8),
        np.zeros((SIDE**2, len(case.guess.full)), dtype=np.uint64),
        np.zeros(SIDE**2),
        np.zeros(SIDE**2, dtype=np.int64),
    )
    kept = climb.propose(case.climbers, case.steps, case.guesses, (table, factors), case.state, out)
    expected, tried = [], set()
    for climber, at in enumerate(case.contexts()):
        of = case.of[case.climbers.guess[climber]]
        for _ in range(SIDE):
            proposed = of.proposal(at, case.numbers)
            place = places(table, factors, proposed)
            if of.width(proposed) > case.climbers.height[climber] + 1e-9 and place not in tried:
                tried.add(place)
                expected.append((climber, proposed, of.width(proposed)))
    assert kept == len(expected) > 0
    assert out.climbers[:kept].tolist() == [climber for climber, _, _ in expected]
    assert (
        out.words[:kept] == pack([case.mask(p) for _, p, _ in expected], case.space.schema.width)
    ).all()
    assert out.widths[:kept] == pytest.approx([width for _, _, width in expected], rel=1e-12)
    assert {place for place in range(bits) if int(table[place // 64]) >> place % 64 & 1} == tried


@cases
@seeds
def test_whoever_is_stuck_begins_anew_and_tops_are_remembered(name: str, seed: int) -> None:
    case = Case(name, seed)
    at, which, height, stuck, arrived = case.climbers
    before, old, waited, were = case.contexts(), which.copy(), stuck.copy(), arrived.copy()
    rows = np.zeros((TOPS, at.shape[1]), dtype=np.uint8)
    rows[:2] = at[:2]
    latest = (rows, np.array([2, 2]))
    climb.begin_anew(case.climbers, case.steps, case.guesses, latest, 2, case.state)
    arrivals = [before[c] for c in range(SIDE) if waited[c] >= 2 and were[c]]
    tops = before[:2] + arrivals
    assert [set(np.flatnonzero(row).tolist()) for row in rows[: len(tops)]] == tops
    assert latest[1].tolist() == [len(tops), len(tops)]
    for climber, now in enumerate(case.contexts()):
        if waited[climber] < 2:
            assert (which[climber], now) == (old[climber], before[climber])
            continue
        taken, begun = beginning(case.of, tops, case.numbers)
        assert (which[climber], now) == (taken, begun)
        assert height[climber] == pytest.approx(case.of[taken].width(begun), rel=1e-12)
        assert (stuck[climber], arrived[climber]) == (0, False)


def test_the_latest_tops_push_out_the_oldest() -> None:
    case = Case("any sets", 0)
    at, _, _, stuck, arrived = case.climbers
    stuck[:], arrived[:] = 5, True
    before = case.contexts()
    rows = np.zeros((3, at.shape[1]), dtype=np.uint8)
    counts = np.array([1, 1])
    climb.begin_anew(case.climbers, case.steps, case.guesses, (rows, counts), 5, case.state)
    order = [set(), *before]  # the n-th top is written to place n modulo 3
    latest = {n % 3: top for n, top in enumerate(order)}
    assert [set(np.flatnonzero(row).tolist()) for row in rows] == [latest[n] for n in range(3)]
    assert counts.tolist() == [1 + SIDE, 3]


@cases
@seeds
def test_climbers_step_to_their_widest_valid_proposal(name: str, seed: int) -> None:
    case = Case(name, seed)
    at, _, height, stuck, arrived = case.climbers
    before, low, waited, were = at.copy(), height.copy(), stuck.copy(), arrived.copy()
    numbers = np.random.default_rng(seed)
    count = 30
    proposed = numbers.integers(0, 2, (count, at.shape[1])).astype(np.uint8)
    whose = numbers.integers(0, SIDE - 1, count)  # the last climber has no proposal
    wide = low[whose] + numbers.integers(1, 4, count)
    valid = numbers.random(count) < 0.5
    words = np.zeros((count, 1), dtype=np.uint64)
    climb.step_up(case.climbers, climb.Proposals(proposed, words, wide, whose), valid)
    for climber in range(SIDE):
        own = [n for n in range(count) if valid[n] and whose[n] == climber]
        if own:
            best = max(own, key=lambda n: wide[n])  # the first of equals
            assert (at[climber] == proposed[best]).all()
            assert (height[climber], stuck[climber], arrived[climber]) == (wide[best], 0, True)
        else:
            assert (at[climber] == before[climber]).all()
            assert (height[climber], arrived[climber]) == (low[climber], were[climber])
            assert stuck[climber] == waited[climber] + 1


@cases
@seeds
def test_usual_widths_are_the_sums_of_logarithms(name: str, seed: int) -> None:
    case = Case(name, seed)
    usual = case.guess._whole(case.guess._usual[np.newaxis])[0]
    schema = case.space.schema
    expected = []
    masks = [case.mask(context) for context in case.contexts()]
    for mask in masks:
        held = [usual[p] if mask >> p & 1 else 0.0 for p in range(schema.width)]
        ends = [*schema.offsets[1:], schema.width]
        sums = [sum(held[a:b]) for a, b in zip(schema.offsets, ends, strict=True)]
        expected.append(sum(np.log(sums)))
    words = pack(masks, schema.width)
    assert case.guess.usual_widths(words) == pytest.approx(expected, rel=1e-12)


def test_numbers_are_splitmix64s() -> None:
    # The first outputs for the seed 1234567, as the reference program in C prints them.
    state = np.array([1234567], dtype=np.uint64)
    known = [6457827717110365317, 3203168211198807973, 9817491932198370423]
    assert [climb.uniform(state) for _ in known] == [(n >> 11) / 2**53 for n in known]
