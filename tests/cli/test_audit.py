"""``pcor audit`` as an owner uses it: what it says, what it leaves, how it refuses."""

from __future__ import annotations

import json
import random
import re
import sys
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree as ET

import jsonschema
import pyarrow as pa
import pytest
from pyarrow import csv
from typer.testing import CliRunner

import pcor
from pcor.audit import exposure, joint_delta
from pcor.cli import app
from pcor.public.guarantee import OWNER_ONLY

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
"""
OUTLIER, OTHER = 17, 40
GRUBBS = "grubbs:min_population=5"

PERSON = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "kind": {"enum": ["removed", "added"]},
        "values": {"type": "object"},
        "metric": {"type": "number"},
        **{name: {"type": "integer", "minimum": 0} for name in ("people", "lost", "gained")},
        "delta": {"type": "number", "minimum": 0, "maximum": 1},
        "ratio": {"type": ["number", "null"], "minimum": 0},
    },
}
PERSON["required"] = list(PERSON["properties"])  # type: ignore[call-overload]
MATCH = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "kind": {"enum": ["removed", "added"]},
        **{name: {"type": "integer", "minimum": 1} for name in ("changes", "repeats")},
        **{n: {"type": "number", "minimum": 0, "maximum": 1} for n in ("equal", "overlap", "kept")},
        "group": {"type": "string"},
    },
}
MATCH["required"] = list(MATCH["properties"])  # type: ignore[call-overload]
NEWCOMERS = {
    "type": "object",
    "additionalProperties": False,
    "required": ["metrics", "tried", "exposed", "largest_delta", "list"],
    "properties": {
        "metrics": {"type": "array", "items": {"type": "number"}},
        "tried": {"type": "integer"},
        "exposed": {"type": "integer"},
        "largest_delta": {"type": "number"},
        "list": {"type": "array", "items": PERSON},
    },
}
COUNTS = ("contexts", "people", "rows_before", "exposed_people")
RECORD: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "required": [*COUNTS, "record", "verdict", "largest_delta", "exposed", "newcomers"],
    "properties": {
        **{name: {"type": "integer", "minimum": 0} for name in COUNTS},
        "record": {"type": ["integer", "string"]},
        "verdict": {"type": "string"},
        "largest_delta": {"type": "number"},
        "largest_ratio": {"type": ["number", "null"]},
        "facts_ratio": {"type": "number"},
        "error": {"type": "number"},
        "exposed": {"type": "array", "items": PERSON},
        "newcomers": NEWCOMERS,
        "match": {"type": "array", "items": MATCH},
    },
}
JOINT_PERSON: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "required": ["kind", "values", "metric", "people", "records", "delta"],
    "properties": {
        "kind": {"enum": ["removed", "added"]},
        "values": {"type": "object"},
        "metric": {"type": "number"},
        "people": {"type": "integer", "minimum": 1},
        "records": {"type": "array", "minItems": 1},
        "delta": {"type": "number", "minimum": 0, "maximum": 1},
    },
}
TOGETHER: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "records": {"type": "array", "minItems": 1},
        "verdict": {"type": "string"},
        "epsilon": {"type": "string"},
        "exposed_people": {"type": "integer", "minimum": 0},
        "largest_delta": {"type": "number", "minimum": 0, "maximum": 1},
        "error": {"type": "number"},
        "exposed": {"type": "array", "items": JOINT_PERSON},
        "newcomers": {"type": "array", "items": JOINT_PERSON},
    },
}
TOGETHER["required"] = list(TOGETHER["properties"])
REPORT = {
    "type": "object",
    "additionalProperties": False,
    "required": ["owner_only", "private", "plan", "records", "together"],
    "properties": {
        "owner_only": {"const": OWNER_ONLY},
        "private": {"const": True},
        "plan": {"type": "object"},
        "records": {"type": "array", "items": RECORD, "minItems": 1},
        "together": TOGETHER,
    },
}


class Ran(NamedTuple):
    """What came of a command."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        """The one JSON object on stdout."""
        found: dict[str, Any] = json.loads(self.out)
        return found


class Files(NamedTuple):
    """A small table of 80 people with two outliers, and its schema."""

    folder: Path
    table: Path
    schema: Path

    def audit(self, *words: object) -> Ran:
        """Run ``pcor audit`` on the table."""
        said = ["audit", self.table, "--schema", self.schema, *words]
        result = CliRunner().invoke(app, [str(word) for word in said])
        return Ran(result.exit_code, result.stdout, result.stderr)

    def usual(self, *words: object) -> Ran:
        """Audit the outlier by Grubbs' test, with one kind of newcomers."""
        return self.audit("--record", OUTLIER, "--detector", GRUBBS, "--insert", "100", *words)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Files:
    folder = tmp_path_factory.mktemp("audit")
    numbers = random.Random(5)  # noqa: S311 (test data)
    pay = [round(numbers.gauss(100, 5), 1) for _ in range(80)]
    pay[OUTLIER], pay[OTHER] = 120.0, 240.0
    people = {
        "key": list(range(80)),
        "job": [numbers.choice(["clerk", "cook", "pilot"]) for _ in range(80)],
        "city": [numbers.choice(["Rome", "Oslo"]) for _ in range(80)],
        "pay": pay,
    }
    csv.write_csv(pa.table(people), folder / "pay.csv")
    (folder / "pay.toml").write_text(SCHEMA, encoding="utf-8")
    return Files(folder, folder / "pay.csv", folder / "pay.toml")


