"""The ledger: what it charges, what it repeats, what it refuses, what its books show."""

from __future__ import annotations

import io
import json
import re
import stat
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any
from unittest.mock import patch

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection, Text, create_engine, inspect, select, text, update

import pcor
from pcor.errors import (
    BudgetExceeded,
    CapExceeded,
    KeyConflict,
    LedgerError,
    NoValidContext,
    ParameterError,
    RecordError,
    SourceError,
    StartError,
    StillRunning,
    Unfinished,
    plain,
)
from pcor.ledger import Head, Ledger, leases, tables
from pcor.ledger.entries import entry_in_words
from pcor.ledger.verifying import check_books
from pcor.releasing.amounts import amount
from pcor.releasing.certificate import JSON_SCHEMA
from tests.helpers.ledger_clients import (
    DATASET,
    EACH,
    OUTLIER,
    SETTINGS,
    ask,
    drawn,
    lines,
    request,
    table,
)
from tests.helpers.postgres import postgres
from tests.helpers.waiting import until


@pytest.fixture
def ledger(url: str) -> Iterator[Ledger]:
    opened = Ledger(url)
    opened.set_budget(DATASET, 1)
    yield opened
    opened.close()


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    return tmp_path / "trace"


def release(ledger: Ledger, **options: Any) -> pcor.Release:
    given: dict[str, Any] = {"epsilon": EACH, "dataset": DATASET, **SETTINGS, **options}
    return ledger.release(table(), OUTLIER, **given)


# -- one request ----------------------------------------------------------------------------------


def test_a_release_is_charged_exactly_and_its_certificate_is_stored(ledger: Ledger) -> None:
    released = release(ledger, epsilon="1/3")
    assert ledger.left(DATASET) == Fraction(2, 3)
    answer = [entry for entry in ledger.entries() if entry.kind == "answer"]
    assert [entry.content["answer"] for entry in answer] == [released.to_dict()]
    jsonschema.validate(released.to_dict(), json.loads(JSON_SCHEMA.read_text()))


def test_the_same_request_again_is_the_same_answer_for_free(ledger: Ledger, trace: Path) -> None:
    options = {"epsilon": "0.2"}
    first = ask(ledger, "a", trace, **options)
    again = ask(ledger, "a", trace, epsilon=Fraction(1, 5), utility=pcor.PopulationSize())
    assert again.to_dict() == first.to_dict()
    assert again == first
    assert [line[0] for line in lines(trace)] == ["drawn", "answered", "answered"]
    assert ledger.left(DATASET) == Fraction(4, 5)


def test_without_a_key_the_same_question_is_the_same_request(ledger: Ledger) -> None:
    first = release(ledger, epsilon=0.2)
    again = ledger.release(table(), str(OUTLIER), "1/5", dataset=DATASET, **SETTINGS)
    assert again.to_dict() == first.to_dict()
    assert ledger.left(DATASET) == Fraction(4, 5)


@pytest.mark.parametrize(
    "other",
    [{"key": "second"}, {"version": "2026"}, {"epsilon": "0.02"}, {"search": "uniform"}],
    ids=str,
)
def test_another_key_version_price_or_search_is_another_request(
    ledger: Ledger, other: dict[str, Any]
) -> None:
    release(ledger)
    before = ledger.left(DATASET)
    release(ledger, **other)
    assert before - ledger.left(DATASET) == Fraction(other.get("epsilon", EACH))


def test_a_new_version_of_the_file_does_not_bring_a_new_budget(ledger: Ledger) -> None:
    release(ledger, epsilon=1, version="2025")
    with pytest.raises(BudgetExceeded):
        release(ledger, epsilon=1, version="2026")


def test_a_key_of_another_request_is_refused_and_costs_nothing(ledger: Ledger) -> None:
    release(ledger, key="k")
    left = ledger.left(DATASET)
    with pytest.raises(KeyConflict, match="stands for another request"):
        release(ledger, key="k", epsilon="0.02")
    assert ledger.left(DATASET) == left


def test_no_valid_context_is_an_answer_that_is_charged_stored_and_repeated(ledger: Ledger) -> None:
    calm = {"detector": pcor.Tail(share=0.001, min_population=5), "epsilon": "0.25"}
    ordinary = {"dataset": DATASET, **calm}
    for _ in range(2):
        with pytest.raises(NoValidContext, match="paid for like any other"):
            ledger.release(table(), 3, **ordinary)  # type: ignore[arg-type]
    assert ledger.left(DATASET) == Fraction(3, 4)
    assert [entry.kind for entry in ledger.entries()] == ["budget", "charge", "answer"]
    assert ledger.verify().ok


