"""The exposure audit of one record, for its owner, on demand.

Private: everything it finds. It is computed when it is asked for, sent to who asked, and kept
nowhere; that somebody looked is in the audit log. It can take minutes, so the page is sent as it
comes about: first that it runs, then how far it is, then what was found. That needs no script, no
place to keep the result, and works with any number of processes.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from typing import Any

from fastapi import Request, Response
from fastapi.responses import StreamingResponse

from pcor.audit import Exposure
from pcor.audit.exposure import planned_exposure
from pcor.public.guarantee import OCDP, OWNER_ONLY
from pcor.releasing.plan import Plan
from pcor.releasing.request import canonical_record
from pcor.service.core.owner import note_event
from pcor.service.core.problems import Problem
from pcor.service.core.registry import PRESETS, Registration
from pcor.service.core.service import Service, of
from pcor.service.page.access import Form, Owner, as_problem, field, page_router
from pcor.service.page.html import HEADERS, fragment, pieces, render
from pcor.service.page.routes_questions import Text

router = page_router()

MOST_SHOWN = 25
# Seconds between two looks at how far it is.
LOOK = 0.5

# One at a time in a process: it takes a core for a while.
_busy = threading.Lock()


# Searches whose draws can be computed exactly on tables of any size that matters.
EXACT = ("direct", "widest_first")
INSTEAD = (
    "The dataset's own search makes too many random choices to be computed exactly, so this is for "
    "the search 'direct'. Who is exposed is the same under any search; by how much may differ."
)


class AuditCancelled(Exception):
    """Nobody waits for the result any more."""


class Audit(threading.Thread):
    """An audit that runs beside the answer it is for.

    Whoever starts it holds the lock, which is given back at the end. Once it is ``abandoned`` it
    ends at the next step.

    Args:
        service: whose.
        registration: of which dataset.
        record: about whom.
        preset: at which cost.
    """

    def __init__(
        self, service: Service, registration: Registration, record: str, preset: str
    ) -> None:
        super().__init__(name="pcor-exposure", daemon=True)
        self._service, self._registration = service, registration
        self._record = canonical_record(record)
        self._plan, self.note = auditable(registration, preset)
        self.abandoned = threading.Event()
        self.percent = 0
        self.outcome: Exposure | Exception | None = None

    def run(self) -> None:
        """Audit; what comes of it is the outcome."""
        one = self._registration
        try:
            table = self._service.tables.get(one.source, one.file_fingerprint, one.schema)
            outcome: Exposure | Exception = planned_exposure(
                self._plan, table, self._record, progress=self._step
            )
        except Exception as error:
            outcome = error
        finally:
            _busy.release()  # first: who sees the outcome may ask for the next audit at once
        self.outcome = outcome

    def _step(self, done: int, total: int) -> None:
        if self.abandoned.is_set():
            raise AuditCancelled
        self.percent = 100 * done // max(total, 1)


def auditable(registration: Registration, preset: str) -> tuple[Plan, str]:
    """Return the plan to audit, and what is to be said where it is not the dataset's."""
    epsilon = registration.presets[preset]
    plan = registration.plan(epsilon)
    if plan.search.name in EXACT:
        return plan, ""
    return registration.settings.directly().plan(registration.schema, epsilon), INSTEAD


@router.get("/exposure")
def show_form(request: Request, key: Owner, dataset: Text, record: Text = "") -> Response:
    """Return the form that starts an audit."""
    registration = of(request).registration(dataset)
    return render(request, "exposure.html", key=key, **_shown(registration, record, "medium"))


@router.post("/exposure")
def audit(request: Request, key: Owner, form: Form) -> Response:
    """Audit a record; the answer is sent as it comes about."""
    service = of(request)
    record, preset = field(form, "record"), field(form, "preset")
    registration = service.registration(field(form, "dataset"))
    if preset not in PRESETS:
        raise Problem(422, "invalid", "preset must be small, medium or large")
    running = Audit(service, registration, record, preset)
    before, after = pieces(
        request,
        "exposure.html",
        key,
        "result",
        **_shown(registration, record, preset) | {"running": True},
    )
    if not _busy.acquire(blocking=False):
        raise Problem(429, "busy", "another audit is running; try again when it is over")
    try:
        looked = {"dataset": registration.name, "version": registration.version, "record": record}
        note_event(service, "exposure_audit", key, looked)
        running.start()
    except BaseException:
        _busy.release()
        raise
    return StreamingResponse(
        _told(running, before, after), media_type="text/html; charset=utf-8", headers=HEADERS
    )


async def _told(running: Audit, before: str, after: str) -> AsyncIterator[str]:
    yield before
    told = 0
    try:
        while running.outcome is None:
            await asyncio.sleep(LOOK)
            if running.percent > told and running.outcome is None:
                told = running.percent
                yield f"<li>{told} % done</li>\n"
    finally:
        running.abandoned.set()
    yield "</ol>\n" + _result(running.outcome, running.note) + after


def _result(outcome: Exposure | Exception, note: str) -> str:
    if isinstance(outcome, Exception):
        detail = as_problem(outcome).detail
        return fragment("exposure_result.html", said=detail, found=None)
    return fragment("exposure_result.html", found=outcome, note=note, most=MOST_SHOWN)


def _shown(registration: Registration, record: str, preset: str) -> dict[str, Any]:
    return {
        "registration": registration,
        "record": record,
        "preset": preset,
        "presets": PRESETS,
        "owner_only": OWNER_ONLY,
        "left_out": OCDP.left_out,
        "running": False,
    }
