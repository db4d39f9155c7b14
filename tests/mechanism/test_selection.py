"""The draw against the exact chances of its mechanism, with a stated false-alarm rate.

The same chi-square test accepts the stated mechanism and rejects 0.7 and 1.3 of epsilon and the
other mechanism. ``tests/mechanism/test_samplers.py`` compares with OpenDP's draws.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from pcor.audit.exact import selection_chances
from pcor.errors import ParameterError, UnknownName
from pcor.mechanism.randomness import MECHANISMS, RandomSource, keep_accepted
from pcor.mechanism.selection import SystemRandomSource, check_exponent, check_mechanism
from pcor.testing import seeded

# Per check. About 20 checks a run, 10,000 runs a year: one false alarm in 5,000 years. The chance
# to miss what must be rejected below is under 1e-30 at this many draws.
FALSE_ALARM = 1e-9
DRAWS = 10_000

SCORES = [0, 100, 200, 300]
ETA = Fraction(1, 100)


def p_value(chooser: RandomSource, mechanism: str, *, drawn_with: Fraction, stated: str) -> float:
    """Draw with one exponent and mechanism, compare with the stated one."""
    draws = [chooser.select(SCORES, eta=drawn_with, mechanism=mechanism) for _ in range(DRAWS)]
    chances = selection_chances(SCORES, eta=ETA, mechanism=stated)
    counts = np.bincount(draws, minlength=len(SCORES))
    return float(stats.chisquare(counts, DRAWS * chances).pvalue)


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize(("factor", "accepted"), [("1", True), ("0.7", False), ("1.3", False)])
def test_the_draw_has_the_stated_chances_and_no_others(
    mechanism: str, factor: str, accepted: bool
) -> None:
    p = p_value(
        SystemRandomSource(), mechanism, drawn_with=ETA * Fraction(factor), stated=mechanism
    )
    assert (p > FALSE_ALARM) == accepted


def test_permute_and_flip_is_rejected_where_the_exponential_mechanism_is_claimed() -> None:
    p = p_value(SystemRandomSource(), "permute_and_flip", drawn_with=ETA, stated="exponential")
    assert p < FALSE_ALARM


def test_the_exponential_mechanism_is_rejected_where_permute_and_flip_is_claimed() -> None:
    p = p_value(SystemRandomSource(), "exponential", drawn_with=ETA, stated="permute_and_flip")
    assert p < FALSE_ALARM


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_the_seeded_chooser_draws_from_the_same_distribution(mechanism: str) -> None:
    p = p_value(seeded(7), mechanism, drawn_with=ETA, stated=mechanism)
    assert p > FALSE_ALARM


@given(st.lists(st.integers(-50, 50), min_size=1, max_size=5), st.fractions(0, 1))
def test_the_exact_chances_of_permute_and_flip_are_those_of_its_definition(
    scores: list[int], eta: Fraction
) -> None:
    """Walk through every order of the candidates, flipping a coin for each."""
    accept = [math.exp(float(eta * (score - max(scores)))) for score in scores]
    expected = [0.0] * len(scores)
    orders = list(itertools.permutations(range(len(scores))))
    for order in orders:
        reached = 1.0
        for candidate in order:
            expected[candidate] += reached * accept[candidate] / len(orders)
            reached *= 1 - accept[candidate]
    chances = selection_chances(scores, eta=eta, mechanism="permute_and_flip")
    assert chances == pytest.approx(expected, abs=1e-12)


@given(st.lists(st.integers(0, 10**6), min_size=1, max_size=8))
def test_chances_of_far_apart_scores_neither_overflow_nor_vanish_in_sum(scores: list[int]) -> None:
    for mechanism in MECHANISMS:
        chances = selection_chances(scores, eta=Fraction(10), mechanism=mechanism)
        assert chances.sum() == pytest.approx(1.0)


def test_permute_and_flip_is_never_worse_than_the_exponential_mechanism() -> None:
    """McKenna and Sheldon 2020, Theorem 2: expected utility."""
    numbers = np.random.default_rng(0)
    for _ in range(50):
        scores = [int(score) for score in numbers.integers(0, 100, size=6)]
        expected = [
            float(np.dot(selection_chances(scores, eta=Fraction(1, 20), mechanism=m), scores))
            for m in ("permute_and_flip", "exponential")
        ]
        assert expected[0] >= expected[1] - 1e-9


@pytest.mark.parametrize(
    "eta", [Fraction(0), Fraction(-1), Fraction(1, 10**400), Fraction(10**400)]
)
def test_an_exponent_that_cannot_be_drawn_with_is_refused(eta: Fraction) -> None:
    with pytest.raises(ParameterError, match="epsilon"):
        check_exponent(eta)


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_single_candidate_is_always_drawn(mechanism: str) -> None:
    assert SystemRandomSource().select([-5], eta=Fraction(1, 2), mechanism=mechanism) == 0


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_large_scores_far_apart_are_drawn_without_overflow(mechanism: str) -> None:
    scores = [-(1 << 60), 1 << 60]
    assert SystemRandomSource().select(scores, eta=Fraction(1), mechanism=mechanism) == 1


def test_an_unknown_mechanism_is_refused_with_the_nearest() -> None:
    with pytest.raises(UnknownName, match="did you mean 'exponential'"):
        check_mechanism("exponental")


@pytest.mark.parametrize(("size", "cap"), [(8, 1000), (10_000, 100_000), (10_000, 5_000)])
def test_accepted_draws_are_uniform_over_what_is_accepted(size: int, cap: int) -> None:
    """Both ways of sampling: by listing everything, and by trying at random."""
    accepted = [1, 3, 4, 7]

    def accepts(indices: object) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        return np.isin(np.array(indices) % 8, accepted)

    chooser = SystemRandomSource()
    drawn = chooser.sample(size, accepts, wanted=2_000, cap=cap)
    assert len(drawn) == 2_000
    counts = np.bincount(np.array(drawn) % 8, minlength=8)
    assert counts[accepted].sum() == 2_000
    assert stats.chisquare(counts[accepted]).pvalue > FALSE_ALARM


def test_sampling_ends_at_its_cap_and_where_nothing_is_accepted() -> None:
    tried: list[int] = []

    def nothing(indices: object) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        batch = list(indices)  # type: ignore[call-overload]
        tried.extend(batch)
        return np.zeros(len(batch), dtype=bool)

    assert SystemRandomSource().sample(10**9, nothing, wanted=3, cap=500) == []
    assert len(tried) == 500
    assert keep_accepted(10, nothing, wanted=3, cap=10, uniform=lambda _: 0) == []


def system_bits(patch: pytest.MonkeyPatch, bits: Sequence[int]) -> list[int]:
    """Let the operating system give these numbers; return how many bits each was asked to have."""
    asked: list[int] = []
    given = iter(bits)

    def system(count: int) -> int:
        asked.append(count)
        return next(given)

    patch.setattr("secrets.randbits", system)
    return asked


def test_public_coins_are_the_operating_systems(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = system_bits(monkeypatch, [17, 31, 16])
    assert SystemRandomSource().uniform(17) == 16  # what is out of range is drawn again
    assert asked == [5, 5, 5]


@pytest.mark.parametrize("bits", [0, 1, 5, 64, 64 * 100])
def test_no_draw_below_a_power_of_two_is_rejected(
    bits: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of the 2^b numbers of b bits is an answer, so the largest one is taken at once."""
    asked = system_bits(monkeypatch, [(1 << bits) - 1])
    assert SystemRandomSource().uniform(1 << bits) == (1 << bits) - 1
    assert asked == [bits]


@pytest.mark.parametrize("count", [0, -1, -8])
def test_nothing_is_drawn_from_nothing(count: int) -> None:
    with pytest.raises(ValueError, match="at least 1"):
        SystemRandomSource().uniform(count)
