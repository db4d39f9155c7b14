"""Many records at once: in the order asked, charged once, drawn once, whatever is killed when."""

from __future__ import annotations

import json
import os
import random
import threading
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import csv, parquet

import pcor
from pcor.errors import (
    BudgetExceeded,
    NotAsked,
    NoValidContext,
    ParameterError,
    RecordError,
    SourceError,
    StillRunning,
    Unfinished,
    WriteError,
)
from pcor.ledger import Ledger
from pcor.releasing.batch import Results, results_file
from pcor.releasing.batch import run as running
from pcor.releasing.batch.lookup import Lookup, find_several
from pcor.releasing.run import release
from tests.cli.test_cli import GRUBBS, Files, Ran, files, pcor_
from tests.helpers.engines import LOCAL, SERVERS
from tests.helpers.engines import SCHEMA as ENGINE_SCHEMA
from tests.helpers.engines import people as engine_people
from tests.helpers.ledger_clients import DATASET, EACH, OUTLIER, SETTINGS, lines, note, start, table
from tests.helpers.many_clients import EVERYBODY, drawing_with, run_and_die, run_over_everybody
from tests.helpers.waiting import DEADLINE

__all__ = ["files"]  # a fixture

LOOSE: dict[str, Any] = {"detector": "lof:k=5,min_population=6,threshold=1.01"}
SOME = [OUTLIER, 3, 40, 8, 21]
MAKERS = {**LOCAL, "postgresql": SERVERS["postgresql"]}


def many(records: Any = SOME, each: object = EACH, **options: Any) -> Results:
    """Run over the small table, with a detector that finds nearly everybody somewhere."""
    return pcor.release_many(table(), records, each, **LOOSE | options)


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    opened = Ledger(tmp_path / "books.db")
    opened.set_budget(DATASET, 100)
    yield opened
    opened.close()


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "results.jsonl"


def written(out: Path) -> list[dict[str, Any]]:
    """Return the whole lines of a results file."""
    text = out.read_text(encoding="utf-8") if out.exists() else ""
    return [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]


def bits(results: Results) -> list[str]:
    return [found.context.bits for found in results.releases]


# -- what comes out -------------------------------------------------------------------------------


def test_results_stand_in_the_order_asked() -> None:
    asked = [OUTLIER, 3, "40", OUTLIER, 8]
    results = many(asked)
    assert [found.record for found in results.releases] == [OUTLIER, 3, 40, OUTLIER, 8]
    assert results.exit_code == 0


def test_every_draw_is_the_draw_of_a_single_release() -> None:
    """With the same seed, a run draws what single releases draw: it is the same code."""
    chooser = pcor.testing.seeded(5)
    single = [pcor.release(table(), r, EACH, chooser=chooser, **LOOSE) for r in SOME]
    results = many(chooser=pcor.testing.seeded(5), workers=2)
    assert bits(results) == [found.context.bits for found in single]
    assert [found.to_dict() for found in results.releases] == [found.to_dict() for found in single]


def test_a_record_listed_twice_is_drawn_and_paid_once() -> None:
    budget = pcor.Budget(1)
    drawn: list[object] = []
    with drawing_with(lambda record: drawn.append(record)):
        results = many([8, "8", 8], budget=budget)
    assert drawn == [8]
    assert budget.spent == results.charged == Fraction(EACH)
    assert len(set(bits(results))) == 1


def test_a_failing_record_does_not_end_the_run() -> None:
    results = pcor.release_many(table(), [5, OUTLIER, 4000], EACH, **SETTINGS)
    assert [type(found) for found in results] == [NoValidContext, pcor.Release, RecordError]
    assert results.charged == 2 * Fraction(EACH)  # "none" is an answer; "no such record" is not
    assert results.exit_code == 4
    assert str(results).startswith(
        "1 of 3 records released; 1 with no valid context; 1 not in the table. "
        "Cost of this run: epsilon 0.02."
    )


def test_an_error_among_the_results_brings_nothing_but_its_words() -> None:
    """A traceback would hold the table and what was found in it."""
    results = many([4000, 3, 8], budget=pcor.Budget(EACH))
    assert [type(found) for found in results] == [RecordError, pcor.Release, BudgetExceeded]
    none = pcor.release_many(table(), [5], EACH, **SETTINGS)
    for error in (*results, *none):
        if isinstance(error, pcor.PcorError):
            assert (error.__traceback__, error.__context__, error.__cause__) == (None,) * 3


def test_progress_tells_how_many_are_done_and_nothing_else() -> None:
    told: list[tuple[int, int]] = []
    many([OUTLIER, 4000, 3, 8], progress=lambda *counts: told.append(counts), workers=2)
    assert told == [(1, 4), (2, 4), (3, 4), (4, 4)]


