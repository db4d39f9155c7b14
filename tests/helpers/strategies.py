"""Random schemas, contexts and rows, and the slow, obvious answer to "which rows are covered?".

Names and values are drawn to be nasty: quotes, semicolons, SQL, and the words that a context's
sentence is made of. ``place`` and ``covered`` know the meaning of a schema without the library's
encoding, so that they can judge it.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Sequence
from functools import cache
from itertools import pairwise
from typing import Any

import pyarrow as pa
from hypothesis import settings
from hypothesis import strategies as st

from pcor import Attribute, Context, Schema
from pcor.errors import is_printable

Row = dict[str, Any]

METRIC, ID = "the metric", "the id"

few, many = settings(max_examples=40), settings(max_examples=100)

NASTY = [
    *("or", "is", "any", "any or", "is is", "OR", "Montreal", "New York", "job is CEO", "a  b"),
    *(
        " ",
        "",
        ";",
        '"',
        "'",
        "\\",
        '\\"',
        "''",
        "x; any city",
        '"or"',
        "<101>",
        "{",
        "{}",
        "[0, 1)",
    ),
    *("'; DROP TABLE rows; --", '" OR 1=1 --', "*/ OR TRUE /*", "%", "NULL", "NA", "007", "7.0"),
    *("tab\there", "line\nbreak", "\r\n", "\u00a0", "\u2028"),
    *("é", "e\u0301", "東京", "🙂"),
    *("*", "^a$", "^.*$"),  # patterns of names, to Polars
]

# What a schema refuses is no text of a domain; nor are lone surrogates text that a file could hold.
texts = (
    st.sampled_from(NASTY) | st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
).filter(is_printable)
names = texts.filter(lambda name: name not in ("", METRIC, ID))
whole = st.integers(-9, 9) | st.integers(-(2**63), 2**63 - 1)
finite = st.floats(-9, 9).map(lambda x: round(x, 1)) | st.floats(
    allow_nan=False, allow_infinity=False
)

KINDS = ("text", "integer", "boolean", "number", "bins", "dates")
_DOMAINS: dict[str, st.SearchStrategy[Any]] = {
    "text": texts,
    "integer": whole,
    "boolean": st.booleans(),
    "number": finite | st.integers(-9, 9),
}
ARROW_TYPES = {
    "text": pa.string(),
    "integer": pa.int64(),
    "boolean": pa.bool_(),
    "number": pa.float64(),
    "bins": pa.float64(),
    "dates": pa.date32(),
}

# As a schema can declare them, of which some lie close together.
days = st.dates(dt.date(1, 1, 1), dt.date(9999, 12, 30))
near = st.dates(dt.date(1968, 12, 25), dt.date(1972, 3, 2))


@st.composite
def declarations(draw: st.DrawFn, kind: str, most: int = 5) -> dict[str, Any]:
    """Draw one attribute as a schema file declares it."""
    if kind == "dates":
        return draw(bins_of_dates(most)) | draw(st.sampled_from([{}, {"outside": "drop"}]))
    if kind == "bins":
        ends: list[list[float]] = [[], [-math.inf], [math.inf], [-math.inf, math.inf]]
        inner = draw(st.lists(finite | st.integers(-9, 9), min_size=2, max_size=most, unique=True))
        edges = sorted([*inner, *draw(st.sampled_from(ends))])
        domain: dict[str, Any] = {"edges": edges}
        ways: list[dict[str, Any]] = [{}, {"outside": "drop"}]
    else:
        values = draw(st.lists(_DOMAINS[kind], min_size=1, max_size=most, unique=True))
        domain = {"values": values}
        ways = [{}, {"outside": "drop"}, {"other": draw(st.sampled_from(values))}]
    way: dict[str, Any] = draw(st.sampled_from(ways))
    return domain | way


@st.composite
def bins_of_dates(draw: st.DrawFn, most: int = 5) -> dict[str, Any]:
    """Draw edges, as dates or as texts, or a span that is divided by a word."""
    if draw(st.booleans()):
        edges = sorted(draw(st.lists(near | days, min_size=2, max_size=most, unique=True)))
        return {"edges": [draw(st.sampled_from([edge, str(edge)])) for edge in edges]}
    by = draw(st.sampled_from(["year", "quarter", "month"]))
    most_days = {"year": 1500, "quarter": 400, "month": 130}[by]
    first, more = draw(near), draw(st.integers(0, most_days))
    return {"date": {"by": by, "from": str(first), "to": first + dt.timedelta(days=more)}}


@st.composite
def schemas(draw: st.DrawFn, kinds: Sequence[str] = KINDS, most: int = 4) -> Schema:
    """Draw a schema of a few attributes. Column names differ in more than case, as SQL wants it."""
    columns = draw(st.lists(names, min_size=1, max_size=most, unique_by=str.casefold))
    attributes = {name: draw(declarations(draw(st.sampled_from(kinds)))) for name in columns}
    metric = {"column": METRIC, "missing": draw(st.sampled_from(["error", "drop"]))}
    plain = Schema(metric=metric, attributes=attributes)
    groups: dict[str, dict[str, list[Any]]] = {}
    ranges: dict[str, str] = {}
    for attribute in plain.attributes:
        family = draw(st.sampled_from(["any", "any", "range", "groups"]))
        if family == "range" and attribute.other is None:
            ranges[attribute.name] = family
        elif family == "groups" and (name := draw(names)) not in map(str, attribute.values):
            members = attribute.values[: draw(st.integers(0, len(attribute.values) - 1))]
            spoken_like_bins = attribute.edges is not None and " " in name
            if members and not spoken_like_bins:
                groups[attribute.name] = {name: list(members)}
    return Schema(metric=metric, attributes=attributes, contexts=ranges, groups=groups)


@cache
def wide_schema(attributes: int, values: int) -> Schema:
    """Return a plain schema of any size."""
    domain = [f"value {v}" for v in range(values)]
    return Schema(
        metric=METRIC, attributes={f"attribute {a}": domain for a in range(attributes)}, id=ID
    )


@st.composite
def contexts(draw: st.DrawFn, schema: Schema) -> Context:
    """Draw a context: some values of each attribute, at least one."""
    chosen = {
        a.name: draw(st.lists(st.sampled_from(a.values), min_size=1, unique=True))
        for a in schema.attributes
    }
    return Context(schema, chosen)


@st.composite
def some_context(draw: st.DrawFn) -> Context:
    """Draw a context of a random schema, now and then one of more than 64 or 200 values."""
    if draw(st.integers(0, 9)):
        return draw(contexts(draw(schemas())))
    schema = draw(st.sampled_from([wide_schema(1, 65), wide_schema(33, 2), wide_schema(3, 70)]))
    # One number instead of hundreds of small draws; the first value of each attribute stays.
    first = sum(1 << offset for offset in schema.offsets)
    return Context.from_mask(schema, draw(st.integers(0, (1 << schema.width) - 1)) | first)


def _fitting(attribute: Attribute) -> st.SearchStrategy[Any]:
    """Cells that have a value of the domain; in bins often an edge or its next neighbour."""
    if attribute.edges is None:
        return st.sampled_from(attribute.values)
    if attribute.days:
        return st.sampled_from(attribute.days).flatmap(lambda ends: st.dates(*ends))
    return _numbers_near(attribute).filter(lambda cell: place(attribute, cell) is not None)


def _accepted(attribute: Attribute) -> st.SearchStrategy[Any]:
    """Cells that do not refuse the table: where the schema allows it, also what does not fit."""
    if attribute.outside == "error":
        return _fitting(attribute)
    foreign = near | days if attribute.days else _numbers_near(attribute) | st.just(math.nan)
    foreign = _DOMAINS[attribute.kind] if attribute.edges is None else foreign
    return _fitting(attribute) | st.none() | foreign


def _numbers_near(attribute: Attribute) -> st.SearchStrategy[float]:
    edges = st.sampled_from([edge for edge in attribute.thresholds if math.isfinite(edge)])
    return edges | edges.map(lambda edge: math.nextafter(edge, math.inf)) | finite


@st.composite
def tables(draw: st.DrawFn, schema: Schema, most: int = 12) -> list[Row]:
    """Draw rows that the schema accepts; the first fits it whole."""
    metric: st.SearchStrategy[Any] = st.integers(0, 5).map(float)
    fits = {METRIC: metric} | {a.name: _fitting(a) for a in schema.attributes}
    if schema.metric.missing == "drop":
        metric = metric | st.sampled_from([None, math.nan])
    accepted = {METRIC: metric} | {a.name: _accepted(a) for a in schema.attributes}
    rows = st.lists(st.fixed_dictionaries(accepted), max_size=most)
    return [draw(st.fixed_dictionaries(fits)), *draw(rows)]


@st.composite
def context_and_rows(draw: st.DrawFn) -> tuple[Context, list[Row]]:
    """Draw a context of a random schema, and rows that the schema accepts."""
    schema = draw(schemas())
    return draw(contexts(schema)), draw(tables(schema))


def arrow(schema: Schema, rows: Sequence[Row]) -> pa.Table:
    """Return the rows as an Arrow table with the types that the schema speaks of."""
    columns = {
        a.name: pa.array([row[a.name] for row in rows], ARROW_TYPES[a.kind])
        for a in schema.attributes
    }
    return pa.table(columns | {METRIC: pa.array([row[METRIC] for row in rows], pa.float64())})


# -- the slow, obvious answer ---------------------------------------------------------------------


def place(attribute: Attribute, cell: Any) -> int | None:
    """Return which value of the domain a cell has, or None for a row that is left out."""
    if attribute.edges is not None:
        edges: Sequence[Any] = attribute.edges
        bins = list(enumerate(pairwise(edges)))
        for number, (low, high) in bins:
            if cell is not None and (
                low <= cell < high or (number == len(bins) - 1 and cell == high)
            ):
                return number
        return None
    if cell in attribute.values:
        return attribute.values.index(cell)
    return None if attribute.other is None else attribute.values.index(attribute.other)


def covered(context: Context, rows: Sequence[Row]) -> list[int]:
    """Return the numbers of the rows in the context's population."""
    return [
        number
        for number, row in enumerate(rows)
        if row[METRIC] is not None
        and not math.isnan(row[METRIC])
        and all(
            (found := place(a, row[a.name])) is not None and context.bits[offset + found] == "1"
            for a, offset in zip(context.schema.attributes, context.schema.offsets, strict=True)
        )
    ]
