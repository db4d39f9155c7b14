"""A database that others write to: some wait, the next is refused, readers go on."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from anyio import to_thread
from sqlalchemy import event, text

import pcor
from pcor.ledger.database import PATIENCE
from pcor.service.core.settings import ServiceSettings
from tests.helpers.service_world import ANALYST, world
from tests.helpers.waiting import DEADLINE, until


@contextmanager
def held(folder: Path) -> Iterator[None]:
    """Hold the lock of the books, as another program may."""
    other = sqlite3.connect(folder / "books.db", isolation_level=None)
    try:
        other.execute("BEGIN IMMEDIATE")
        yield
    finally:
        other.close()


def test_so_many_writers_wait_and_the_next_is_refused_at_once_while_readers_go_on(
    tmp_path: Path,
) -> None:
    url = str(tmp_path / "books.db")
    with (
        world(url, tmp_path, sweep=1000, writers=3, lock_patience=DEADLINE) as place,
        ThreadPoolExecutor(3) as pool,
    ):
        done = place.wait(place.ask(call="before").json()["id"])
        new = place.ask(draw=6).json()["id"]  # its moment has come, and nobody has looked yet
        until(lambda: place.moment(new) is not None)
        place.clock.ahead += 61  # and a tick more
        writers = place.service.writers
        with held(tmp_path):
            waiting = [pool.submit(place.ask, draw=draw) for draw in (2, 3, 4)]
            until(lambda: writers.inside == 3)
            refused = place.ask(draw=5)
            stored = place.send(ANALYST, "GET", f"/v1/releases/{done['id']}")
            repeated = place.ask(call="before")
            first_look = place.send(ANALYST, "GET", f"/v1/releases/{new}")
            assert not any(one.done() for one in waiting)
        assert (refused.status_code, refused.json()["kind"]) == (503, "busy")
        assert refused.headers["retry-after"] == "1"
        assert stored.json() == repeated.json() == done
        assert first_look.json()["state"] == "done"
        assert [one.result(DEADLINE).status_code for one in waiting] == [202] * 3
        until(lambda: writers.inside == 0)
        assert place.ask(draw=5).status_code == 202


def test_the_process_says_that_it_is_alive_though_every_thread_waits(tmp_path: Path) -> None:
    url = str(tmp_path / "books.db")
    with (
        world(url, tmp_path, sweep=1000, lock_patience=DEADLINE) as place,
        ThreadPoolExecutor(2) as pool,
    ):
        assert place.api.portal is not None
        place.api.portal.call(_have_threads, 2)
        body = {"role": "analyst", "name": "new", "days": 1}
        with held(tmp_path):
            waiting = [
                pool.submit(place.send, "owner", "POST", "/v1/keys", json=body) for _ in range(2)
            ]
            until(lambda: place.service.writers.inside == 2)
            assert place.api.get("/v1/health").json() == {"status": "ok"}
            assert not any(one.done() for one in waiting)
        assert [one.result(DEADLINE).status_code for one in waiting] == [201] * 2


async def _have_threads(number: int) -> None:
    to_thread.current_default_thread_limiter().total_tokens = number


def test_who_has_waited_for_the_database_for_seconds_is_told_to_come_again(tmp_path: Path) -> None:
    assert ServiceSettings("books.db", tmp_path).lock_patience <= 5
    with world(str(tmp_path / "books.db"), tmp_path, sweep=1000, lock_patience=0.01) as place:
        with held(tmp_path):
            refused = place.ask()
        assert (refused.status_code, refused.json()["kind"]) == (503, "ledger")
        assert "busy" in refused.json()["detail"]
        assert refused.headers["retry-after"]
        assert place.ask().status_code == 202


def test_what_the_service_does_by_itself_is_not_refused_for_those_who_ask(tmp_path: Path) -> None:
    with world(str(tmp_path / "books.db"), tmp_path, writers=1) as place:
        with place.service.writers.admitted():
            assert place.ask().status_code == 503
            with place.service.ledger.database.writing() as connection:
                connection.execute(text("UPDATE pcor_head SET entries = entries"))
        assert place.wait(place.ask().json()["id"])["release"] is not None


def test_what_the_service_does_by_itself_waits_longer_than_a_request(tmp_path: Path) -> None:
    with world(str(tmp_path / "books.db"), tmp_path, sweep=1000, lock_patience=7) as place:
        own = place.service.drawer._drawers
        waits: dict[bool, set[str]] = {True: set(), False: set()}

        def keep(_: Any, __: Any, statement: str, *___: Any) -> None:
            if statement.startswith("PRAGMA busy_timeout"):
                waits[threading.current_thread() in own].add(statement)

        event.listen(place.service.ledger.database.engine, "before_cursor_execute", keep)
        name = place.ask().json()["id"]
        until(lambda: place.moment(name) is not None)
    assert waits[False] == {"PRAGMA busy_timeout = 7000"}
    assert waits[True] == {f"PRAGMA busy_timeout = {PATIENCE * 1000}"}


@pytest.mark.parametrize("writers", [0, 25])
def test_threads_are_left_for_those_who_read(writers: int, tmp_path: Path) -> None:
    with pytest.raises(pcor.PcorError, match="writers must be at"):
        ServiceSettings("books.db", tmp_path, writers=writers)