@given(st.lists(st.sampled_from([OUTLIER, str(OUTLIER), 5, 4000, 8, "name"]), min_size=1))
def test_any_list_has_a_result_for_each_entry_and_costs_what_it_says(records: list[Any]) -> None:
    results = pcor.release_many(table(), records, EACH, workers=1, **SETTINGS)
    assert len(results) == len(records)
    for (record, found), asked in zip(results.by_record(), records, strict=True):
        assert str(record) == str(asked)
        assert isinstance(found, pcor.Release) == (record == OUTLIER)
    known = set(map(str, records)) - {"4000", "name"}
    assert results.charged == len(known) * Fraction(EACH) <= results.plan.epsilon


def test_a_run_says_what_all_of_it_costs_before_it_begins() -> None:
    planned = pcor.plan_many(table().schema, range(12), "0.05", **LOOSE)
    assert planned.epsilon == Fraction(3, 5)
    assert str(planned).startswith("12 records, epsilon 0.05 each: epsilon 0.6 at most.")
    assert "every one of these records keeps its set of valid contexts" in planned.together
    assert planned.to_dict()["epsilon_total"] == "0.6"


def test_the_total_of_the_strong_guarantee_covers_everyone_but_the_records() -> None:
    planned = pcor.plan_many(table().schema, [1, 2], "0.5", detector="tail", guarantee="dp")
    assert "epsilon 1 for everyone who is not one of these records" in planned.together


def test_the_delta_of_all_answers_is_stated() -> None:
    how = {"search": "breadth_first", "delta": "1e-6"}
    planned = pcor.plan_many(table().schema, [1, 2], "0.5", **how)
    assert planned.delta == Fraction(2, 10**6)
    assert "and delta 0.000002 at most" in str(planned)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"records": []}, "records is empty"),
        ({"records": "17"}, "a list of keys"),
        ({"records": [1.5]}, "a whole number or a text"),
        ({"dataset": DATASET}, "dataset goes with a ledger"),
        ({"workers": 0}, "workers must be a whole number"),
        ({"out": "results.csv"}, "must end in .jsonl"),
        ({"detector": "nobody"}, "unknown detector"),
    ],
)
def test_a_wrong_request_is_refused_in_a_sentence(options: dict[str, Any], said: str) -> None:
    with pytest.raises(pcor.PcorError, match=said):
        many(**options)


def test_a_ledger_and_a_budget_cannot_both_pay(ledger: Ledger) -> None:
    with pytest.raises(ParameterError, match="cannot both pay"):
        many(ledger=ledger, budget=pcor.Budget(1))


# -- side by side ---------------------------------------------------------------------------------


def test_draws_run_side_by_side() -> None:
    together = threading.Barrier(2)
    with drawing_with(lambda _: together.wait(timeout=DEADLINE)):
        assert len(many([3, 8, 21, 40], workers=2).releases) == 4


@pytest.mark.parametrize("last", [3, 8])
def test_the_order_of_entries_does_not_tell_which_draw_took_long(
    ledger: Ledger, out: Path, last: int
) -> None:
    other = threading.Event()

    def work(record: object) -> None:
        if record == last:
            other.wait(timeout=DEADLINE)

    def done(rows: Any, record: Any, *words: Any, **options: Any) -> pcor.Release:
        work(record)
        released = release(rows, record, *words, **options)
        if record in (3, 8) and record != last:
            other.set()
        return released

    with patch.object(running, "release", done):
        many([3, 8, 21, 40, 7, 9], ledger=ledger, out=out, workers=2)
    keys = {e.key: e.content["request"]["record"] for e in ledger.entries() if e.kind == "charge"}
    order = [(e.kind, keys[e.key]) for e in ledger.entries() if e.kind in ("charge", "answer")]
    assert order == [
        *(("charge", 3), ("charge", 8), ("charge", 21), ("charge", 40)),
        *(("answer", 3), ("charge", 7), ("answer", 8), ("charge", 9)),
        *(("answer", 21), ("answer", 40), ("answer", 7), ("answer", 9)),
    ]
    assert [line["record"] for line in written(out)] == [3, 8, 21, 40, 7, 9]


@pytest.mark.parametrize(
    ("failure", "workers"), [(RuntimeError, 1), (RuntimeError, 2), (KeyboardInterrupt, 1)]
)
def test_a_run_that_breaks_off_leaves_nothing_locked_and_goes_on(
    ledger: Ledger, failure: type[BaseException], workers: int
) -> None:
    draws: list[object] = []

    def work(record: object) -> None:
        draws.append(record)
        if record == 40:
            raise failure

    with drawing_with(work), pytest.raises(failure):
        many(ledger=ledger, workers=workers)
    results = many(ledger=ledger, workers=workers)
    assert results.exit_code == 0
    assert ledger.status(DATASET).spent["ocdp"] == len(SOME) * Fraction(EACH)
    assert ledger.verify().ok


