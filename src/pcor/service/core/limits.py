"""Limits: how large a request may be, of which type, how many a key may make, how many may write.

Public: everything here. Rates are counted by all processes of one ``pcor serve`` together
(``slots``). They are there against accidents and against guessing of keys; the budget is what
protects the people.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from pcor.ledger.database import Admission, admission
from pcor.service.core.problems import Problem, internal
from pcor.service.core.slots import OwnSlots, Slots

# Sent where a route does not say otherwise.
SAFE_HEADERS = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",
    "cache-control": "no-store",
}
API_POLICY = {"content-security-policy": "default-src 'none'; frame-ancestors 'none'"}


class TokenBuckets:
    """Buckets that fill at a steady rate; a request takes one token from the bucket.

    Args:
        rate: tokens a second.
        burst: how many a bucket holds.
        clock: seconds, the same ones in every process that shares the slots.
        slots: where the tokens are counted; by default in this process alone.
    """

    def __init__(
        self,
        rate: float,
        burst: int,
        clock: Callable[[], float] = time.monotonic,
        slots: Slots | None = None,
    ) -> None:
        self._rate, self._burst, self._clock = rate, burst, clock
        self._slots = OwnSlots() if slots is None else slots

    def take(self, who: str) -> None:
        """Take a token, or refuse."""
        self._take(who, 1)

    def check(self, who: str) -> None:
        """Refuse where ``take`` would, and take nothing."""
        self._take(who, 0)

    def _take(self, who: str, taken: int) -> None:
        with self._slots.locked():
            now = self._clock()
            tokens, at = self._slots.get(who) or (float(self._burst), now)
            tokens = min(self._burst, tokens + (now - at) * self._rate)
            short = 1 - tokens
            if taken or tokens < self._burst:  # a full bucket need not be remembered
                self._slots.put(who, tokens if short > 0 else tokens - taken, now)
        if short > 0:
            wait = max(1, math.ceil(short / self._rate))
            raise Problem(
                429,
                "too_many_requests",
                f"too many requests; wait {wait} s",
                headers={"Retry-After": str(wait)},
            )


class WriterLimit:
    """Admits a limited number of writers, waiting ones included; others are told to retry.

    Args:
        most: how many.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._lock = threading.Lock()
        self.inside = 0

    def check(self) -> None:
        """Refuse where ``admitted`` would at this moment, before any work is done for nothing."""
        if self.inside >= self._most:
            raise Problem(
                503,
                "busy",
                "too many others are waiting to write to the database; try again in a second. "
                "The same request, with the same key, is charged once",
                headers={"Retry-After": "1"},
            )

    @contextmanager
    def admitted(self) -> Iterator[None]:
        """Admit a writer, or raise at once."""
        with self._lock:
            self.check()
            self.inside += 1
        try:
            yield
        finally:
            with self._lock:
                self.inside -= 1


class LimitsMiddleware:
    """Refuses what is too large or of another type before anything reads it.

    It also sees every answer leave: it adds headers, counts, and says what may be said of a failure
    that nobody expected.

    Args:
        app: what comes behind.
        largest: bytes in a body.
        count: is told the method and the status of every answer.
        terms: on which requests may write to the database.
    """

    def __init__(
        self,
        app: ASGIApp,
        largest: int,
        count: Callable[[str, int], None],
        terms: Admission,
    ) -> None:
        self._app, self._largest, self._count, self._terms = app, largest, count, terms

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        admission.set(self._terms)  # for this request alone: each has a context of its own
        headers = {name.lower(): value for name, value in scope["headers"]}
        safe = SAFE_HEADERS | (API_POLICY if scope["path"].startswith("/v1") else {})
        started = False

        async def watched(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                self._count(scope["method"], message["status"])
                sent = MutableHeaders(scope=message)
                for name, value in safe.items():
                    sent.setdefault(name, value)
            await send(message)

        refusal = self._refusal(scope, headers)
        try:
            behind = self._app if refusal is None else refusal.response()
            await behind(scope, self._counted(receive), watched)
        except Exception as error:
            failure = internal(error)
            if not started:
                await failure.response()(scope, receive, watched)

    def _refusal(self, scope: Scope, headers: dict[bytes, bytes]) -> Problem | None:
        length = headers.get(b"content-length", b"0")
        if not length.isdigit() or int(length[:20]) > self._largest:
            return Problem(413, "too_large", f"a request may have {self._largest:,} bytes at most")
        has_body = length != b"0" or b"transfer-encoding" in headers
        if scope["method"] not in ("POST", "PUT", "PATCH") or not has_body:
            return None
        given = headers.get(b"content-type", b"").decode("latin-1")
        kind = given.partition(";")[0].strip().lower()
        of_api = scope["path"].startswith("/v1")
        allowed = "application/json" if of_api else "application/x-www-form-urlencoded"
        if kind != allowed:
            return Problem(415, "unsupported_media_type", f"send the body as {allowed}")
        return None

    def _counted(self, receive: Receive) -> Receive:
        left = self._largest

        async def counted() -> Message:
            nonlocal left
            message = await receive()
            left -= len(message.get("body", b""))
            if left < 0:
                raise HTTPException(413)  # reaches ``problems`` from wherever the body is read
            return message

        return counted
