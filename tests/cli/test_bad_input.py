"""Bad input is refused: a sentence on stderr, exit 2, one shape of JSON."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import csv

import pcor
from tests.helpers.command_line import (
    GRUBBS,
    JOBS,
    LARGE,
    OUTLIER,
    SCHEMA,
    START,
    Files,
    Request,
    changed,
    pcor_,
    people,
)


@dataclass(frozen=True)
class Bad:
    """A request that must be refused, and the sentence, with ``...`` for what may stand between."""

    name: str
    words: Request
    kind: str
    says: str
    hides: str = "ZZ-CANARY"
    code: int = 2


def release(
    *more: object, table: Callable[[Files], Path] | None = None, record: object = OUTLIER
) -> Request:
    def words(files: Files) -> tuple[object, ...]:
        path = files.table if table is None else table(files)
        return ("release", path, *files.request_for(record)[1:], "--detector", GRUBBS, *more)

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


def renamed(files: Files) -> Path:
    table = pa.table(people()).rename_columns(["key", "job", "ctiy", "age", "pay"])
    csv.write_csv(table, files.folder / "renamed.csv")
    return files.folder / "renamed.csv"


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
        "has a header and no rows",
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
        release(table=at("x.docx", b"PK")),
        "source",
        "x.docx ... ending ... .csv, .csv.gz, .zip, .parquet",
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
    Bad("an unknown record", release(record=4711), "record", "no record with key '4711'"),
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
            ("nonsense", "a context reads like 'job is CEO or Lawyer; year is"),
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
        release(record=3),
        "no_valid_context",
        "no context in which the record is an outlier",
        hides="charged",  # nothing pays here
        code=4,
    ),
    *(
        Bad(
            f"no valid context, {search}",
            release("--search", search, record=3),
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
    monkeypatch.setattr("pcor.cli.releases.release_planned", drawn)
    monkeypatch.setattr(pcor, "Table", drawn)
    ran = pcor_("release", *files.request, "--out", files.folder / out)
    assert ran.code == 2
    assert "--out" in ran.err
