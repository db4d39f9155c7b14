"""The command line as people use it: what it prints where, how it refuses, what it leaves."""

from __future__ import annotations

import json
import os
import random
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import jsonschema
import pyarrow as pa
import pytest
from pyarrow import csv, parquet
from typer.testing import CliRunner

import pcor
from pcor.cli import app, compiling, owner
from pcor.cli.output import OWNER_ONLY
from pcor.demo import PLANTED
from pcor.public.guarantee import get_guarantee
from pcor.releasing.certificate import JSON_SCHEMA
from tests.helpers.waiting import DEADLINE

CONTRACT = {
    *("format", "record", "metric", "context", "bits", "where", "epsilon", "delta", "promise"),
    *("detector", "search", "utility", "schema_sha256", "private"),
}
# Words that would speak of what a release keeps to itself; none may be a key of a certificate.
KEPT = ("population", "count", "score", "time", "seconds", "draw", "seed", "size", "candidates")

SCHEMA = """\
[dataset]
name = "pay"
id = "key"

[metric]
column = "pay"

[attributes.job]
values = ["clerk", "cook", "pilot"]

[attributes.city]
values = ["Rome", "Oslo"]

[attributes.age]
edges = [0, 30, 60]
"""
OUTLIER = 17
GRUBBS = "grubbs:min_population=5"


class Ran(NamedTuple):
    """What came of a command."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        """The one JSON object on stdout."""
        found: dict[str, Any] = json.loads(self.out)
        assert isinstance(found, dict)
        return found


def pcor_(*words: object, env: dict[str, str | None] | None = None) -> Ran:
    """Run a command in this process."""
    result = CliRunner().invoke(app, [str(word) for word in words], env=env)
    return Ran(result.exit_code, result.stdout, result.stderr)


class Files(NamedTuple):
    """A small table of 120 people with one clear outlier, and its schema."""

    folder: Path
    table: Path
    schema: Path

    @property
    def table_and_schema(self) -> tuple[object, ...]:
        return (self.table, "--schema", self.schema)

    @property
    def request(self) -> tuple[object, ...]:
        return (*self.table_and_schema, "--record", OUTLIER, "--epsilon", "0.5")

    def rewritten(self, **columns: list[Any]) -> Path:
        """Write the table anew with some columns changed; return the new path."""
        table = pa.table({**people(), **columns})
        csv.write_csv(table, self.folder / "changed.csv")
        return self.folder / "changed.csv"

    def declared(self, text: str) -> Path:
        """Write another schema; return its path."""
        path = self.folder / "other.toml"
        path.write_text(text, encoding="utf-8")
        return path

    def listing(self) -> set[str]:
        return {path.name for path in self.folder.iterdir()}


def people(rows: int = 120) -> dict[str, list[Any]]:
    numbers = random.Random(7)  # noqa: S311 (test data)
    table: dict[str, list[Any]] = {
        "key": list(range(rows)),
        "job": [numbers.choice(["clerk", "cook", "pilot"]) for _ in range(rows)],
        "city": [numbers.choice(["Rome", "Oslo"]) for _ in range(rows)],
        "age": [numbers.randint(18, 60) for _ in range(rows)],
        "pay": [round(numbers.gauss(100, 5), 3) for _ in range(rows)],
    }
    for column, value in (("job", "cook"), ("city", "Oslo"), ("age", 41), ("pay", 400.5)):
        table[column][OUTLIER] = value
    return table


@pytest.fixture
def files(tmp_path: Path) -> Files:
    folder = tmp_path / "work"
    folder.mkdir()
    csv.write_csv(pa.table(people()), folder / "pay.csv")
    (folder / "pay.toml").write_text(SCHEMA, encoding="utf-8")
    return Files(folder, folder / "pay.csv", folder / "pay.toml")


# -- what every command does ----------------------------------------------------------------------

COMMANDS = (
    *(["demo"], ["schema", "init"], ["schema", "check"], ["plan"], ["release"], ["contexts"]),
    *(["outliers"], ["tradeoff"], ["doctor"], ["audit"], ["reference"], ["ledger", "budget"]),
    *(
        ["ledger", "allot"],
        ["ledger", "close"],
        ["ledger", "show"],
        ["ledger", "history"],
        ["ledger", "export"],
    ),
    ["ledger", "verify"],
)


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_the_help_of_every_command_has_an_example_and_nothing_of_this_machine(
    command: list[str],
) -> None:
    ran = pcor_(*command, "--help")
    assert ran.code == 0
    assert ran.err == ""
    assert f"pcor {' '.join(command)}" in ran.out.split("Options:")[0].split("\n", 1)[1]
    assert "Example:" in ran.out
    for private in (str(Path.home()), os.getcwd(), os.environ.get("USER") or str(Path.home())):
        assert private not in ran.out
    assert "--json" in ran.out


@pytest.mark.parametrize("command", [[], ["schema"]])
def test_a_bare_command_shows_its_help(command: list[str]) -> None:
    ran = pcor_(*command)
    assert "Usage: pcor" in ran.out + ran.err
    assert "Commands:" in ran.out + ran.err
    assert "pcor explain usage" not in ran.err


def test_the_help_of_pcor_names_every_command_and_says_which_are_for_the_owner() -> None:
    ran = pcor_("--help")
    assert "Try: pcor demo" in ran.out
    said = " ".join(ran.out.split())
    steps = [said.index(step) for step in ("schema init", "delete the marks", "pcor release")]
    assert steps == sorted(steps)
    for name in ("demo", "schema", "plan", "release", "contexts", "outliers", "doctor"):
        assert f"\n  {name} " in ran.out
    owner = [line.split()[0] for line in ran.out.splitlines() if "OWNER ONLY" in line]
    assert owner == ["contexts", "outliers", "reference", "audit"]


def test_version_prints_the_version() -> None:
    assert pcor_("--version") == Ran(0, f"pcor {pcor.__version__}\n", "")


def test_doctor_says_that_everything_is_here() -> None:
    ran = pcor_("doctor")
    assert ran.code == 0
    assert "FAIL" not in ran.out
    assert "ok    private draw: works" in ran.out
    assert ran.out.endswith("everything a release needs is here\n")


def test_doctor_as_json() -> None:
    ran = pcor_("doctor", "--json")
    assert ran.json["ok"] is True
    assert {"numpy", "private draw", "system randomness", "detectors"} <= {
        check["check"] for check in ran.json["checks"]
    }


def test_doctor_fails_where_a_release_cannot_run(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_: int) -> bytes:
        raise NotImplementedError("secret 12345")

    monkeypatch.setattr(os, "urandom", broken)
    ran = pcor_("doctor")
    assert ran.code == 1
    assert "FAIL  system randomness: fails (NotImplementedError)" in ran.out
    assert "secret" not in ran.out + ran.err


# -- the first run --------------------------------------------------------------------------------


def test_kernels_that_are_not_in_numbas_cache_are_noticed(tmp_path: Path) -> None:
    code = (
        "import numpy as np\n"
        "from pcor._kernels.covering import cell_totals\n"
        "from pcor.cli.compiling import are_compiled\n"
        "print(are_compiled())\n"
        "one = np.zeros((1, 1), dtype=np.uint64)\n"
        "cell_totals(one, one, np.zeros((1, 1)), np.zeros((1, 1)))\n"
        "print(are_compiled())\n"
    )
    done = subprocess.run(  # noqa: S603 (our own program)
        [sys.executable, "-c", code],
        env=os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == ["False", "True"]


def test_a_person_is_told_of_compiling_and_a_pipe_is_not(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(compiling, "are_compiled", lambda: False)
    compiling.tell_of_compiling()
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    compiling.tell_of_compiling()
    assert capsys.readouterr().err == "compiling, once (some seconds) ...\n"


# A command whose patience ends at once, and whose table comes after the spinner has begun to turn.
IMPATIENT = """
import sys, threading
from rich.status import Status
import pcor
from pcor.cli import app, output
turning, start, table = threading.Event(), Status.start, pcor.Table
def started(status):
    start(status)
    turning.set()
def late(*args, **options):
    if sys.stderr.isatty() and "--json" not in sys.argv and not turning.wait(60):
        sys.exit("no spinner")
    return table(*args, **options)
