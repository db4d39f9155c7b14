"""Access to pages: who is signed in, whether a form is theirs, and refusals shown as pages.

Public: everything here. A page's route sees a key that is good at this moment, or is not reached;
and no form, except the one that signs in, is read without the token of its session.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Coroutine
from http import HTTPStatus
from typing import Annotated, Any
from urllib.parse import parse_qsl

from fastapi import APIRouter, Depends, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import RedirectResponse
from fastapi.routing import APIRoute
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect

from pcor.errors import PcorError
from pcor.service.api.roles import only
from pcor.service.core import problems
from pcor.service.core.keys import Key
from pcor.service.core.problems import Problem, of_status
from pcor.service.page.html import render, url
from pcor.service.page.sessions import check_form, signed_in

# Fifteen for each attribute of a schema, and two for each column that is left out.
MOST_FIELDS = 10_000
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")

Handler = Callable[[Request], Coroutine[Any, Any, Response]]


class NotSignedIn(Exception):
    """Nobody is signed in; the sign-in page is shown."""


class PageRoute(APIRoute):
    """A route whose refusals are pages, in the words of the API's problems."""

    def get_route_handler(self) -> Handler:
        """Return the handler, with failures told as pages."""
        handler = super().get_route_handler()

        async def handled(request: Request) -> Response:
            try:
                return await handler(request)
            except NotSignedIn:
                return _to_sign_in(request)
            except Exception as error:
                return await run_in_threadpool(refusal, request, error)

        return handled


def _to_sign_in(request: Request) -> Response:
    asked = request.url.path
    back = asked if request.method == "GET" and asked != "/" else None
    if "hx-request" in request.headers:  # a part of a page was asked for; the whole must go
        return Response(headers={"HX-Redirect": "/sign-in"})
    return see(url("/sign-in", back=back))


def page_router() -> APIRouter:
    """Return a router for pages."""
    return APIRouter(route_class=PageRoute)


def refusal(request: Request, error: Exception) -> Response:
    """Return what is said of a failure, as a page."""
    problem = as_problem(error)
    try:
        key = signed_in(request)
    except (Problem, PcorError):  # too many requests, or a database that is away
        key = None
    page = render(
        request,
        "problem.html",
        key=key,
        status=problem.status,
        problem=problem,
        title=title(problem),
    )
    page.headers.update(problem.headers)
    return page


async def on_http(request: Request, error: Exception) -> Response:
    """Say what the framework refuses by itself: to a browser as a page, to a program as a problem.

    The API has no pages, whoever asks.
    """
    accepted = request.headers.get("accept", "")
    if "text/html" not in accepted or request.url.path.startswith("/v1"):
        return problems.as_problem(error).response()
    return await run_in_threadpool(refusal, request, error)


def as_problem(error: Exception) -> Problem:
    """Return the API's words for a failure, where a page has none of its own."""
    if isinstance(error, RequestValidationError):
        return Problem(422, "invalid", "this address is not one of a page; go back and try again")
    if isinstance(error, ClientDisconnect):  # halfway through its form: nobody reads this
        return of_status(HTTPStatus.BAD_REQUEST)
    return problems.as_problem(error)


_TITLES = {
    "budget_exceeded": "The budget does not allow this",
    "not_found": "Not found",
    "not_allowed": "Not for this key",
    "form_token": "This form has expired",
    "other_site": "Not sent from here",
    "too_many_requests": "Too many requests",
    "too_many_open": "Too many unanswered questions",
    "internal": "Something of ours failed",
}


def title(problem: Problem) -> str:
    """Return the heading of a refusal."""
    return _TITLES.get(problem.kind, HTTPStatus(problem.status).phrase)


def visitor(request: Request) -> Key:
    """Return the key of who is signed in, or show the sign-in page."""
    key = signed_in(request)
    if key is None:
        raise NotSignedIn
    return key


Visitor = Annotated[Key, Depends(visitor)]
Owner = Annotated[Key, Depends(only(visitor, "owner"))]
Reader = Annotated[Key, Depends(only(visitor, "owner", "auditor"))]
Asker = Annotated[Key, Depends(only(visitor, "owner", "analyst"))]


async def read_form(request: Request) -> dict[str, str]:
    """Return the fields of a form, each once."""
    body = await request.body()
    try:
        pairs = parse_qsl(
            body.decode("utf-8"),
            keep_blank_values=True,
            errors="strict",
            max_num_fields=MOST_FIELDS,
        )
    except ValueError:
        raise Problem(400, "malformed", "this is not a form of ours") from None
    # Lines may end; anything else that cannot be printed has no place in a form.
    if any(_CONTROL.search(part) for pair in pairs for part in pair):
        raise Problem(400, "malformed", "this form has characters that cannot be printed")
    return {name: value.strip() for name, value in reversed(pairs)}


async def own_form(request: Request, key: Visitor) -> dict[str, str]:  # noqa: ARG001 (first)
    """Return the fields of a form that was made for this session, or refuse."""
    fields = await read_form(request)
    check_form(request, fields.pop("token", ""))
    return fields


Form = Annotated[dict[str, str], Depends(own_form)]


def field(form: dict[str, str], name: str) -> str:
    """Return a field that must be filled in."""
    found = form.get(name, "")
    if not found:
        raise Problem(422, "invalid", f"fill in {name.replace('_', ' ')}")
    return found


def see(path: str) -> RedirectResponse:
    """Send the browser on with a GET, so that reloading repeats nothing."""
    return RedirectResponse(path, HTTPStatus.SEE_OTHER)
