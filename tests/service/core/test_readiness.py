"""A service that cannot write is not ready, and says why."""

from __future__ import annotations

import resource
import sqlite3
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event, text
from sqlalchemy.exc import OperationalError

from tests.helpers.service_world import World, statements, wait_for_news, world
from tests.helpers.waiting import until


@contextmanager
def nothing_written(place: World) -> Iterator[None]:
    """Let every new connection be one that only reads, as to a read-only file."""

    def only_read(connection: Any, _: Any) -> None:
        connection.execute("PRAGMA query_only = ON")

    engine = place.service.ledger.database.engine
    event.listen(engine, "connect", only_read)
    engine.dispose()  # no connection from before is used
    try:
        yield
    finally:
        event.remove(engine, "connect", only_read)
        engine.dispose()


@contextmanager
def largest_file(size: int) -> Iterator[None]:
    """Let no file of this process grow beyond a size, as `ulimit -f` does."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def short_files(_: World) -> AbstractContextManager[None]:
    """Let files be no larger than a kilobyte."""
    return largest_file(1024)


@contextmanager
def full_disk(place: World) -> Iterator[None]:
    """Let every write of a page fail as on a full disk."""

    def full(*_: Any) -> None:
        raise OperationalError("", {}, sqlite3.OperationalError("database or disk is full"))

    engine = place.service.ledger.database.engine
    event.listen(engine, "commit", full)
    try:
        yield
    finally:
        event.remove(engine, "commit", full)


@contextmanager
def nearly_full_disk(_: World) -> Iterator[None]:
    """Let there be less room than some charges take."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("pcor.ledger.database.ROOM", 1 << 80)
        yield


def files_at_their_limit(place: World) -> AbstractContextManager[None]:
    """Let the database be nearly as large as files may be; a small write is still possible."""
    size = (place.service.settings.data.parent / "books.db").stat().st_size
    return largest_file(size + 100_000)


@pytest.mark.parametrize(
    ("failing", "said"),
    [
        (nothing_written, "read-only"),
        (nearly_full_disk, "disk is full"),
        (files_at_their_limit, "bytes at most (ulimit -f)"),
        (short_files, "files of this process may have 1,024 bytes at most (ulimit -f)"),
        (full_disk, "disk is full"),
    ],
)
def test_a_service_that_cannot_write_is_not_ready_and_says_why(
    failing: Any, said: str, tmp_path: Path
) -> None:
    with world(str(tmp_path / "books.db"), tmp_path, sweep=1000) as place:
        until(lambda: place.service.checks.newest.at)  # and nobody else is at the database
        before = place.service.ledger.head()
        assert place.api.get("/v1/readiness").status_code == 200
        wait_for_news(place)
        with failing(place):
            refused = place.api.get("/v1/readiness")
            assert place.api.get("/v1/health").status_code == 200
        assert (refused.status_code, refused.json()["kind"]) == (503, "ledger")
        assert said in refused.json()["detail"]
        assert refused.headers["retry-after"]
        wait_for_news(place)
        assert place.api.get("/v1/readiness").status_code == 200
        assert place.service.ledger.head() == before


def test_however_often_readiness_is_asked_the_database_is_written_to_once(tmp_path: Path) -> None:
    with world(str(tmp_path / "books.db"), tmp_path, sweep=1000, readiness=1000) as place:
        with statements(place.service) as said, ThreadPoolExecutor(8) as pool:
            answers = list(pool.map(lambda _: place.api.get("/v1/readiness"), range(20)))
        assert {one.status_code for one in answers} == {200}
        assert sum(one.startswith("UPDATE pcor_service_event_head") for one in said) == 1


def test_readiness_takes_no_place_of_those_who_ask_and_needs_none(tmp_path: Path) -> None:
    url = str(tmp_path / "books.db")
    with (
        world(url, tmp_path, sweep=1000, writers=1) as place,
        place.service.writers.admitted(),
    ):
        assert place.ask().status_code == 503
        assert place.api.get("/v1/readiness").json() == {"status": "ready"}


def test_a_database_that_others_write_to_for_long_is_not_ready(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pcor.service.core.readiness.PATIENCE", 0.01)
    with world(str(tmp_path / "books.db"), tmp_path, sweep=1000) as place:
        with place.service.ledger.database.writing() as connection:
            connection.execute(text("UPDATE pcor_head SET entries = entries"))
            refused = place.api.get("/v1/readiness")
        assert refused.status_code == 503
        assert "busy" in refused.json()["detail"]