def test_a_start_that_is_none_is_an_answer_too(ledger: Ledger) -> None:
    start = pcor.Context(table().schema, {"job": ["clerk"], "city": ["Rome"]})
    for _ in range(2):
        with pytest.raises(StartError):
            release(ledger, search="random_walk", start=start)
    assert ledger.left(DATASET) == 1 - Fraction(EACH)


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        ({"epsilon": 0}, ParameterError),
        ({"detector": "nonsense"}, ParameterError),
        ({"dataset": "others"}, ParameterError),
        ({"dataset": " people"}, ParameterError),
        ({"analyst": ""}, ParameterError),
        ({"key": "line\nbreak"}, ParameterError),
        ({"epsilon": Fraction(1, 1009)}, ParameterError),
    ],
    ids=str,
)
def test_what_the_schema_alone_can_refuse_is_never_charged(
    ledger: Ledger, wrong: dict[str, Any], error: type[Exception]
) -> None:
    with pytest.raises(error):
        release(ledger, **wrong)
    assert [entry.kind for entry in ledger.entries()] == ["budget"]


def test_a_record_that_does_not_exist_is_not_charged(ledger: Ledger) -> None:
    with pytest.raises(RecordError):
        ledger.release(table(), 999, EACH, dataset=DATASET, **SETTINGS)
    assert ledger.left(DATASET) == 1


def test_a_seeded_run_does_not_answer_for_a_real_one(ledger: Ledger) -> None:
    seeded = release(ledger, chooser=pcor.testing.seeded(1))
    assert (seeded.private, release(ledger).private) == (False, True)


def test_a_certificate_of_another_plan_is_not_read_as_a_release() -> None:
    other = pcor.plan(table().schema, "0.3", **SETTINGS)
    with pytest.raises(ParameterError, match="not made by this plan"):
        pcor.Release.from_dict(drawn().to_dict(), other)


def test_a_certificate_on_paper_names_its_date_its_dataset_and_its_entry(url: str) -> None:
    midnight = datetime(2031, 5, 17, 23, 59, 59, tzinfo=UTC)
    books = Ledger(url, clock=midnight.timestamp)
    books.set_budget(DATASET, 1)
    first, again = release(books), release(books)
    charge = next(entry for entry in books.entries() if entry.kind == "charge")
    for page in (first.to_html(), again.to_html()):
        said = " ".join(re.sub("<[^>]+>", " ", page).split())
        assert f"dataset {table().schema.name}" in said
        assert "date 2031-05-17" in said
        assert f"ledger entry {charge.hash}" in said
        assert "23:59" not in page  # the calendar's day, and no time
    assert first.to_dict() == again.to_dict()
    assert "2031" not in first.to_json()


# -- budgets --------------------------------------------------------------------------------------


def test_a_refusal_says_asked_left_and_short_by_and_spends_nothing(ledger: Ledger) -> None:
    release(ledger, epsilon="0.8")
    with pytest.raises(BudgetExceeded) as refused:
        release(ledger, epsilon="0.5")
    assert (refused.value.asked, refused.value.left, refused.value.short_by) == (
        Fraction(1, 2),
        Fraction(1, 5),
        Fraction(3, 10),
    )
    assert "asks for epsilon 0.5" in str(refused.value)
    assert "has 0.2 left: short by 0.3; nothing was spent" in str(refused.value)
    assert ledger.left(DATASET) == Fraction(1, 5)
    assert [entry.kind for entry in ledger.entries()][-1] == "refusal"


def test_ten_times_a_tenth_is_one(ledger: Ledger) -> None:
    for number in range(10):
        ledger.charge(request(str(number), epsilon=0.1))
    assert ledger.left(DATASET) == 0


def test_a_cap_limits_each_release(ledger: Ledger) -> None:
    ledger.set_budget(DATASET, 1, cap="0.1")
    with pytest.raises(CapExceeded, match=r"allows one release 0.1 at most: short by 0.1"):
        release(ledger, epsilon="0.2")
    release(ledger, epsilon="0.1")
    assert ledger.status(DATASET).cap == Fraction(1, 10)


