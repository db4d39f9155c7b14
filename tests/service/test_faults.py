"""The service under fire: many clients, kill -9 anywhere, a full disk, a lost database.

What must hold whatever happens: no answer without a charge, no charge lost, no key charged twice,
no draw after an answer was stored, books that are whole, and a restart that finishes or repeats.
"""

from __future__ import annotations

import os
import random
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from sqlalchemy import event, text

import pcor
from pcor.audit import exact_distribution
from pcor.client import ServiceError
from pcor.errors import BudgetExceeded, LedgerError, SourceError
from pcor.ledger import Ledger
from pcor.releasing.run import read_and_draw
from pcor.service.core.events import note
from pcor.service.core.registry import check_registrations
from pcor.service.core.service import Service
from pcor.service.core.sources import SourceChanged
from tests.helpers.ledger_clients import lines
from tests.helpers.postgres import postgres
from tests.helpers.service_fire import EPSILON, Fire
from tests.helpers.service_world import (
    ANALYST,
    DATASET,
    OUTLIER,
    SCHEMA,
    World,
    columns,
    registration,
    world,
)
from tests.helpers.service_zygote import STEPS, Services
from tests.helpers.waiting import DEADLINE, until

# How often a process is killed at a random moment, on either database; PCOR_KILLS=200 for more.
KILLS = int(os.environ.get("PCOR_KILLS", "60")) // 2


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def backend(request: pytest.FixtureRequest) -> str:
    if request.param == "postgresql":
        postgres()
    return str(request.param)


@pytest.fixture(scope="module")
def services() -> Iterator[Services]:
    made = Services()
    yield made
    made.close()


@pytest.fixture
def fire(backend: str, tmp_path: Path, services: Services) -> Iterator[Fire]:
    url = str(tmp_path / "books.db") if backend == "sqlite" else postgres().new_database()
    made = Fire(url, tmp_path, services)
    yield made
    services.kill_all()
    made.ledger.close()


def test_64_clients_on_two_processes_get_exactly_what_the_budget_pays(fire: Fire) -> None:
    fire.budget(str(50 * Fraction(EPSILON)))
    for _ in range(2):
        fire.start()

    def one(number: int) -> dict[str, Any] | None:
        try:
            return fire.ask(number, f"client-{number}")
        except BudgetExceeded:
            return None

    with ThreadPoolExecutor(64) as pool:
        first = list(pool.map(one, range(1, 65)))
    assert sum(answer is not None for answer in first) == 50
    assert len(fire.check()) == 50
    assert fire.ledger.left(DATASET) == 0
    drawn = fire.drawn()
    assert set(drawn.values()) == {1}
    with ThreadPoolExecutor(16) as pool:
        assert list(pool.map(one, range(1, 65))) == first
    assert fire.drawn() == drawn


@pytest.mark.parametrize("step", STEPS)
def test_a_service_killed_at_a_step_finishes_or_repeats_after_a_restart(
    fire: Fire, step: str
) -> None:
    first = fire.start(step)
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(fire.ask, 1, "the key")
        fire.services.wait_for_death(first)
        left = fire.check()
        assert len(left) == (0 if step == "before charge" else 1)
        fire.start()
        answer = asked.result(DEADLINE)
    assert len(fire.check()) == 1
    assert fire.ask(1, "the key") == answer
    # A draw that was not stored is nobody's, and is made again; after the store none is.
    again = {"after draw": {2}, "before reply": {1, 2}}
    assert len(lines(fire.trace)) in again.get(step, {1})


def test_what_was_charged_is_finished_by_a_restart_though_nobody_asks(fire: Fire) -> None:
    first = fire.start("after charge")
    with pytest.raises(ServiceError):
        fire.client(patience=0.1).release(DATASET, OUTLIER, preset="medium")
    fire.services.wait_for_death(first)
    fire.start()
    until(lambda: any(entry.kind == "answer" for entry in fire.ledger.entries()))
    assert fire.client().history()[0]["dataset"] == DATASET
    assert fire.ask(1)["record"] == OUTLIER
    assert len(fire.check()) == 1


