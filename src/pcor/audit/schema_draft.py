"""Fit a schema to data and data to a schema. For the owner's eyes: everything here shows rows.

``draft`` proposes a schema and marks every value that it read off the data: a domain is public
knowledge and has to be the owner's word, not the data's. ``misfits`` says what of the data does
not fit a schema, values and counts included.
"""

from __future__ import annotations

import contextlib
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from pcor.audit.source_guess import guess_source
from pcor.errors import MetricError, SourceError, did_you_mean
from pcor.public.dates import DAY_TEXT, PERIODS, Span
from pcor.public.guarantee import OWNER_ONLY, PureDP
from pcor.public.schema import REVIEW, Attribute, Metric, Schema, Value, toml_value
from pcor.public.source_format import SourceFormat
from pcor.public.spellings import BLANKS, is_missing
from pcor.rows.columns import check_separator, column_names, read_columns
from pcor.rows.encoding import (
    LARGEST_METRIC,
    days,
    encode,
    encode_attribute,
    fitting_ids,
    numbers,
    without_words,
)
from pcor.rows.files import plain_name

# A numeric column with more distinct values than this is drafted as bins.
MOST_VALUES = 20
_BINS = 5

# Dates are drafted as the longest periods of which there are so many; not over more years than
# this, which one date that stands for "never" can make of any column.
_FEWEST_PERIODS = 4
_MOST_YEARS = 100
_SHOWN_CELLS = 5
_EMPTY_THEM = 'or empty them and set missing = "drop" under [metric]'
_NAME_THEM = 'or name them in missing_values and set missing = "drop" under [metric]'

_HEADER = """\
# A draft by `pcor schema init`, not yet fit for use.
# A domain is public knowledge: it says what could occur, not what does. Every line marked REVIEW
# was read off the data. Check each one, add what can occur but did not, remove what only an error
# can have put there, and then delete the marks.
"""
_RANGE = 'contexts = "range"  # an unbroken run; or "one" value, or "any" set of them'
_ONE = '# contexts = "one"  # the record\'s own value or all; without this any set of values'
_RELEASE = f"""\
[release]
detector = "grubbs"  # far from the mean, for so many rows
# detector = "lof"  # the paper's: farther from its neighbours than they are; a low bar
# detector = "tail:share=0.01"  # among the largest one in a hundred; for --guarantee {PureDP.name}
"""
NO_ID = (
    "no id column: a record is its row number, nothing is promised to whoever stands before it, "
    f"and guarantee {PureDP.name!r} is refused"
)


@dataclass(frozen=True)
class Misfit:
    """One way in which the data does not fit the schema. Private."""

    column: str
    problem: str
    rows: int
    examples: tuple[str, ...] = ()
    remedy: str = ""

    def __str__(self) -> str:
        shown = f", for example {', '.join(self.examples)}" if self.examples else ""
        where = f" in {self.rows:,} row{'s' if self.rows > 1 else ''}" if self.rows else ""
        remedy = f"; {self.remedy}" if self.remedy else ""
        return f"column {self.column!r}: {self.problem}{where}{shown}{remedy}"


def draft(
    source: Any,
    *,
    metric: str,
    attributes: list[str],
    id_column: str | None = None,
    name: str = "",
    given: Mapping[str, str] | None = None,
) -> str:
    """Return the text of a schema file for a table, with every value from the data marked.

    Args:
        source: the table.
        metric: the column to judge by.
        attributes: the columns that contexts speak of.
        id_column: the column that names a record.
        name: of the dataset.
        given: what is known of how the table is written; the rest of ``[source]`` is guessed.
    """
    if not attributes:
        raise SourceError(
            "name at least one attribute, a column that contexts speak of: --attributes a,b,c"
        )
    wanted = [metric, *attributes, *([id_column] if id_column is not None else [])]
    for column in wanted:
        if wanted.count(column) > 1:
            raise SourceError(
                f"column {column!r} is named twice; each column has one role: the metric, an "
                "attribute or the id"
            )
    written = guess_source(source, metric, given or {})
    columns = read_columns(source, wanted, written)
    _check_metric(columns[metric], metric, written)
    dataset = name or (plain_name(Path(source)) if isinstance(source, str | Path) else "dataset")
    lines = [_HEADER, "[dataset]", f"name = {toml_value(dataset)}"]
    lines += [f"# {NO_ID}" if id_column is None else f"id = {toml_value(id_column)}"]
    lines += ["", "[metric]", f"column = {toml_value(metric)}"]
    for attribute in attributes:
        lines += [
            "",
            f"[attributes.{toml_value(attribute)}]",
            *_domain(columns[attribute], attribute, written),
        ]
    return "\n".join([*lines, "", _RELEASE, *_source(written, given or {})])


