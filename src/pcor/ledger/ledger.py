"""Ledger: check, charge, draw, store, answer; once for each request, whatever happens in between.

Private: the table, which passes through ``Ledger.release`` and is kept from the books. Public: all
that is written. The order of the steps is the point: the charge is on the disk before anything is
drawn, the answer before anybody sees it. So no answer is without a charge, a crash loses no
charge, and what was answered once is never drawn again (docs/proofs/ledger.md).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import IO, Any

from sqlalchemy import Connection

from pcor.errors import (
    Amount,
    BudgetExceeded,
    LedgerError,
    ParameterError,
    PcorError,
    SourceError,
    Unfinished,
    check_whole,
)
from pcor.ledger.accounts import (
    EVERYBODY,
    ZERO,
    Status,
    payers,
    read_accounts,
)
from pcor.ledger.ceilings import close_account, read_status, set_ceiling
from pcor.ledger.charges import (
    claim_request,
    find_answer,
    find_charge,
    find_refusal,
    refuse_request,
    standing_of,
    store_answer,
)
from pcor.ledger.database import NO_LEDGER, LedgerDatabase
from pcor.ledger.entries import (
    Entry,
    Head,
    in_lines,
    lock_head,
    read_batches,
    read_entry,
    read_head,
)
from pcor.ledger.inclusion import Inclusion, find_inclusion
from pcor.ledger.leases import forget_lease, keeping
from pcor.ledger.refusals import MOST, read_refusals
from pcor.ledger.trust import Trust
from pcor.ledger.upgrade import LEDGER
from pcor.ledger.verification import Totals, Verification, check_books
from pcor.mechanism.randomness import RandomSource
from pcor.mechanism.selection import SystemRandomSource
from pcor.public.schema import UNNAMED
from pcor.releasing.amounts import amount
from pcor.releasing.answers import write_answer
from pcor.releasing.certificate import Receipt, Release
from pcor.releasing.payment import OWNER, Claim
from pcor.releasing.plan import Plan
from pcor.releasing.request import Request, check_name
from pcor.releasing.run import release_paid
from pcor.releasing.settings import Settings
from pcor.rows.table import Table, check_table
from pcor.support.files import write_whole


class Ledger:
    """A budget that outlives the process, with every answer that was paid from it.

    Any number of threads and processes may use the same ledger at the same time.

    Args:
        url: the path of a SQLite file, or a sqlite:/// or postgresql:// URL.
        create: make a new ledger where there is none; otherwise that is refused.
        clock: seconds since 1970; for tests.
        patience: seconds to wait while others write; a minute if it is left out.
        keep: keep a file open between transactions; for a process that serves.

    Raises:
        ParameterError: this is not the path or URL of a ledger.
        LedgerError: it cannot be opened, is damaged, or is of a newer version.
    """

    def __init__(
        self,
        url: str | Path,
        *,
        create: bool = True,
        clock: Callable[[], float] = time.time,
        patience: float | None = None,
        keep: bool = False,
    ) -> None:
        self.database = LedgerDatabase(url, create=create, patience=patience, keep=keep)
        self._clock = clock
        self._trust = Trust()
        LEDGER.open(self.database, create=create)

    # -- budgets, for the owner --------------------------------------------------------------------

    def set_budget(
        self, dataset: str, epsilon: object, delta: object = None, cap: object = None
    ) -> Status:
        """Set what all releases about a dataset's people may spend together.

        It may be raised and lowered at any time, but not below what is spent. A new version of the
        file does not bring a new budget: the people are the same.

        Args:
            dataset: a name for the people.
            epsilon: the ceiling on the sum of all epsilons, whatever their guarantee.
            delta: the ceiling on the sum of all deltas; by default none may have one.
            cap: the most that one release may cost.

        Raises:
            ParameterError: an amount is not positive, or below what is spent.
        """
        most = None if cap is None else amount(cap, "cap")
        return self._set_ceiling(dataset, EVERYBODY, epsilon, delta, most)

    def allot(self, dataset: str, analyst: str, epsilon: object, delta: object = None) -> Status:
        """Set what an analyst, or a project, may spend of a dataset's budget.

        An allotment is a ceiling and keeps nothing aside: allotments may add up to more than the
        budget, and then who comes first is served. Without one an analyst can spend nothing. One
        that was closed is opened again, with what was spent of it.

        Raises:
            ParameterError: an amount is not positive, or below what is spent; or there is no
                budget.
        """
        if check_name("analyst", analyst) == OWNER:
            raise ParameterError(f"the analyst {OWNER!r} spends from the budget, without allotment")
        return self._set_ceiling(dataset, analyst, epsilon, delta, None)

    def close_allotment(self, dataset: str, analyst: str) -> Status:
        """Let an analyst, or a project, spend nothing more of a dataset's budget.

        What was spent stays spent: ``allot`` opens the allotment again, and counts on from there.
        What was paid for is still answered, and the same question again stays free. An allotment
        that is closed already stays so, and nothing is written.

        Raises:
            ParameterError: there is no such budget or allotment.
        """
        check_name("dataset", dataset)
        check_name("analyst", analyst)
        self._trust.begin(self.database)
        with self.database.writing() as connection:
            head = lock_head(connection)
            self._trust.check(connection, head, [(dataset, EVERYBODY), (dataset, analyst)])
            return close_account(connection, head, dataset, analyst, at=self._now())

    def _set_ceiling(
        self, dataset: str, analyst: str, epsilon: object, delta: object, cap: Fraction | None
    ) -> Status:
        check_name("dataset", dataset)
        wanted = amount(epsilon)
        slack = ZERO if delta is None else amount(delta, "delta")
        self._trust.begin(self.database)
        with self.database.writing() as connection:
            head = lock_head(connection)
            self._trust.check(connection, head, [(dataset, EVERYBODY), (dataset, analyst)])
            owner, ceilings = (dataset, analyst), (wanted, slack, cap)
            return set_ceiling(connection, head, owner, ceilings, at=self._now())

    def status(self, dataset: str) -> Status:
        """Return the books of a dataset.

        Raises:
            ParameterError: the dataset has no budget.
        """
        with self.database.reading() as connection:
            return read_status(connection, dataset)

    def datasets(self) -> list[str]:
        """Return the names of all datasets with a budget."""
        with self.database.reading() as connection:
            return [a.dataset for a in read_accounts(connection) if a.analyst == EVERYBODY]

    def left(self, dataset: str, analyst: str | None = None) -> Fraction:
        """Return what can still be spent: by all together, or by one analyst."""
        books = self.status(dataset)
        if analyst is None or analyst == OWNER:
            return Amount(books.left)
        own = [one.left for one in books.allotments if one.analyst == analyst and not one.closed]
        return Amount(min(books.left, *own) if own else ZERO)

    # -- releases ----------------------------------------------------------------------------------

    def release(
        self,
        table: Table,
        record: int | str,
        epsilon: object,
        *,
        dataset: str,
        analyst: str = OWNER,
        key: str | None = None,
        version: str | None = None,
        chooser: RandomSource | None = None,
        **options: Any,
    ) -> Release:
        """Release one context, paid from the ledger; the same request again is free.

        Privacy: that of ``pcor.release``. All answers of a dataset together are bounded by its
        budget, as docs/how-to/ledger.md says.

        Args:
            table: the rows.
            record: the record's key.
            epsilon: the total cost, charged exactly as written.
            dataset: whose budget pays: the people, not this version of the file.
            analyst: whose allotment pays.
            key: the request's name. By default its fingerprint, so that the same question has the
                same answer; another key buys another draw.
            version: which state of the table this is, where it changes over time: a name of your
                own, such as "2024-03". It is written down as it is: no hash of the rows, against
                which guesses at a row could be tried out.
            chooser: where random decisions come from; by default the operating system.
            **options: as for ``pcor.release``: detector, search, utility, guarantee, ...

        Raises:
            PcorError: what ``pcor.release`` raises.
            KeyConflict: the key stands for another request.
            StillRunning: the same request is being answered by another process.
            LedgerError: the ledger cannot be read or written, or is damaged.
        """
        check_table(table)
        return self.release_planned(
            Settings.of(**options).plan(table.schema, epsilon),
            table,
            record,
            dataset=dataset,
            analyst=analyst,
            key=key,
            version=version,
            chooser=chooser,
        )

    def release_planned(
        self,
        plan: Plan,
        table: Table,
        record: int | str,
        *,
        dataset: str,
        analyst: str = OWNER,
        key: str | None = None,
        version: str | None = None,
        chooser: RandomSource | None = None,
    ) -> Release:
        """Carry out a plan that was made for this table's schema; as ``release``, which plans."""
        chooser = SystemRandomSource() if chooser is None else chooser
        request = self.request(
            plan,
            record,
            private=chooser.private,
            dataset=dataset,
            analyst=analyst,
            key=key,
            version=version,
        )
        return release_paid(self, request, plan, table, record, chooser)

    remembers = True

    def request(
        self,
        plan: Plan,
        record: int | str,
        *,
        dataset: str | None = None,
        analyst: str = OWNER,
        key: str | None = None,
        version: str | None = None,
        private: bool = True,
    ) -> Request:
        """Return what is asked, as the books spell it; ``release`` documents the arguments.

        By default the dataset is the one that the schema names.
        """
        if dataset is None and plan.schema.name == UNNAMED:
            raise ParameterError(
                "a ledger pays for a dataset, and this schema has no name of its own: give it one, "
                "Schema(..., name=...) or name under [dataset]; or say which, "
                "ledger.release(..., dataset=...)"
            )
        return Request.of(
            plan,
            record,
            dataset=plan.schema.name if dataset is None else dataset,
            analyst=analyst,
            key=key,
            version=version,
            private=private,
        )

    def answered(self, request: Request) -> Claim | None:
        """Return the stored answer of a request, if there is one. Free.

        Raises:
            KeyConflict: the key stands for another request.
        """
        with self.database.reading() as connection:
            return find_answer(connection, request)

    def charged(self, request: Request) -> bool:
        """Tell whether a request was charged, answered or not: asking it again is free."""
        with self.database.reading() as connection:
            return find_charge(connection, request)

    def standing(self, request: Request) -> str:
        """Return how a request stands. Free; nothing is written, and nobody waits.

        It is "new"; or charged, and then "running" while somebody who is alive draws, "unfinished"
        where nobody does, "done" where there is an answer.
        """
        with self.database.reading() as connection:
            return standing_of(connection, request, int(self._clock()))

    def check(self, request: Request) -> None:
        """Raise the refusal that ``charge`` would raise, once this analyst has had many. Free.

        Who keeps anything of a request before its charge calls this first, so that what is refused
        again and again leaves nothing behind.
        """
        with self.database.reading() as connection:
            if read_refusals(connection, request.dataset, request.analyst) < MOST:
                return
            if find_charge(connection, request) or find_refusal(connection, request) is None:
                return
        with self.database.writing() as connection:
            head = lock_head(connection)
            if find_charge(connection, request):
                return  # somebody was faster
            refusal = refuse_request(connection, head, request, at=self._now())
        if refusal is not None:
            raise refusal

    def charge(self, request: Request, admit: Callable[[Connection], None] | None = None) -> Claim:
        """Charge a request, or find it charged already; in one transaction, alone.

        Whoever gets a claim that is not "done" must draw and ``store``, inside ``drawing``. A
        refusal costs nothing; it is written down too, or counted where there are many.

        Args:
            request: what is asked for.
            admit: may refuse, by raising, what was not charged before; it is called inside the
                transaction that would charge, so what it counts is true until then.

        Raises:
            BudgetExceeded: an account cannot pay; nothing was spent.
            KeyConflict: the key stands for another request.
            StillRunning: the same request is being answered by another process.
            LedgerError: the ledger cannot be written, or is damaged.
        """
        claim = self.charge_noted(request, lambda _: True, admit)
        assert claim is not None  # noqa: S101 (that note says to charge)
        return claim

    def charge_noted(
        self,
        request: Request,
        note: Callable[[Connection], bool],
        admit: Callable[[Connection], None] | None = None,
    ) -> Claim | None:
        """Charge as ``charge`` does, together with a note of the caller's.

        Args:
            request: what is asked for.
            note: is called first in the transaction. What it writes is kept together with the
                charge or its written refusal, and if anything else raises, nothing is. Where it
                returns False nothing is charged.
            admit: as for ``charge``.
        """
        made: Claim | BudgetExceeded | None = None
        self._trust.begin(self.database)
        try:
            with self.database.writing() as connection:
                head = lock_head(connection)
                if not note(connection):
                    return None
                self._trust.check(connection, head, payers(request.dataset, request.analyst))
                now = int(self._clock())
                made = claim_request(
                    connection, head, request, now=now, at=self._now(), admit=admit
                )
        except BaseException:
            if isinstance(made, Claim):
                forget_lease(made.lease)  # it may be written or not; this process does not draw
            raise
        if isinstance(made, BudgetExceeded):
            raise made
        return made

    def store(
        self,
        claim: Claim,
        outcome: Release | PcorError,
        then: Callable[[Connection, Mapping[str, Any]], None] | None = None,
    ) -> Mapping[str, Any]:
        """Store the answer of a claim; return what is stored from now on.

        If somebody else stored first, that is their answer, and this one is thrown away unseen.

        Args:
            claim: of the request.
            outcome: what was drawn, or the error that the draw ended in.
            then: is told what is stored, inside the same transaction: what it writes is kept
                together with the answer, and if it raises, neither is.

        Raises:
            LedgerError: the claim is not of this ledger, or the ledger cannot be written.
        """
        answer = write_answer(outcome, paid=True)
        with self.database.writing() as connection:
            head = lock_head(connection)
            stored = store_answer(connection, head, claim, answer)
            if then is not None:
                then(connection, stored)
            return stored

    def receipt(self, claim: Claim) -> Receipt:
        """Return where and on which day a claim was charged, for its certificate."""
        with self.database.reading() as connection:
            entry = read_entry(connection, claim.charge)
        return Receipt(entry.hash, entry.at[: len("2024-12-31")])

    def unfinished(self, error: SourceError) -> Unfinished:
        """Return what is said of a claim whose draw a failing source has ended."""
        return Unfinished(
            f"{error}. This request is charged and unfinished: ask the same again, free, once the "
            "source is back"
        )

    @contextmanager
    def drawing(self, claim: Claim) -> Iterator[None]:
        """Keep others from drawing for a claim meanwhile; afterwards let them, if it is open."""
        with keeping(claim.charge, claim.lease, self._change, self._clock):
            yield

    def _change(self, change: Callable[[Connection], None]) -> None:
        with self.database.writing() as connection:
            lock_head(connection)
            change(connection)

    # -- the books ---------------------------------------------------------------------------------

    def entries(
        self,
        dataset: str | None = None,
        analyst: str | None = None,
        after: int | None = None,
        limit: int | None = None,
    ) -> Iterator[Entry]:
        """Yield what happened, in order: of a dataset, of an analyst, after an entry's number."""
        if limit is not None:
            check_whole("limit", limit)
        yield from read_batches(
            self.database.reading, dataset=dataset, analyst=analyst, after=after, limit=limit
        )

    def export(self, target: str | Path | IO[str]) -> int:
        """Write all entries as JSON lines, to a file or a stream; return how many."""
        if isinstance(target, str | Path):
            written = 0

            def write(part: Path) -> None:
                nonlocal written
                with part.open("w", encoding="utf-8") as stream:
                    written = self.export(stream)

            write_whole(target, write)
            return written
        count = 0
        for lines in in_lines(self.entries()):
            target.write(lines)
            count += lines.count("\n")
        return count

    def head(self) -> Head:
        """Return where the chain of entries ends; note it elsewhere, and ``verify`` compares."""
        with self.database.reading() as connection:
            return read_head(connection)

    def verify(self, noted: Head | None = None) -> Verification:
        """Work the books out again from the entries, and say where they disagree.

        After one that found damage this ledger pays for nothing until one finds none.

        Args:
            noted: a head that was noted earlier; it must still be in the chain.
        """
        try:
            with self.database.reading() as connection:
                checked = check_books(connection, noted)
        except LedgerError as error:
            if str(error) != NO_LEDGER:
                raise
            checked = Verification((NO_LEDGER,), Totals())
        self._trust.learn(checked)
        return checked

    def find(self, certificate: Mapping[str, Any]) -> Inclusion:
        """Return where a certificate is in the chain of entries, which is verified as a whole.

        Args:
            certificate: what ``Release.to_dict`` or ``pcor.verify`` returned.

        Raises:
            SignatureError: no entry holds this certificate.
            LedgerError: the books are not whole, or cannot be read.
        """
        with self.database.reading() as connection:
            return find_inclusion(connection, certificate)

    def close(self) -> None:
        """Give back the connections to the database."""
        self.database.close()

    def _now(self) -> str:
        return datetime.fromtimestamp(int(self._clock()), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

    def __repr__(self) -> str:
        return f"<Ledger in a {self.database!r}>"