def test_a_second_draw_at_the_epsilon_of_these_kills_is_mostly_another() -> None:
    """Or no kill could show that a stored answer was replaced."""
    table = pcor.Table(pa.table(columns()), SCHEMA)
    detector = registration()["detector"]
    chances = exact_distribution(table, OUTLIER, EPSILON, detector=detector).values()
    assert sum(chance**2 for chance in chances) < Fraction(1, 7)


def test_random_kills_under_load_lose_nothing(fire: Fire) -> None:
    fire.budget("1000")
    numbers = random.Random(KILLS)  # noqa: S311 (when to kill)
    for _ in range(2):
        fire.start()
    over = threading.Event()
    answers: dict[int, dict[str, Any]] = {}

    def keep_asking(worker: int) -> None:
        draw = worker
        while not over.is_set():
            answers[draw] = fire.ask(draw, f"key-{draw}")
            draw += 6

    with ThreadPoolExecutor(6) as pool:
        working = [pool.submit(keep_asking, worker) for worker in range(1, 7)]
        for _ in range(KILLS):
            time.sleep(numbers.uniform(0.02, 0.3))
            fire.services.kill(numbers.choice(fire.services.running))
            fire.start()
        over.set()
        for work in working:
            work.result(DEADLINE)
    assert len(answers) >= 6
    assert len(fire.check()) == len(answers)
    repeated = {draw: fire.ask(draw, f"key-{draw}") for draw in answers}
    assert repeated == answers
    assert len(fire.check()) == len(answers)


# -- the database ---------------------------------------------------------------------------------


def test_a_full_disk_is_a_clear_503_and_loses_nothing(tmp_path: Path) -> None:
    with world(str(tmp_path / "books.db"), tmp_path) as place:
        done = place.wait(place.ask(call="before").json()["id"])
        full = True

        def no_more_pages(connection: Any, _: Any) -> None:
            if full:
                connection.execute("PRAGMA max_page_count = 1")

        engine = place.service.ledger.database.engine
        event.listen(engine, "connect", no_more_pages)
        engine.dispose()  # no connection from before is used
        big = "x" * 150
        for draw in range(2, 40):
            refused = place.ask(call=f"{big}{draw}", draw=draw)
            if refused.status_code != 202:
                break
        assert refused.status_code == 503
        assert "disk is full" in refused.json()["detail"]
        assert refused.headers["content-type"] == "application/problem+json"
        assert place.ask(call="before").json() == done
        full = False
        engine.dispose()
        again = place.wait(place.ask(call="after", draw=50).json()["id"])
        assert again["release"] is not None
        for one in place.send(ANALYST, "GET", "/v1/releases").json()["releases"]:
            assert place.wait(one["id"])["release"] is not None
        assert place.service.ledger.verify().ok


# -- what goes away and comes back ----------------------------------------------------------------


def test_a_database_that_is_gone_is_a_clear_503_and_comes_back(tmp_path: Path) -> None:
    server = postgres()
    with world(server.new_database(), tmp_path) as place:
        done = place.wait(place.ask(call="before").json()["id"])
        server.stop()
        try:
            refused = [place.ask(call="during", draw=2), place.api.get("/v1/readiness")]
            alive = place.api.get("/v1/health").status_code
        finally:
            server.start()
        assert [one.status_code for one in refused] == [503, 503]
        assert alive == 200
        for one in refused:
            assert one.json()["kind"] == "ledger"
            assert one.headers["retry-after"]
        assert place.ask(call="before").json() == done
        assert place.wait(place.ask(call="during", draw=2).json()["id"])["release"]
        assert place.service.ledger.verify().ok