output.PATIENCE, Status.start, pcor.Table = 0, started, late
app(sys.argv[1:])
"""


def at_a_terminal(*words: object) -> tuple[int, str, str]:
    """Run an impatient command with a terminal as stderr: exit code, stdout, what was seen."""
    person, terminal = os.openpty()
    try:
        command = [sys.executable, "-c", IMPATIENT, *map(str, words)]
        env = {**os.environ, "TERM": "xterm"}
        run = subprocess.Popen(  # noqa: S603 (our own program)
            command, stdout=subprocess.PIPE, stderr=terminal, env=env
        )
        os.close(terminal)
        seen = b""
        with suppress(OSError):  # the terminal is gone as soon as nobody writes to it
            while part := os.read(person, 4096):
                seen += part
        out, _ = run.communicate()
    finally:
        os.close(person)
    return run.returncode, out.decode(), seen.decode()


@pytest.mark.parametrize(
    "words",
    [
        ("release", "--record", OUTLIER, "--epsilon", 1, "--detector", GRUBBS),
        ("outliers", "--detector", GRUBBS),
        ("contexts", "--record", OUTLIER, "--detector", GRUBBS),
    ],
    ids=lambda words: words[0],
)
def test_a_person_who_waits_sees_a_spinner_and_a_pipe_does_not(
    files: Files, words: tuple[object, ...]
) -> None:
    command = (words[0], *files.table_and_schema, *words[1:])
    code, out, seen = at_a_terminal(*command)
    assert code == 0, seen
    assert "reading the table" in seen
    assert "reading the table" not in out
    assert str(OUTLIER) in out
    code, _, seen = at_a_terminal(*command, "--json")
    assert (code, "reading the table" in seen) == (0, False)
    assert "reading the table" not in pcor_(*command).err


# -- demo -----------------------------------------------------------------------------------------


def test_demo_tells_the_whole_story_and_writes_files_that_a_release_takes(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "demo"
    ran = pcor_("demo", "--write", folder)
    assert ran.code == 0
    assert f"Record {PLANTED[0].record} is an outlier by salary" in ran.out
    assert "total epsilon 0.2 (tight accounting)" in ran.out
    assert "OCDP" in ran.out
    assert {path.name for path in folder.iterdir()} == {
        *("salaries.csv", "salaries.parquet", "salaries.toml")
    }
    next_step = ran.out.splitlines()[-1].removeprefix("Next: pcor ").split()
    again = pcor_(*next_step, "--json")
    assert again.code == 0
    assert again.json["record"] == PLANTED[0].record
    assert again.json["private"] is True


def test_demo_as_json_is_a_certificate() -> None:
    ran = pcor_("demo", "--json", "--epsilon", "1/3")
    assert ran.code == 0
    assert ran.json["epsilon_exact"] == "1/3"
    assert set(ran.json) >= CONTRACT


def test_demo_refuses_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    ran = pcor_("demo", "--write", tmp_path / "file" / "demo")
    assert ran.code == 2
    assert "cannot make the folder" in ran.err


# -- schema ---------------------------------------------------------------------------------------


def test_init_drafts_a_schema_that_check_accepts_once_reviewed(files: Files) -> None:
    out = files.folder / "draft.toml"
    asked = ("--metric", "pay", "--attributes", "job, city,age", "--id", "key", "--out", out)
    ran = pcor_("schema", "init", files.table, *asked)
    assert ran.code == 0
    marks = out.read_text(encoding="utf-8").count("# REVIEW:")
    assert f"{marks} lines are marked REVIEW" in ran.out
    check = pcor_("schema", "check", files.table, "--schema", out)
    assert check.code == 0
    assert check.out.startswith(f"{OWNER_ONLY}\nthe table fits the schema\n")
    assert "contexts can contain a record" in check.out
    assert "contexts can contain a record" in ran.out
    assert f"{marks} lines of the schema are still marked REVIEW" in check.err
    request = ("--schema", out, "--record", OUTLIER, "--epsilon", 1, "--detector", GRUBBS)
    draft = pcor_("release", files.table, *request)
    assert (draft.code, draft.out) == (2, "")
    assert "lines marked REVIEW were read off the data" in draft.err
    assert "a release would refuse it" in pcor_("plan", files.table, *request).err
    out.write_text(re.sub(r" *# REVIEW:.*", "", out.read_text(encoding="utf-8")), encoding="utf-8")
    assert pcor_("release", files.table, *request).code == 0


def test_init_and_check_say_what_it_means_to_have_no_id(files: Files) -> None:
    drafted = files.folder / "numbered.toml"
    asked = (files.table, "--metric", "pay", "--attributes", "job,city", "--out", drafted)
    ran = pcor_("schema", "init", *asked)
    assert "nothing is promised to whoever stands before it" in ran.err
    assert "# no id column: a record is its row number" in drafted.read_text(encoding="utf-8")
    assert "no id column" in pcor_("schema", "check", files.table, "--schema", drafted).err
    assert "no id column" not in pcor_("schema", "init", *asked, "--id", "key", "--force").err
    declared = drafted.read_text(encoding="utf-8").replace('id = "key"', 'positions = "public"')
    drafted.write_text(declared, encoding="utf-8")
    assert "no id column" not in pcor_("schema", "check", files.table, "--schema", drafted).err


def test_a_schema_says_what_its_size_rules_out_before_anybody_is_refused(files: Files) -> None:
    large = files.folder / "large.toml"
    large.write_text(SCHEMA.replace(JOBS, LARGE), encoding="utf-8")
    ran = pcor_("schema", "check", files.table, "--schema", large)
    assert "2,147,483,648 contexts can contain a record" in ran.out
    asked = ("--schema", large, "--record", OUTLIER, "--epsilon", 1, "--detector", "tail")
    told = pcor_("plan", files.table, *asked)
    for text in (ran.out, told.out):
        assert "--guarantee dp, --search direct, pcor tradeoff, pcor audit" in text
        assert "need a larger --limit" in text
    noted = pcor_("plan", files.table, *asked, "--json").json["note"]
    assert noted in told.out


def test_the_command_line_gives_dp_the_limit_that_its_refusal_names(files: Files) -> None:
    large = files.folder / "large.toml"
    large.write_text(SCHEMA.replace(JOBS, LARGE), encoding="utf-8")
    asked = ("--schema", large, "--record", OUTLIER, "--epsilon", 1, "--detector", "tail")
    refused = pcor_("plan", files.table, *asked, "--guarantee", "dp")
    assert refused.code == 2
    assert "raise --limit" in refused.err
    assert "limit=" not in refused.err
    told = pcor_("plan", files.table, *asked, "--guarantee", "dp", "--limit", 1 << 31)
    assert told.code == 0


def test_init_as_json(files: Files) -> None:
    out = files.folder / "draft.toml"
    asked = ("--metric", "pay", "--attributes", "job", "--out", out, "--json")
    assert pcor_("schema", "init", files.table, *asked).json == {
        "schema": str(out),
        "to_review": 3,
        "possible_contexts": 4,
    }


def test_init_shows_the_owner_which_cells_of_the_metric_are_not_numbers(files: Files) -> None:
    """There is no schema yet for ``pcor schema check`` to show them by."""
    pay = ["n/a" if i in (3, 5) else "?" if i == 9 else str(i) for i in range(120)]
    asked = ("--metric", "pay", "--attributes", "job", "--out", files.folder / "draft.toml")
    ran = pcor_("schema", "init", files.rewritten(pay=pay), *asked)
    assert (ran.code, ran.out) == (2, "")
    assert f"; {OWNER_ONLY} 3 not numbers, first 'n/a' in row 3, '?' in row 9 (" in ran.err
    assert 'correct them, or empty them and set missing = "drop"' in ran.err
    assert "schema check" not in ran.err
    assert not (files.folder / "draft.toml").exists()


def test_init_replaces_a_file_only_when_told_to(files: Files) -> None:
    asked = ("--metric", "pay", "--attributes", "job", "--out", files.schema)
    refused = pcor_("schema", "init", files.table, *asked)
    assert refused.code == 2
    assert "--force" in refused.err
    assert files.schema.read_text(encoding="utf-8") == SCHEMA
    assert pcor_("schema", "init", files.table, *asked, "--force").code == 0
    assert files.schema.read_text(encoding="utf-8") != SCHEMA


def test_check_shows_the_owner_what_does_not_fit(files: Files) -> None:
    table = files.rewritten(job=["astronaut"] * 3 + people()["job"][3:])
    ran = pcor_("schema", "check", table, "--schema", files.schema)
    assert ran.code == 2
    assert ran.out.splitlines() == [
        OWNER_ONLY,
        "- column 'job': outside the declared domain in 3 rows, for example 'astronaut' (3); "
        "declare what could occur, or other = ... counts them as one value, "
        'outside = "drop" leaves such rows out',
        "the table does not fit the schema",
        "7 values of 3 attributes: 16 contexts can contain a record (4 values may come or go).",
    ]


def test_check_as_json(files: Files) -> None:
    table = changed("pay", 0, "lots")(files)
    ran = pcor_("schema", "check", table, "--schema", files.schema, "--json")
    assert ran.code == 2
    assert ran.json == {
        "owner_only": OWNER_ONLY,
        "fits": False,
        "to_review": 0,
        "misfits": [
            {
                "column": "pay",
                "problem": "not a number",
                "rows": 1,
                "examples": ["'lots' (1)"],
                "remedy": 'correct them, or empty them and set missing = "drop" under [metric]',
            }
        ],
        "possible_contexts": 16,
    }


# -- plan -----------------------------------------------------------------------------------------


def test_plan_touches_no_rows(files: Files) -> None:
    """The file holds no table at all, and the plan is the same."""
    honest = pcor_("plan", *files.request, "--json")
    files.table.write_bytes(b"\x00\xff garbage")
    garbage = pcor_("plan", *files.request, "--json")
    assert honest.code == garbage.code == 0
    assert honest.json == garbage.json
    assert honest.json["possible_contexts"] == 2**4
    assert honest.json["epsilon_exact"] == "0.5"
    assert pcor_("release", *files.request).code == 2


def test_plan_says_what_will_run_and_what_each_step_costs(files: Files) -> None:
    ran = pcor_("plan", *files.request, "--search", "breadth_first", "--samples", 5)
    assert ran.code == 0
    assert "no row was looked at" in ran.out
    assert "4 x 0.1 = 0.4" in ran.out
    assert "1 x 0.1 = 0.1" in ran.out
    assert "total epsilon 0.5 (tight accounting)" in ran.out


def test_plan_and_release_agree_on_every_public_parameter(files: Files) -> None:
    how = ("--search", "depth_first", "--samples", 4, "--detector", GRUBBS, "--accounting", "paper")
    planned = pcor_("plan", *files.request, *how, "--json").json
    released = pcor_("release", *files.request, *how, "--json").json
    shared = set(planned) & set(released) - {"record"}
    assert {"steps", "promise", "detector", "search", "utility", "selection"} <= shared
    assert {key: planned[key] for key in shared} == {key: released[key] for key in shared}


def test_an_epsilon_that_promises_hardly_anything_is_noted(files: Files) -> None:
    note = "note: epsilon above 10 promises hardly anything\n"
    for command in ("plan", "release"):
        for epsilon, said in (("10", ""), ("10.1", note)):
            words = (*files.request, "--detector", GRUBBS, "--epsilon", epsilon, "--json")
            ran = pcor_(command, *words)
            assert (ran.code, ran.err) == (0, said)


# -- release --------------------------------------------------------------------------------------


def test_a_release_without_a_ledger_says_that_nobody_adds_it_up(files: Files) -> None:
    said = "on no books: this epsilon is not added up anywhere; --ledger keeps the sum\n"
    assert pcor_("release", *files.request, "--detector", GRUBBS).err == said
    seeded = pcor_("release", *files.request, "--detector", GRUBBS, "--seed", 1)
    assert seeded.err == ""
    assert "\nNothing is promised, because of --seed. Drawn without it" in seeded.out


START = "job is cook; city is Oslo; any age"
SEARCHES = ("auto", *pcor.search.SEARCHES)


def keys_of(content: object) -> set[str]:
    """Every key at any depth."""
    if isinstance(content, dict):
        return {*content} | {key for value in content.values() for key in keys_of(value)}
    if isinstance(content, list):
        return {key for value in content for key in keys_of(value)}
    return set()


def assert_certificate(content: dict[str, Any]) -> None:
    """Assert the contract's keys, and nothing of what a release keeps to itself."""
    assert set(content) >= CONTRACT
    jsonschema.validate(content, json.loads(JSON_SCHEMA.read_text(encoding="utf-8")))
    rest = {key: value for key, value in content.items() if key not in ("context", "search")}
    # The search may name the seed of its public numbers; no draw comes from it.
    own = keys_of([rest, {k: v for k, v in content["search"].items() if k != "seed"}])
    public = {"min_population"}  # a detector's declared parameter
    assert not [key for key in own - public if set(KEPT) & set(key.split("_"))]


