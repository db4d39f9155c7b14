"""Noise for numbers: drawn with the stated chances, and as wide as stated."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import opendp.prelude as dp
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from pcor.mechanism.noise import draw_discrete_laplace, noise_width, selection_width
from pcor.mechanism.selection import SystemRandomSource
from tests.helpers.scripted_draws import FALSE_ALARM, exp_minus

DRAWS = 20_000
RATE = Fraction(3, 20)
# Noise beyond this is one kind of noise: rare enough, and common enough for chi-square.
LAST = 25


def counted(draws: list[int]) -> list[int]:
    found = Counter(max(-LAST, min(LAST, k)) for k in draws)
    return [found[k] for k in range(-LAST, LAST + 1)]


def stated(rate: Fraction) -> list[float]:
    """Return the chances of noise from its definition, both tails together at the ends."""
    a = math.exp(-float(rate))
    inside = [(1 - a) / (1 + a) * a ** abs(k) for k in range(1 - LAST, LAST)]
    tail = a**LAST / (1 + a)
    return [tail, *inside, tail]


@pytest.mark.parametrize(("factor", "accepted"), [("1", True), ("0.7", False), ("1.3", False)])
def test_noise_is_drawn_with_the_stated_chances(factor: str, accepted: bool) -> None:
    uniform, rate = SystemRandomSource().uniform, RATE * Fraction(factor)
    draws = [draw_discrete_laplace(rate, uniform) for _ in range(DRAWS)]
    expected = np.array(stated(RATE)) * DRAWS
    assert math.isclose(sum(stated(RATE)), 1)
    assert (stats.chisquare(counted(draws), expected).pvalue > FALSE_ALARM) == accepted


@cache
def drawn_by_opendp() -> list[int]:
    dp.enable_features("contrib")
    draw: Any = dp.m.make_laplace(
        dp.atom_domain(T="i64"), dp.absolute_distance(T="i64"), scale=float(1 / RATE)
    )
    return [int(draw(0)) for _ in range(DRAWS)]


@pytest.mark.parametrize(("factor", "accepted"), [("1", True), ("0.7", False), ("1.3", False)])
def test_opendp_draws_alike(factor: str, accepted: bool) -> None:
    uniform, rate = SystemRandomSource().uniform, RATE * Fraction(factor)
    ours = [draw_discrete_laplace(rate, uniform) for _ in range(DRAWS)]
    p = stats.chi2_contingency([counted(ours), counted(drawn_by_opendp())]).pvalue
    assert (p > FALSE_ALARM) == accepted


@pytest.mark.parametrize("rate", [Fraction(1, 10**9), Fraction(7, 3), Fraction(50)])
def test_a_rate_of_any_size_can_be_drawn_with(rate: Fraction) -> None:
    """Noise is off by more than 45 times its scale with a chance of 3e-20."""
    uniform = SystemRandomSource().uniform
    draws = [draw_discrete_laplace(rate, uniform) for _ in range(50)]
    assert max(map(abs, draws)) <= 45 / rate + 1
    assert rate > 1 or len(set(draws)) > 40


@given(st.fractions(Fraction(1, 500), 4), st.sampled_from([Fraction(1, 20), Fraction(1, 100)]))
def test_a_width_leaves_out_as_little_as_it_says_and_is_the_smallest(
    rate: Fraction, outside: Fraction
) -> None:
    def beyond(width: int) -> tuple[Fraction, Fraction]:
        (low, high), (least, most) = exp_minus(rate * (width + 1), 300), exp_minus(rate, 300)
        return 2 * low / (1 + most), 2 * high / (1 + least)

    width = noise_width(rate, outside)
    assert beyond(width)[1] <= outside
    assert width == 0 or beyond(width - 1)[0] > outside


@given(st.fractions(Fraction(1, 500), 4), st.integers(1, 10**5))
def test_a_drawn_score_is_as_close_to_the_best_as_stated(eta: Fraction, others: int) -> None:
    """At worst all other candidates are as far below as the width says."""

    def missed(width: int) -> tuple[Fraction, Fraction]:
        low, high = exp_minus(eta * width, 300)
        return others * low / (1 + others * low), others * high / (1 + others * high)

    outside = Fraction(1, 20)
    width = selection_width(eta, others, outside)
    assert missed(width)[1] <= outside
    assert width == 0 or missed(width - 1)[0] > outside
