"""Who pays: a ledger, or a budget of this process.

Public: everything here. Both have the same four steps in the same order: look for an answer,
charge, draw, store. A ledger remembers across processes. A budget of this process remembers
nothing, so answers last only in the results file.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any, Protocol

from pcor.errors import PcorError, SourceError, Unfinished, paid_words
from pcor.releasing.answers import write_answer
from pcor.releasing.certificate import Release
from pcor.releasing.request import Request
from pcor.releasing.run import Purse

Answer = Mapping[str, Any]

# Who asks where nobody is named. Spends from the dataset's budget without an allotment.
OWNER = "owner"


@dataclass(frozen=True)
class Claim:
    """A request that is paid for.

    Attributes:
        request: what was asked.
        charge: the number of the entry that charged it.
        state: "new": charged now, to be drawn; "unfinished": charged before and never answered, to
            be drawn; "done": answered.
        answer: what is stored, where it is done.
        lease: says that whoever holds this claim draws.
    """

    request: Request
    charge: int
    state: str
    answer: Mapping[str, Any] | None = None
    lease: str = field(default="", repr=False)


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
