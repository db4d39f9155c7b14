"""Many records at once: in the order asked, charged once, drawn once, side by side."""

from __future__ import annotations

import threading
from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

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
)
from pcor.ledger import Ledger
from pcor.releasing.batch import run as running
from pcor.releasing.batch.lookup import Lookup
from pcor.releasing.run import read_and_draw
from tests.helpers.batches import LOOSE, SOME, bits, many, written
from tests.helpers.ledger_clients import DATASET, EACH, OUTLIER, SETTINGS, table
from tests.helpers.many_clients import drawing_with
from tests.helpers.waiting import DEADLINE

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
    assert str(results).startswith("1 of 1 records released.")


def test_a_budget_that_is_a_number_is_refused_in_words() -> None:
    with pytest.raises(ParameterError, match=r"budget must be a pcor\.Budget, such as"):
        many([8], budget=1)


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

    def done(plan: pcor.Plan, rows: Any, record: Any, *words: Any) -> pcor.Release:
        work(record)
        released = read_and_draw(plan, rows, record, *words)
        if record in (3, 8) and record != last:
            other.set()
        return released

    with patch.object(running, "read_and_draw", done):
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
