"""A service for tests: a small table, a budget, one key of each role, and no waits."""

from __future__ import annotations

import random
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
import uvicorn
from pyarrow import parquet
from sqlalchemy import event

import pcor
from pcor.releasing.settings import Settings
from pcor.service import create_app
from pcor.service.core import owner as owning
from pcor.service.core.jobs import find_job
from pcor.service.core.keys import find_key
from pcor.service.core.service import Service
from pcor.service.core.settings import ServiceSettings
from pcor.service.run import server_config
from pcor.service.server.connections import Config
from pcor.service.server.sockets import listen
from tests.helpers.waiting import until

with warnings.catch_warnings():
    # Newer versions of starlette ask for httpx2 and take httpx as well.
    warnings.simplefilter("ignore")
    from fastapi.testclient import TestClient

DATASET = "people"
OUTLIER = 17
EACH = "0.1"
SOURCE = "people.parquet"
ANALYST = "ana"
OTHER = "ben"
ORDINARY = 0  # open for questions, and an outlier nowhere
CLOSED = 3  # in the table, and not open for questions
ABSENT = 9_999  # not in the table

STOPPED = 1_000_000.25  # where a clock stands that does not run

_numbers = count()


@cache
def columns() -> dict[str, list[Any]]:
    """Return 120 people, one of whom clearly is an outlier."""
    numbers = random.Random(7)  # noqa: S311 (test data)
    people: dict[str, list[Any]] = {
        "job": [numbers.choice(["clerk", "cook", "pilot"]) for _ in range(120)],
        "city": [numbers.choice(["Rome", "Oslo"]) for _ in range(120)],
        "pay": [round(numbers.gauss(100, 5), 3) for _ in range(120)],
    }
    people["pay"][OUTLIER] = 400.5
    return people


SCHEMA = pcor.Schema(
    metric="pay",
    attributes={"job": ["clerk", "cook", "pilot"], "city": ["Rome", "Oslo"]},
    name=DATASET,
)


def registration(**changes: Any) -> dict[str, Any]:
    """Return the body that registers the small table."""
    return {
        "schema": SCHEMA.to_dict(),
        "source": SOURCE,
        "presets": {"small": "0.05", "medium": EACH, "large": "0.2"},
        "records": [OUTLIER, ORDINARY],
        "budget": {"epsilon": "5"},
        "detector": "grubbs:min_population=5",
    } | changes


def write_table(folder: Path) -> None:
    """Write the small table as a file."""
    parquet.write_table(pa.table(columns()), folder / SOURCE)


class Clock:
    """The real time, and what a test has moved it ahead."""

    def __init__(self) -> None:
        self.ahead = 0.0

    def __call__(self) -> float:
        return time.time() + self.ahead


class StoppedClock:
    """A clock that stands still until it is moved."""

    def __init__(self) -> None:
        self.now = STOPPED

    def __call__(self) -> float:
        return self.now


@dataclass
class World:
    """A service and its keys.

    Attributes:
        service: the parts.
        api: a client in the same process; without a key.
        keys: role or name -> key.
        clock: its time.
    """

    service: Service
    api: TestClient
    keys: dict[str, str] = field(default_factory=dict)
    clock: Clock = field(default_factory=Clock)

    def send(self, who: str | None, method: str, path: str, **given: Any) -> Any:
        """Send a request as somebody."""
        headers = given.pop("headers", {})
        if who is not None:
            headers = {"Authorization": f"Bearer {self.keys[who]}", **headers}
        return self.api.request(method, path, headers=headers, **given)

    def ask(self, who: str = ANALYST, call: str | None = None, **changes: Any) -> Any:
        """Ask for a release; return the response."""
        body = {"dataset": DATASET, "record": OUTLIER, "preset": "medium"} | changes
        call = f"call-{next(_numbers)}" if call is None else call
        return self.send(who, "POST", "/v1/releases", json=body, headers={"Idempotency-Key": call})

    def wait(self, name: str, who: str = ANALYST) -> dict[str, Any]:
        """Return a release once it is answered: when its moment is known, the clock is moved."""
        until(lambda: self.moment(name) is not None)
        late = (self.moment(name) or 0) - self.service.now()
        self.clock.ahead += max(0, late) / 1000
        found: dict[str, Any] = {}

        def answered() -> bool:
            found.update(self.send(who, "GET", f"/v1/releases/{name}").json())
            return bool(found["state"] == "done")

        until(answered)
        return found

    def moment(self, name: str) -> int | None:
        """Return when the answer of a release may be seen, once that is written down."""
        with self.service.ledger.database.reading() as connection:
            job = find_job(connection, name)
        return None if job is None else job.shown


