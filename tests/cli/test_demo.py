"""`pcor demo` tells the whole story."""

from __future__ import annotations

from pathlib import Path

import pytest

from pcor.demo import PLANTED
from tests.helpers.command_line import CONTRACT, pcor_


def test_demo_tells_the_whole_story_and_writes_files_that_a_release_takes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "new" / "demo"
    ran = pcor_("demo", "--write", folder)
    assert ran.code == 0
    assert f"Record {PLANTED[0].record} (198,120 dollars) is an outlier by salary" in ran.out
    assert "total epsilon 0.2 (tight accounting)" in ran.out
    assert "OCDP" in ran.out
    assert {path.name for path in folder.iterdir()} == {
        *("salaries.csv", "salaries.parquet", "salaries.toml")
    }
    next_step = ran.out.splitlines()[-1].removeprefix("Next: pcor ").split()
    monkeypatch.chdir(tmp_path)
    again = pcor_(*next_step, "--json")
    assert again.code == 0
    assert next_step[-4:] == ["--out", "certificate.html", "--letter", "letter.html"]
    assert (tmp_path / "letter.html").exists()
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
