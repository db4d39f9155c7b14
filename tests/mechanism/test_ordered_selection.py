"""The ordered draw: the exponential mechanism over everything, decided before everything is met.

Most tests script the uniform number U and compare with inverting the distribution function over all
candidates, in integers and with more digits than the code under test has. Only the last few draw.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats

from pcor.audit.exact import selection_chances
from pcor.mechanism.ordered_selection import FIRST_BITS, draw_first
from pcor.mechanism.samplers import exp_bounds
from pcor.mechanism.selection import SystemRandomSource
from tests.helpers.scripted_draws import Arriving, Script, candidates, ends, exp_minus

# -- exp(-x) by its series ------------------------------------------------------------------------


def test_the_twin_knows_e() -> None:
    low, high = exp_minus(Fraction(1), 200)
    # 1/e, from OEIS A068985.
    digits = Fraction(367879441171442321595523770161460867, 10**36)
    assert low - Fraction(1, 10**36) < digits < high
    assert high - low < Fraction(1, 2**180)


exponents = st.one_of(
    st.fractions(0, 200),
    st.fractions(0, 10, max_denominator=100),
    st.integers(0, 200).map(Fraction),
    st.tuples(st.integers(1, 10**40), st.integers(30, 320)).map(
        lambda p: Fraction(p[0], 10 ** p[1])
    ),
    st.integers(1, 10**60).map(lambda n: n * Fraction(1, 10**60) * 140),
).filter(lambda x: x < 1000)


def enclosed(x: Fraction, bits: int) -> None:
    low, high = exp_bounds(x, bits)
    below, above = exp_minus(x, bits + 192)
    assert low <= below * 2**bits
    assert above * 2**bits <= high
    assert low >= 0
    assert high - low <= 2


@given(exponents.filter(bool), st.sampled_from([1, 2, 3, 8, 53, 64, 192, 384]))
def test_the_bounds_enclose_the_exponential_and_are_two_units_apart_at_most(
    x: Fraction, bits: int
) -> None:
    enclosed(x, bits)


@pytest.mark.parametrize("bits", [1, 8, 192, 768])
def test_the_bounds_hold_on_both_sides_of_the_cut_off_and_of_powers_of_ten(bits: int) -> None:
    cut = Fraction(bits * 10000, 14426)
    for base in (
        cut,
        Fraction(1),
        Fraction(10),
        Fraction(100),
        Fraction(1, 10),
        Fraction(1, 10**9),
    ):
        for step in (0, 1, -1):
            for power in (-2, -12, -60, -80, -300):
                x = base + step * Fraction(10) ** power
                if 0 < x < 1000:
                    enclosed(x, bits)
    assert exp_bounds(cut + Fraction(1, 10**9), bits) == (0, 1)


def test_nothing_below_the_cut_off_exceeds_one_unit_however_many_bits() -> None:
    """One unit is exp(-bits * ln 2), and 10000/14426 is more than ln 2."""
    half = exp_minus(Fraction(10000, 14426), 300)
    assert half[1] < Fraction(1, 2)
    for bits in (192, 393_216, 1 << 40):  # a cut-off at 1.4427 was wrong from 290,000 bits on
        assert exp_bounds(Fraction(bits * 10000, 14426) + 1, bits) == (0, 1)


@pytest.mark.parametrize("bits", [1, 8, 192, 10**5])
def test_zero_is_exact_and_what_is_huge_is_less_than_one_unit(bits: int) -> None:
    assert exp_bounds(Fraction(0), bits) == (1 << bits, 1 << bits)
    assert exp_bounds(Fraction(10**300), bits) == (0, 1)


# -- candidates that arrive as the test says ------------------------------------------------------


def inverse(utilities: Sequence[int], eta: Fraction, number: Fraction) -> int:
    """Return the candidate whose share U * Z lies in, by as many digits as that takes."""
    precision = 256
    while True:
        found = ends(utilities, eta, precision)
        low, high = number * found[-1][0], number * found[-1][1]
        first = next(i for i, (_, end) in enumerate(found) if low < end)
        last = next((i for i, (end, _) in enumerate(found) if high < end), None)
        if first == last:
            return first
        precision *= 2


def boundary(utilities: Sequence[int], eta: Fraction, after: int, digits: int) -> Fraction:
    """Return where in [0, 1) a candidate's share ends, rounded down to so many binary digits."""
    precision = 2 * digits + 256
    while True:
        found = ends(utilities, eta, precision)
        low, high = found[after][0] / found[-1][1], found[after][1] / found[-1][0]
        if int(low * 2**digits) == int(high * 2**digits):
            return Fraction(int(low * 2**digits), 2**digits)
        precision *= 2


