"""The list of pages, and where they are kept."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

from tools.reference import certificate, cli, errors, http, ledger, python, schema_file

FOLDER = Path(__file__).parents[2] / "docs" / "reference"

PAGES: dict[str, Callable[[], str]] = {
    "python.md": python.page,
    "cli.md": cli.page,
    "http.md": http.page,
    "schema-file.md": schema_file.page,
    "ledger.md": ledger.page,
    "certificate.md": certificate.page,
    "errors.md": errors.page,
}


@cache
def text(name: str) -> str:
    """Return a page as the code has it now."""
    return PAGES[name]()


def write() -> list[str]:
    """Write every page; return the names of those that changed."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    changed = stale()
    for name in changed:
        (FOLDER / name).write_text(text(name), encoding="utf-8")
    return changed


def stale() -> list[str]:
    """Return the names of the pages that are missing or do not say what the code says."""
    return [name for name in PAGES if _kept(name) != text(name)]


def _kept(name: str) -> str | None:
    path = FOLDER / name
    return path.read_text(encoding="utf-8") if path.exists() else None
