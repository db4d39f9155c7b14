"""The report of the experiments: every figure is drawn, and nothing is asked of the network."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from pcor.cli import app
from pcor.paper import comparison, tables
from pcor.paper.catalogue import EXPERIMENTS
from pcor.paper.experiments import SYNTHETIC
from pcor.paper.layout import against, grids
from pcor.paper.markdown import written
from pcor.paper.report import TITLE, first_line
from pcor.paper.store import read_summaries
from pcor.public.guarantee import OWNER_ONLY
from tests.helpers.page_world import browser


def pcor_(*words: object) -> tuple[int, str, str]:
    done = CliRunner().invoke(app, ["experiment", *map(str, words)])
    return done.exit_code, done.stdout, done.stderr


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Run every experiment with a repetition or two, and report."""
    out = tmp_path_factory.mktemp("results")
    fewer = {
        "coe_match.QUICK": 1,
        "coe_match.NEIGHBOURS": 2,
        "ratio.QUICK": 1,
        "ratio.REMOVALS": 20,
        "locality.QUICK": 1,
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv(tables.FOLDER, raising=False)
        patch.setattr(comparison, "QUICK", 2)
        for name, value in fewer.items():
            patch.setattr(f"pcor.paper.{name}", value)
        asked = ("--quick", "--table", "synthetic_reduced", "--workers", 1, "--out", out)
        code, _, err = pcor_("all", *asked)
        assert code == 0, err
        code, _, err = pcor_("report", "--out", out, "--markdown", out / "paper.md")
        assert code == 0, err
        yield out


def test_the_page_says_first_who_may_see_it(results: Path) -> None:
    text = (results / "report.html").read_text()
    assert text.index(SYNTHETIC) < text.index("<h1>")
    summaries = read_summaries(results)
    real = [summaries[0] | {"owner_only": OWNER_ONLY}, *summaries[1:]]
    assert first_line(summaries) == SYNTHETIC
    assert first_line(real) == OWNER_ONLY


def test_the_page_has_every_experiment_with_its_tables_and_figures(results: Path) -> None:
    text = (results / "report.html").read_text()
    sections = re.findall(r'<section id="(\w+)">(.*?)</section>', text, re.DOTALL)
    assert [name for name, _ in sections] == list(EXPERIMENTS)
    for name, content in sections:
        figures = 3 if isinstance(EXPERIMENTS[name], comparison.Comparison) else 1
        assert content.count("<svg role=") == figures, name
        assert content.count("<table>") == 1
        assert "How to get this again" in content


def test_every_figure_says_what_it_shows(results: Path) -> None:
    text = (results / "report.html").read_text()
    labels = re.findall(r'<svg role="img" aria-label="([^"]+)"', text)
    assert len(labels) == text.count("<svg ")
    assert all("synthetic_reduced: " in label for label in labels)


def test_no_two_parts_of_the_page_have_the_same_id(results: Path) -> None:
    ids = re.findall(r'\bid="([^"]+)"', (results / "report.html").read_text())
    assert len(ids) == len(set(ids))


def test_the_markdown_has_every_table(results: Path) -> None:
    text = (results / "paper.md").read_text()
    for summary in read_summaries(results):
        assert f"## {summary['title']}" in text
        for grid in grids(summary):
            assert grid.markdown() in text


def test_what_the_paper_says_is_beside_what_was_measured(results: Path) -> None:
    summary = read_summaries(results)[0]
    rows = [
        row | {"paper_utility": 0.9, "paper_low": 0.88, "paper_high": 0.93, "utility": measured}
        for row, measured in zip(summary["rows"][:3], (0.91, 0.5, 0.99), strict=True)
    ]
    assert [against(row) for row in rows] == ["within", "lower", "higher"]
    assert against(rows[0] | {"real": False}) == ""
    assert "0.90 (0.88, 0.93)" in written([summary | {"rows": rows[:1]}])


def test_a_file_that_is_no_summary_is_refused(results: Path, tmp_path: Path) -> None:
    (tmp_path / "sampling.json").write_text("{}")
    code, _, err = pcor_("report", "--out", tmp_path)
    assert code == 2
    assert "is not a summary of an experiment; run 'pcor experiment sampling'" in err
    assert (results / "report.html").exists()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_browser_draws_every_figure_and_asks_nobody_else(results: Path, scheme: Any) -> None:
    said: list[str] = []
    asked: list[str] = []
    with browser() as started:
        page = started.new_page(color_scheme=scheme)
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("request", lambda request: asked.append(request.url))
        page.goto((results / "report.html").as_uri())
        figures = page.evaluate(
            """() => [...document.querySelectorAll('figure svg')].map(svg => ({
              width: svg.getBoundingClientRect().width,
              height: svg.getBoundingClientRect().height,
              marks: svg.querySelectorAll('[class*="mark-"] path, [class*="mark-"] line').length,
              ground: svg.querySelector('rect')?.getAttribute('fill'),
            }))"""
        )
        ground, ink = page.evaluate(
            """() => { const s = getComputedStyle(document.body);
              return [s.backgroundColor, s.color].map(c => c.match(/\\d+/g).map(Number)); }"""
        )
        title = page.title()
    assert title == TITLE
    assert said == []
    assert [url for url in asked if not url.startswith(("file:", "data:"))] == []
    assert len(figures) == 5 * 3 + 3
    for figure in figures:
        assert figure["width"] > 100
        assert figure["height"] > 30
        assert figure["marks"] > 0
        assert figure["ground"] == "white"  # its dark letters are readable on any page
    assert (sum(ground) < sum(ink)) == (scheme == "dark")
    assert abs(sum(ground) - sum(ink)) > 3 * 150
