"""Guess how a CSV file is written, and say so where it is not as declared.

Private: the file. What is said names the file and the way it is written, never a word in it; which
lines are ragged is for the owner alone.
"""

from __future__ import annotations

import codecs
import csv
import io
from itertools import islice
from pathlib import Path

from pcor.public.source_format import SEPARATORS, SourceFormat
from pcor.rows.files import unpacked
from pcor.rows.snapshot import Snapshot

# How much of a file is read to guess its encoding, and its separator.
_MOST = 1 << 26
_BLOCK = 1 << 20
_HEAD = 1 << 16
_ROWS = 100

_SHOWN = 5  # ragged lines that an owner is shown


def guess_encoding(path: Path | Snapshot) -> str:
    """Return the encoding of a file by its bytes; what is not Unicode is taken for Windows-1252."""
    with unpacked(path) as stream:
        begin = stream.read(2)
        if begin in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
            return "utf-16"
        if b"\0" in begin:  # half of an ASCII letter
            return "utf-16-be" if begin.startswith(b"\0") else "utf-16-le"
        decoder = codecs.getincrementaldecoder("utf-8")()
        read = 0
        try:
            block = begin
            while block and read < _MOST:
                decoder.decode(block)
                read += len(block)
                block = stream.read(_BLOCK)
        except UnicodeDecodeError:
            return "windows-1252"
    return "utf-8"


def guess_separator(path: Path | Snapshot, encoding: str) -> str:
    """Return the separator under which the first rows have as many cells as the header.

    Of several, the one that makes most columns; where none does, the most frequent in the header.
    """
    with unpacked(path) as stream:
        content = stream.read(_HEAD)
    text = codecs.getincrementaldecoder(encoding)("replace").decode(content).lstrip("\ufeff")
    if len(content) == _HEAD:
        text = text[: text.rfind("\n")]  # the last line is cut off
    header = text.partition("\n")[0]

    def columns(mark: str) -> tuple[int, int]:
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=mark)
        try:
            counts = [len(row) for row in islice(reader, _ROWS) if row]
        except csv.Error:  # such as a quote that is never closed
            counts = []
        even = len({*counts}) == 1 and counts[0] > 1
        return counts[0] if even else 0, header.count(mark)

    return max(SEPARATORS.values(), key=columns)


def hint(path: Path | Snapshot, written: SourceFormat) -> str:
    """Return what to declare for a file that is written otherwise; nothing if it is as declared."""
    encoding = guess_encoding(path)
    if encoding.startswith("utf-16") != written.encoding.startswith("utf-16") or (
        encoding == "windows-1252" and written.encoding == "utf-8"
    ):
        return f"it is not text in {written.encoding}; {_declare('encoding', encoding)}"
    mark = guess_separator(path, written.encoding)
    if mark == written.separator:
        return ""
    name = next(name for name, one in SEPARATORS.items() if one == mark)
    return f"it seems to be separated by {name}s; {_declare('separator', name)}"


def _declare(key: str, value: str) -> str:
    return f'declare {key} = "{value}" under [source] of the schema, or give --{key} {value}'


def ragged_lines(path: Path | Snapshot, written: SourceFormat) -> str:
    """Return the first lines with another number of cells than the header; nothing if none has."""
    found: list[str] = []
    encoding = "utf-8-sig" if written.encoding == "utf-8" else written.encoding
    try:
        with (
            unpacked(path) as content,
            io.TextIOWrapper(content, encoding, "replace", newline="") as stream,
        ):
            reader = csv.reader(stream, delimiter=written.separator)
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
