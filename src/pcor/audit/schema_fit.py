"""Say what of a table does not fit a schema, values and counts included. For the owner's eyes."""

from __future__ import annotations

import contextlib
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pcor.errors import MetricError, SourceError, did_you_mean
from pcor.public.date_format import day_text
from pcor.public.dates import DAY_TEXT
from pcor.public.schema import Attribute, Metric, Schema
from pcor.public.source_format import SourceFormat
from pcor.public.spellings import BLANKS, folded, is_missing
from pcor.rows.columns import check_separator, read_columns
from pcor.rows.encoding import (
    LARGEST_METRIC,
    encode,
    encode_attribute,
    fitting_ids,
    numbers,
    without_words,
)

_NAME_THEM = 'or name them in missing_values and set missing = "drop" under [metric]'
CLEAN_PEOPLE = "clean the column, unless they are different people"


@dataclass(frozen=True)
class Misfit:
    """One way in which the data does not fit the schema. Private.

    Attributes:
        column: where it is.
        problem: what it is.
        rows: in how many rows; 0 where it is not about single ones.
        examples: some of the cells.
        remedy: what can be done.
        refused: whether a release is refused for it; otherwise it is only to be looked at.
    """

    column: str
    problem: str
    rows: int
    examples: tuple[str, ...] = ()
    remedy: str = ""
    refused: bool = True

    def __str__(self) -> str:
        shown = f", for example {', '.join(self.examples)}" if self.examples else ""
        where = f" in {self.rows:,} row{'s' if self.rows > 1 else ''}" if self.rows else ""
        remedy = f"; {self.remedy}" if self.remedy else ""
        return f"column {self.column!r}: {self.problem}{where}{shown}{remedy}"


def misfits(source: Any, schema: Schema) -> list[Misfit]:
    """Return everything that does not fit, for the owner's eyes."""
    written = schema.source
    present: list[str] = []

    def those_present(names: list[str]) -> list[str]:
        present.extend(names)
        return [column for column in schema.columns if column in names]

    columns = read_columns(source, those_present, written)
    found = [
        Misfit(c, f"the table has no such column{did_you_mean(c, present)}", 0)
        for c in schema.columns
        if c not in present
    ]
    if len(found) == len(schema.columns):
        if isinstance(source, str | Path):
            check_separator(Path(source), present, schema.columns, written)
        return found
    if schema.metric.column in present:
        found += _metric_misfits(columns[schema.metric.column], schema.metric, written)
    for attribute in schema.attributes:
        if attribute.name in present:
            found += _attribute_misfits(columns[attribute.name], attribute, written)
    if schema.id is not None and schema.id in present:
        found += _id_misfits(columns[schema.id], schema)
    if not found:
        found += _person_misfits(columns, schema)
    found += [] if found else _nothing_left(columns, schema)
    return [*found, *(_alike(columns, schema) if schema.person in present else ())]


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
            remedy = f"write each like {written.dates or '2019-03-14'}, without a zone"
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
    named = column.filter(
        pc.invert(_missing(column))
    )  # a row without an id is asked about by nobody
    repeated = {key: count for key, count in Counter(named.to_pylist()).items() if count > 1}
    if repeated:
        examples = tuple(repr(key) for key in list(repeated)[:3])
        yield Misfit(
            name,
            "an id that is not unique",
            sum(repeated.values()),
            examples,
            "no release about one of them; correct them, or declare no id: rows are then counted "
            "from 0",
            refused=False,
        )
    if not schema.id_patterns:
        return
    keys = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if wrong := keys.filter(pa.array(~fitting_ids(keys, schema))).to_pylist():
        shown = _examples([str(key) for key in wrong if key is not None])
        remedy = "correct the ids, or id_type and id_pattern under [dataset]"
        yield Misfit(name, "an id not as declared", len(wrong), shown, remedy)


def _missing(column: Any) -> Any:
    """Tell which cells hold nothing; NaN is nothing, as it is to a table."""
    return pc.is_null(column, nan_is_null=pa.types.is_floating(column.type))


@dataclass(frozen=True)
class RowsOfPeople:
    """How many rows people have, of those that fit the schema. Private.

    Attributes:
        people: how many there are.
        several: how many of them have more than one row.
        median: half of them have at most so many.
        most: somebody has so many.
        over: how many have more than the schema declares.
        lost: how many rows these have beyond that.
    """

    people: int
    several: int
    median: int
    most: int
    over: int
    lost: int

    def __str__(self) -> str:
        return (
            f"{self.people:,} people, {self.several:,} of them with several rows: half have at "
            f"most {self.median:,}, nobody more than {self.most:,}"
        )


