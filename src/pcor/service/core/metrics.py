"""Metrics in the text format of Prometheus: what the books and the requests come to.

Public to owners and auditors: everything here. There are no durations: how long a request took can
depend on private rows. What is in the database is the same whichever process is asked; requests
are counted by each process on its own.
"""

from __future__ import annotations

import os
import threading
from collections import Counter

from sqlalchemy import Connection, func, select

from pcor.ledger import tables as books
from pcor.service.core import tables
from pcor.service.core.jobs import count_waiting


class RequestCounter:
    """Counts requests by what was answered."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: Counter[tuple[str, int]] = Counter()

    def count(self, method: str, status: int) -> None:
        """Count one."""
        with self._lock:
            self._counts[method if method in _METHODS else "other", status] += 1

    def lines(self) -> list[str]:
        """Return the counts."""
        with self._lock:
            counts = sorted(self._counts.items())
        return [
            f'pcor_requests_total{{process="{os.getpid()}",method="{method}",status="{status}"}} '
            f"{count}"
            for (method, status), count in counts
        ]


_METHODS = {"GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"}


def book_lines(connection: Connection) -> list[str]:
    """Return the totals of the books as metrics."""
    counted = select(books.entries.c.kind, func.count()).group_by(books.entries.c.kind)
    kinds = {str(kind): int(count) for kind, count in connection.execute(counted)}
    charged, answered = kinds.get("charge", 0), kinds.get("answer", 0)
    datasets = connection.execute(select(func.count(tables.datasets.c.name.distinct()))).scalar()
    return [
        *(f'pcor_ledger_entries_total{{kind="{kind}"}} {kinds[kind]}' for kind in sorted(kinds)),
        f"pcor_unanswered {charged - answered}",
        f"pcor_waiting_for_file {count_waiting(connection)}",
        f"pcor_datasets {datasets}",
    ]


def as_text(lines: list[str]) -> str:
    """Write metrics as they are read by programs."""
    return "\n".join([*_TYPES, *lines]) + "\n"


_TYPES = (
    "# TYPE pcor_requests_total counter",
    "# TYPE pcor_ledger_entries_total counter",
    "# TYPE pcor_unanswered gauge",
    "# TYPE pcor_waiting_for_file gauge",
    "# TYPE pcor_datasets gauge",
    "# TYPE pcor_books_checked_at gauge",
    "# TYPE pcor_ledger_whole gauge",
    "# TYPE pcor_audit_log_whole gauge",
)
