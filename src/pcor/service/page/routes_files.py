"""The page's own files: one style sheet, one script, htmx, a picture. Nothing else is served.

Public: everything here. The files are named in the code, so no address leads anywhere else; their
addresses hold a part of their hash, so a browser may keep them for as long as it likes.
"""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

from fastapi import APIRouter, Response

from pcor.service.core.problems import unknown

router = APIRouter()

FOLDER = Path(__file__).parent.parent / "static"
TYPES = {
    "page.css": "text/css; charset=utf-8",
    "page.js": "text/javascript; charset=utf-8",
    "htmx.min.js": "text/javascript; charset=utf-8",
    "htmx.LICENSE.txt": "text/plain; charset=utf-8",
    "pcor.svg": "image/svg+xml",
}


@cache
def content(name: str) -> bytes:
    """Return one of our files."""
    return (FOLDER / name).read_bytes()


@cache
def address(name: str) -> str:
    """Return where a file of ours is served; another content has another address."""
    return f"/static/{name}?v={hashlib.sha256(content(name)).hexdigest()[:12]}"


@router.get("/static/{name}")
def get_file(name: str) -> Response:
    """Return one of our files."""
    if name not in TYPES:
        raise unknown("file")
    kept = {"Cache-Control": "public, max-age=31536000, immutable"}
    return Response(content(name), media_type=TYPES[name], headers=kept)