@pytest.mark.parametrize(("workers", "begun"), [(1, 1), (2, 3)])
def test_a_source_that_fails_ends_the_run_and_the_same_call_goes_on_free(
    ledger: Ledger, out: Path, workers: int, begun: int
) -> None:
    """One that is charged when it fails, and stays unfinished, with one worker; up to four."""

    def work(record: object) -> None:
        if record == 40:
            raise SourceError("the line dropped")

    with drawing_with(work):
        results = many(ledger=ledger, out=out, workers=workers)
    answered, ended = [pcor.Release] * 2, [Unfinished] * begun + [NotAsked] * (3 - begun)
    assert [type(found) for found in results] == answered + ended
    assert "dropped. This request is charged and unfinished: ask the same again" in str(results[2])
    assert results.exit_code == 2
    assert "The source failed, and the run ended: the line dropped. This request" in str(results)
    assert results.charged == (2 + begun) * Fraction(EACH) == ledger.status(DATASET).spent["ocdp"]
    assert [line["charged"] for line in written(out)] == [True] * 2 + [False] * (3 - begun)
    rest = many(ledger=ledger, out=out, workers=workers)
    assert rest.exit_code == 0
    assert rest.charged == (3 - begun) * Fraction(EACH)
    assert bits(rest)[:2] == bits(results)
    assert ledger.status(DATASET).spent["ocdp"] == len(SOME) * Fraction(EACH)
    assert ledger.verify().ok


def test_answers_that_nothing_else_remembers_outlive_a_source_that_fails() -> None:
    budget = pcor.Budget(1)

    def work(record: object) -> None:
        if record == 8:
            raise SourceError("the line dropped")

    with drawing_with(work):
        results = many(budget=budget, workers=1)
    assert [type(found) for found in results[:4]] == [*[pcor.Release] * 3, Unfinished]
    assert "the charge stays; asking again is charged again" in str(results[3])
    assert budget.spent == results.charged == 4 * Fraction(EACH)


def test_a_source_that_fails_between_two_rounds_leaves_the_first(ledger: Ledger) -> None:
    looks = iter([None, SourceError("the line dropped")])

    def look_up(*_: object) -> None:
        failure = next(looks)
        if failure is not None:
            raise failure

    with patch.object(running, "ROUND", 3), patch.object(Lookup, "look_up", look_up):
        results = many(ledger=ledger, workers=1)
    assert [type(found) for found in results] == [pcor.Release] * 3 + [NotAsked] * 2
    assert "2 not asked for" in str(results)
    assert ledger.status(DATASET).spent["ocdp"] == results.charged == 3 * Fraction(EACH)


def test_an_interrupt_while_others_draw_ends_the_run_at_once(ledger: Ledger) -> None:
    for_ever = threading.Event()

    def told(*_: int) -> None:
        raise KeyboardInterrupt

    def work(record: object) -> None:
        if record != SOME[0]:
            for_ever.wait(timeout=DEADLINE)

    with drawing_with(work), pytest.raises(KeyboardInterrupt):
        many(ledger=ledger, workers=2, progress=told)
    for_ever.set()
    assert many(ledger=ledger).exit_code == 0
    assert ledger.verify().ok


# -- who pays -------------------------------------------------------------------------------------


def test_the_same_run_again_is_free_and_says_the_same(ledger: Ledger) -> None:
    first = many(ledger=ledger)
    again = many(ledger=ledger)
    assert [f.to_dict() for f in again.releases] == [f.to_dict() for f in first.releases]
    assert first.charged == len(SOME) * Fraction(EACH)
    assert again.charged == 0


def test_a_run_and_a_single_release_share_their_answers(ledger: Ledger) -> None:
    single = ledger.release(table(), 8, EACH, dataset=DATASET, **LOOSE)
    results = many(ledger=ledger)
    assert results[SOME.index(8)] == single
    again = ledger.release(table(), 3, EACH, dataset=DATASET, **LOOSE)
    assert again.to_dict() == results.releases[SOME.index(3)].to_dict()
    assert ledger.status(DATASET).spent["ocdp"] == len(SOME) * Fraction(EACH)


def test_a_budget_of_this_process_pays_in_the_order_asked() -> None:
    results = many(budget=pcor.Budget(3 * Fraction(EACH)), workers=2)
    assert [isinstance(found, pcor.Release) for found in results] == [True] * 3 + [False] * 2
    assert isinstance(results[3], BudgetExceeded)
    assert results.exit_code == 3
    assert "2 not paid for" in str(results)
    assert "Not all are paid for: this release asks for epsilon 0.01" in str(results)