@pytest.mark.parametrize("search", SEARCHES)
@pytest.mark.parametrize("accounting", ["tight", "paper"])
@pytest.mark.parametrize("selection", ["exponential", "permute_and_flip"])
def test_release_prints_one_certificate_for_every_search(
    files: Files, search: str, accounting: str, selection: str
) -> None:
    how = ("--search", search, "--accounting", accounting, "--selection", selection)
    ran = pcor_("release", *files.request, "--detector", GRUBBS, *how, "--json")
    assert (ran.code, ran.err) == (0, "")
    assert_certificate(ran.json)
    assert ran.json["private"] is True
    assert ran.json["accounting"] == accounting
    assert ran.json["selection"] == selection
    assert "cook" in ran.json["context"]["job"]
    assert ran.json["search"]["name"] == ("direct" if search == "auto" else search)


@pytest.mark.parametrize(
    ("written", "described"),
    [
        ("lof", {"name": "lof", "k": 20, "threshold": 1.5, "ties": "lower", "min_population": 21}),
        (
            "lof:k=10,threshold=2.0,ties=all",
            {"name": "lof", "k": 10, "threshold": 2.0, "ties": "all", "min_population": 21},
        ),
        (
            "grubbs:alpha=0.01,tail=upper",
            {"name": "grubbs", "alpha": 0.01, "tail": "upper", "min_population": 21},
        ),
        (
            "histogram:rare=0.05,include_maximum=true,min_population=30",
            {"name": "histogram", "rare": 0.05, "include_maximum": True, "min_population": 30},
        ),
    ],
)
def test_a_detector_takes_settings_after_a_colon(
    files: Files, written: str, described: dict[str, Any]
) -> None:
    ran = pcor_("release", *files.request, "--detector", written, "--json")
    assert ran.code == 0
    assert ran.json["detector"] == described


@pytest.mark.parametrize(
    "start",
    [
        START,
        "<010" + "01" + "11>",
        '{"job": ["cook"], "city": "Oslo", "age": ["[0, 30)", "[30, 60]"]}',
    ],
    ids=["sentence", "bits", "json"],
)
def test_a_context_is_read_as_sentence_bits_or_json(files: Files, start: str) -> None:
    """With one sample the start itself is released."""
    how = ("--detector", GRUBBS, "--search", "breadth_first", "--samples", 1, "--start", start)
    ran = pcor_("release", *files.request, *how, "--json")
    assert ran.code == 0
    assert ran.json["bits"] == "0100111"
    assert ran.json["search"]["start"] == START
    assert ran.json["steps"][0]["what"] == "the start context, given by the owner"


@pytest.mark.parametrize(
    "how",
    [
        ("--overlap-with", START),
        ("--search", "random_walk", "--start", START),
        ("--search", "uniform", "--start", START),
        ("--search", "uniform", "--overlap-with", "any job; city is Rome; any age"),
    ],
    ids=" ".join,
)
def test_overlap_is_with_the_given_context_or_the_start(files: Files, how: tuple[str, ...]) -> None:
    ran = pcor_(
        "release", *files.request, "--detector", GRUBBS, "--utility", "overlap", *how, "--json"
    )
    assert ran.code == 0
    assert ran.json["utility"]["name"] == "overlap"
    assert ran.json["utility"]["with"] == how[-1]


GUARANTEES: dict[str, tuple[str, ...]] = {
    "ocdp": ("--detector", GRUBBS),
    "dp": ("--guarantee", "dp", "--detector", "tail:share=0.1,min_population=5"),
}


@pytest.mark.parametrize("guarantee", GUARANTEES)
def test_a_release_is_short_and_states_its_guarantee_in_full(files: Files, guarantee: str) -> None:
    ran = pcor_("release", *files.request, *GUARANTEES[guarantee])
    assert ran.code == 0
    sentence, condition, cost, claim, validity, more = ran.out.replace("\n\n", "\n").splitlines()
    assert f"ecord {OUTLIER} is an outlier by pay" in sentence
    assert condition.startswith('SQL: WHERE "job" ')
    assert cost == "Cost: epsilon 0.5"
    assert claim == pcor.Promise(Fraction(1, 2), guarantee=get_guarantee(guarantee)).claim
    assert "an outlier" in validity
    assert more.startswith("(--full ")
    assert "NOT PRIVATE" not in ran.out