def test_an_analyst_is_bounded_by_the_allotment_and_by_the_budget(ledger: Ledger) -> None:
    ledger.allot(DATASET, "ana", "0.3")
    release(ledger, analyst="ana", epsilon="0.2")
    assert (ledger.left(DATASET), ledger.left(DATASET, "ana")) == (Fraction(4, 5), Fraction(1, 10))
    with pytest.raises(BudgetExceeded, match=r"the allotment of 'ana'.*has 0.1 left"):
        release(ledger, analyst="ana", epsilon="0.15")
    ledger.allot(DATASET, "ana", 5)
    with pytest.raises(BudgetExceeded, match=r"the budget of dataset 'people' has 0.8 left"):
        release(ledger, analyst="ana", epsilon=2)
    assert ledger.left(DATASET, "ana") == Fraction(4, 5)


def test_ones_own_allotment_refuses_before_the_budget_of_all_does(ledger: Ledger) -> None:
    ledger.allot(DATASET, "ana", "0.3")
    with pytest.raises(BudgetExceeded, match=r"the allotment of 'ana'.*has 0.3 left"):
        release(ledger, analyst="ana", epsilon=2)


def test_an_analyst_without_an_allotment_has_nothing_to_spend(ledger: Ledger) -> None:
    assert ledger.left(DATASET, "bob") == 0
    with pytest.raises(BudgetExceeded, match="'bob' has no allotment"):
        release(ledger, analyst="bob")


def test_the_command_that_would_give_an_allotment_can_be_typed(ledger: Ledger) -> None:
    options = {"search": "breadth_first", "delta": "0.000001", "samples": 5}
    command = f"`pcor ledger allot LEDGER {DATASET} 'bob smith' --epsilon {EACH} --delta 0.000001`"
    with pytest.raises(BudgetExceeded, match=command):
        release(ledger, analyst="bob smith", **options)


def test_two_analysts_with_the_same_key_are_two_requests(ledger: Ledger) -> None:
    ledger.allot(DATASET, "ana", "0.3")
    release(ledger, key="k")
    release(ledger, key="k", analyst="ana", epsilon="0.02")
    assert ledger.left(DATASET) == 1 - Fraction(3, 100)


def test_a_long_fraction_is_also_told_as_a_rounded_decimal(ledger: Ledger) -> None:
    ledger.allot(DATASET, "ana", "1234/997")
    told = [entry_in_words(entry) for entry in ledger.entries()]
    assert told == ["Budget set to epsilon 1", "May spend epsilon 1234/997 (about 1.238)"]


def test_the_two_guarantees_are_kept_apart_under_one_ceiling(ledger: Ledger) -> None:
    release(ledger, epsilon="0.2")
    release(ledger, epsilon="0.3", guarantee="dp", detector="tail")
    books = ledger.status(DATASET)
    assert books.spent == {"ocdp": Fraction(1, 5), "dp": Fraction(3, 10)}
    assert (books.total, books.left) == (Fraction(1), Fraction(1, 2))


def test_delta_has_a_ceiling_of_its_own(ledger: Ledger) -> None:
    many = {"search": "breadth_first", "samples": 5, "delta": "1e-6"}
    with pytest.raises(BudgetExceeded, match=r"delta 0.000001, .* has 0 left"):
        release(ledger, **many)
    ledger.set_budget(DATASET, 1, delta="1e-6")
    release(ledger, **many)
    assert ledger.status(DATASET).budget.delta_left == 0
    with pytest.raises(BudgetExceeded):
        release(ledger, **many, key="again")


def test_a_budget_may_be_raised_and_lowered_but_not_below_what_is_spent(ledger: Ledger) -> None:
    release(ledger, epsilon="0.4")
    assert ledger.set_budget(DATASET, "0.4").left == 0
    assert ledger.set_budget(DATASET, 2).left == Fraction(8, 5)
    with pytest.raises(ParameterError, match=r"0.4 is spent already"):
        ledger.set_budget(DATASET, "0.3")
    assert ledger.status(DATASET).total == 2


def test_the_owner_takes_no_allotment(ledger: Ledger) -> None:
    with pytest.raises(ParameterError, match="without allotment"):
        ledger.allot(DATASET, "owner", 1)


@pytest.mark.parametrize("wrong", ["0", "-1", "x", float("nan"), True, "1e-31", "1e10"])
def test_an_amount_that_cannot_be_kept_exactly_is_refused(wrong: object) -> None:
    with pytest.raises(ParameterError):
        amount(wrong)