def test_when_the_budget_ends_known_answers_are_given_and_nothing_more_is_charged(
    ledger: Ledger, out: Path
) -> None:
    many([21], ledger=ledger)
    ledger.set_budget(DATASET, 3 * Fraction(EACH))
    results = many(ledger=ledger, out=out, workers=2)
    assert [isinstance(found, pcor.Release) for found in results] == [
        *(True, True, False, False),
        True,  # 21, paid before
    ]
    assert Counter(entry.kind for entry in ledger.entries())["refusal"] == 1
    assert ledger.left(DATASET) == 0
    assert [line["charged"] for line in written(out)] == [True, True, False, False, True]
    ledger.set_budget(DATASET, 1)
    rest = many(ledger=ledger, out=out)
    assert rest.exit_code == 0
    assert rest.charged == 2 * Fraction(EACH)
    assert rest[0] == results[0]
    assert [line["record"] for line in written(out)] == SOME


def test_what_another_process_is_drawing_is_left_to_it(ledger: Ledger) -> None:
    held = threading.Event()
    begun = threading.Event()

    def work(_: object) -> None:
        begun.set()
        held.wait(timeout=DEADLINE)

    with drawing_with(work):
        other = threading.Thread(target=many, args=([8],), kwargs={"ledger": ledger, "workers": 2})
        other.start()
        begun.wait(timeout=DEADLINE)
        held_back = many([8], ledger=ledger)
        held.set()
        other.join()
    assert isinstance(held_back[0], StillRunning)
    assert held_back.exit_code == 5
    assert many([8], ledger=ledger).charged == 0


def test_a_dataset_without_a_budget_ends_the_run_before_anything_is_drawn(ledger: Ledger) -> None:
    with pytest.raises(ParameterError, match="no budget for dataset 'others'"):
        many(ledger=ledger, dataset="others")


# -- the results file -----------------------------------------------------------------------------


def test_an_answer_in_the_file_is_never_drawn_again(out: Path) -> None:
    first = many([OUTLIER, 3], out=out)
    drawn: list[object] = []
    with drawing_with(lambda record: drawn.append(record)):
        longer = many([8, OUTLIER, 3, 4000], out=out)
    assert drawn == [8]
    assert bits(longer)[1:] == bits(first)
    assert [(line["record"], line["charged"]) for line in written(out)] == [
        *((8, True), (OUTLIER, True), (3, True)),
        (4000, False),
    ]


def test_a_line_is_a_certificate_and_public_names(out: Path) -> None:
    results = many([3], out=out)
    (line,) = written(out)
    assert line.pop("answer") == results.releases[0].to_dict()
    assert line.keys() == {"format", "record", "charged", "paid_by", "request"}


def test_an_answer_is_on_the_disk_before_it_counts(out: Path) -> None:
    synced: list[int] = []
    real = os.fsync

    def fsync(handle: int) -> None:
        real(handle)
        synced.append(len(written(out)))

    def told(done: int, _: int) -> None:
        assert synced[-1] == done

    with patch("pcor.releasing.batch.results_file.os.fsync", fsync):
        many(out=out, progress=told)


def test_a_torn_last_line_is_cut_off_and_drawn_again(out: Path) -> None:
    many([OUTLIER, 3], out=out)
    whole = written(out)
    out.write_bytes(out.read_bytes()[:-40])
    drawn: list[object] = []
    with drawing_with(lambda record: drawn.append(record)):
        many([OUTLIER, 3], out=out)
    assert drawn == [3]
    assert written(out)[0] == whole[0]
    assert len(written(out)) == 2


@pytest.mark.parametrize(
    "other",
    [{"records": [OUTLIER]}, {"each": "0.02"}, {"detector": "grubbs"}, {"ledger": "books"}],
    ids=["other records", "another epsilon", "another detector", "another payer"],
)
def test_a_file_of_another_run_is_refused_and_kept(
    out: Path, ledger: Ledger, other: dict[str, Any]
) -> None:
    many([OUTLIER, 3], out=out)
    before = out.read_bytes()
    if "ledger" in other:
        other = {"ledger": ledger}
    with pytest.raises(WriteError, match="answers to other requests"):
        many(**{"records": [OUTLIER, 3], "out": out, **other})
    assert out.read_bytes() == before


DEEP = "[" * 100_000


@pytest.mark.parametrize(
    "content",
    ["{}\n", "[1]\n", "record,bits\n", '{"format": "x"}\n', f"{DEEP}\n"],
    ids=lambda content: content[:12].strip(),
)
def test_a_file_of_something_else_is_refused_and_kept(out: Path, content: str) -> None:
    out.write_text(content)
    with pytest.raises(WriteError, match="not a results file"):
        many(out=out)
    assert out.read_text() == content