def wait_for_news(place: World) -> None:
    """Wait for as long as the service answers whether it is ready as it did before."""
    time.sleep(2 * place.service.settings.readiness)


@contextmanager
def statements(service: Service) -> Iterator[list[str]]:
    """Note the statements that a service sends to its database, in their order."""
    said: list[str] = []

    def keep(_: Any, __: Any, statement: str, *___: Any) -> None:
        said.append(statement)

    engine = service.ledger.database.engine
    event.listen(engine, "before_cursor_execute", keep)
    try:
        yield said
    finally:
        event.remove(engine, "before_cursor_execute", keep)


def settings_for(url: str, folder: Path, **changes: Any) -> ServiceSettings:
    """Return settings with short waits and no limits in the way."""
    data = folder / "data"
    data.mkdir(exist_ok=True)
    if not (data / SOURCE).exists():
        write_table(data)
    quick: dict[str, Any] = {
        "delay": 0.1,
        "tick": 0.05,
        "rate": 1e4,
        "burst": 10_000,
        "sign_in_rate": 1e4,
        "sign_in_burst": 10_000,
        "open_questions": 10_000,
        "sweep": 0.1,
        "readiness": 0.001,
        "apart": False,  # a process takes a second to start; test_apart.py has some
    }
    return ServiceSettings(url, data, **quick | changes)


def prepared(
    settings: ServiceSettings, registered: dict[str, Any] | None = None, **options: Any
) -> tuple[Service, dict[str, str]]:
    """Return a service with a dataset, two analysts, an auditor and an owner.

    Args:
        settings: how it runs.
        registered: what is registered otherwise than in ``registration``.
        **options: of the service.
    """
    service = Service(settings, create=True, **options)
    token = service.first_owner_key()
    assert token is not None
    with service.ledger.database.reading() as connection:
        owner = find_key(connection, token, service.now())
    assert owner is not None
    keys = {"owner": token}
    full = DEFAULTS | registration(**registered or {})
    owning.register(service, owner, DATASET, full)
    for role, name in (("analyst", ANALYST), ("analyst", OTHER), ("auditor", "auditor")):
        _, keys[name] = owning.new_key(service, owner, role=role, name=name, days=1)
    for name in (ANALYST, OTHER):
        owning.allot(service, owner, DATASET, name, {"epsilon": "4"})
    return service, keys


DEFAULTS: dict[str, Any] = {
    **{name: default for name, default, _ in Settings.options("service")},
    "description": "",
}


@contextmanager
def world(
    url: str, folder: Path, *, clock: Callable[[], float] | None = None, **changes: Any
) -> Iterator[World]:
    """Run a service in this process.

    An answer is not to be seen for a minute, so that a machine however busy sees what comes before
    it; ``World.wait`` moves the clock instead of waiting.
    """
    moved = Clock()
    settings = settings_for(url, folder, **{"delay": 60.0} | changes)
    service, keys = prepared(settings, clock=clock or moved)
    with running(service, keys, moved) as made:
        yield made


@dataclass
class Served:
    """A service on a real socket.

    Attributes:
        url: its address.
        config: how its HTTP server runs.
    """

    url: str
    config: Config


@contextmanager
def served(service: Service) -> Iterator[Served]:
    """Serve as ``pcor serve`` does, on a free port and from a thread."""
    (listening,) = listen("127.0.0.1", 0)
    address = f"http://127.0.0.1:{listening.getsockname()[1]}"
    config = server_config(create_app(service), service.settings)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, args=([listening],))
    thread.start()
    try:
        until(lambda: server.started)
        yield Served(address, config)
    finally:
        server.should_exit = True
        thread.join()


@contextmanager
def running(service: Service, keys: dict[str, str], moved: Clock | None = None) -> Iterator[World]:
    """Run a service that is prepared."""
    with TestClient(create_app(service), raise_server_exceptions=False) as api:
        yield World(service, api, keys, moved or Clock())
