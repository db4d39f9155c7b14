"""Service: the parts that routes work with, once for each process.

Private: the tables behind ``tables`` and ``drawer``; and the signing key, which is read once and
which the processes that draw do not have. Routes reach it as ``request.app.state``.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from fastapi import Request

from pcor.ledger import Ledger
from pcor.ledger.entries import lock_head
from pcor.releasing.letter import LetterTemplate
from pcor.service.core import slots
from pcor.service.core.book_checks import BookChecks
from pcor.service.core.cache import LruCache
from pcor.service.core.draw_process import DrawProcesses
from pcor.service.core.draws import Draws, InProcessDraws
from pcor.service.core.events import note
from pcor.service.core.fingerprints import FileFingerprints
from pcor.service.core.jobs import Job
from pcor.service.core.keys import make_key, read_keys
from pcor.service.core.limits import TokenBuckets, WriterLimit
from pcor.service.core.metrics import RequestCounter
from pcor.service.core.problems import unknown
from pcor.service.core.readiness import Readiness
from pcor.service.core.registry import Registration, find_registration
from pcor.service.core.settings import ServiceSettings
from pcor.service.core.source_checks import SourceChecks
from pcor.service.core.sources import Tables
from pcor.service.core.tables import SERVICE
from pcor.service.core.worker import AtStep, Drawer
from pcor.support.ed25519 import SigningKey

# Who cannot show a key has this many tries a second, and at once.
GUESSES = (1.0, 20)
# Answers that are kept in memory for whoever asks again.
REMEMBERED = 1000


def _nothing(_: str) -> None:
    pass


class Service:
    """The parts of the service.

    Args:
        settings: how it runs.
        create: make its tables where there are none.
        clock: seconds since 1970.
        at_step: called at each step of a request; for tests that end the process there.
    """

    def __init__(
        self,
        settings: ServiceSettings,
        *,
        create: bool = False,
        clock: Callable[[], float] = time.time,
        at_step: AtStep = _nothing,
    ) -> None:
        self.settings = settings
        self._clock = clock
        self.at_step = at_step
        self.letter = LetterTemplate(settings.letter)
        self.signing_key = None if settings.sign is None else SigningKey.load(settings.sign)
        self.ledger = Ledger(settings.database, create=create, clock=clock, keep=True)
        self.fingerprints = FileFingerprints(settings.secret_file)
        if create:
            self.fingerprints.make_secret()
        SERVICE.open(self.ledger.database, create=create)
        # Where draws are made elsewhere, only an owner's registrations and audits need one here.
        self.tables = Tables(
            settings.data, 1 if settings.apart else settings.tables, self.fingerprints
        )
        self.sources = SourceChecks(settings.data, self.fingerprints)
        self.drawer = Drawer(settings, self.ledger, self._draws(), self.sources, self.now, at_step)
        self.checks = BookChecks(self.ledger, settings.check, self.now)
        self.readiness = Readiness(self.ledger, settings.readiness)
        self.writers = WriterLimit(settings.writers)
        self.rates = TokenBuckets(settings.rate, settings.burst, slots=self._slots(slots.REQUESTS))
        self.guesses = TokenBuckets(*GUESSES, slots=self._slots(slots.GUESSES))
        self.sign_ins = TokenBuckets(
            settings.sign_in_rate, settings.sign_in_burst, slots=self._slots(slots.SIGN_INS)
        )
        self.known = slots.KnownNames(self._slots(slots.KNOWN))
        self.requests = RequestCounter()
        self.seen: LruCache[str, tuple[Job, Mapping[str, Any]]] = LruCache(REMEMBERED)

    def _slots(self, name: str) -> slots.Slots:
        return slots.open_slots(self.settings.shared, name)

    def _draws(self) -> Draws:
        settings = self.settings
        if not settings.apart:
            return InProcessDraws(self.tables)
        return DrawProcesses(
            settings.data, settings.secret_file, tables=settings.tables, processes=settings.drawers
        )

    def now(self) -> int:
        """Return the time in milliseconds since 1970."""
        return int(self._clock() * 1000)

    def registration(self, name: str, version: int | None = None) -> Registration:
        """Return a registered dataset: the newest version, or a given one.

        Raises:
            Problem: there is none.
        """
        with self.ledger.database.reading() as connection:
            found = find_registration(connection, name, version)
        if found is None:
            raise unknown("dataset")
        return found

    def first_owner_key(self, *, anew: bool = False) -> str | None:
        """Make the first owner's key and return it; nothing where an owner has a good one."""
        now = self.now()
        with self.ledger.database.writing() as connection:
            lock_head(connection)  # of two who begin at once, one makes the first key
            owners = [k for k in read_keys(connection) if k.role == "owner" and k.is_good(now)]
            if owners and not anew:
                return None
            key, token = make_key(connection, role="owner", name="owner", now=now)
            note(connection, "key_made", "command line", key.to_dict(), now=now)
            return token

    def close(self) -> None:
        """End what runs, and give back the connections."""
        self.checks.stop(self.settings.patience)
        self.drawer.stop()
        self.ledger.close()


def of(request: Request) -> Service:
    """Return the service that a request was made to."""
    service: Service = request.app.state.service
    return service