def test_a_forged_line_is_not_believed_where_a_ledger_knows_better(
    out: Path, ledger: Ledger
) -> None:
    first = many(ledger=ledger, out=out)
    left, true = ledger.left(DATASET), out.read_bytes()
    bits = first.releases[0].context.bits
    forged = true.replace(bits.encode(), bits.translate(str.maketrans("01", "10")).encode(), 1)
    assert forged != true
    out.write_bytes(forged)
    with pytest.raises(WriteError, match=r"another answer for record 17 than the ledger.*is kept"):
        many(ledger=ledger, out=out)
    assert out.read_bytes() == forged
    assert ledger.left(DATASET) == left
    again = many(ledger=ledger, out=out.with_name("again.jsonl"))
    assert [one.to_dict() for one in again.releases] == [one.to_dict() for one in first.releases]
    assert ledger.left(DATASET) == left


def test_a_line_that_the_ledger_has_not_answered_is_refused_before_any_charge(
    out: Path, ledger: Ledger, tmp_path: Path
) -> None:
    other = Ledger(tmp_path / "other.db")
    other.set_budget(DATASET, 100)
    many(SOME[:2], ledger=other, out=out)
    with pytest.raises(WriteError, match="the ledger restored from a copy"):
        many(SOME, ledger=ledger, out=out)
    assert ledger.left(DATASET) == 100


@pytest.mark.parametrize("answer", ["{}", "[]", '{"format": "pcor-release/1"}', "7"])
def test_a_line_with_no_answer_in_it_is_refused_in_a_sentence(out: Path, answer: str) -> None:
    many([OUTLIER], out=out)
    line = json.loads(out.read_text())
    out.write_text(json.dumps(line | {"answer": json.loads(answer)}) + "\n")
    (found,) = many([OUTLIER], out=out).outcomes
    assert isinstance(found, ParameterError)


def test_two_runs_cannot_write_one_file(out: Path) -> None:
    def told(*_: int) -> None:
        with pytest.raises(WriteError, match="being written by another run"):
            many(out=out)

    many([3], out=out, progress=told)


def test_a_full_disk_stops_the_run_and_the_same_call_goes_on(out: Path, ledger: Ledger) -> None:
    real, count = os.fsync, 0

    def fsync(handle: int) -> None:
        nonlocal count
        count += 1
        if count == 4:  # the folder, two answers, and then
            raise OSError(28, "no space")
        real(handle)

    with (
        patch("pcor.releasing.batch.results_file.os.fsync", fsync),
        pytest.raises(WriteError, match="the same call goes on"),
    ):
        many(out=out, ledger=ledger, workers=1)
    assert [line["record"] for line in written(out)] == SOME[:2]
    assert many(out=out, ledger=ledger).exit_code == 0
    assert ledger.status(DATASET).spent["ocdp"] == len(SOME) * Fraction(EACH)


def test_a_run_that_dies_while_it_puts_the_file_in_order_loses_nothing(out: Path) -> None:
    with (
        patch.object(results_file, "write_whole", side_effect=KeyboardInterrupt),
        pytest.raises(KeyboardInterrupt),
    ):
        many([*SOME, 4000], out=out)
    before = written(out)
    with drawing_with(lambda _: pytest.fail("drawn again")):
        many([*SOME, 4000], out=out)
    assert written(out)[:-1] == before


# -- kill -9 --------------------------------------------------------------------------------------


def check_nothing_is_lost_or_repeated(
    ledger: Ledger | None, out: Path, trace: Path, seen: dict[int, str]
) -> None:
    """Assert what must hold at any moment, given the answers and draws seen until before.

    ``seen`` holds each answer that was ever in the file, and how many draws there were then.
    """
    found = {line["record"]: json.dumps(line["answer"]) for line in written(out)}
    assert len(found) == len(written(out)), "two lines for one record"
    for record, answer in seen.items():
        assert found.get(record) == answer, "an answer was lost or changed"
    drawn = Counter(int(record) for _, record in lines(trace))
    assert found.keys() <= drawn.keys()
    seen.update(found)
    if ledger is not None:
        books = {"charge": Counter[str](), "answer": Counter[str]()}
        for entry in ledger.entries():
            if entry.kind in books:
                books[entry.kind][entry.key] += 1
        assert set((books["charge"] + books["answer"]).values()) <= {1, 2}
        assert set(books["charge"].values()) <= {1}, "charged twice"
        assert set(books["answer"].values()) <= {1}, "answered twice"
        assert len(drawn) <= len(books["charge"]), "drawn before it was charged"
        assert len(found) <= len(books["answer"]), "written before it was stored"
        assert ledger.status(DATASET).spent["ocdp"] == len(books["charge"]) * Fraction(EACH)
        assert ledger.verify().problems == ()


