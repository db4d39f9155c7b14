"""What strangers meet first: files of the repository parse, agree, and name things that exist."""

from __future__ import annotations

import re
import shlex
import tomllib
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped,unused-ignore]
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.version import Version

import pcor
from tools.package_index import ADDRESS, PackageIndex, addresses, described

ROOT = Path(__file__).parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
TEMPLATES = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"))
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
LOCK: dict[str, Any] = tomllib.loads((ROOT / "uv.lock").read_text("utf-8"))
TARGETS = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))


def name(path: Path) -> str:
    return path.name


def parsed(path: Path) -> Any:
    return yaml.safe_load(path.read_text("utf-8"))


def steps(path: Path) -> Iterator[dict[str, Any]]:
    for job in parsed(path)["jobs"].values():
        yield from job["steps"]


# -- workflows ------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", WORKFLOWS, ids=name)
def test_a_workflow_may_read_and_no_more_unless_a_job_says_why(path: Path) -> None:
    found = parsed(path)
    assert found["permissions"] == {"contents": "read"}
    for job in found["jobs"].values():
        assert set(job.get("permissions", {})) <= {"contents", "id-token", "attestations"}
        assert job.get("permissions", {}).get("contents", "read") == "read"


@pytest.mark.parametrize("path", WORKFLOWS, ids=name)
def test_a_workflow_names_its_actions_by_hash(path: Path) -> None:
    uses = [line for line in path.read_text("utf-8").splitlines() if "uses:" in line]
    assert len(uses) >= 2
    for line in uses:
        assert re.search(r"uses: [\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$", line), line


def unknown(command: str) -> list[str]:
    """Return what is named by a command of a workflow and does not exist."""
    match shlex.split(command):
        case ["make", *targets]:
            return [one for one in targets if one not in TARGETS]
        case ["python", "-m", "pytest", *paths]:
            return [one for one in paths if not (ROOT / one).exists()]
        case ["python", "-m", module, *_]:
            return [] if module == "pip" or find_spec(module) else [module]
        case ["uv", "run", "--no-sync", *rest]:
            return unknown(shlex.join(rest))
        case ["uv", "lock" | "sync" | "export" | "pip", *_]:
            return []
    return [command]


@pytest.mark.parametrize("path", WORKFLOWS, ids=name)
def test_a_workflow_runs_commands_that_exist(path: Path) -> None:
    commands = [step["run"] for step in steps(path) if "run" in step]
    assert commands
    assert [missing for command in commands for missing in unknown(command)] == []


def test_a_command_that_does_not_exist_is_found() -> None:
    assert unknown("make tset") == ["tset"]
    assert unknown("python -m tools.packing") == ["tools.packing"]
    assert unknown("python -m pytest tests/gone") == ["tests/gone"]
    assert unknown("curl example.org") == ["curl example.org"]


@pytest.mark.parametrize("path", WORKFLOWS, ids=name)
def test_a_workflow_installs_only_extras_that_exist(path: Path) -> None:
    extras = set(PROJECT["project"]["optional-dependencies"])
    text = path.read_text("utf-8")
    named = {one for found in re.findall(r"\"\.\[([^\]]+)\]", text) for one in found.split(",")}
    named |= set(re.findall(r"--extra (\w+)", text))
    assert named <= extras


def test_every_python_that_is_declared_is_tested() -> None:
    jobs = parsed(ROOT / ".github" / "workflows" / "tests.yml")["jobs"]
    prefix = "Programming Language :: Python :: 3."
    declared = {
        c.removeprefix(prefix[:-2])
        for c in PROJECT["project"]["classifiers"]
        if c.startswith(prefix)
    }
    assert set(jobs["whole"]["strategy"]["matrix"]["python"]) == declared
    systems = jobs["everywhere"]["strategy"]["matrix"]["system"]
    assert [one.partition("-")[0] for one in systems] == ["ubuntu", "macos", "windows"]
    assert set(jobs["versions"]["strategy"]["matrix"]["resolution"]) == {"lowest-direct", "highest"}


# -- versions and the lock ------------------------------------------------------------------------


def test_the_changelog_the_citation_and_the_packages_have_one_version_and_date() -> None:
    changelog = (ROOT / "CHANGELOG.md").read_text("utf-8")
    newest = re.search(r"^## (\S+) \((\d{4}-\d\d-\d\d)\)$", changelog, re.MULTILINE)
    assert newest is not None
    citation = parsed(ROOT / "CITATION.cff")
    assert newest[1] == PROJECT["project"]["version"] == citation["version"] == pcor.__version__
    assert newest[2] == citation["date-released"]


def test_the_citation_has_what_the_format_asks_for() -> None:
    citation = parsed(ROOT / "CITATION.cff")
    assert {"cff-version", "message", "title", "authors"} <= set(citation)
    assert citation["license"] == PROJECT["project"]["license"]
    (paper,) = citation["references"]
    assert paper["doi"] in (ROOT / "README.md").read_text("utf-8")


def locked() -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    for one in LOCK["package"]:
        found.setdefault(one["name"], []).append(one)
    return found


