"""The tutorial's story is true, notebooks run, and they show what they may.

That the pages do what they say is tested with all other pages, in ``test_docs.py``.
"""

from __future__ import annotations

import csv
import hashlib
import html
import io
import re
import tempfile
import tomllib
from collections.abc import Iterator
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import nbformat
import pyarrow as pa
import pytest
from nbclient import NotebookClient
from traitlets.config import Config
from typer.testing import CliRunner

import pcor
from pcor.audit.schema_fit import misfits
from pcor.cli import app
from tests.helpers import naive
from tools import notebooks

TUTORIAL = Path(__file__).parents[2] / "docs" / "tutorial"
FINGERPRINT = "91dd1bb6be4590e188834f533f541d5a5b300463610ba2adedf40acd1a26d208"


# -- the claims -----------------------------------------------------------------------------------


@cache
def raw() -> list[dict[str, str]]:
    """Return the rows of the file, read by nothing of ours."""
    return list(csv.DictReader(io.StringIO(pcor.demo.claims_csv())))


@cache
def table() -> pcor.Table:
    return pcor.demo.claims_table()


def test_the_claims_are_the_same_on_every_machine() -> None:
    assert hashlib.sha256(pcor.demo.claims_csv().encode()).hexdigest() == FINGERPRINT


def test_the_claims_have_the_rough_edges_of_a_raw_file() -> None:
    regions = {row["region"] for row in raw()}
    declared = pcor.demo.claims_schema().attribute("region").values
    assert len(raw()) == 20_000
    assert list(raw()[0]) == ["claim", "year", "region", "age", "vehicle", "garage", "amount"]
    assert 5 <= sum(row["amount"] == "" for row in raw()) <= 30
    assert regions - {*declared} == {"R9", "ferry"}
    assert {int(row["age"]) for row in raw()} == {*range(17, 93)}


def test_the_claims_fit_the_schema_of_the_tutorial() -> None:
    assert misfits(pcor.demo.claims(), pcor.demo.claims_schema()) == []


def test_the_schema_that_the_tutorial_writes_is_the_one_that_is_built_in() -> None:
    page = (TUTORIAL / "index.md").read_text(encoding="utf-8")
    written = re.search(r"<<'EOF'\n(.*?)\nEOF\n", page, re.DOTALL)
    assert written is not None
    assert pcor.Schema.from_dict(tomllib.loads(written[1])) == pcor.demo.claims_schema()


def amounts(*, story: bool) -> tuple[list[float], int]:
    """Return the amounts of everybody or of those of the story, and the place of the claim."""
    rows = [
        row
        for row in raw()
        if row["amount"]
        and (not story or (row["region"], row["year"]) == ("urban", "2019"))
        and (not story or int(row["age"]) < 25)
    ]
    place = [row["claim"] for row in rows].index(str(pcor.demo.CLAIM))
    return [float(row["amount"]) for row in rows], place


def test_the_claim_is_unusual_among_urban_drivers_under_25_in_2019() -> None:
    population, place = amounts(story=True)
    assert population[place] == pcor.demo.CLAIM_AMOUNT
    assert naive.grubbs(alpha=0.05, tail="both")(population)[place] is True
    assert naive.lof(k=20, threshold=1.5, ties="lower")(population)[place] is True
    assert pcor.is_outlier(table(), pcor.demo.CLAIM, pcor.demo.claims_context())


def test_the_claim_is_ordinary_among_all_claims() -> None:
    population, place = amounts(story=False)
    above = sum(amount > population[place] for amount in population)
    assert 0.19 < above / len(population) < 0.21
    assert naive.grubbs(alpha=0.05, tail="both")(population)[place] is False
    assert naive.sklearn_lof(k=20, threshold=1.5)(population)[place] is False
    assert not pcor.is_outlier(table(), pcor.demo.CLAIM, pcor.Context.full(table().schema))


def test_the_context_of_the_story_is_the_wider_of_two_and_the_likely_answer() -> None:
    valid = pcor.matching_contexts(table(), pcor.demo.CLAIM)
    story = pcor.demo.claims_context()
    assert len(valid) == 2
    assert valid.largest(1).contexts == [story]
    for epsilon, least, most in ((0.5, 0.999, 1), (0.01, 0.6, 0.99)):  # likely, and yet a draw
        chances = pcor.audit.exact_distribution(table(), pcor.demo.CLAIM, epsilon)
        assert least < chances[story] <= most