def library(files: Files, **options: Any) -> pcor.audit.Exposure:
    table = pcor.Table(files.table, files.schema)
    settings = {"detector": pcor.Grubbs(min_population=5), "insert": [100.0], **options}
    return exposure(table, OUTLIER, "0.2", **settings)


def test_where_the_schema_has_a_person_people_are_counted_and_shown(files: Files) -> None:
    """A list of two records of one person: neither goes when the other rows of theirs do."""
    rows = csv.read_csv(files.table)
    who = pa.array([place // 2 for place in range(78)] + [OUTLIER // 2] * 2)
    csv.write_csv(rows.append_column("who", who), files.folder / "people.csv")
    named = SCHEMA.replace('id = "key"', 'id = "key"\nperson = "who"\nrows_per_person = 4')
    (files.folder / "people.toml").write_text(named, encoding="utf-8")
    people = files._replace(table=files.folder / "people.csv", schema=files.folder / "people.toml")
    words = ["--record", OUTLIER - 1, "--match", "--repeats", 2]
    told = people.usual(*words, "--json").json
    assert [one["people"] for one in told["records"]] == [39, 39]
    assert told["records"][0]["newcomers"]["rows"] == [1, 4]
    exposed = told["records"][0]["exposed"]
    assert exposed
    assert all(len(one["rows"]) == 2 for one in exposed)  # of the records' own person, the others
    said = people.usual(*words).out
    assert "A person goes with all of their rows; queried records stay, being public" in said
    assert "Of several rows that with the smallest metric is shown; --json has all." in said
    assert "Random people that come or go, 2 tables each" in said


def test_the_first_line_says_owner_only_and_the_second_paragraph_is_the_verdict(
    files: Files,
) -> None:
    ran = files.usual()
    assert ran.code == 0
    found = library(files)
    assert found.exposed
    first, empty, verdict, *_ = ran.out.splitlines()
    assert (first, empty, verdict) == (OWNER_ONLY, "", found.verdict)


def test_what_is_being_done_is_said_before_it_is_done_without_a_number(files: Files) -> None:
    err = files.usual().err
    assert re.fullmatch(r"auditing record \d+: judging its contexts again .*\.\.\.\n", err)
    assert len(re.findall(r"\d+", err)) == 1


def test_the_most_exposed_are_laid_out_and_marked_private(files: Files) -> None:
    lines = files.usual().out.splitlines()
    start = lines.index("People in the table (private):")
    assert lines[start + 1].split() == [
        *("job", "city", "metric", "people", "contexts", "lost", "gained", "delta")
    ]
    worst = library(files).exposed[0]
    assert lines[start + 2].split()[:4] == [
        *map(str, worst.values.values()),
        f"{worst.metric:.10g}",
        str(worst.people),
    ]
    assert any("more kinds of people; --json has all of them" in line for line in lines)


def test_json_has_everything_the_library_has(files: Files) -> None:
    content = files.usual("--json").json
    jsonschema.validate(content, REPORT)
    assert next(iter(content)) == "owner_only"
    expected = library(files).to_dict()
    assert content["plan"] == expected.pop("plan")
    assert expected.pop("owner_only") == OWNER_ONLY
    assert content["records"] == [expected]


def test_records_come_by_flags_and_from_a_file_each_once(files: Files, tmp_path: Path) -> None:
    named = tmp_path / "records.txt"
    named.write_text(f"{OTHER}\n\n  {OUTLIER}\n", encoding="utf-8")
    words = ("--record", OUTLIER, "--records", named, "--detector", GRUBBS, "--insert", "none")
    content = files.audit(*words, "--json").json
    assert [one["record"] for one in content["records"]] == [OUTLIER, OTHER]
    said = files.audit(*words).out
    assert said.count("a release under OCDP") == 2
    assert said.splitlines().count(OWNER_ONLY) == 1


def test_several_records_are_told_of_together_too(files: Files, tmp_path: Path) -> None:
    words = ("--record", OUTLIER, "--record", OTHER, "--detector", GRUBBS, "--insert", "none")
    content = files.audit(*words, "--json").json
    jsonschema.validate(content, REPORT)
    together, each = content["together"], content["records"]
    assert together["records"] == [OUTLIER, OTHER]
    assert together["exposed"]
    for person in together["exposed"]:
        deltas = [
            one["delta"]
            for record in each
            for one in record["exposed"]
            if (one["values"], one["metric"]) == (person["values"], person["metric"])
        ]
        assert person["delta"] == joint_delta(deltas)
        assert len(person["records"]) == len(deltas)
    chart = tmp_path / "chart.html"
    said = files.audit(*words, "--out", chart).out
    assert together["verdict"] in said
    assert "delta at most" in said
    assert "all together" in chart.read_text(encoding="utf-8")
    alone = files.usual()
    assert "Taken together" not in alone.out


def test_a_record_that_is_not_there_is_refused_before_the_first_audit(files: Files) -> None:
    ran = files.audit("--record", OUTLIER, "--record", 9999, "--detector", GRUBBS)
    assert ran.code == 2
    assert "no record with key '9999'" in ran.err
    assert "auditing record" not in ran.err


def test_newcomers_can_be_left_out(files: Files) -> None:
    words = ("--record", OUTLIER, "--detector", GRUBBS, "--insert", "none")
    content = files.audit(*words, "--json").json
    assert content["records"][0]["newcomers"]["tried"] == 0
    assert "newcomers" not in files.audit(*words).out


def test_a_match_is_added_where_it_is_wanted(files: Files) -> None:
    ran = files.usual("--match", "--repeats", 3)
    assert "Random rows that come or go, 3 tables each (private)" in ran.out
    assert "promised to the group" in ran.out
    content = files.usual("--match", "--repeats", 3, "--json").json
    jsonschema.validate(content, REPORT)
    matches = content["records"][0]["match"]
    assert [(m["kind"], m["changes"]) for m in matches] == [
        (kind, changes) for kind in ("removed", "added") for changes in (1, 5, 10, 25)
    ]
    assert "promises 5;" in matches[3]["group"]  # 25 times 0.2
    assert "match" not in files.usual("--json").json["records"][0]


def test_a_match_states_the_promise_of_the_plan(files: Files) -> None:
    words = ("--match", "--repeats", 1)
    steered = ("--search", "depth_first", "--samples", 2, "--delta", "0.0001")
    ran = files.usual(*words, *steered)
    assert "0.2, delta 0.0001" in ran.out
    assert "holds only where COE is the same" in ran.out
    assert "with a delta of" in files.usual(*words, *steered, "--json").out
    pure = files.audit(
        *("--record", OTHER, "--detector", "tail:share=0.1,min_population=5", "--insert", "90"),
        *("--guarantee", "dp", *words),
    )
    assert "holds whatever becomes of COE" in pure.out


def test_under_dp_nobody_is_exposed(files: Files) -> None:
    ran = files.audit(
        *("--record", OTHER, "--detector", "tail:share=0.1,min_population=5", "--insert", "90,300"),
        *("--guarantee", "dp", "--epsilon", "0.5"),
    )
    assert ran.code == 0
    assert "exposes nobody" in ran.out
    assert "no answer's chance differs by more than a factor exp(0.5)" in ran.out


@pytest.mark.parametrize("ending", ["svg", "html", "png"])
def test_a_chart_says_whose_it_is(files: Files, tmp_path: Path, ending: str) -> None:
    out = tmp_path / f"audit.{ending}"
    ran = files.usual("--out", out)
    assert ran.code == 0
    assert ran.err.endswith(f"\n{OWNER_ONLY} Written to {out}\n")
    if ending == "png":
        assert out.read_bytes().startswith(b"\x89PNG")
        return
    text = out.read_text(encoding="utf-8")
    assert OWNER_ONLY in text
    if ending == "svg":
        drawing = ET.fromstring(text)  # noqa: S314 (our own file)
        assert drawing.attrib["role"] == "img"
        assert "Who a release would expose" in drawing.attrib["aria-label"]
    else:
        assert "<title>PCOR: Who a release would expose</title>" in text
        assert '<script src="http' not in text


def test_a_chart_that_nothing_can_draw_is_refused_before_the_work(
    files: Files, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pcor.support.pictures", None)
    ran = files.usual("--out", tmp_path / "audit.svg")
    assert ran.code == 2
    assert "pip install 'pcor[plots]'" in ran.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "give at least one --record, or --records FILE"),
        (("--records", "nowhere.txt"), "--records 'nowhere.txt' cannot be read"),
        (("--record", 17, "--insert", "many"), "--insert takes numbers"),
        (("--record", 17, "--insert", "nan"), "insert must be finite numbers"),
        (("--record", 4000), "no record with key"),
        (("--record", 17, "--epsilon", "-1"), "epsilon"),
        (("--record", 17, "--guarantee", "dp", "--detector", "lof"), "'dp' is not possible"),
        (("--record", 17, "--out", "chart.pdf"), "must end in .png or .svg or .html"),
        (("--record", 17, "--limit", 3), "the limit of 3"),
        (("--record", 17, "--match", "--repeats", 0), "repeats must be a whole number"),
    ],
)
def test_what_cannot_be_is_refused_in_a_sentence(
    files: Files, words: tuple[object, ...], said: str
) -> None:
    ran = files.audit(*words)
    assert ran.code == 2
    assert said in ran.err
    assert ran.out == ""


def test_a_search_that_cannot_be_audited_points_to_those_that_can(files: Files) -> None:
    words = ("--record", OTHER, "--detector", GRUBBS, "--search", "uniform", "--samples", 50)
    ran = files.audit(*words, "--json")
    assert ran.code == 2
    assert ran.json["kind"] == "too_large"
    assert "'direct' or 'widest_first'" in ran.json["error"]


def test_help_says_that_it_is_for_the_owner_only() -> None:
    said = CliRunner().invoke(app, ["audit", "--help"]).stdout
    assert "OWNER ONLY" in said
    assert "Example: pcor audit" in said