def test_a_database_lost_while_a_search_runs_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = postgres()
    with world(server.new_database(), tmp_path) as place:
        begun, gone = threading.Event(), threading.Event()
        draw = place.service.drawer._draw

        def slow(job: Any) -> Any:
            outcome = draw(job)
            begun.set()
            gone.wait(DEADLINE)
            return outcome

        store, failed = place.service.ledger.store, threading.Event()

        def watched(*words: Any) -> Any:
            try:
                return store(*words)
            except LedgerError:
                failed.set()
                raise

        monkeypatch.setattr(place.service.drawer, "_draw", slow)
        monkeypatch.setattr(place.service.ledger, "store", watched)
        name = place.ask(draw=3).json()["id"]
        assert begun.wait(DEADLINE)
        server.stop()
        gone.set()
        assert failed.wait(DEADLINE)
        server.start()
        assert place.wait(name)["release"]["record"] == OUTLIER
        assert place.service.ledger.verify().ok


def test_a_source_that_fails_is_no_answer_and_is_tried_again_later_each_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pcor.service.core import draws

    with world(str(tmp_path / "books.db"), tmp_path, sweep=1000) as place:
        drawer, tries = place.service.drawer, 0
        ahead = 0
        monkeypatch.setattr(drawer, "_clock", lambda: place.service.now() + ahead)

        def failing(*words: Any, **options: Any) -> Any:
            nonlocal tries
            tries += 1
            if tries <= 5:  # more often than a failure of ours would be tried
                raise SourceError("the disk is full")
            return read_and_draw(*words, **options)

        monkeypatch.setattr(draws, "read_and_draw", failing)
        name = place.ask().json()["id"]
        waits = []
        for _ in range(5):
            until(lambda: not drawer._taken)
            assert place.send(ANALYST, "GET", f"/v1/releases/{name}").json()["state"] == "running"
            assert drawer.sweep() == 0  # not at once
            wait, end = drawer._backoff._waits[name]
            waits.append(wait)
            ahead = end - place.service.now()
            assert drawer.sweep() == 1
        assert waits == [5, 10, 20, 40, 80]
        ahead = 0
        assert place.wait(name)["release"] is not None
        kinds = [entry.kind for entry in place.service.ledger.entries()]
        assert (kinds.count("charge"), kinds.count("answer")) == (1, 1)


def test_a_question_whose_recovery_fails_is_taken_up_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pcor.service.core import worker as drawing

    monkeypatch.setattr(drawing.Drawer, "_sweep", lambda _: None)  # no sweep but those below
    with world(str(tmp_path / "books.db"), tmp_path) as place:
        draw, drawer = drawing.Drawer._draw, place.service.drawer
        lost = iter([SourceChanged()])

        def once_lost(self: Any, job: Any) -> Any:
            for error in lost:
                raise error
            return draw(self, job)

        def full(*_: Any, **__: Any) -> None:
            raise LedgerError("the ledger's disk is full")

        monkeypatch.setattr(drawing.Drawer, "_draw", once_lost)
        name = place.ask().json()["id"]
        until(lambda: not drawer._taken)
        drawer._backoff.forget(name)  # as after its wait
        with monkeypatch.context() as patched:
            patched.setattr(drawing, "note", full)
            assert drawer.sweep() == 0
        drawer._backoff.forget(name)
        assert drawer.sweep() == 1
        assert place.wait(name)["release"] is not None


