"""``pcor ledger`` and ``pcor release --ledger`` as people use them."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from pcor.ledger import Ledger
from tests.helpers.command_line import GRUBBS, Files, Ran, pcor_
from tests.helpers.postgres import postgres

FREE = "charged before; free (from the books; the table is not compared: --version names a new one)"


@pytest.fixture(params=["sqlite", "postgresql"])
def books(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A ledger with a budget of 1 for the dataset of the schema."""
    url = str(tmp_path / "books.db")
    if request.param == "postgresql":
        url = postgres().new_database()
    assert pcor_("ledger", "budget", url, "pay", "--epsilon", 1).code == 0
    return url


def release(files: Files, books: str, *more: object) -> Ran:
    words = ("--detector", GRUBBS, "--ledger", books, *more)
    return pcor_("release", *files.request, *words)


def status(books: str) -> dict[str, Any]:
    shown: dict[str, Any] = pcor_("ledger", "show", books, "--json").json["datasets"][0]
    return shown


def test_a_budget_for_a_dataset_that_is_new_in_a_ledger_is_noted(books: str) -> None:
    note = "is new in this ledger: a second one for the same people is a second budget"
    misspelt = pcor_("ledger", "budget", books, "pays", "--epsilon", 1)
    assert misspelt.err == f"note: dataset 'pays' {note}; did you mean 'pay'?\n"
    assert pcor_("ledger", "budget", books, "pay", "--epsilon", 2).err == ""
    other = pcor_("ledger", "budget", books, "claims", "--epsilon", 1)
    assert other.err == f"note: dataset 'claims' {note}\n"


def test_a_release_is_paid_from_the_ledger_and_repeated_for_free(files: Files, books: str) -> None:
    first = release(files, books, "--json")
    assert first.code == 0, first.err
    again = release(files, books, "--json")
    assert again.json == first.json
    assert first.err == "charged epsilon 0.5. Left for dataset 'pay': epsilon 0.5\n"
    assert again.err == f"{FREE}. Left for dataset 'pay': epsilon 0.5\n"
    assert (status(books)["spent_ocdp"], status(books)["left"]) == ("0.5", "0.5")


# A draw that asks DuckDB for something that takes seconds.
SLOW = """
import sys
from pcor.releasing import run as releasing
from pcor.releasing.run import release_from

def slow(settled, looked_at, chooser):
    print("drawing", flush=True)
    rows = looked_at.table.pushdown
    rows._questions.ask("SELECT SUM(r.range % 7) AS n FROM range(1000000000) r")
    return release_from(settled, looked_at, chooser)

releasing.release_from = slow
from pcor.cli import run
run()
"""


