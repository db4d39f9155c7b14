"""Draft one attribute from its column: domain, cleaning, family; and what was noticed on the way.

Private: the column, and what is noticed of it; for the owner's eyes. A draft is deterministic, and
all of it was read off the data, so whoever writes it down marks it for review.
"""

from __future__ import annotations

import contextlib
import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from pcor.audit.known_words import in_order, means_no_value
from pcor.errors import SourceError
from pcor.public.dates import PERIODS, Span
from pcor.public.domain import Value
from pcor.public.source_format import SourceFormat
from pcor.public.spellings import BLANKS, folded
from pcor.rows.encoding import days, is_text, without_words

# Numbers with more distinct values than this are drafted as bins, words with the rarest as "other".
MOST_VALUES = 20
MOST_WORDS = 60

# From so many rows on, a column in which nearly each has a value of its own names rows.
_FEWEST_ROWS = 50
_OWN_VALUE = 0.9

# Dates are drafted as the longest periods of which there are so many; not over more years than
# this, which one date that stands for "never" can make of any column.
_FEWEST_PERIODS = 4
_MOST_YEARS = 100

# Numbers that often mean none.
_MISSING_NUMBERS = (-1, -9, -99, -999, -9999, 999, 9999, 99999, 999999)

_BINS = 6
_EXACT = 1 << 53

_OTHERS = ("other", "others", "all others", "all other values")
_IDS = re.compile(r"(^|[^a-z])(id|no|nr|num|number|key|ref)$", re.IGNORECASE)
_UNKNOWN = "unknown"
_SHOWN = 3


@dataclass(frozen=True)
class ColumnDraft:
    """What a schema could say of an attribute. Private.

    Attributes:
        declared: its table in a schema file.
        noticed: sentences about the column, for the owner.
        too_many: whether it has more words than anybody would speak of.
        cells: how often each value occurs.
    """

    declared: dict[str, Any]
    noticed: list[str]
    too_many: bool = False
    cells: Mapping[Any, int] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """How many values it has."""
        if "date" in self.declared:
            ends = (date.fromisoformat(self.declared["date"][end]) for end in ("from", "to"))
            return len(Span(self.declared["date"]["by"], *ends).labels)
        edges = self.declared.get("edges")
        return len(self.declared["values"]) if edges is None else len(edges) - 1


def draft_column(column: Any, name: str, written: SourceFormat) -> ColumnDraft:
    """Return a domain that every cell of a column is in, with what it takes to clean it.

    Raises:
        SourceError: it holds no values, or not single ones.
    """
    try:
        cells = cell_counts(column)
    except SourceError as error:
        raise SourceError(f"attribute {name!r}: {error}; leave it out") from None
    words = missing_words(cells, written)
    kept = {cell: n for cell, n in cells.items() if _text(cell) and _text(cell) not in words}
    padded = any(_is_padded(cell) for cell in cells)
    if not kept:  # whoever has nothing but such words means something by them
        words, kept, padded = (), cells, False
    if not kept:
        raise SourceError(f"attribute {name!r}: its column has no values at all; leave it out")
    stripped = without_words(column, words, strip=True)
    drafted = _dates(stripped, written) or _numbers(kept, written)
    drafted = drafted or _words(kept, padded=padded)
    declared, noticed = drafted.declared, drafted.noticed
    if words:
        declared["missing_values"] = list(words)
    if without := len(column) - sum(kept.values()):
        shown = f" (or {', '.join(map(repr, words[:_SHOWN]))})" if words else ""
        has = "rows have" if without > 1 else "row has"
        noticed.append(f"{without:,} {has} no value{shown}")
        if 100 * without > len(column) and declared["contexts"] == "one":
            _count_as_unknown(declared)
            noticed[-1] += f", and count as {declared['other']!r}"
        elif "other" not in declared:
            declared["outside"] = "drop"
            noticed[-1] += ', which outside = "drop" leaves out'
    if len(kept) == 1:
        noticed.append("the same value in every row; leave it out, unless others could occur")
    elif names_rows(name, kept, declared):
        noticed.append("a value of its own in nearly every row: it names rows; leave it out")
    return replace(drafted, cells=cells)


def _count_as_unknown(declared: dict[str, Any]) -> None:
    """Keep rows without a value as a value of their own: so many should not be left out."""
    if "other" not in declared:
        known = {folded(value): value for value in declared["values"] if isinstance(value, str)}
        declared["other"] = known.get(_UNKNOWN, _UNKNOWN)
        if _UNKNOWN not in known:
            declared["values"] = [*declared["values"], _UNKNOWN]


