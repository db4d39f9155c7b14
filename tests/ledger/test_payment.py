"""Payment: one protocol for a budget in memory and for a ledger, one order of steps for both."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pcor
from pcor.errors import BudgetExceeded, NoValidContext, ParameterError, RecordError, SourceError
from pcor.releasing.answers import Answer, Outcome
from pcor.releasing.budget import NO_BOOKS, Budget
from pcor.releasing.certificate import Receipt
from pcor.releasing.payment import Claim, Payer, pay_and_draw, settle
from pcor.releasing.plan import Plan
from pcor.releasing.request import Request
from pcor.releasing.run import release_planned
from tests.helpers.ledger_clients import EACH, OUTLIER, SETTINGS, table

NOBODY = OUTLIER + 1  # is an outlier nowhere


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[pcor.Ledger]:
    opened = pcor.Ledger(tmp_path / "books.db")
    opened.set_budget(table().schema.name, 1)
    yield opened
    opened.close()


def release(record: int | str = OUTLIER, **options: Any) -> pcor.Release:
    return pcor.release(table(), record, EACH, **{**SETTINGS, **options})


@pytest.mark.parametrize("payer", [NO_BOOKS, Budget(1)], ids=["nobody", "budget"])
def test_what_keeps_no_books_is_a_payer(payer: object) -> None:
    assert isinstance(payer, Payer)


def test_a_ledger_is_a_payer(ledger: pcor.Ledger) -> None:
    assert isinstance(ledger, Payer)


def test_a_release_may_be_paid_by_a_ledger_and_then_is_free(ledger: pcor.Ledger) -> None:
    name = table().schema.name
    first = release(budget=ledger)
    assert first.receipt is not None
    assert ledger.left(name) == 1 - Fraction(EACH)
    assert release(budget=ledger).to_dict() == first.to_dict()
    asked = ledger.release(table(), OUTLIER, EACH, dataset=name, **SETTINGS)
    assert asked.to_dict() == first.to_dict()
    assert ledger.left(name) == 1 - Fraction(EACH)


def test_many_releases_may_be_paid_by_a_ledger_under_either_name(ledger: pcor.Ledger) -> None:
    by_ledger = pcor.release_many(table(), [OUTLIER], EACH, ledger=ledger, **SETTINGS)
    by_budget = pcor.release_many(table(), [OUTLIER], EACH, budget=ledger, **SETTINGS)
    assert by_budget.charged == 0 < by_ledger.charged
    assert by_budget[0] == by_ledger[0]
    with pytest.raises(ParameterError, match="cannot both pay"):
        pcor.release_many(table(), [OUTLIER], EACH, budget=ledger, ledger=ledger, **SETTINGS)


def test_what_cannot_pay_is_refused() -> None:
    for wrong in (1, "1", object()):
        with pytest.raises(ParameterError, match=r"budget must be a pcor\.Budget.*pcor\.Ledger"):
            release(budget=wrong)


def test_a_ledger_is_asked_for_a_dataset_that_has_a_name(ledger: pcor.Ledger) -> None:
    rows = pa.table({"city": ["Ottawa"] * 3, "salary": [1, 2, 3]})
    unnamed = pcor.Table(rows, pcor.Schema("salary", {"city": ["Ottawa"]}))
    with pytest.raises(ParameterError, match="this schema has no name of its own"):
        pcor.release(unnamed, 2, 1, budget=ledger)


def test_a_budget_is_no_ledger() -> None:
    options: dict[str, Any] = {"ledger": Budget(1), **SETTINGS}
    with pytest.raises(ParameterError, match=r"ledger must be a pcor\.Ledger"):
        pcor.release_many(table(), [OUTLIER], EACH, **options)
    with pytest.raises(ParameterError, match=r"ledger must be"):
        pcor.release_many(table(), [OUTLIER], EACH, **options | {"ledger": "books.db"})


def test_a_plan_of_another_schema_is_not_carried_out() -> None:
    planned = pcor.plan(pcor.Schema("salary", {"city": ["Ottawa"]}), 1)
    with pytest.raises(ParameterError, match="made for another schema"):
        release_planned(planned, table(), OUTLIER)


def test_an_answer_that_was_paid_for_says_so_and_one_that_was_not_does_not() -> None:
    with pytest.raises(NoValidContext, match="This answer is paid for like any other"):
        release(NOBODY, budget=Budget(1))
    with pytest.raises(NoValidContext) as free:
        release(NOBODY)
    assert "paid" not in str(free.value)


def test_a_record_that_is_not_there_is_refused_before_the_charge(ledger: pcor.Ledger) -> None:
    for payer in (Budget(1), ledger):
        with pytest.raises(RecordError):
            release(10**9, budget=payer)
    assert ledger.left(table().schema.name) == 1


class Noted:
    """A payer that notes in which order it is asked."""

    remembers = False

    def __init__(self, known: Answer | None = None, refusal: Exception | None = None) -> None:
        self.steps: list[str] = []
        self._known, self._refusal = known, refusal

    def request(self, plan: Plan, record: int | str, *, private: bool) -> Request:
        return NO_BOOKS.request(plan, record, private=private)

    def answered(self, request: Request) -> Claim | None:
        self.steps.append("look up")
        return None if self._known is None else Claim(request, 1, "done", self._known)

    def charge(self, request: Request) -> Claim:
        self.steps.append("charge")
        if self._refusal is not None:
            raise self._refusal
        return Claim(request, 1, "new")

    @contextmanager
    def drawing(self, claim: Claim) -> Iterator[None]:
        del claim
        self.steps.append("lease")
        yield
        self.steps.append("give back")

    def store(self, claim: Claim, outcome: Outcome) -> Answer:
        self.steps.append("store")
        return NO_BOOKS.store(claim, outcome)

    def unfinished(self, error: SourceError) -> pcor.errors.Unfinished:
        self.steps.append("unfinished")
        return NO_BOOKS.unfinished(error)

    def receipt(self, claim: Claim) -> Receipt | None:
        return NO_BOOKS.receipt(claim)

    def pay(
        self, read: Callable[[], object] = object, draw: Callable[[], Outcome] | None = None
    ) -> pcor.Release:
        drawn = release()

        def noted_read() -> object:
            self.steps.append("read")
            return read()

        def noted_draw(_: object) -> pcor.Release:
            self.steps.append("draw")
            outcome = drawn if draw is None else draw()
            if isinstance(outcome, pcor.PcorError):
                raise outcome
            return outcome

        request = self.request(drawn.plan, OUTLIER, private=True)
        return pay_and_draw(self, request, drawn.plan, noted_read, noted_draw)


def test_the_order_is_look_up_read_charge_lease_draw_store() -> None:
    payer = Noted()
    payer.pay()
    assert payer.steps == ["look up", "read", "charge", "lease", "draw", "store", "give back"]


def test_a_stored_answer_is_neither_read_for_nor_charged() -> None:
    payer = Noted(known=release().to_dict())
    payer.pay()
    assert payer.steps == ["look up"]


def test_nothing_is_drawn_after_a_refusal() -> None:
    payer = Noted(refusal=BudgetExceeded(asked=Fraction(1), left=Fraction(0)))
    with pytest.raises(BudgetExceeded):
        payer.pay()
    assert payer.steps == ["look up", "read", "charge"]


def test_an_error_of_the_draw_is_stored_before_it_is_raised() -> None:
    payer = Noted()
    with pytest.raises(NoValidContext, match="none"):
        payer.pay(draw=lambda: NoValidContext("none"))
    assert payer.steps[-2:] == ["store", "give back"]


def test_a_source_that_fails_while_drawing_is_no_answer() -> None:
    payer = Noted()
    with pytest.raises(pcor.errors.Unfinished, match="gone"):
        payer.pay(draw=lambda: SourceError("gone"))
    assert payer.steps[-2:] == ["draw", "unfinished"]


def test_whoever_settles_may_store_in_its_own_way() -> None:
    payer, drawn = Noted(), release()
    claim = payer.charge(payer.request(drawn.plan, OUTLIER, private=True))
    settled = settle(payer, claim, lambda: drawn, store=lambda *_: {"format": "mine"})
    assert (settled.state, settled.answer) == ("done", {"format": "mine"})
    assert "store" not in payer.steps
