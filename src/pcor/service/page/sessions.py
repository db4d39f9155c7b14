"""Sessions for the page: a random cookie, a token for its forms, both worth nothing without us.

Private: the cookie. Only its SHA-256 is stored, as for keys, so who reads the database can sign in
nowhere, and there is no signing secret to configure or to lose. A session is made when somebody
signs in and never before, so nobody can be given one that an attacker knows. It ends when it is
signed out of, when it expires, and when its key does. A form's token is an HMAC under the cookie:
another site can neither read nor guess it.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from urllib.parse import urlsplit

from fastapi import Request, Response
from sqlalchemy import Connection, delete, insert, select

from pcor.service.core import tables, tries
from pcor.service.core.keys import Key, digest, find_key, read_key
from pcor.service.core.problems import Problem
from pcor.service.core.service import Service, of

COOKIE = "pcor_session"
HOURS = 8


def sign_in(request: Request, response: Response, token: str) -> Key:
    """Exchange an API key for a new session; a session there was before ends.

    Nothing is written for an invalid key. The sign-ins of a valid one are limited in rate: each
    time is a write, and a row that stays for hours.

    Args:
        request: may bring the cookie of the session before.
        response: gets the cookie.
        token: the API key.
    """
    service, token = of(request), token.strip()
    key = tries.look_up(request, token, lambda: _signing_in(service, token))
    if key is None:
        raise Problem(401, "not_authenticated", "this key is not known, or not good any more")
    now, cookie = service.now(), secrets.token_urlsafe(32)
    before = request.cookies.get(COOKIE)
    with service.ledger.database.writing() as connection:
        if before:
            _end(connection, before)
        connection.execute(delete(tables.sessions).where(tables.sessions.c.expires <= now))
        connection.execute(
            insert(tables.sessions).values(
                hash=digest(cookie), key=key.id, expires=now + HOURS * 3_600_000
            )
        )
    tries.remember(request, cookie)  # whoever guesses from the same address must not end it
    response.set_cookie(
        COOKIE,
        cookie,
        max_age=HOURS * 3600,
        path="/",
        httponly=True,
        samesite="strict",
        secure=service.settings.secure_cookies,
    )
    return key


def _signing_in(service: Service, token: str) -> Key | None:
    # Under the whole of it: who knows but the id of a key must not keep its holder out.
    service.sign_ins.take(digest(token))
    with service.ledger.database.reading() as connection:
        return find_key(connection, token, service.now())


def sign_out(request: Request, response: Response) -> None:
    """End the session of a request."""
    cookie = request.cookies.get(COOKIE)
    if cookie:
        with of(request).ledger.database.writing() as connection:
            _end(connection, cookie)
    response.delete_cookie(COOKIE, path="/")


def signed_in(request: Request) -> Key | None:
    """Return the key that the session of a request was opened with, while both are good."""
    service, cookie = of(request), request.cookies.get(COOKIE)
    if not cookie:
        return None
    key = tries.look_up(request, cookie, lambda: _opened_with(service, cookie))
    if key is not None:
        service.rates.take(key.id)
    return key


def _session(connection: Connection, cookie: str) -> tuple[int, Key | None]:
    """Return when a session expires, 0 where there is none, and the key it was opened with."""
    chosen = select(tables.sessions).where(tables.sessions.c.hash == digest(cookie))
    row = connection.execute(chosen).one_or_none()
    return (0, None) if row is None else (row.expires, read_key(connection, row.key))


def _opened_with(service: Service, cookie: str) -> Key | None:
    now = service.now()
    with service.ledger.database.reading() as connection:
        expires, key = _session(connection, cookie)
    return key if key is not None and now < expires and key.is_good(now) else None


def why_signed_out(request: Request) -> str:
    """Return why a session of ours is over, in a sentence; nothing to who never had one."""
    service, cookie = of(request), request.cookies.get(COOKIE, "")
    now = service.now()
    with service.ledger.database.reading() as connection:
        expires, key = _session(connection, cookie)
    if key is None:
        return ""
    if key.revoked is not None:
        return "The key you were signed in with was taken back. An owner can make you another."
    if not key.is_good(now):
        return "The key you were signed in with has expired. An owner can make you another."
    return f"Your session ended after {HOURS} hours. Sign in again." if expires <= now else ""


def form_token(request: Request) -> str:
    """Return the token that every form of this session carries."""
    cookie = request.cookies.get(COOKIE, "")
    return hmac.new(cookie.encode(), b"pcor form token", hashlib.sha256).hexdigest()


def check_form(request: Request, given: str) -> None:
    """Refuse a form that was not made for this session, or came from another site."""
    check_origin(request)
    expected = form_token(request)
    if not request.cookies.get(COOKIE) or not hmac.compare_digest(
        expected.encode(), given.encode("utf-8", "replace")
    ):
        raise Problem(403, "form_token", "this form is not of this session; open the page again")


def check_origin(request: Request) -> None:
    """Refuse what a browser says it was sent from another site; for the form that signs in."""
    site = request.headers.get("sec-fetch-site", "same-origin")
    origin = request.headers.get("origin")
    here = request.headers.get("host", "")
    # "null" is what a browser says of a page that hides where it is from: not one of ours.
    elsewhere = origin is not None and urlsplit(origin).netloc != here
    if site not in ("same-origin", "none") or elsewhere:
        raise Problem(403, "other_site", "this form was sent from another site")


def _end(connection: Connection, cookie: str) -> None:
    connection.execute(delete(tables.sessions).where(tables.sessions.c.hash == digest(cookie)))
