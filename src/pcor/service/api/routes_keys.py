"""Routes for keys. Owners only, but for the one that says whose key this is.

Private: a new key, which leaves once, in the answer to who made it.
"""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request

from pcor.service.api.models import Identifier, KeyBody
from pcor.service.api.roles import Anybody, Owner
from pcor.service.core import owner
from pcor.service.core.keys import read_keys
from pcor.service.core.problems import COMMON
from pcor.service.core.service import of

router = APIRouter(prefix="/v1", tags=["keys"], responses=COMMON)


@router.get("/me")
def get_me(key: Anybody) -> dict[str, Any]:
    """Say whose key this is, its role and when it expires."""
    return key.to_dict()


@router.get("/keys")
def list_keys(request: Request, key: Owner) -> dict[str, Any]:  # noqa: ARG001 (who may)
    """Return what is known of all keys; not the keys."""
    with of(request).ledger.database.reading() as connection:
        return {"keys": [one.to_dict() for one in read_keys(connection)]}


@router.post("/keys", status_code=201)
def make_key(request: Request, key: Owner, body: KeyBody) -> dict[str, Any]:
    """Make a key. It is in this answer and nowhere else."""
    made, token = owner.new_key(of(request), key, role=body.role, name=body.name, days=body.days)
    return made.to_dict() | {"key": token}


@router.delete("/keys/{name}")
def revoke_key(request: Request, key: Owner, name: Identifier) -> dict[str, Any]:
    """Take a key back, at once and for good."""
    return owner.take_back_key(of(request), key, name).to_dict()