COSTS = st.one_of(
    st.builds(Fraction, st.integers(1, 40), st.integers(1, 1000)),
    st.builds(lambda n, p: Fraction(n, 10**p), st.integers(1, 99), st.integers(0, 30)),
)


@given(
    budget=COSTS,
    allotment=COSTS,
    asked=st.lists(st.tuples(COSTS, st.booleans(), st.booleans()), max_size=6),
)
@settings(max_examples=12)
def test_the_books_are_those_of_a_clerk_with_fractions_on_paper(
    tmp_path_factory: pytest.TempPathFactory,
    budget: Fraction,
    allotment: Fraction,
    asked: list[tuple[Fraction, bool, bool]],
) -> None:
    ledger = Ledger(tmp_path_factory.mktemp("books") / "books.db")
    ledger.set_budget(DATASET, budget)
    ledger.allot(DATASET, "ana", allotment)
    spent = {"ocdp": Fraction(0), "dp": Fraction(0)}
    by_ana = Fraction(0)
    for number, (cost, as_ana, pure) in enumerate(asked):
        affordable = sum(spent.values()) + cost <= budget
        if as_ana:
            affordable = affordable and by_ana + cost <= allotment
        options = {"guarantee": "dp", "detector": "tail"} if pure else {}
        wanted = request(str(number), epsilon=cost, analyst="ana" if as_ana else "owner", **options)
        if affordable:
            assert ledger.charge(wanted).state == "new"
            spent["dp" if pure else "ocdp"] += cost
            by_ana += cost if as_ana else 0
        else:
            with pytest.raises(BudgetExceeded):
                ledger.charge(wanted)
    books = ledger.status(DATASET)
    assert books.spent == spent
    assert books.allotments[0].spent == by_ana
    assert ledger.verify().ok


# -- claims ---------------------------------------------------------------------------------------


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
    monkeypatch.setattr("pcor.ledger.ledger.RENEWAL", 0.01)
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


# -- what the books say and hide ------------------------------------------------------------------


def test_entries_are_filtered_and_paged(ledger: Ledger) -> None:
    ledger.set_budget("others", 1)
    ledger.allot(DATASET, "ana", 1)
    release(ledger, analyst="ana")
    assert [e.kind for e in ledger.entries("others")] == ["budget"]
    assert [e.kind for e in ledger.entries(analyst="ana")] == ["allotment", "charge", "answer"]
    assert [e.number for e in ledger.entries(after=1, limit=2)] == [2, 3]


def test_an_export_holds_every_entry_and_checks_itself(ledger: Ledger, tmp_path: Path) -> None:
    release(ledger)
    assert ledger.export(tmp_path / "books.jsonl") == 3
    stream = io.StringIO()
    ledger.export(stream)
    assert (tmp_path / "books.jsonl").read_text() == stream.getvalue()
    exported = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert [entry["previous"] for entry in exported[1:]] == [e["hash"] for e in exported[:-1]]
    assert exported[-1]["hash"] == ledger.head().hash


def test_answers_have_no_time_because_time_tells_of_rows(ledger: Ledger) -> None:
    release(ledger)
    times = {entry.kind: entry.at for entry in ledger.entries()}
    assert times["answer"] == ""
    assert times["charge"].endswith("Z")


def test_the_repr_of_a_ledger_shows_no_place_and_no_password(ledger: Ledger) -> None:
    assert repr(ledger) in ("<Ledger in a SQLite database>", "<Ledger in a PostgreSQL database>")


# -- opening --------------------------------------------------------------------------------------


def test_a_new_file_is_for_its_owner_alone(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "books.db")
    ledger.set_budget(DATASET, 1)
    with ledger.database.writing():
        modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
    assert set(modes.values()) == {0o600}
    assert len(modes) == 3  # SQLite's own side files are as private


def test_sqlite_keeps_what_was_committed_through_a_power_cut(tmp_path: Path) -> None:
    with Ledger(tmp_path / "books.db").database.writing() as connection:
        assert connection.exec_driver_sql("PRAGMA journal_mode").scalar() == "wal"
        assert connection.exec_driver_sql("PRAGMA synchronous").scalar() == 2  # FULL


@pytest.mark.parametrize("level", ["serializable", "repeatable read"])
def test_a_writer_sees_what_was_written_while_it_waited_whatever_the_server_says(
    level: str,
) -> None:
    place = f"{postgres().new_database()}%20-cdefault_transaction_isolation%3D"
    ledger = Ledger(place + level.replace(" ", "%5C%20"))
    asked = text("SELECT current_setting('transaction_isolation')")
    by_default = text("SELECT current_setting('default_transaction_isolation')")
    with ledger.database.writing() as connection:
        assert connection.execute(by_default).scalar() == level
        assert connection.execute(asked).scalar() == "read committed"
    with ledger.database.reading() as connection:
        assert connection.execute(asked).scalar() == "repeatable read"
    ledger.close()


