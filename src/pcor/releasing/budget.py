"""Budget: a ceiling on what releases may spend together, for as long as a process lives.

Public: everything here. A budget remembers what was spent and no answers, so asking again is
charged again; a ``Ledger`` remembers both, across processes.
"""

from __future__ import annotations

import threading
from contextlib import AbstractContextManager, nullcontext
from decimal import Decimal
from fractions import Fraction
from typing import ClassVar

from pcor.errors import (
    Amount,
    BudgetExceeded,
    ParameterError,
    SourceError,
    Unfinished,
    paid_words,
    plain,
)
from pcor.public.accounting import exact
from pcor.releasing.answers import Answer, Outcome, write_answer
from pcor.releasing.certificate import Receipt
from pcor.releasing.payment import OWNER, Claim
from pcor.releasing.plan import Plan
from pcor.releasing.request import Request


class NoBooks:
    """Payment without books: nothing is counted, looked up, leased or stored."""

    is_paid: ClassVar[bool] = False
    remembers: ClassVar[bool] = False

    def request(self, plan: Plan, record: int | str, *, private: bool) -> Request:
        """Return what a release costs; which record it is about, nobody will look up."""
        del record, private
        cost = plan.bill.epsilon, plan.bill.delta
        return Request(plan.schema.name, OWNER, "", *cost, str(plan.guarantee), "{}")

    def answered(self, request: Request) -> Claim | None:
        """Return no answer: none is kept."""
        del request
        return None

    def charge(self, request: Request) -> Claim:
        """Charge nothing, and refuse nothing."""
        return Claim(request, 0, "new")

    def drawing(self, claim: Claim) -> AbstractContextManager[None]:
        """Take no lock: nobody else knows of this claim."""
        del claim
        return nullcontext()

    def store(self, claim: Claim, outcome: Outcome) -> Answer:
        """Return the answer; it is kept nowhere."""
        del claim
        return write_answer(outcome, paid=self.is_paid)

    def unfinished(self, error: SourceError) -> Unfinished:
        """Say that what was charged stays charged: without books no claim is known again."""
        return Unfinished(paid_words(error) if self.is_paid else str(error))

    def receipt(self, claim: Claim) -> Receipt | None:
        """Return no receipt."""
        del claim
        return None


# Pays where nobody gave a budget.
NO_BOOKS = NoBooks()


class Budget(NoBooks):
    """A ceiling on what releases may spend together, kept in memory.

    >>> budget = Budget(0.5)
    >>> budget.spend(exact(0.2))
    >>> plain(budget.left)
    '0.3'

    Args:
        total: the epsilon of all releases together.
        delta: their deltas together; by default none may have one.
    """

    is_paid = True

    def __init__(
        self,
        total: float | str | Decimal | Fraction,
        delta: float | str | Decimal | Fraction | None = None,
    ) -> None:
        self.total = exact(total, "the budget's total")
        self.spent = Fraction(0)
        self.delta_left = Fraction(0) if delta is None else exact(delta, "the budget's delta")
        self._lock = threading.Lock()

    @property
    def left(self) -> Fraction:
        """What can still be spent."""
        return Amount(self.total - self.spent)

    def spend(self, epsilon: Fraction, delta: Fraction = Fraction(0)) -> None:
        """Spend, or refuse and change nothing.

        Raises:
            ParameterError: the amount is not positive.
            BudgetExceeded: less is left than is asked for.
        """
        if epsilon <= 0 or delta < 0:
            raise ParameterError("what is spent must be positive")
        with self._lock:
            if epsilon > self.left:
                raise BudgetExceeded(asked=epsilon, left=self.left)
            if delta > self.delta_left:
                what = "delta (pcor.Budget(total, delta=...) allows some)"
                raise BudgetExceeded(asked=delta, left=self.delta_left, what=what)
            self.spent += epsilon
            self.delta_left -= delta

    def charge(self, request: Request) -> Claim:
        """Spend what a request costs."""
        self.spend(request.epsilon, request.delta)
        return super().charge(request)

    def __repr__(self) -> str:
        slack = f", delta {plain(self.delta_left)} left" if self.delta_left else ""
        return f"<Budget: epsilon {plain(self.left)} left of {plain(self.total)}{slack}>"
