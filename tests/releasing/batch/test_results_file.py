"""The results file: an answer in it is never drawn again, whatever is killed when."""

from __future__ import annotations

import json
import os
import random
from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from pcor.errors import ParameterError, WriteError
from pcor.ledger import Ledger
from pcor.releasing.batch import results_file
from tests.helpers.batches import SOME, bits, many, written
from tests.helpers.ledger_clients import DATASET, EACH, OUTLIER, lines, note, start
from tests.helpers.many_clients import EVERYBODY, drawing_with, run_and_die, run_over_everybody
from tests.helpers.other_systems import windows_files

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


def test_the_file_is_put_in_order_where_no_open_file_can_be_replaced(out: Path) -> None:
    with windows_files():
        many([8, OUTLIER], out=out)
        many([OUTLIER, 3, 8], out=out)
    assert [line["record"] for line in written(out)] == [OUTLIER, 3, 8]


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
