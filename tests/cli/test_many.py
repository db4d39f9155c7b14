"""``pcor release --records``: a list of records, its file, its exit codes."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import csv, parquet

from tests.helpers.batches import written
from tests.helpers.command_line import GRUBBS, Files, Ran, pcor_


def released(files: Files, listed: Path, *more: object) -> Ran:
    words = ("--records", listed, "--epsilon", "0.1", "--detector", GRUBBS)
    return pcor_("release", *files.table_and_schema, *words, *more)


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "results.jsonl"


@pytest.fixture
def listed(files: Files) -> Path:
    path = files.folder / "list.txt"
    path.write_text("17\n\n 17 \n", encoding="utf-8")
    return path


def test_one_record_is_not_named_twice(files: Files) -> None:
    """The last one was taken, and paid for, without a word."""
    for command in ("plan", "release"):
        ran = pcor_(command, *files.request, "--record", 7)
        assert (ran.code, ran.out) == (2, "")
        assert "--record names one record, and is given more than once" in ran.err
        assert "--records FILE" in ran.err


def test_a_list_is_released_and_said(files: Files, listed: Path, out: Path) -> None:
    ran = released(files, listed, "--out", out)
    assert ran.code == 0, ran.err
    assert ran.out.startswith("Record 17 (400.5) is an outlier by pay")
    assert "1 records, epsilon 0.1 each: epsilon 0.1 at most" in ran.err
    assert "1 of 1 records released" in ran.err
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
