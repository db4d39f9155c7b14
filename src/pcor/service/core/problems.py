"""Refusals over HTTP: problem+json (RFC 9457), in sentences that hold nothing private.

Public: every message, because every ``PcorError`` is made from the request and the schema alone. Of
any other failure nobody is told more than a number to quote; the log has the number and the kind
of failure, not its words or its traceback, which can hold rows.
"""

from __future__ import annotations

import json
import logging
import secrets
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel
from starlette.exceptions import HTTPException

from pcor.errors import (
    BudgetExceeded,
    KeyConflict,
    LedgerError,
    PcorError,
    StillRunning,
    plain,
    sendable,
)

log = logging.getLogger("pcor.service")

MEDIA_TYPE = "application/problem+json"

# What the service says of an error of the library; the most special first.
_STATUSES: tuple[tuple[type[PcorError], int], ...] = (
    (BudgetExceeded, 403),
    (KeyConflict, 422),
    (StillRunning, 409),
    (LedgerError, 503),
    (PcorError, 422),
)


class EscapedJSONResponse(JSONResponse):
    """A body of JSON; text that UTF-8 cannot hold, which old books may have, is escaped."""

    def render(self, content: Any) -> bytes:
        """Write the body."""
        text = json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        return sendable(text).encode()


class Problem(Exception):
    """A refusal.

    Args:
        status: the HTTP status.
        kind: a short name for programs.
        detail: a sentence for people, of public words.
        headers: to send along.
        more: further public members.
    """

    def __init__(
        self,
        status: int,
        kind: str,
        detail: str,
        *,
        headers: Mapping[str, str] | None = None,
        **more: Any,
    ) -> None:
        super().__init__(detail)
        self.status, self.kind, self.detail = status, kind, detail
        self.headers, self.more = dict(headers or {}), more

    def response(self) -> JSONResponse:
        """Return the refusal as it is sent."""
        body = {
            "type": f"urn:pcor:problem:{self.kind}",
            "title": HTTPStatus(self.status).phrase,
            "status": self.status,
            "kind": self.kind,
            "detail": self.detail,
            **self.more,
        }
        return EscapedJSONResponse(body, self.status, self.headers, MEDIA_TYPE)


class ProblemBody(BaseModel):
    """A refusal, for the OpenAPI document."""

    type: str
    title: str
    status: int
    kind: str
    detail: str


# What any route may answer besides its own; each is tried in a test.
COMMON: dict[int | str, dict[str, Any]] = {
    status: {
        "description": HTTPStatus(status).phrase,
        "content": {MEDIA_TYPE: {"schema": ProblemBody.model_json_schema()}},
    }
    for status in (400, 401, 403, 404, 405, 406, 413, 415, 422, 429, 500, 503)
}


def of_error(error: PcorError) -> Problem:
    """Return what the service says of an error of the library."""
    status = next(status for kind, status in _STATUSES if isinstance(error, kind))
    more: dict[str, Any] = {}
    if isinstance(error, BudgetExceeded):
        more = {
            "asked": plain(error.asked),
            "left": plain(error.left),
            "short_by": plain(error.short_by),
        }
    headers = {"Retry-After": "5"} if status == 503 else {}
    return Problem(status, error.kind, error.at("service"), headers=headers, **more)


# What the framework refuses by itself, in words that say what to do.
_BY_STATUS = {
    400: ("malformed", "the body cannot be read; send one JSON object"),
    404: ("not_found", "there is nothing at this address; check it for misprints"),
    405: ("method_not_allowed", "this address does not take this method; /openapi.json says which"),
    413: ("too_large", "the body of this request is too large"),
}


def to_owner(error: PcorError, words: str) -> Problem:
    """Return an error of the library in words that only an owner may read."""
    return Problem(422, error.kind, words)


def of_status(status: int, headers: Mapping[str, str] | None = None) -> Problem:
    """Return what the service says where the framework knows nothing but a status."""
    phrase = HTTPStatus(status).phrase
    unlisted = "internal" if status >= HTTPStatus.INTERNAL_SERVER_ERROR else "invalid"
    kind, detail = _BY_STATUS.get(status, (unlisted, f"{phrase}."))
    return Problem(status, kind, detail, headers=headers)


def unknown(what: str) -> Problem:
    """Return one answer for what does not exist and for what is not open to the caller."""
    return Problem(404, "not_found", f"there is no such {what}, or it is not open to this key")


def install(app: FastAPI) -> None:
    """Answer every expected failure of a route with a problem; ``limits`` answers the others."""
    for kind in (Problem, PcorError, RequestValidationError, HTTPException):
        app.add_exception_handler(kind, _on_failure)


def internal(error: BaseException) -> Problem:
    """Write down that something of ours failed, and return what may be said of it."""
    number = secrets.token_hex(8)
    log.error("error %s: a %s", number, type(error).__name__)
    return Problem(
        500,
        "internal",
        "an internal error; whoever runs the service finds it in its log by this id",
        id=number,
    )


def as_problem(error: Exception) -> Problem:
    """Return what the service says of a failure; of one that nobody expected only its number."""
    if isinstance(error, Problem):
        return error
    if isinstance(error, PcorError):
        return of_error(error)
    if isinstance(error, RequestValidationError):
        return _of_invalid(error)
    if isinstance(error, HTTPException):  # what the framework refuses by itself
        return of_status(error.status_code, error.headers)
    return internal(error)


def _of_invalid(error: RequestValidationError) -> Problem:
    found = error.errors()
    if any(one["type"] == "json_invalid" for one in found):
        detail = "the body is not JSON; send one JSON object, and mind the quotes"
        return Problem(400, "malformed", detail)
    # Where and why, never what: a field may hold a record's id that was sent by mistake.
    said = "; ".join(f"{_place(one['loc'])}: {one['msg']}" for one in found[:10])
    return Problem(422, "invalid", said[:2000])


def _place(parts: tuple[Any, ...]) -> str:
    return ".".join(str(part)[:50] for part in parts if part != "body") or "body"


async def _on_failure(_: Request, error: Exception) -> JSONResponse:
    return as_problem(error).response()