def _source(written: SourceFormat, given: Mapping[str, str]) -> list[str]:
    """Write how the table is written, where that is not as usual."""
    declared = written.to_dict()
    lines = [
        f"{key} = {toml_value(value)}{'' if key in given else f'  {REVIEW}'}"
        for key, value in declared.items()
    ]
    return ["[source]", *lines, ""] if lines else []


def _check_metric(column: Any, name: str, written: SourceFormat) -> None:
    """Refuse a metric that is not numeric; a note shows the owner the first cells that are not."""
    try:
        numbers(column, Metric(name), written)
    except MetricError:
        refused = MetricError(
            f"the metric {name!r} is not numeric: at least one row holds text or another kind of "
            "value; a metric must be a number in every row"
        )
        cells = _cells_that_are_not_numbers(column, written)
        refused.add_note(f"{OWNER_ONLY} {cells}; correct them, {_EMPTY_THEM}")
        raise refused from None


def _cells_that_are_not_numbers(column: Any, written: SourceFormat) -> str:
    """Return the first distinct ones, with the first row of each."""
    wrong = _wrong_cells(column, "a number", written)
    first: dict[str, int] = {}
    for row, cell in wrong:
        first.setdefault(cell, row)
    shown = [f"{cell!r} in row {row}" for cell, row in list(first.items())[:_SHOWN_CELLS]]
    return f"{len(wrong):,} not numbers, first {', '.join(shown)} (rows are counted from 0)"


def marked_lines(schema: Path) -> int:
    """Return how many lines of a schema file still wait for the owner's review."""
    return schema.read_text(encoding="utf-8").count(REVIEW)


def misfits(source: Any, schema: Schema) -> list[Misfit]:
    """Return everything that does not fit, for the owner's eyes."""
    written = schema.source
    present = column_names(source, written)
    found = [
        Misfit(c, f"the table has no such column{did_you_mean(c, present)}", 0)
        for c in schema.columns
        if c not in present
    ]
    if len(found) == len(schema.columns):
        if isinstance(source, str | Path):
            check_separator(Path(source), present, schema.columns, written)
        return found
    columns = read_columns(source, [c for c in schema.columns if c in present], written)
    if schema.metric.column in present:
        found += _metric_misfits(columns[schema.metric.column], schema.metric, written)
    for attribute in schema.attributes:
        if attribute.name in present:
            found += _attribute_misfits(columns[attribute.name], attribute, written)
    if schema.id is not None and schema.id in present:
        found += _id_misfits(columns[schema.id], schema)
    return found or list(_nothing_left(columns, schema))


def _domain(column: Any, name: str, written: SourceFormat) -> list[str]:
    if (span := _span(column)) is not None:
        ends = f'from = "{span.first}", to = "{span.last}"'
        return [f'date = {{ by = "{span.by}", {ends} }}  {REVIEW}', _RANGE]
    values = _natural(column, name, written)
    numeric = all(isinstance(v, int | float) and not isinstance(v, bool) for v in values)
    if numeric and (len(values) > MOST_VALUES or math.inf in values or -math.inf in values):
        edges = _edges([float(v) for v in values])
        listed = ["edges = [", *(f"  {toml_value(edge)},  {REVIEW}" for edge in edges), "]"]
        return [*listed, _RANGE]
    listed = ["values = [", *(f"  {toml_value(value)},  {REVIEW}" for value in values), "]"]
    return [*listed, _RANGE if numeric else _ONE]