def test_an_interrupt_inside_duckdb_leaves_the_claim_unfinished(
    files: Files, tmp_path: Path
) -> None:
    books = str(tmp_path / "books.db")
    assert pcor_("ledger", "budget", books, "pay", "--epsilon", 1).code == 0
    how = ("--detector", GRUBBS, "--memory", "1GiB", "--ledger", books)
    words = ["release", *map(str, (*files.request, *how))]
    with subprocess.Popen(  # noqa: S603 (our own words)
        [sys.executable, "-c", SLOW, *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == "drawing\n"
        running.send_signal(signal.SIGINT)
        out, err = running.communicate(timeout=120)
    assert (running.returncode, out) == (130, ""), err
    assert "pcor: interrupted" in err
    assert "the same command again goes on where it was, and is charged once" in err
    assert [entry.kind for entry in Ledger(books).entries()] == ["budget", "charge"]
    ran = pcor_(*words)
    assert ran.code == 0, ran.err
    assert FREE in ran.err
    assert status(books)["left"] == "0.5"


def test_an_interrupt_before_the_charge_says_nothing_of_one(
    files: Files, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    books = str(tmp_path / "books.db")
    assert pcor_("ledger", "budget", books, "pay", "--epsilon", 1).code == 0
    monkeypatch.setattr("pcor.Table", interrupted)
    ran = release(files, books)
    assert ran == Ran(130, "", "pcor: interrupted; no file was left half-written\n")


def test_a_new_key_buys_a_new_draw_until_the_budget_refuses(files: Files, books: str) -> None:
    assert release(files, books).code == 0
    assert release(files, books, "--key", "second").code == 0
    refused = release(files, books, "--key", "third", "--json")
    assert refused.code == 3
    assert refused.json["kind"] == "budget_exceeded"
    assert "asks for epsilon 0.5" in refused.err
    assert "has 0 left: short by 0.5; nothing was spent" in refused.err


def test_an_analyst_spends_an_allotment(files: Files, books: str) -> None:
    refused = release(files, books, "--analyst", "ana")
    assert refused.code == 3
    assert "'ana' has no allotment in dataset 'pay'" in refused.err
    assert "`pcor ledger allot LEDGER pay ana --epsilon 0.5`" in refused.err
    shown = pcor_("ledger", "allot", books, "pay", "ana", "--epsilon", "0.6")
    assert "ana: epsilon 0.6 left of 0.6" in shown.out
    assert release(files, books, "--analyst", "ana").code == 0
    assert status(books)["allotments"][0]["left"] == "0.1"
    short = release(files, books, "--analyst", "ana", "--key", "second")
    assert "the allotment of 'ana' in dataset 'pay' has 0.1 left" in short.err


def test_an_allotment_is_closed_and_opened_again(files: Files, books: str) -> None:
    pcor_("ledger", "allot", books, "pay", "ana", "--epsilon", "0.6")
    assert release(files, books, "--analyst", "ana").code == 0
    closed = pcor_("ledger", "close", books, "pay", "ana")
    assert "ana: closed; epsilon 0.5 was spent" in closed.out
    assert status(books)["allotments"][0]["closed"] is True
    assert release(files, books, "--analyst", "ana", "--key", "second").code == 3
    assert release(files, books, "--analyst", "ana").code == 0  # the same again: answered before
    assert "May spend nothing more; 0.5 was spent" in pcor_("ledger", "history", books).out
    pcor_("ledger", "allot", books, "pay", "ana", "--epsilon", "0.6")
    assert status(books)["allotments"][0]["left"] == "0.1"
    nobody = pcor_("ledger", "close", books, "pay", "bob")
    assert (nobody.code, "'bob' has no allotment" in nobody.err) == (2, True)
    assert pcor_("ledger", "verify", books).code == 0


def test_a_cap_refuses_with_exit_code_3(files: Files, books: str) -> None:
    pcor_("ledger", "budget", books, "pay", "--epsilon", 1, "--cap", "0.1")
    refused = release(files, books)
    assert refused.code == 3
    assert "allows one release 0.1 at most: short by 0.4" in refused.err


def test_a_cap_that_is_not_given_again_is_said_to_be_removed(tmp_path: Path) -> None:
    set_budget = ("ledger", "budget", tmp_path / "books.db", "pay", "--epsilon", 1)
    assert pcor_(*set_budget).err.startswith("note: this ledger is new; ")
    assert pcor_(*set_budget, "--cap", "0.1").err == ""
    removed = "note: the cap of 0.1 on one release is removed; --cap keeps one\n"
    assert pcor_(*set_budget).err == removed
    assert pcor_(*set_budget).err == ""


@pytest.mark.parametrize("option", ["--dataset", "--analyst", "--key", "--version"])
def test_what_a_ledger_needs_goes_with_a_ledger(files: Files, option: str) -> None:
    refused = pcor_("release", *files.request, option, "x")
    assert refused.code == 2
    assert f"{option} goes with --ledger" in refused.err


def test_a_seeded_run_is_not_paid_for(files: Files, books: str) -> None:
    assert release(files, books, "--seed", 1).code == 2
    assert status(books)["left"] == "1"


def test_a_dataset_without_a_budget_is_named(files: Files, books: str) -> None:
    refused = release(files, books, "--dataset", "others")
    assert refused.code == 2
    assert "no budget for dataset 'others'; it has budgets for: pay." in refused.err


def test_a_budget_under_another_name_than_the_schemas_is_hinted_at(
    files: Files, tmp_path: Path
) -> None:
    books = str(tmp_path / "books.db")
    assert pcor_("ledger", "budget", books, "salaries", "--epsilon", 1).code == 0
    refused = release(files, books)
    assert refused.code == 2
    assert "no budget for dataset 'pay' (the name in the schema; --dataset names another)" in (
        refused.err
    )
    assert "it has budgets for: salaries" in refused.err


def test_an_answer_that_there_is_none_is_charged_and_says_so(files: Files, books: str) -> None:
    words = (*files.request_for(3), "--detector", GRUBBS, "--ledger", books)
    first, again = (pcor_("release", *words) for _ in range(2))
    assert (first.code, again.code) == (4, 4)
    assert first.err.startswith("charged epsilon 0.5. Left for dataset 'pay': epsilon 0.5\n")
    assert again.err.startswith(f"{FREE}. Left for dataset 'pay': epsilon 0.5\n")
    assert "This answer is paid for like any other" in again.err


@pytest.mark.parametrize("command", ["show", "history", "export", "verify", "upgrade"])
def test_a_ledger_that_is_not_there_is_said_and_not_made(tmp_path: Path, command: str) -> None:
    refused = pcor_("ledger", command, tmp_path / "typo.db")
    assert refused.code == 5
    assert "there is no ledger" in refused.err
    assert list(tmp_path.iterdir()) == []


def test_export_prints_one_line_for_each_entry(files: Files, books: str, tmp_path: Path) -> None:
    release(files, books)
    printed = pcor_("ledger", "export", books).out.splitlines()
    assert [json.loads(line)["kind"] for line in printed] == ["budget", "charge", "answer"]
    done = pcor_("ledger", "export", books, "--out", tmp_path / "books.jsonl", "--json")
    assert done.json["entries"] == 3
    assert (tmp_path / "books.jsonl").read_text().splitlines() == printed


def test_history_lists_what_happened_in_order(files: Files, books: str) -> None:
    pcor_("ledger", "budget", books, "others", "--epsilon", 3)
    release(files, books, "--out", files.folder / "c.html")
    release(files, books, "--key", "second", "--epsilon", "0.7")
    listed = pcor_("ledger", "history", books, "--json").json
    assert [entry["kind"] for entry in listed["entries"]] == (
        ["budget", "budget", "charge", "answer", "refusal"]
    )
    assert listed["head"] == pcor_("ledger", "show", books, "--json").json["head"]
    lines = pcor_("ledger", "history", books, "pay").out.splitlines()
    assert [line.split()[0] for line in lines] == ["number", "1", "3", "4", "5"]
    for line, said in zip(
        lines[1:],
        ("set to epsilon 1", "17: epsilon 0.5, OCDP", "3 answered: a context", "short by 0.2"),
        strict=True,
    ):
        assert said in line
    # The certificate of a release names its charge.
    charge = listed["entries"][2]["hash"]
    assert f"<td>{charge}</td>" in (files.folder / "c.html").read_text(encoding="utf-8")
    assert charge[:10] in lines[2]


def test_a_certificate_is_not_replaced_and_nothing_is_charged_for_that(
    files: Files, books: str
) -> None:
    out = files.folder / "c.json"
    out.write_text("of another record", encoding="utf-8")
    refused = pcor_(
        "release", *files.request, "--detector", GRUBBS, "--ledger", books, "--out", out
    )
    assert (refused.code, refused.out) == (2, "")
    assert f"'{out}' exists; give another --out, or --force to replace it" in refused.err
    assert out.read_text(encoding="utf-8") == "of another record"
    assert pcor_("ledger", "show", books, "--json").json["datasets"][0]["spent"] == "0"
    release(files, books, "--out", out, "--force")
    assert '"accounting"' in out.read_text(encoding="utf-8")


def test_the_history_of_a_dataset_without_a_budget_is_refused(books: str) -> None:
    refused = pcor_("ledger", "history", books, "nobody")
    assert (refused.code, "no budget for dataset 'nobody'" in refused.err) == (2, True)


def test_verify_says_whether_the_ledger_is_whole(files: Files, books: str) -> None:
    release(files, books)
    whole = pcor_("ledger", "verify", books)
    assert (whole.code, whole.out.startswith("the ledger is whole: 3 entries")) == (0, True)
    noted = pcor_("ledger", "show", books, "--json").json["head"]
    assert pcor_("ledger", "verify", books, "--noted", noted).code == 0
    with Ledger(books).database.writing() as connection:
        connection.execute(text("UPDATE pcor_accounts SET spent_ocdp = '0'"))
    broken = pcor_("ledger", "verify", books, "--json")
    assert (broken.code, broken.json["ok"]) == (5, False)
    assert "the account 'pay' / ''" in broken.json["problems"][0]


def test_a_noted_head_that_is_none_is_refused(books: str) -> None:
    assert pcor_("ledger", "verify", books, "--noted", "nonsense").code == 2


def test_show_tells_the_two_guarantees_apart(files: Files, books: str) -> None:
    release(files, books)
    shown = pcor_("ledger", "show", books, "pay")
    assert "pay: epsilon 0.5 left of 1" in shown.out
    assert "spent 0.5 on releases with the relaxed guarantee (OCDP) and 0 on" in shown.out
    assert "head 3:" in shown.err


def test_a_budget_is_not_lowered_below_what_is_spent(files: Files, books: str) -> None:
    release(files, books)
    refused = pcor_("ledger", "budget", books, "pay", "--epsilon", "0.4")
    assert refused.code == 2
    assert "0.5 is spent already" in refused.err


def test_upgrade_names_the_version(books: str) -> None:
    assert pcor_("ledger", "upgrade", books, "--json").json == {"version": "0001"}
