"""Forms as a browser without scripts reads and sends them, and a messy file to fill them with."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from tests.helpers.dialects import OUTLIER, people, written

# The messy file: semicolons, Windows-1252, decimal commas, euros, one job in several spellings.
MESSY, METRIC, ID = "pay.csv", "pay", "key"
RECORD = 100 + OUTLIER


def write_messy(folder: Path) -> None:
    """Write the messy file into a folder."""
    columns: dict[str, list[Any]] = people()
    ways = {1: str.upper, 2: "{} ".format}
    columns["job"] = [ways.get(row % 9, str)(job) for row, job in enumerate(columns["job"])]
    columns["pay"][3] = "n/a"
    written("euros", folder, columns)


class _Fields(HTMLParser):
    """Collects the fields of the forms on a page, but not the one that signs out."""

    def __init__(self) -> None:
        super().__init__()
        self.found: dict[str, str] = {}
        self._area = self._select = ""
        self._own = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        name, value = given.get("name", ""), given.get("value", "")
        if tag == "form":
            self._own = given.get("action") != "/sign-out"
        elif not self._own:
            return
        elif tag == "input" and (given["type"] != "checkbox" or "checked" in given):
            self.found[name] = value
        elif tag == "select":
            self._select = name
        elif tag == "option" and self._select:
            if "selected" in given or self._select not in self.found:
                self.found[self._select] = value
        elif tag == "textarea":
            self._area, self.found[name] = name, ""

    def handle_data(self, data: str) -> None:
        if self._area:
            self.found[self._area] += data

    def handle_endtag(self, tag: str) -> None:
        if tag == "textarea":  # a line break that directly follows the tag is not a part of it
            self.found[self._area] = self.found[self._area].removeprefix("\n")
            self._area = ""
        elif tag == "select":
            self._select = ""


def fields_in(page: str) -> dict[str, str]:
    """Return what sending the form of a page again would send, without its token."""
    reader = _Fields()
    reader.feed(page)
    return {name: text for name, text in reader.found.items() if name != "token"}


def all_reviewed(fields: dict[str, str]) -> dict[str, str]:
    """Return the fields of a draft with every part ticked."""
    marked = [name.removesuffix(".marked") for name in fields if name.endswith(".marked")]
    return fields | {f"{part}.reviewed": "yes" for part in marked}
