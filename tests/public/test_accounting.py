"""Prices: exact fractions that add up to what the user typed."""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pcor
from pcor.errors import Amount, BudgetExceeded, ParameterError, UnknownName, plain
from pcor.public.accounting import exact, release_cost
from tests.helpers.neighbours import SCHEMA, every_search
from tests.helpers.small_tables import OnlyWithoutB


@pytest.mark.parametrize("search", every_search(samples=50), ids=lambda s: s.name)
@pytest.mark.parametrize("accounting", ["tight", "paper"])
@given(epsilon=st.fractions(Fraction(1, 10**6), 100))
def test_the_steps_add_up_to_the_total_exactly(
    search: pcor.Search, accounting: str, epsilon: Fraction
) -> None:
    priced = release_cost(search, pcor.PopulationSize(), epsilon, accounting)
    assert sum(step.cost for step in priced.steps) == epsilon


# What the final draw and each choice before it may use as exponents at epsilon = 1, worked out by
# hand from the theorems; None where there is no choice.
BY_HAND = [
    (pcor.Direct(), "tight", Fraction(1), None),
    (pcor.Direct(), "paper", Fraction(1, 2), None),
    (pcor.Uniform(samples=50), "tight", Fraction(1), None),
    (pcor.RandomWalk(samples=50), "paper", Fraction(1, 2), None),
    (pcor.DepthFirst(samples=50, final_share=0.02), "tight", Fraction(1, 50), Fraction(1, 50)),
    (pcor.DepthFirst(samples=11, final_share=0.3), "tight", Fraction(3, 10), Fraction(7, 100)),
    (pcor.DepthFirst(samples=50), "paper", Fraction(1, 102), Fraction(1, 102)),
    (pcor.BreadthFirst(samples=5, final_share=0.5), "tight", Fraction(1, 2), Fraction(1, 8)),
    (pcor.BreadthFirst(samples=100), "paper", Fraction(1, 202), Fraction(1, 202)),
    (pcor.BreadthFirst(samples=1), "tight", Fraction(1), None),
    (pcor.BreadthFirst(samples=1), "paper", Fraction(1, 4), None),
]


@pytest.mark.parametrize(("search", "accounting", "eta", "step_eta"), BY_HAND)
def test_the_exponents_are_those_worked_out_by_hand(
    search: pcor.Search, accounting: str, eta: Fraction, step_eta: Fraction | None
) -> None:
    priced = release_cost(search, pcor.PopulationSize(), Fraction(1), accounting)
    assert priced.eta == eta
    if step_eta is not None:
        assert priced.step_eta == step_eta


@pytest.mark.parametrize("share", [0, 1, -0.1, 2, True, "0.5", float("nan")])
def test_a_share_that_leaves_nothing_for_one_side_is_refused(share: Any) -> None:
    with pytest.raises(ParameterError, match="final_share must be a number between 0 and 1"):
        pcor.BreadthFirst(final_share=share)


PAGE = Path(__file__).parents[2] / "docs" / "proofs" / "accounting.md"


