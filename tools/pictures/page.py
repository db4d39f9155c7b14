"""The service's page at the moment of an answer, as Chromium shows it, light and dark.

Nothing private: the service is the one of ``pcor serve --demo``, on synthetic salaries, and its
keys end with it. The context is drawn anew each time, so these pictures are not the same twice.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import uvicorn
from playwright.sync_api import Browser, FloatRect, sync_playwright

from pcor.demo import PLANTED
from pcor.service import create_app
from pcor.service.core.service import Service
from pcor.service.core.settings import ServiceSettings
from pcor.service.run import DEMO, prepare_demo
from tools.pictures.palette import PALETTES

WIDTH = 1100
HEIGHT = 760
LARGEST = 200_000  # bytes

RECORD = PLANTED[0].record
NO_CHROMIUM = "page: skipped: there is no chromium on this machine; install one to take the picture"


def chromium() -> str | None:
    """Return where the system's Chromium is, if it has one."""
    return shutil.which("chromium") or shutil.which("chromium-browser")


def page(path: str) -> dict[str, bytes]:
    """Ask a question on the page with the browser at ``path``; return mode -> PNG."""
    with _service() as (url, key), sync_playwright() as play:
        # Its sandbox cannot be had by root, who runs containers.
        arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
        browser = play.chromium.launch(executable_path=path, args=arguments)
        taken = _pictures(browser, url, key)
        browser.close()
    for mode, picture in taken.items():
        if len(picture) > LARGEST:
            raise RuntimeError(f"the {mode} page has {len(picture):,} bytes: show less of it")
    return taken


@contextmanager
def _service() -> Iterator[tuple[str, str]]:
    """Serve the demo on a free port; yield its address and the analyst's key."""
    with tempfile.TemporaryDirectory(prefix="pcor-page-") as name:
        folder = Path(name)
        (folder / "tables").mkdir()
        settings = ServiceSettings(str(folder / "books.db"), folder / "tables", delay=0.1, tick=0.1)
        key = prepare_demo(settings).analyst
        app = create_app(Service(settings))
        server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="critical"))
        thread = threading.Thread(target=server.run, daemon=True)
        thread.start()
        try:
            while not server.started:
                time.sleep(0.01)
            port = server.servers[0].sockets[0].getsockname()[1]
            yield f"http://127.0.0.1:{port}", key
        finally:
            server.should_exit = True
            thread.join(timeout=20)


def _pictures(browser: Browser, url: str, key: str) -> dict[str, bytes]:
    """Sign in, ask, and look at one answer in both modes."""
    window = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT})
    window.set_default_timeout(120_000)
    window.goto(f"{url}/sign-in")
    window.get_by_label("Your key").fill(key)
    window.get_by_role("button", name="Sign in").click()
    window.get_by_role("button", name="Sign out").wait_for()
    window.goto(f"{url}/ask?dataset={DEMO}&record={RECORD}&preset=medium")
    window.get_by_role("button", name="Confirm and spend").click()
    window.locator("h1.sentence").wait_for()
    group = window.locator("table.grid").bounding_box()
    if group is None:
        raise RuntimeError("the page shows an answer without its group; has release.html changed?")
    # Down to the end of the group, however long its sentence is.
    clip: FloatRect = {"x": 0, "y": 0, "width": WIDTH, "height": group["y"] + group["height"] + 24}
    taken = {}
    for palette in PALETTES:
        window.emulate_media(color_scheme="dark" if palette.mode == "dark" else "light")
        taken[palette.mode] = window.screenshot(animations="disabled", full_page=True, clip=clip)
    return taken
