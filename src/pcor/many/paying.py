"""Who pays: a ledger, or a budget of this process.

Public: everything here. Both have the same four steps in the same order: look for an answer,
charge, draw, store. A ledger remembers across processes. A budget of this process remembers
nothing, so answers last only in the results file.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol

from pcor.certificate import Release
from pcor.errors import PcorError, SourceError, Unfinished, paid_words
from pcor.ledger import Claim, Request
from pcor.ledger.answers import write_answer
from pcor.release import Purse

Answer = Mapping[str, Any]


class Payer(Protocol):
    """Whatever charges requests and keeps answers; a ``Ledger`` is one."""

    def answered(self, request: Request) -> Claim | None:
        """Return the stored answer of a request, if there is one. Free."""
        ...

    def charge(self, request: Request) -> Claim:
        """Charge a request, or refuse and change nothing."""
        ...

    def drawing(self, claim: Claim) -> AbstractContextManager[None]:
        """Keep others from drawing for a claim meanwhile."""
        ...

    def store(self, claim: Claim, outcome: Release | PcorError) -> Answer:
        """Store the answer of a claim; return what counts from now on."""
        ...

    def unfinished(self, error: SourceError) -> Unfinished:
        """Return what is said of a claim whose draw a failing source has ended."""
        ...


class Pocket:
    """Pays from a budget of this process, or without limit where there is none."""

    def __init__(self, budget: Purse | None) -> None:
        self._budget = budget

    def answered(self, request: Request) -> Claim | None:
        """Know of no answer."""
        del request
        return None

    def charge(self, request: Request) -> Claim:
        """Spend what the request costs."""
        if self._budget is not None:
            self._budget.spend(request.epsilon, request.delta)
        return Claim(request, 0, "new")

    def drawing(self, claim: Claim) -> AbstractContextManager[None]:
        """Keep nobody away: nobody else knows of this claim."""
        del claim
        return nullcontext()

    def store(self, claim: Claim, outcome: Release | PcorError) -> Answer:
        """Return the answer; the results file stores it."""
        del claim
        return write_answer(outcome, paid=self._budget is not None)

    def unfinished(self, error: SourceError) -> Unfinished:
        """Say that a budget of this process stays charged: it knows its claims no more."""
        return Unfinished(str(error) if self._budget is None else paid_words(error))
