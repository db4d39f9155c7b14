"""Render a page from a template and public words; it can do nothing but what we wrote.

Public: everything here. Jinja escapes every value wherever it stands, so a value that looks like
HTML is shown as it is written; and the policy lets a browser run only our own files, so that even a
mistake in a template could not run anything.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from fastapi import Request
from fastapi.responses import HTMLResponse
from jinja2 import Environment, PackageLoader, StrictUndefined

from pcor.audit.report import chance
from pcor.errors import plain, sendable
from pcor.ledger.entries import amount_in_words
from pcor.service.core.keys import Key
from pcor.service.page.routes_files import address
from pcor.service.page.sessions import form_token
from pcor.service.page.words import (
    allowed_by,
    day,
    details,
    moment,
    protects,
    releases,
    returns,
    size_of,
)

HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
        "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "Cross-Origin-Opener-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}

# Role -> the pages that are offered to it: where, and in which words.
MENUS: dict[str, tuple[tuple[str, str], ...]] = {
    "analyst": (("/", "Datasets"), ("/releases", "History")),
    "owner": (
        ("/", "Datasets"),
        ("/releases", "Requests"),
        ("/keys", "Keys"),
        ("/ledger", "Ledger"),
        ("/log", "Audit log"),
    ),
    "auditor": (("/ledger", "Ledger"), ("/log", "Audit log")),
}


def url(path: str, **query: object) -> str:
    """Return an address with its query; what is ``None`` is left out.

    >>> url("/ask", dataset="a&b", record=None)
    '/ask?dataset=a%26b'
    """
    given = {name: value for name, value in query.items() if value is not None}
    return f"{path}?{urlencode(given)}" if given else path


def sentence(text: str) -> str:
    """Write a message, which begins small and may have no full stop, as a sentence.

    >>> sentence("nothing was spent"), sentence("What then?")
    ('Nothing was spent.', 'What then?')
    """
    return f"{text[:1].upper()}{text[1:]}{'' if text[-1:] in '.?!' else '.'}"


def _environment() -> Environment:
    made = Environment(
        loader=PackageLoader("pcor.service", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.globals.update(address=address, url=url)
    made.filters.update(
        allowed_by=allowed_by,
        amount=amount_in_words,
        chance=chance,
        day=day,
        details=details,
        moment=moment,
        plain=plain,
        protects=protects,
        releases=releases,
        returns=returns,
        sentence=sentence,
        size_of=size_of,
    )
    return made


_templates = _environment()


def render(
    request: Request, name: str, *, key: Key | None = None, status: int = 200, **given: Any
) -> HTMLResponse:
    """Return a page.

    Args:
        request: whose answer it is.
        name: of the template.
        key: of who is signed in, if anybody is.
        status: the HTTP status.
        **given: what the template speaks of.
    """
    text = _templates.get_template(name).render(context(request, key, **given))
    return HTMLResponse(sendable(text), status, HEADERS)


def pieces(request: Request, name: str, key: Key, marker: str, **given: Any) -> tuple[str, str]:
    """Return a page in two parts, before and after a comment in its template."""
    text = _templates.get_template(name).render(context(request, key, **given))
    before, _, after = sendable(text).partition(f"<!-- {marker} -->")
    return before, after


def fragment(name: str, **given: Any) -> str:
    """Return a part of a page."""
    return _templates.get_template(name).render(**given)


def context(request: Request, key: Key | None, **given: Any) -> dict[str, Any]:
    """Return what every template may speak of, and what this one does."""
    return {
        "key": key,
        "menu": () if key is None else MENUS[key.role],
        "path": request.url.path,
        "token": "" if key is None else form_token(request),
        **given,
    }