def test_claims_that_were_picked_by_no_reason_stand_out_nowhere() -> None:
    picked = range(100_001, 120_001, 500)
    assert [one for one in picked if len(pcor.matching_contexts(table(), one))] == []


# -- pcor demo ------------------------------------------------------------------------------------


def test_the_demo_writes_the_raw_claims_and_nothing_else(tmp_path: Path) -> None:
    ran = CliRunner().invoke(app, ["demo", "--story", "claims", "--write", str(tmp_path)])
    assert ran.exit_code == 0
    assert {path.name for path in tmp_path.iterdir()} == {"claims.csv", "export.csv"}
    assert (tmp_path / "claims.csv").read_text(encoding="utf-8") == pcor.demo.claims_csv()
    assert (tmp_path / "export.csv").read_bytes() == pcor.demo.claims_export()
    next_step = ran.stdout.splitlines()[-1].removeprefix("Next: pcor ").split()
    assert CliRunner().invoke(app, next_step).exit_code == 0
    assert (tmp_path / "draft.toml").exists()


def test_the_demo_tells_the_story_of_the_claim() -> None:
    ran = CliRunner().invoke(app, ["demo", "--story", "claims"])
    assert ran.exit_code == 0
    assert f"Record {pcor.demo.CLAIM} (7,480.5 dollars) is an outlier by amount" in ran.stdout
    assert "pcor ledger" in ran.stdout


def test_the_demo_refuses_a_story_that_it_does_not_know() -> None:
    ran = CliRunner().invoke(app, ["demo", "--story", "clams"])
    assert ran.exit_code == 2
    assert "did you mean 'claims'?" in ran.stderr


# -- the notebook ---------------------------------------------------------------------------------

OWNERS = ("distribution", "is_outlier", "matching_contexts", "audit.")


def notebook() -> Any:
    text = (TUTORIAL / "notebook.ipynb").read_text(encoding="utf-8")
    return nbformat.reads(text, as_version=4)  # type: ignore[no-untyped-call]


def code_cells(book: Any) -> Iterator[Any]:
    return (cell for cell in book.cells if cell.cell_type == "code")


def test_notebooks_say_what_their_pages_say_and_are_committed_without_outputs() -> None:
    """So the code of each is run where its page is (``test_pages``)."""
    assert len(notebooks.sources()) == 4
    assert notebooks.stale() == []  # otherwise: python -m tools.notebooks
    assert '"outputs": []' in notebooks.notebook(TUTORIAL / "notebook.md")


def test_a_notebook_that_differs_from_its_page_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notebooks, "DOCS", tmp_path)
    page = tmp_path / "page.md"
    page.write_text("# A page\n\n```python\nprint(1)\n```\n\nprints:\n\n```text\n1\n```\n\nEnd.\n")
    (tmp_path / "page.ipynb").write_text(notebooks.notebook(page))
    assert notebooks.stale() == []
    book = nbformat.reads(notebooks.notebook(page), as_version=4)  # type: ignore[no-untyped-call]
    assert [cell.source for cell in book.cells] == ["# A page", "print(1)", "End."]
    page.write_text(page.read_text().replace("1", "2"))
    assert notebooks.stale() == [tmp_path / "page.ipynb"]


def test_cells_of_the_notebook_that_show_private_things_say_so() -> None:
    cells = [cell.source for cell in code_cells(notebook())]
    private = [text for text in cells if any(name in text for name in OWNERS)]
    marked = [text for text in cells if text.startswith("# OWNER ONLY")]
    assert private == marked != []
    assert "# OWNER ONLY" in notebook().cells[0].source


@pytest.fixture
def kernels(monkeypatch: pytest.MonkeyPatch) -> Iterator[Config]:
    """Let kernels talk through files, not ports, and keep them out of the home folder."""
    with tempfile.TemporaryDirectory() as folder:  # the path of a socket has to be short
        for name in ("IPYTHONDIR", "JUPYTER_RUNTIME_DIR"):
            monkeypatch.setenv(name, folder)
        yield Config(KernelManager={"transport": "ipc", "ip": f"{folder}/kernel"})


