"""Routes for questions: plan, release, history; and for closing what cannot be answered.

Public: everything that leaves here: public parameters, and certificates from the moment they may
be seen. No count, no time that a search took, no row.
"""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Header, Request, Response

from pcor.service.api.models import Identifier, Limit, QuestionBody
from pcor.service.api.roles import Asker, Owner
from pcor.service.core import owner, questions
from pcor.service.core.problems import COMMON, Problem
from pcor.service.core.service import of

router = APIRouter(prefix="/v1", tags=["releases"], responses=COMMON)

LONGEST_KEY = 200

CallKey = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        description="Required. A text of your own, the same for every try of one request.",
    ),
]


@router.post("/plans")
def make_plan(request: Request, key: Asker, body: QuestionBody) -> dict[str, Any]:
    """Say what a release would do, cost and promise, and what would be left. Free."""
    service = of(request)
    planned = questions.plan_question(service, key, _question(body))
    return {
        "record": body.record,
        **planned.plan.to_dict(),
        "text": str(planned.plan),
        "budget": questions.left_for(service, key, planned.registration),
    }


@router.post(
    "/releases",
    status_code=202,
    responses={
        200: {"description": "Answered before: the stored answer, free"},
        202: {"description": "Charged; look at its Location"},
        409: COMMON[422] | {"description": "The same request is being answered"},
    },
)
def make_release(
    request: Request, response: Response, key: Asker, body: QuestionBody, call: CallKey = None
) -> dict[str, Any]:
    """Ask for a release. It is charged now, and its answer appears at a fixed moment.

    The same Idempotency-Key and body again give the stored answer (200); another body is refused
    (422); while the first is running that is said (409).
    """
    service = of(request)
    job = questions.ask(service, key, _question(body), _call_key(call))
    service.at_step("before reply")
    shown = job.is_shown(service.now())
    found, answer = questions.see(service, key, job.id) if shown else (job, None)
    if answer is None:
        response.headers.update(questions.look_again(service, found))
    else:
        response.status_code = 200
    return questions.seen(service, found, answer)


@router.get("/releases")
def list_releases(request: Request, key: Asker, limit: Limit = 100) -> dict[str, Any]:
    """Return one's own questions, the newest first; an owner sees everybody's."""
    return {"releases": questions.history(of(request), key, limit)}


@router.get("/releases/{name}")
def get_release(
    request: Request, response: Response, key: Asker, name: Identifier
) -> dict[str, Any]:
    """Return a question and, from the moment it may be seen, its answer."""
    service = of(request)
    job, answer = questions.see(service, key, name)
    if answer is None:
        response.headers.update(questions.look_again(service, job))
    return questions.seen(service, job, answer)


@router.delete(
    "/releases/{name}",
    responses={409: COMMON[422] | {"description": "It has its answer, or will have it"}},
)
def close_release(request: Request, key: Owner, name: Identifier) -> dict[str, Any]:
    """Close a question whose file was replaced. It stays charged, and says that it was closed."""
    service = of(request)
    owner.close_question(service, key, name)
    return questions.seen(service, *questions.see(service, key, name))


def _question(body: QuestionBody) -> questions.Question:
    return questions.Question(**body.model_dump())


def _call_key(given: str | None) -> str:
    """Return the key; the draft writes it in quotes, and many people without."""
    text = "" if given is None else given.strip()
    if len(text) >= 2 and text[0] == text[-1] == '"':
        text = text[1:-1]
    if not text or len(text) > LONGEST_KEY or not (text.isascii() and text.isprintable()):
        raise Problem(
            400,
            "idempotency_key",
            "send the header Idempotency-Key: a text of your own of 1 to 200 ASCII characters, the "
            "same for every try of this request and new for every other",
        )
    return text
