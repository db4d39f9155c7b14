"""Routes for those who run the service: is it alive, is it ready, what does it come to.

Public: health and readiness, to anybody. Metrics are for owners and auditors.
"""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import PlainTextResponse

from pcor.service.api.roles import Reader
from pcor.service.core.metrics import as_text, book_lines
from pcor.service.core.problems import COMMON
from pcor.service.core.service import of

router = APIRouter(prefix="/v1", tags=["running"], responses=COMMON)


@router.get("/health")
async def get_health() -> dict[str, Any]:
    """Say that the process is alive."""
    # Without a thread: all of them may be waiting for the database, and the process be alive.
    return {"status": "ok"}


@router.get("/readiness")
async def get_readiness(request: Request) -> dict[str, Any]:
    """Say that the database can be written to; 503, and why, where it cannot."""
    await of(request).readiness.check()
    return {"status": "ready"}


@router.get("/metrics", response_class=PlainTextResponse)
def get_metrics(request: Request, key: Reader) -> PlainTextResponse:  # noqa: ARG001 (who may)
    """Return metrics for Prometheus; no durations, which can depend on rows."""
    service = of(request)
    with service.ledger.database.reading() as connection:
        lines = book_lines(connection)
    return PlainTextResponse(as_text([*lines, *service.checks.lines(), *service.requests.lines()]))
