"""Service: the parts that routes work with, once for each process.

Private: the tables behind ``tables`` and ``drawer``. Routes reach it as ``request.app.state``.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar

from fastapi import Request

from pcor.ledger import Ledger
from pcor.ledger.entries import lock_head
from pcor.service.core.book_checks import BookChecks
from pcor.service.core.draw_process import DrawProcesses
from pcor.service.core.draws import Draws, InProcessDraws
from pcor.service.core.events import note
from pcor.service.core.fingerprints import FileFingerprints
from pcor.service.core.jobs import Job
from pcor.service.core.keys import make_key, read_keys
from pcor.service.core.limits import TokenBuckets, WriterLimit
from pcor.service.core.metrics import RequestCounter
from pcor.service.core.readiness import Readiness
from pcor.service.core.settings import ServiceSettings
from pcor.service.core.source_checks import SourceChecks
from pcor.service.core.sources import Tables
from pcor.service.core.tables import SERVICE
from pcor.service.core.worker import AtStep, Drawer

# Who cannot show a key has this many tries a second, and at once.
GUESSES = (1.0, 20)
# Keys and sessions that were good a while ago; ``tries`` says what for.
KNOWN = 10_000
# Answers that are kept in memory for whoever asks again.
REMEMBERED = 1000

Thing = TypeVar("Thing")


def _nothing(_: str) -> None:
    pass


class LruCache(Generic[Thing]):
    """A cache by name; the least recently used go first.

    Args:
        most: how many.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._kept: OrderedDict[str, Thing] = OrderedDict()

    def get(self, name: str) -> Thing | None:
        """Return an item, if it is cached."""
        with self._lock:
            if name not in self._kept:
                return None
            self._kept.move_to_end(name)
            return self._kept[name]

    def put(self, name: str, thing: Thing) -> None:
        """Cache an item."""
        with self._lock:
            self._kept[name] = thing
            while len(self._kept) > self._most:
                self._kept.popitem(last=False)

    def forget(self, name: str) -> None:
        """Remove an item."""
        with self._lock:
            self._kept.pop(name, None)


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
        self.ledger = Ledger(settings.database, create=create, clock=clock)
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
        self.rates = TokenBuckets(settings.rate, settings.burst)
        self.guesses = TokenBuckets(*GUESSES)
        self.sign_ins = TokenBuckets(settings.sign_in_rate, settings.sign_in_burst)
        self.known: LruCache[bool] = LruCache(KNOWN)
        self.requests = RequestCounter()
        self.seen: LruCache[tuple[Job, Mapping[str, Any]]] = LruCache(REMEMBERED)

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
