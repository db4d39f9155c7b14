"""The reference says what the code says: written again, every page is the one that is committed."""

from __future__ import annotations

import doctest
import getpass
import importlib
import json
import os
import pkgutil
import platform
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import pcor
from pcor import errors
from pcor.ledger.tables import START
from pcor.public import schema_parts
from pcor.releasing.amounts import LARGEST_DENOMINATOR, PLACES
from pcor.releasing.certificate import FORMAT, JSON_SCHEMA
from pcor.service.core import problems
from tools import reference
from tools.reference import certificate, cli, http, json_types, markdown, pages, python, schema_file
from tools.reference import errors as error_page

ROOT = Path(__file__).parents[2]
# Which passages the code writes; a page that loses one is not compared with the code any more.
PASSAGES = {
    "certificate.md": ["certificate.table"],
    "cli.md": ["cli.overview", "cli.details"],
    "errors.md": ["errors.of_library", "errors.of_service"],
    "http.md": ["http.overview", "http.members", "http.statuses", "http.routes"],
    "ledger.md": ["ledger.columns", "ledger.kinds", "ledger.export", "ledger.declared_tables"],
    "python.md": ["python.overview", "python.names"],
    "schema-file.md": [
        f"schema_file.{name}" for name in ("example", "dataset", "metric", "attribute", "source")
    ],
}
HEADING = re.compile(r"^#{1,4} (.+)$", re.MULTILINE)
FENCED = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("name", pages.PAGES)
def test_a_page_is_what_the_code_says(name: str) -> None:
    kept = (pages.FOLDER / name).read_text(encoding="utf-8")
    same = kept == pages.text(name)
    assert same, f"docs/reference/{name} is stale; run `make reference` and commit the page"


def test_every_page_has_its_passages() -> None:
    found = {
        path.name: pages.PASSAGE.findall(path.read_text(encoding="utf-8"))
        for path in pages.FOLDER.iterdir()
    }
    assert found == PASSAGES


def test_a_passage_that_says_something_else_is_written_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = (pages.FOLDER / "certificate.md").read_text(encoding="utf-8")
    (tmp_path / "certificate.md").write_text(kept.replace("Which rule.", "Which?"))
    monkeypatch.setattr(pages, "FOLDER", tmp_path)
    monkeypatch.setattr(pages, "PAGES", ("certificate.md",))
    pages.text.cache_clear()
    assert pages.stale() == ["certificate.md"]
    assert pages.write() == ["certificate.md"]
    assert (tmp_path / "certificate.md").read_text(encoding="utf-8") == kept
    pages.text.cache_clear()


@pytest.mark.parametrize("name", pages.PAGES)
def test_headings_of_a_page_have_anchors_of_their_own(name: str) -> None:
    titles = HEADING.findall(FENCED.sub("", pages.text(name)))
    anchors = [markdown.anchor(title) for title in titles]
    assert sorted(anchors) == sorted(set(anchors))


@pytest.mark.parametrize("name", pages.PAGES)
def test_a_page_holds_nothing_of_the_machine_that_wrote_it(name: str) -> None:
    text = pages.text(name)
    facts = [str(ROOT), str(Path.home()), sys.prefix, platform.node(), platform.release()]
    assert [fact for fact in facts if len(fact) > 3 and fact in text] == []
    assert not re.search(r" at 0x[0-9a-f]+|/(?:tmp|home)/|<class '", text)
    assert getpass.getuser() in ("root", "user") or f"/{getpass.getuser()}" not in text


def test_another_process_with_another_terminal_writes_the_same() -> None:
    changed = {
        "COLUMNS": "40",
        "TERM": "dumb",
        "LANG": "C",
        "PYTHONHASHSEED": "1",
        "TZ": "Asia/Aden",
    }
    done = subprocess.run(
        [sys.executable, "-m", "tools.reference", "--check"],
        cwd=ROOT,
        env=os.environ | changed,
        capture_output=True,
        text=True,
        check=False,
    )
    said = [line.split(";")[0] for line in done.stderr.splitlines() if line.startswith("stale")]
    # A page that is stale here as well is told by the test above.
    assert said == [f"stale: docs/reference/{name}" for name in pages.stale()], done.stderr


def test_every_public_name_of_the_library_has_its_place() -> None:
    text = pages.text("python.md")
    modules = python.groups()[python.MODULES]
    missing = [
        name
        for name in pcor.__all__
        if not re.search(rf"^##+ {re.escape(python.heading(name))}$", text, re.MULTILINE)
    ]
    assert missing == []
    assert [name for name in modules if name not in pcor.__all__] == []


