"""The queue of questions that are paid for: everybody has their turn, and nobody fills it."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from pcor.ledger import Claim
from pcor.ledger.leases import forget_lease
from pcor.service.core import worker
from pcor.service.core.fair_queue import FairQueue
from pcor.service.core.jobs import Job
from pcor.service.core.worker import Drawer
from tests.helpers.service_world import ANALYST, DATASET, OTHER, StoppedClock, World, world
from tests.helpers.waiting import DEADLINE, until


def test_an_empty_line_is_waited_for() -> None:
    line, found = FairQueue[str](), list[str]()
    waiting = threading.Thread(target=lambda: found.append(line.get()), daemon=True)
    waiting.start()
    line.put("ana", "a question")
    waiting.join(DEADLINE)
    assert found == ["a question"]


class Held:
    """A service whose draws wait until they are let go, and are counted."""

    def __init__(self, place: World, monkeypatch: pytest.MonkeyPatch) -> None:
        self.drawn: list[str] = []
        self.begun, self.go = threading.Event(), threading.Event()
        draw = place.service.drawer._draw

        def wait(job: Job) -> Any:
            self.begun.set()
            assert self.go.wait(DEADLINE)
            self.drawn.append(job.request.analyst)
            return draw(job)

        monkeypatch.setattr(place.service.drawer, "_draw", wait)


def test_nobody_waits_for_more_than_one_question_of_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with world(str(tmp_path / "books.db"), tmp_path) as place:
        held = Held(place, monkeypatch)
        for draw in range(1, 6):
            assert place.ask(ANALYST, draw=draw).status_code == 202
        assert held.begun.wait(DEADLINE)
        for draw in (1, 2):
            assert place.ask(OTHER, draw=draw).status_code == 202
        held.go.set()
        until(lambda: len(held.drawn) == 7)
    ana, ben = ANALYST, OTHER
    assert held.drawn == [ana, ana, ben, ana, ben, ana, ana]  # the second was next in line


def test_a_sweep_takes_up_everybodys_oldest_before_anybodys_second(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Drawer, "_sweep", lambda _: None)
    monkeypatch.setattr(worker, "SWEPT", 2)

    def forget(_: Job, claim: Claim) -> None:  # as a killed process does
        forget_lease(claim.lease)

    with world(str(tmp_path / "books.db"), tmp_path) as place:
        drawer = place.service.drawer
        with monkeypatch.context() as patched:
            patched.setattr(drawer, "take", forget)
            names = [place.ask(who, draw=1).json()["id"] for who in (OTHER, ANALYST)]
            names += [place.ask(ANALYST, draw=draw).json()["id"] for draw in (2, 3)]
        taken: list[str] = []
        monkeypatch.setattr(drawer, "take", lambda job, _: taken.append(job.id))
        assert drawer.sweep() == 2
        assert sorted(taken) == sorted(names[:2])


# -- how many -------------------------------------------------------------------------------------


def charges(place: World) -> int:
    return sum(entry.kind == "charge" for entry in place.service.ledger.entries())


def test_who_has_many_open_questions_is_refused_another_before_the_charge(tmp_path: Path) -> None:
    """Open is what is not shown: whether it is drawn makes no difference."""
    clock = StoppedClock()
    url = str(tmp_path / "books.db")
    with world(url, tmp_path, clock=clock, delay=2, tick=1, open_questions=2) as place:
        names = [place.ask(call=f"call {draw}", draw=draw).json()["id"] for draw in (1, 2)]
        until(lambda: all(place.moment(name) for name in names))  # both are drawn
        left = place.service.ledger.left(DATASET, ANALYST)
        refused = place.ask(call="the third", draw=3)
        assert (refused.status_code, refused.json()["kind"]) == (429, "too_many_open")
        assert refused.headers["retry-after"] == "2"
        assert place.service.ledger.left(DATASET, ANALYST) == left
        assert len(place.send("owner", "GET", "/v1/releases").json()["releases"]) == 2
        assert place.ask(draw=2).status_code == 202  # the same question again, under another key
        assert place.ask(OTHER, draw=3).status_code == 202
        clock.now += 3
        assert place.ask(call="the third", draw=3).status_code == 202
        assert charges(place) == 4


def test_two_who_ask_at_once_do_not_both_pass_the_limit(tmp_path: Path) -> None:
    with world(str(tmp_path / "books.db"), tmp_path, open_questions=1) as place:
        both = threading.Barrier(2, timeout=DEADLINE)

        def at_step(step: str) -> None:
            if step == "before charge":
                both.wait()

        place.service.at_step = at_step
        with ThreadPoolExecutor(2) as pool:
            said = [one.status_code for one in pool.map(lambda d: place.ask(draw=d), (1, 2))]
        assert sorted(said) == [202, 429]
        assert charges(place) == 1