def test_the_lock_file_is_of_this_project() -> None:
    (own,) = locked()["pcor"]
    assert own["source"] == {"editable": "."}
    assert LOCK["requires-python"] == PROJECT["project"]["requires-python"]
    extras = PROJECT["project"]["optional-dependencies"].values()
    given = sum(extras, PROJECT["project"]["dependencies"])
    wanted = {(r.name, r.specifier) for r in map(Requirement, given)}
    noted = own["metadata"]["requires-dist"]
    assert {(one["name"], SpecifierSet(one["specifier"])) for one in noted} == wanted


def test_what_is_locked_is_allowed_and_comes_from_the_public_index() -> None:
    packages = locked()
    for text in PROJECT["project"]["dependencies"]:
        required = Requirement(text)
        for one in packages[required.name]:
            assert Version(one["version"]) in required.specifier, text
    hosts = set(re.findall(r"\w+://([^/\"]+)", (ROOT / "uv.lock").read_text("utf-8")))
    assert hosts == {"pypi.org", "files.pythonhosted.org"}


def test_a_group_asks_for_what_the_tests_are_run_with() -> None:
    dev = PROJECT["project"]["optional-dependencies"]["dev"]
    groups = PROJECT["dependency-groups"]
    assert groups["dev"] == ["pcor[dev]"]
    assert {one for which in ("docs", "lint") for one in groups[which]} <= set(dev)


def test_what_changed_its_meaning_between_minor_versions_is_bounded() -> None:
    dev = map(Requirement, PROJECT["project"]["optional-dependencies"]["dev"])
    bounded = {one.name for one in dev if "<" in str(one.specifier).replace("<=", "")}
    assert bounded == {"opendp", "zensical"}


# -- forms and hooks ------------------------------------------------------------------------------


@pytest.mark.parametrize("path", TEMPLATES, ids=name)
def test_an_issue_form_asks_for_no_rows_and_has_what_a_form_needs(path: Path) -> None:
    form = parsed(path)
    if path.name == "config.yml":
        assert form == {"blank_issues_enabled": False}
        return
    assert {"name", "description", "body"} <= set(form)
    ids = [part["id"] for part in form["body"] if part["type"] != "markdown"]
    assert len(ids) == len(set(ids)) > 0


def test_hooks_run_the_tools_of_the_environment() -> None:
    (repo,) = parsed(ROOT / ".pre-commit-config.yaml")["repos"]
    assert repo["repo"] == "local"
    for hook in repo["hooks"]:
        program, *words = shlex.split(hook["entry"])
        assert program in (".venv/bin/ruff", ".venv/bin/python")
        assert [
            one for one in words if one.startswith("tests/") and not (ROOT / one).exists()
        ] == []


# -- the package index ----------------------------------------------------------------------------


README = (ROOT / "README.md").read_text("utf-8")
LINK = re.compile(r"\]\(([^)]+)\)")


def test_the_readme_on_a_package_index_links_to_nothing_that_is_not_there() -> None:
    shown = described(README, "", "0.1.0")
    assert "<picture>" not in shown
    assert "docs/pictures" not in shown
    links = LINK.findall(shown)
    assert links
    assert [link for link in links if not link.startswith("https://")] == []
    assert "make demo" in shown


def test_where_the_repository_is_known_links_and_pictures_lead_to_its_files() -> None:
    shown = described(README, "https://example.org/we/pcor", "0.1.0")
    assert "<picture>" not in shown
    pages = "https://example.org/we/pcor/blob/v0.1.0/"
    pictures = "https://example.org/we/pcor/raw/v0.1.0/"
    ours = [one for one in LINK.findall(shown) if one.startswith("https://example.org/")]
    files = [one.removeprefix(pages).removeprefix(pictures).partition("#")[0] for one in ours]
    assert len(files) > 20
    assert "docs/pictures/flow-light.svg" in files
    assert [one for one in files if not (ROOT / one).exists()] == []
    relative = [one for one in LINK.findall(README) if not one.startswith(("https:", "#"))]
    assert len(ours) == len(relative) + 1  # the picture


def test_an_address_is_announced_only_where_there_is_one() -> None:
    assert set(addresses("", "0.1.0")) == {"Paper"}
    known = addresses("https://example.org/we/pcor", "0.1.0")
    assert {"Homepage", "Documentation", "Changelog", "Issues", "Source", "Paper"} == set(known)
    for label in ("Documentation", "Changelog"):
        path = known[label].removeprefix("https://example.org/we/pcor/blob/v0.1.0/")
        assert (ROOT / path).is_file()


def test_the_metadata_has_what_the_environment_of_the_build_says(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    hook = PackageIndex(str(ROOT), {})
    metadata: dict[str, Any] = {"version": "0.1.0"}
    monkeypatch.setenv(ADDRESS, "https://example.org/we/pcor/")
    hook.update(metadata)
    assert metadata["urls"]["Issues"] == "https://example.org/we/pcor/issues"
    assert "https://example.org/we/pcor/blob/v0.1.0/docs/faq.md" in metadata["readme"]["text"]
    monkeypatch.delenv(ADDRESS)
    hook.update(metadata)
    assert "example.org" not in str(metadata)
    monkeypatch.setenv(ADDRESS, "example.org")
    with pytest.raises(ValueError, match="must begin with https"):
        hook.update(metadata)


def test_a_release_is_built_with_the_address_of_its_repository() -> None:
    (build,) = [s for s in steps(WORKFLOWS[0]) if s.get("run") == "make package"]
    assert WORKFLOWS[0].name == "release.yml"
    assert set(build["env"]) == {ADDRESS}