def test_no_group_names_what_is_not_public() -> None:
    named = [name for names in python.groups().values() for name in names]
    assert sorted(named) == sorted({*named})
    assert [name for name in named if name not in pcor.__all__] == []


def test_every_command_has_its_place_with_all_its_options() -> None:
    import typer

    from pcor.cli import app

    text = pages.text("cli.md")
    for words, command in cli.commands(typer.main.get_command(app), ("pcor",)):
        part = text.partition(f"\n## {' '.join(words)}\n")[2].partition("\n## ")[0]
        flags = [flag for p in command.params if p.param_type_name == "option" for flag in p.opts]
        assert [flag for flag in flags if flag != "--help" and f"`{flag}" not in part] == []


def test_every_route_of_the_service_is_told_with_the_roles_that_may_call_it() -> None:
    text, who = pages.text("http.md"), dict(http.rights())
    for path, methods in http.described()["paths"].items():
        for method in methods:
            part = text.partition(f"\n## {method.upper()} {path}\n")[2].partition("\n## ")[0]
            assert f"For: {who[method, path]}." in part
    assert who["put", "/v1/datasets/{name}"] == "owner"
    assert who["get", "/v1/health"] == "anybody, without a key"


def test_every_key_of_a_schema_file_is_told() -> None:
    text = pages.text("schema-file.md")
    told = {key for table in ("dataset", "metric", "a") for key in schema_file.keys(table)}
    read = (schema_parts.DATASET, schema_parts.METRIC, schema_parts._KEYS)
    assert told == set().union(*read)
    assert [key for key in told if f"| `{key}` |" not in text] == []


def test_what_a_schema_file_is_refused_for_is_told_in_the_words_of_the_code() -> None:
    part = pages.text("schema-file.md").partition("| written | said |\n| --- | --- |\n")[2]
    rows = [line.strip("| ").split(" | ") for line in part.splitlines()]
    assert len(rows) == 27
    for written, said in rows:
        lines = written.strip("`").replace("; ", "\n")
        # Most rows leave out what all of them begin with.
        text = lines if lines.startswith("[metric]") else f'[metric]\ncolumn = "pay"\n{lines}'
        assert said == markdown.cell(schema_file.refusal(tomllib.loads(text)))


def test_every_member_of_a_certificate_is_told_and_none_besides() -> None:
    schema = json.loads(JSON_SCHEMA.read_text(encoding="utf-8"))
    members = [path for path, _, _ in certificate.members(schema)]
    told = re.findall(r"^\| `([^`]+)` \|", pages.text("certificate.md"), re.MULTILINE)
    assert told == members
    assert schema["description"] in pages.text("certificate.md")
    assert f"`{FORMAT}`" in pages.text("certificate.md")


def test_a_type_is_told_with_its_limits() -> None:
    limits = {"minimum": 0, "exclusiveMaximum": 0.5, "maximum": 1e6}
    assert json_types.told({"type": "number", **limits}) == "number (>= 0, <= 1,000,000, < 0.5)"
    either = {"anyOf": [{"$ref": "#/x/Box"}, {"type": "null"}, {"const": "any"}]}
    assert json_types.told(either, {"Box": {"properties": {"a": {}}}}) == 'object: `a` or `"any"`'


def test_the_ledgers_page_has_the_numbers_of_the_code() -> None:
    text = pages.text("ledger.md")
    assert f"{len(START)} zeros" in text
    assert set(START) == {"0"}
    assert f"at most {PLACES} places" in text
    assert f"at most {LARGEST_DENOMINATOR:,}" in text


def test_every_exit_code_has_its_meaning() -> None:
    part = pages.text("cli.md").partition("\n## Exit codes\n")[2].partition("\n## ")[0]
    told = [int(code) for code in re.findall(r"^\| (\d+) \|", part, re.MULTILINE)]
    assert told == [0, 1, 2, 3, 4, 5, 130]
    assert {kind.exit_code for kind, _ in error_page.family()} <= {*told}


def test_every_error_is_told_with_its_kind_exit_code_and_status() -> None:
    text = pages.text("errors.md")
    for kind, _ in error_page.family():
        row = next(line for line in text.splitlines() if f"`{kind.__name__}` |" in line)
        assert f"`{kind.kind}`" in row
        assert f"| {kind.exit_code} |" in row
    assert problems.of_error(errors.StillRunning("x")).status == 409
    assert re.search(r"`StillRunning` \|.*\| 5 \| 409 \|", text)


@pytest.mark.parametrize(
    "name",
    [f"tools.reference.{one.name}" for one in pkgutil.iter_modules(reference.__path__)],
)
def test_the_examples_of_the_generator_run(name: str) -> None:
    assert doctest.testmod(importlib.import_module(name)).failed == 0