def rows_of_people(source: Any, schema: Schema) -> RowsOfPeople | None:
    """Return how many rows people have, for the owner's eyes; of a table that fits otherwise."""
    if schema.person is None:
        return None
    return _rows_of_people(read_columns(source, schema.columns, schema.source), schema)


def _rows_of_people(columns: pa.Table, schema: Schema) -> RowsOfPeople | None:
    fits = ~np.isnan(numbers(columns[schema.metric.column], schema.metric, schema.source))
    for attribute in schema.attributes:
        fits &= encode_attribute(columns[attribute.name], attribute, schema.source) >= 0
    names = columns[schema.person].filter(pa.array(fits)).to_pylist()
    counts = np.array([*Counter(n for n in names if n is not None).values()], dtype=np.int64)
    if len(counts) == 0:
        return None
    beyond = np.maximum(counts - schema.unit.rows, 0)
    return RowsOfPeople(
        people=len(counts),
        several=int((counts > 1).sum()),
        median=int(np.sort(counts)[(len(counts) - 1) // 2]),
        most=int(counts.max()),
        over=int((beyond > 0).sum()),
        lost=int(beyond.sum()),
    )


def _person_misfits(columns: pa.Table, schema: Schema) -> Iterator[Misfit]:
    """Say where rows are nobody's, and whether people have more than the schema declares."""
    if schema.person is None:
        return
    if missing := pc.sum(_missing(columns[schema.person])).as_py():
        remedy = "say whose they are, or leave them out of the table"
        yield Misfit(schema.person, "nobody's rows", missing, remedy=remedy)
    found = _rows_of_people(columns, schema)
    if found is None or found.over == 0 or schema.unit.chooses:
        return
    said = f"more than rows_per_person = {schema.unit.rows:,} rows of each of {found.over:,} people"
    remedy = (
        f'declare up to {found.most:,}, or over = "keep" under [dataset], which leaves '
        f"{found.lost:,} rows out"
    )
    yield Misfit(schema.person, said, 0, remedy=remedy)


def _alike(columns: pa.Table, schema: Schema) -> Iterator[Misfit]:
    """Note people who may be one; a release cannot know it, so it refuses nothing."""
    person = schema.person or ""
    with contextlib.suppress(pa.ArrowException):  # what holds no single values is refused elsewhere
        if count := spelled_alike(columns[person].unique().to_pylist()):
            yield Misfit(person, differ(count), 0, remedy=CLEAN_PEOPLE, refused=False)


def spelled_alike(names: Iterable[object]) -> int:
    """Return how many different names are there beyond those left without blanks and case.

    >>> spelled_alike(["C-17", "c-17", "C-17 ", "C-18", None])
    2
    """
    texts = {name for name in names if isinstance(name, str)}
    return len(texts) - len({folded(text.strip(BLANKS)) for text in texts})


def differ(count: int) -> str:
    """Say that so many people differ from others in their spelling alone, and why it matters."""
    people = "1 person differs" if count == 1 else f"{count:,} people differ"
    return (
        f"{people} from another by blanks or case alone, and the promise protects them as if they "
        "were different"
    )


def _examples(values: list[str]) -> tuple[str, ...]:
    return tuple(f"{value!r} ({count:,})" for value, count in Counter(values).most_common(5))


def _unreadable(column: Any, name: str, what: str, remedy: str, written: SourceFormat) -> Misfit:
    bad = [cell for _, cell in wrong_cells(column, what, written)]
    return Misfit(name, f"not {what}", len(bad), _examples(bad), remedy)


def wrong_cells(column: Any, what: str, written: SourceFormat) -> list[tuple[int, str]]:
    """Return the cells that are something else, each with its row; missing ones are no cells."""
    cells = [(row, cell) for row, cell in enumerate(column.to_pylist()) if cell is not None]
    # Only text can hold numbers beside what is not one; another type is wrong in every row.
    texts = {cell for _, cell in cells if isinstance(cell, str)}
    fine = {one for one in texts if reads_as(one, what, written)}
    return [(row, str(c)) for row, c in cells if not (isinstance(c, str) and c in fine)]


def reads_as(text: str, what: str, written: SourceFormat) -> bool:
    """Tell whether the encoding reads a text as what it should be; a blank one is missing."""
    if what == "a date":
        return not text.strip(" ") or bool(re.fullmatch(DAY_TEXT, day_text(text, written.dates)))
    if not written.usual_numbers:
        return not text.strip(BLANKS) or written.plain(text) is not None
    try:
        return not text.strip() or pa.scalar(text.strip()).cast(pa.float64()).is_valid
    except pa.ArrowException:
        return False


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