etas = st.sampled_from([Fraction(1, 100), Fraction(1, 3), Fraction(1), Fraction(7, 2)])
batches = st.lists(st.integers(1, 4), min_size=1, max_size=3)
spreads = st.sampled_from([0, 2, 10, 400])


@given(spreads.flatmap(candidates), etas, batches, st.integers(0, 3), st.data())
def test_a_scripted_number_gives_what_inverting_the_whole_distribution_gives(
    items: list[tuple[int, bool]], eta: Fraction, sizes: list[int], loose: int, data: st.DataObject
) -> None:
    utilities = [utility for utility, valid in items if valid]
    if not utilities:
        assert draw_first(Arriving(items, sizes, loose), eta, Script(Fraction(0))) is None
        return
    number = Fraction(data.draw(st.integers(0, 2**70 - 1)), 2**70)
    if len(set(utilities)) > 1 and data.draw(st.booleans()):
        after = data.draw(st.integers(0, len(utilities) - 2))
        digits = data.draw(st.sampled_from([100, 191, 193, 390]))
        number = boundary(utilities, eta, after, digits)
        number += Fraction(data.draw(st.integers(0, 1)), 2**digits)
        if number >= 1:
            return
    expected = inverse(utilities, eta, number)
    assert draw_first(Arriving(items, sizes, loose), eta, Script(number)) == expected


@pytest.mark.parametrize("batch", [1, 2, 5])
@pytest.mark.parametrize("loose", [0, 2])
@pytest.mark.parametrize("digits", [200, 400, 800])
def test_a_number_next_to_a_boundary_asks_for_more_bits_and_falls_on_its_own_side(
    batch: int, loose: int, digits: int
) -> None:
    utilities, eta = [3, 2, 2, 1, 0], Fraction(2, 3)
    items = [(utility, True) for utility in utilities]
    for after in range(4):
        below = boundary(utilities, eta, after, digits)
        for number, expected in ((below, after), (below + Fraction(1, 2**digits), after + 1)):
            script = Script(number)
            assert draw_first(Arriving(items, [batch], loose), eta, script) == expected
            assert script.bits > digits - 10
            assert script.asked[:2] == [1 << FIRST_BITS] * 2


def test_weights_far_below_the_first_digits_are_drawn_by_the_numbers_that_point_to_them() -> None:
    """exp(-1000) is 2^-1442: 192 bits do not see it, and it is there."""
    items = [(1000, True), (0, True), (0, False), (0, True)]
    for number, expected in (
        (1 - Fraction(1, 2**1400), 0),
        (1 - Fraction(1, 2**1442), 1),
        (1 - Fraction(1, 2**1500), 2),
    ):
        assert inverse([1000, 0, 0], Fraction(1), number) == expected
        script = Script(number)
        assert draw_first(Arriving(items), Fraction(1), script) == expected
        assert script.bits == 8 * FIRST_BITS


def test_equal_utilities_share_equally_and_a_boundary_belongs_to_the_right() -> None:
    items = [(7, True)] * 4
    for eighth in range(8):
        script = Script(Fraction(eighth, 8))
        assert draw_first(Arriving(items, [4]), Fraction(1), script) == eighth // 2
        assert script.bits == FIRST_BITS


def test_a_single_candidate_is_drawn_and_none_is_none_without_a_draw() -> None:
    script = Script(Fraction(2**300 - 1, 2**300))
    assert draw_first(Arriving([(5, False), (4, True), (3, False)]), Fraction(1), script) == 0
    nothing = Script(Fraction(1, 2))
    assert draw_first(Arriving([(5, False), (4, False)]), Fraction(1), nothing) is None
    assert draw_first(Arriving([]), Fraction(1), nothing) is None
    assert nothing.asked == []


def test_the_draw_ends_early_where_what_is_left_cannot_change_it() -> None:
    items = [(1000 - i, True) for i in range(1000)]
    arriving = Arriving(items, [10])
    assert draw_first(arriving, Fraction(1), Script(Fraction(1, 3))) == 0
    assert arriving.visited <= 20


class Undecided(Exception):
    """The bits given did not suffice."""


def only(point: int, size: int) -> Callable[[int], int]:
    """Give out one number, once."""
    left = [point]

    def uniform(count: int) -> int:
        if not left:
            raise Undecided
        assert count == size
        return left.pop()

    return uniform


