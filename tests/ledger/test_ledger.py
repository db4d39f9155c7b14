"""The ledger: what it charges, what it repeats, what it refuses, what its books show."""

from __future__ import annotations

import io
import json
import re
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import pcor
from pcor.errors import (
    BudgetExceeded,
    KeyConflict,
    NoValidContext,
    ParameterError,
    RecordError,
    StartError,
)
from pcor.ledger import Ledger
from pcor.releasing.certificate import JSON_SCHEMA
from tests.helpers.books import release
from tests.helpers.ledger_clients import DATASET, EACH, OUTLIER, SETTINGS, ask, drawn, lines, table

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