@pytest.mark.parametrize("paid", ["ledger", "nothing"])
def test_fifteen_kills_lose_and_repeat_nothing(
    paid: str, ledger: Ledger, out: Path, trace: Path, tmp_path: Path
) -> None:
    numbers = random.Random()  # noqa: S311 (when to kill; any choice must pass)
    url = str(tmp_path / "books.db") if paid == "ledger" else None
    books = ledger if paid == "ledger" else None
    seen: dict[int, str] = {}
    for _ in range(15):
        before, answered = len(lines(trace)), set(seen)
        draws = numbers.randrange(1, 6)
        runner = start(run_and_die, url, out, trace, draws, numbers.randrange(1 << 30))
        runner.join()
        assert runner.exitcode == -9, "it was to be killed, long before its end"
        drawn = {int(record) for _, record in lines(trace)[before:]}
        assert not answered & drawn, "drawn again after its answer"
        check_nothing_is_lost_or_repeated(books, out, trace, seen)
    assert 0 < len(seen) < len(EVERYBODY)
    results = run_over_everybody(books, out, trace)
    check_nothing_is_lost_or_repeated(books, out, trace, seen)
    assert [line["record"] for line in written(out)] == EVERYBODY
    if books is not None:
        assert books.status(DATASET).spent["ocdp"] == len(EVERYBODY) * Fraction(EACH)
    before = len(lines(trace))
    again = run_over_everybody(books, out, trace)
    assert len(lines(trace)) == before
    assert again.charged == 0
    assert again.to_dict()["results"] == results.to_dict()["results"]


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    return tmp_path / "trace"


@pytest.mark.parametrize("lost", ["line", "answer", "charge"])
def test_the_check_of_the_kills_sees_a_run_that_forgets(
    ledger: Ledger, out: Path, trace: Path, lost: str
) -> None:
    with drawing_with(lambda record: note(trace, "drawn", record)):
        many(ledger=ledger, out=out)
    seen: dict[int, str] = {}
    check_nothing_is_lost_or_repeated(ledger, out, trace, seen)
    if lost == "line":
        out.write_text("".join(out.read_text().splitlines(keepends=True)[1:]))
    elif lost == "answer":
        seen[SOME[0]] = "another"
    else:
        note(trace, "drawn", 99)
    with pytest.raises(AssertionError):
        check_nothing_is_lost_or_repeated(ledger, out, trace, seen)


# -- rows that lie elsewhere ----------------------------------------------------------------------


@pytest.mark.parametrize("engine", MAKERS)
def test_many_keys_are_found_at_once_as_one_by_one(engine: str, tmp_path: Path) -> None:
    rows = engine_people(60)
    keys = rows["key"].to_pylist()
    rows = rows.set_column(0, "key", pa.array([*keys[:-1], keys[0]]))  # the first twice
    lazy = pcor.Table(MAKERS[engine](rows, tmp_path), ENGINE_SCHEMA)
    check_found(lazy, [keys[0], keys[1], keys[7], 4, "name", -1, 1 << 70])


@pytest.mark.parametrize("engine", MAKERS)
def test_keys_that_are_texts_are_found_at_once_as_one_by_one(engine: str, tmp_path: Path) -> None:
    rows = engine_people(60)
    names = ["it's", "017", "17", "é", "a\\b", *(f"n{place}" for place in range(55))]
    rows = rows.set_column(0, "key", pa.array(names))
    lazy = pcor.Table(MAKERS[engine](rows, tmp_path), ENGINE_SCHEMA)
    check_found(lazy, ["it's", "017", 17, "é", "a\\b", "n3", "N3", 18])


def check_found(lazy: pcor.Table, keys: list[int | str]) -> None:
    """Compare what is found at once with what ``Table.record`` finds."""

    def look(rows: pcor.Table, key: int | str) -> object:
        try:
            found = rows.record(key)
        except RecordError as error:
            return str(error)
        return found.key, found.value, found.space

    together = Lookup(lazy)
    together.look_up(keys)
    assert len(together._known) >= 4
    assert [look(together.table, key) for key in keys] == [look(lazy, key) for key in keys]


def test_row_numbers_are_looked_up_one_by_one(tmp_path: Path) -> None:
    numbered = pcor.Schema(metric="pay", attributes={"year": [2019, 2020, 2021]})
    lazy = pcor.Table(LOCAL["duckdb"](engine_people(60), tmp_path), numbered)
    assert lazy.pushdown is not None
    assert find_several(lazy.pushdown, [1, 2, 3]) == {}
    results = pcor.release_many(lazy, [1, 59, 60], 1, **LOOSE)
    assert isinstance(results[2], RecordError)


