"""Every kind of refusal has a page, every page is of a kind, and what it shows is what is said."""

from __future__ import annotations

import ast
import contextlib
import io
import json
import re
import tomllib
from collections.abc import Iterator
from http import HTTPStatus
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import pcor
import pcor.client
from pcor.cli import app, doctor
from pcor.cli.explain import find_folder, pages, summary
from pcor.errors import PcorError
from pcor.service.core import problems
from pcor.service.core import sources as service_sources
from pcor.service.core.limits import TokenBuckets
from pcor.service.core.problems import of_error
from pcor.service.page import routes_exposure
from tests.helpers.doc_blocks import agrees, blocks, commands
from tests.helpers.page_person import Person
from tests.helpers.service_world import ANALYST, OUTLIER, SOURCE, World, world
from tests.helpers.waiting import DEADLINE

ROOT = Path(__file__).parents[2]
SOURCES = ROOT / "src" / "pcor"
FOLDER = ROOT / "docs" / "errors"
PAGES = pages(FOLDER)
HEADINGS = ["What you see", "Why", "What to do", "Was anything charged or written?"]


def kinds_of_errors(base: type[PcorError] = PcorError) -> Iterator[str]:
    """Yield the kinds of the library's own errors, those of the client and the service too."""
    if base.__module__.startswith("pcor."):
        yield base.kind
        for narrower in base.__subclasses__():
            yield from kinds_of_errors(narrower)


def kinds_of_problems() -> Iterator[str]:
    """Yield every kind that the service writes down; each must be written in full."""
    for path in sorted((SOURCES / "service").rglob("*.py")):
        for kind in kinds_in(path.read_text(encoding="utf-8")):
            if kind is not None:
                yield kind
            else:
                assert path.name == "problems.py", f"{path.name}: a kind that is worked out"
    yield from (kind for kind, _ in problems._BY_STATUS.values())


