"""Questions whose file is replaced after their charge: nothing is lost, and the owner decides."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pcor.client import Client, ServiceError
from pcor.errors import LedgerError, NoValidContext, QuestionClosed, SchemaError
from pcor.ledger import Claim, Request
from pcor.ledger.database import FULL
from pcor.ledger.leases import forget_lease
from pcor.service.core.jobs import Job
from pcor.service.core.registry import Registration
from pcor.service.core.worker import Drawer
from tests.helpers.page_person import Person
from tests.helpers.service_world import (
    ANALYST,
    DATASET,
    SOURCE,
    StoppedClock,
    World,
    statements,
    world,
)
from tests.helpers.waiting import DEADLINE, until

WRITES = ("INSERT", "UPDATE", "DELETE", "BEGIN IMMEDIATE")
PAGES = Path(__file__).parents[3] / "docs" / "errors"


class Replaced:
    """A service that stands still, with a question that a killed process left."""

    def __init__(self, place: World, clock: StoppedClock, monkeypatch: pytest.MonkeyPatch) -> None:
        self.place, self.clock, self.drawer = place, clock, place.service.drawer
        self.file = place.service.settings.data / SOURCE
        self.rows = self.file.read_bytes()
        self._monkeypatch = monkeypatch

    def left(self, **question: Any) -> str:
        """Ask a question that is charged and that nobody draws."""

        def killed(_: Job, claim: Claim) -> None:
            forget_lease(claim.lease)

        with self._monkeypatch.context() as patched:
            patched.setattr(self.drawer, "take", killed)
            return str(self.place.ask(**question).json()["id"])

    def replace(self) -> None:
        """Put another file into the place of the registered one."""
        self.file.write_bytes(b"another file")
        self.place.service.tables._kept.clear()

    def restore(self) -> None:
        """Put the registered file back."""
        self.file.write_bytes(self.rows)

    def look(self, name: str, who: str = ANALYST) -> dict[str, Any]:
        """Return what is said of a release."""
        found: dict[str, Any] = self.place.send(who, "GET", f"/v1/releases/{name}").json()
        return found

    def writes(self, action: Callable[[], Any]) -> list[str]:
        """Return the statements by which something is written."""
        with statements(self.place.service) as said:
            action()
        return [one for one in said if one.startswith(WRITES)]


@pytest.fixture
def replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Replaced]:
    clock = StoppedClock()
    monkeypatch.setattr(Drawer, "_sweep", lambda _: None)  # no sweep but those of the tests
    with world(str(tmp_path / "books.db"), tmp_path, clock=clock, delay=2, tick=1) as place:
        yield Replaced(place, clock, monkeypatch)


def test_a_question_whose_file_is_gone_is_answered_when_the_file_is_back(
    replaced: Replaced,
) -> None:
    name = replaced.left()
    replaced.replace()
    assert replaced.drawer.sweep() == 0
    replaced.clock.now += 600
    assert replaced.look(name)["state"] == "waiting"
    replaced.restore()
    assert replaced.drawer.sweep() == 1
    until(lambda: replaced.place.moment(name) is not None)
    assert replaced.look(name)["state"] == "running"  # its moments are counted anew
    replaced.clock.now += 3
    assert replaced.look(name)["release"] is not None
    kinds = [entry.kind for entry in replaced.place.service.ledger.entries()]
    assert (kinds.count("charge"), kinds.count("answer")) == (1, 1)


def test_a_question_whose_registration_is_gone_keeps_no_other_from_its_answer(
    replaced: Replaced,
) -> None:
    first, second = replaced.left(), replaced.left(draw=2)
    found = replaced.drawer._registration

    def lost(job: Job) -> Registration:
        if job.id == first:
            raise SchemaError("the rules of today refuse it")
        return found(job)

    replaced.drawer._registration = lost  # type: ignore[method-assign]
    assert replaced.drawer.sweep() == 1
    until(lambda: replaced.place.moment(second) is not None)
    assert replaced.place.moment(first) is None


def test_a_question_whose_file_is_replaced_is_written_to_once_however_long_it_waits(
    replaced: Replaced,
) -> None:
    replaced.left()
    replaced.replace()
    assert replaced.writes(replaced.drawer.sweep)  # the note for analyst and owner
    later: list[str] = []
    for _ in range(12):
        replaced.clock.now += 601
        later += replaced.writes(replaced.drawer.sweep)
    assert later == []


def test_a_file_that_is_replaced_while_a_question_waits_in_line_puts_it_off(
    replaced: Replaced, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, go = threading.Event(), threading.Event()
    draw = replaced.drawer._draw

    def wait(job: Job) -> Any:
        begun.set()
        assert go.wait(DEADLINE)
        return draw(job)

    monkeypatch.setattr(replaced.drawer, "_draw", wait)
    name = str(replaced.place.ask().json()["id"])
    assert begun.wait(DEADLINE)
    replaced.replace()
    go.set()
    until(lambda: not replaced.drawer._taken)
    assert replaced.drawer._backoff.is_delayed(name, replaced.place.service.now())
    assert replaced.writes(replaced.drawer.sweep) == []
    replaced.clock.now += 3
    assert replaced.look(name)["state"] == "waiting"


def test_that_a_file_was_replaced_is_said_at_a_moment_and_not_before(replaced: Replaced) -> None:
    """Where an answer that was drawn would be seen: or the time of a draw could be bounded."""
    name = replaced.left()
    replaced.replace()
    replaced.drawer.sweep()
    replaced.clock.now = 1_000_002.999
    assert replaced.look(name)["state"] == "running"
    assert replaced.look(name)["detail"] is None
    replaced.clock.now = 1_000_003.0
    assert replaced.look(name)["state"] == "waiting"
    assert "the dataset's owner restores the file" in replaced.look(name)["detail"]
    (listed,) = replaced.place.send(ANALYST, "GET", "/v1/releases").json()["releases"]
    assert listed["state"] == "waiting"


def test_an_answer_that_is_stored_does_not_wait_for_its_file(replaced: Replaced) -> None:
    name = str(replaced.place.ask().json()["id"])
    until(lambda: replaced.place.moment(name) is not None)
    replaced.replace()
    replaced.drawer.sweep()
    assert replaced.look(name)["state"] == "running"
    replaced.clock.now += 3
    assert replaced.look(name)["state"] == "done"


def test_owner_and_auditor_are_told_which_questions_wait(replaced: Replaced) -> None:
    name = replaced.left()
    replaced.replace()
    replaced.drawer.sweep()
    replaced.clock.now += 601
    replaced.drawer.sweep()
    events = replaced.place.send("auditor", "GET", "/v1/audit").json()["events"]
    told = [one["body"] for one in events if one["kind"] == "source_changed"]
    assert told == [{"release": name, "dataset": DATASET, "version": 1}]
    metrics = replaced.place.send("owner", "GET", "/v1/metrics").text
    assert "\npcor_waiting_for_file 1\n" in metrics


# -- closing --------------------------------------------------------------------------------------


def close(place: World, name: str, who: str = "owner") -> Any:
    return place.send(who, "DELETE", f"/v1/releases/{name}")


def test_an_owner_closes_a_question_whose_file_was_replaced_and_it_stays_charged(
    replaced: Replaced,
) -> None:
    name, place = replaced.left(call="the key"), replaced.place
    replaced.replace()
    replaced.drawer.sweep()
    replaced.clock.now += 600
    left = place.service.ledger.left(DATASET, ANALYST)
    assert close(place, name, ANALYST).status_code == 403
    closed = close(place, name).json()
    assert (closed["state"], closed["error"]["kind"]) == ("done", QuestionClosed.kind)
    assert closed["error"]["detail"] in (PAGES / "closed.md").read_text(encoding="utf-8")
    assert replaced.look(name) == closed
    assert place.service.ledger.left(DATASET, ANALYST) == left
    assert place.ask(call="the key").json() == closed
    replaced.restore()
    assert replaced.drawer.sweep() == 0  # it is answered, for good
    assert place.service.ledger.verify().ok
    events = place.send("auditor", "GET", "/v1/audit").json()["events"]
    assert (events[-1]["kind"], events[-1]["body"]) == ("question_closed", {"release": name})


def test_what_is_closed_is_not_seen_before_it_may_be_said_that_its_file_was_replaced(
    replaced: Replaced,
) -> None:
    name = replaced.left()
    replaced.replace()
    replaced.drawer.sweep()
    assert close(replaced.place, name).json()["state"] == "running"
    replaced.clock.now = 1_000_002.999
    assert replaced.look(name)["state"] == "running"
    replaced.clock.now = 1_000_003.0
    assert replaced.look(name)["state"] == "done"


def test_a_question_that_will_be_answered_cannot_be_closed(replaced: Replaced) -> None:
    place = replaced.place
    names = [replaced.left(draw=2), str(place.ask(draw=1).json()["id"])]
    until(lambda: place.moment(names[1]) is not None)
    for name in names:
        refused = close(place, name)
        assert (refused.status_code, refused.json()["kind"]) == (409, "not_closable")
        page = (PAGES / "not_closable.md").read_text(encoding="utf-8")
        assert refused.json()["detail"] in page
    assert close(place, "AAAAAAAAAAAAAAAAAAAA").status_code == 404


def test_an_answer_that_another_process_stored_first_is_neither_closed_nor_shown(
    replaced: Replaced, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, ledger = replaced.left(), replaced.place.service.ledger
    replaced.replace()
    replaced.drawer.sweep()
    charge = ledger.charge

    def overtaken(request: Request) -> Claim:
        claim = charge(request)
        ledger.store(claim, NoValidContext("a draw that was made before"))
        return claim

    monkeypatch.setattr(ledger, "charge", overtaken)
    refused = close(replaced.place, name)
    assert (refused.status_code, refused.json()["kind"]) == (409, "not_closable")
    assert replaced.place.moment(name) is None  # the sweep shows it, at a moment that tells nothing
    events = replaced.place.send("auditor", "GET", "/v1/audit").json()["events"]
    assert events[-1]["kind"] == "source_changed"


def test_a_question_is_closed_whole_or_not_at_all(
    replaced: Replaced, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, ledger = replaced.left(), replaced.place.service.ledger
    replaced.replace()
    replaced.drawer.sweep()

    def full(*_: Any, **__: Any) -> None:
        raise LedgerError(FULL)

    with monkeypatch.context() as patched:
        patched.setattr("pcor.service.core.owner.note", full)
        assert close(replaced.place, name).status_code == 503
    assert [entry.kind for entry in ledger.entries()].count("answer") == 0
    assert replaced.place.moment(name) is None
    assert close(replaced.place, name).status_code == 200


def test_the_page_says_what_a_question_waits_for_and_lets_its_owner_close_it(
    replaced: Replaced,
) -> None:
    name = replaced.left()
    replaced.replace()
    replaced.drawer.sweep()
    replaced.clock.now += 3
    analyst, owner = Person(replaced.place, ANALYST), Person(replaced.place, "owner")
    assert "waits for its file" in analyst.get("/releases").text
    assert "Close this question" not in analyst.get(f"/releases/{name}").text
    assert analyst.post(f"/releases/{name}/close").status_code == 403
    assert "Close this question" in owner.get(f"/releases/{name}").text
    assert owner.post(f"/releases/{name}/close").headers["location"] == f"/releases/{name}"
    assert "Closed by the dataset's owner" in analyst.get(f"/releases/{name}").text


def test_a_client_does_not_wait_for_a_file_that_was_replaced(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    client = Client("http://127.0.0.1:1", "pcor_a_b")
    said = {"state": "waiting", "detail": "its file was replaced", "id": "x", "retry_after": 1}
    monkeypatch.setattr(client, "_send", lambda *_, **__: said)
    with pytest.raises(ServiceError, match="its file was replaced") as refused:
        client.release(DATASET, 1, preset="small")
    assert refused.value.problem == "source_changed"
