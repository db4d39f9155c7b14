"""Budgets, allotments and caps, kept as exact fractions."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pcor.errors import BudgetExceeded, CapExceeded, ParameterError
from pcor.ledger import Ledger
from pcor.ledger.entries import entry_in_words
from pcor.releasing.amounts import amount
from tests.helpers.books import release
from tests.helpers.ledger_clients import DATASET, EACH, request


def test_a_refusal_says_asked_left_and_short_by_and_spends_nothing(ledger: Ledger) -> None:
    release(ledger, epsilon="0.8")
    with pytest.raises(BudgetExceeded) as refused:
        release(ledger, epsilon="0.5")
    assert (refused.value.asked, refused.value.left, refused.value.short_by) == (
        Fraction(1, 2),
        Fraction(1, 5),
        Fraction(3, 10),
    )
    assert "asks for epsilon 0.5" in str(refused.value)
    assert "has 0.2 left: short by 0.3; nothing was spent" in str(refused.value)
    assert ledger.left(DATASET) == Fraction(1, 5)
    assert [entry.kind for entry in ledger.entries()][-1] == "refusal"


def test_ten_times_a_tenth_is_one(ledger: Ledger) -> None:
    for number in range(10):
        ledger.charge(request(str(number), epsilon=0.1))
    assert ledger.left(DATASET) == 0


def test_a_cap_limits_each_release(ledger: Ledger) -> None:
    ledger.set_budget(DATASET, 1, cap="0.1")
    with pytest.raises(CapExceeded, match=r"allows one release 0.1 at most: short by 0.1"):
        release(ledger, epsilon="0.2")
    release(ledger, epsilon="0.1")
    assert ledger.status(DATASET).cap == Fraction(1, 10)


def test_an_analyst_is_bounded_by_the_allotment_and_by_the_budget(ledger: Ledger) -> None:
    ledger.allot(DATASET, "ana", "0.3")
    release(ledger, analyst="ana", epsilon="0.2")
    assert (ledger.left(DATASET), ledger.left(DATASET, "ana")) == (Fraction(4, 5), Fraction(1, 10))
    with pytest.raises(BudgetExceeded, match=r"the allotment of 'ana'.*has 0.1 left"):
        release(ledger, analyst="ana", epsilon="0.15")
    ledger.allot(DATASET, "ana", 5)
    with pytest.raises(BudgetExceeded, match=r"the budget of dataset 'people' has 0.8 left"):
        release(ledger, analyst="ana", epsilon=2)
    assert ledger.left(DATASET, "ana") == Fraction(4, 5)


def test_ones_own_allotment_refuses_before_the_budget_of_all_does(ledger: Ledger) -> None:
    ledger.allot(DATASET, "ana", "0.3")
    with pytest.raises(BudgetExceeded, match=r"the allotment of 'ana'.*has 0.3 left"):
        release(ledger, analyst="ana", epsilon=2)


def test_an_analyst_without_an_allotment_has_nothing_to_spend(ledger: Ledger) -> None:
    assert ledger.left(DATASET, "bob") == 0
    with pytest.raises(BudgetExceeded, match="'bob' has no allotment"):
        release(ledger, analyst="bob")


def test_the_command_that_would_give_an_allotment_can_be_typed(ledger: Ledger) -> None:
    options = {"search": "breadth_first", "delta": "0.000001", "samples": 5}
    command = f"`pcor ledger allot LEDGER {DATASET} 'bob smith' --epsilon {EACH} --delta 0.000001`"
    with pytest.raises(BudgetExceeded, match=command):
        release(ledger, analyst="bob smith", **options)


def test_two_analysts_with_the_same_key_are_two_requests(ledger: Ledger) -> None:
    ledger.allot(DATASET, "ana", "0.3")
    release(ledger, key="k")
    release(ledger, key="k", analyst="ana", epsilon="0.02")
    assert ledger.left(DATASET) == 1 - Fraction(3, 100)


def test_a_long_fraction_is_also_told_as_a_rounded_decimal(ledger: Ledger) -> None:
    ledger.allot(DATASET, "ana", "1234/997")
    told = [entry_in_words(entry) for entry in ledger.entries()]
    assert told == ["Budget set to epsilon 1", "May spend epsilon 1234/997 (about 1.238)"]


def test_the_two_guarantees_are_kept_apart_under_one_ceiling(ledger: Ledger) -> None:
    release(ledger, epsilon="0.2")
    release(ledger, epsilon="0.3", guarantee="dp", detector="tail")
    books = ledger.status(DATASET)
    assert books.spent == {"ocdp": Fraction(1, 5), "dp": Fraction(3, 10)}
    assert (books.total, books.left) == (Fraction(1), Fraction(1, 2))


def test_delta_has_a_ceiling_of_its_own(ledger: Ledger) -> None:
    many = {"search": "breadth_first", "samples": 5, "delta": "1e-6"}
    with pytest.raises(BudgetExceeded, match=r"delta 0.000001, .* has 0 left"):
        release(ledger, **many)
    ledger.set_budget(DATASET, 1, delta="1e-6")
    release(ledger, **many)
    assert ledger.status(DATASET).budget.delta_left == 0
    with pytest.raises(BudgetExceeded):
        release(ledger, **many, key="again")


def test_a_budget_may_be_raised_and_lowered_but_not_below_what_is_spent(ledger: Ledger) -> None:
    release(ledger, epsilon="0.4")
    assert ledger.set_budget(DATASET, "0.4").left == 0
    assert ledger.set_budget(DATASET, 2).left == Fraction(8, 5)
    with pytest.raises(ParameterError, match=r"0.4 is spent already"):
        ledger.set_budget(DATASET, "0.3")
    assert ledger.status(DATASET).total == 2


def test_the_owner_takes_no_allotment(ledger: Ledger) -> None:
    with pytest.raises(ParameterError, match="without allotment"):
        ledger.allot(DATASET, "owner", 1)


@pytest.mark.parametrize("wrong", ["0", "-1", "x", float("nan"), True, "1e-31", "1e10"])
def test_an_amount_that_cannot_be_kept_exactly_is_refused(wrong: object) -> None:
    with pytest.raises(ParameterError):
        amount(wrong)


COSTS = st.one_of(
    st.builds(Fraction, st.integers(1, 40), st.integers(1, 1000)),
    st.builds(lambda n, p: Fraction(n, 10**p), st.integers(1, 99), st.integers(0, 30)),
)


@given(
    budget=COSTS,
    allotment=COSTS,
    asked=st.lists(st.tuples(COSTS, st.booleans(), st.booleans()), max_size=6),
)
@settings(max_examples=12)
def test_the_books_are_those_of_a_clerk_with_fractions_on_paper(
    tmp_path_factory: pytest.TempPathFactory,
    budget: Fraction,
    allotment: Fraction,
    asked: list[tuple[Fraction, bool, bool]],
) -> None:
    ledger = Ledger(tmp_path_factory.mktemp("books") / "books.db")
    ledger.set_budget(DATASET, budget)
    ledger.allot(DATASET, "ana", allotment)
    spent = {"ocdp": Fraction(0), "dp": Fraction(0)}
    by_ana = Fraction(0)
    for number, (cost, as_ana, pure) in enumerate(asked):
        affordable = sum(spent.values()) + cost <= budget
        if as_ana:
            affordable = affordable and by_ana + cost <= allotment
        options = {"guarantee": "dp", "detector": "tail"} if pure else {}
        wanted = request(str(number), epsilon=cost, analyst="ana" if as_ana else "owner", **options)
        if affordable:
            assert ledger.charge(wanted).state == "new"
            spent["dp" if pure else "ocdp"] += cost
            by_ana += cost if as_ana else 0
        else:
            with pytest.raises(BudgetExceeded):
                ledger.charge(wanted)
    books = ledger.status(DATASET)
    assert books.spent == spent
    assert books.allotments[0].spent == by_ana
    assert ledger.verify().ok
