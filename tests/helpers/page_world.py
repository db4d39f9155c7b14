"""A service on a real port and a real browser, for tests of the page."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import uvicorn
from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Page,
    Playwright,
    ViewportSize,
    expect,
    sync_playwright,
)

from pcor.service import create_app
from pcor.service.core.service import Service
from tests.helpers.service_world import ANALYST, DATASET, prepared, settings_for
from tests.helpers.waiting import DEADLINE, until

# Where pictures of the pages are put, for people to look at.
PICTURES = "PCOR_PICTURES"

NARROW: ViewportSize = {"width": 360, "height": 740}

# In milliseconds, as browsers count.
PATIENCE = DEADLINE * 1000
expect.set_options(timeout=PATIENCE)


@dataclass
class Site:
    """A service that is reached as people reach it.

    Attributes:
        url: where.
        service: the parts behind it.
        keys: role or name -> key.
    """

    url: str
    service: Service
    keys: dict[str, str]


@contextmanager
def site(folder: Path, **changes: Any) -> Iterator[Site]:
    """Serve the small table on a free port, from a thread of this process."""
    service, keys = prepared(settings_for(str(folder / "books.db"), folder, **changes))
    config = uvicorn.Config(create_app(service), port=0, log_level="critical", access_log=False)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    try:
        until(lambda: server.started)
        port = server.servers[0].sockets[0].getsockname()[1]
        yield Site(f"http://127.0.0.1:{port}", service, keys)
    finally:
        server.should_exit = True
        thread.join(DEADLINE)


def chromium() -> str:
    """Return the system's Chromium, or skip."""
    found = shutil.which("chromium") or shutil.which("chromium-browser")
    if found is None:
        pytest.skip("there is no chromium on this machine; install one to test the page")
    return found


@contextmanager
def browser(*arguments: str) -> Iterator[Browser]:
    """Start the system's Chromium without a window."""
    path = chromium()
    # Its sandbox cannot be had by root, who runs tests in containers.
    free = ["--no-sandbox"] if os.geteuid() == 0 else []
    play: Playwright
    with sync_playwright() as play:
        started = play.chromium.launch(
            executable_path=path, args=[*arguments, *free], timeout=PATIENCE
        )
        yield started
        started.close()


@dataclass
class Visit:
    """Somebody with a browser.

    Attributes:
        page: what they see.
        site: where they are.
        asked: every address that the browser asked for.
        said: every error that the browser wrote down.
    """

    page: Page
    site: Site
    asked: list[str] = field(default_factory=list)
    said: list[str] = field(default_factory=list)

    def go(self, path: str) -> None:
        """Open a page."""
        self.page.goto(self.site.url + path)

    def until(self, what: Callable[[], object]) -> None:
        """Wait until something is so, while the browser's events come in."""
        until(what, pause=lambda: self.page.wait_for_timeout(20))

    def sign_in(self, who: str = ANALYST) -> None:
        """Sign in with somebody's key."""
        self.go("/sign-in")
        self.page.get_by_label("Your key").fill(self.site.keys[who])
        self.page.get_by_role("button", name="Sign in").click()
        self.page.get_by_role("button", name="Sign out").wait_for()

    def ask(self, record: int, preset: str = "Medium") -> None:
        """Ask about a record, by the mouse and without relying on a script."""
        self.go(f"/ask?dataset={DATASET}")
        self.page.get_by_label("Which record?").select_option(str(record))
        self.page.get_by_label(preset, exact=False).check()
        self.page.get_by_role("button", name="Show the plan").click()
        self.page.get_by_role("button", name="Confirm and spend").click()

    def picture(self, name: str) -> None:
        """Take a picture, if somebody wants them."""
        folder = os.environ.get(PICTURES)
        if folder:
            Path(folder).mkdir(parents=True, exist_ok=True)
            self.page.screenshot(path=str(Path(folder) / f"{name}.png"), full_page=True)

    def hosts(self) -> set[str]:
        """Return the hosts that the browser asked."""
        return {urlsplit(address).netloc for address in self.asked}


def _is_error(message: ConsoleMessage) -> bool:
    """Whether something went wrong; that an answer is no longer waited for is nothing wrong."""
    gone = message.text.startswith(("htmx:afterRequest", "htmx:sendError", "htmx:sendAbort"))
    return message.type == "error" and not gone


@contextmanager
def visit(started: Browser, where: Site, **options: Any) -> Iterator[Visit]:
    """Open a browser of one's own: no cookies yet."""
    context: BrowserContext = started.new_context(**options)
    context.set_default_timeout(PATIENCE)
    page = context.new_page()
    made = Visit(page, where)
    page.on("request", lambda request: made.asked.append(request.url))
    page.on("pageerror", lambda error: made.said.append(str(error)))
    page.on("console", lambda m: made.said.append(m.text) if _is_error(m) else None)
    yield made
    context.close()
