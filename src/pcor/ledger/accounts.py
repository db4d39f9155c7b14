"""Accounts: what may be spent on a dataset, and by whom, and what was.

Public: everything here. A dataset's budget is a ceiling on the sum of all epsilons charged to it,
whatever their guarantee; an analyst's allotment is a second ceiling inside it. The two guarantees
are kept apart in the books, because they promise different things: docs/proofs/ledger.md says what
either total bounds.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from sqlalchemy import Connection, Select, bindparam, delete, insert, select

from pcor.errors import BudgetExceeded, CapExceeded, LedgerError, ParameterError, plain
from pcor.ledger import tables
from pcor.public.guarantee import OCDP, PureDP
from pcor.releasing.amounts import DAMAGED, read_amount
from pcor.releasing.payment import OWNER
from pcor.releasing.request import Request

ZERO = Fraction(0)

# What an account always has, written as texts.
AMOUNTS = ("epsilon", "delta", "spent_ocdp", "spent_dp", "spent_delta")

# Stands for the dataset itself where an account is not an analyst's.
EVERYBODY = ""

_COLUMNS = tables.accounts.c
_PLACE = tuple(_COLUMNS[name] == bindparam(name) for name in ("dataset", "analyst"))
_ONE = select(tables.accounts).where(*_PLACE)
_FORGET = delete(tables.accounts).where(*_PLACE)
_NEW = insert(tables.accounts)


@dataclass(frozen=True)
class Account:
    """A ceiling and what was spent under it.

    Attributes:
        dataset: whose people.
        analyst: whose allotment; empty for the budget of the dataset.
        epsilon: the ceiling on all epsilons together.
        delta: the ceiling on all deltas together.
        cap: the most that one release may cost, if there is such a limit.
        spent_ocdp: the epsilons of releases with the relaxed guarantee.
        spent_dp: the epsilons of releases that protect everyone but the record.
        spent_delta: all deltas.
        closed: whether it was taken back; then it pays for nothing until it is given again.
    """

    dataset: str
    analyst: str
    epsilon: Fraction
    delta: Fraction = ZERO
    cap: Fraction | None = None
    spent_ocdp: Fraction = ZERO
    spent_dp: Fraction = ZERO
    spent_delta: Fraction = ZERO
    closed: bool = False

    @property
    def spent(self) -> Fraction:
        """All epsilons together."""
        return self.spent_ocdp + self.spent_dp

    @property
    def left(self) -> Fraction:
        """What can still be spent."""
        return self.epsilon - self.spent

    @property
    def delta_left(self) -> Fraction:
        """What can still be spent of delta."""
        return self.delta - self.spent_delta

    @property
    def name(self) -> str:
        """Whose account it is, in words."""
        if self.analyst == EVERYBODY:
            return f"the budget of dataset {self.dataset!r}"
        return f"the allotment of {self.analyst!r} in dataset {self.dataset!r}"

    def with_ceiling(self, epsilon: Fraction, delta: Fraction, cap: Fraction | None) -> Account:
        """Return the account with another ceiling, which must cover what was spent; it is open."""
        for what, wanted, spent in (
            ("epsilon", epsilon, self.spent),
            ("delta", delta, self.spent_delta),
        ):
            if wanted < spent:
                raise ParameterError(
                    f"{self.name} cannot be lowered to {what} {plain(wanted)}: {plain(spent)} is "
                    "spent already, and what is spent cannot be taken back"
                )
        return replace(self, epsilon=epsilon, delta=delta, cap=cap, closed=False)

    def check(self, request: Request) -> None:
        """Refuse what the account cannot pay."""
        if self.cap is not None and request.epsilon > self.cap:
            raise CapExceeded(asked=request.epsilon, cap=self.cap, of=f"dataset {self.dataset!r}")
        if request.epsilon > self.left:
            raise BudgetExceeded(asked=request.epsilon, left=self.left, of=self.name)
        if request.delta > self.delta_left:
            raise BudgetExceeded(
                asked=request.delta, left=self.delta_left, what="delta", of=self.name
            )

    def charged(self, epsilon: Fraction, delta: Fraction, guarantee: str) -> Account:
        """Return the account after a charge."""
        pure = guarantee == PureDP.name
        return replace(
            self,
            spent_ocdp=self.spent_ocdp + (ZERO if pure else epsilon),
            spent_dp=self.spent_dp + (epsilon if pure else ZERO),
            spent_delta=self.spent_delta + delta,
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the account in exact numbers, as texts."""
        return {
            **({} if self.analyst == EVERYBODY else {"analyst": self.analyst}),
            "epsilon": plain(self.epsilon),
            "spent": plain(self.spent),
            "spent_ocdp": plain(self.spent_ocdp),
            "spent_dp": plain(self.spent_dp),
            "left": plain(self.left),
            "delta": plain(self.delta),
            "delta_spent": plain(self.spent_delta),
            "delta_left": plain(self.delta_left),
            **({} if self.analyst == EVERYBODY else {"closed": self.closed}),
        }

    def to_row(self) -> dict[str, Any]:
        """Return the account as it stands in the database."""
        amounts = {name: str(getattr(self, name)) for name in AMOUNTS}
        cap = None if self.cap is None else str(self.cap)
        return vars(self) | amounts | {"cap": cap, "closed": int(self.closed)}


