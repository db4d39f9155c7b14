"""The ledger under fire: many clients at once, kill -9 anywhere, a full disk, a lost database.

What must hold whatever happens: no answer without a charge, no charge lost, no key charged twice,
no draw for a key after its answer was stored, books that are whole, and a way to finish.
"""

from __future__ import annotations

import json
import random
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event, text

from pcor.errors import BudgetExceeded, LedgerError
from pcor.ledger import Ledger
from tests.helpers.ledger_clients import (
    DATASET,
    EACH,
    STEPS,
    ask,
    ask_and_die,
    ask_and_die_at_statement,
    ask_at_once,
    ask_without_end,
    lines,
    note,
    request,
    start,
)
from tests.helpers.postgres import postgres


@pytest.fixture
def ledger(url: str) -> Iterator[Ledger]:
    opened = Ledger(url)
    opened.set_budget(DATASET, 100)
    yield opened
    opened.close()


def count(ledger: Ledger, kind: str) -> Counter[str]:
    """Return how many entries of a kind each key has."""
    return Counter(entry.key for entry in ledger.entries() if entry.kind == kind)


def check_everything(ledger: Ledger, trace: Path) -> None:
    """Assert what must hold at any moment."""
    charges, answers = count(ledger, "charge"), count(ledger, "answer")
    assert set(charges.values()) <= {1}
    assert set(answers.values()) <= {1}
    assert answers.keys() <= charges.keys()
    each = ledger.status(DATASET).spent["ocdp"]
    assert each == Fraction(EACH) * len(charges)
    assert ledger.verify().problems == ()
    seen: dict[str, str] = {}
    for what, key, *bits in lines(trace):
        if what == "answered":
            assert key in answers, "an answer was given out before it was stored"
            assert seen.setdefault(key, bits[0]) == bits[0], "two answers for one key"
        else:
            assert key in charges, "something was drawn before it was charged"
            assert key not in seen, "something was drawn again after it was answered"


@pytest.mark.parametrize(
    "broken",
    [
        [("drawn", "never charged")],
        [("answered", "open", "11111")],
        [("answered", "done", "00000")],
        [("answered", "done", "11111"), ("drawn", "done")],
    ],
    ids=["drawn first", "given out first", "two answers", "drawn again"],
)
def test_the_check_of_this_file_sees_a_broken_ledger(
    tmp_path: Path, trace: Path, broken: list[tuple[str, ...]]
) -> None:
    ledger = Ledger(tmp_path / "books.db")
    ledger.set_budget(DATASET, 1)
    ledger.charge(request("open"))
    ask(ledger, "done", trace)
    check_everything(ledger, trace)
    for words in broken:
        note(trace, *words)
    with pytest.raises(AssertionError):
        check_everything(ledger, trace)


# -- many at once ---------------------------------------------------------------------------------


def test_sixty_four_clients_spend_a_budget_for_fifty_exactly(
    ledger: Ledger, url: str, trace: Path, tmp_path: Path
) -> None:
    ledger.set_budget(DATASET, 50 * Fraction(EACH))
    halves = [[f"k{number}" for number in range(first, first + 32)] for first in (0, 32)]
    outs = [tmp_path / "first", tmp_path / "second"]
    clients = [start(ask_at_once, url, trace, h, o) for h, o in zip(halves, outs, strict=True)]
    for client in clients:
        client.join()
    got = [tuple(row) for out in outs for row in json.loads(out.read_text())]
    assert Counter(refused for _, refused, _ in got) == {None: 50, "budget_exceeded": 14}
    assert all(same for _, _, same in got)
    assert ledger.left(DATASET) == 0
    assert sum(count(ledger, "answer").values()) == 50
    assert sum(what == "drawn" for what, *_ in lines(trace)) == 50
    check_everything(ledger, trace)


def test_many_clients_with_one_key_draw_once(
    ledger: Ledger, url: str, trace: Path, tmp_path: Path
) -> None:
    outs = [tmp_path / "first", tmp_path / "second"]
    clients = [start(ask_at_once, url, trace, ["k"] * 8, out) for out in outs]
    for client in clients:
        client.join()
    got = [tuple(row) for out in outs for row in json.loads(out.read_text())]
    assert {refused for _, refused, _ in got} <= {None, "still_running"}
    assert any(refused is None for _, refused, _ in got)
    assert all(same for _, _, same in got)
    assert sum(what == "drawn" for what, *_ in lines(trace)) == 1
    check_everything(ledger, trace)


