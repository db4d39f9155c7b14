"""The pages: written by hand, but for the passages between two comments, which the code writes.

A passage begins with ``<!-- from the code: MODULE.FUNCTION -->``, which names what writes it, of
this package, and ends with ``<!-- end -->``.
"""

from __future__ import annotations

import re
from functools import cache
from importlib import import_module
from pathlib import Path

FOLDER = Path(__file__).parents[2] / "docs" / "reference"
PAGES = tuple(sorted(path.name for path in FOLDER.glob("*.md")))

PASSAGE = re.compile(r"(?<=<!-- from the code: )([\w.]+) -->\n.*?\n(?=<!-- end -->)", re.DOTALL)


@cache
def text(name: str) -> str:
    """Return a page with its passages as the code has them now."""
    return PASSAGE.sub(lambda found: _written(found[1]), _kept(name))


def write() -> list[str]:
    """Write every page; return the names of those that changed."""
    changed = stale()
    for name in changed:
        (FOLDER / name).write_text(text(name), encoding="utf-8")
    return changed


def stale() -> list[str]:
    """Return the names of the pages that do not say what the code says."""
    return [name for name in PAGES if _kept(name) != text(name)]


def _written(passage: str) -> str:
    module, _, function = passage.partition(".")
    write_it = getattr(import_module(f"tools.reference.{module}"), function)
    return f"{passage} -->\n\n{write_it()}\n\n"


def _kept(name: str) -> str:
    return (FOLDER / name).read_text(encoding="utf-8")
