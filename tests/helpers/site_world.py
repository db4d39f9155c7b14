"""The documentation site, built as `make docs` builds it, and a browser to look at it."""

from __future__ import annotations

import functools
import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from playwright.sync_api import Browser, FloatRect, Page, Request, expect

from tests.helpers.page_world import PATIENCE, PICTURES
from tests.helpers.waiting import DEADLINE

ROOT = Path(__file__).parents[2]
COLOURS = re.compile(r"\x1b\[[0-9;]*m")

# How much of a page is on its picture, in pixels.
TALLEST = 2600

# The elements that make a browser fetch something, and the attribute that says what.
FETCHED = {
    "script": "src",
    "img": "src",
    "source": "src",
    "iframe": "src",
    "embed": "src",
    "object": "data",
    "video": "src",
    "audio": "src",
}
# Links that are fetched with the page; others only tell a program something.
FETCHED_LINKS = {"stylesheet", "icon", "preload", "modulepreload", "preconnect", "dns-prefetch"}


@dataclass(frozen=True)
class Built:
    """A site in a folder.

    Attributes:
        folder: where its pages are.
        code: how the build ended.
        said: all that it said, without colours.
    """

    folder: Path
    code: int
    said: str


def build(folder: Path) -> Built:
    """Build the site in a copy of what it is made from."""
    shutil.copytree(ROOT / "docs", folder / "docs")
    shutil.copytree(ROOT / "tools" / "site", folder / "tools" / "site")
    shutil.copy(ROOT / "mkdocs.yml", folder)
    done = subprocess.run(
        [sys.executable, "-m", "zensical", "build", "--clean", "--strict"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    said = COLOURS.sub("", done.stdout + done.stderr)
    return Built(folder / "build" / "site", done.returncode, said)


class Leaf(HTMLParser):
    """What matters of one page for links: its anchors, where it leads, what it fetches.

    Attributes:
        ids: its anchors.
        links: where it leads.
        fetched: what a browser fetches for it.
        words: its text outside code, by paragraph.
        codes: its pieces of inline code.
    """

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.fetched: list[str] = []
        self.words: list[str] = []
        self.codes: list[str] = []
        self._open: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.ids |= {given[name] for name in ("id", "name") if given.get(name)}
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        if FETCHED.get(tag) in given:
            self.fetched.append(given[FETCHED[tag]])
        if tag == "link" and set(given.get("rel", "").split()) & FETCHED_LINKS:
            self.fetched.append(given["href"])
        if tag == "p":
            self.words.append("")
        if tag == "code":
            self.codes.append("")
        if tag in ("p", "code", "pre"):
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag in self._open:
            while self._open.pop() != tag:
                pass

    def handle_data(self, data: str) -> None:
        if self._open[-1:] == ["p"]:
            self.words[-1] += data
        if self._open[-1:] == ["code"] and "pre" not in self._open:
            self.codes[-1] += data


def leaves(folder: Path) -> dict[Path, Leaf]:
    """Read every page of a site."""
    found = sorted(folder.rglob("*.html"))
    return {path.resolve(): Leaf(path.read_text(encoding="utf-8")) for path in found}


def is_elsewhere(address: str) -> bool:
    """Whether an address is on another host."""
    parts = urlsplit(address)
    return bool(parts.netloc) or parts.scheme in ("http", "https", "ftp")


def broken(pages: dict[Path, Leaf], folder: Path) -> list[str]:
    """Return every link, of those within the site, that leads nowhere."""
    wrong = []
    for page, leaf in pages.items():
        for link in leaf.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            path = unquote(parts.path)
            start = folder if path.startswith("/") else page.parent
            target = (start / path.lstrip("/")).resolve() if path else page
            if target.is_dir() and (target / "index.html").exists():
                target = target / "index.html"
            known = pages[target].ids if target in pages else set()
            # A folder of numbers is for looking into, not a page.
            there = target.exists() and target.is_relative_to(folder.resolve())
            if not there or (parts.fragment and unquote(parts.fragment) not in known):
                wrong.append(f"{page.relative_to(folder.resolve())}: {link}")
    return wrong


class _Quiet(SimpleHTTPRequestHandler):
    """Serves files and says nothing about it."""

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """Serve a folder on a free port of this machine."""
    handler = functools.partial(_Quiet, directory=str(folder))
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join(DEADLINE)


@dataclass
class Reader:
    """Somebody who reads the site.

    Attributes:
        page: what they see.
        home: where the site is.
        elsewhere: every address that the browser asked of anybody else.
        said: every error that the browser wrote down.
    """

    page: Page
    home: str
    elsewhere: list[str] = field(default_factory=list)
    said: list[str] = field(default_factory=list)

    def go(self, path: str) -> None:
        """Open a page."""
        self.page.goto(f"{self.home}/{path}")

    def finds(self, words: str, leads: str) -> str:
        """Search; return the first result, once there is one that leads somewhere."""
        self.page.get_by_role("button", name="Search").first.click()
        box = self.page.get_by_placeholder("Search")
        box.fill(words)
        results = self.page.locator(f"ol a[href*='h={words}']")
        self.page.locator(f"ol a[href*='{leads}'][href*='h={words}']").first.wait_for()
        found = str(results.first.evaluate("one => one.href"))
        self.page.keyboard.press("Escape")
        return found

    def has_scheme(self, name: str) -> None:
        """Expect that the page has these colours, or soon will."""
        expect(self.page.locator("body")).to_have_attribute("data-md-color-scheme", name)

    def too_wide(self) -> list[str]:
        """Return what sticks out to the right, if the page can be moved sideways."""
        return [str(one) for one in self.page.evaluate(_STICKING_OUT)]

    def picture(self, name: str) -> None:
        """Take a picture, if somebody wants them."""
        folder = os.environ.get(PICTURES)
        if folder:
            Path(folder).mkdir(parents=True, exist_ok=True)
            wide, high = self.page.evaluate("[innerWidth, document.documentElement.scrollHeight]")
            shown = FloatRect(x=0, y=0, width=wide, height=min(high, TALLEST))
            path = Path(folder) / f"site-{name}.png"
            self.page.screenshot(path=str(path), full_page=True, clip=shown)


# For the browser: no network but this machine.
ALONE = "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"

_STICKING_OUT = """() => {
  const width = document.documentElement.clientWidth
  if (document.documentElement.scrollWidth <= width) return []
  const out = [...document.querySelectorAll("article *")]
    .filter(one => one.getBoundingClientRect().right > width + 1 && !one.closest("pre, table"))
  return [document.documentElement.scrollWidth + " px", ...out.slice(0, 5).map(one =>
    one.tagName + ": " + one.textContent.slice(0, 60))]
}"""


@contextmanager
def reading(started: Browser, home: str, **options: Any) -> Iterator[Reader]:
    """Open a browser of one's own; whatever it asks of anybody else is written down."""
    context = started.new_context(reduced_motion="reduce", **options)
    context.set_default_timeout(PATIENCE)
    reader = Reader(context.new_page(), home)

    def note(request: Request) -> None:
        if not request.url.startswith((home, "data:", "blob:")):
            reader.elsewhere.append(request.url)

    reader.page.on("request", note)
    reader.page.on("pageerror", lambda error: reader.said.append(str(error)))
    reader.page.on("console", lambda m: reader.said.append(m.text) if m.type == "error" else None)
    yield reader
    context.close()
