"""Payment: look for an answer, read, charge, draw, store, answer; in this order, whoever pays.

Public: requests, claims and answers. Private: what is read and drawn in between. The order is the
point: what is wrong with a source is refused while that is free, the charge comes before anything
is drawn, and the answer is stored before anybody sees it (docs/proofs/ledger.md).
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from typing import Protocol, TypeVar, runtime_checkable

from pcor.errors import ParameterError, SourceError, Unfinished
from pcor.releasing.answers import Answer, Outcome, answer_from, read_answer
from pcor.releasing.certificate import Receipt, Release
from pcor.releasing.plan import Plan
from pcor.releasing.request import Request

# Who asks where nobody is named. Spends from the dataset's budget without an allotment.
OWNER = "owner"

Reading = TypeVar("Reading")


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
    answer: Answer | None = None
    lease: str = field(default="", repr=False)


@runtime_checkable
class Payer(Protocol):
    """Whatever charges requests: ``pcor.Budget`` in memory, ``pcor.Ledger`` in books."""

    @property
    def remembers(self) -> bool:
        """Whether answers are kept, so that asking again is free."""
        ...

    def request(self, plan: Plan, record: int | str, *, private: bool) -> Request:
        """Return what is asked, as it would be looked up."""
        ...

    def answered(self, request: Request) -> Claim | None:
        """Return the stored answer of a request, if there is one. Free."""
        ...

    def charge(self, request: Request) -> Claim:
        """Charge a request, or refuse and change nothing."""
        ...

    def drawing(self, claim: Claim) -> AbstractContextManager[None]:
        """Keep others from drawing for a claim meanwhile."""
        ...

    def store(self, claim: Claim, outcome: Outcome) -> Answer:
        """Store the answer of a claim; return what counts from now on."""
        ...

    def unfinished(self, error: SourceError) -> Unfinished:
        """Return what is said of a claim whose draw a failing source has ended."""
        ...

    def receipt(self, claim: Claim) -> Receipt | None:
        """Return where a claim is in the books, if there are any."""
        ...


def check_payer(payer: object, what: str = "budget") -> Payer:
    """Return what pays, or raise if this is not a payer."""
    if not isinstance(payer, Payer):
        raise ParameterError(
            f"{what} must be a pcor.Budget, such as pcor.Budget(1), or a pcor.Ledger"
        )
    return payer


def pay_and_draw(
    payer: Payer,
    request: Request,
    plan: Plan,
    read: Callable[[], Reading],
    draw: Callable[[Reading], Release],
) -> Release:
    """Return the answer of a request, which is paid for once.

    Args:
        payer: what is charged, and may remember the answer.
        request: what is asked.
        plan: how it is drawn.
        read: reads what the draw needs of the rows. Not called where the answer is stored.
        draw: draws from what was read. Every error that it ends in is an answer.

    Raises:
        BudgetExceeded: the payer refuses; nothing was spent.
        Unfinished: the source failed after the charge.
        PcorError: what ``read`` raises, before the charge; or the stored answer is an error.
    """
    claim = payer.answered(request)
    if claim is None:
        rows = read()
        claim = payer.charge(request)
        if claim.answer is None:
            claim = settle(payer, claim, lambda: answer_from(lambda: draw(rows)))
    return replace(read_answer(claim.answer, plan), receipt=payer.receipt(claim))


def settle(
    payer: Payer,
    claim: Claim,
    draw: Callable[[], Outcome],
    store: Callable[[Claim, Outcome], Answer] | None = None,
) -> Claim:
    """Draw for a claim, while others are kept from it, and store; return it with its answer.

    A source that fails raises ``Unfinished``, and the claim stays open.

    Args:
        payer: who was charged.
        claim: for what.
        draw: returns a release, or the error that is the answer.
        store: by default the payer's own.
    """
    with payer.drawing(claim):
        try:
            outcome = draw()
        except SourceError as error:
            raise payer.unfinished(error) from None
        answer = (store or payer.store)(claim, outcome)
    return replace(claim, state="done", answer=answer)
