"""The sampled lower bound: never above the truth beyond its error rate, and able to say no.

A check over many runs counts how often the bound was above the truth. Each run is wrong with a
chance of at most 1 - confidence; the number of wrong runs is compared with the binomial tail.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable, Hashable

import pytest
from scipy import stats

import pcor
from pcor.audit import answers, exact_log_chances, sampled_epsilon
from pcor.audit.sampled import SampledEpsilon, _event
from pcor.errors import ParameterError
from tests.helpers.neighbours import DETECTORS, Row, small

# The chance of a false alarm of one check: 5 checks, 10,000 runs a year, one in 20,000 years.
FALSE_ALARM = 1e-9

Draw = Callable[[], int]


def drawer(chances: list[float], seed: int) -> Draw:
    numbers = random.Random(seed)  # noqa: S311 (test data)
    return lambda: numbers.choices(range(len(chances)), chances)[0]


def epsilon_of(here: list[float], there: list[float]) -> float:
    """The true epsilon of two distributions."""
    return max(abs(math.log(p / q)) for p, q in zip(here, there, strict=True))


HERE, THERE = [0.5, 0.3, 0.15, 0.05], [0.3, 0.5, 0.12, 0.08]


def runs(here: list[float], there: list[float], draws: int, count: int) -> list[SampledEpsilon]:
    return [
        sampled_epsilon(drawer(here, 2 * seed), drawer(there, 2 * seed + 1), draws, confidence=0.8)
        for seed in range(count)
    ]


@pytest.mark.parametrize("draws", [40, 400])
@pytest.mark.parametrize(
    ("here", "there"), [(HERE, THERE), (THERE, HERE), (HERE, HERE), ([0.99, 0.01], [0.98, 0.02])]
)
def test_the_bound_is_above_the_truth_no_more_often_than_stated(
    here: list[float], there: list[float], draws: int
) -> None:
    truth = epsilon_of(here, there)
    wrong = sum(found.epsilon > truth for found in runs(here, there, draws, 100))
    assert stats.binom.sf(wrong - 1, 100, 0.2) > FALSE_ALARM


def test_the_half_that_chose_the_event_would_be_above_the_truth_far_too_often() -> None:
    """Power: were the event tested on the draws that chose it, the check above would say no."""
    same = [1 / 200] * 200
    wrong = 0
    for seed in range(100):
        here, there = (_hundred(drawer(same, 2 * seed + side)) for side in (0, 1))
        wrong += _event(here, there, 100, 0.1, 0.0)[0] > epsilon_of(same, same)
    assert stats.binom.sf(wrong - 1, 100, 0.2) < FALSE_ALARM


def _hundred(draw: Draw) -> Counter[Hashable]:
    return Counter(draw() for _ in range(100))


def test_a_broken_mechanism_is_seen() -> None:
    """Power: an answer that is impossible there; the claim of 0.5 is refuted in every run."""
    here, there = [0.7, 0.3], [1.0, 0.0]
    assert min(found.epsilon for found in runs(here, there, 1000, 20)) > 1.5
    assert {found.likelier for found in runs(here, there, 1000, 5)} == {"here"}


def test_a_larger_epsilon_than_claimed_is_seen() -> None:
    """Power: a mechanism that spends twice the epsilon it claims is caught with 20,000 draws."""
    true = [math.exp(1.0) / (1 + math.exp(1.0)), 1 / (1 + math.exp(1.0))]
    found = sampled_epsilon(drawer(true, 1), drawer(true[::-1], 2), 20_000, confidence=0.999)
    assert 0.5 < found.epsilon <= 1.0


def test_a_slack_is_granted() -> None:
    here, there = [0.9, 0.1], [1.0, 0.0]
    without = sampled_epsilon(drawer(here, 1), drawer(there, 2), 4000)
    granted = sampled_epsilon(drawer(here, 1), drawer(there, 2), 4000, delta=0.2)
    assert without.epsilon > 1 > granted.epsilon == 0.0


def test_draws_that_show_nothing_give_zero() -> None:
    assert sampled_epsilon(lambda: 1, lambda: 1, 100).epsilon == 0.0


ROWS: list[Row] = [("a", "x", 40.0), *[("abc"[n % 3], "xy"[n % 2], float(n % 5)) for n in range(9)]]


def test_answers_of_a_release_come_with_their_exact_chances() -> None:
    table = small(ROWS, DETECTORS["lof"]).table
    rule = DETECTORS["lof"]
    draw = answers(table, 0, "0.3", detector=rule)
    seen = Counter(draw() for _ in range(3000))
    logs = exact_log_chances(table, 0, "0.3", detector=rule)
    expected = {answer: 3000 * math.exp(log) for answer, log in logs.items()}
    assert set(seen) <= set(expected)
    usual = [answer for answer in expected if expected[answer] >= 10]
    assert len(usual) > 3
    counts = [*(seen[a] for a in usual), 3000 - sum(seen[a] for a in usual)]
    chances = [*(expected[a] for a in usual), 3000 - sum(expected[a] for a in usual)]
    kept = [place for place, number in enumerate(chances) if number >= 10]
    rest = 3000 - sum(chances[place] for place in kept)
    counts[kept[-1]] += 3000 - sum(counts[place] for place in kept)
    chances[kept[-1]] += rest
    p_value = stats.chisquare([counts[k] for k in kept], [chances[k] for k in kept]).pvalue
    assert p_value > FALSE_ALARM


def test_a_table_on_which_the_record_is_no_outlier_answers_none() -> None:
    strict = pcor.LOF(k=2, threshold=1e9, min_population=4)
    assert answers(small(ROWS, strict).table, 0, 0.2, detector=strict)() is None


def test_a_release_keeps_its_epsilon_by_sampling_too() -> None:
    """Two tables with the same COE: a claim that holds is refuted with a chance of 1e-9."""
    rule = pcor.Tail(0.3, min_population=3)
    here, there = small(ROWS, rule), small(ROWS[:-1], rule)
    draws = [answers(s.table, 0, 1, detector=rule, guarantee="dp") for s in (here, there)]
    found = sampled_epsilon(draws[0], draws[1], 1000, confidence=1 - FALSE_ALARM)
    assert found.epsilon <= 1


def test_it_shows_nothing_unless_it_is_asked_to() -> None:
    found = sampled_epsilon(lambda: "secret", lambda: "other", 100)
    assert repr(found) == "<SampledEpsilon: PRIVATE, for the owner only>"
    assert found.to_dict()["event"] == ["secret"]


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"draws": 1}, "draws must be at least 2"),
        ({"draws": 0}, "draws must be a whole number"),
        ({"confidence": 1.0}, "confidence must be"),
        ({"delta": -0.1}, "delta must be"),
    ],
)
def test_what_cannot_be_is_refused(changed: dict[str, float], said: str) -> None:
    with pytest.raises(ParameterError, match=said):
        sampled_epsilon(lambda: 1, lambda: 1, **({"draws": 10} | changed))  # type: ignore[arg-type]
