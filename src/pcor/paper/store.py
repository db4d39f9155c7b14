"""Keep what was measured: a line of JSON for each finished unit, and summaries as JSON and CSV.

Private: everything stored. A line says what it belongs to (kind, table and its fingerprint,
detector, repetition, seed, version of the library), so a folder can hold quick runs and full ones,
and a rerun takes from it what still fits. A line that a crash cut short is passed over.
"""

from __future__ import annotations

import csv
import io
import json
import platform
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from pcor.errors import SourceError, WriteError
from pcor.paper.tables import fingerprint
from pcor.paper.units import Unit
from pcor.support.files import write_text
from pcor.support.threads import cores

UNITS = "units.jsonl"
FORMAT = "pcor-experiment/1"
NOT_PRIVATE = "NOT PRIVATE: computed from the rows, with seeded decisions; nobody paid for it."

_VERSION = version("pcor")  # reading it takes a millisecond, and every unit wants it

UnitKey = tuple[str, str, str, str, int, int, str]


class Store:
    """The finished units of a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._path = folder / UNITS
        self._parts: dict[UnitKey, dict[str, Any]] = {}
        try:
            folder.mkdir(parents=True, exist_ok=True)
            text = self._path.read_text("utf-8") if self._path.exists() else ""
        except OSError:
            raise WriteError(f"--out {str(folder)!r}: cannot read or write there") from None
        lines = text.splitlines()
        for line in lines:
            self._read(line)
        self._cut_short = bool(lines) and not text.endswith("\n")

    def missing(self, unit: Unit) -> tuple[str, ...]:
        """Return the parts of a unit that are not there yet."""
        return tuple(part for part in unit.parts if part not in self._parts.get(_key(unit), {}))

    def keep(self, unit: Unit, measured: dict[str, Any]) -> None:
        """Store the parts of a unit, on disk before anything else is done."""
        key = _key(unit)
        names = ("kind", "table", "fingerprint", "detector", "number", "seed", "version")
        line = json.dumps(dict(zip(names, key, strict=True)) | {"parts": measured})
        line = f"\n{line}" if self._cut_short else line
        try:
            with self._path.open("a", encoding="utf-8") as file:
                file.write(line + "\n")
        except OSError:
            raise WriteError(f"cannot write {str(self._path)!r}") from None
        self._cut_short = False
        self._parts.setdefault(key, {}).update(measured)

    def found(self, unit: Unit) -> dict[str, Any]:
        """Return what was measured for a unit, by part."""
        there = self._parts.get(_key(unit), {})
        return {part: there[part] for part in unit.parts if part in there}

    def _read(self, line: str) -> None:
        try:
            entry = json.loads(line)
            parts = entry.pop("parts")
            self._parts.setdefault(tuple(entry.values()), {}).update(parts)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return  # cut short by a crash: measured again


def _key(unit: Unit) -> UnitKey:
    return (
        unit.kind,
        unit.table,
        fingerprint(unit.table)[:16],
        unit.detector,
        unit.number,
        unit.seed,
        _VERSION,
    )


def about(tables: Sequence[str], **settings: object) -> dict[str, Any]:
    """Return all that is needed to run an experiment again; no names or paths of the machine."""
    return {
        "settings": settings,
        "tables": {name: fingerprint(name) for name in tables},
        "versions": {
            "python": platform.python_version(),
            **{name: version(name) for name in ("pcor", "numpy", "numba", "scipy", "pyarrow")},
        },
        "machine": f"{platform.system()} on {platform.machine()}, {cores()} cores",
    }


def write_summary(folder: Path, name: str, content: dict[str, Any]) -> None:
    """Write the summary of an experiment as NAME.json, and its rows as NAME.csv."""
    whole = {"format": FORMAT, "private": False, "note": NOT_PRIVATE} | content
    rows = [
        {key: value for key, value in row.items() if not isinstance(value, list | dict)}
        for row in content["rows"]
    ]
    write_text(folder / f"{name}.json", _json(whole) + "\n")
    text = io.StringIO()
    columns = list(dict.fromkeys(key for row in rows for key in row))
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    write_text(folder / f"{name}.csv", text.getvalue())


def read_summary(path: Path) -> dict[str, Any]:
    """Return a summary that ``write_summary`` wrote."""
    try:
        content = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError, RecursionError):
        content = None
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise SourceError(
            f"{str(path)!r} is not a summary of an experiment; run 'pcor experiment {path.stem}'"
        )
    return content


def read_summaries(folder: Path) -> list[dict[str, Any]]:
    """Return all summaries of a folder, in the order of the paper."""
    order = ("sampling", "overlap", "detectors", "epsilon", "samples", "coe_match", "ratio")
    names = [*order, "locality"]
    found = [read_summary(folder / f"{n}.json") for n in names if (folder / f"{n}.json").is_file()]
    if not found:
        raise SourceError(
            f"--out {str(folder)!r} has no results; run 'pcor experiment all --out' there first"
        )
    return found


def _json(content: dict[str, Any]) -> str:
    """Write JSON with one row of results to a line: readable, and small."""
    rows = ",\n".join("  " + json.dumps(row, ensure_ascii=False) for row in content["rows"])
    rest = {key: value for key, value in content.items() if key != "rows"}
    opened = json.dumps(rest, indent=1, ensure_ascii=False).removesuffix("\n}")
    return f'{opened},\n "rows": [\n{rows}\n ]\n}}'