def _span(column: Any) -> Span | None:
    """Return the whole years that a column of dates spans, and what to divide them by."""
    try:
        found = days(column)
    except (pa.ArrowException, TypeError):
        return None
    dates = found[~np.isnan(found)].astype("datetime64[D]")
    years = 1970 + dates.astype("datetime64[Y]").astype(np.int64)
    first, last = int(years.min(initial=date.max.year)), int(years.max(initial=0))
    if not date.min.year <= first <= last < min(first + _MOST_YEARS, date.max.year):
        return None
    spans = (Span(by, date(first, 1, 1), date(last, 12, 31)) for by in PERIODS)
    return next(span for span in spans if len(span.labels) >= _FEWEST_PERIODS)


def _edges(values: list[float]) -> list[float]:
    """Return edges of about equal bins that cover all values, the inner ones rounded."""
    finite = [v for v in values if math.isfinite(v)]
    edges = {v for v in (min(values), max(values)) if math.isinf(v)} | {*finite[:1], *finite[-1:]}
    if len(finite) > 1:
        low, high = finite[0], finite[-1]
        # Halved, so that no range overflows; to two digits of the range, not of the numbers.
        digits = 1 - math.floor(math.log10(high / 2 - low / 2 or 1))
        inner = [low + (high / _BINS - low / _BINS) * place for place in range(1, _BINS)]
        edges |= {rounded for edge in inner if low < (rounded := round(edge, digits)) < high}
    return sorted(edges) if len(edges) > 1 else [-math.inf, math.inf]


def _natural(column: Any, name: str, written: SourceFormat) -> list[Value]:
    """Return the distinct values in order, as numbers where every one of them is a number."""
    try:
        found = {v for v in column.unique().to_pylist() if v is not None and v == v}
    except (pa.ArrowException, TypeError):
        raise SourceError(
            f"attribute {name!r}: its column does not hold single values; leave it out"
        ) from None
    if not found:
        raise SourceError(f"attribute {name!r}: its column has no values at all; leave it out")
    if all(isinstance(v, bool) for v in found):
        return sorted(found)
    for kind in (int, float):
        read = {n for v in found if (n := _number(kind, v, written)) is not None}
        if len(read) == len(found):
            return sorted(read)
    return sorted({str(v) for v in found})


_WRITTEN = re.compile(r"-?(0|[1-9]\d*)(\.\d+)?([eE][-+]?\d+)?", re.ASCII)


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


def _metric_misfits(column: Any, metric: Metric, written: SourceFormat) -> Iterator[Misfit]:
    try:
        values = numbers(column, metric, written)
    except MetricError:
        texts = without_words(column, metric.missing_values)
        remedy = f"correct them or [source], {_NAME_THEM}"
        yield _unreadable(texts, metric.column, "a number", remedy, written)
        return
    if (missing := int(np.isnan(values).sum())) and metric.missing == "error":
        remedy = 'missing = "drop" under [metric] leaves such rows out'
        yield Misfit(metric.column, "no value", missing, remedy=remedy)
    if huge := int((np.abs(values) > LARGEST_METRIC).sum()):
        remedy = "correct or remove them"
        yield Misfit(metric.column, "infinite or beyond 1e100", huge, remedy=remedy)


def _attribute_misfits(
    column: Any, attribute: Attribute, written: SourceFormat
) -> Iterator[Misfit]:
    name = attribute.name
    try:
        values = _outside(column, attribute, written)
    except SourceError:
        if attribute.edges is not None:
            column = without_words(column, attribute.missing_values, strip=attribute.strip)
        if attribute.days:
            remedy = "write each like 2019-03-14, without a zone"
            yield _unreadable(column, name, "a date", remedy, written)
        elif attribute.edges is not None:
            remedy = "correct them or [source], or declare values instead of edges"
            yield _unreadable(column, name, "a number", remedy, written)
        else:
            yield Misfit(name, "not a single value", len(column), remedy="leave this attribute out")
        return
    if attribute.outside != "error":
        return
    if named := [str(v) for v in values if v is not None]:
        remedy = f"declare what could occur, or {_ways(attribute)}"
        yield Misfit(name, "outside the declared domain", len(named), _examples(named), remedy)
    if missing := len(values) - len(named):
        yield Misfit(name, "no value", missing, remedy=_ways(attribute))


