"""Say why a file that is called CSV is not one that can be read: separator, encoding, cells.

Private: the file. What is said names the file and the way it is written, never a word in it; which
lines are ragged is for the owner alone.
"""

from __future__ import annotations

import codecs
import csv
from pathlib import Path

from pcor.rows.snapshot import Snapshot

SEPARATORS = {";": "semicolons", "\t": "tabs", "|": "bars"}

# How much of a file is read to guess its encoding.
_MOST = 1 << 26
_BLOCK = 1 << 20
_HEADER = 1 << 16

_SHOWN = 5  # ragged lines that an owner is shown


def encoding_hint(path: Path | Snapshot) -> str:
    """Return how to convert a file that is not UTF-8; nothing for one that is."""
    with path.open("rb") as stream:
        begin = stream.read(2)
        if begin in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
            return _convert("UTF-16", path)
        stream.seek(0)
        decoder = codecs.getincrementaldecoder("utf-8")()
        try:
            while stream.tell() < _MOST and (block := stream.read(_BLOCK)):
                decoder.decode(block)
        except UnicodeDecodeError:
            return _convert("LATIN1", path)
    return ""


def _convert(encoding: str, path: Path | Snapshot) -> str:
    name = {"LATIN1": "perhaps Latin-1 or Windows-1252"}.get(encoding, encoding)
    return (
        f"it is not UTF-8 text ({name}); save it as UTF-8, or convert it: "
        f"iconv -f {encoding} -t UTF-8 {path.name} > utf8.csv"
    )


def separator_hint(path: Path | Snapshot) -> str:
    """Return what to do with a file whose first line has another separator; nothing for commas."""
    with path.open("rb") as stream:
        header = stream.readline(_HEADER).decode("utf-8", "replace")
    mark = max(SEPARATORS, key=header.count)
    if header.count(mark) <= header.count(","):
        return ""
    return (
        f"it seems to be separated by {SEPARATORS[mark]}; save it separated by commas, with a "
        "point in decimal numbers, or in Python read it with your own reader and give the frame"
    )


def ragged_lines(path: Path | Snapshot) -> str:
    """Return the first lines with another number of cells than the header; nothing if none has."""
    found: list[str] = []
    try:
        with path.open(encoding="utf-8-sig", errors="replace", newline="") as stream:
            reader = csv.reader(stream)
            names = len(next(reader, ()))
            first = reader.line_num + 1  # of the next row: a quoted cell may hold line breaks
            for row in reader:
                if row and len(row) != names:
                    found.append(f"line {first} has {len(row)}")
                if len(found) == _SHOWN:
                    break
                first = reader.line_num + 1
    except csv.Error:  # such as a quote that is never closed
        pass
    return f"the header has {names} cells, {', '.join(found)}" if found else ""
