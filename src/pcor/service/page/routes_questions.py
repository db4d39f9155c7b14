"""Ask a question: pick a dataset and a record, see the plan, confirm.

Public: everything here. The plan is free and made from public knowledge; only the confirmation is
charged. The form that confirms holds the question in full and a random key of its own, so what was
read is what is paid for, and sending it twice pays once.
"""

from __future__ import annotations

import secrets
from typing import Annotated, Any

from fastapi import Query, Request, Response

from pcor.errors import PcorError
from pcor.service.core import questions
from pcor.service.core.jobs import find_question, is_charged
from pcor.service.core.keys import Key
from pcor.service.core.problems import Problem
from pcor.service.core.questions import Question
from pcor.service.core.registry import Registration
from pcor.service.core.service import Service, of
from pcor.service.page.access import Asker, Form, Visitor, as_problem, field, page_router, see
from pcor.service.page.html import render, sentence

router = page_router()

# Records that are offered in a list; beyond this one is typed.
MOST_LISTED = 500

Text = Annotated[str, Query(max_length=200, pattern=r"^[^\x00-\x1f\x7f]*$")]
DrawNumber = Annotated[int, Query(ge=1, le=1_000_000)]


@router.get("/")
def show_datasets(request: Request, key: Visitor) -> Response:
    """Return the datasets that are open to who is signed in; auditors have the books."""
    if key.role == "auditor":
        return see("/ledger")
    service = of(request)
    budgets = set(service.ledger.datasets())
    found = [
        _with_budget(service, key, one, has_budget=one.name in budgets)
        for one in questions.open_datasets(service, key)
    ]
    return render(request, "datasets.html", key=key, datasets=found)


def _with_budget(
    service: Service, key: Key, registration: Registration, *, has_budget: bool
) -> dict[str, Any]:
    """Return a dataset and what can still be spent on it, by everybody or by an analyst."""
    shown: dict[str, Any] = {"registration": registration, "account": None, "about": None}
    if not has_budget:
        return shown  # its owner has not set a budget yet
    books = service.ledger.status(registration.name)
    own = [one for one in books.allotments if one.analyst == key.payer]
    left = questions.left_for(service, key, registration)
    return shown | {
        "account": own[0] if own else books.budget,
        "about": left["about_releases_left"]["medium"],
    }


# -- the plan --------------------------------------------------------------------------------------


@router.get("/ask")
def show_question(
    request: Request,
    key: Asker,
    dataset: Text,
    record: Text = "",
    preset: Text = "medium",
    draw: DrawNumber = 1,
) -> Response:
    """Return the form for a question and, once there is one, its plan."""
    service = of(request)
    with service.ledger.database.reading() as connection:
        registration = questions.open_dataset(connection, key, dataset)
    left = service.ledger.left(registration.name, key.payer)
    offer, said = None, ""
    if record:
        try:
            offer = _offer(service, key, Question(dataset, record, preset=preset, draw=draw))
        except (Problem, PcorError) as refused:
            said = sentence(as_problem(refused).detail)
    return render(
        request,
        "ask.html",
        key=key,
        registration=registration,
        listed=_listed(registration),
        left=left,
        record=record,
        preset=preset,
        draw=draw,
        offer=offer,
        said=said,
        delay=f"{service.settings.delay:g}",
    )


@router.post("/ask")
def confirm_question(request: Request, key: Asker, form: Form) -> Response:
    """Charge a question and go to where its answer will be."""
    question = Question(
        field(form, "dataset"),
        field(form, "record"),
        preset=field(form, "preset"),
        draw=_draw(field(form, "draw")),
    )
    try:
        job = questions.ask(of(request), key, question, _call(field(form, "call")))
    except Problem as refused:
        if refused.kind != "still_running":
            raise
        return see(f"/releases/{refused.more['release']}")  # sent twice: it is the same one
    return see(f"/releases/{job.id}")


def _offer(service: Service, key: Key, question: Question) -> dict[str, Any]:
    """Return a plan that can be confirmed, under a key by which it is charged once."""
    planned = questions.plan_question(service, key, question)
    with service.ledger.database.reading() as connection:
        job = find_question(connection, planned.request)
        before = job if job is not None and is_charged(connection, job) else None
    return {"plan": planned.plan, "call": secrets.token_urlsafe(18), "before": before}


def _listed(registration: Registration) -> tuple[int | str, ...] | None:
    """Return the records to choose from, where there is a list short enough to read."""
    records = registration.records
    return None if records is None or len(records) > MOST_LISTED else records


def _draw(text: str) -> int:
    if not (text.isascii() and text.isdigit()) or not 1 <= int(text[:8]) <= 1_000_000:
        raise Problem(422, "invalid", "draw must be a whole number from 1 to 1,000,000")
    return int(text)


def _call(text: str) -> str:
    if len(text) > 64 or not (text.isascii() and text.isprintable()):
        raise Problem(422, "invalid", "this form is not one of ours; open the page again")
    return f"page-{text}"