@pytest.mark.parametrize("guarantee", GUARANTEES)
@pytest.mark.parametrize("command", ["release", "plan"])
def test_the_whole_promise_and_each_step_are_printed_in_full(
    files: Files, command: str, guarantee: str
) -> None:
    asked = (command, *files.request, *GUARANTEES[guarantee])
    short, full = pcor_(*asked).out, pcor_(*asked, "--full").out
    promise = pcor_("plan", *asked[1:], "--json").json["promise"]["text"]
    assert "total epsilon 0.5 (tight accounting)" in full
    assert (promise in full, "--full" in full) == (True, False)
    assert (promise in short, promise.splitlines()[0] in short, "--full" in short) == (
        (False, True, True)
    )


def test_a_release_for_everyone_but_the_record_says_its_margin(files: Files) -> None:
    asked = (*files.request, "--guarantee", "dp", "--detector", "tail:share=0.1,min_population=5")
    ran = pcor_("release", *asked, "--json")
    assert ran.code == 0
    assert_certificate(ran.json)
    assert ran.json["guarantee"] == "dp"
    assert "rows by a margin of at least " in ran.json["sentence"]
    planned = pcor_("plan", *asked)
    assert "how many fewer rows are as unusual as the record than the share allows" in planned.out
    refused = pcor_("release", *files.request, "--guarantee", "dp", "--detector", "lof")
    assert refused.code == 2
    assert "tail, neighbourhood, rare_bin" in refused.err


def test_a_delta_goes_with_a_search_of_many_draws(files: Files) -> None:
    asked = (*files.request, "--detector", GRUBBS, "--delta", "1e-6")
    ran = pcor_("release", *asked, "--search", "breadth_first", "--json")
    assert ran.code == 0
    assert_certificate(ran.json)
    assert ran.json["delta"] == 1e-6
    refused = pcor_("release", *asked, "--search", "direct")
    assert refused.code == 2
    assert "delta pays only where many draws add up" in refused.err


def test_a_seeded_release_repeats_itself_and_says_not_private(files: Files) -> None:
    how = ("--detector", GRUBBS, "--search", "uniform", "--epsilon", "0.001", "--seed")
    seeded = [pcor_("release", *files.request, *how, seed) for seed in range(12)]
    again = [pcor_("release", *files.request, *how, seed) for seed in range(12)]
    assert seeded == again
    assert len({ran.out for ran in seeded}) > 1
    assert all("NOT PRIVATE" in ran.out.splitlines()[0] for ran in seeded)
    as_json = pcor_("release", *files.request, *how, 0, "--json").json
    assert as_json["private"] is False
    assert "NOT PRIVATE" in as_json["sentence"]
    assert "seed" not in {key for key in keys_of(as_json) if key != "sentence"}


@pytest.mark.parametrize("ending", ["json", "html"])
def test_release_writes_the_certificate_it_prints(files: Files, ending: str) -> None:
    out = files.folder / f"certificate.{ending}"
    before = files.listing()
    ran = pcor_("release", *files.request, "--detector", GRUBBS, "--out", out, "--json")
    assert ran.code == 0
    assert ran.err == f"certificate written to {out}\n"
    assert files.listing() == before | {out.name}
    text = out.read_text(encoding="utf-8")
    if ending == "html":
        assert text.startswith("<!doctype html>")
        text = text.split('id="certificate">')[1].split("</script>")[0]
    assert json.loads(text) == ran.json


def test_a_record_may_be_a_text_or_a_row_number(files: Files) -> None:
    keys = [f"p {i}" for i in range(120)]
    named = files.rewritten(key=keys)
    how = ("--schema", files.schema, "--epsilon", 1, "--detector", GRUBBS, "--json")
    assert pcor_("release", named, "--record", "p 17", *how).json["record"] == "p 17"
    numbered = files.declared(SCHEMA.replace('id = "key"\n', ""))
    how = ("--schema", numbered, "--epsilon", 1, "--detector", GRUBBS, "--json")
    assert pcor_("release", files.table, "--record", 17, *how).json["record"] == OUTLIER


def test_a_parquet_file_gives_the_same_certificate_as_its_csv_twin(files: Files) -> None:
    twin = files.folder / "pay.parquet"
    parquet.write_table(pa.table(people()), twin)
    how = (*files.request[1:], "--detector", GRUBBS, "--seed", 5, "--json")
    assert pcor_("release", twin, *how) == pcor_("release", files.table, *how)


# -- contexts and outliers: for the owner only ----------------------------------------------------


def coe(files: Files) -> dict[str, int]:
    table = pcor.Table(files.table, files.schema)
    found = pcor.matching_contexts(table, OUTLIER, GRUBBS)
    sizes = found.populations.tolist()
    return {c.bits: n for c, n in zip(found.contexts, sizes, strict=True)}


def test_contexts_says_owner_only_first_and_lists_the_largest_first(files: Files) -> None:
    ran = pcor_("contexts", *files.table_and_schema, "--record", OUTLIER, "--detector", GRUBBS)
    assert (ran.code, ran.err) == (0, "")
    first, title, *rows = ran.out.splitlines()
    assert first == OWNER_ONLY
    assert title == f"{len(coe(files))} contexts in which record {OUTLIER} is an outlier"
    sizes = [int(row.split()[1]) for row in rows]
    assert sizes == sorted(coe(files).values(), reverse=True)


def test_contexts_as_json_says_owner_only_first(files: Files) -> None:
    how = ("--record", OUTLIER, "--detector", GRUBBS, "--json")
    ran = pcor_("contexts", *files.table_and_schema, *how)
    assert next(iter(ran.json.items())) == ("owner_only", OWNER_ONLY)
    assert {row["bits"]: row["population"] for row in ran.json["contexts"]} == coe(files)


def test_the_largest_are_the_same_on_the_screen_as_in_the_whole_list(files: Files) -> None:
    """The screen does without the whole list; equal populations come in the order of their bits."""
    wide = files.declared(SCHEMA.replace("[0, 30, 60]", "[0, 10, 12, 14, 30, 60]"))  # nobody is 14
    how = ("contexts", files.table, "--schema", wide, "--record", OUTLIER, "--detector", GRUBBS)
    rows = pcor_(*how, "--json").json["contexts"]
    assert len(rows) == 2**7
    assert rows == sorted(rows, key=lambda row: (-row["population"], row["bits"]))
    expected = [f"  {row['bits']}  {row['population']}  {row['context']}" for row in rows[:20]]
    assert pcor_(*how).out.splitlines()[2:22] == expected
    with_file = pcor_(*how, "--out", files.folder / "coe.parquet")
    assert with_file.out.splitlines()[2:22] == expected


def loaded(path: Path) -> list[dict[str, Any]]:
    if path.suffix == ".json":
        rows: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))
        return rows
    if path.suffix == ".parquet":
        table = parquet.read_table(path)
    else:
        text = csv.ConvertOptions(column_types={"bits": pa.string(), "record": pa.string()})
        table = csv.read_csv(path, convert_options=text)
    found: list[dict[str, Any]] = table.to_pylist()
    return found


@pytest.mark.parametrize("ending", ["csv", "json"])
def test_contexts_writes_all_rows_as_text(files: Files, ending: str) -> None:
    out = files.folder / f"coe.{ending}"
    before = files.listing()
    how = ("--record", OUTLIER, "--detector", GRUBBS, "--out", out)
    ran = pcor_("contexts", *files.table_and_schema, *how)
    assert ran.code == 0
    assert ran.out.splitlines()[0] == OWNER_ONLY
    assert ran.err == f"{OWNER_ONLY} Written to {out}\n"
    assert files.listing() == before | {out.name}
    rows = loaded(out)
    assert {row["bits"]: row["population"] for row in rows} == coe(files)
    assert rows == sorted(rows, key=lambda row: (-row["population"], row["bits"]))
    assert list(rows[0]) == ["bits", "population", "context"]
    schema = pcor.Schema.from_file(files.schema)
    for row in rows:
        assert pcor.Context.parse(schema, row["context"]).bits == row["bits"]


