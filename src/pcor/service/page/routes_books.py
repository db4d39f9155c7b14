"""The books, for owners and auditors: the ledger, the audit log, and whether both are whole.

Public to them: everything here. Nothing on these pages changes anything.
"""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Query, Request, Response
from sqlalchemy import select

from pcor.ledger.entries import entry_in_words
from pcor.service.api import routes_books
from pcor.service.core import tables
from pcor.service.core.book_checks import check_log
from pcor.service.core.events import Event, read_events
from pcor.service.core.service import of
from pcor.service.page.access import Reader, page_router
from pcor.service.page.html import render
from pcor.service.page.words import day

router = page_router()

PAGE = 50

Number = Annotated[int, Query(ge=0, le=2**31 - 1)]
Asked = Annotated[bool, Query()]


@router.get("/ledger")
def show_ledger(
    request: Request, key: Reader, before: Number = 0, verify: Asked = False
) -> Response:
    """Return the books and their entries, the newest first; and whether they are whole."""
    service = of(request)
    head = service.ledger.head()
    first, last = _window(before, head.entries)
    found = service.ledger.entries(after=first, limit=last - first) if last > first else ()
    entries = [(entry, entry_in_words(entry)) for entry in found]
    return render(
        request,
        "ledger.html",
        key=key,
        entries=entries[::-1],
        older=first + 1 if first else None,
        newer=bool(before),
        head=head,
        accounts=[service.ledger.status(name) for name in service.ledger.datasets()],
        verified=service.ledger.verify() if verify else None,
    )


@router.get("/ledger/export")
def get_ledger(request: Request, key: Reader) -> Response:  # noqa: ARG001 (who may)
    """Return the whole ledger as a file of JSON lines."""
    response = routes_books.export_entries(request)
    response.headers["Content-Disposition"] = 'attachment; filename="pcor-ledger.jsonl"'
    return response


@router.get("/log")
def show_log(request: Request, key: Reader, before: Number = 0, verify: Asked = False) -> Response:
    """Return the audit log, the newest first; and whether it is whole."""
    with of(request).ledger.database.reading() as connection:
        count = connection.execute(select(tables.event_head.c.events)).scalar() or 0
        first, last = _window(before, count)
        found = read_events(connection, after=first, limit=last - first) if last > first else []
        problems = check_log(connection) if verify else None
    return render(
        request,
        "log.html",
        key=key,
        events=[_event(event) for event in found[::-1]],
        older=first + 1 if first else None,
        newer=bool(before),
        problems=problems,
    )


def _event(event: Event) -> dict[str, Any]:
    said = event.to_dict()
    about = [f"{name.replace('_', ' ')} {_told(name, v)}" for name, v in said["body"].items()]
    return said | {"what": event.kind.replace("_", " "), "about": ", ".join(about)}


def _told(name: str, value: Any) -> str:
    """Write one thing that an event says: a time as a day, a hash by its first digits."""
    if name in ("made", "expires", "revoked"):
        return "never" if value is None else day(value)
    return f"{value[:12]}…" if name.endswith("sha256") else str(value)


def _window(before: int, count: int) -> tuple[int, int]:
    """Return after which number a page of the newest begins, and with which it ends.

    >>> _window(0, 120), _window(71, 120), _window(21, 120)
    ((70, 120), (20, 70), (0, 20))
    """
    last = min(before - 1, count) if before else count
    return max(0, last - PAGE), last
