"""Asking again tells nothing about whether the draw has ended.

Not timed: what is compared is the work. While a draw runs and once its answer is stored, before it
may be seen, the same request runs the same statements on the database, and a repeat waits for
nobody's lock. `python -m bench.timing` measures what is left.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from pcor.service.core.jobs import Job, find_job
from pcor.service.core.worker import Drawer
from tests.helpers.page_person import Person
from tests.helpers.service_world import (
    ANALYST,
    DATASET,
    OUTLIER,
    STOPPED,
    StoppedClock,
    World,
    statements,
    wait_for_news,
    world,
)
from tests.helpers.waiting import DEADLINE, until

DELAY, TICK = 2, 1
# The clock stands still; the moments of a question are 2.75, 4.75, 8.75, ... s later.
FIRST, SECOND = 1_000_003_000, 1_000_005_000


class Held:
    """A service whose draws wait until they are let go."""

    def __init__(self, place: World, clock: StoppedClock, monkeypatch: pytest.MonkeyPatch) -> None:
        self.place, self.clock = place, clock
        self._begun, self._go = threading.Event(), threading.Event()
        drawer = place.service.drawer
        draw = drawer._draw

        def wait(job: Job) -> Any:
            self._begun.set()
            assert self._go.wait(DEADLINE)
            return draw(job)

        monkeypatch.setattr(drawer, "_draw", wait)

    def let_go(self, name: str) -> Job:
        """Let the draw end; return the job once its moment is noted."""
        self.end()
        until(lambda: self.job(name).shown is not None)
        return self.job(name)

    def end(self) -> None:
        """Hold no draw any longer."""
        self._go.set()

    def job(self, name: str) -> Job:
        """Return a job as it is kept."""
        with self.place.service.ledger.database.reading() as connection:
            found = find_job(connection, name)
        assert found is not None
        return found

    def work(self, action: Callable[[], Any]) -> list[str]:
        """Return the statements that a request runs."""
        drawer = self.place.service.drawer
        until(lambda: self._begun.is_set() or not drawer._taken)  # what it does first is its own
        with statements(self.place.service) as said:
            action()
        return said


@pytest.fixture
def held(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Held]:
    clock = StoppedClock()
    # No sweep by itself: what is counted is what requests do.
    monkeypatch.setattr(Drawer, "_sweep", lambda _: None)
    with world(url, tmp_path, clock=clock, delay=DELAY, tick=TICK) as place:
        made = Held(place, clock, monkeypatch)
        yield made
        made.end()  # or the service would give the draw all the patience that it has


def repeat(place: World) -> Any:
    """Send the first question again, word for word."""
    again = place.ask(call="first")
    assert (again.status_code, again.json()["kind"]) == (409, "still_running")
    return again


def other_key(place: World) -> Any:
    """Ask the same question under a key of its own."""
    again = place.ask()
    assert again.status_code == 202
    return again


def ready_anew(place: World) -> Any:
    wait_for_news(place)
    return place.api.get("/v1/readiness")


WAYS: dict[str, Callable[[World, str], Any]] = {
    "the same key": lambda place, _: repeat(place),
    "another key": lambda place, _: other_key(place),
    "its address": lambda place, name: place.send(ANALYST, "GET", f"/v1/releases/{name}"),
    "the history": lambda place, _: place.send(ANALYST, "GET", "/v1/releases"),
    "its plan": lambda place, _: place.send(
        ANALYST,
        "POST",
        "/v1/plans",
        json={"dataset": DATASET, "record": OUTLIER, "preset": "medium"},
    ),
    "the page that waits": lambda place, name: Person(place, ANALYST).get(f"/releases/{name}"),
    "the page that asks": lambda place, _: Person(place, ANALYST).get(
        f"/ask?dataset={DATASET}&record={OUTLIER}&preset=medium"
    ),
    "readiness": lambda place, _: ready_anew(place),
}


@pytest.mark.parametrize("way", WAYS)
def test_asking_again_is_the_same_work_while_the_draw_runs_and_once_it_is_stored(
    held: Held, way: str
) -> None:
    name = held.place.ask(call="first").json()["id"]
    WAYS[way](held.place, name)  # the first time may prepare what is kept
    running = held.work(lambda: WAYS[way](held.place, name))
    held.let_go(name)
    assert held.work(lambda: WAYS[way](held.place, name)) == running
    assert running


@pytest.mark.parametrize("way", ["the same key", "its address"])
def test_a_repeat_reads_one_row_and_takes_no_lock(held: Held, way: str) -> None:
    name = held.place.ask(call="first").json()["id"]
    of_key, of_job = (
        one
        for one in held.work(lambda: WAYS[way](held.place, name))
        if one.startswith("SELECT") and "pg_catalog" not in one
    )
    assert "pcor_service_keys" in of_key
    assert "pcor_service_jobs" in of_job
    for word in ("pcor_entries", "pcor_head", "pcor_running", "FOR UPDATE"):
        assert word not in of_job


def test_a_repeat_is_answered_while_somebody_else_holds_the_books(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = StoppedClock()
    url = str(tmp_path / "books.db")
    with world(url, tmp_path, clock=clock, delay=DELAY, tick=TICK, sweep=1000) as place:
        held = Held(place, clock, monkeypatch)
        name = place.ask(call="first").json()["id"]
        with place.service.ledger.database.writing():
            answers: list[Any] = []
            asking = threading.Thread(target=lambda: answers.append(repeat(place)), daemon=True)
            asking.start()
            asking.join(DEADLINE)
            assert answers
        held.let_go(name)


def test_a_repeat_does_not_take_up_what_was_left(
    held: Held, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only the sweep does; or whoever repeats would choose when a draw begins."""
    with monkeypatch.context() as patched:
        # As after a crash: it is charged, and nobody draws.
        patched.setattr(held.place.service.drawer, "take", lambda _job, claim: forget(claim))
        name = held.place.ask(call="first").json()["id"]
    before = held.job(name)
    held.clock.now += 0.5
    repeat(held.place)
    assert held.job(name) == before
    assert held.place.service.drawer.sweep() == 1
    assert held.job(name).begun == int(held.clock.now * 1000)
    held.let_go(name)


