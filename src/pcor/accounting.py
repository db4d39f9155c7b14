"""Price what a search does, in exact fractions.

Public: everything here. The user gives one number, the total epsilon; the exponent eta of every
draw follows from it. Two price lists:

- ``tight``: what docs/proofs prove. A draw with exponent eta over scores that one row moves by at
  most d costs 2*eta*d, or eta*d for a monotone utility under add/remove neighbours. A search with p
  paid choices makes p+1 draws.
- ``paper``: what the paper charges: 2*eta*d a draw, and n+1 draws for n samples of a steered
  search ((2n+2) eps_1, Theorems 5.5 and 5.7), though one less suffices.
"""

from __future__ import annotations

import re
import threading
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

from pcor.errors import BudgetExceeded, ParameterError, UnknownName, plain
from pcor.search.base import GraphSearch, Search
from pcor.utility import Utility

ACCOUNTINGS = ("tight", "paper")


@dataclass(frozen=True)
class Step:
    """Something a release does, and its price."""

    what: str
    calls: int
    each: Fraction

    @property
    def cost(self) -> Fraction:
        """What the step costs at most."""
        return self.calls * self.each

    def to_dict(self) -> dict[str, Any]:
        """Return the step for a certificate."""
        return {
            "what": self.what,
            "calls": self.calls,
            "each": plain(self.each),
            "cost": plain(self.cost),
        }


@dataclass(frozen=True)
class Bill:
    """What a release costs and why.

    Attributes:
        accounting: the price list.
        epsilon: the total, exactly what the user gave.
        eta: the exponent of every draw.
        steps: their costs add up to epsilon.
    """

    accounting: str
    epsilon: Fraction
    eta: Fraction
    steps: tuple[Step, ...]


def bill(search: Search, utility: Utility, epsilon: Fraction, accounting: str) -> Bill:
    """Split the total epsilon over the draws of a search."""
    if accounting not in ACCOUNTINGS:
        raise UnknownName("accounting", accounting, ACCOUNTINGS)
    paper = accounting == "paper"
    calls = search.paid_choices + 1
    if paper:
        calls = max(calls, search.paper_calls)
    doubled = 1 if utility.monotonic and not paper else 2
    each = epsilon / calls
    eta = each / (doubled * Fraction(utility.sensitivity))
    return Bill(accounting, epsilon, eta, tuple(_steps(search, calls, each)))


def _steps(search: Search, calls: int, each: Fraction) -> list[Step]:
    free = Fraction(0)
    steps = []
    if isinstance(search, GraphSearch):
        given = "given by the owner" if search.start is not None else "found by validity alone"
        steps.append(Step(f"the start context, {given}", 0, free))
    if search.paid_choices:
        steps.append(Step("choices of the next context, by utility, at most", calls - 1, each))
    else:
        steps.append(Step(f"search {search.name!r} for candidates, by validity alone", 0, free))
    final = calls if not search.paid_choices else 1
    steps.append(Step("the final draw among the candidates, by utility", final, each))
    return steps


def exact(number: object, what: str = "epsilon") -> Fraction:
    """Read a positive number exactly as it was written: 0.2 is one fifth.

    >>> exact(0.2), exact("1e-3"), exact("1/3")
    (Fraction(1, 5), Fraction(1, 1000), Fraction(1, 3))
    """
    if isinstance(number, Fraction):
        fraction = number
    else:
        # One reader for all spellings. It bounds the exponent: 1e999999999 is a trap, not a number.
        text = str(number).strip() if not isinstance(number, bool) else ""
        fraction = Fraction(text) if _NUMBER.fullmatch(text) else Fraction(0)
    if fraction <= 0:
        raise ParameterError(f"{what} must be a positive, finite number such as 0.2")
    return fraction


_NUMBER = re.compile(
    r"\+?(\d{1,99}/0{0,9}[1-9]\d{0,99}|(\d{1,99}\.?\d{0,99}|\.\d{1,99})([eE][-+]?\d{1,3})?)",
    re.ASCII,
)


class Budget:
    """A ceiling on the epsilon that releases may spend together, kept in memory.

    >>> budget = Budget(0.5)
    >>> budget.spend(exact(0.2))
    >>> plain(budget.left)
    '0.3'
    """

    def __init__(self, total: float | str | Decimal | Fraction) -> None:
        self.total = exact(total, "the budget's total")
        self.spent = Fraction(0)
        self._lock = threading.Lock()

    @property
    def left(self) -> Fraction:
        """What can still be spent."""
        return self.total - self.spent

    def spend(self, epsilon: Fraction) -> None:
        """Spend, or refuse and change nothing."""
        if epsilon <= 0:
            raise ParameterError("what is spent must be positive")
        with self._lock:
            if epsilon > self.left:
                raise BudgetExceeded(asked=epsilon, left=self.left)
            self.spent += epsilon

    def __repr__(self) -> str:
        return f"<Budget: epsilon {plain(self.left)} left of {plain(self.total)}>"
