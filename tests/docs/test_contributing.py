"""The recipes of docs/contributing, followed to the letter in a copy of the project.

A reader begins in a folder beside a clone, writes each file, makes each change, types each command
and compares what it prints. ``pip install`` goes into a folder of its own and needs no network.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
import types
from dataclasses import replace
from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pcor
from pcor.detectors import registry
from pcor.errors import ParameterError
from tests.helpers.doc_blocks import Block, Command, PageError, blocks
from tests.helpers.doc_pages import Reader, Shell

ROOT = Path(__file__).parents[2]
RECIPES = ROOT / "docs" / "contributing"
EXAMPLE = ROOT / "examples" / "pcor-mad"
COPIED = ("src", "tests", "docs", "packages", "pyproject.toml", "mkdocs.yml", "README.md")
# What others write at this moment is there under another name; tests are compiled for their place.
PASSING = shutil.ignore_patterns(".*", "*.pyc.*", "*-pytest-*")


class Newcomer(Reader):
    """Somebody in an empty folder beside a clone, with a place for what pip installs."""

    def __init__(self, page: Path, folder: Path) -> None:
        work, state, installed = (folder / name for name in ("work", "state", "installed"))
        for made in (work / "pcor", state, installed):
            made.mkdir(parents=True)
        for path in (ROOT / name for name in COPIED):
            # With what is compiled, and the times of files that it is known by.
            copy: Any = shutil.copytree if path.is_dir() else shutil.copy2
            copy(path, work / "pcor" / path.name, **({"ignore": PASSING} if path.is_dir() else {}))
        super().__init__(page, Shell(work, state), types.ModuleType("page"))
        self.shell.variables |= {
            "PYTHONPATH": f"{installed}{os.pathsep}{work / 'pcor' / 'src'}",
            "PIP_TARGET": str(installed),
            "PIP_NO_INDEX": "1",
            "PIP_NO_DEPS": "1",
            "PIP_NO_BUILD_ISOLATION": "0",  # pip reads it as the value of --build-isolation
            "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        }

    def follow_all(self) -> None:
        """Follow the page; a recipe that does not work is said with its line."""
        for block in blocks(self.page.read_text(encoding="utf-8")):
            self.follow(block)


def files(page: Path) -> dict[str, Block]:
    """Return the blocks of a page that are whole files, by their paths."""
    found = blocks(page.read_text(encoding="utf-8"))
    return {b.title: b for b in found if b.title is not None and b.language != "diff"}


@pytest.mark.skipif(
    not all(map(importlib.util.find_spec, ("pip", "hatchling"))),
    reason="installs a package without a network, which needs pip and hatchling here",
)
def test_the_recipe_for_a_detector_works_word_by_word(tmp_path: Path) -> None:
    Newcomer(RECIPES / "detector.md", tmp_path).follow_all()


def test_the_recipe_for_a_search_works_word_by_word(tmp_path: Path) -> None:
    Newcomer(RECIPES / "search.md", tmp_path).follow_all()


def test_the_recipe_for_a_utility_works_word_by_word(tmp_path: Path) -> None:
    Newcomer(RECIPES / "utility.md", tmp_path).follow_all()


def test_the_recipe_for_an_engine_works_word_by_word(tmp_path: Path) -> None:
    Newcomer(RECIPES / "engine.md", tmp_path).follow_all()


def test_the_example_package_is_the_recipe_for_a_detector() -> None:
    recipe = {path: block.text for path, block in files(RECIPES / "detector.md").items()}
    example = {
        f"{EXAMPLE.name}/{path.relative_to(EXAMPLE)}": path.read_text(encoding="utf-8")
        for path in EXAMPLE.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts and path.suffix != ".pyc"
    }
    assert recipe == example


def test_contributing_leads_to_every_recipe() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    assert [
        page.name for page in RECIPES.glob("*.md") if f"contributing/{page.name}" not in text
    ] == []


# -- the tests that the recipes hand out say no to what is broken ----------------------------------


WRONG = {
    "detector.md": ("rows // 2], side=", "rows // 2], sorter=None, side='left' or "),
    "engine.md": ("cursor.fetchall()", "cursor.fetchall()[:-1]"),
}


def test_the_tests_of_a_detector_and_of_an_engine_reject_a_wrong_one(tmp_path: Path) -> None:
    reader = Newcomer(RECIPES / "detector.md", tmp_path)
    for page, change in WRONG.items():
        whole = files(RECIPES / page).values()
        assert sum(block.text.count(change[0]) for block in whole) == 1
        for block in whole:
            reader.follow(replace(block, text=block.text.replace(*change)))
    reader.shell.variables["PYTHONPATH"] += f"{os.pathsep}pcor-mad/src"
    command = "python -m pytest --quiet pcor-mad/tests test_connection.py"
    said = "...::test_it_agrees_with_its_slow_twin...::test_the_valid_contexts_are_those_of..."
    reader.shell.run(Command(1, command, said, 1))


def test_a_change_that_no_longer_fits_is_reported(tmp_path: Path) -> None:
    reader = Reader(tmp_path / "page.md", Shell(tmp_path, tmp_path), types.ModuleType("page"))
    (tmp_path / "list.txt").write_text("one\nthree\n", encoding="utf-8")
    reader.follow(Block(1, "diff", " one\n+two\n three\n", title="list.txt"))
    assert (tmp_path / "list.txt").read_text(encoding="utf-8") == "one\ntwo\nthree\n"
    with pytest.raises(PageError, match="has not these lines, once"):
        reader.follow(Block(1, "diff", " one\n-three\n", title="list.txt"))


# -- what somebody who extends PCOR meets when something is wrong ----------------------------------


def announce(monkeypatch: pytest.MonkeyPatch, **points: list[str]) -> None:
    """Have packages announce detectors: name -> where each package says that it is."""
    found = [
        EntryPoint(name, value, registry.GROUP)
        for name, values in points.items()
        for value in values
    ]
    monkeypatch.setattr(registry, "_announced", lambda: EntryPoints(found))


def test_a_detector_that_cannot_be_loaded_is_named_with_what_is_wrong(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    announce(monkeypatch, mine=["no_such_package:Mine"])
    # What the other package said is a note: for the owner, not for the service's answers.
    with pytest.raises(ParameterError, match=r"(?s)'mine' .* 'no_such_package:Mine' .*No module"):
        pcor.get_detector("mine")


def test_two_packages_cannot_announce_the_same_name(monkeypatch: pytest.MonkeyPatch) -> None:
    announce(monkeypatch, lof=["pcor.detectors.lof:LOF", "another_package:LOF"])
    with pytest.raises(ParameterError, match="several packages announce a detector 'lof'"):
        pcor.get_detector("lof")


def test_what_is_announced_must_make_a_detector(monkeypatch: pytest.MonkeyPatch) -> None:
    announce(monkeypatch, mine=["builtins:dict"])
    with pytest.raises(ParameterError, match=r"'mine' made no pcor\.Detector"):
        pcor.get_detector("mine")


@pytest.mark.parametrize(
    ("name", "factory", "said"),
    [("my:lof", pcor.LOF, "one word"), (3, pcor.LOF, "one word"), ("mine", pcor.LOF(), "class")],
)
def test_register_detector_says_what_it_takes(name: Any, factory: Any, said: str) -> None:
    with pytest.raises(ParameterError, match=said):
        pcor.register_detector(name, factory)


def test_a_frame_with_a_column_called_dialect_is_no_engine() -> None:
    rows = pa.table({"dialect": ["a", "b"] * 20, "pay": [float(n) for n in range(40)]})
    schema = pcor.Schema(metric="pay", attributes={"dialect": ["a", "b"]})
    assert pcor.Table(rows.to_pandas(), schema).engine.startswith("numpy")


def test_following_a_recipe_leaves_this_process_alone() -> None:
    assert "mad" not in registry.detector_names()
    assert "narrowest_first" not in pcor.search.SEARCHES
    assert "pcor_mad" not in sys.modules
