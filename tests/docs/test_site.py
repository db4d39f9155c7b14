"""The documentation site: built without a warning, whole, readable offline on a wide and a narrow
screen.

Pictures of what was seen are written to the folder that PCOR_PICTURES names.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.helpers.page_world import browser
from tests.helpers.site_world import (
    ALONE,
    ROOT,
    Built,
    Leaf,
    broken,
    build,
    is_elsewhere,
    leaves,
    reading,
    served,
)

WIDE = {"width": 1280, "height": 900}
NARROW = {"width": 390, "height": 844}

# Of each kind of page one, for pictures.
SHOWN = {
    "home": "index.html",
    "tutorial": "tutorial/index.html",
    "how-to": "how-to/domains.html",
    "reference": "reference/python.html",
    "promise": "explanation/promise.html",
    "cheat-sheet": "cheat-sheet.html",
}


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Built:
    return build(tmp_path_factory.mktemp("site"))


@pytest.fixture(scope="session")
def pages(site: Built) -> dict[Path, Leaf]:
    return leaves(site.folder)


@pytest.fixture(scope="module")
def chrome() -> Iterator[Browser]:
    with browser(ALONE) as started:
        yield started


@pytest.fixture(scope="module")
def home(site: Built) -> Iterator[str]:
    with served(site.folder) as address:
        yield address


# -- the files ------------------------------------------------------------------------------------


def test_the_site_is_built_without_a_warning(site: Built) -> None:
    assert site.code == 0, site.said
    assert "No issues found" in site.said
    assert "warning" not in site.said.lower()


def test_every_page_is_in_the_navigation_and_the_other_way_round() -> None:
    """Those of the errors are one entry: a table, from which each is reached."""
    config = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    listed = re.findall(r"^ +- (?:\"[^\"\n]+\": |[^:\n]+: )?(\S+\.md)$", config, re.MULTILINE)
    assert listed.count("errors/index.md") == 1
    table = (ROOT / "docs" / "errors" / "index.md").read_text(encoding="utf-8")
    folded = re.findall(r"^\| \[\w+\]\((\w+\.md)\)", table, re.MULTILINE)
    listed += [f"errors/{name}" for name in folded]
    written = [str(one.relative_to(ROOT / "docs")) for one in (ROOT / "docs").rglob("*.md")]
    assert sorted(listed) == sorted(written)


def test_every_link_and_anchor_within_the_site_leads_somewhere(
    pages: dict[Path, Leaf], site: Built
) -> None:
    assert len(pages) > 40
    assert broken(pages, site.folder) == []


def test_a_link_that_leads_nowhere_is_seen(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text('<h1 id="x">a</h1><a href="b.html"></a><a href="#y"></a>')
    (tmp_path / "c.html").write_text('<a href="a.html#x"></a><a href="../d.html"></a>')
    assert broken(leaves(tmp_path), tmp_path) == [
        "a.html: b.html",
        "a.html: #y",
        "c.html: ../d.html",
    ]


def test_no_page_and_no_style_fetches_anything_from_elsewhere(
    pages: dict[Path, Leaf], site: Built
) -> None:
    fetched = {one for leaf in pages.values() for one in leaf.fetched}
    assert len(fetched) > 5
    assert [one for one in fetched if is_elsewhere(one)] == []
    for style in site.folder.rglob("*.css"):
        named = re.findall(r"url\(\s*['\"]?([^)'\"]+)|@import\s+['\"]([^'\"]+)", style.read_text())
        assert [one for pair in named for one in pair if is_elsewhere(one)] == []


def test_what_is_written_as_a_list_or_a_table_is_shown_as_one(
    pages: dict[Path, Leaf], site: Built
) -> None:
    raw = {
        f"{path.relative_to(site.folder.resolve())}: {words[:80]}"
        for path, leaf in pages.items()
        for words in leaf.words
        if re.search(r"^(?:[-*] |[2-9]\. |\|.*\|\s*$)", words.partition("\n")[2], re.MULTILINE)
        or words.lstrip().startswith(("| ", "```", "!!!"))
    }
    assert raw == set(), "lists and tables need an empty line before, and 4 spaces within"
    escaped = [code for leaf in pages.values() for code in leaf.codes if "\\|" in code]
    assert escaped == [], "in a table, write a bar within code as <code>a &#124; b</code>"


# -- in a browser ---------------------------------------------------------------------------------


@pytest.mark.parametrize("width", ["wide", "narrow"])
def test_a_page_of_each_kind_fits_the_screen_and_needs_nobody_else(
    chrome: Browser, home: str, width: str
) -> None:
    viewport = WIDE if width == "wide" else NARROW
    with reading(chrome, home, viewport=viewport, color_scheme="light") as reader:
        for name, path in SHOWN.items():
            reader.go(path)
            assert reader.too_wide() == [], path
            reader.picture(f"{name}-{width}")
        assert reader.elsewhere == []
        assert reader.said == []


def test_no_page_at_all_is_wider_than_a_narrow_screen(
    chrome: Browser, home: str, pages: dict[Path, Leaf], site: Built
) -> None:
    # Without scripts, which change no width: a page is there in no time.
    with reading(chrome, home, viewport=NARROW, java_script_enabled=False) as reader:
        wide = {}
        for path in pages:
            name = str(path.relative_to(site.folder.resolve()))
            reader.go(name)
            wide[name] = reader.too_wide()
        assert {name: what for name, what in wide.items() if what} == {}
        assert reader.elsewhere == []
        assert reader.said == []


@pytest.mark.parametrize("place", ["a server", "the disk"])
def test_search_finds_without_a_network(
    chrome: Browser, home: str, site: Built, place: str
) -> None:
    start = home if place == "a server" else site.folder.as_uri()
    with reading(chrome, start, viewport=WIDE) as reader:
        reader.go("index.html")
        for words, leads in (
            ("widest_first", "proofs/widest_first"),
            ("epsilon", "choose-epsilon"),
        ):
            reader.finds(words, leads)
        assert reader.elsewhere == []
        assert reader.said == []


def test_a_found_page_opens_from_the_disk(chrome: Browser, site: Built) -> None:
    with reading(chrome, site.folder.as_uri(), viewport=WIDE) as reader:
        reader.go("index.html")
        reader.page.goto(reader.finds("epsilon", "choose-epsilon"))
        expect(reader.page.locator("article h1")).to_be_visible()
        assert reader.said == []


def test_the_reader_switches_between_light_and_dark_and_is_remembered(
    chrome: Browser, home: str
) -> None:
    with reading(chrome, home, viewport=WIDE, color_scheme="light") as reader:
        reader.go("index.html")
        reader.has_scheme("default")
        light = reader.page.locator("article img[src*='flow-light']")
        dark = reader.page.locator("article img[src*='flow-dark']")
        expect(light).to_be_visible()
        expect(dark).to_be_hidden()
        reader.page.get_by_title("Switch to dark mode").click()
        reader.has_scheme("slate")
        expect(dark).to_be_visible()
        expect(light).to_be_hidden()
        reader.picture("home-dark")
        reader.go("reference/errors.html")
        reader.has_scheme("slate")
        reader.page.get_by_title("Switch to light mode").click()
        reader.has_scheme("default")
        assert reader.said == []


def test_a_dark_system_gets_a_dark_page(chrome: Browser, home: str) -> None:
    with reading(chrome, home, viewport=NARROW, color_scheme="dark") as reader:
        reader.go("index.html")
        reader.has_scheme("slate")
        reader.picture("home-dark-narrow")


def test_a_script_from_elsewhere_would_be_seen(chrome: Browser, home: str) -> None:
    with reading(chrome, home) as reader:
        reader.go("index.html")
        reader.page.evaluate("fetch('https://elsewhere.example/x').catch(() => 0)")
        assert reader.elsewhere == ["https://elsewhere.example/x"]
