"""Checks: the books are verified when a process starts and every day, while it serves.

Public to owners and auditors: everything here. Nobody waits for a check: it reads in a thread of
its own, from a view of the database that no writer waits for. One that finds damage ends all
charges of this process, until the books are restored and a later one finds none; what was answered
before is still given. It is told in the log, in the metrics, and to whoever asks.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable
from dataclasses import dataclass

from sqlalchemy import Connection

from pcor.errors import LedgerError
from pcor.ledger import Ledger
from pcor.service.core.events import check_events
from pcor.service.core.registry import check_registrations

log = logging.getLogger("pcor.service")


@dataclass(frozen=True)
class BookCheck:
    """What the newest check found.

    Attributes:
        at: when it ended, in seconds since 1970; 0 before the first.
        ledger: whether the ledger is whole.
        events: whether the audit log is whole.
    """

    at: int = 0
    ledger: bool = True
    events: bool = True


class BookChecks(threading.Thread):
    """Verifies the books from time to time, beginning when it is started.

    Args:
        ledger: the books.
        every: seconds between two checks.
        clock: milliseconds since 1970.
    """

    def __init__(self, ledger: Ledger, every: float, clock: Callable[[], int]) -> None:
        super().__init__(daemon=True)
        self._ledger, self._every, self._clock = ledger, every, clock
        self._stopping = threading.Event()
        self.newest = BookCheck()

    def stop(self, patience: float) -> None:
        """Begin no other, and give one that runs a while: it only reads."""
        self._stopping.set()
        if self.is_alive():
            self.join(patience)

    def check(self) -> BookCheck:
        """Verify the ledger and the audit log now."""
        found = self._ledger.verify()
        problems = self._event_problems() if found.ok else []
        self.newest = BookCheck(self._clock() // 1000, found.ok, not problems)
        for problem in (*found.problems, *problems):
            log.error("the books are NOT whole: %s", problem)
        return self.newest

    def lines(self) -> list[str]:
        """Return the newest check as metrics."""
        process = f'{{process="{os.getpid()}"}}'
        return [
            f"pcor_books_checked_at{process} {self.newest.at}",
            f"pcor_ledger_whole{process} {int(self.newest.ledger)}",
            f"pcor_audit_log_whole{process} {int(self.newest.events)}",
        ]

    def _event_problems(self) -> list[str]:
        with self._ledger.database.reading() as connection:
            return check_log(connection)

    def run(self) -> None:
        """Check again and again, until it is stopped."""
        while not self._stopping.is_set():
            try:
                self.check()
            except LedgerError as error:
                log.warning("the check of the books was put off: %s", error.kind)
            except Exception as error:  # the thread must outlive whatever it meets
                log.error("the check of the books failed with a %s", type(error).__name__)
            self._stopping.wait(self._every)


def check_log(connection: Connection) -> list[str]:
    """Return what is wrong with the audit log, and with the registrations that it speaks of."""
    return check_events(connection) or check_registrations(connection)
