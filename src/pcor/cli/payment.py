"""What the command line says about a ledger that pays: which dataset, what it cost, what is left.

Public: all of it. Whoever names a ledger on the command line can open it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from pcor.cli.output import tell
from pcor.errors import LedgerError, ParameterError, PcorError, did_you_mean, plain

if TYPE_CHECKING:
    from pcor.ledger import Ledger
    from pcor.releasing.plan import Plan


FREE = "charged before; free (from the books; the table is not compared: --version names a new one)"
GOES_ON = "charged already; the same command again goes on where it was, and is charged once"
ON_NO_BOOKS = "on no books: this epsilon is not added up anywhere; --ledger keeps the sum"


def check_dataset(books: Ledger, given: str | None, of_schema: str) -> str:
    """Return whose budget pays, or refuse a dataset without one and name those that have one."""
    dataset = of_schema if given is None else given
    known = books.datasets()
    if dataset in known:
        return dataset
    whence = "" if given is not None else " (the name in the schema; --dataset names another)"
    there = f"it has budgets for: {', '.join(known)}" if known else "it has no budget at all yet"
    raise ParameterError(
        f"the ledger has no budget for dataset {dataset!r}{whence}{did_you_mean(dataset, known)}; "
        f"{there}. `pcor ledger budget LEDGER {dataset} --epsilon 2` would set one. Nothing was "
        "spent"
    )


@contextmanager
def told(books: Ledger, plan: Plan, record: str, names: Mapping[str, str]) -> Iterator[None]:
    """Say after a release whether it was paid for now, and what is left; also of a broken one."""
    # These bring a database library along.
    from pcor.releasing.payment import OWNER
    from pcor.releasing.request import Request

    asked: dict[str, Any] = {"analyst": OWNER, **names}
    request = Request.of(plan, record, **asked)
    # Answered once, or charged once and, after a crash, answered only now: it is free either way.
    before = books.charged(request)
    try:
        yield
    except KeyboardInterrupt:
        with suppress(LedgerError):
            if books.charged(request):
                tell(GOES_ON)
        raise
    except LedgerError:
        raise
    except PcorError:
        if books.charged(request):  # an answer too, and paid for
            _tell(books, plan, names, before=before)
        raise
    _tell(books, plan, names, before=before)


def _tell(books: Ledger, plan: Plan, names: Mapping[str, str], *, before: bool) -> None:
    delta = f" and delta {plain(plan.bill.delta)}" if plan.bill.delta else ""
    cost = f"charged epsilon {plain(plan.bill.epsilon)}{delta}"
    dataset, analyst = names["dataset"], names.get("analyst")
    whose = f"dataset {dataset!r}" if analyst is None else f"{analyst!r} of dataset {dataset!r}"
    left = plain(books.left(dataset, analyst))
    tell(f"{FREE if before else cost}. Left for {whose}: epsilon {left}")
