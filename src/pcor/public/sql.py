"""A context as the condition of an SQL query, as short as it can be and still exact.

Public: everything here; nothing reads a table. Names and texts are quoted and escaped. What may be
left out, and what may be said by exception or as a range, follows from what the schema says of rows
outside the domain:

- ``outside = "error"``: there are none, or the table is refused. So an attribute with all values
  needs no condition, and a condition need only tell declared values apart.
- ``outside = "drop"``: there may be such rows, and nulls, and no context covers them. So all that a
  context has is listed, also where that is every value.
- ``other``: such rows count as one of the values. A context that has it is said by what it lacks.

Where the schema has rules of cleaning, every spelling of a value is listed (``sql_spellings``), and
in bins those words that mean no value are excepted.

Rows without a metric are left out where the schema drops them. Days may be dates, moments or texts.
Not-a-number is excepted where rows that have it are dropped: to SQL it is above all numbers, and to
DuckDB 2.0 in any range that holds the others in a Parquet file.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from pcor.public.date_format import day_sql, day_text
from pcor.public.dates import ONE_DAY
from pcor.public.phrase import Item, chosen, runs
from pcor.public.schema import Attribute, Metric, Schema, Value
from pcor.public.spellings import days_among, numbers_among
from pcor.public.sql_spellings import among, as_text, listed, stripped, text_literal

_EVERY = "/* all declared values */"

# How databases write what is not a number.
_NAN = ["'NaN'", "'nan'"]


def where(schema: Schema, mask: int) -> str:
    """Write a context, given by its bits, as the condition of an SQL WHERE clause.

    It selects from the raw table the rows that the context covers, given that they fit the schema.
    """
    conditions = [
        _condition(attribute, chosen(mask, attribute, offset), schema.source.dates)
        for attribute, offset in zip(schema.attributes, schema.offsets, strict=True)
    ]
    every = [*conditions, *_with_a_metric(schema.metric)]
    return " AND ".join(one for one in every if one) or "TRUE"


def _with_a_metric(metric: Metric) -> Iterator[str]:
    """Yield that a row has a metric, unless all have one."""
    if metric.missing != "drop":
        return
    column, numbers = _name(metric.column), numbers_among(metric.missing_values)
    if len(numbers) == len(metric.missing_values):  # a column of numbers
        yield f"{column} IS NOT NULL"
        yield among(as_text(column), _NAN, but=True)
        if numbers:
            yield among(column, list(map(repr, numbers)), but=True)
        return
    # Words are in a column of texts, where a number is written as declared, or as a whole one.
    whole = [str(int(number)) for number in numbers if number.is_integer()]
    words = dict.fromkeys(["", *metric.missing_values, *whole, *map(repr, numbers)])
    listed = [*map(text_literal, words), *_NAN]
    yield among(stripped(as_text(column)), listed, but=True)


def _condition(attribute: Attribute, codes: list[int], dates: str) -> str:
    """Return the condition on one attribute; nothing where every row meets it.

    ``dates`` is how days are written in texts, as ``[source]`` says it.
    """
    column = _name(attribute.name)
    lacks = [code for code in range(len(attribute.values)) if code not in codes]
    if not lacks:
        every = f"{_among(column, attribute, codes, dates)} {_EVERY}"
        return every if attribute.outside == "drop" else ""
    if attribute.other is not None and attribute.codes[attribute.other] in codes:
        return f"({column} IS NULL OR {_listed(column, attribute, lacks, but=True)})"
    if attribute.outside != "error" or attribute.edges is not None:
        return _among(column, attribute, codes, dates)
    return min(_exact_ways(column, attribute, codes, lacks), key=lambda way: way[0])[1]


def _among(column: str, attribute: Attribute, codes: list[int], dates: str) -> str:
    """Say which values are meant, so that no other value is selected either."""
    if attribute.edges is None:
        return _listed(column, attribute, codes)
    fits = attribute.outside == "error"
    read = _read(column, attribute, dates)
    ranges = [_bins(read, attribute, run, fits=fits) for run in runs(codes)]
    inside = ranges[0] if len(ranges) == 1 else f"({' OR '.join(ranges)})"
    return " AND ".join([inside, *([] if fits else _but_missing(column, attribute, codes, dates))])


def _read(column: str, attribute: Attribute, dates: str) -> str:
    """Write what of a row is compared with the ends of bins."""
    if not attribute.days or not (dates or attribute.strip):
        return column
    text = stripped(as_text(column)) if attribute.strip else as_text(column)
    # A date or a moment as a text is written as in ISO 8601, whatever the texts of a file.
    return day_sql(text, dates, otherwise=text)


def _but_missing(column: str, attribute: Attribute, codes: list[int], dates: str) -> Iterator[str]:
    """Yield that a row is none of the words that mean no value, where one would lie in the bins."""
    words = attribute.missing_values
    if not attribute.days:
        ends = [(attribute.thresholds[c], attribute.thresholds[c + 1]) for c in codes]
        yield among(as_text(column), _NAN, but=True)
        inside = [n for n in numbers_among(words) if any(a <= n <= b for a, b in ends)]
        if inside:
            yield among(column, list(map(repr, inside)), but=True)
        return
    days = days_among(words)
    bins = [attribute.days[code] for code in codes]
    for day in days:
        if any(first <= day <= last for first, last in bins):
            read = _read(column, attribute, dates)
            yield f"NOT ({read} >= '{day}' AND {read} < '{day + ONE_DAY}')"
    # A text lies between two days only if it begins as their years do, in any collation.
    years = [(str(first)[:4], str(last + ONE_DAY)[:4]) for first, last in bins]
    begins = {word: (day_text(word, dates) or word)[:4] for word in words}
    texts = [word for word in words if any(low <= begins[word] <= high for low, high in years)]
    if texts := [word for word in texts if word not in map(str, days)]:
        yield among(stripped(as_text(column)), list(map(text_literal, texts)), but=True)


def _exact_ways(
    column: str, attribute: Attribute, codes: list[int], lacks: list[int]
) -> Iterator[tuple[int, str]]:
    """Yield conditions that tell declared values from one another, which are all that occur.

    Each with how many values it writes; of those with as few, the first reads best.
    """
    for places, but in ((codes, False), (lacks, True)):
        texts = attribute.spellings.of(places) if attribute.kind == "text" else places
        yield len(texts), _listed(column, attribute, places, but=but)
        if _sorts_like_text(attribute):
            yield from _number_ranges(column, attribute, places, but=but)


def _sorts_like_text(attribute: Attribute) -> bool:
    """Tell whether ranges select the same rows where the column holds the numbers as text."""
    values = attribute.values
    is_whole = attribute.kind == "integer" and min(values) >= 0  # type: ignore[operator]
    return is_whole and len({len(str(value)) for value in values}) == 1


def _number_ranges(
    column: str, attribute: Attribute, codes: list[int], *, but: bool = False
) -> Iterator[tuple[int, str]]:
    """Yield a range, if these numbers are all that are declared between their ends."""
    numbers = [attribute.values[code] for code in codes]
    low, high = min(numbers), max(numbers)
    if sum(low <= value <= high for value in attribute.values) > len(codes):  # type: ignore[operator]
        return
    if low == min(attribute.values):
        yield 1, f"{column} {'>' if but else '<='} {_literal(high)}"
    elif high == max(attribute.values):
        yield 1, f"{column} {'<' if but else '>='} {_literal(low)}"
    else:
        between = "NOT BETWEEN" if but else "BETWEEN"
        yield 2, f"{column} {between} {_literal(low)} AND {_literal(high)}"


def _listed(column: str, attribute: Attribute, codes: list[int], *, but: bool = False) -> str:
    if attribute.kind == "text":
        return listed(column, attribute.spellings, attribute.spellings.of(codes), but=but)
    return among(column, [_literal(attribute.values[code]) for code in codes], but=but)


def _bins(column: str, attribute: Attribute, run: Item, *, fits: bool) -> str:
    """Write bins that touch as one range, which needs no end where every row ``fits``."""
    is_first, is_last = run.first == 0, run.last == len(attribute.values) - 1
    low, high = _ends(attribute, run)
    parts = []
    if low and not (fits and is_first):
        parts.append(f"{column} {low}")
    if high and not (fits and is_last):
        parts.append(f"{column} {high}")
    return (
        f"({' AND '.join(parts)})" if len(parts) == 2 else "".join(parts) or f"{column} IS NOT NULL"
    )


def _ends(attribute: Attribute, run: Item) -> tuple[str, str]:
    """Write what a row of these bins is at least, and below what it is; nothing for no end."""
    if attribute.days:
        # Below the next day: a column of moments, or of texts with them, has later ones that day.
        first, last = attribute.days[run.first][0], attribute.days[run.last][1]
        return f">= '{first}'", f"< '{last + ONE_DAY}'"
    edges = attribute.edges or ()
    low, high = edges[run.first], edges[run.last + 1]
    is_last = run.last == len(edges) - 2
    return (
        "" if low == -math.inf else f">= {low!r}",
        "" if high == math.inf else f"{'<=' if is_last else '<'} {high!r}",
    )


def _name(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _literal(value: Value) -> str:
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    return text_literal(value) if isinstance(value, str) else repr(value)