def test_a_path_and_a_url_are_the_same_ledger(tmp_path: Path) -> None:
    Ledger(tmp_path / "books.db").set_budget(DATASET, 1)
    assert Ledger(f"sqlite:///{tmp_path}/books.db", create=False).left(DATASET) == 1


@pytest.mark.parametrize("wrong", ["", ":memory:", "sqlite://", "mysql://h/d", "://", "file:x"])
def test_a_place_that_cannot_hold_a_ledger_is_refused(wrong: str) -> None:
    with pytest.raises(ParameterError, match="a ledger is a file"):
        Ledger(wrong)


def test_a_missing_ledger_is_not_made_by_a_reader(url: str, tmp_path: Path) -> None:
    with pytest.raises(LedgerError, match="there is no ledger"):
        Ledger(url, create=False)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_does_not_exist_is_said(tmp_path: Path) -> None:
    with pytest.raises(LedgerError, match="cannot be made"):
        Ledger(tmp_path / "nowhere" / "books.db")


def test_a_file_that_is_no_database_is_said_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "books.db").write_text("dear diary, " * 100)
    with pytest.raises(LedgerError, match=r"not a ledger \(name another\), or is damaged"):
        Ledger(tmp_path / "books.db")
    assert (tmp_path / "books.db").read_text().startswith("dear diary")


def test_tables_of_a_newer_version_are_refused(url: str) -> None:
    first = Ledger(url)
    with first.database.writing() as connection:
        connection.execute(text("UPDATE pcor_version SET version_num = '9999'"))
    with pytest.raises(LedgerError, match="Use a newer pcor"):
        Ledger(url)


def test_the_migrations_make_the_tables_that_the_code_uses(url: str) -> None:
    database = Ledger(url).database
    seen = inspect(database.engine)
    for name, expected in tables.metadata.tables.items():
        found = {column["name"]: column for column in seen.get_columns(name)}
        assert list(found) == expected.c.keys()
        for column in expected.c:
            assert found[column.name]["nullable"] == column.nullable
            assert isinstance(found[column.name]["type"], Text) == isinstance(column.type, Text)
        key = seen.get_pk_constraint(name)["constrained_columns"]
        assert key == [column.name for column in expected.primary_key]
    made = {*seen.get_table_names()} - {tables.VERSION_TABLE}
    assert made == {*tables.metadata.tables}


# -- verify ---------------------------------------------------------------------------------------


@pytest.fixture(params=["sqlite", "postgresql"], scope="module")
def books(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Ledger]:
    """A ledger in which everything happened that can; tests take their changes back."""
    if request.param == "sqlite":
        ledger = Ledger(tmp_path_factory.mktemp("books") / "books.db")
    else:
        ledger = Ledger(postgres().new_database())
    ledger.set_budget(DATASET, 1, cap="0.5")
    ledger.allot(DATASET, "ana", "0.3")
    ledger.allot(DATASET, "bob", "0.3")
    ledger.close_allotment(DATASET, "bob")
    release(ledger)
    release(ledger, analyst="ana", epsilon="0.2")
    with pytest.raises(BudgetExceeded):
        release(ledger, analyst="ana", epsilon="0.4")
    with pytest.raises(KeyboardInterrupt), ledger.drawing(ledger.charge(_later())):
        raise KeyboardInterrupt
    yield ledger
    ledger.close()


def _later() -> Any:
    return request("never finished")


class _Undo(Exception):
    pass


def problems_after(ledger: Ledger, *tampering: Any) -> tuple[str, ...]:
    """Tamper, verify, and take it back."""
    found: tuple[str, ...] = ()
    with suppress(_Undo), ledger.database.writing() as connection:
        for change in tampering:
            change(connection)
        found = check_books(connection).problems
        raise _Undo
    return found


def flip(value: object) -> object:
    """Change one thing about a value."""
    if isinstance(value, int):
        return value + 1
    shown = "" if value is None else str(value)
    return "1" if not shown else shown[:-1] + ("1" if shown[-1] != "1" else "2")


