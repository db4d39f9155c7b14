"""The route for who checks signatures. Public: everything here, to anybody."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request

from pcor.service.core.problems import COMMON
from pcor.service.core.service import of
from pcor.support.ed25519 import ALGORITHM

router = APIRouter(prefix="/v1", tags=["signatures"], responses=COMMON)


@router.get("/public-key")
def get_public_key(request: Request) -> dict[str, Any]:
    """Return the public key that checks certificates of this service; null where it signs none.

    Compare it with one that you have from the owner by another way: whoever can change an answer on
    its way can change this one too.
    """
    signing = of(request).signing_key
    if signing is None:
        return {"algorithm": ALGORITHM, "key": None, "pem": None}
    return {"algorithm": ALGORITHM, "key": str(signing.public), "pem": signing.public.pem}