def kinds_in(source: str) -> Iterator[str | None]:
    """Yield the kind of every problem that is made in a source, None for one that is worked out."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.alias) and node.name.split(".")[-1] == "Problem":
            assert node.asname in (None, "Problem"), "a problem under another name is not seen here"
        if isinstance(node, ast.Call) and "Problem" in (
            getattr(node.func, "id", ""),
            getattr(node.func, "attr", ""),
        ):
            named = [keyword.value for keyword in node.keywords if keyword.arg == "kind"]
            kind = (node.args[1:2] or named)[0]
            yield str(kind.value) if isinstance(kind, ast.Constant) else None


def words(text: str) -> str:
    return " ".join(text.split())


def shown(kind: str) -> str:
    """Return what a page says that one sees."""
    return next(blocks(PAGES[kind])).text


def executed(kind: str, language: str) -> list[str]:
    """Return the blocks of a page after the first, which is what one sees."""
    return [b.text for b in list(blocks(PAGES[kind]))[1:] if b.language == language]


def run(*given: object) -> Any:
    return CliRunner().invoke(app, [str(word) for word in given])


# -- a page for each kind, a kind for each page ---------------------------------------------------


def test_every_kind_has_a_page_and_every_page_is_of_a_kind() -> None:
    assert service_sources.SourceChanged.kind in set(kinds_of_errors())
    of_the_command_line = {"usage", "internal"}
    kinds = {*kinds_of_errors(), *kinds_of_problems(), *of_the_command_line}
    assert kinds == set(PAGES)


def test_the_kind_of_a_problem_is_seen_however_the_problem_is_made() -> None:
    ways = ["Problem(400, 'a', 'x')", "problems.Problem(400, 'b', 'x')", "Problem(400, kind='c')"]
    assert [list(kinds_in(way)) for way in ways] == [["a"], ["b"], ["c"]]
    assert list(kinds_in("Problem(400, kind, 'x')")) == [None]
    with pytest.raises(AssertionError, match="another name"):
        list(kinds_in("from pcor.service.core.problems import Problem as P"))


def test_whatever_status_the_framework_refuses_with_has_a_kind_with_a_page() -> None:
    refusals = [status for status in HTTPStatus if status >= HTTPStatus.BAD_REQUEST]
    assert [s.value for s in refusals if problems.of_status(s).kind not in PAGES] == []


@pytest.mark.parametrize("kind", PAGES)
def test_a_page_says_what_why_what_to_do_and_what_it_cost(kind: str) -> None:
    text = PAGES[kind]
    assert text.startswith(f"# {kind}\n\n")
    assert re.findall(r"^## (.+)$", text, re.MULTILINE)[:4] == HEADINGS
    assert summary(text).endswith(".")
    assert len(summary(text)) <= 100


def test_the_index_lists_every_page_with_what_it_says_first() -> None:
    index = (FOLDER / "index.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| \[(\w+)\]\((\w+)\.md\) \| (.+) \|$", index, re.MULTILINE)
    assert {kind: said for kind, _, said in listed} == {k: summary(t) for k, t in PAGES.items()}
    assert all(kind == file for kind, file, _ in listed)


# -- what a page shows is what is said; ``test_docs`` runs the commands ---------------------------


@pytest.mark.parametrize("kind", [k for k in PAGES if executed(k, "console") and k != "usage"])
def test_the_example_of_a_page_ends_with_the_way_to_that_page(kind: str) -> None:
    console = [b for b in list(blocks(PAGES[kind]))[1:] if b.language == "console"]
    failing = [c for block in console for c in commands(block) if c.code]
    told = [c for c in failing if c.expected.endswith(f"(more: pcor explain {kind})")]
    assert told
    allowed = words(shown(kind))
    said = [re.escape(words(c.expected)).replace(r"\.\.\.", ".*") for c in told]
    assert any(re.fullmatch(one, allowed) for one in said)


@pytest.mark.parametrize("kind", [k for k in PAGES if "print(error)" in PAGES[k]])
def test_the_python_of_a_page_is_refused_in_these_words(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        for block in executed(kind, "python"):
            exec(compile(block, f"{kind}.md", "exec"), {})  # noqa: S102 (our own pages)
    assert words(said.getvalue()) == words(shown(kind))
    assert f'assert error.kind == "{kind}"' in PAGES[kind]


def test_a_failure_of_our_own_is_said_as_its_page_says(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise ValueError("secret")

    monkeypatch.setattr("pcor.cli.explain.pages", broken)
    ran = run("explain")
    assert (ran.exit_code, ran.stdout) == (1, "")
    assert ran.stderr == shown("internal")


def test_a_misspelt_option_is_a_matter_of_usage() -> None:
    ran = run("plan", "pay.csv", "--epsilo", "0.2", "--json")
    assert (ran.exit_code, json.loads(ran.stdout)["kind"]) == (2, "usage")


def test_a_misspelt_option_is_refused_as_its_page_says() -> None:
    ran = run("plan", "pay.csv", "--epsilo", "0.2")
    assert (ran.exit_code, ran.stdout) == (2, "")
    assert agrees(shown("usage"), ran.stderr), ran.stderr


# -- of the service -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("service")
    with world(str(folder / "books.db"), folder) as made:
        yield made


ASKED = {"dataset": "people", "record": OUTLIER, "preset": "small"}
PROVOKED: dict[str, tuple[str | None, str, str, dict[str, Any]]] = {
    "not_found": (ANALYST, "GET", "/v1/datasets/nobody", {}),
    "not_authenticated": (None, "GET", "/v1/datasets", {}),
    "not_allowed": (ANALYST, "PUT", "/v1/datasets/people", {"json": {}}),
    "invalid": (ANALYST, "POST", "/v1/plans", {"json": {"preset": "small"}}),
    "malformed": (
        ANALYST,
        "POST",
        "/v1/plans",
        {"content": "{", "headers": {"Content-Type": "application/json"}},
    ),
    "unsupported_media_type": (
        ANALYST,
        "POST",
        "/v1/plans",
        {"content": "a", "headers": {"Content-Type": "text/plain"}},
    ),
    "method_not_allowed": (ANALYST, "DELETE", "/v1/health", {}),
    "idempotency_key": (ANALYST, "POST", "/v1/releases", {"json": ASKED}),
}


def assert_as_shown(kind: str, answer: Any) -> None:
    """Compare an answer with a page; HTTP's own titles differ between versions of Python."""
    page = json.loads(shown(kind))
    said = answer.json()
    assert said["type"] == f"urn:pcor:problem:{kind}"
    assert {**said, "title": ""} == {**page, "title": ""}
    assert answer.status_code == page["status"]


@pytest.mark.parametrize("kind", PROVOKED)
def test_the_service_refuses_in_the_words_of_the_page(place: World, kind: str) -> None:
    who, method, path, given = PROVOKED[kind]
    assert_as_shown(kind, place.send(who, method, path, **given))


def test_too_many_requests_are_refused_in_the_words_of_the_page(tmp_path: Path) -> None:
    with world(str(tmp_path / "books.db"), tmp_path) as made:
        made.service.rates = TokenBuckets(1.0, 1, clock=lambda: 0.0)
        answers = [made.send(ANALYST, "GET", "/v1/datasets") for _ in range(3)]
    assert_as_shown("too_many_requests", answers[-1])


def test_too_many_open_questions_are_refused_in_the_words_of_the_page(tmp_path: Path) -> None:
    with world(str(tmp_path / "books.db"), tmp_path, open_questions=20) as made:
        answers = [made.ask(draw=draw) for draw in range(1, 22)]
    assert_as_shown("too_many_open", answers[-1])


def test_a_file_that_changed_is_refused_in_the_words_of_the_page(tmp_path: Path) -> None:
    with world(str(tmp_path / "books.db"), tmp_path) as made:
        (tmp_path / "data" / SOURCE).write_bytes(b"another file")
        made.service.tables._kept.clear()  # as after a restart
        assert_as_shown("source_changed", made.ask())


def assert_page_shows(kind: str, text: str) -> None:
    assert all(line in text for line in shown(kind).splitlines())