def _outside(column: Any, attribute: Attribute, written: SourceFormat) -> list[Any]:
    """Return the cells outside the attribute's domain, missing ones among them."""
    outside = pa.array(encode_attribute(column, attribute, written) < 0)
    cells: list[Any] = column.filter(outside).to_pylist()
    words = attribute.missing_values
    return [None if cell is not None and is_missing(words, cell) else cell for cell in cells]


def _ways(attribute: Attribute) -> str:
    """Return what a schema can say about rows outside a domain."""
    drop = 'outside = "drop" leaves such rows out'
    return drop if attribute.edges is not None else f"other = ... counts them as one value, {drop}"


def _id_misfits(column: Any, schema: Schema) -> Iterator[Misfit]:
    name = schema.id or ""
    repeated = {key: count for key, count in Counter(column.to_pylist()).items() if count > 1}
    if repeated:
        examples = tuple(repr(key) for key in list(repeated)[:3])
        remedy = "correct them, or declare no id: rows are then counted from 0"
        yield Misfit(name, "an id that is not unique", sum(repeated.values()), examples, remedy)
    if not schema.id_patterns:
        return
    keys = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if wrong := keys.filter(pa.array(~fitting_ids(keys, schema))).to_pylist():
        shown = _examples([str(key) for key in wrong if key is not None])
        remedy = "correct the ids, or id_type and id_pattern under [dataset]"
        yield Misfit(name, "an id not as declared", len(wrong), shown, remedy)


def _examples(values: list[str]) -> tuple[str, ...]:
    return tuple(f"{value!r} ({count:,})" for value, count in Counter(values).most_common(5))


def _unreadable(column: Any, name: str, what: str, remedy: str, written: SourceFormat) -> Misfit:
    bad = [cell for _, cell in _wrong_cells(column, what, written)]
    return Misfit(name, f"not {what}", len(bad), _examples(bad), remedy)


def _wrong_cells(column: Any, what: str, written: SourceFormat) -> list[tuple[int, str]]:
    """Return the cells that are something else, each with its row; missing ones are no cells."""
    cells = [(row, cell) for row, cell in enumerate(column.to_pylist()) if cell is not None]
    # Only text can hold numbers beside what is not one; another type is wrong in every row.
    texts = {cell for _, cell in cells if isinstance(cell, str)}
    fine = {one for one in texts if (_is_date(one) if what == "a date" else _reads(one, written))}
    return [(row, str(c)) for row, c in cells if not (isinstance(c, str) and c in fine)]


def _reads(text: str, written: SourceFormat) -> bool:
    """Tell whether the encoding reads a text as a number; a blank one is missing, not wrong."""
    if not written.usual_numbers:
        return not text.strip(BLANKS) or written.plain(text) is not None
    try:
        return not text.strip() or pa.scalar(text.strip()).cast(pa.float64()).is_valid
    except pa.ArrowException:
        return False


def _is_date(text: str) -> bool:
    """Tell the same of a date."""
    return not text.strip(" ") or re.fullmatch(DAY_TEXT, text) is not None


def _nothing_left(columns: pa.Table, schema: Schema) -> Iterator[Misfit]:
    """Say so where each row may be left out and all of them are: how many each column drops."""
    with contextlib.suppress(SourceError):
        encode(columns, schema)
        return
    metric = schema.metric
    if not columns.num_rows:
        yield Misfit(metric.column, "no row is left: the table is empty", 0)
        return
    if empty := int(np.isnan(numbers(columns[metric.column], metric, schema.source)).sum()):
        yield Misfit(metric.column, 'no row is left; missing = "drop" applies', empty)
    for attribute in schema.attributes:
        if outside := _outside(columns[attribute.name], attribute, schema.source):
            shown = _examples([str(v) for v in outside if v is not None])
            said = 'no row is left; outside = "drop" applies'
            yield Misfit(attribute.name, said, len(outside), shown)