def test_the_books_are_closed_after_the_last_sweep(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = postgres().new_database()
    with world(url, tmp_path, sweep=0.05, patience=DEADLINE) as place:
        ledger, drawer = place.service.ledger, place.service.drawer
        sweep, close = drawer.sweep, ledger.close
        inside, events = threading.Event(), list[str]()

        def slow() -> int:
            with ledger.database.reading():
                inside.set()
                drawer._stopping.wait(DEADLINE)
                time.sleep(0.1)  # in which whoever does not wait for the sweep closes the books
            events.append("swept")
            return sweep()

        def closing() -> None:
            events.append("closed")
            close()

        monkeypatch.setattr(drawer, "sweep", slow)
        monkeypatch.setattr(ledger, "close", closing)
        assert inside.wait(DEADLINE)
    assert events[-2:] == ["swept", "closed"]
    assert not drawer._sweeper.is_alive()


def test_a_question_that_comes_while_the_service_ends_is_left_to_the_next(tmp_path: Path) -> None:
    with world(str(tmp_path / "books.db"), tmp_path) as place:
        place.service.drawer.stop()
        name = place.ask().json()["id"]
        following = Service(place.service.settings)
        following.drawer.start()
        assert place.wait(name)["release"]["record"] == OUTLIER
        following.close()


def test_a_changed_byte_in_the_audit_log_is_found(tmp_path: Path) -> None:
    with world(str(tmp_path / "books.db"), tmp_path) as place:
        _tamper(place, "UPDATE pcor_service_events SET actor = 'mallory' WHERE number = 2")
        checked = place.send("auditor", "GET", "/v1/audit/verification").json()
        assert checked["problems"] == ["event 2 was changed"]


@pytest.mark.parametrize(
    "statement",
    [
        """UPDATE pcor_service_datasets SET body = replace(body, '"0.05"', '"0.06"')""",
        "DELETE FROM pcor_service_datasets",
    ],
    ids=["changed", "removed"],
)
def test_a_registration_that_is_not_what_was_registered_is_found(
    tmp_path: Path, statement: str
) -> None:
    with world(str(tmp_path / "books.db"), tmp_path) as place:
        assert place.send("auditor", "GET", "/v1/audit/verification").json()["ok"]
        _tamper(place, statement)
        checked = place.send("auditor", "GET", "/v1/audit/verification").json()
        said = f"version 1 of dataset {DATASET!r} is not what was registered"
        assert checked["problems"] == [said]
        assert not place.service.checks.check().events


@pytest.mark.parametrize(
    ("name", "version"), [(f"'{DATASET}'", 2), ("'another'", 1)], ids=["newer", "another"]
)
def test_a_registration_that_nobody_made_is_found(tmp_path: Path, name: str, version: int) -> None:
    """The newest version is the one that questions are asked of."""
    body = """replace(body, '"0.05"', '"5"')"""
    with world(str(tmp_path / "books.db"), tmp_path) as place:
        _tamper(
            place,
            "INSERT INTO pcor_service_datasets (name, version, made, body) "  # noqa: S608
            f"SELECT {name}, {version}, made, {body} FROM pcor_service_datasets",
        )
        checked = place.send("auditor", "GET", "/v1/audit/verification").json()
        said = f"version {version} of dataset {name} was never registered"
        assert checked["problems"] == [said]
        assert not place.service.checks.check().events


def test_an_event_of_a_version_that_wrote_no_hash_names_what_was_registered(tmp_path: Path) -> None:
    with world(str(tmp_path / "books.db"), tmp_path) as place:
        _tamper(
            place,
            "INSERT INTO pcor_service_datasets (name, version, made, body) "
            "SELECT 'older', version, made, body FROM pcor_service_datasets",
        )
        with place.service.ledger.database.writing() as connection:
            note(connection, "dataset_registered", "k", {"dataset": "older", "version": 1}, now=0)
            assert check_registrations(connection) == []


def test_a_removed_last_event_is_found(tmp_path: Path) -> None:
    with world(str(tmp_path / "books.db"), tmp_path) as place:
        _tamper(
            place,
            "DELETE FROM pcor_service_events WHERE number = "
            "(SELECT max(number) FROM pcor_service_events)",
        )
        assert not place.send("auditor", "GET", "/v1/audit/verification").json()["ok"]


def _tamper(place: World, statement: str) -> None:
    with place.service.ledger.database.writing() as connection:
        connection.execute(text(statement))


def test_the_ledger_of_a_service_is_a_ledger_like_any_other(tmp_path: Path) -> None:
    with world(str(tmp_path / "books.db"), tmp_path) as place:
        place.wait(place.ask().json()["id"])
    assert Ledger(tmp_path / "books.db", create=False).verify().ok