def test_the_forms_of_the_page_are_refused_in_the_words_of_their_pages(place: World) -> None:
    person = Person(place, "owner")
    elsewhere = person.http.post("/exposure", data={}, headers={"Origin": "https://evil.example"})
    assert_page_shows("other_site", elsewhere.text)
    assert_page_shows("form_token", person.http.post("/exposure", data={"token": "x"}).text)
    asked = {"dataset": "people", "record": str(OUTLIER), "preset": "small"}
    assert routes_exposure._busy.acquire(timeout=DEADLINE)
    try:
        busy = person.post("/exposure", **asked)
    finally:
        routes_exposure._busy.release()
    assert_page_shows("busy", busy.text)


def test_a_note_for_the_owner_is_not_sent_by_the_service() -> None:
    error = pcor.errors.SourceError("the table has no column 'pay'")
    error.add_note("it has: secret_column")
    assert b"secret_column" not in of_error(error).response().body


# -- pcor explain ---------------------------------------------------------------------------------


def test_explain_shows_the_page_of_a_kind() -> None:
    ran = run("explain", "source")
    assert (ran.exit_code, ran.stderr) == (0, "")
    assert ran.stdout.rstrip() == PAGES["source"].rstrip()


def test_explain_lists_all_kinds_in_a_line_each() -> None:
    listed = run("explain").stdout.splitlines()[:-2]
    assert [line.split()[0] for line in listed] == list(PAGES)
    assert all(line.endswith(summary(PAGES[line.split()[0]])) for line in listed)


def test_explain_as_json() -> None:
    one, every = run("explain", "write", "--json"), run("explain", "--json")
    assert json.loads(one.stdout)["page"] == PAGES["write"]
    assert set(json.loads(every.stdout)["kinds"]) == set(PAGES)


def test_explain_offers_the_nearest_kind() -> None:
    ran = run("explain", "budget")
    assert ran.exit_code == 2
    assert "did you mean 'budget_exceeded'?" in run("explain", "budget_exeeded").stderr


def test_the_kinds_are_completed() -> None:
    asked = {"_PCOR_COMPLETE": "complete_bash", "COMP_WORDS": "pcor explain bu", "COMP_CWORD": "2"}
    ran = CliRunner().invoke(app, [], prog_name="pcor", env=asked)
    assert ran.stdout.split() == ["budget_exceeded", "busy"]


def test_the_pages_are_found_in_an_installed_package_first(tmp_path: Path) -> None:
    package = tmp_path / "src" / "pcor"
    for folder in (package / "error_pages", tmp_path / "docs" / "errors"):
        folder.mkdir(parents=True)
        (folder / "index.md").touch()
    assert find_folder(package) == package / "error_pages"


def test_the_pages_are_found_in_the_repository_around_the_package() -> None:
    assert find_folder(SOURCES) == FOLDER


def test_pages_that_did_not_come_along_are_missed_in_the_words_of_the_page(tmp_path: Path) -> None:
    with pytest.raises(PcorError) as caught:
        find_folder(tmp_path / "src" / "pcor")
    assert f"pcor: {caught.value}\n(more: pcor explain bad_input)\n" == shown("bad_input")


# -- pcor doctor ----------------------------------------------------------------------------------


def test_the_doctor_looks_for_what_is_declared() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]

    def as_written(lines: list[str]) -> dict[str, str]:
        found = [re.fullmatch(r"([\w-]+)(?:\[\w+\])?(.*)", line) for line in lines]
        return {one[1]: one[2] for one in found if one is not None}

    assert doctor.declared() == as_written(project["dependencies"])
    extras = project["optional-dependencies"]
    assert {*doctor.PURPOSES} == {*extras} - {"dev"}
    for name in doctor.PURPOSES:
        assert doctor.declared(name) == as_written(extras[name])


def test_the_doctor_says_how_to_get_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    missing = {"rich": "12.1", "altair": "5.4"}
    monkeypatch.setattr(doctor, "version", lambda name: missing.get(name) or version(name))
    ran = run("doctor")
    assert ran.exit_code == 1
    assert "FAIL  rich: 12.1, and >=14.3 is needed; pip install --upgrade pcor" in ran.stdout
    assert "--    plots (charts): altair 5.4, and >=5.5 is needed" in ran.stdout
    assert "; pip install 'pcor[plots]'" in ran.stdout


def test_the_doctor_does_without_what_is_optional(monkeypatch: pytest.MonkeyPatch) -> None:
    needed = doctor.declared()

    def only_needed(name: str) -> str:
        if name not in needed:
            raise PackageNotFoundError(name)
        return version(name)

    monkeypatch.setattr(doctor, "version", only_needed)
    ran = run("doctor", "--json")
    assert ran.exit_code == 0
    found = {check["check"]: check for check in json.loads(ran.stdout)["optional"]}
    assert found["duckdb (files larger than memory, patterns, folders)"] == {
        "check": "duckdb (files larger than memory, patterns, folders)",
        "ok": False,
        "found": "duckdb not installed",
        "fix": "pip install 'pcor[duckdb]'",
    }
