"""An allotment that is closed: nothing more is charged, nothing of before is lost or forgotten."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import pcor
from pcor.errors import BudgetExceeded, NoAllotment, ParameterError
from pcor.ledger import Entry, Ledger
from pcor.ledger.entries import entry_in_words
from pcor.ledger.verification import Totals
from pcor.releasing.request import canonical
from tests.helpers import ledger_clients
from tests.helpers.ledger_clients import SETTINGS, request
from tests.helpers.page_person import Person
from tests.helpers.service_world import ANALYST, DATASET, OTHER, OUTLIER, World, world

PEOPLE = ledger_clients.DATASET
EACH = "0.1"
ALLOTMENT = f"/v1/datasets/{DATASET}/allotments"


# -- in the ledger --------------------------------------------------------------------------------


@pytest.fixture
def ledger(url: str) -> Iterator[Ledger]:
    opened = Ledger(url)
    opened.set_budget(PEOPLE, 1)
    opened.allot(PEOPLE, "ana", "0.3")
    yield opened
    opened.close()


def release(ledger: Ledger, **options: Any) -> pcor.Release:
    given: dict[str, Any] = {"epsilon": EACH, "dataset": PEOPLE, "analyst": "ana"}
    return ledger.release(
        ledger_clients.table(), ledger_clients.OUTLIER, **given | SETTINGS | options
    )


def test_a_closed_allotment_pays_for_nothing(ledger: Ledger) -> None:
    ledger.close_allotment(PEOPLE, "ana")
    with pytest.raises(NoAllotment, match="'ana' has no allotment"):
        release(ledger)
    assert ledger.left(PEOPLE, "ana") == 0
    assert ledger.left(PEOPLE) == 1
    assert ledger.verify().ok


def test_an_allotment_that_is_opened_again_remembers_what_was_spent(ledger: Ledger) -> None:
    release(ledger)
    status = ledger.close_allotment(PEOPLE, "ana")
    assert (status.allotments[0].spent, status.allotments[0].closed) == (Fraction(EACH), True)
    with pytest.raises(ParameterError, match="is spent already"):
        ledger.allot(PEOPLE, "ana", "0.05")
    ledger.allot(PEOPLE, "ana", "0.3")
    assert ledger.left(PEOPLE, "ana") == Fraction("0.3") - Fraction(EACH)
    with pytest.raises(BudgetExceeded, match=r"has 0\.2 left"):
        release(ledger, epsilon="0.3", key="dear")
    assert ledger.verify().ok


def test_what_was_paid_for_is_answered_after_the_closing(ledger: Ledger) -> None:
    first = release(ledger)
    left = ledger.charge(request("unfinished", analyst="ana"))
    with pytest.raises(KeyboardInterrupt), ledger.drawing(left):
        raise KeyboardInterrupt
    ledger.close_allotment(PEOPLE, "ana")
    assert release(ledger).to_dict() == first.to_dict()
    again = ledger.charge(request("unfinished", analyst="ana"))
    assert (again.state, again.charge) == ("unfinished", left.charge)
    with ledger.drawing(again):
        ledger.store(again, first)
    assert ledger.verify().ok


def test_a_closing_is_an_entry_of_its_own_and_is_written_once(ledger: Ledger) -> None:
    release(ledger)
    for _ in range(2):
        ledger.close_allotment(PEOPLE, "ana")
    entries = list(ledger.entries(analyst="ana"))
    assert [entry.kind for entry in entries] == ["allotment", "charge", "answer", "closing"]
    assert entry_in_words(entries[-1]) == f"May spend nothing more; {EACH} was spent"
    assert "ana: closed; epsilon 0.1 was spent" in str(ledger.status(PEOPLE))


@pytest.mark.parametrize("analyst", ["bob", "owner"])
def test_what_was_not_opened_is_not_closed(ledger: Ledger, analyst: str) -> None:
    with pytest.raises(ParameterError, match="has no allotment"):
        ledger.close_allotment(PEOPLE, analyst)
    with pytest.raises(ParameterError, match="no budget for dataset 'others'"):
        ledger.close_allotment("others", "ana")


def test_another_process_learns_of_a_closing_before_its_next_charge(
    ledger: Ledger, url: str
) -> None:
    other = Ledger(url)
    release(other)
    ledger.close_allotment(PEOPLE, "ana")
    with pytest.raises(NoAllotment):
        release(other, key="second")
    ledger.allot(PEOPLE, "ana", "0.3")
    release(other, key="second")
    other.close()
    assert ledger.verify().ok


def follow(*happened: tuple[str, str, dict[str, Any]]) -> None:
    """Carry out entries after a budget and an allotment: kind, analyst, body."""
    totals = Totals()
    begin = [
        ("budget", "", {"epsilon": "1", "delta": "0"}),
        ("allotment", "ana", {"epsilon": "1/2", "delta": "0"}),
    ]
    for number, (kind, analyst, body) in enumerate([*begin, *happened], start=1):
        totals.follow(Entry(number, "", kind, PEOPLE, analyst, "k", canonical(body), ""))


CHARGE = ("charge", "ana", {"epsilon": "1/10", "delta": "0", "guarantee": "ocdp"})
CLOSING = ("closing", "ana", {"spent": "0"})


@pytest.mark.parametrize(
    ("happened", "why"),
    [
        ([CLOSING, CHARGE], "was closed"),
        ([CLOSING, CLOSING], "was not open"),
        ([("closing", "bob", {"spent": "0"})], "was not open"),
        ([("closing", "", {"spent": "0"})], "was not open"),
        ([CHARGE, CLOSING], "something else was spent"),
    ],
)
def test_books_in_which_a_closing_cannot_have_happened_are_not_whole(
    happened: list[Any], why: str
) -> None:
    with pytest.raises(ParameterError, match=why):
        follow(*happened)
    follow(CHARGE, ("closing", "ana", {"spent": "1/10"}))


# -- at the service -------------------------------------------------------------------------------


@pytest.fixture
def place(url: str, tmp_path: Path) -> Iterator[World]:
    with world(url, tmp_path) as made:
        yield made


def close(place: World, analyst: str = ANALYST) -> Any:
    return place.send("owner", "DELETE", f"{ALLOTMENT}/{analyst}")


def spent(place: World) -> Fraction:
    return place.service.ledger.status(DATASET).budget.spent


def test_a_dataset_that_is_closed_is_as_if_it_were_not(place: World) -> None:
    done = place.wait(place.ask(call="before").json()["id"])
    before = spent(place)
    closed = close(place)
    assert closed.status_code == 200
    assert {one["analyst"]: one["closed"] for one in closed.json()["allotments"]} == {
        ANALYST: True,
        OTHER: False,
    }
    question = {"record": OUTLIER, "preset": "medium"}
    for hidden, missing in (
        (place.ask(draw=2), place.ask(dataset="no-such", draw=2)),
        (place.ask(), place.ask(dataset="no-such")),
        *(
            (
                place.send(ANALYST, "GET", f"/v1/datasets/{DATASET}{end}"),
                place.send(ANALYST, "GET", f"/v1/datasets/no-such{end}"),
            )
            for end in ("", "/budget")
        ),
        (
            place.send(ANALYST, "POST", "/v1/plans", json={"dataset": DATASET} | question),
            place.send(ANALYST, "POST", "/v1/plans", json={"dataset": "no-such"} | question),
        ),
    ):
        assert hidden.status_code == missing.status_code == 404
        assert hidden.content == missing.content
    assert place.send(ANALYST, "GET", "/v1/datasets").json()["datasets"] == []
    assert spent(place) == before
    # What was paid for stays readable: by its address, under its key, in the history.
    assert place.send(ANALYST, "GET", f"/v1/releases/{done['id']}").json() == done
    assert place.ask(call="before").json() == done
    history = place.send(ANALYST, "GET", "/v1/releases").json()["releases"]
    assert [one["id"] for one in history] == [done["id"]]
    # And so does what it was asked of, which `pcor.Client` reads too; no other version.
    asked_of = f"/v1/datasets/{DATASET}?version={done['version']}"
    assert place.send(ANALYST, "GET", asked_of).json()["version"] == done["version"]
    assert place.send(ANALYST, "GET", f"{asked_of}9").status_code == 404
    # Nobody else notices, and an allotment opens it again, with what was spent.
    assert place.ask(OTHER).status_code == 202
    place.send("owner", "PUT", f"{ALLOTMENT}/{ANALYST}", json={"epsilon": "4"})
    left = place.send(ANALYST, "GET", f"/v1/datasets/{DATASET}/budget").json()["left"]
    assert Fraction(left) == 4 - before
    assert place.ask(draw=2).status_code == 202


def test_a_closing_is_in_the_ledger_and_in_the_audit_log_once(place: World) -> None:
    for _ in range(2):
        assert close(place).status_code == 200
    events = place.send("auditor", "GET", "/v1/audit").json()["events"]
    closings = [one["body"] for one in events if one["kind"] == "allotment_closed"]
    assert closings == [{"dataset": DATASET, "analyst": ANALYST}]
    entries = place.send("auditor", "GET", "/v1/ledger").json()["entries"]
    assert [one["analyst"] for one in entries if one["kind"] == "closing"] == [ANALYST]
    assert place.send("auditor", "GET", "/v1/ledger/verification").json()["ok"]
    assert place.send("auditor", "GET", "/v1/audit/verification").json()["ok"]


def test_a_question_that_was_accepted_and_not_charged_yet_is_refused(place: World) -> None:
    def at_step(step: str) -> None:
        if step == "before charge":
            assert close(place).status_code == 200

    place.service.at_step = at_step
    refused = place.ask()
    assert (refused.status_code, refused.json()["kind"]) == (403, "budget_exceeded")
    assert spent(place) == 0


def test_what_nobody_was_given_cannot_be_closed(place: World) -> None:
    assert close(place, "zoe").status_code == 404
    missing = place.send("owner", "DELETE", f"/v1/datasets/no-such/allotments/{ANALYST}")
    assert missing.status_code == 404


def test_an_owner_closes_a_dataset_on_the_page_and_is_asked_first(place: World) -> None:
    owner, analyst = Person(place, "owner"), Person(place, ANALYST)
    asked = f"/dataset/close?name={DATASET}&analyst={ANALYST}"
    assert asked.replace("&", "&amp;") in owner.get(f"/dataset?name={DATASET}").text
    question = owner.get(asked)
    assert f"Close {DATASET} to {ANALYST}?" in question.text
    assert DATASET in analyst.get("/").text  # nothing has happened yet
    done = owner.post("/dataset/close", name=DATASET, analyst=ANALYST)
    assert (done.status_code, done.headers["location"]) == (303, f"/dataset?name={DATASET}")
    shown = owner.get(f"/dataset?name={DATASET}").text
    assert "Closed; 0 was spent." in shown
    assert asked.replace("&", "&amp;") not in shown
    assert "closed, 0 spent" in owner.get("/ledger").text
    assert "No dataset is open to you yet" in analyst.get("/").text
    assert analyst.get(f"/ask?dataset={DATASET}").status_code == 404
    for gone in (ANALYST, "zoe", ""):
        name = f"/dataset/close?name={DATASET}&analyst={gone}"
        assert owner.get(name).status_code == 404
