"""Routes for the books: the ledger and the audit log, for owners and auditors.

Public to them: everything here. The order of answers in the ledger tells which search ended first,
and so can depend on rows; that is why analysts have no part in it.
"""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import StreamingResponse

from pcor.ledger.entries import in_lines
from pcor.service.api.models import After, Limit
from pcor.service.api.roles import READER
from pcor.service.core.book_checks import check_log
from pcor.service.core.events import read_events
from pcor.service.core.problems import COMMON
from pcor.service.core.service import of

router = APIRouter(prefix="/v1", tags=["books"], responses=COMMON, dependencies=[Depends(READER)])

_LINES = "application/x-ndjson"
DatasetFilter = Annotated[
    str | None, Query(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f]+$")
]


@router.get("/ledger")
def list_entries(
    request: Request,
    after: After = 0,
    limit: Limit = 100,
    dataset: DatasetFilter = None,
) -> dict[str, Any]:
    """Return entries of the ledger in order, after a number."""
    found = of(request).ledger.entries(dataset, after=after, limit=limit)
    return {"entries": [entry.to_dict() for entry in found]}


@router.get(
    "/ledger/export",
    response_class=StreamingResponse,
    responses={200: {"content": {_LINES: {}}, "description": "One entry on each line"}},
)
def export_entries(request: Request) -> StreamingResponse:
    """Return the whole ledger as JSON lines."""
    return StreamingResponse(in_lines(of(request).ledger.entries()), media_type=_LINES)


@router.get("/ledger/verification")
def verify_ledger(request: Request) -> dict[str, Any]:
    """Work the books out again from the entries, and say where they disagree."""
    checked = of(request).ledger.verify()
    return {"ok": checked.ok, "problems": list(checked.problems), "head": str(checked.head)}


@router.get("/audit")
def list_events(
    request: Request,
    after: After = 0,
    limit: Limit = 100,
) -> dict[str, Any]:
    """Return the audit log in order, after a number."""
    with of(request).ledger.database.reading() as connection:
        found = read_events(connection, after=after, limit=limit)
    return {"events": [event.to_dict() for event in found]}


@router.get("/audit/verification")
def verify_events(request: Request) -> dict[str, Any]:
    """Check the chain of the audit log."""
    with of(request).ledger.database.reading() as connection:
        problems = check_log(connection)
    return {"ok": not problems, "problems": problems}
