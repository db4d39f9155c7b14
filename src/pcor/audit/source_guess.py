"""Guess how a table is written: its encoding, its separator, its numbers. For drafts of a schema.

Private: the table. A guess is deterministic, and taken from the file like the rest of a draft, so
it is marked for review: "1,234" is a thousand and more in one country, and a bit above one in
another.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from pcor.audit.known_words import means_no_value
from pcor.errors import MetricError, SchemaError
from pcor.public.date_format import day_text
from pcor.public.dates import DAY_TEXT
from pcor.public.schema import Metric
from pcor.public.source_format import THOUSANDS, SourceFormat
from pcor.public.spellings import BLANKS
from pcor.rows.columns import guess_layout as layout_of_csv
from pcor.rows.encoding import is_text, numbers
from pcor.rows.files import file_kind

# What in a text may be a currency: whatever can be no part of a number.
_WORDS = re.compile(rf"[^-+0-9{BLANKS}{''.join(THOUSANDS.values())}]+")

# How days are often written, those that more texts would fit after those that fewer would.
_DATES = (
    *("DD.MM.YYYY", "D.M.YYYY", "DD/MM/YYYY", "D/M/YYYY", "MM/DD/YYYY", "M/D/YYYY"),
    *("DD-MM-YYYY", "D-M-YYYY", "MM-DD-YYYY", "M-D-YYYY", "YYYY/MM/DD", "YYYY/M/D", "YYYY.MM.DD"),
)


def guess_layout(source: Any, given: Mapping[str, str]) -> SourceFormat:
    """Return how a table seems to be laid out, which is enough to read its columns.

    What is given is not guessed.
    """
    guessed: dict[str, str] = {}
    if isinstance(source, str | Path) and file_kind(Path(source)) == "csv":
        guessed = layout_of_csv(Path(source), given.get("encoding"))
    return SourceFormat(**{**guessed, **given})


def guess_numbers(
    column: Any, metric: str, layout: SourceFormat, given: Mapping[str, str]
) -> SourceFormat:
    """Return the layout with how numbers seem to be written: by what cells have in common.

    All of them; or else most of them, so that those that are no numbers can be named.

    Args:
        column: the metric's, by which numbers are judged.
        metric: its name.
        layout: how the table is laid out.
        given: what is not guessed.
    """
    try:
        numbers(column, Metric(metric), layout)
        return layout
    except MetricError:
        cells = Counter(cell.strip(BLANKS) for cell in column.to_pylist() if isinstance(cell, str))
        texts = {cell: cells[cell] for cell in sorted(cells) if cell and not means_no_value(cell)}
        found = _guess_numbers(list(texts), layout.separator)
        found = found or _guess_most_numbers(texts, layout.separator)
        return SourceFormat(**{**layout.to_dict(), **found, **given})


def guess_dates(columns: Iterable[Any], layout: SourceFormat) -> SourceFormat:
    """Return the layout with how days seem to be written: in all texts of the first such column.

    Where days and months could be swapped, the month comes first only where decimals have a point
    and cells are separated by commas, as in the United States.
    """
    if layout.dates:
        return layout
    months_first = (layout.decimal, layout.separator) == (".", ",")
    formats = sorted(_DATES, key=lambda one: one.startswith("M") != months_first)
    for column in columns:
        if not is_text(column.type):
            continue
        texts = {cell.strip(BLANKS) for cell in column.unique().to_pylist() if cell is not None}
        texts = {text for text in texts if text and not means_no_value(text)}
        for written in formats if texts else ():
            if all(re.fullmatch(DAY_TEXT, day_text(text, written)) for text in texts):
                return replace(layout, dates=written)
    return layout


def _guess_numbers(texts: Sequence[str], separator: str) -> dict[str, str]:
    """Return the first format in which all of the texts are numbers; nothing if there is none.

    >>> _guess_numbers(["$26,557.16", "$9.50"], ",")
    {'decimal': '.', 'thousands': ',', 'currency': '$'}
    """
    words = {word for text in texts for word in _WORDS.findall(text)} - {"e", "E"}
    if len(words) > 1:
        return {}
    for declared, written in _formats(separator, "".join(words)):
        if all(written.plain(text) is not None for text in texts):
            return declared
    return {}


def _guess_most_numbers(texts: Mapping[str, int], separator: str) -> dict[str, str]:
    """Return the format in which the most rows are numbers, if more than half of them are.

    >>> _guess_most_numbers({"4.235,28": 60, "12,50": 40, "offen": 2}, ";")
    {'decimal': ',', 'thousands': '.', 'currency': ''}
    """
    rows, words = sum(texts.values()), Counter[str]()
    for text, count in texts.items():
        if any(map(str.isdecimal, text)):  # a word beside digits may be a currency
            words.update(dict.fromkeys(set(_WORDS.findall(text)) - {"e", "E"}, count))
    ((word, often),) = words.most_common(1) or [("", 0)]
    most, found = rows / 2, dict[str, str]()
    for declared, written in _formats(separator, word if 2 * often > rows else ""):
        read = sum(count for text, count in texts.items() if written.plain(text) is not None)
        if read > most:
            most, found = read, declared
    return found


def _formats(separator: str, currency: str) -> Iterator[tuple[dict[str, str], SourceFormat]]:
    """Yield the formats of numbers, the likeliest first."""
    # Who separates cells by commas writes decimals with a point; elsewhere "1,234" has decimals.
    decimals = (".", ",") if separator == "," else (",", ".")
    marks = [(".", ""), *((one, mark) for one in decimals for mark in ("", *THOUSANDS))]
    if separator == ",":
        marks.sort(key=lambda pair: pair == (",", ""))  # after "1,234" as a thousand and more
    for decimal, thousands in marks:
        declared = {"decimal": decimal, "thousands": thousands, "currency": currency}
        with suppress(SchemaError):  # one mark for both, or a word that is no currency
            yield declared, SourceFormat(**declared)