def names_rows(name: str, cells: Mapping[Any, int], declared: Mapping[str, Any]) -> bool:
    """Tell whether nearly each row has a value of its own: a word, or a number called an id."""
    rows = sum(cells.values())
    if rows < _FEWEST_ROWS or len(cells) <= _OWN_VALUE * rows or "date" in declared:
        return False
    if "edges" not in declared:
        return all(isinstance(cell, str) for cell in cells)
    # Amounts have bins, however they are written; a name of a row has digits and nothing else.
    return _IDS.search(name) is not None and all(
        cell.is_integer() if isinstance(cell, float) else str(cell).isdigit() for cell in cells
    )


def missing_words(cells: Mapping[Any, int], written: SourceFormat) -> tuple[str, ...]:
    """Return the words in a column that mean no value, as they are written there."""
    texts = {_text(cell) for cell in cells} - {""}
    found = {text for text in texts if means_no_value(text)}
    return tuple(sorted(found | _sentinels(_all_numbers(float, texts - found, written))))


def _sentinels(numbers: Mapping[str, float]) -> set[str]:
    """Return those that stand for "no number": alone below zero, or far above all others."""
    marks = {text for text, number in numbers.items() if number in _MISSING_NUMBERS}
    others = [number for text, number in numbers.items() if text not in marks]
    if len(others) < _SHOWN or min(others) < 0:
        return set()
    return {text for text in marks if numbers[text] < 0 or numbers[text] > 5 * max(others)}


# -- kinds of columns -----------------------------------------------------------------------------


def _dates(column: Any, written: SourceFormat) -> ColumnDraft | None:
    """Draft the whole years that a column of dates spans, divided by what leaves a few of them."""
    try:
        found = days(column, written)
    except (pa.ArrowException, TypeError):
        return None
    dates = found[~np.isnan(found)].astype("datetime64[D]")
    years = 1970 + dates.astype("datetime64[Y]").astype(np.int64)
    first, last = int(years.min(initial=date.max.year)), int(years.max(initial=0))
    if not date.min.year <= first <= last < min(first + _MOST_YEARS, date.max.year):
        return None
    spans = (Span(by, date(first, 1, 1), date(last, 12, 31)) for by in PERIODS)
    span = next(span for span in spans if len(span.labels) >= _FEWEST_PERIODS)
    declared = {"by": span.by, "from": str(span.first), "to": str(span.last)}
    noticed = [f"dates, divided by {span.by}; whole years at both ends"]
    if written.dates and is_text(column.type):
        noticed.append(f"written as {written.dates}: dates under [source]")
    return ColumnDraft({"date": declared, "contexts": "range"}, noticed)


def _numbers(cells: Mapping[Any, int], written: SourceFormat) -> ColumnDraft | None:
    """Draft a list of numbers, or bins with round edges where there are many."""
    values = natural_values(cells, written)
    if any(isinstance(value, bool | str) for value in values):
        return None
    finite = [number for number in map(float, values) if math.isfinite(number)]
    if len(values) <= MOST_VALUES and len(finite) == len(values):
        return ColumnDraft({"values": values, "contexts": "range"}, [])
    noticed = ["many numbers, in bins with round edges; the first and the last are open"]
    return ColumnDraft({"edges": round_edges(finite), "contexts": "range"}, noticed)


def _words(cells: Mapping[Any, int], *, padded: bool) -> ColumnDraft:
    """Draft a list of words; spellings that differ by blanks or by case alone are one."""
    if all(isinstance(cell, bool) for cell in cells):
        return ColumnDraft({"values": sorted(cells), "contexts": "one"}, [])
    noticed: list[str] = []
    rules: dict[str, Any] = {}
    counts: Counter[str] = Counter()
    for cell, count in cells.items():
        counts[_text(cell) if padded else str(cell)] += count
    if padded:
        rules["strip"] = True
        noticed.append("blanks at the ends of some cells: strip = true")
    alike: dict[str, list[str]] = {}
    for text in counts:
        alike.setdefault(folded(text), []).append(text)
    if several := [sorted(group) for group in alike.values() if len(group) > 1]:
        rules["ignore_case"] = True
        shown = "; ".join(" and ".join(map(repr, group[:_SHOWN])) for group in several[:_SHOWN])
        noticed.append(f"spellings that differ by case alone ({shown}): ignore_case = true")
    # Each value as it is spelled most often; the most frequent value first.
    totals = {
        min(group, key=lambda text: (-counts[text], text)): sum(counts[text] for text in group)
        for group in alike.values()
    }
    chosen = sorted(totals, key=lambda text: (-totals[text], text))
    if len(chosen) > MOST_WORDS:
        noticed.append(
            f"{len(chosen):,} different values, too many to speak of: the {MOST_VALUES} most "
            "frequent stand for themselves, all others count as one; merge can join them instead"
        )
        other = next(word for word in _OTHERS if folded(word) not in alike)
        declared = {"values": [*sorted(chosen[:MOST_VALUES]), other], "other": other, **rules}
        return ColumnDraft(declared | {"contexts": "one"}, noticed, too_many=True)
    if rare := [text for text in chosen if 200 * totals[text] < sum(totals.values())]:
        shown = ", ".join(map(repr, sorted(rare)[:_SHOWN]))
        noticed.append(
            f"values of very few rows ({shown}): other = ... counts what nobody should speak of"
        )
    ordered = in_order(chosen)
    if ordered is not None:
        noticed.append("words that have an order: contexts have ranges of them")
    family = "one" if ordered is None else "range"
    return ColumnDraft({"values": ordered or sorted(chosen), **rules, "contexts": family}, noticed)


