"""A service for tests: a small table, a budget, one key of each role, short waits."""

from __future__ import annotations

import random
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
from pyarrow import parquet

import pcor
from pcor.service import create_app, owning
from pcor.service.keys import find_key
from pcor.service.service import Service
from pcor.service.settings import Settings

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
ABSENT = 9_999  # open for questions, and not in the table
CLOSED = 3  # in the table, and not open for questions

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
        "records": [OUTLIER, ABSENT],
        "budget": {"epsilon": "5"},
        "detector": "grubbs:min_population=5",
    } | changes


def write_table(folder: Path) -> None:
    """Write the small table as a file."""
    parquet.write_table(pa.table(columns()), folder / SOURCE)


@dataclass
class World:
    """A service and its keys.

    Attributes:
        service: the parts.
        api: a client in the same process; without a key.
        keys: role or name -> key.
    """

    service: Service
    api: TestClient
    keys: dict[str, str] = field(default_factory=dict)

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
        """Return a release once it is answered."""
        for _ in range(2000):
            found: dict[str, Any] = self.send(who, "GET", f"/v1/releases/{name}").json()
            if found["state"] == "done":
                return found
            time.sleep(min(0.05, found["retry_after"]))
        raise AssertionError("never answered")


def settings_for(url: str, folder: Path, **changes: Any) -> Settings:
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
        "sweep": 0.1,
    }
    return Settings(url, data, **quick | changes)


def prepared(settings: Settings, **options: Any) -> tuple[Service, dict[str, str]]:
    """Return a service with a dataset, two analysts, an auditor and an owner."""
    service = Service(settings, create=True, **options)
    token = service.first_owner_key()
    assert token is not None
    with service.ledger.database.reading() as connection:
        owner = find_key(connection, token, service.now())
    assert owner is not None
    keys = {"owner": token}
    full = DEFAULTS | registration()
    owning.register(service, owner, DATASET, full)
    for role, name in (("analyst", ANALYST), ("analyst", OTHER), ("auditor", "auditor")):
        _, keys[name] = owning.new_key(service, owner, role=role, name=name, days=1)
    for name in (ANALYST, OTHER):
        owning.allot(service, owner, DATASET, name, {"epsilon": "4"})
    return service, keys


DEFAULTS: dict[str, Any] = {
    "search": "auto",
    "utility": "population",
    "samples": None,
    "accounting": "tight",
    "selection": None,
    "guarantee": "ocdp",
    "delta": None,
    "steepness": None,
    "description": "",
}


@contextmanager
def world(
    url: str, folder: Path, *, clock: Callable[[], float] = time.time, **changes: Any
) -> Iterator[World]:
    """Run a service in this process."""
    service, keys = prepared(settings_for(url, folder, **changes), clock=clock)
    with TestClient(create_app(service), raise_server_exceptions=False) as api:
        yield World(service, api, keys)
