"""Releases: waiting for an answer, reading it, taking it along; and all that were paid for.

Public: everything that leaves here: a certificate from the moment it may be seen, and before that
only when to look again, which is known before anything is drawn.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from fastapi import Request, Response

from pcor.public.guarantee import TITLES
from pcor.releasing.certificate import Release
from pcor.releasing.facts import numbers_in_words, rounding_in_words
from pcor.releasing.signature import written
from pcor.service.api.models import Identifier
from pcor.service.core import owner, questions
from pcor.service.core.jobs import Job
from pcor.service.core.keys import Key
from pcor.service.core.problems import unknown
from pcor.service.core.service import Service, of
from pcor.service.page.access import Asker, Form, Owner, page_router, see
from pcor.service.page.html import render
from pcor.service.page.words import grid
from pcor.support.ed25519 import SigningKey

router = page_router()

MOST_SHOWN = 500
_HTML = "text/html; charset=utf-8"


@router.get("/releases")
def show_history(request: Request, key: Asker) -> Response:
    """Return what was paid for, the newest first: one's own; an owner's is everybody's."""
    found = questions.history(of(request), key, MOST_SHOWN)
    return render(
        request, "history.html", key=key, releases=found, guarantees=TITLES, most=MOST_SHOWN
    )


@router.get("/releases/{name}")
def show_release(request: Request, key: Asker, name: Identifier) -> Response:
    """Return a question and, from the moment it may be seen, its answer."""
    service = of(request)
    job, answer = questions.see(service, key, name)
    certificate, error = (None, None) if answer is None else questions.split(answer)
    registration = service.registration(job.request.dataset, job.version)
    plan = registration.plan(job.request.epsilon)
    released = None if certificate is None else Release.from_dict(certificate, plan)
    facts = [] if released is None else released.facts
    wait = 0.0 if answer is not None else questions.seconds_to_look(service, job)
    page = render(
        request,
        "release.html",
        key=key,
        job=job,
        said=job.to_public(service.now()),
        state="done" if answer is not None else questions.state_of(service, job),
        waiting=questions.WAITING,
        # A little after the moment: two clocks seldom agree to the millisecond.
        wait=math.ceil(wait * 10) / 10 + 0.2,
        reload=math.ceil(wait) + 1,
        certificate=certificate,
        error=error,
        headline="" if released is None else released.headline,
        numbers=[(fact.label, *numbers_in_words(fact, plan.schema)) for fact in facts],
        rounding=rounding_in_words(facts, plan.schema),
        plan=plan,
        grid=() if certificate is None else grid(registration.schema, certificate["bits"]),
    )
    if answer is None:
        page.headers["Retry-After"] = str(math.ceil(wait))
    return page


@router.post("/releases/{name}/close")
def close_release(request: Request, key: Owner, form: Form, name: Identifier) -> Response:  # noqa: ARG001 (its token was checked)
    """Close a question whose file was replaced, for good."""
    owner.close_question(of(request), key, name)
    return see(f"/releases/{name}")


@router.get("/releases/{name}/certificate.json")
def get_certificate(request: Request, key: Asker, name: Identifier) -> Response:
    """Return the certificate as a file."""
    _, certificate = _certificate(of(request), key, name)
    return _file(written(certificate), "application/json", f"pcor-{name}.json")


@router.get("/releases/{name}/certificate.html")
def get_certificate_page(request: Request, key: Asker, name: Identifier) -> Response:
    """Return the certificate as one HTML file that needs nothing else."""
    released, signing_key = _release(of(request), key, name)
    return _file(released.to_html(key=signing_key), _HTML, f"pcor-{name}.html")


@router.get("/releases/{name}/letter.html")
def get_letter(request: Request, key: Asker, name: Identifier) -> Response:
    """Return a letter for the person concerned as one HTML file that needs nothing else."""
    service = of(request)
    released, signing_key = _release(service, key, name)
    text = released.to_letter(service.letter, key=signing_key)
    return _file(text, _HTML, f"pcor-{name}-letter.html")


def _release(service: Service, key: Key, name: str) -> tuple[Release, SigningKey | None]:
    """Return what was released, with its entry in the ledger, and the key that signs it."""
    job, certificate = _certificate(service, key, name)
    plan = service.registration(job.request.dataset, job.version).plan(job.request.epsilon)
    claim = service.ledger.answered(job.request)
    receipt = None if claim is None else service.ledger.receipt(claim)
    released = replace(Release.from_dict(certificate, plan), receipt=receipt)
    return released, service.signing_key if "signature" in certificate else None


def _certificate(service: Service, key: Key, name: str) -> tuple[Job, Mapping[str, Any]]:
    job, answer = questions.see(service, key, name)
    certificate = None if answer is None else questions.split(answer)[0]
    if certificate is None:
        raise unknown("certificate")
    return job, certificate


def _file(text: str, kind: str, name: str) -> Response:
    headers = {
        "Content-Disposition": f'attachment; filename="{name}"',
        "Content-Security-Policy": "sandbox; default-src 'none'; style-src 'unsafe-inline'",
    }
    return Response(text.encode(), media_type=kind, headers=headers)
