"""Composition with a delta: rho by its definition, exact distributions against the bound."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import opendp.prelude as dp
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import pcor
from pcor.audit import exact_log_chances
from pcor.errors import BudgetExceeded, ParameterError
from pcor.public.accounting import release_cost
from pcor.public.zcdp import range_for, rho_for
from pcor.releasing.settings import plan
from tests.helpers.neighbours import DETECTORS, SCHEMA, Row, Small, f_neighbours, small
from tests.helpers.small_tables import STEEP, lowest, tables

DELTAS = [Fraction(1, 10**3), Fraction(1, 10**6), Fraction(1, 10**12)]


@pytest.mark.parametrize("epsilon", [Fraction(1, 20), Fraction(1, 5), Fraction(1), Fraction(5)])
@pytest.mark.parametrize("delta", DELTAS)
def test_rho_converts_back_and_beats_the_closed_formula(epsilon: Fraction, delta: Fraction) -> None:
    """Bun and Steinke 2016: eps = rho + 2 sqrt(rho ln(1/delta)) holds too, and allows less rho."""
    rho = float(rho_for(epsilon, delta))
    log = math.log(1 / delta)
    closed = (math.sqrt(log + float(epsilon)) - math.sqrt(log)) ** 2
    assert closed <= rho
    # Bounded above by the definition: the loss of a Gaussian mechanism of that rho, exactly.
    assert gaussian_delta(rho, float(epsilon)) <= float(delta) * (1 + 1e-9)


@pytest.mark.parametrize("epsilon", [Fraction(1, 1000), Fraction(1, 5), Fraction(1), Fraction(5)])
@pytest.mark.parametrize("delta", DELTAS)
def test_opendp_converts_rho_to_the_same_epsilon(epsilon: Fraction, delta: Fraction) -> None:
    dp.enable_features("contrib", "honest-but-curious")
    # A measurement that only states its cost: what is converted is the number.
    stated = dp.m.make_user_measurement(
        dp.atom_domain(T="f64", nan=False),
        dp.absolute_distance(T="f64"),
        dp.zero_concentrated_divergence(),
        lambda number: number,
        lambda _: float(rho_for(epsilon, delta)),
    )
    curve: Any = dp.c.make_zCDP_to_approxDP(stated)
    assert curve.map(1.0).epsilon(float(delta)) == pytest.approx(float(epsilon), rel=1e-12)


@given(st.fractions(Fraction(1, 10**6), 10).filter(bool), st.floats(-10, 10))
def test_no_order_allows_more_rho(epsilon: Fraction, x: float) -> None:
    """The best order was found; any other one, by the formula as published, allows no more."""
    for delta in DELTAS:
        rho = float(rho_for(epsilon, delta))
        order = 1 + math.exp(x)
        # Canonne, Kamath, Steinke 2020, Proposition 12, in logarithms: log delta of an order.
        log_delta = (
            (order - 1) * (order * rho - float(epsilon))
            - math.log(order - 1)
            + order * math.log1p(-1 / order)
        )
        assert log_delta >= math.log(delta) - 1e-6


def gaussian_delta(rho: float, epsilon: float) -> float:
    """Return the delta of a Gaussian mechanism with this rho (Balle and Wang 2018, Theorem 8)."""
    mu = math.sqrt(2 * rho)

    def below(x: float) -> float:
        return math.erfc(-x / math.sqrt(2)) / 2

    return below(mu / 2 - epsilon / mu) - math.exp(epsilon) * below(-mu / 2 - epsilon / mu)


@given(st.fractions(Fraction(1, 10**9), 1000).filter(bool))
def test_the_range_is_the_root_of_eight_rho_rounded_down(rho: Fraction) -> None:
    found = range_for(rho)
    assert found**2 <= 8 * rho < (found + Fraction(1, 2**79)) ** 2


def test_the_draws_share_rho_and_get_larger_exponents() -> None:
    search = pcor.BreadthFirst(samples=50, final_share=0.02)
    pure = release_cost(search, pcor.PopulationSize(), Fraction(1, 5), "tight")
    slack = release_cost(search, pcor.PopulationSize(), Fraction(1, 5), "tight", Fraction(1, 10**6))
    assert 3 < slack.step_eta / pure.step_eta < 4
    rho = sum(step.cost for step in slack.steps)
    assert rho == rho_for(Fraction(1, 5), Fraction(1, 10**6))
    spent = 49 * slack.step_eta**2 / 8 + slack.eta**2 / 8
    assert rho * (1 - Fraction(1, 10**9)) < spent <= rho
    assert {step.unit for step in slack.steps if step.calls} == {"rho"}


def test_a_utility_that_is_not_monotone_gets_half_the_exponent_here_too() -> None:
    class Uneven:
        sensitivity = 3
        monotonic = False

        def score(self, population: pcor.Population) -> int:
            return 3 * population.size

    search = pcor.DepthFirst(samples=5)
    priced = [
        release_cost(search, utility, Fraction(1), "tight", Fraction(1, 10**6)).eta
        for utility in (pcor.PopulationSize(), Uneven())
    ]
    assert priced[1] == priced[0] / 6


def slack_needed(here: Small, there: Small, epsilon: float, **options: Any) -> float:
    """Return the smallest delta with which the bound holds from one table to the other."""
    chances = [
        {a: math.exp(log) for a, log in exact_log_chances(s.table, 0, epsilon, **options).items()}
        for s in (here, there)
    ]
    return sum(
        max(0.0, chance - math.exp(epsilon) * chances[1].get(answer, 0.0))
        for answer, chance in chances[0].items()
    )


@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(tables())
def test_no_neighbour_needs_more_than_delta(rows: list[Row]) -> None:
    """The exact distributions, both ways, against exp(epsilon) and delta."""
    detector = DETECTORS["lof"]
    here, others = f_neighbours(rows, detector)
    for there in others:
        search = pcor.BreadthFirst(samples=3, start=lowest(here))
        options: dict[str, Any] = {"epsilon": 0.5, "delta": 1e-3, "search": search}
        for one, other in ((here, there), (there, here)):
            needed = slack_needed(one, other, detector=detector, **options)
            assert needed <= 1e-3 + 1e-12


def test_far_too_large_exponents_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    detector = DETECTORS["lof"]
    here, others = f_neighbours(STEEP, detector)
    options: dict[str, Any] = {
        "epsilon": 0.5,
        "delta": 1e-3,
        "detector": detector,
        "search": pcor.BreadthFirst(samples=3, start=lowest(here)),
    }

    def largest() -> float:
        return max(slack_needed(here, there, **options) for there in others)

    assert largest() <= 1e-3

    def broken(*args: Any) -> Any:
        honest = release_cost(*args)
        return replace(honest, eta=8 * honest.eta, step_eta=8 * honest.step_eta)

    monkeypatch.setattr("pcor.releasing.terms.release_cost", broken)
    assert largest() > 1e-2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"search": "direct"}, "delta pays only where many draws add up"),
        ({"search": "uniform"}, "delta pays only where many draws add up"),
        ({"accounting": "paper"}, "delta pays only where many draws add up"),
        ({"selection": "permute_and_flip"}, "by selection 'exponential'"),
        ({"delta": 0.5}, "delta must be at most 0.001"),
        ({"delta": 0}, "delta must be a positive, finite number"),
        ({"delta": "many"}, "delta must be a positive, finite number"),
    ],
)
def test_a_delta_that_buys_nothing_is_refused(options: dict[str, Any], message: str) -> None:
    usual: dict[str, Any] = {"search": "breadth_first", "delta": 1e-6}
    with pytest.raises(ParameterError, match=message):
        plan(SCHEMA, 1, **(usual | options))


def test_the_release_is_charged_and_says_so() -> None:
    here = small(STEEP, DETECTORS["lof"])
    budget = pcor.Budget(1, delta=1.5e-6)
    options: dict[str, Any] = {"detector": DETECTORS["lof"], "search": "breadth_first"}
    release = pcor.release(here.table, 0, 0.25, delta=1e-6, budget=budget, **options)
    assert budget.left == Fraction(3, 4)
    assert budget.delta_left == Fraction(1, 2 * 10**6)
    with pytest.raises(BudgetExceeded, match=r"asks for delta .* 0\.000001"):
        pcor.release(here.table, 0, 0.25, delta=1e-6, budget=budget, **options)
    assert budget.left == Fraction(3, 4)
    certificate = release.to_dict()
    assert certificate["delta"] == 1e-6
    assert "delta = 0.000001" in certificate["promise"]["text"]
    assert "(epsilon, delta, COE)-OCDP" in certificate["promise"]["definition"]
    assert "of rho (zCDP)" in release.explain()
