"""Settings of the service: where things are, how often results appear, what is too much.

Public: everything here, but for a password that a database URL may hold; the repr leaves that out.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from ipaddress import ip_network
from pathlib import Path
from typing import Any

from pcor.errors import ParameterError
from pcor.service.core.fingerprints import NAME

# Under this name the settings reach the worker processes.
ENVIRONMENT = "PCOR_SERVICE_SETTINGS"

# Seconds, and rates for each second, all of which have the same bounds.
SECONDS = (
    *("delay", "tick", "rate", "sign_in_rate", "sweep", "check"),
    *("headers_deadline", "body_deadline", "lock_patience", "readiness"),
)
COUNTS = (
    *("drawers", "tables", "burst", "sign_in_burst", "open_questions", "writers"),
    "largest_body",
)
# A process has 40 threads for requests (anyio's own bound), and 30 connections to a server.
MOST_WRITERS = 24


@dataclass(frozen=True)
class ServiceSettings:
    """How the service runs.

    Attributes:
        database: the ledger's URL; keys, datasets and jobs are kept in the same database.
        data: the folder that all sources are in; nothing outside it is ever read.
        delay: seconds from a question to the first moment at which its answer can be seen.
        tick: answers appear only when the clock, in seconds, is a multiple of this.
        drawers: how many searches a process runs at once.
        apart: each of them in a process of its own, so that nobody else waits for it.
        tables: how many tables each of those processes keeps in memory.
        rate: how many requests a second a key may make, over a while.
        burst: how many it may make at once.
        sign_in_rate: how often a second a key may sign in to the page, over a while.
        sign_in_burst: how often it may at once.
        proxies: addresses and networks whose word about who sends a request is taken
            (X-Forwarded-For); by default nobody's.
        open_questions: how many questions of one analyst may wait for their answers.
        largest_body: bytes in a request.
        patience: seconds that running searches are given when the service stops.
        sweep: seconds between two looks for questions that a dead process left unanswered.
        check: seconds between two verifications of the books.
        connections: how many a process has at once; by default as many as its limit on open files
            allows, and at most 1,000.
        headers_deadline: seconds from the beginning of a request to the end of its headers.
        body_deadline: seconds from there to the end of its body; a client that does not go on
            reading an answer has as many.
        writers: how many requests of a process may write, or wait to, at once.
        lock_patience: seconds that each of them waits for the others; what the service does by
            itself, such as storing an answer, waits a minute.
        readiness: seconds for which a process that tried to write to the database says the same.
        secure_cookies: send session cookies over HTTPS only.
        secret: the file with the secret by which registered files are known again; by default
            it is in the data folder.
        sign: the file with the private key that signs certificates; by default they are not signed.
        letter: the file with the template of letters; by default ours.
        shared: the folder in which processes that serve together count who asks how often
            (``slots``); by default a process counts for itself.
    """

    database: str = field(repr=False)
    data: Path
    delay: float = 5.0
    tick: float = 1.0
    drawers: int = 1
    apart: bool = True
    tables: int = 8
    rate: float = 20.0
    burst: int = 60
    sign_in_rate: float = 0.2
    sign_in_burst: int = 10
    proxies: tuple[str, ...] = ()
    open_questions: int = 20
    largest_body: int = 1 << 20
    patience: float = 10.0
    sweep: float = 5.0
    check: float = 86_400.0
    connections: int | None = None
    headers_deadline: float = 10.0
    body_deadline: float = 30.0
    writers: int = 16
    lock_patience: float = 5.0
    readiness: float = 5.0
    secure_cookies: bool = False
    secret: Path | None = None
    sign: Path | None = None
    letter: Path | None = None
    shared: Path | None = None

    def __post_init__(self) -> None:
        for name in SECONDS:
            if not 0.001 <= getattr(self, name) <= 86_400:
                raise ParameterError(f"{name} must be from 0.001 to 86,400")
        for name in COUNTS:
            if getattr(self, name) < 1:
                raise ParameterError(f"{name} must be at least 1")
        if self.connections is not None and self.connections < 1:
            raise ParameterError("connections must be at least 1")
        if self.writers > MOST_WRITERS:
            raise ParameterError(
                f"writers must be at most {MOST_WRITERS}: each waits in a thread, and those who "
                "only read need some too"
            )
        for proxy in self.proxies:
            _check_network(proxy)
        if not self.data.is_dir():
            raise ParameterError(
                f"the data folder {str(self.data)!r} does not exist; make it and put tables into it"
            )

    @property
    def moments(self) -> dict[str, int]:
        """The delay and the tick in milliseconds, for ``schedule``."""
        return {"delay": round(self.delay * 1000), "tick": max(1, round(self.tick * 1000))}

    @property
    def secret_file(self) -> Path:
        """Where the secret is."""
        return self.data / NAME if self.secret is None else self.secret

    def to_json(self) -> str:
        """Return the settings for another process."""
        return json.dumps(asdict(self), default=str)

    @classmethod
    def from_json(cls, text: str) -> ServiceSettings:
        """Read what ``to_json`` wrote."""
        content: dict[str, Any] = json.loads(text)
        paths = {
            name: Path(content[name])
            for name in ("data", "secret", "sign", "letter", "shared")
            if content[name]
        }
        return cls(**content | paths | {"proxies": tuple(content["proxies"])})


def _check_network(text: str) -> None:
    """Raise if this is no address: a name could come to mean another machine, * means all."""
    try:
        ip_network(text)
    except ValueError:
        raise ParameterError(
            f"a proxy is given by its address or network, such as 127.0.0.1 or 10.0.0.0/8; "
            f"{text!r} is neither"
        ) from None