@dataclass(frozen=True)
class Status:
    """The books of one dataset.

    Attributes:
        budget: the ceiling for everybody and what was spent under it.
        allotments: the ceilings of analysts inside it, by name.
    """

    budget: Account
    allotments: tuple[Account, ...]

    @property
    def dataset(self) -> str:
        """Whose people."""
        return self.budget.dataset

    @property
    def total(self) -> Fraction:
        """The dataset's budget."""
        return self.budget.epsilon

    @property
    def spent(self) -> dict[str, Fraction]:
        """What was spent, by guarantee."""
        return {OCDP.name: self.budget.spent_ocdp, PureDP.name: self.budget.spent_dp}

    @property
    def left(self) -> Fraction:
        """What can still be spent by all together."""
        return self.budget.left

    @property
    def cap(self) -> Fraction | None:
        """The most that one release may cost."""
        return self.budget.cap

    def to_dict(self) -> dict[str, Any]:
        """Return the books in exact numbers, as texts."""
        return {
            "dataset": self.dataset,
            **self.budget.to_dict(),
            "cap": None if self.cap is None else plain(self.cap),
            "allotments": [account.to_dict() for account in self.allotments],
        }

    def __str__(self) -> str:
        slack = ""
        if self.budget.delta:
            slack = f"; delta {plain(self.budget.delta_left)} left of {plain(self.budget.delta)}"
        cap = "" if self.cap is None else f"; at most {plain(self.cap)} for one release"
        lines = [
            f"{self.dataset}: epsilon {plain(self.left)} left of {plain(self.total)}{slack}{cap}",
            f"  spent {plain(self.budget.spent_ocdp)} on releases with the relaxed guarantee (OCDP)"
            f" and {plain(self.budget.spent_dp)} on releases that protect everyone but the record",
        ]
        for account in self.allotments:
            if account.closed:
                spent = plain(account.spent)
                lines.append(f"  {account.analyst}: closed; epsilon {spent} was spent")
                continue
            lines.append(
                f"  {account.analyst}: epsilon {plain(account.left)} left of "
                f"{plain(account.epsilon)}"
                + (f"; delta {plain(account.delta_left)} left" if account.delta else "")
            )
        return "\n".join(lines)


def payers(dataset: str, analyst: str) -> list[tuple[str, str]]:
    """Return which accounts pay for an analyst's release, the dataset's first."""
    return (
        [(dataset, EVERYBODY)] if analyst == OWNER else [(dataset, EVERYBODY), (dataset, analyst)]
    )


def read_account(connection: Connection, dataset: str, analyst: str = EVERYBODY) -> Account | None:
    """Return one account, if there is one."""
    row = connection.execute(_ONE, {"dataset": dataset, "analyst": analyst}).one_or_none()
    return None if row is None else _account(row._mapping)


def read_open(connection: Connection, dataset: str, analyst: str) -> Account | None:
    """Return the account of an analyst who may spend from it, if there is one."""
    account = read_account(connection, dataset, analyst)
    return None if account is None or account.closed else account


def read_accounts(connection: Connection, dataset: str | None = None) -> Iterator[Account]:
    """Yield the accounts by dataset and analyst, the dataset's own first."""
    columns = tables.accounts.c
    chosen = select(tables.accounts).order_by(columns.dataset, columns.analyst)
    if dataset is not None:
        chosen = chosen.where(columns.dataset == dataset)
    for row in connection.execute(chosen):
        yield _account(row._mapping)


def opened_to(analyst: str) -> Select[tuple[str]]:
    """Return the query for the datasets that an analyst has an open allotment in."""
    columns = tables.accounts.c
    return select(columns.dataset).where(columns.analyst == analyst, columns.closed == 0)


def write_account(connection: Connection, account: Account) -> None:
    """Put an account in the place of the old one."""
    place = {"dataset": account.dataset, "analyst": account.analyst}
    connection.execute(_FORGET, place)
    connection.execute(_NEW, account.to_row())


def _account(row: Any) -> Account:
    amounts = {name: read_amount(row[name]) for name in AMOUNTS}
    account = Account(
        row["dataset"],
        row["analyst"],
        cap=None if row["cap"] is None else read_amount(row["cap"]),
        closed=row["closed"] == 1,
        **amounts,
    )
    if account.left < 0 or account.delta_left < 0 or row["closed"] not in (0, 1):
        raise LedgerError(DAMAGED)
    return account