def test_contexts_writes_packed_bits_to_parquet(files: Files) -> None:
    out = files.folder / "coe.PARQUET"
    before = files.listing()
    how = ("--record", OUTLIER, "--detector", GRUBBS, "--out", out)
    ran = pcor_("contexts", *files.table_and_schema, *how)
    assert ran.code == 0
    assert ran.out.splitlines()[0] == OWNER_ONLY
    assert ran.err == f"{OWNER_ONLY} Written to {out}\n"
    assert files.listing() == before | {out.name}
    schema = pcor.Schema.from_file(files.schema)
    rows = parquet.read_table(out).to_pylist()
    found = {pcor.Context.from_mask(schema, r["mask_0"]).bits: r["population"] for r in rows}
    assert found == coe(files)
    about = parquet.read_metadata(out).metadata
    assert about[b"owner_only"].startswith(b"OWNER ONLY: ")
    assert about[b"record"] == b"17"
    assert json.loads(about[b"detector"])["name"] == "grubbs"


@pytest.mark.parametrize("ending", ["parquet", "csv", "json"])
def test_contexts_as_json_beside_a_file_gives_the_number_and_the_largest(
    files: Files, ending: str
) -> None:
    out = files.folder / f"coe.{ending}"
    how = ("--record", OUTLIER, "--detector", GRUBBS, "--out", out, "--json")
    ran = pcor_("contexts", *files.table_and_schema, *how)
    assert list(ran.json) == ["owner_only", "record", "count", "largest", "out"]
    assert ran.json["count"] == len(coe(files))
    assert {row["bits"]: row["population"] for row in ran.json["largest"]} == coe(files)
    assert ran.json["out"] == str(out)