EVIDENCE = [
    (table_.name, column.name)
    for table_ in (tables.entries, tables.head, tables.accounts, tables.requests)
    for column in table_.c
]


def test_untouched_books_are_whole(books: Ledger) -> None:
    checked = books.verify(noted=Head(0, ""))
    assert (checked.ok, checked.problems, checked.head) == (True, (), books.head())


@pytest.mark.parametrize(("name", "column"), EVIDENCE, ids=".".join)
def test_a_change_in_any_column_of_any_row_is_found(books: Ledger, name: str, column: str) -> None:
    where = tables.metadata.tables[name]
    with books.database.reading() as connection:
        rows = [row._mapping for row in connection.execute(select(where))]
    assert rows
    for row in rows:
        this = [where.c[key.name] == row[key.name] for key in where.primary_key]
        new = flip(row[column])
        if column == "number":
            new = 99  # the next number is taken
        change = update(where).where(*this).values({column: new})
        if name == "pcor_requests" and column in ("charge", "answer"):
            change = change.values({column: 99})
        assert problems_after(books, lambda c, change=change: c.execute(change)), dict(row)


def test_a_removed_row_is_found_wherever_it_was(books: Ledger) -> None:
    for where in (tables.entries, tables.head, tables.accounts, tables.requests):
        with books.database.reading() as connection:
            rows = [row._mapping for row in connection.execute(select(where))]
        for row in rows:
            this = [where.c[key.name] == row[key.name] for key in where.primary_key]
            gone = where.delete().where(*this)
            assert problems_after(books, lambda c, gone=gone: c.execute(gone)), dict(row)


def test_two_entries_that_changed_places_are_found(books: Ledger) -> None:
    def swap(connection: Connection) -> None:
        for old, new in ((3, 99), (4, 3), (99, 4)):
            change = update(tables.entries).where(tables.entries.c.number == old)
            connection.execute(change.values(number=new))

    assert any("changed" in problem for problem in problems_after(books, swap))


def test_a_last_entry_cut_off_with_its_head_set_back_is_found_by_the_totals(books: Ledger) -> None:
    end = books.head().entries

    def cut(connection: Connection) -> None:
        before = connection.execute(
            select(tables.entries.c.previous).where(tables.entries.c.number == end)
        ).scalar_one()
        connection.execute(tables.entries.delete().where(tables.entries.c.number == end))
        connection.execute(update(tables.head).values(entries=end - 1, hash=before))

    assert problems_after(books, cut)


def test_a_chain_forged_whole_is_found_by_a_head_that_was_noted(tmp_path: Path) -> None:
    real, forged = Ledger(tmp_path / "real.db"), Ledger(tmp_path / "forged.db")
    real.set_budget(DATASET, 1)
    noted = real.head()
    forged.set_budget(DATASET, 2)
    assert forged.verify().ok
    assert not forged.verify(noted=noted).ok
    real.set_budget(DATASET, 3)
    assert real.verify(noted=noted).ok


def test_a_byte_that_is_no_text_any_more_is_found(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "books.db")
    ledger.set_budget(DATASET, 1)
    raw = create_engine(f"sqlite:///{tmp_path}/books.db")
    with raw.begin() as connection:
        connection.execute(text("UPDATE pcor_entries SET dataset = CAST(x'ff' AS TEXT)"))
    raw.dispose()
    assert not ledger.verify().ok


def test_a_tampered_answer_is_not_given_out(ledger: Ledger) -> None:
    release(ledger)
    with ledger.database.writing() as connection:
        entries = tables.entries
        body = connection.execute(select(entries.c.body).where(entries.c.number == 3)).scalar_one()
        forged = body.replace('"private":true', '"private":false')
        connection.execute(update(entries).where(entries.c.number == 3).values(body=forged))
    with pytest.raises(LedgerError, match="damaged"):
        release(ledger)


def test_damaged_books_pay_for_nothing(ledger: Ledger) -> None:
    with ledger.database.writing() as connection:
        connection.execute(update(tables.accounts).values(spent_ocdp="-5x"))
    with pytest.raises(LedgerError, match="damaged"):
        release(ledger)


def test_amounts_in_the_books_read_as_people_write_them(ledger: Ledger) -> None:
    release(ledger, epsilon="1/3")
    shown = ledger.status(DATASET).to_dict()
    assert (shown["spent"], shown["left"], shown["cap"]) == ("1/3", "2/3", None)
    assert f"epsilon {plain(Fraction(2, 3))} left of 1" in str(ledger.status(DATASET))
