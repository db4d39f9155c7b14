"""Who may do what: a key in the Authorization header, its role, and the routes open to it.

Public: everything here. The API never looks at cookies, so no other site can make a browser ask it
for anything. A key that is unknown, wrong, expired or revoked gets one and the same answer.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated

from fastapi import Depends, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from pcor.service.core import tries
from pcor.service.core.keys import Key, find_key
from pcor.service.core.problems import Problem
from pcor.service.core.service import of

_bearer = HTTPBearer(auto_error=False, description="An API key: pcor_...")


def identify(
    request: Request,
    given: Annotated[HTTPAuthorizationCredentials | None, Depends(_bearer)],
) -> Key:
    """Return the key that a request shows, or refuse."""
    service = of(request)

    def find() -> Key | None:
        with service.ledger.database.reading() as connection:
            return find_key(connection, token, service.now())

    token = "" if given is None else given.credentials
    if not token:
        tries.wrong(request)
    key = tries.look_up(request, token, find) if token else None
    if key is None:
        raise Problem(
            401,
            "not_authenticated",
            "show a good key: Authorization: Bearer pcor_...; an owner makes one",
            headers={"WWW-Authenticate": "Bearer"},
        )
    service.rates.take(key.id)
    return key


def only(identified: Callable[..., Key], *roles: str) -> Callable[..., Awaitable[Key]]:
    """Return a dependency that lets these roles pass, of whoever was identified."""

    async def check(key: Key = Depends(identified)) -> Key:  # noqa: B008 (how FastAPI takes it)
        check_role(key, *roles)
        return key

    return check


def check_role(key: Key, *roles: str) -> None:
    """Refuse a key of another role."""
    if key.role not in roles:
        raise Problem(
            403, "not_allowed", f"this is for {' or '.join(roles)}; this key is of an {key.role}"
        )


Anybody = Annotated[Key, Depends(identify)]
Owner = Annotated[Key, Depends(only(identify, "owner"))]
READER = only(identify, "owner", "auditor")
Reader = Annotated[Key, Depends(READER)]
Asker = Annotated[Key, Depends(only(identify, "owner", "analyst"))]
