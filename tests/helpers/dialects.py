"""One table as eight systems export it: separators, encodings, numbers, packed or not."""

from __future__ import annotations

import csv
import gzip
import io
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from pcor.public.source_format import SourceFormat

NARROW, NO_BREAK = "\u202f", "\u00a0"
METRIC, ATTRIBUTES, ID = "pay", ["job", "size", "age"], "key"
OUTLIER = 5


def people(count: int = 200) -> dict[str, list[Any]]:
    """Return a table whose numbers have thousands and decimals."""
    numbers = np.random.default_rng(3)
    pay = numbers.normal(2000, 400, count).round(2)
    pay[[0, OUTLIER]] = [812.25, 1_226_557.16]
    return {
        "key": list(range(100, 100 + count)),
        "job": numbers.choice(["Bäcker", "Café; Bar", 'says "hi"'], count).tolist(),
        "size": numbers.choice([0.5, 1.5, 2.25], count).tolist(),
        "age": numbers.uniform(18, 70, count).round(1).tolist(),
        "pay": pay.tolist(),
    }


# The name of the file, how it is written, and what it writes between thousands and after a number.
DIALECTS: dict[str, tuple[str, SourceFormat, str, str]] = {
    "clean": ("pay.csv", SourceFormat(), "", "{}"),
    "semicolons": ("pay.csv.gz", SourceFormat(";", decimal=","), "", "{}"),
    "tabs": ("pay.zip", SourceFormat("\t", "cp1252", ",", "."), ".", "{}"),
    "bars": ("pay.csv", SourceFormat("|", "utf-16", ".", "'"), "\u2019", "{}"),
    "dollars": ("pay.csv", SourceFormat(thousands=",", currency="$"), ",", "${}"),
    "euros": ("pay.csv", SourceFormat(";", "cp1252", ",", ".", "€"), ".", "{} €"),
    "french": ("pay.csv", SourceFormat(";", "utf-8", ",", " "), NARROW, "{}"),
    "unicode": ("pay.csv.gz", SourceFormat("\t", "utf-16", ".", " ", "EUR"), NO_BREAK, "EUR {}"),
}


def texts(dialect: str, columns: dict[str, list[Any]]) -> dict[str, list[str]]:
    """Return the cells of a table as a dialect writes them; texts stay as they are."""
    _, form, mark, around = DIALECTS[dialect]
    marks = str.maketrans({",": mark, ".": form.decimal})

    def number(cell: float | str, around: str) -> str:
        if isinstance(cell, str):
            return cell
        return around.format((f"{cell:,}" if mark else str(cell)).translate(marks))

    whole = {name: [str(cell) for cell in columns[name]] for name in ("key", "job")}
    sizes = {name: [number(cell, "{}") for cell in columns[name]] for name in ("size", "age")}
    return whole | sizes | {METRIC: [number(cell, around) for cell in columns[METRIC]]}


def written(dialect: str, folder: Path, columns: dict[str, list[Any]] | None = None) -> Path:
    """Write a table in a dialect; return the path of the file."""
    name, form, _, _ = DIALECTS[dialect]
    columns = texts(dialect, people() if columns is None else columns)
    stream = io.StringIO()
    writer = csv.writer(stream, delimiter=form.separator, lineterminator="\r\n")
    writer.writerows([columns, *zip(*columns.values(), strict=True)])
    # French spreadsheets begin with a byte order mark.
    encoding = "utf-8-sig" if dialect == "french" else form.encoding
    content, path = stream.getvalue().encode(encoding), folder / name
    if name.endswith(".zip"):
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("export/pay.csv", content)
    else:
        path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    return path
