"""One draw for one charge: claims, leases, and draws that ended badly."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from unittest.mock import patch

import pytest
from sqlalchemy import select, update

from pcor.errors import LedgerError, NoValidContext, SourceError, StillRunning, Unfinished
from pcor.ledger import Ledger, leases, tables
from tests.helpers.ledger_clients import DATASET, EACH, ask, drawn, request
from tests.helpers.waiting import until


def test_a_request_that_is_being_answered_is_not_drawn_a_second_time(ledger: Ledger) -> None:
    claim = ledger.charge(request("k"))
    with ledger.drawing(claim):
        with pytest.raises(StillRunning, match="at this moment"):
            ledger.charge(request("k"))
        ledger.store(claim, drawn())
    assert ledger.charge(request("k")).state == "done"
    assert ledger.left(DATASET) == 1 - Fraction(EACH)


def test_a_draw_that_ended_badly_is_finished_under_the_same_key(
    ledger: Ledger, trace: Path
) -> None:
    assert not ledger.charged(request("k"))
    with pytest.raises(KeyboardInterrupt), ledger.drawing(ledger.charge(request("k"))):
        raise KeyboardInterrupt
    assert ledger.answered(request("k")) is None
    assert ledger.charged(request("k"))
    ask(ledger, "k", trace)
    assert ledger.left(DATASET) == 1 - Fraction(EACH)


def test_a_source_that_fails_is_no_answer_and_the_same_request_goes_on_free(
    ledger: Ledger, trace: Path
) -> None:
    lost = SourceError("the line dropped")
    with (
        patch("pcor.releasing.run.release_from", side_effect=lost),
        pytest.raises(Unfinished, match=r"dropped\. This request is charged and unfinished: ask"),
    ):
        ask(ledger, "k", trace)
    assert [entry.kind for entry in ledger.entries()] == ["budget", "charge"]
    ask(ledger, "k", trace)
    assert [entry.kind for entry in ledger.entries()] == ["budget", "charge", "answer"]
    assert ledger.left(DATASET) == 1 - Fraction(EACH)
    assert ledger.verify().ok


def test_a_failure_of_the_source_that_was_stored_before_is_still_the_answer(
    ledger: Ledger, trace: Path
) -> None:
    """Books are never rewritten; what earlier versions stored stays what was answered."""
    ledger.store(ledger.charge(request("k")), SourceError("postgresql could not answer"))
    with pytest.raises(SourceError, match="could not answer") as raised:
        ask(ledger, "k", trace)
    assert type(raised.value) is SourceError
    assert ledger.verify().ok


def test_of_two_that_draw_for_one_charge_the_first_to_store_wins(ledger: Ledger) -> None:
    slow = ledger.charge(request("k"))
    leases.forget_lease(slow.lease)  # as if its process were believed dead
    fast = ledger.charge(request("k"))
    assert (slow.state, fast.state, slow.charge) == ("new", "unfinished", fast.charge)
    won = ledger.store(fast, drawn())
    assert ledger.store(slow, NoValidContext("a draw that nobody will see")) == won
    assert [entry.kind for entry in ledger.entries()] == ["budget", "charge", "answer"]


def test_a_lease_of_another_machine_ends_by_the_clock(url: str) -> None:
    hours = [1_000_000.0]
    ledger = Ledger(url, clock=lambda: hours[0])
    ledger.set_budget(DATASET, 1)
    ledger.charge(request("k"))
    with ledger.database.writing() as connection:
        connection.execute(update(tables.running).values(holder="elsewhere|1|1|0"))
    hours[0] += leases.LEASE - 1
    with pytest.raises(StillRunning):
        ledger.charge(request("k"))
    hours[0] += 1
    assert ledger.charge(request("k")).state == "unfinished"


def test_a_draw_that_takes_long_keeps_its_lease(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    hours = [1_000_000.0]
    ledger = Ledger(url, clock=lambda: hours[0])
    ledger.set_budget(DATASET, 1)
    claim = ledger.charge(request("k"))
    elsewhere = Ledger(url, clock=lambda: hours[0])
    monkeypatch.setattr("pcor.ledger.leases._machine", lambda: "")  # as another machine sees it
    monkeypatch.setattr("pcor.ledger.leases.RENEWAL", 0.01)
    hours[0] += 10 * leases.LEASE
    with ledger.drawing(claim):
        until(lambda: _leased_until(ledger) >= hours[0])
        with pytest.raises(StillRunning):
            elsewhere.charge(request("k"))
        ledger.store(claim, drawn())


def _leased_until(ledger: Ledger) -> int:
    with ledger.database.reading() as connection:
        return int(connection.execute(select(tables.running.c.until)).scalar_one())


def test_a_claim_of_another_ledger_is_not_stored(ledger: Ledger, tmp_path: Path) -> None:
    other = Ledger(tmp_path / "other.db")
    other.set_budget(DATASET, 1)
    with pytest.raises(LedgerError, match="not of this ledger"):
        ledger.store(other.charge(request("k")), drawn())
