"""The draw from a known list: exact, piece by piece, and OpenDP's draw as its oracle."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import opendp.prelude as dp
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy import stats

from pcor.audit.exact import selection_chances
from pcor.mechanism import samplers
from pcor.mechanism.randomness import MECHANISMS
from pcor.mechanism.samplers import draw_exponential, exp_bounds, happens
from pcor.mechanism.selection import SystemRandomSource

# Per check; a handful of checks a run. What must be rejected is missed with a chance below 1e-20.
FALSE_ALARM = 1e-9
DRAWS = 10_000

etas = st.fractions(Fraction(1, 1000), Fraction(2)).filter(lambda eta: eta > 0)


def scripted(*numbers: int) -> Callable[[int], int]:
    """Return a source of uniform numbers that gives these, one after the other."""
    script = iter(numbers)

    def uniform(count: int) -> int:
        number = next(script)
        assert 0 <= number < count
        return number

    return uniform


@example([27, -24], Fraction(2968612, 1683000))
@given(st.lists(st.integers(-30, 30), min_size=1, max_size=8), etas)
def test_the_proposals_are_powers_of_two_above_the_weights(
    scores: list[int], eta: Fraction
) -> None:
    """Proposed with chance 2^-h / total, accepted with 2^h e^-x: together e^-x / total, exactly."""
    proposed: Counter[int] = Counter()
    powers: dict[int, int] = {}
    coins: list[tuple[Fraction, int]] = []

    def accept(x: Fraction, halvings: int, _: object) -> bool:
        coins.append((x, halvings))
        return True

    totals: list[int] = []

    def first(point: int) -> Callable[[int], int]:
        def uniform(count: int) -> int:
            totals.append(count)
            return point % count

        return uniform

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(samplers, "happens", accept)
        draw_exponential(scores, eta, first(0))
        total = totals[0]
        # Where there are too many points to try all, try the borders and a thousand between.
        points = range(total) if total < 5_000 else {*range(500), *range(total - 500, total)}
        for point in points:
            index = draw_exponential(scores, eta, first(point))
            x, halvings = coins[-1]
            proposed[index] += 1
            powers[index] = halvings
            assert x == eta * (max(scores) - scores[index])
            assert exp_bounds(x, 256)[1] - 1 <= 1 << (256 - halvings)  # e^-x <= 2^-h
            if (
                halvings < samplers._MOST_HALVINGS - 1
            ):  # and not far above; the limit may be rounded
                assert 2 * exp_bounds(x, 256)[1] * 101 > 100 << (256 - halvings)
    if total < 5_000:
        last = max(powers.values())
        assert proposed == {index: 1 << (last - h) for index, h in powers.items()}
        assert set(proposed) == set(range(len(scores)))


@given(st.fractions(0, 40), st.integers(0, 3))
def test_the_coin_compares_a_uniform_number_with_the_chance(x: Fraction, more: int) -> None:
    """Every point below the chance is True, every one above is False, to the last bit."""
    halvings = max(0, int(x * Fraction(14426, 10000)) - more)
    low, high = exp_bounds(x, 64 + halvings)
    if low > 0:
        assert happens(x, halvings, scripted(low - 1))
    if high < 1 << 64:
        assert not happens(x, halvings, scripted(high))
    if low < high:  # not decided by 64 bits: the next 64 are fetched, and decide
        finer_low, finer_high = exp_bounds(x, 128 + halvings)
        point, rest = divmod(finer_low - 1, 1 << 64)
        if low <= point < high:
            assert happens(x, halvings, scripted(point, rest))
        point, rest = divmod(finer_high, 1 << 64)
        if low <= point < high:
            assert not happens(x, halvings, scripted(point, rest))


def test_a_certain_coin_needs_no_luck() -> None:
    assert happens(Fraction(0), 0, scripted((1 << 64) - 1))


SCORES = [0, 7, 7, 250, 300, 301, 420, 0]
ETA = Fraction(1, 100)


@cache
def drawn_by_opendp(mechanism: str) -> list[int]:
    """Draw with OpenDP, where the measure decides which mechanism is behind the one name.

    All comparisons are with the same draws.
    """
    dp.enable_features("contrib")
    draw: Any = dp.m.make_noisy_max(
        dp.vector_domain(dp.atom_domain(T="i64")),
        dp.linf_distance(T="i64", monotonic=True),
        dp.zero_concentrated_divergence() if mechanism == "exponential" else dp.max_divergence(),
        scale=float(1 / ETA),
    )
    values = np.array(SCORES, dtype=np.int64)
    return [int(draw(values.copy())) for _ in range(DRAWS)]


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize(("factor", "accepted"), [("1", True), ("0.7", False), ("1.3", False)])
def test_opendp_draws_alike(mechanism: str, factor: str, accepted: bool) -> None:
    """Two samples, one chi-square test of equal distributions."""
    chooser, eta = SystemRandomSource(), ETA * Fraction(factor)
    ours = [chooser.select(SCORES, eta=eta, mechanism=mechanism) for _ in range(DRAWS)]
    theirs = drawn_by_opendp(mechanism)
    both = [np.bincount(draws, minlength=len(SCORES)) for draws in (ours, theirs)]
    p = stats.chi2_contingency(both).pvalue
    assert (p > FALSE_ALARM) == accepted


@pytest.mark.parametrize("eta", [Fraction(1, 10**6), Fraction(1, 3), Fraction(3)])
def test_scores_far_apart_and_long_lists(eta: Fraction) -> None:
    scores = [*range(0, 400, 2), *([399] * 50)]
    uniform = SystemRandomSource().uniform
    draws = [draw_exponential(scores, eta, uniform) for _ in range(20_000)]
    counts = np.bincount(draws, minlength=len(scores))
    wanted = selection_chances(scores, eta=eta, mechanism="exponential") * len(draws)
    common = wanted > 5
    observed = [*counts[common], counts[~common].sum()]
    expected = [*wanted[common], wanted[~common].sum()]
    if expected[-1] < 5:  # too rare for chi-square: nearly never seen
        assert stats.poisson.sf(observed[-1] - 1, expected[-1]) > FALSE_ALARM
        observed, expected = (
            observed[:-1],
            [e * sum(observed[:-1]) / sum(expected[:-1]) for e in expected[:-1]],
        )
    assert stats.chisquare(observed, expected).pvalue > FALSE_ALARM


def test_the_number_of_trials_does_not_grow_with_the_distances() -> None:
    """One proposal in two is accepted at least, so more than 60 in a row has a chance of 1e-18."""
    for distance, eta in itertools.product(
        (1, 10**3, 10**9, 10**15), (Fraction(1, 10**4), Fraction(5))
    ):
        scores = [-distance * i for i in range(300)]
        asked = 0

        def uniform(count: int) -> int:
            nonlocal asked
            asked += 1
            return SystemRandomSource().uniform(count)

        draw_exponential(scores, eta, uniform)
        assert asked < 130  # two numbers a proposal, and a few more digits
