"""Readiness: whether a question could be written down and charged at this moment.

Public: everything here. Only a write tells: a file may be read-only, a disk full, a limit reached,
while everything can be read. So one is made. It changes nothing (a row is set to what it is), takes
no lock that a charge waits for longer than this one write takes, and is made at most once in a
while, however often somebody asks: nobody can load the database by asking.
"""

from __future__ import annotations

import asyncio
import time

from anyio import CapacityLimiter, to_thread
from sqlalchemy import update

from pcor.errors import LedgerError
from pcor.ledger import Ledger
from pcor.ledger.database import ALWAYS, admission
from pcor.service.core import tables

# Seconds that the write waits for others; less than what whoever looks after a container waits.
PATIENCE = 2


class Readiness:
    """Tells whether the books can be written to.

    Args:
        ledger: the books.
        every: seconds for which an answer is good.
    """

    def __init__(self, ledger: Ledger, every: float) -> None:
        self._ledger, self._every = ledger, every
        self._asking = asyncio.Lock()
        self._until = 0.0
        self._refusal = ""

    async def check(self) -> None:
        """Raise what keeps the books from being written to.

        Those who ask while somebody else finds out wait for that answer, without a thread: threads
        are for those who ask for releases.
        """
        async with self._asking:
            if time.monotonic() >= self._until:
                self._refusal = await to_thread.run_sync(self._write, limiter=CapacityLimiter(1))
                self._until = time.monotonic() + self._every
        if self._refusal:
            raise LedgerError(self._refusal)

    def _write(self) -> str:
        # Anybody may ask, so no place is taken from those who ask for releases. This thread has a
        # copy of the request's context: the request itself is admitted as before.
        admission.set(ALWAYS)
        head = tables.event_head
        unchanged = update(head).where(head.c.id == 1).values(events=head.c.events)
        try:
            self._ledger.head()
            self._ledger.database.check_room()  # a charge writes more than this write does
            # Not the ledger's own head, for whose row every charge in PostgreSQL waits.
            with self._ledger.database.writing(patience=PATIENCE) as connection:
                connection.execute(unchanged)
        except LedgerError as refusal:
            return str(refusal)
        return ""
