"""Signing in with a key, and signing out.

Private: the key, which is read here and kept nowhere; the cookie stands for it afterwards. It is a
new one at every sign-in, whatever came with the request.
"""

from __future__ import annotations

import re
from http import HTTPStatus
from typing import Annotated

from fastapi import Depends, Query, Request, Response

from pcor.service.core.problems import Problem
from pcor.service.page.access import Form, page_router, read_form, see
from pcor.service.page.html import render, sentence
from pcor.service.page.sessions import check_origin, sign_in, sign_out, signed_in, why_signed_out

router = page_router()

# Only our own addresses: neither another host nor anything a browser could take for one.
_OWN = re.compile(r"/(?![/\\])[A-Za-z0-9/_-]{0,200}")

Fields = Annotated[dict[str, str], Depends(read_form)]


def own_address(back: str) -> str:
    """Return an address of ours to go to after signing in.

    >>> own_address("/releases/x1"), own_address("//evil.example"), own_address("")
    ('/releases/x1', '/', '/')
    """
    return back if _OWN.fullmatch(back) else "/"


@router.get("/sign-in")
def show_sign_in(request: Request, back: Annotated[str, Query(max_length=300)] = "") -> Response:
    """Return the form that signs in; who is in already goes on."""
    if signed_in(request) is not None:
        return see(own_address(back))
    return render(request, "sign_in.html", back=back, said=why_signed_out(request))


@router.post("/sign-in")
def open_session(request: Request, form: Fields) -> Response:
    """Exchange a key for a session."""
    check_origin(request)
    back = form.get("back", "")
    response = see(own_address(back))
    try:
        sign_in(request, response, form.get("key", ""))
    except Problem as problem:
        if problem.status != HTTPStatus.UNAUTHORIZED:
            raise
        said = sentence(problem.detail)
        return render(request, "sign_in.html", status=problem.status, back=back, said=said)
    return response


@router.post("/sign-out")
def close_session(request: Request, form: Form) -> Response:  # noqa: ARG001 (it is checked)
    """End the session."""
    response = see("/sign-in")
    sign_out(request, response)
    return response