def test_two_processes_may_make_the_same_ledger_at_once(
    url: str, trace: Path, tmp_path: Path
) -> None:
    outs = [tmp_path / str(number) for number in range(4)]
    clients = [start(ask_at_once, url, trace, ["k"], out) for out in outs]
    for client in clients:
        client.join()
    # Each found or made a ledger; none has a budget in it.
    assert [client.exitcode for client in clients] == [1] * 4
    assert Ledger(url, create=False).verify().ok


# -- kill -9 --------------------------------------------------------------------------------------


@pytest.mark.parametrize("step", STEPS)
def test_a_request_killed_at_any_step_is_charged_once_and_finished_by_its_key(
    ledger: Ledger, url: str, trace: Path, step: str
) -> None:
    killed = start(ask_and_die, url, trace, "k", step)
    killed.join()
    assert killed.exitcode == -9
    charged, answered = count(ledger, "charge")["k"], count(ledger, "answer")["k"]
    assert (charged, answered) == (step != "before charge", step == "after store")
    check_everything(ledger, trace)
    ask(ledger, "k", trace)
    assert (count(ledger, "charge")["k"], count(ledger, "answer")["k"]) == (1, 1)
    draws = sum(what == "drawn" for what, *_ in lines(trace))
    # Only a draw that nobody has seen and nobody can see any more is made anew.
    assert draws == (2 if step == "after draw" else 1)
    check_everything(ledger, trace)


def test_a_request_killed_at_any_word_to_the_database_is_finished_by_its_key(
    ledger: Ledger, url: str, trace: Path
) -> None:
    number = 0
    while True:
        number += 1
        killed = start(ask_and_die_at_statement, url, trace, f"k{number}", number)
        killed.join()
        if killed.exitcode == 0:
            break
        assert killed.exitcode == -9
        drawn = ["drawn", f"k{number}"] in lines(trace)
        assert drawn <= count(ledger, "charge")[f"k{number}"] <= 1
        ask(ledger, f"k{number}", trace)
    assert number > 20  # a request speaks to the database that often
    assert len(count(ledger, "answer")) == number
    check_everything(ledger, trace)


def test_forty_random_kills_under_load_lose_and_repeat_nothing(
    ledger: Ledger, url: str, trace: Path
) -> None:
    numbers = random.Random()  # noqa: S311 (when to kill; any choice must pass)
    keys = 400
    clients = [start(ask_without_end, url, trace, keys, number) for number in range(3)]
    for kill in range(40):
        # Let somebody get somewhere, then a little further.
        before = len(lines(trace))
        while len(lines(trace)) < before + numbers.randrange(1, 4):
            time.sleep(0.001)
        time.sleep(numbers.uniform(0, 0.03))
        place = numbers.randrange(len(clients))
        clients[place].kill()
        clients[place].join()
        clients[place] = start(ask_without_end, url, trace, keys, 100 + kill)
    for client in clients:
        client.kill()
        client.join()
    check_everything(ledger, trace)
    unfinished = count(ledger, "charge") - count(ledger, "answer")
    for key in unfinished:
        ask(ledger, key, trace)
    check_everything(ledger, trace)
    assert count(ledger, "charge") == count(ledger, "answer")
    draws = Counter(key for what, key, *_ in lines(trace) if what == "drawn")
    # Each kill can lose one draw that nobody saw, and each lost one is made again.
    assert sum(draws.values()) - len(draws) <= 43


# -- the database fails ---------------------------------------------------------------------------


def fill_disk(ledger: Ledger) -> None:
    """Leave no room for an entry: no more pages in SQLite, the server's error in PostgreSQL."""
    if ledger.database.is_file:
        event.listen(ledger.database.engine, "begin", _no_more_pages)
        return
    with ledger.database.writing() as connection:
        connection.execute(
            text(
                "CREATE FUNCTION pcor_full() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE "
                "EXCEPTION 'could not extend file' USING ERRCODE = '53100'; END $$"
            )
        )
        connection.execute(
            text("CREATE TRIGGER full_ BEFORE INSERT ON pcor_entries EXECUTE FUNCTION pcor_full()")
        )