@pytest.mark.parametrize("how", [("--json",), ("--out", "coe.csv"), ("--out", "coe.json")])
def test_too_many_contexts_for_text_are_refused_and_parquet_is_named(
    files: Files, how: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    count = len(coe(files))
    monkeypatch.chdir(files.folder)
    before = files.listing()
    words = ("contexts", *files.table_and_schema, "--record", OUTLIER, "--detector", GRUBBS)
    monkeypatch.setattr(owner, "MOST_SENTENCES", count - 1)
    ran = pcor_(*words, *how)
    assert ran.code == 2
    assert f"more than {count - 1} contexts" in ran.err
    assert "--out FILE.parquet" in ran.err
    assert files.listing() == before
    assert pcor_(*words).code == 0
    assert pcor_(*words, "--out", "coe.parquet").code == 0
    monkeypatch.setattr(owner, "MOST_SENTENCES", count)
    assert pcor_(*words, *how).code == 0


@pytest.mark.parametrize("ending", ["parquet", "csv", "json"])
def test_a_record_without_contexts_gives_an_empty_list_with_its_columns(
    files: Files, ending: str
) -> None:
    out = files.folder / f"coe.{ending}"
    ran = pcor_("contexts", *files.table_and_schema, "--record", 3, "--out", out)
    assert ran.code == 0
    assert "0 contexts in which record 3 is an outlier" in ran.out
    assert loaded(out) == []
    if ending == "parquet":
        assert parquet.read_table(out).column_names == ["mask_0", "population"]


def test_contexts_shows_twenty_rows_and_says_how_many_more(files: Files) -> None:
    wide = files.declared(SCHEMA.replace("[0, 30, 60]", "[0, 20, 30, 40, 50, 60]"))
    how = ("--schema", wide, "--record", OUTLIER, "--detector", GRUBBS)
    ran = pcor_("contexts", files.table, *how)
    rows = ran.out.splitlines()[2:]
    assert len(rows) == 21
    assert rows[-1].startswith("  ... and ")
    assert "--out FILE" in rows[-1]
    out = files.folder / "coe.parquet"
    written = pcor_("contexts", files.table, *how, "--out", out).out.splitlines()[2:]
    assert written[:20] == rows[:20]
    assert written[-1].endswith(f" more; all of them are in {out}")


def test_contexts_refuses_a_space_above_the_limit(files: Files) -> None:
    ran = pcor_("contexts", *files.table_and_schema, "--record", OUTLIER, "--limit", 8)
    assert ran.code == 2
    assert "16 possible contexts, more than the limit of 8" in ran.err
    assert "--limit" in ran.err


def test_outliers_lists_the_records_of_the_whole_table_or_of_one_context(files: Files) -> None:
    whole = pcor_("outliers", *files.table_and_schema, "--detector", "grubbs")
    assert whole.code == 0
    assert whole.out.splitlines()[0] == OWNER_ONLY
    assert whole.out.splitlines()[1:] == [
        "outliers among all rows, by falling pay: 1",
        f"  {OUTLIER}  400.5",
    ]
    elsewhere = ("--detector", "grubbs", "--context", "any job; city is Rome; any age", "--json")
    ran = pcor_("outliers", *files.table_and_schema, *elsewhere)
    assert next(iter(ran.json.items())) == ("owner_only", OWNER_ONLY)
    assert ran.json["context"]["city"] == ["Rome"]
    assert OUTLIER not in ran.json["outliers"]


@pytest.mark.parametrize("in_memory", [True, False])
def test_outliers_shows_values_the_largest_first(files: Files, in_memory: bool) -> None:
    pay = people()["pay"]
    far = {3: -190.25, 40: 385.0, 90: 410.5, 91: 385.0}
    for row, value in far.items():
        pay[row] = value
    table = files.rewritten(pay=pay)
    if not in_memory:  # a folder stays where it is
        (files.folder / "parts").mkdir()
        table = table.rename(files.folder / "parts" / "one.csv").parent
    how = ("--schema", files.schema, "--detector", "grubbs:tail=both")
    ordered = {90: 410.5, OUTLIER: 400.5, 40: 385.0, 91: 385.0, 3: -190.25}
    ran = pcor_("outliers", table, *how, "--json")
    assert ran.json["outliers"] == [*ordered]
    assert ran.json["values"] == [*ordered.values()]
    printed = pcor_("outliers", table, *how, "--out", files.folder / "o.csv").out.splitlines()
    assert printed[2:] == [f"  {key}  {value}" for key, value in ordered.items()]
    written = loaded(files.folder / "o.csv")
    assert {int(row["record"]): float(row["value"]) for row in written} == ordered


@pytest.mark.parametrize("ending", ["parquet", "csv", "json"])
def test_outliers_writes_ids_of_any_kind(files: Files, ending: str) -> None:
    """Ids such as 17 and "17b" side by side were once an internal error."""
    out = files.folder / f"outliers.{ending}"
    keys: list[Any] = [str(key) for key in people()["key"]]
    keys[18] = "18b"
    pay = people()["pay"]
    pay[18] = 390.5
    table = files.rewritten(key=keys, pay=pay)
    how = ("--schema", files.schema, "--detector", "grubbs", "--out", out)
    ran = pcor_("outliers", table, *how)
    assert ran.code == 0
    assert [str(row["record"]) for row in loaded(out)] == ["17", "18b"]


# -- bad input: a sentence on stderr, exit 2, one shape of JSON ------------------------------------

Request = Callable[[Files], tuple[object, ...]]


@dataclass(frozen=True)
class Bad:
    """A request that must be refused, and the sentence, with ``...`` for what may stand between."""

    name: str
    words: Request
    kind: str
    says: str
    hides: str = "ZZ-CANARY"
    code: int = 2


def release(*more: object, table: Callable[[Files], Path] | None = None) -> Request:
    def words(files: Files) -> tuple[object, ...]:
        path = files.table if table is None else table(files)
        return ("release", path, *files.request[1:], "--detector", GRUBBS, *more)

    return words


def with_schema(old: str, new: str) -> Request:
    assert old in SCHEMA

    def words(files: Files) -> tuple[object, ...]:
        schema = files.declared(SCHEMA.replace(old, new))
        return ("release", files.table, "--schema", schema, "--record", OUTLIER, "--epsilon", 1)

    return words


def at(name: str, content: bytes) -> Callable[[Files], Path]:
    def make(files: Files) -> Path:
        (files.folder / name).write_bytes(content)
        return files.folder / name

    return make


def folder(files: Files) -> Path:
    (files.folder / "folder.csv").mkdir()
    return files.folder / "folder.csv"


def changed(column: str, place: int, value: object) -> Callable[[Files], Path]:
    def make(files: Files) -> Path:
        cells = [str(cell) for cell in people()[column]]
        cells[place] = str(value)
        return files.rewritten(**{column: cells})

    return make


def renamed(files: Files) -> Path:
    table = pa.table(people()).rename_columns(["key", "job", "ctiy", "age", "pay"])
    csv.write_csv(table, files.folder / "renamed.csv")
    return files.folder / "renamed.csv"


JOBS = '["clerk", "cook", "pilot"]'
LARGE = json.dumps(["clerk", "cook", "pilot", *(f"job {i}" for i in range(27))])
ALL_BUT_CITY = "the context has no value of attribute 'city'; every attribute needs at least one"

BAD = [
    Bad(
        "no such file",
        release(table=lambda f: f.folder / "nosuch.csv"),
        "source",
        "no such file ... nosuch.csv",
    ),
    Bad("a folder", release(table=folder), "source", "folder.csv ... is not a file"),
    Bad("an empty file", release(table=at("e.csv", b"")), "source", "e.csv ... is empty"),
    Bad(
        "a header and no rows",
        release(table=at("h.csv", b"key,job,city,age,pay\n")),
        "source",
        "no row of the table fits the schema ... pcor schema check",
    ),
    Bad(
        "not Parquet",
        release(table=at("x.parquet", b"ZZ-CANARY")),
        "source",
        "x.parquet ... cannot be read as Parquet",
    ),
    Bad(
        "not CSV",
        release(table=at("x.csv", b"key,job,city,age,pay\nZZ-CANARY,too,few\n")),
        "source",
        "x.csv ... cannot be read as CSV ... the header has 5 cells, line 2 has 3",
    ),
    Bad(
        "not text",
        release(table=at("x.csv", b"key,job,city,age,pay\n1,\xff\xfe,Rome,3,4\n")),
        "source",
        "x.csv ... cannot be read as CSV",
    ),
    Bad(
        "an unknown ending",
        release(table=at("x.xlsx", b"PK")),
        "source",
        "x.xlsx ... ending ... .csv, .parquet",
    ),
    Bad(
        "a missing column",
        release(table=renamed),
        "source",
        "no column 'city' ... did you mean 'ctiy'?",
    ),
    Bad(
        "a header in capitals",
        release(table=at("x.csv", b"KEY,JOB,CITY,AGE,PAY\n1,cook,Rome,3,4\n")),
        "source",
        "no column 'pay' ... it has: KEY, JOB, CITY, AGE, PAY; did you mean 'PAY'?",
    ),
    Bad(
        "no header",
        release(table=at("x.csv", b"ZZ-CANARY,2,3,4,5\n1,2,3,4,5\n")),
        "source",
        "none of the declared columns ... header ... pay, job, city, age, key",
    ),
    Bad(
        "a value outside the domain",
        release(table=changed("job", 5, "ZZ-CANARY")),
        "domain",
        "column 'job' ... outside its declared domain ... outside = \"drop\" ... pcor schema check",
    ),
    Bad(
        "a number outside every bin",
        release(table=changed("age", 5, 7713)),
        "domain",
        "column 'age' ... outside its declared domain ... outside = \"drop\"",
        hides="7713",
    ),
    Bad(
        "a missing attribute value",
        release(table=changed("city", 5, "")),
        "domain",
        "column 'city' ... or none at all",
    ),
    Bad(
        "a metric that is not a number",
        release(table=changed("pay", 5, "ZZ-CANARY")),
        "metric",
        "the metric 'pay' is not numeric ... must be a number in every row",
    ),
    Bad(
        "a NaN metric",
        release(table=changed("pay", 5, "nan")),
        "metric",
        "the metric 'pay' ... no value ... missing = \"drop\"",
    ),
    Bad(
        "a missing metric",
        release(table=changed("pay", 5, "")),
        "metric",
        "the metric 'pay' ... no value ... missing = \"drop\"",
    ),
    Bad(
        "an infinite metric",
        release(table=changed("pay", 5, "-inf")),
        "metric",
        "the metric 'pay' ... infinite",
    ),
    Bad("an unknown record", release("--record", 4711), "record", "no record with key '4711'"),
    Bad(
        "an id that is not unique",
        release(table=changed("key", 5, OUTLIER)),
        "record",
        "key '17' names more than one row ... must be unique",
    ),
    *(
        Bad(f"epsilon {text}", release("--epsilon", text), "parameter", "epsilon must be")
        for text in ("0", "-0.1", "nan", "inf", "lots", "", "0.0", "1/0", "1e9999")
    ),
    *(
        Bad(
            f"samples {number}",
            release("--search", "uniform", "--samples", number),
            "parameter",
            "samples of search 'uniform' must be a whole number from 1 to 1,000,000",
        )
        for number in (0, -3, 10**12)
    ),
    Bad(
        "samples for a search without",
        release("--search", "direct", "--samples", 5),
        "parameter",
        "search 'direct' takes no samples",
    ),
    Bad(
        "samples in letters",
        release("--search", "uniform", "--samples", "ten"),
        "usage",
        "--samples",
    ),
    Bad("a missing option", lambda f: ("release", f.table), "usage", "--schema"),
    Bad("an unknown option", release("--eps", 1), "usage", "--eps"),
    Bad(
        "a guarantee in capitals",
        release("--guarantee", "DP"),
        "unknown_name",
        "did you mean 'dp'?",
    ),
    Bad("no epsilon", release("--epsilon", "0"), "parameter", "such as 0.2", hides="decimal"),
    Bad("a decimal comma", release("--epsilon", "0,5"), "parameter", "write a decimal point: 0.5"),
    Bad("an unknown command", lambda _: ("relese",), "usage", "relese"),
    Bad(
        "an unknown detector",
        release("--detector", "grubs"),
        "unknown_name",
        "unknown detector 'grubs' ... did you mean 'grubbs'? ... grubbs, histogram, lof",
    ),
    Bad(
        "an unknown setting",
        release("--detector", "lof:neighbours=3"),
        "parameter",
        "detector 'lof' has no setting 'neighbours' ... k, threshold, ties",
    ),
    Bad("a setting that is not one", release("--detector", "lof:k"), "parameter", "lof:key=value"),
    Bad(
        "a setting out of range",
        release("--detector", "lof:k=0"),
        "parameter",
        "k must be a whole number",
    ),
    Bad(
        "an unknown search",
        release("--search", "breadthfirst"),
        "unknown_name",
        "unknown search 'breadthfirst' ... did you mean 'breadth_first'? ... auto,",
    ),
    Bad(
        "an unknown utility",
        release("--utility", "populaton"),
        "unknown_name",
        "unknown utility 'populaton' ... did you mean 'population'? ... overlap",
    ),
    Bad(
        "an unknown accounting",
        release("--accounting", "papre"),
        "unknown_name",
        "unknown accounting 'papre' ... did you mean 'paper'? ... tight",
    ),
    Bad(
        "an unknown selection",
        release("--selection", "exponental"),
        "unknown_name",
        "unknown selection 'exponental' ... did you mean 'exponential'? ... permute_and_flip",
    ),
    Bad(
        "a start without the record",
        release("--search", "random_walk", "--start", "any job; city is Rome; any age"),
        "start",
        "the start context does not contain the record's own value",
    ),
    Bad(
        "a start that is not valid",
        release(
            *("--detector", "grubbs:min_population=100"),
            *("--search", "random_walk", "--start", START),
        ),
        "start",
        "the record is not an outlier in the start context ... leave start (--start) out",
    ),
    Bad(
        "a start for a search without",
        release("--search", "direct", "--start", START),
        "parameter",
        "search 'direct' has no start context",
    ),
    *(
        Bad(
            f"a start that cannot be read: {text}",
            release("--search", "random_walk", "--start", text),
            "context",
            f"--start: ... {said}",
        )
        for text, said in (
            ("nonsense", "a context reads like 'job is CEO or Lawyer; any city'"),
            ("0101", "bits must be 7 zeros and ones"),
            ('{"job": ["cook"', "not well-formed JSON"),
            ("job is cok; any city; any age", "no value 'cok'; did you mean 'cook'?"),
            ("jb is cook; any city; any age", "no attribute 'jb'; did you mean 'job'?"),
            ("any job; any job; any city; any age", "attribute 'job' twice"),
            ('{"job": ["cook"], "city": [], "age": ["[0, 30)"]}', ALL_BUT_CITY),
            ("0100011", ALL_BUT_CITY),
            ("", "a context reads like"),
        )
    ),
    Bad(
        "a chosen context without a value of some attribute",
        release("--utility", "overlap", "--overlap-with", '{"city": []}'),
        "context",
        f"--overlap-with: ... {ALL_BUT_CITY}",
    ),
    Bad(
        "a context to look at without a value of some attribute",
        lambda f: ("outliers", *f.table_and_schema, "--context", '{"city": []}'),
        "context",
        f"--context: ... {ALL_BUT_CITY}",
    ),
    Bad(
        "overlap with nothing",
        release("--search", "uniform", "--utility", "overlap"),
        "parameter",
        "utility 'overlap' ... --overlap-with ... --start",
    ),
    Bad(
        "a context for another utility",
        release("--overlap-with", START),
        "parameter",
        "--overlap-with goes with --utility overlap",
    ),
    Bad(
        "no schema file",
        release("--schema", "nosuch.toml"),
        "schema",
        "no schema file 'nosuch.toml' ... pcor schema init",
    ),
    Bad("a schema that is not TOML", with_schema("[metric]", "[metric"), "schema", "not TOML"),
    Bad(
        "an empty domain", with_schema(JOBS, "[]"), "schema", "attribute 'job' has an empty domain"
    ),
    Bad(
        "a repeated value",
        with_schema(JOBS, '["cook", "clerk", "cook"]'),
        "schema",
        "attribute 'job' ... 'cook' is declared twice",
    ),
    Bad(
        "overlapping bins",
        with_schema("[0, 30, 60]", "[0, 60, 30]"),
        "schema",
        "attribute 'age' ... bins overlap ... edges must rise",
    ),
    Bad(
        "no attribute",
        with_schema(SCHEMA[SCHEMA.index("[attributes.job]") :], "[attributes]\n"),
        "schema",
        "at least one attribute",
    ),
    Bad(
        "no attributes table",
        with_schema(SCHEMA[SCHEMA.index("[attributes.job]") :], ""),
        "schema",
        "no [attributes] table",
    ),
    Bad(
        "a domain too large for Direct",
        lambda f: (*with_schema(JOBS, LARGE)(f), "--search", "direct"),
        "too_large",
        "search 'direct' ... 2,147,483,648 contexts ... --search widest_first ... --limit",
    ),
    Bad(
        "no valid context",
        release("--record", 3),
        "no_valid_context",
        "no context in which the record is an outlier",
        hides="charged",  # nothing pays here
        code=4,
    ),
    *(
        Bad(
            f"no valid context, {search}",
            release("--record", 3, "--search", search),
            "no_valid_context",
            "no context was found ... try another detector",
            code=4,
        )
        for search in ("uniform", "random_walk", "depth_first", "breadth_first")
    ),
    Bad(
        "a certificate of another kind",
        release("--out", "c.pdf"),
        "write",
        "--out 'c.pdf' must end in .json or .html",
    ),
    Bad(
        "a certificate in no folder",
        release("--out", "no/such/c.json"),
        "write",
        "--out 'no/such/c.json' ... no folder 'no/such'",
    ),
    Bad(
        "a list of another kind",
        lambda f: ("contexts", *f.table_and_schema, "--record", OUTLIER, "--out", "c.xlsx"),
        "write",
        "--out 'c.xlsx' must end in .parquet or .csv or .json",
    ),
    Bad(
        "a list in no folder",
        lambda f: ("outliers", *f.table_and_schema, "--out", "no/such/o.csv"),
        "write",
        "--out 'no/such/o.csv' ... no folder 'no/such'",
    ),
    Bad(
        "a draft in no folder",
        lambda f: (
            *("schema", "init", f.table, "--metric", "pay", "--attributes", "job"),
            *("--out", "no/such/s.toml"),
        ),
        "write",
        "no/such/s.toml ... no folder",
    ),
    Bad(
        "a draft of no attribute",
        lambda f: ("schema", "init", f.table, "--metric", "pay", "--attributes", " , "),
        "source",
        "--attributes",
    ),
    Bad(
        "a plan for no file",
        lambda f: ("plan", f.folder / "nosuch.csv", *f.request[1:]),
        "source",
        "no such file ... nosuch.csv",
    ),
    Bad(
        "a plan that cannot be",
        lambda f: ("plan", *f.request, "--search", "brute"),
        "unknown_name",
        "unknown search 'brute' ... allowed:",
    ),
]


@pytest.mark.parametrize("case", BAD, ids=lambda case: case.name)
def test_bad_input_is_refused_in_a_sentence_and_as_json(files: Files, case: Bad) -> None:
    words = case.words(files)
    before = files.listing()
    plain, as_json = pcor_(*words), pcor_(*words, "--json")
    assert plain.code == as_json.code == case.code
    assert plain.out == ""
    assert plain.err == as_json.err
    assert list(as_json.json) == ["ok", "error", "kind"]
    assert as_json.json["ok"] is False
    assert as_json.json["kind"] == case.kind
    assert as_json.json["error"] in plain.err
    for said in case.says.split(" ... "):
        assert said in as_json.json["error"]
    for hidden in (case.hides, "Traceback", "Error("):
        assert hidden not in plain.err + as_json.out
    assert files.listing() == before
    assert plain.err.endswith(f"\n(more: pcor explain {case.kind})\n")
    if case.kind != "usage":
        assert plain.err.startswith("pcor: ")
        assert plain.err.count("\n") == 2


def test_a_file_that_may_not_be_read_is_refused(
    files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Simulated: a test may run as root, to whom no file is closed."""

    def closed(self: Path, *_: object, **__: object) -> object:
        raise PermissionError(13, "secret 12345", str(self))

    monkeypatch.setattr(Path, "open", closed)
    ran = pcor_("outliers", files.table, "--schema", files.schema)
    assert ran.code == 2
    # read_text() of the schema opens too: it is the first that may not be read.
    assert "pay.toml' cannot be read" in ran.err
    monkeypatch.setattr(pcor.Schema, "from_file", lambda *_, **__: pcor.demo.ten_people_schema())
    ran = pcor_("outliers", files.table, "--schema", files.schema)
    assert ran.code == 2
    assert "pay.csv' may not be read by this user" in ran.err
    assert "secret" not in ran.err


@pytest.mark.parametrize("out", ["c.pdf", "no/such/c.json", "", "folder.json"])
def test_nothing_is_drawn_for_a_certificate_that_cannot_be_written(
    files: Files, out: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def drawn(*_: object, **__: object) -> None:
        raise AssertionError("a release was begun")

    (files.folder / "folder.json").mkdir()
    monkeypatch.setattr(pcor, "release", drawn)
    monkeypatch.setattr(pcor, "Table", drawn)
    ran = pcor_("release", *files.request, "--out", files.folder / out)
    assert ran.code == 2
    assert "--out" in ran.err


# -- interrupted, or broken inside ----------------------------------------------------------------


def interrupted_while_writing(path: Path, text: str, encoding: str | None = None) -> int:
    with open(path, "w", encoding=encoding) as half:
        half.write(text[: len(text) // 2])
    raise KeyboardInterrupt


@pytest.mark.parametrize("exists", [True, False], ids=["over a file", "a new file"])
@pytest.mark.parametrize("ending", ["json", "html"])
def test_an_interrupted_release_leaves_nothing_half_written(
    files: Files, ending: str, exists: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = files.folder / f"c.{ending}"
    if exists:
        out.write_text("old", encoding="utf-8")
    before = files.listing()
    monkeypatch.setattr(Path, "write_text", interrupted_while_writing)
    ran = pcor_("release", *files.request, "--detector", GRUBBS, "--out", out)
    assert ran == Ran(130, "", "pcor: interrupted; no file was left half-written\n")
    assert files.listing() == before
    assert not exists or out.read_text(encoding="utf-8") == "old"


@pytest.mark.parametrize("exists", [True, False], ids=["over a file", "a new file"])
@pytest.mark.parametrize("ending", ["csv", "parquet", "json"])
def test_an_interrupted_list_leaves_nothing_half_written(
    files: Files, ending: str, exists: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def half(table: pa.Table, path: Path) -> None:
        interrupted_while_writing(path, str(table))

    write_group = parquet.ParquetWriter.write_table

    def one_group(writer: parquet.ParquetWriter, table: pa.Table) -> None:
        write_group(writer, table)
        raise KeyboardInterrupt

    out = files.folder / f"coe.{ending}"
    if exists:
        out.write_text("old", encoding="utf-8")
    before = files.listing()
    monkeypatch.setattr(Path, "write_text", interrupted_while_writing)
    monkeypatch.setattr(csv, "write_csv", half)
    monkeypatch.setattr(parquet.ParquetWriter, "write_table", one_group)
    how = ("--record", OUTLIER, "--detector", GRUBBS, "--out", out)
    ran = pcor_("contexts", *files.table_and_schema, *how)
    assert ran == Ran(130, "", "pcor: interrupted; no file was left half-written\n")
    assert files.listing() == before
    assert not exists or out.read_text(encoding="utf-8") == "old"


def test_a_full_disk_is_a_sentence_and_leaves_nothing(
    files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> int:
        raise OSError(28, "No space left on device: secret 12345")

    monkeypatch.setattr(Path, "write_text", full)
    before = files.listing()
    ran = pcor_("release", *files.request, "--detector", GRUBBS, "--out", files.folder / "c.json")
    assert ran.code == 2
    assert f"pcor: cannot write '{files.folder / 'c.json'}'; is the disk full" in ran.err
    assert "12345" not in ran.err
    assert files.listing() == before


def broken(*_: object, **__: object) -> None:
    raise ValueError("secret 12345")


@pytest.mark.parametrize(
    ("words", "where"),
    [
        (("release", "--record", OUTLIER, "--epsilon", 1), "cli.releasing.release_planned"),
        (("contexts", "--record", OUTLIER), "cli.owner.matching_parts"),
        (("outliers",), "cli.owner.outlier_rows"),
        (("plan", "--record", OUTLIER, "--epsilon", 1), "Settings.plan"),
    ],
    ids=lambda part: part if isinstance(part, str) else "",
)
def test_an_unexpected_error_tells_no_secret(
    files: Files, words: tuple[object, ...], where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(f"pcor.{where}", broken)
    monkeypatch.delenv("PCOR_DEBUG", raising=False)
    command = (words[0], *files.table_and_schema, *words[1:])
    plain, as_json = pcor_(*command), pcor_(*command, "--json")
    assert plain.code == as_json.code == 1
    assert plain.out == ""
    assert as_json.json["kind"] == "internal"
    for text in (plain.err, as_json.out, as_json.err):
        assert "an internal error (ValueError); nothing was released" in text
        assert "12345" not in text
        assert "Traceback" not in text


def test_a_developer_sees_the_unexpected_error(
    files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pcor.cli.releasing.release_planned", broken)
    words = [str(word) for word in ("release", *files.request)]
    for more in ([], ["--json"]):
        result = CliRunner().invoke(app, words + more, env={"PCOR_DEBUG": "1"})
        assert isinstance(result.exception, ValueError)


# -- the real program -----------------------------------------------------------------------------

PROGRAM = Path(sys.executable).with_name("pcor")


def program(*words: object, cwd: Path) -> Ran:
    done = subprocess.run(  # noqa: S603 (our own program)
        [str(PROGRAM), *(str(word) for word in words)],
        capture_output=True,
        cwd=cwd,
        env={key: value for key, value in os.environ.items() if key != "PCOR_DEBUG"},
        text=True,
        timeout=DEADLINE,
        check=False,
    )
    return Ran(done.returncode, done.stdout, done.stderr)


def test_the_installed_program_releases_and_prints_one_json_object(files: Files) -> None:
    ran = program("release", *files.request, "--detector", GRUBBS, "--json", cwd=files.folder)
    assert (ran.code, ran.err) == (0, "")
    assert_certificate(ran.json)


def test_the_installed_program_refuses_on_stderr_with_exit_2(files: Files) -> None:
    table = changed("job", 5, "ZZ-CANARY")(files)
    ran = program("release", table, *files.request[1:], "--json", cwd=files.folder)
    assert ran.code == 2
    assert ran.json["kind"] == "domain"
    assert ran.err == f"pcor: {ran.json['error']}\n(more: pcor explain domain)\n"
    assert "ZZ-CANARY" not in ran.out + ran.err


def test_the_installed_program_exits_with_4_where_there_is_no_valid_context(files: Files) -> None:
    ran = program("release", *files.request, "--record", 3, cwd=files.folder)
    assert (ran.code, ran.out) == (4, "")
    assert ran.err.startswith("pcor: there is no context")


# What one machine's environment happens to hold cannot hide here how the program ends.
BUFFERED = {"PATH": os.environ["PATH"]}
ENVIRONMENTS = pytest.mark.parametrize(
    "environment", [BUFFERED, BUFFERED | {"PYTHONUNBUFFERED": "1"}], ids=["buffered", "unbuffered"]
)


def unread(*words: object, environment: dict[str, str]) -> Ran:
    """Run the program for somebody who reads nothing of its result, as ``pcor ... | true`` does."""
    reading, writing = os.pipe()
    os.close(reading)
    with subprocess.Popen(  # noqa: S603 (our own program)
        [str(PROGRAM), *(str(word) for word in words)],
        stdout=writing,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    ) as running:
        os.close(writing)
        _, err = running.communicate()
    return Ran(running.returncode, "", err)


@ENVIRONMENTS
@pytest.mark.parametrize(
    "words",
    [
        ("contexts", "--record", OUTLIER),
        ("plan", "--record", OUTLIER, "--epsilon", 1),
        ("explain", "usage"),
    ],
    ids=lambda words: words[0],
)
def test_a_reader_that_goes_away_is_no_error(
    files: Files, words: tuple[object, ...], environment: dict[str, str]
) -> None:
    command, *more = words
    table = () if command == "explain" else files.table_and_schema
    ran = unread(command, *table, *more, environment=environment)
    assert (ran.code, ran.err) == (0, "")


@ENVIRONMENTS
@pytest.mark.parametrize("words", [["--version"], ["--help"], ["plan", "--help"]], ids=str)
def test_a_page_of_help_that_nobody_reads_is_no_error(
    words: list[str], environment: dict[str, str]
) -> None:
    assert unread(*words, environment=environment).err == ""


@ENVIRONMENTS
def test_a_refusal_that_nobody_reads_is_still_a_refusal(
    files: Files, environment: dict[str, str]
) -> None:
    refused = unread("release", *files.request, "--record", 3, "--json", environment=environment)
    assert refused.code == 4
    assert refused.err.startswith("pcor: there is no context")
    misspelt = unread("plan", "--nonsense", "--json", environment=environment)
    assert misspelt.code == 2
    assert misspelt.err.endswith("\n(more: pcor explain usage)\n")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full, where no byte fits")
def test_a_result_that_cannot_be_written_is_said_in_a_sentence() -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(  # noqa: S603 (our own program)
            [str(PROGRAM), "--version"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            env=BUFFERED,
            check=False,
        )
    assert done.returncode == 1
    assert done.stderr == "pcor: the result cannot be written: No space left on device\n"


# Says when the enumeration is under way, so that the interrupt cannot come too early.
WATCHED = """
import sys
from pcor.cli import owner, run
write = owner.write_contexts
def watched(*args, progress, **options):
    def told(done, total):
        progress(done, total)
        print("under way", file=sys.stderr, flush=True)
    return write(*args, progress=told, **options)
owner.write_contexts = watched
run()
"""


@pytest.mark.parametrize("exists", [True, False], ids=["over a file", "a new file"])
def test_an_interrupt_ends_the_real_program_with_one_sentence_and_no_file(
    files: Files, exists: bool
) -> None:
    large = files.declared(SCHEMA.replace(JOBS, LARGE))
    out = files.folder / "coe.parquet"
    if exists:
        out.write_text("old", encoding="utf-8")
    before = files.listing()
    how = ("--schema", large, "--record", OUTLIER, "--limit", 2**40, "--out", out)
    command = [sys.executable, "-c", WATCHED, "contexts", files.table, *how]
    with subprocess.Popen(  # noqa: S603 (our own program)
        [str(word) for word in command],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=files.folder,
    ) as running:
        assert running.stderr is not None
        assert running.stderr.readline() == "under way\n"
        running.send_signal(signal.SIGINT)
        stdout, stderr = running.communicate(timeout=DEADLINE)
    assert running.returncode == 130
    assert stdout == ""
    said = [line for line in stderr.splitlines() if line != "under way"]
    assert said == ["pcor: interrupted; no file was left half-written"]
    assert files.listing() == before
    assert not exists or out.read_text(encoding="utf-8") == "old"
