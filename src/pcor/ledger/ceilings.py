"""What may be spent: budgets and allotments are set, raised, lowered and closed, by the owner.

Public: everything. Each change is one transaction of the caller's, which holds the head of the
chain: the account, the refusals that it makes obsolete, and the entry that says so.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from sqlalchemy import Connection

from pcor.errors import LedgerError, ParameterError
from pcor.ledger.accounts import (
    EVERYBODY,
    ZERO,
    Account,
    Status,
    read_account,
    read_accounts,
    write_account,
)
from pcor.ledger.charges import read_budget
from pcor.ledger.entries import Head, append
from pcor.ledger.refusals import forget_refusals
from pcor.releasing.amounts import DAMAGED
from pcor.releasing.payment import OWNER


def set_ceiling(
    connection: Connection,
    head: Head,
    owner: tuple[str, str],
    ceilings: tuple[Fraction, Fraction, Fraction | None],
    *,
    at: str,
) -> Status:
    """Set the ceilings of an account, which is made where there is none.

    Args:
        connection: a transaction that holds the head.
        head: where the chain of entries ends.
        owner: the dataset, and the analyst or ``EVERYBODY``.
        ceilings: epsilon, delta, and the most that one release may cost.
        at: when this is.
    """
    (dataset, analyst), (epsilon, delta, cap) = owner, ceilings
    if analyst != EVERYBODY:
        read_budget(connection, dataset)
    account = read_account(connection, *owner) or _new_account(connection, *owner)
    write_account(connection, account.with_ceiling(epsilon, delta, cap))
    forget_refusals(connection, dataset, None if analyst == EVERYBODY else analyst)
    body = {"epsilon": str(epsilon), "delta": str(delta)}
    if analyst == EVERYBODY:
        body |= {} if cap is None else {"cap": str(cap)}
    kind = "budget" if analyst == EVERYBODY else "allotment"
    append(connection, head, kind, body, at=at, dataset=dataset, analyst=analyst)
    return read_status(connection, dataset)


def close_account(
    connection: Connection, head: Head, dataset: str, analyst: str, *, at: str
) -> Status:
    """Close an allotment; one that is closed already stays so, and nothing is written.

    Raises:
        ParameterError: there is no such budget or allotment.
    """
    read_budget(connection, dataset)
    account = read_account(connection, dataset, analyst)
    if account is None or analyst == OWNER:
        raise ParameterError(
            f"{analyst!r} has no allotment in dataset {dataset!r}; there is nothing to close"
        )
    if not account.closed:
        write_account(connection, replace(account, closed=True))
        forget_refusals(connection, dataset, analyst)
        body = {"spent": str(account.spent)}
        append(connection, head, "closing", body, at=at, dataset=dataset, analyst=analyst)
    return read_status(connection, dataset)


def read_status(connection: Connection, dataset: str) -> Status:
    """Return the books of a dataset.

    Raises:
        ParameterError: the dataset has no budget.
    """
    read_budget(connection, dataset)
    budget, *allotments = read_accounts(connection, dataset)
    return Status(budget, tuple(allotments))


def _new_account(connection: Connection, dataset: str, analyst: str) -> Account:
    """Return an account with nothing spent, unless there is one that its index hides."""
    if any((a.dataset, a.analyst) == (dataset, analyst) for a in read_accounts(connection)):
        raise LedgerError(DAMAGED)
    return Account(dataset, analyst, ZERO)