@pytest.mark.parametrize(
    "utilities", [[0], [1, 0], [4, 4, 1], [9, 5, 5, 5, 0], [2, 2, 2], [30, 0]], ids=str
)
@pytest.mark.parametrize("bits", [6, 8, 13])
def test_over_all_points_what_is_decided_is_right_and_the_rest_vanishes(
    utilities: list[int], bits: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Integrate over U: each point stands for the numbers in [point, point + 1) / 2^bits."""
    monkeypatch.setattr("pcor.mechanism.ordered_selection.FIRST_BITS", bits)
    eta, size = Fraction(1, 3), 1 << bits
    found = ends(utilities, eta, 256)
    total = found[-1]
    starts = [(Fraction(0), Fraction(0)), *found[:-1]]
    decided = [0] * len(utilities)
    for point in range(size):
        uniform = only(point, size)
        try:
            place = draw_first(Arriving([(u, True) for u in utilities], [2]), eta, uniform)
        except Undecided:
            continue
        assert place is not None
        decided[place] += 1
        assert Fraction(point, size) * total[0] >= starts[place][0]
        assert Fraction(point + 1, size) * total[1] <= found[place][1]
    count = len(utilities)
    undecided = size - sum(decided)
    # Each boundary is known to 2 units per candidate, U * Z to 3 * count + 3; a point is a unit
    # wide at least.
    assert undecided <= count * (7 * count + 6)
    for place in range(count):
        chance = (found[place][1] - starts[place][0]) / total[0]
        assert Fraction(decided[place], size) <= chance
        assert chance <= Fraction(decided[place] + undecided, size) + Fraction(1, 2**200)


# -- permute-and-flip ------------------------------------------------------------------------------


def none_from(
    utilities: Sequence[int], eta: Fraction, bits: int
) -> list[tuple[Fraction, Fraction]]:
    """Bound, for each place, the chance that no coin from there on succeeds."""
    found = [(Fraction(1), Fraction(1))]
    for utility in reversed(utilities):
        low, high = exp_bounds(eta * (utilities[0] - utility), bits)
        before = found[-1]
        found.append(
            (
                before[0] * (1 - Fraction(high, 1 << bits)),
                before[1] * (1 - Fraction(low, 1 << bits)),
            )
        )
    return found[::-1]


class LastSuccess(Exception):
    """Carries the place to the test instead of going on to the coins before it."""


@given(spreads.flatmap(candidates), etas, batches, st.integers(0, 3), st.data())
def test_a_scripted_number_gives_the_last_success(
    items: list[tuple[int, bool]], eta: Fraction, sizes: list[int], loose: int, data: st.DataObject
) -> None:
    utilities = [utility for utility, valid in items if valid]
    number = Fraction(data.draw(st.integers(0, 2**70 - 1)), 2**70)
    if not utilities:
        return
    chances = none_from(utilities, eta, 2000)
    if data.draw(st.booleans()):  # next to where one takes over from another
        digits = data.draw(st.sampled_from([100, 191, 193, 390]))
        place = data.draw(st.integers(0, len(utilities) - 1))
        number = Fraction(int(chances[place][0] * 2**digits), 2**digits)
        number += Fraction(data.draw(st.integers(0, 1)), 2**digits)
        assume(number < 1)
    assume(all(not low <= number <= high or low == high for low, high in chances))
    expected = max(place for place, (low, _) in enumerate(chances) if low <= number)

    def pick(short: Any, *_: object) -> int:
        assert short.tolist() == [utilities[0] - u for u in utilities[: expected + 1]]
        raise LastSuccess

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pcor.mechanism.ordered_selection.pick_success", pick)
        with pytest.raises(LastSuccess):
            draw_first(Arriving(items, sizes, loose), eta, Script(number), "permute_and_flip")


@pytest.mark.parametrize("drawn", ["permute_and_flip", "exponential"])
@pytest.mark.parametrize("eta", [Fraction(1, 4), Fraction(1, 3)])
def test_permute_and_flip_in_order_has_its_chances_and_no_others(drawn: str, eta: Fraction) -> None:
    """Chi-square with a false-alarm rate of 1e-9; the exponential mechanism must be rejected.

    It is missed with a chance below 1e-20, by the noncentral chi-square distribution.
    """
    items = [(90, True), (88, False), (85, True), (85, True), (80, True), (50, True)]
    utilities = [utility for utility, valid in items if valid]
    uniform = SystemRandomSource().uniform
    draws = [draw_first(Arriving(items, [2], 1), eta, uniform, drawn) or 0 for _ in range(5_000)]
    chances = selection_chances(utilities, eta=eta, mechanism="permute_and_flip")
    common = chances * len(draws) > 5
    counts = np.bincount(draws, minlength=len(utilities))
    p = stats.chisquare(
        counts[common], counts[common].sum() * chances[common] / chances[common].sum()
    )
    assert (p.pvalue > 1e-9) == (drawn == "permute_and_flip")