@pytest.mark.parametrize(
    "detector", ["lof:k=5", "grubbs", "histogram", "tail", "rare_bin:edges=0|900|2000"]
)
def test_all_records_share_the_passes_over_rows_that_lie_elsewhere(
    detector: str, tmp_path: Path
) -> None:
    rows = engine_people(200)
    how: dict[str, Any] = {"detector": detector, "chooser": pcor.testing.seeded(3)}
    keys = rows["key"].to_pylist()[:20:2]

    def asked(records: list[int]) -> tuple[int, list[Any]]:
        lazy = pcor.Table(LOCAL["duckdb"](rows, tmp_path), ENGINE_SCHEMA)
        assert lazy.pushdown is not None
        engine = lazy.pushdown.engine
        real, queries = engine.run, 0

        def run(query: str) -> pa.Table:
            nonlocal queries
            queries += 1
            return real(query)

        engine.run = run  # type: ignore[method-assign]
        how["chooser"] = pcor.testing.seeded(3)
        found = pcor.release_many(lazy, records, 1, **how)
        return queries, found.to_dict()["results"]

    few, _ = asked(keys[:2])
    more, found = asked(keys)
    assert more == few <= 3
    how["chooser"] = pcor.testing.seeded(3)
    local = pcor.release_many(pcor.Table(rows, ENGINE_SCHEMA), keys, 1, **how).to_dict()["results"]
    for one in (*found, *local):
        one["answer"].pop("engine", None)
    assert found == local


def test_no_row_decides_the_order_of_entries_by_a_limit_of_the_engine(
    tmp_path: Path, ledger: Ledger
) -> None:
    """One more row, and the pairs of all records together are above the limit."""
    rows = engine_people(200)
    keys, rule = rows["key"].to_pylist()[:6], "histogram:rare=0.02"

    def order(people: pa.Table, pairs: int, dataset: str) -> list[tuple[str, int]]:
        lazy = pcor.Table(LOCAL["duckdb"](people, tmp_path), ENGINE_SCHEMA, pairs=pairs)
        ledger.set_budget(dataset, 10)
        how: dict[str, Any] = {"ledger": ledger, "dataset": dataset}
        try:
            pcor.release_many(lazy, keys, 1, workers=2, detector=rule, **how)
        except pcor.errors.TooLarge:
            assert ledger.status(dataset).spent["ocdp"] == 0  # as the table alone decides
            return []
        found = [e for e in ledger.entries(dataset) if e.kind in ("charge", "answer")]
        records = {e.key: e.content["request"]["record"] for e in found if e.kind == "charge"}
        return [(entry.kind, records[entry.key]) for entry in found]

    def most(people: pa.Table) -> int:
        """Return how many pairs the records of a round need together."""
        lazy = pcor.Table(LOCAL["duckdb"](people, tmp_path), ENGINE_SCHEMA)
        needed = []
        assert lazy.pushdown is not None
        real = lazy.pushdown.pairs

        def pairs(*ends: float) -> Any:
            found = real(*ends)
            needed.append(len(found.values))
            return found

        with patch.object(lazy.pushdown, "pairs", pairs):
            pcor.release_many(lazy, keys, 1, workers=2, detector=rule)
        return max(needed)

    one = rows.slice(0, 1).set_column(0, "key", pa.array([9_999]))
    more = pa.concat_tables([rows, one.set_column(4, "pay", pa.array([1003.125]))])
    limit = most(rows)
    assert most(more) == limit + 1
    first, second = order(rows, limit, "first"), order(more, limit, "second")
    public = [("charge", key) for key in keys[:4]]
    public += [("answer", keys[0]), ("charge", keys[4]), ("answer", keys[1]), ("charge", keys[5])]
    public += [("answer", key) for key in keys[2:]]
    assert first in ([], public)
    assert second in ([], public)


def test_an_engine_that_fails_ends_the_run_before_anything_is_charged(
    tmp_path: Path, ledger: Ledger
) -> None:
    rows = engine_people(200)
    lazy = pcor.Table(LOCAL["duckdb"](rows, tmp_path), ENGINE_SCHEMA)
    assert lazy.pushdown is not None
    with (
        patch.object(lazy.pushdown.engine, "run", side_effect=RuntimeError("a cell: 400.5")),
        pytest.raises(pcor.errors.SourceError, match="could not answer") as raised,
    ):
        pcor.release_many(lazy, [3, 10], 1, ledger=ledger, dataset=DATASET, **LOOSE)
    assert "400.5" not in str(raised.value)
    assert ledger.status(DATASET).spent["ocdp"] == 0


# -- the command ----------------------------------------------------------------------------------


def released(files: Files, listed: Path, *more: object) -> Ran:
    words = ("--records", listed, "--epsilon", "0.1", "--detector", GRUBBS)
    return pcor_("release", *files.table_and_schema, *words, *more)


@pytest.fixture
def listed(files: Files) -> Path:
    path = files.folder / "list.txt"
    path.write_text("17\n\n 17 \n", encoding="utf-8")
    return path