@pytest.mark.parametrize(
    ("search", "named"),
    [
        *((kind(), "direct, widest-first") for kind in (pcor.Direct, pcor.WidestFirst)),
        *((kind(50), "direct, widest-first") for kind in (pcor.Uniform, pcor.RandomWalk)),
        *(
            (kind(50), "depth-first, breadth-first")
            for kind in (pcor.DepthFirst, pcor.BreadthFirst)
        ),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_the_page_of_the_bill_has_the_exponents_of_the_code(
    search: pcor.Search, named: str
) -> None:
    """The table of numbers: epsilon 0.2, 50 samples, population size."""
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    [row] = [line for line in lines if line.startswith(f"| {named}")]
    for told, accounting in zip(row.strip("| ").split(" | ")[1:], ["tight", "paper"], strict=True):
        priced = release_cost(search, pcor.PopulationSize(), Fraction(1, 5), accounting)
        expected = [priced.step_eta, priced.eta] if search.paid_choices else [priced.eta]
        assert [Fraction(number) for number in told.split(", ")] == expected


def test_one_sample_by_the_papers_prices_is_charged_whole_and_drawn_with_half() -> None:
    priced = release_cost(pcor.DepthFirst(samples=1), pcor.PopulationSize(), Fraction(1), "paper")
    assert priced.eta == Fraction(1, 4)
    assert [plain(step.cost) for step in priced.steps] == ["0", "0", "1"]
    assert "`eta = epsilon / (4 * Du)`" in PAGE.read_text(encoding="utf-8")


def test_the_paper_splits_evenly() -> None:
    with pytest.raises(ParameterError, match="splits evenly"):
        pcor.plan(SCHEMA, 1, search=pcor.BreadthFirst(final_share=0.5), accounting="paper")


def test_a_utility_that_is_not_monotone_gets_half_the_exponent() -> None:
    assert release_cost(pcor.Direct(), OnlyWithoutB(), Fraction(1), "tight").eta == Fraction(1, 2)


def test_a_larger_sensitivity_divides_the_exponent() -> None:
    class Threefold:
        sensitivity = 3
        monotonic = True

        def score(self, population: pcor.Population) -> int:
            return 3 * population.size

    assert release_cost(pcor.Direct(), Threefold(), Fraction(1), "tight").eta == Fraction(1, 3)


@dataclass(frozen=True)
class Thrifty(pcor.DepthFirst):
    """A search of somebody else's that forgot to say what the paper would charge."""

    @property
    def paper_calls(self) -> int:
        return 1


def test_no_accounting_charges_for_fewer_draws_than_are_made() -> None:
    priced = release_cost(Thrifty(samples=10), pcor.PopulationSize(), Fraction(1), "paper")
    assert priced.eta == Fraction(1, 20)


def test_an_unknown_accounting_is_refused_with_the_nearest() -> None:
    with pytest.raises(UnknownName, match="did you mean 'tight'"):
        pcor.plan(SCHEMA, 1, accounting="tigth")


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        (0.2, Fraction(1, 5)),
        ("0.2", Fraction(1, 5)),
        (" 1e-3 ", Fraction(1, 1000)),
        ("1/3", Fraction(1, 3)),
        (2, Fraction(2)),
        (Decimal("0.05"), Fraction(1, 20)),
        (Fraction(1, 7), Fraction(1, 7)),
        (np.float64(0.1), Fraction(1, 10)),
        (np.int64(3), Fraction(3)),
        (".5", Fraction(1, 2)),
    ],
)
def test_epsilon_is_read_as_it_was_written(written: Any, meant: Fraction) -> None:
    assert exact(written) == meant


@pytest.mark.parametrize(
    "written",
    [0, -1, -0.2, float("nan"), float("inf"), "many", "", "1e999999999", "1/0", "0/5", True, None,
     [1], Decimal("NaN"), Decimal("Infinity"), Fraction(-1, 2), "٣", "0x10", "1_000", "1" * 5000],
)  # fmt: skip
def test_a_bad_epsilon_is_refused_in_one_sentence(written: Any) -> None:
    with pytest.raises(ParameterError, match="epsilon must be a positive, finite number"):
        pcor.plan(SCHEMA, written)


@given(st.fractions(0, 10))
def test_a_printed_number_reads_back_as_the_same_fraction(number: Fraction) -> None:
    assert Fraction(plain(number)) == number


def test_a_budget_pays_until_it_cannot_and_says_asked_left_and_short_by() -> None:
    budget = pcor.Budget(0.5)
    budget.spend(exact(0.2))
    budget.spend(exact(0.2))
    with pytest.raises(BudgetExceeded) as refused:
        budget.spend(exact(0.2))
    assert str(refused.value) == (
        "this release asks for epsilon 0.2, the budget has 0.1 left: short by 0.1; "
        "nothing was spent"
    )
    assert refused.value.exit_code == 3
    assert budget.left == Fraction(1, 10)
    assert repr(budget) == "<Budget: epsilon 0.1 left of 0.5>"


def test_a_hundred_small_releases_fit_where_floats_would_refuse_the_last() -> None:
    budget = pcor.Budget("0.2")
    for _ in range(100):
        budget.spend(exact("0.002"))
    assert budget.left == 0


@pytest.mark.parametrize("total", [0, -1, "much", float("nan")])
def test_a_bad_total_is_refused(total: Any) -> None:
    with pytest.raises(ParameterError, match="the budget's total must be a positive"):
        pcor.Budget(total)


def test_nothing_can_be_put_back_into_a_budget_by_spending() -> None:
    budget = pcor.Budget(1)
    with pytest.raises(ParameterError, match="must be positive"):
        budget.spend(Fraction(-5))
    assert budget.left == 1


def test_an_amount_is_an_exact_fraction_that_is_shown_as_people_write_it() -> None:
    left = Amount(14, 5)
    assert (str(left), f"{left}", repr(left)) == ("2.8", "2.8", "Amount('2.8')")
    assert str(Amount(1, 3)) == "1/3"
    assert left == Fraction(14, 5)
    assert pickle.loads(pickle.dumps(left)) == left  # noqa: S301 (our own bytes)


def test_an_amount_that_is_spent_is_written_into_books_like_any_fraction() -> None:
    assert type(exact(Amount("2.8"))) is Fraction
    assert str(exact(Amount("2.8"))) == "14/5"


def test_what_is_left_of_a_budget_is_an_amount() -> None:
    assert str(pcor.Budget(3).left) == "3"
    assert f"{pcor.Budget('0.3').left}" == "0.3"