def test_the_notebook_runs_and_draws_its_pictures(kernels: Config, tmp_path: Path) -> None:
    book = notebook()
    where = {"metadata": {"path": str(tmp_path)}}
    NotebookClient(
        book, config=kernels, startup_timeout=300, timeout=300, resources=where
    ).execute()
    shown = [data for cell in code_cells(book) for data in cell.outputs]
    kinds = [kind for output in shown for kind in output.get("data", {})]
    assert kinds.count("image/png") == 2
    assert kinds.count("text/html") == 4  # a context, a plan, a release and a promise
    assert "application/javascript" not in kinds
    assert (tmp_path / "certificate.html").exists()


# -- what a notebook shows ------------------------------------------------------------------------


class _Shown(HTMLParser):
    """The tags of a piece of HTML, and its texts by the tag that they are in."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.texts: dict[str, list[str]] = {}
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        assert not any(name.startswith("on") or name in ("src", "href") for name, _ in attrs)

    def handle_data(self, data: str) -> None:
        self.texts.setdefault(self.tags[-1], []).append(data)


def shown(thing: Any) -> _Shown:
    return _Shown(thing._repr_html_())


@pytest.fixture(scope="module")
def released() -> pcor.Release:
    rule = pcor.Grubbs(min_population=3)
    ten = pcor.Table(pcor.demo.ten_people(), pcor.demo.ten_people_schema())
    return pcor.release(ten, 8, 0.5, rule)


def test_a_context_shows_chosen_values_in_bold_and_strikes_the_others_through() -> None:
    texts = shown(pcor.demo.claims_context()).texts
    chips = [[text for text in texts[tag] if text.strip()] for tag in ("b", "s")]
    assert chips[0] == ["urban", "under 25", "small", "family", "van", "sports", "2019"]
    assert chips[1] == [
        *("suburban", "rural", "coastal", "elsewhere"),
        *("25 to under 35", "35 to under 50", "50 to under 65", "65 or more"),
        *("2018", "2020", "2021"),
    ]


def test_a_release_shows_its_sentence_the_whole_promise_its_settings_and_its_cost(
    released: pcor.Release,
) -> None:
    text = html.unescape(released._repr_html_())
    promise = released.promise
    for part in (str(released), promise.claim, promise.validity, *promise.not_protected):
        assert part in text
    for part in ("grubbs", "permute_and_flip", "epsilon 0.5", released.context.where()):
        assert part in text


def test_a_plan_shows_its_cost_and_a_promise_itself(released: pcor.Release) -> None:
    plan = html.unescape(released.plan._repr_html_())
    assert "epsilon 0.5" in plan
    assert str(released.plan).splitlines()[0] in plan
    for text in (plan, html.unescape(released.promise._repr_html_())):
        assert all(part in text for part in (released.promise.claim, "Not protected:"))


def test_a_seeded_release_says_in_a_notebook_that_it_is_not_private() -> None:
    ten = pcor.Table(pcor.demo.ten_people(), pcor.demo.ten_people_schema())
    rule = pcor.Grubbs(min_population=3)
    seeded = pcor.release(ten, 8, 0.1, rule, chooser=pcor.testing.seeded(3))
    assert 'class="warning" role="alert">NOT PRIVATE' in seeded._repr_html_()


def test_what_a_notebook_shows_needs_nothing_from_elsewhere_and_cannot_be_broken_out_of() -> None:
    nasty = "</style><script>alert('x')</script>"
    schema = pcor.Schema(metric='m"<&', attributes={nasty: [nasty, "b"]}, name=nasty)
    columns = {'m"<&': [1.0, 2.0, 1.0, 2.0, 1.0, 50.0], nasty: [nasty, "b"] * 3}
    rule = pcor.Grubbs(min_population=3)
    release = pcor.release(pcor.Table(pa.table(columns), schema), 5, 1, rule)
    for thing in (release, release.context, release.plan, release.promise):
        tags = shown(thing).tags
        assert tags.count("style") == 1
        assert not {"script", "link", "img", "iframe", "a"} & {*tags}
        assert "http" not in thing._repr_html_()
