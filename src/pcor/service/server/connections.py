"""Connections: how many there may be, and how long each may take to say what it wants.

Public: everything here. A connection is a file, and a process may have so many. Whoever opens many
and sends nothing, or a byte now and then, must not keep others out. So a request has a deadline for
its headers and one for its body, counted from their beginning and not from the last byte; an answer
has one for being read; and where all connections are taken, the one that has been without a whole
request for longest makes room. Uvicorn has none of these: its keep-alive ends with the first byte.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from http import HTTPStatus
from typing import Any

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from pcor.errors import ParameterError
from pcor.service.core.problems import Problem, of_status
from pcor.service.core.settings import ServiceSettings
from pcor.service.server.quiet_logs import keep_quiet, log, new_loop
from pcor.service.server.sockets import BACKLOG

# How many connections a process has where nothing else is said, and its files allow it.
MOST = 1000
# Connections beyond those that are being told so.
LINGERING = 32
# Files that are kept for other things: three for each of 40 threads at a SQLite database, those
# that are accepted before they are counted, those that are being refused, and the process's own.
RESERVED = 3 * 40 + BACKLOG + 72
# Seconds that a connection is kept for the next request.
KEEP_ALIVE = 5


class Config(uvicorn.Config):
    """How the HTTP server runs, with bounds on what a connection may take.

    Args:
        app: the application, or where it is.
        settings: say what that is.
        **options: of uvicorn.
    """

    def __init__(self, app: Any, settings: ServiceSettings, **options: Any) -> None:
        self.settings = settings
        self.most = most_connections(settings.connections)
        # Connections without a whole request, the one that has waited longest first.
        self.waiting: dict[Connection, None] = {}
        super().__init__(
            app,
            http=Connection,
            ws="none",
            backlog=BACKLOG,
            timeout_keep_alive=KEEP_ALIVE,
            **options,
        )

    def configure_logging(self) -> None:
        """Set up logs that cannot be flooded."""
        super().configure_logging()
        keep_quiet()

    def get_loop_factory(self) -> Callable[[], asyncio.AbstractEventLoop]:
        """Return what makes the event loop."""
        return new_loop


class Connection(H11Protocol):
    """One connection, by the bounds."""

    config: Config
    _refused = False
    _phase: object = None
    _deadline: asyncio.TimerHandle | None = None
    _unread: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Let a connection in, where there is room or can be made."""
        super().connection_made(transport)
        if len(self.connections) > self.config.most and not self._make_room():
            log.warning("all connections of this process are taken; others are refused")
            self._refuse()
        else:
            self._watch()

    def data_received(self, data: bytes) -> None:
        """Go on with a request."""
        if not self._refused:
            super().data_received(data)
            self._watch()

    def on_response_complete(self) -> None:
        """Begin with the next request, or end."""
        super().on_response_complete()
        if self.transport.is_closing():
            self._close()
        else:
            self._watch()

    def timeout_keep_alive_handler(self) -> None:
        """End a connection without a next request."""
        super().timeout_keep_alive_handler()
        self._close()

    def pause_writing(self) -> None:
        """Set a deadline for a client that does not read."""
        super().pause_writing()
        self._abort_later()

    def resume_writing(self) -> None:
        """Forget that there was a pause."""
        super().resume_writing()
        if self._unread is not None and not self.transport.is_closing():
            self._unread.cancel()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget a connection."""
        self._set_phase(None)
        super().connection_lost(exc)
        if self._unread is not None:
            self._unread.cancel()

    def _watch(self) -> None:
        """Set the deadline of what is awaited now; bytes that come meanwhile do not move it."""
        awaited = self.conn.their_state
        whole = awaited not in (h11.IDLE, h11.SEND_BODY) or self.transport.is_closing()
        self._set_phase(None if whole else awaited)

    def _set_phase(self, phase: object) -> None:
        if phase is self._phase:
            return
        self._phase = phase
        if self._deadline is not None:
            self._deadline.cancel()
        if phase is None:
            self.config.waiting.pop(self, None)
            return
        self.config.waiting.setdefault(self)
        settings = self.config.settings
        seconds = settings.headers_deadline if phase is h11.IDLE else settings.body_deadline
        self._deadline = self.loop.call_later(seconds, self._give_up)

    def _give_up(self) -> None:
        """End a connection whose request is late, or in whose place another comes."""
        if self._phase is h11.SEND_BODY and not self.cycle.response_started:
            self.transport.write(_LATE)
        self._close()

    def _make_room(self) -> bool:
        oldest = next(iter(self.config.waiting), None)
        if oldest is None:
            return False
        oldest._give_up()
        return True

    def _refuse(self) -> None:
        """Refuse a connection with a reason; without one where many are being refused already."""
        self._refused = True
        if len(self.connections) > self.config.most + LINGERING:
            self.transport.abort()
            return
        self.transport.write(_FULL)
        # Not closed yet: to close on what was not read is to take back what was said.
        self.transport.write_eof()
        self._unread = self.loop.call_later(1, self.transport.abort)

    def _close(self) -> None:
        """Close, and wait only so long for what was written to be read."""
        self._set_phase(None)
        self.transport.close()
        self._abort_later()

    def _abort_later(self) -> None:
        if self._unread is not None:
            self._unread.cancel()
        seconds = self.config.settings.body_deadline  # to go on reading, as to go on sending
        self._unread = self.loop.call_later(seconds, self.transport.abort)


def most_connections(wanted: int | None) -> int:
    """Return how many connections this process can have, whose limit on files is raised for it.

    Args:
        wanted: refused where the limit on files, as far as it can be raised, is too low.
    """
    needed = RESERVED + (MOST if wanted is None else wanted)
    files = _allow_files(needed)
    if files is None or files >= needed:
        return needed - RESERVED
    if wanted is not None:
        raise ParameterError(
            f"{wanted:,} connections need {needed:,} open files, and this process may have "
            f"{files:,} (ulimit -n); raise that limit, or give fewer --connections"
        )
    return max(16, files // 4, files - RESERVED)


def _allow_files(needed: int) -> int | None:
    """Raise the limit on files up to what is needed, if it may be; return it, if there is one."""
    try:
        import resource  # not on every system
    except ModuleNotFoundError:
        return None
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return needed
    raised = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (raised, hard))
    except (ValueError, OSError):
        return soft
    return raised


def _as_sent(problem: Problem) -> bytes:
    """Return a refusal as it goes over a connection that ends with it."""
    answer = problem.response()
    lines = [f"HTTP/1.1 {problem.status} {HTTPStatus(problem.status).phrase}".encode()]
    lines += [name + b": " + value for name, value in answer.raw_headers]
    return b"\r\n".join([*lines, b"connection: close", b"", bytes(answer.body)])


_LATE = _as_sent(of_status(408))
_FULL = _as_sent(
    Problem(
        503,
        "busy",
        "too many others are connected; try again in a second",
        headers={"Retry-After": "1"},
    )
)
