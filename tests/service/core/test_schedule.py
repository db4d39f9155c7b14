"""When an answer can be seen tells nothing about how long its search took.

Exact where it can be: the moments are computed, and the service is run with a clock of our own. The
check has power: an answer that is stored after its moment is seen to come later.
"""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

import pcor
from pcor.demo import PLANTED, salaries, salary_schema
from pcor.errors import LedgerError
from pcor.service.core.schedule import LEFT_PART, moment_for, next_moment, rounded_up, spare
from pcor.service.core.service import Service
from pcor.service.core.settings import ServiceSettings
from tests.helpers.service_world import (
    ANALYST,
    ORDINARY,
    OUTLIER,
    StoppedClock,
    World,
    registration,
    running,
    world,
)
from tests.helpers.waiting import until

times = st.integers(min_value=0, max_value=2**41)
spans = st.integers(min_value=1, max_value=10**6)


@given(asked=times, delay=spans, tick=spans, took=st.data())
def test_every_search_that_leaves_what_is_spare_is_seen_at_the_same_moment(
    asked: int, delay: int, tick: int, took: st.DataObject
) -> None:
    first, kept = rounded_up(asked + delay, tick), spare(delay)
    drawn = took.draw(st.integers(min_value=asked, max_value=max(asked, first - kept)))
    noted = drawn + took.draw(st.integers(min_value=0, max_value=kept - kept // LEFT_PART))
    if drawn + kept <= first:
        assert moment_for(asked, drawn=drawn, now=noted, delay=delay, tick=tick) == first


@given(
    asked=times,
    delay=spans,
    tick=spans,
    took=st.integers(0, 10**9),
    held_up=st.integers(0, 10**9),
)
def test_a_moment_is_a_tick_is_still_to_come_and_is_one_of_few(
    asked: int, delay: int, tick: int, took: int, held_up: int
) -> None:
    noted = asked + took + held_up
    moment = moment_for(asked, drawn=asked + took, now=noted, delay=delay, tick=tick)
    assert moment % tick == 0
    assert moment >= asked + took + spare(delay)
    assert moment >= noted + spare(delay) // LEFT_PART
    allowed = {rounded_up(asked + delay * 2**k, tick) for k in range(40)}
    assert moment in allowed


@given(asked=times, delay=spans, tick=spans, later=st.integers(0, 10**9))
def test_the_next_moment_is_after_now(asked: int, delay: int, tick: int, later: int) -> None:
    assert next_moment(asked, asked + later, delay=delay, tick=tick) > asked + later


def stored(service: Service, count: int) -> None:
    """Wait until so many answers are stored and their moments noted."""
    from sqlalchemy import func, select

    from pcor.service.core import tables

    def noted() -> bool:
        with service.ledger.database.reading() as connection:
            shown = connection.execute(select(func.count(tables.jobs.c.shown))).scalar()
        return shown == count

    until(noted)


@pytest.mark.parametrize("slow_for", [0.0, 1.9])
def test_a_fast_and_a_slow_search_appear_at_the_same_moment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, slow_for: float
) -> None:
    clock = StoppedClock()
    with world(str(tmp_path / "books.db"), tmp_path, clock=clock, delay=2, tick=1) as place:
        draw = place.service.drawer._draw

        def slow(job: Any) -> Any:
            if job.record == ORDINARY:
                clock.now += slow_for
            return draw(job)

        monkeypatch.setattr(place.service.drawer, "_draw", slow)
        names = [place.ask(record=OUTLIER).json()["id"]]
        stored(place.service, 1)
        names.append(place.ask(record=ORDINARY).json()["id"])
        stored(place.service, 2)

        def states(at: float) -> list[str]:
            clock.now = at
            return [
                place.send(ANALYST, "GET", f"/v1/releases/{name}").json()["state"] for name in names
            ]

        assert states(1_000_002.999) == ["running", "running"]
        assert states(1_000_003.0) == ["done", "done"]


def test_a_search_that_outlasts_the_delay_waits_for_the_next_moment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = StoppedClock()
    with world(str(tmp_path / "books.db"), tmp_path, clock=clock, delay=2, tick=1) as place:
        draw = place.service.drawer._draw

        def slow(job: Any) -> Any:
            clock.now += 2.8
            return draw(job)

        monkeypatch.setattr(place.service.drawer, "_draw", slow)
        name = place.ask().json()["id"]
        stored(place.service, 1)
        for at, state in ((1_000_004.9, "running"), (1_000_005.0, "done")):
            clock.now = at
            assert place.send(ANALYST, "GET", f"/v1/releases/{name}").json()["state"] == state


def test_fast_and_slow_records_of_the_demo_table_appear_at_the_same_moment(tmp_path: Path) -> None:
    """Real searches on the real clock of this machine, slowed a thousand times.

    The direct search meets its answer early for the first record, and has to see the whole space
    for one that is an outlier nowhere. How long either takes here does not matter: the delay is
    longer.
    """
    begun = time.time()

    def clock() -> float:
        return 1_000_000.25 + (time.time() - begun) / 1000 + moved[0]

    moved = [0.0]
    data = tmp_path / "data"
    data.mkdir()
    parquet.write_table(salaries(), data / "salaries.parquet")
    schema = salary_schema()
    table = pcor.Table(data / "salaries.parquet", schema)
    nowhere = no_outlier(table)
    with world(str(tmp_path / "books.db"), tmp_path, clock=clock, delay=2, tick=1) as place:
        body = registration(
            schema=schema.to_dict(),
            source="salaries.parquet",
            records=[PLANTED[0].record, nowhere],
            detector="histogram",
        )
        place.send("owner", "PUT", "/v1/datasets/salaries", json=body)
        place.send(
            "owner", "PUT", f"/v1/datasets/salaries/allotments/{ANALYST}", json={"epsilon": "1"}
        )
        names = [
            place.ask(dataset="salaries", record=record).json()["id"]
            for record in (PLANTED[0].record, nowhere)
        ]
        stored(place.service, 2)

        def seen() -> list[dict[str, Any]]:
            return [place.send(ANALYST, "GET", f"/v1/releases/{name}").json() for name in names]

        assert [one["state"] for one in seen()] == ["running", "running"]
        moved[0] = 1_000_003.0 - clock()
        fast, slow = seen()
        assert (fast["state"], slow["state"]) == ("done", "done")
        assert fast["release"] is not None
        assert slow["error"]["kind"] == "no_valid_context"


def no_outlier(table: pcor.Table) -> int:
    """Return a record in the middle, which no context makes an outlier."""
    values, counts = table.distribution((1 << table.schema.width) - 1)
    middle = values[counts.cumsum().searchsorted(counts.sum() // 2)]
    return int(table.keys_in((1 << table.schema.width) - 1, values[values == middle])[0])


def test_polling_sees_nothing_between_the_moments(tmp_path: Path) -> None:
    """On the real clock: whoever asks all the time learns of an answer at its moment, not before.

    The upper side cannot be tested without timing this machine; the lower side is exact.
    """
    with world(str(tmp_path / "books.db"), tmp_path, delay=0.6, tick=0.2) as place:
        asked = place.ask().json()
        while place.send(ANALYST, "GET", f"/v1/releases/{asked['id']}").json()["state"] != "done":
            pass
        seen = place.service.now()
        with place.service.ledger.database.reading() as connection:
            from pcor.service.core.jobs import find_job

            job = find_job(connection, asked["id"])
        assert job is not None
        assert job.shown is not None
        assert job.shown <= seen
        assert job.shown % 200 == 0
        assert job.shown >= job.begun + 600


@pytest.mark.parametrize("way", ["its address", "the history", "the same key"])
def test_an_answer_that_was_seen_stays_so_when_the_clock_is_set_back(
    tmp_path: Path, way: str
) -> None:
    """In a process that starts then, and in one that ran beside it."""
    clock = StoppedClock()

    def state(place: World) -> str:
        if way == "its address":
            return str(place.send(ANALYST, "GET", f"/v1/releases/{name}").json()["state"])
        if way == "the history":
            return str(place.send(ANALYST, "GET", "/v1/releases").json()["releases"][0]["state"])
        return {200: "done", 409: "running"}[place.ask(call="first").status_code]

    with world(str(tmp_path / "books.db"), tmp_path, clock=clock, delay=2, tick=1) as place:
        settings, keys = place.service.settings, place.keys
        with running(Service(settings, clock=clock), keys) as beside:
            name = str(place.ask(call="first").json()["id"])
            stored(place.service, 1)
            clock.now -= 3600
            assert state(place) == "running"  # nobody has seen it yet
            clock.now += 3603
            assert state(place) == "done"
            clock.now -= 3600
            assert state(beside) == "done"
            with running(Service(settings, clock=clock), keys) as started:
                assert state(started) == "done"


def test_an_answer_is_given_though_it_cannot_be_written_down_that_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = StoppedClock()
    with world(str(tmp_path / "books.db"), tmp_path, clock=clock, delay=2, tick=1) as place:
        name = place.ask().json()["id"]
        stored(place.service, 1)
        clock.now += 3

        def full(**_: Any) -> None:
            raise LedgerError("the ledger's disk is full")

        monkeypatch.setattr(place.service.ledger.database, "writing", full)
        assert place.send(ANALYST, "GET", f"/v1/releases/{name}").json()["state"] == "done"


def test_a_request_is_accepted_without_looking_at_the_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked = threading.Event()
    monkeypatch.setattr(pcor.Table, "record", lambda *_: looked.set())
    with world(str(tmp_path / "books.db"), tmp_path) as place:
        monkeypatch.setattr(place.service.drawer, "take", lambda *_: None)
        assert place.ask(record=OUTLIER).status_code == 202
        assert place.ask(record=ORDINARY).status_code == 202
    assert not looked.is_set()


def test_the_settings_survive_the_way_to_a_worker(tmp_path: Path) -> None:
    settings = ServiceSettings("postgresql://u:p@h/n", tmp_path, delay=3.5, tick=0.5)
    assert ServiceSettings.from_json(settings.to_json()) == settings