# -- numbers --------------------------------------------------------------------------------------


def round_edges(values: Sequence[float]) -> list[float]:
    """Return a few round edges within what most of some rising numbers span; the ends are open.

    Open ends publish neither the smallest nor the largest number, and take whatever may come.
    Between them lie multiples of 1, 2 or 5 times a power of ten.

    >>> round_edges([float(age) for age in range(17, 91)])
    [-inf, 30, 40, 50, 60, 70, 80, inf]
    """
    ends = [-math.inf, math.inf]
    if len(values) < 2:
        return ends
    low, high = values[len(values) // 20], values[-1 - len(values) // 20]
    step = _round_step(high / _BINS - low / _BINS)
    if step is None:
        return ends
    low_end, high_end = Decimal(repr(low)), Decimal(repr(high))
    first, last = math.floor(low_end / step) + 1, math.ceil(high_end / step) - 1
    inner = sorted({_plain(place * step) for place in range(first, last + 1)})
    return [*ends[:1], *inner, *ends[1:]]


def _round_step(width: float) -> Decimal | None:
    """Return 1, 2 or 5 times a power of ten, whichever is nearest to a width."""
    if not 0 < width < math.inf:
        return None
    power = Decimal(10) ** math.floor(math.log10(width))
    return min(
        (digit * power for digit in (1, 2, 5, 10)),
        key=lambda step: abs(math.log(width / float(step))),
    )


def _plain(number: Decimal) -> float:
    """Return a number as it would be written: without a point if it is whole."""
    return int(number) if number == int(number) and abs(number) < _EXACT else float(number)


_WRITTEN = re.compile(r"-?(0|[1-9]\d*)(\.\d+)?([eE][-+]?\d+)?", re.ASCII)


def natural_values(cells: Iterable[Any], written: SourceFormat) -> list[Value]:
    """Return the distinct values in order, as numbers where every one of them is a number."""
    found = set(cells)
    if found and all(isinstance(v, bool) for v in found):
        return sorted(found)
    for kind in (int, float):
        read = _all_numbers(kind, found, written)
        if read and len(set(read.values())) == len(found):
            return sorted(read.values())
    return sorted({str(v) for v in found})


def _all_numbers(
    kind: type[int] | type[float], cells: Iterable[Any], written: SourceFormat
) -> dict[Any, int | float]:
    """Return the number that each cell is; nothing where one is none, as is soon seen."""
    read = {}
    for cell in cells:
        number = _number(kind, cell, written)
        if number is None:
            return {}
        read[cell] = number
    return read


def _number(
    kind: type[int] | type[float], value: object, written: SourceFormat
) -> int | float | None:
    """Return a number, or a text that is written like one, as this kind; "007" is a name."""
    if isinstance(value, str) and not written.usual_numbers:
        value = written.plain(value)
    if isinstance(value, str | Decimal):
        value = str(value)
        with contextlib.suppress(ValueError):
            number = kind(value) if _WRITTEN.fullmatch(value) else None
            return number if number is not None and abs(number) < math.inf else None
    elif isinstance(value, int | float) and not isinstance(value, bool):
        with contextlib.suppress(OverflowError):
            return kind(value) if kind(value) == value else None
    return None


# -- cells ----------------------------------------------------------------------------------------


def cell_counts(column: Any) -> dict[Any, int]:
    """Return how often each value occurs; cells without one are not among them.

    Raises:
        SourceError: its cells are lists, or other things that are no single values.
    """
    try:
        counted = column.value_counts()
        pairs = zip(counted.field(0).to_pylist(), counted.field(1).to_pylist(), strict=True)
        return {cell: count for cell, count in pairs if cell is not None and cell == cell}
    except (pa.ArrowException, TypeError):
        raise SourceError("its column does not hold single values") from None


def _text(cell: object) -> str:
    return str(cell).strip(BLANKS)


def _is_padded(cell: object) -> bool:
    return isinstance(cell, str) and cell != cell.strip(BLANKS)
