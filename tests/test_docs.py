"""The README and the documentation say what is so: their code runs, their links lead somewhere."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import pcor

ROOT = Path(__file__).parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def blocks(page: Path, language: str) -> Iterator[str]:
    """Yield the code blocks of one language."""
    for found in BLOCK.finditer(page.read_text(encoding="utf-8")):
        if found[1] == language:
            yield found[2]


def pages_with(language: str) -> list[Path]:
    return [page for page in PAGES if any(blocks(page, language))]


@pytest.mark.parametrize("page", pages_with("python"), ids=lambda p: str(p.relative_to(ROOT)))
def test_the_python_of_a_page_runs_from_top_to_bottom(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"pcor": pcor}
    for block in blocks(page, "python"):
        exec(compile(block, str(page), "exec"), names)  # noqa: S102 (our own pages)


def test_the_command_line_session_of_the_readme_runs(tmp_path: Path) -> None:
    """Run each ``$ pcor`` line and compare the shape of what it prints.

    A release is drawn, so its context differs from run to run: the words that stand before the
    drawn part must be there, not the drawn part itself.
    """
    session = "\n".join(blocks(ROOT / "README.md", "console"))
    steps = re.findall(r"^\$ (.+)\n((?:(?!\$ ).*\n)*)", session, re.MULTILINE)
    assert len(steps) >= 4
    environment = os.environ | {"COLUMNS": "200"}
    for command, expected in steps:
        program, *arguments = shlex.split(command)
        assert program == "pcor"
        done = subprocess.run(  # noqa: S603 (our own README)
            [str(Path(sys.executable).with_name("pcor")), *arguments],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            env=environment,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        for line in filter(None, (line.strip() for line in expected.splitlines())):
            fixed = re.split(r"among rows where|SQL: WHERE|\.\.\.", line)[0].strip()
            assert fixed in " ".join(done.stdout.split()) + done.stdout, (command, fixed)


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_every_link_to_a_file_leads_somewhere(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    targets = re.findall(r"\]\(([^)#\s]+)[^)]*\)", text)
    missing = [
        t
        for t in targets
        if "://" not in t and not t.startswith("mailto:") and not (page.parent / t).exists()
    ]
    assert missing == []


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_docs_never_call_the_relaxed_guarantee_plain_differential_privacy(page: Path) -> None:
    text = page.read_text(encoding="utf-8").lower()
    assert not re.search(r"(release|it) is \S*-?differentially private", text)
