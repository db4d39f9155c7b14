"""Drawing: searches in the background, each stored before anybody can see it, none forgotten.

Private: the rows, how long a search takes, when it ends. An answer that is ready is put into the
ledger at once, and shown at one of the moments that ``schedule`` allows. What a killed process left
unanswered is found by a sweep, when a process starts and every few seconds, and finished.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial

from sqlalchemy import Connection

from pcor.errors import LedgerError, PcorError, SourceError, StillRunning
from pcor.ledger import Ledger
from pcor.ledger.entries import lock_head
from pcor.ledger.leases import forget_lease
from pcor.releasing.answers import Answer, Outcome
from pcor.releasing.payment import Claim, settle
from pcor.service.core.backoff import Backoff
from pcor.service.core.draw_process import DrawFailed
from pcor.service.core.draws import Draw, Draws
from pcor.service.core.events import note
from pcor.service.core.fair_queue import FairQueue
from pcor.service.core.jobs import Job, begin_job, read_open, show_job, stall_job
from pcor.service.core.registry import Registration, find_registration
from pcor.service.core.schedule import moment_for
from pcor.service.core.settings import ServiceSettings
from pcor.service.core.source_checks import SourceChecks
from pcor.service.core.sources import SourceChanged

log = logging.getLogger("pcor.service")

# How many unanswered questions one sweep takes up.
SWEPT = 1000
# Seconds between tries to store an answer that is drawn, while the database is away.
AGAIN = (0.2, 1.0, 3.0)
# Seconds in which the claims of searches that were ended are given up.
GIVING_UP = 2.0

AtStep = Callable[[str], None]
# What is written together with an answer.
Show = Callable[[Connection, Answer], None]


class Shutdown(Exception):
    """The service stops; whoever starts next goes on with this question."""


class SourceUnavailable(Exception):
    """A question cannot be drawn for now: its file was replaced, or cannot be read.

    Args:
        error: what was said of it.
    """

    def __init__(self, error: PcorError) -> None:
        super().__init__(str(error))
        self.error = error


class Drawer:
    """Answers questions that are paid for.

    Args:
        settings: how the service runs.
        ledger: the books.
        draws: where draws are made.
        sources: whether the rows are those that were registered.
        clock: milliseconds since 1970.
        at_step: called at each step of a request; for tests that end the process there.
    """

    def __init__(
        self,
        settings: ServiceSettings,
        ledger: Ledger,
        draws: Draws,
        sources: SourceChecks,
        clock: Callable[[], int],
        at_step: AtStep,
    ) -> None:
        self._settings, self._ledger = settings, ledger
        self._draws, self._sources = draws, sources
        self._clock, self._at_step = clock, at_step
        self._waiting = FairQueue[tuple[Job, Claim]]()
        self._taken: set[str] = set()
        self._stored: set[str] = set()
        self._noted: set[str] = set()
        self._backoff = Backoff()
        self._stopping = threading.Event()
        # Daemons: a search that outlasts all patience must not keep a process from ending.
        self._sweeper = threading.Thread(target=self._sweep, daemon=True)
        self._drawers = [
            threading.Thread(target=self._work, daemon=True) for _ in range(settings.drawers)
        ]

    # -- taking up questions -----------------------------------------------------------------------

    def start(self) -> None:
        """Begin with what was left unanswered, and look again from time to time."""
        self._draws.start()
        for thread in (self._sweeper, *self._drawers):
            thread.start()

    def take(self, job: Job, claim: Claim) -> None:
        """Answer a question in the background. Whoever holds the claim calls this once."""
        self._taken.add(job.id)
        self._waiting.put(job.request.analyst, (job, claim))

    def stop(self) -> None:
        """Give running searches a while, give up the claims of all others, and end.

        Whoever calls this closes the ledger next, so nobody may be inside it any more.
        """
        self._stopping.set()
        until = time.monotonic() + self._settings.patience
        if self._sweeper.is_alive():  # first: it may still hand something to the drawers
            self._sweeper.join(self._settings.patience)
        self._wait_for_drawers(until)
        self._draws.close()
        self._wait_for_drawers(time.monotonic() + GIVING_UP)

    def _wait_for_drawers(self, until: float) -> None:
        while self._taken and time.monotonic() < until:
            time.sleep(0.02)

    def _show(self, connection: Connection, job: Job, drawn: int) -> int:
        """Let a stored answer be seen at a moment that is allowed, and that is still to come.

        The caller holds the lock, so the clock is read after it was had: who waits for it must not
        be early.
        """
        moment = moment_for(job.begun, drawn=drawn, now=self._clock(), **self._settings.moments)
        show_job(connection, job, moment)
        return moment

    def _warn_if_late(self, job: Job, moment: int) -> None:
        """Say so where an answer was not on the disk by the moment from which on it is seen."""
        if self._clock() > moment:
            log.warning("release %s is shown late: the database is too slow for the delay", job.id)

    def sweep(self) -> int:
        """Take up what nobody is answering; return how much that was."""
        with self._ledger.database.reading() as connection:
            left = list(read_open(connection, limit=SWEPT))
        return sum(self._is_recovered(job) for job in left)

    def _sweep(self) -> None:
        while not self._stopping.is_set():
            try:
                self.sweep()
            except LedgerError as error:
                log.warning("the sweep was put off: %s", error.kind)
            except Exception as error:  # the sweeper must outlive whatever it meets
                log.error("the sweep failed with a %s", type(error).__name__)
            self._stopping.wait(self._settings.sweep)

    def _is_recovered(self, job: Job) -> bool:
        """Take up a question; one that cannot be is put off, and keeps no other waiting."""
        try:
            return self._recover(job)
        except PcorError as error:
            self._wait_for_source(job, error)
            return False

    def _recover(self, job: Job) -> bool:
        if job.id in self._taken or self._stopping.is_set():
            return False
        if self._backoff.is_delayed(job.id, self._clock()):
            return False
        standing = self._ledger.standing(job.request)  # nothing is written for what must wait
        if standing == "running":
            return False
        if standing == "unfinished":
            self._check_source(job)
        try:
            claim = self._ledger.charge(job.request)  # charged already: nothing is added
        except StillRunning:
            return False
        if claim.state == "done" and job.id not in self._stored:
            self._stored.add(job.id)  # another process may be about to show it: look again later
            return False
        self._stored.discard(job.id)
        self._take_up(job, claim)
        return True

    def _check_source(self, job: Job) -> None:
        """Refuse a question whose file is not the registered one."""
        registration = self._registration(job)
        self._sources.check(registration.source, registration.file_fingerprint)

    def _wait_for_source(self, job: Job, error: PcorError) -> None:
        """Put off a question that cannot be drawn now: it stays charged, and is no answer."""
        wait = self._backoff.delay(job.id, self._clock())
        log.warning("release %s was put off for %d s: %s", job.id, wait, error.kind)
        if not isinstance(error, SourceChanged) or job.stalled is not None:
            return  # why else a source fails can depend on the rows, and is nobody's to know
        with suppress(LedgerError), self._ledger.database.writing() as connection:
            lock_head(connection)
            now = self._clock()
            moment = moment_for(job.begun, drawn=now, now=now, **self._settings.moments)
            if stall_job(connection, job, moment):
                body = {"release": job.id, "dataset": job.request.dataset, "version": job.version}
                note(connection, "source_changed", "service", body, now=now)

    def _take_up(self, job: Job, claim: Claim) -> None:
        """Go on with a question that was charged before and left."""
        try:
            with self._ledger.database.writing() as connection:
                lock_head(connection)
                now = self._clock()
                if job.id not in self._noted:  # once, however often it has to be put off again
                    note(connection, "recovery", "service", {"release": job.id}, now=now)
                job = begin_job(connection, job, now)
        except BaseException:
            forget_lease(claim.lease)  # or this process would be taken to draw for ever
            raise
        self._noted.add(job.id)
        if claim.state == "done":
            with self._ledger.database.writing() as connection:
                lock_head(connection)
                moment = self._show(connection, job, drawn=job.begun)
            self._warn_if_late(job, moment)
        else:
            self.take(job, claim)

    def _work(self) -> None:
        while True:  # after the end too: what is asked then is given up, and its lease with it
            self._finish(*self._waiting.get())

    # -- answering one -----------------------------------------------------------------------------

    def _finish(self, job: Job, claim: Claim) -> None:
        drawn = moment = 0

        def draw() -> Outcome:
            nonlocal drawn
            if self._stopping.is_set():
                raise Shutdown
            outcome = self._outcome(job)
            drawn = self._clock()
            self._at_step("after draw")
            return outcome

        def show(connection: Connection, _: Answer) -> None:
            nonlocal moment
            moment = self._show(connection, job, drawn)

        try:
            settle(self._ledger, claim, draw, partial(self._store, show))
            self._at_step("after store")
            self._warn_if_late(job, moment)
            self._backoff.forget(job.id)
        except Shutdown:
            pass
        except SourceUnavailable as failed:
            if not self._stopping.is_set():  # or else the drawing process was ended by us
                self._wait_for_source(job, failed.error)
        except LedgerError as error:  # it stays charged, and the next sweep takes it up
            log.warning("release %s was put off: %s", job.id, error.kind)
        except Exception as error:
            # The error's own words and its traceback can hold private rows.
            wait = self._backoff.delay(job.id, self._clock())
            name = str(error) if isinstance(error, DrawFailed) else type(error).__name__
            log.error("release %s failed with a %s, and is put off for %d s", job.id, name, wait)
        finally:
            self._taken.discard(job.id)

    def _outcome(self, job: Job) -> Outcome:
        try:
            return self._draw(job)
        except (LedgerError, SourceError) as error:
            raise SourceUnavailable(error) from None

    def _draw(self, job: Job) -> Outcome:
        one = self._registration(job)
        try:
            plan = one.plan(job.request.epsilon)
        except PcorError as error:  # by other rules than those it was charged under
            return error
        return self._draws.draw(Draw(one.source, one.file_fingerprint, plan, job.record))

    def _registration(self, job: Job) -> Registration:
        with self._ledger.database.reading() as connection:
            found = find_registration(connection, job.request.dataset, job.version)
        if found is None:
            raise LedgerError("the registration of a question is gone; restore the database")
        return found

    def _store(self, show: Show, claim: Claim, outcome: Outcome) -> Answer:
        """Store an answer, and from when on it may be seen, in one transaction."""
        for wait in AGAIN:
            try:
                return self._ledger.store(claim, outcome, show)
            except LedgerError:
                if self._stopping.wait(wait):
                    raise
        return self._ledger.store(claim, outcome, show)