def forget(claim: Any) -> None:
    """Give up a claim as a killed process does."""
    from pcor.ledger.leases import forget_lease

    forget_lease(claim.lease)


# -- the moment -----------------------------------------------------------------------------------


def slow_books(held: Held, monkeypatch: pytest.MonkeyPatch, wait: float) -> None:
    """Let the drawer wait so many seconds for the books' lock, the one time that it takes it."""
    database = held.place.service.ledger.database
    writing, left = database.writing, iter([wait])

    @contextmanager
    def late() -> Iterator[Any]:
        with writing() as connection:
            held.clock.now += next(left)
            yield connection

    monkeypatch.setattr(database, "writing", late)


@pytest.mark.parametrize("wait", [0.0, 2.5, 2.76, 4.6, 5.1])
def test_the_moment_is_still_to_come_when_it_is_noted(
    held: Held, monkeypatch: pytest.MonkeyPatch, wait: float
) -> None:
    """However long the note waits for the lock; otherwise the answer is seen off the tick."""
    name = held.place.ask(call="first").json()["id"]
    slow_books(held, monkeypatch, wait)
    shown = held.let_go(name).shown
    assert shown is not None
    assert shown > held.clock.now * 1000
    assert shown % (TICK * 1000) == 0


@pytest.mark.parametrize("wait", [0.0, 0.2, 0.39])
@pytest.mark.parametrize(
    ("drawn", "moment"), [(0.0, FIRST), (2.25, FIRST), (2.26, SECOND), (4.25, SECOND)]
)
def test_who_holds_up_the_books_for_a_while_moves_no_answer_to_another_moment(
    held: Held, monkeypatch: pytest.MonkeyPatch, drawn: float, moment: int, wait: float
) -> None:
    """Or a burst of requests would ask: was it drawn by now?"""
    name = held.place.ask(call="first").json()["id"]
    slow_books(held, monkeypatch, wait)
    held.clock.now = STOPPED + drawn
    assert held.let_go(name).shown == moment