def test_a_list_is_released_and_said(files: Files, listed: Path, out: Path) -> None:
    ran = released(files, listed, "--out", out)
    assert ran.code == 0, ran.err
    assert ran.out.startswith("Record 17 is an outlier by pay")
    assert "1 records, epsilon 0.1 each: epsilon 0.1 at most" in ran.err
    assert "2 of 2 records released" in ran.err
    assert len(written(out)) == 1


def test_the_same_command_again_says_the_same(files: Files, listed: Path, out: Path) -> None:
    first, again = (released(files, listed, "--out", out, "--json") for _ in range(2))
    assert (first.json["charged"], again.json["charged"]) == ("0.1", "0")
    assert again.json["results"] == first.json["results"]
    assert first.json["plan"]["epsilon_total"] == "0.1"


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_list_may_be_a_column(files: Files, out: Path, ending: str) -> None:
    path = files.folder / f"list.{ending}"
    columns = pa.table({"other": ["a", "b", "c"], "key": [17, None, 17]})
    if ending == "csv":
        csv.write_csv(columns, path)
    else:
        parquet.write_table(columns, path)
    ran = released(files, path, "--out", out, "--json")
    assert [found["record"] for found in ran.json["results"]] == [17, 17]
    refused = released(files, path, "--out", out, "--records-column", "kye")
    assert refused.code == 2
    assert "no column 'kye'; did you mean 'key'?" in refused.err


def test_some_without_a_context_end_with_code_4(files: Files, listed: Path, out: Path) -> None:
    listed.write_text("17\n4\nnobody\n")
    ran = released(files, listed, "--out", out)
    assert ran.code == 4
    assert "Record 4: there is no context in which the record is an outlier" in ran.out
    assert "Record nobody: no record with key 'nobody'" in ran.out
    assert [line["charged"] for line in written(out)] == [True, True, False]


def test_a_ledger_that_runs_out_ends_with_code_3_and_keeps_what_there_is(
    files: Files, listed: Path, out: Path, tmp_path: Path
) -> None:
    books = tmp_path / "books.db"
    listed.write_text("17\n4\n5\n")
    assert pcor_("ledger", "budget", books, "pay", "--epsilon", "0.2").code == 0
    ran = released(files, listed, "--out", out, "--ledger", books)
    assert ran.code == 3
    assert "The ledger has epsilon 0.2 left" in ran.err
    assert "1 not paid for" in ran.err
    assert pcor_("ledger", "budget", books, "pay", "--epsilon", 1).code == 0
    rest = released(files, listed, "--out", out, "--ledger", books, "--json")
    assert (rest.code, rest.json["charged"]) == (4, "0.1")
    shown = pcor_("ledger", "show", books, "--json").json["datasets"][0]
    assert shown["spent_ocdp"] == "0.3"


def test_a_plan_over_a_list_states_the_total_and_looks_at_no_row(
    files: Files, listed: Path
) -> None:
    listed.write_text("1\n2\n3\n")
    words = ("--records", listed, "--epsilon", "0.1")
    ran = pcor_("plan", *files.table_and_schema, *words)
    assert ran.code == 0, ran.err
    assert "3 records, epsilon 0.1 each: epsilon 0.3 at most" in ran.out
    assert pcor_("plan", *files.table_and_schema, *words, "--json").json["records"] == 3
    assert pcor_("plan", *files.table_and_schema, *words, "--rows", 9).code == 2


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ((), "--records needs --out FILE.jsonl"),
        (("--out", "here.html"), "must end in .jsonl"),
        (("--record", 17, "--out", "a.jsonl"), "one record with --record, or many"),
        (("--out", "a.jsonl", "--analyst", "ana"), "--analyst goes with --ledger"),
        (("--out", "a.jsonl", "--records-column", "key"), "goes with a .csv or .parquet"),
    ],
)
def test_a_wrong_list_is_refused(
    files: Files, listed: Path, more: tuple[object, ...], said: str
) -> None:
    ran = released(files, listed, *more)
    assert (ran.code, ran.out) == (2, "")
    assert said in ran.err


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("list.txt", "\n", "lists no records"),
        ("gone.txt", None, "no such file"),
        ("list.doc", "17", "must end in .txt, .csv or .parquet"),
        ("list.csv", "a,b\n1,2\n", "several columns; say which"),
    ],
)
def test_a_list_that_cannot_be_read_is_refused(
    files: Files, out: Path, name: str, content: str | None, said: str
) -> None:
    if content is not None:
        (files.folder / name).write_text(content)
    ran = released(files, files.folder / name, "--out", out)
    assert ran.code == 2
    assert said in ran.err


def test_options_of_a_list_are_refused_without_one(files: Files) -> None:
    ran = pcor_("release", *files.request, "--workers", 2)
    assert ran.code == 2
    assert "--workers goes with --records" in ran.err
    ran = pcor_("release", *files.table_and_schema, "--epsilon", 1)
    assert ran.code == 2
    assert "--record" in ran.err