def make_room(ledger: Ledger) -> None:
    if ledger.database.is_file:
        event.remove(ledger.database.engine, "begin", _no_more_pages)
        return
    with ledger.database.writing() as connection:
        connection.execute(text("DROP FUNCTION pcor_full CASCADE"))


def _no_more_pages(connection: Any) -> None:
    pages = connection.exec_driver_sql("PRAGMA page_count").scalar()
    connection.exec_driver_sql(f"PRAGMA max_page_count = {pages}")


def charge_until_full(ledger: Ledger) -> int:
    """Charge until the disk is full; a few entries may still fit into the last page."""
    for fitted in range(1000):
        try:
            ledger.charge(request(f"filler{fitted}"))
        except LedgerError as refused:
            said = str(refused)
            break
    assert said.startswith("the ledger's disk is full; make room. Nothing was released")
    return fitted


def test_a_full_disk_refuses_a_charge_and_loses_nothing(ledger: Ledger, trace: Path) -> None:
    fill_disk(ledger)
    fitted = charge_until_full(ledger)
    make_room(ledger)
    assert len(count(ledger, "charge")) == fitted
    assert ledger.verify().ok
    ask(ledger, f"filler{fitted}", trace)
    assert len(count(ledger, "charge")) == fitted + 1
    assert lines(trace)[0][0] == "drawn"


class FullBeforeStore(Ledger):
    """The disk fills up between the draw and its storing."""

    def store(self, *given: Any, **options: Any) -> Mapping[str, Any]:
        fill_disk(self)
        if self.database.is_file:
            charge_until_full(self)
        return super().store(*given, **options)


def test_a_full_disk_after_the_draw_keeps_the_charge_and_hides_the_draw(
    ledger: Ledger, url: str, trace: Path
) -> None:
    full = FullBeforeStore(url)
    with pytest.raises(LedgerError, match="disk is full") as refused:
        ask(full, "k", trace)
    assert "context" not in str(refused.value)
    make_room(full)
    assert (count(ledger, "charge")["k"], count(ledger, "answer")["k"]) == (1, 0)
    ask(ledger, "k", trace)
    assert (count(ledger, "charge")["k"], count(ledger, "answer")["k"]) == (1, 1)
    check_everything(ledger, trace)


class StoppedBeforeStore(Ledger):
    """The database server crashes between the draw and its storing."""

    def store(self, *given: Any, **options: Any) -> Mapping[str, Any]:
        postgres().stop()
        return super().store(*given, **options)


def test_a_server_that_stops_after_the_draw_keeps_the_charge(trace: Path) -> None:
    server = postgres()
    place = server.new_database()
    ledger, stopped = Ledger(place), StoppedBeforeStore(place)
    ledger.set_budget(DATASET, 1)
    try:
        with pytest.raises(LedgerError, match=r"cannot be reached.*the same key"):
            ask(stopped, "k", trace)
        with pytest.raises(LedgerError, match="cannot be reached"):
            ledger.left(DATASET)
    finally:
        server.start()
    assert (count(ledger, "charge")["k"], count(ledger, "answer")["k"]) == (1, 0)
    ask(ledger, "k", trace)
    assert (count(ledger, "charge")["k"], count(ledger, "answer")["k"]) == (1, 1)
    check_everything(ledger, trace)


def test_a_server_that_cannot_be_reached_is_said_in_our_words(tmp_path: Path) -> None:
    with pytest.raises(LedgerError, match="cannot be reached") as refused:
        Ledger(f"postgresql://somebody:secret@/books?host={tmp_path}")
    assert "secret" not in str(refused.value)


def test_a_file_taken_away_is_said_in_our_words(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    ledger = Ledger(folder / "books.db")
    folder.rename(tmp_path / "moved")
    with pytest.raises(LedgerError, match="cannot be opened"):
        ledger.set_budget(DATASET, 1)


def test_a_writer_that_never_ends_is_waited_for_and_then_said(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pcor.ledger.database.PATIENCE", 0.001)
    if ledger.database.is_file:
        monkeypatch.setattr(ledger, "database", Ledger(_path(ledger)).database)
    with ledger.database.writing() as connection:
        connection.execute(text("UPDATE pcor_head SET entries = entries"))
        with pytest.raises(LedgerError, match="busy"):
            ledger.charge(request("k"))
    with pytest.raises(BudgetExceeded):
        ledger.charge(request("k", epsilon=101))


def _path(ledger: Ledger) -> str:
    return str(ledger.database.engine.url.database)
