"""What happens inside one transaction: a request is charged, refused or found; an answer is stored.

Public: everything here. Each function is called with the ledger's lock held (``lock_head``), so
what it reads stays true until it has written. Nothing here draws.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from sqlalchemy import Connection, bindparam, insert, literal_column, select, update

from pcor.errors import (
    BudgetExceeded,
    KeyConflict,
    LedgerError,
    NoAllotment,
    ParameterError,
    StillRunning,
)
from pcor.ledger import tables
from pcor.ledger.accounts import (
    EVERYBODY,
    Account,
    payers,
    read_account,
    read_open,
    write_account,
)
from pcor.ledger.entries import Head, append, check_successor, read_entry
from pcor.ledger.leases import LEASE, end_lease, is_running, take_lease
from pcor.ledger.refusals import MOST, count_refusal, forget_refusals, is_written
from pcor.releasing.amounts import DAMAGED
from pcor.releasing.payment import Claim
from pcor.releasing.request import Request

_ENTRIES, _REQUESTS = tables.entries.c, tables.requests.c
_NAMES = ("dataset", "analyst", "key")
_KNOWN = select(tables.requests).where(*(_REQUESTS[name] == bindparam(name) for name in _NAMES))
_NAMED = select(_ENTRIES.number).where(*(_ENTRIES[name] == bindparam(name) for name in _NAMES))
# The kind is spelled out, or SQLite could not know that the index of charges holds all of them.
_CHARGED = _NAMED.where(_ENTRIES.kind == literal_column("'charge'")).limit(1)
# No index is needed: entries before the charge are passed over.
_ANSWERED = _NAMED.where(_ENTRIES.number > bindparam("after"), _ENTRIES.kind == "answer").limit(1)
_NEW = insert(tables.requests)
_ANSWER = update(tables.requests).where(_REQUESTS.charge == bindparam("of_charge"))


def find_answer(connection: Connection, request: Request) -> Claim | None:
    """Return the claim of a request that is answered; refuse a key of another request."""
    known = _known(connection, request)
    if known is None or known.answer is None:
        return None
    return Claim(request, known.charge, "done", _answer(connection, request, known.answer))


def _is_answered(connection: Connection, charge: int, request: Request) -> bool:
    """Whether the entries hold an answer, whatever the table of requests says.

    Asked only where a draw would be made again.
    """
    names = _names(request) | {"after": charge}
    return connection.execute(_ANSWERED, names).one_or_none() is not None


def find_charge(connection: Connection, request: Request) -> bool:
    """Tell whether a request is in the books; refuse a key of another request."""
    return _known(connection, request) is not None


def standing_of(connection: Connection, request: Request, now: int) -> str:
    """Return "new", or how a request that was charged stands: "running", "unfinished", "done"."""
    known = _known(connection, request)
    if known is None or known.answer is not None:
        return "new" if known is None else "done"
    return "running" if is_running(connection, known.charge, now) else "unfinished"


def claim_request(
    connection: Connection,
    head: Head,
    request: Request,
    *,
    now: int,
    at: str,
    admit: Callable[[Connection], None] | None = None,
) -> Claim | BudgetExceeded:
    """Find a request or charge it; return the refusal where it cannot be paid.

    ``admit`` is called before anything new is charged; what it raises leaves no trace.
    """
    known = _known(connection, request)
    if known is not None and known.answer is not None:
        return Claim(request, known.charge, "done", _answer(connection, request, known.answer))
    if known is None:
        charge, state = head.entries + 1, "new"
        if admit is not None:
            admit(connection)
        refusal = _pay(connection, head, request, at)
        if refusal is not None:
            return refusal
    else:
        charge, state = known.charge, "unfinished"
        if is_running(connection, charge, now):
            raise StillRunning(
                "this request is being answered at this moment; ask again, with the same key, in a "
                "while. Nothing more is charged for it"
            )
        if _is_answered(connection, charge, request):
            raise LedgerError(DAMAGED)
    lease = take_lease(connection, charge, until=now + LEASE)
    return Claim(request, charge, state, lease=lease)


def store_answer(
    connection: Connection, head: Head, claim: Claim, answer: Mapping[str, Any]
) -> Mapping[str, Any]:
    """Store an answer unless there is one; return the one that is stored."""
    request = claim.request
    known = _known(connection, request)
    if known is None or known.charge != claim.charge:
        raise LedgerError("this claim is not of this ledger; nothing was stored")
    if known.answer is not None:
        return _answer(connection, request, known.answer)
    # No time: when an answer was ready depends on private rows.
    body = {"charge": claim.charge, "answer": answer}
    number = append(connection, head, "answer", body, at="", **_names(request)).entries
    connection.execute(_ANSWER, {"of_charge": claim.charge, "answer": number})
    end_lease(connection, claim.charge)
    return _answer(connection, request, number)


def refuse_request(
    connection: Connection, head: Head, request: Request, *, at: str
) -> BudgetExceeded | None:
    """Write down and return the refusal of a request that cannot be paid, if it is one."""
    refusal = find_refusal(connection, request)
    if refusal is not None:
        said: dict[str, Any] = {"fingerprint": request.fingerprint, "refusal": str(refusal)}
        count = count_refusal(connection, request.dataset, request.analyst)
        if is_written(count):
            said |= {"refused": count} if count > MOST else {}
            append(connection, head, "refusal", said, at=at, **_names(request))
    return refusal


def find_refusal(connection: Connection, request: Request) -> BudgetExceeded | None:
    """Return the refusal of a request that was not charged and cannot be paid, if it is one."""
    try:
        # An analyst's own allotment refuses first: only who could pay from it hears what is left of
        # the dataset's budget, which tells what others have spent.
        for account in reversed(_paying(connection, request)):
            account.check(request)
    except BudgetExceeded as refusal:
        return refusal
    return None


def read_budget(connection: Connection, dataset: str) -> Account:
    """Return the account of a dataset, or say that its owner has to open one."""
    account = read_account(connection, dataset)
    if account is None:
        raise ParameterError(
            f"the ledger has no budget for dataset {dataset!r}; its owner sets one first: "
            "`pcor ledger budget`, or set_budget in Python. If the budget has another name, give "
            "that"
        )
    return account


def _pay(connection: Connection, head: Head, request: Request, at: str) -> BudgetExceeded | None:
    """Charge every account that pays, or write down the refusal and return it."""
    refusal = refuse_request(connection, head, request, at=at)
    if refusal is not None:
        return refusal
    for account in _paying(connection, request):
        charged = account.charged(request.epsilon, request.delta, request.guarantee)
        write_account(connection, charged)
    forget_refusals(connection, request.dataset, request.analyst)
    body = {
        "epsilon": str(request.epsilon),
        "delta": str(request.delta),
        "guarantee": request.guarantee,
        "request": request.to_dict(),
    }
    charge = append(connection, head, "charge", body, at=at, **_names(request)).entries
    row = _names(request) | {"fingerprint": request.fingerprint, "charge": charge, "answer": None}
    connection.execute(_NEW, row)
    return None


def _paying(connection: Connection, request: Request) -> list[Account]:
    """Return all accounts that have to pay."""
    places = payers(request.dataset, request.analyst)
    return [_payer(connection, request, analyst) for _, analyst in places]


def _payer(connection: Connection, request: Request, analyst: str) -> Account:
    """Return an account that has to pay."""
    if analyst == EVERYBODY:
        return read_budget(connection, request.dataset)
    found = read_open(connection, request.dataset, analyst)
    if found is None:
        raise NoAllotment(
            asked=request.epsilon, delta=request.delta, analyst=analyst, dataset=request.dataset
        )
    return found


def _names(request: Request) -> dict[str, str]:
    return {"dataset": request.dataset, "analyst": request.analyst, "key": request.key}


def _known(connection: Connection, request: Request) -> Any:
    """Return the row of a request that was charged before; refuse a key of another one."""
    row = connection.execute(_KNOWN, _names(request)).one_or_none()
    if row is None and _is_hidden(connection, request):
        raise LedgerError(DAMAGED)
    if row is not None and row.fingerprint != request.fingerprint:
        raise KeyConflict(
            f"the key {request.key!r} stands for another request; repeat that one unchanged, or "
            "take a new key. Nothing was spent"
        )
    return row


def _is_hidden(connection: Connection, request: Request) -> bool:
    """Whether a request was charged all the same: found among the entries, by their own index."""
    return connection.execute(_CHARGED, _names(request)).first() is not None


def _answer(connection: Connection, request: Request, number: int) -> Mapping[str, Any]:
    """Return a stored answer; one that was tampered with is not given out."""
    entry = read_entry(connection, number)
    names = {"dataset": entry.dataset, "analyst": entry.analyst, "key": entry.key}
    if entry.kind != "answer" or names != _names(request):
        raise LedgerError(DAMAGED)
    check_successor(connection, entry)
    answer: Mapping[str, Any] = entry.content["answer"]
    return answer
