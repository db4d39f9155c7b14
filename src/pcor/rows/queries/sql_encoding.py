"""Encode columns against a schema where they are, as SQL expressions.

Private: nothing leaves but what ``distinct`` brings back for columns whose values have to be read
one by one. The claim: a row gets the code that ``encoding.encode`` gives it. Where the rule of
``Attribute.cell_code`` is plain equality (a text in a column of texts, cleaned by the same rules; a
whole number in one of numbers), the domain itself is written into the query. Elsewhere (numbers in
a column of texts, dates, decimals, letters whose case an engine cannot ignore) the distinct values
of the column are read once and judged by ``cell_code`` itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from pcor.errors import SourceError
from pcor.public.date_format import day_sql
from pcor.public.domain import Edge
from pcor.public.schema import Attribute, Metric, Schema
from pcor.public.source_format import SourceFormat
from pcor.public.spellings import BLANKS, days_among, numbers_among
from pcor.rows.encoding import code_of, metric_not_numeric, not_for_bins
from pcor.rows.engines.base import Engine, marks_of, translated_errors
from pcor.rows.queries.sql import Cell

# More distinct values than this are not read one by one; public.
DISTINCT_LIMIT = 100_000

# A longer domain is joined as a table; a shorter one is written out.
_LONGEST_CASE = 64

_WHOLE = 1 << 63  # whole numbers of 64 bits are below

Pairs = list[tuple[Cell, int]]


@dataclass(frozen=True)
class AttributeEncoding:
    """How one attribute is encoded.

    Attributes:
        key: what of a row ``s`` decides its code; the code itself where ``late`` is not set.
        code: writes the code of a key, NULL for a row outside the domain.
        listed: the domain as a table of its own, for WITH, where it is long.
        join: writes how that is joined to a key.
        distinct_marks: sums of marks over the rows whose values were read one by one; by their SQL.
        late: whether rows can be grouped by key before the groups are encoded, which is faster.
            Not where keys outside the domain are allowed: there may be any number of them.
    """

    key: str
    code: Callable[[str], str] = str
    listed: str = ""
    join: Callable[[str], str] | None = None
    late: bool = False
    distinct_marks: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class SqlEncoding:
    """The encoding of one table.

    Attributes:
        attributes: how each attribute is encoded.
        metric: the metric as a 64-bit float, NULL where it is missing.
        unreadable: for columns of texts that should be numbers or dates: whether a row's is none.
    """

    attributes: tuple[AttributeEncoding, ...]
    metric: str
    unreadable: Mapping[str, str]

    @property
    def lists(self) -> list[str]:
        """The domains that are joined, for WITH."""
        return [coded.listed for coded in self.attributes if coded.listed]

    @property
    def distinct_marks(self) -> dict[str, int]:
        """By what marks the rows are known again whose values were read one by one."""
        marks = [coded.distinct_marks for coded in self.attributes]
        return {sql: total for one in marks for sql, total in one.items()}

    @property
    def keys(self) -> list[str]:
        """What of a row ``s`` decides the code of each attribute."""
        return [coded.key for coded in self.attributes]

    @property
    def late(self) -> list[bool]:
        """For each attribute, whether groups can be encoded instead of rows."""
        return [coded.late for coded in self.attributes]

    def codes(self, keys: Sequence[str]) -> list[str]:
        """Return the expressions of the codes, where these are the keys."""
        return [coded.code(key) for coded, key in zip(self.attributes, keys, strict=True)]

    def joins(self, keys: Sequence[str], *, late: bool | None = None) -> str:
        """Return the joins that ``codes`` needs after FROM; only the late or early ones if told."""
        return " ".join(
            coded.join(key)
            for coded, key in zip(self.attributes, keys, strict=True)
            if coded.join is not None and late in (None, coded.late)
        )


def sql_encoding(engine: Engine, schema: Schema) -> SqlEncoding:
    """Return how an engine encodes its rows against a schema."""
    unreadable = {}
    metric, doubt = _metric(engine, schema.metric, schema.source)
    if doubt:
        unreadable[schema.metric.column] = doubt
    attributes = []
    for place, attribute in enumerate(schema.attributes):
        column = "s." + engine.dialect.column(attribute.name)
        if attribute.edges is None:
            name = f"pcor_domain{place}"
            # Where rows are chosen by their codes, each row has to be encoded.
            late = attribute.outside == "error" and not schema.unit.chooses
            attributes.append(_by_value(engine, attribute, column, name, schema.source, late=late))
            continue
        key, doubt = _bin(engine, attribute, column, schema.source)
        attributes.append(AttributeEncoding(key))
        if doubt:
            unreadable[attribute.name] = doubt
    return SqlEncoding(tuple(attributes), metric, unreadable)


def _by_value(
    engine: Engine,
    attribute: Attribute,
    column: str,
    name: str,
    written: SourceFormat,
    *,
    late: bool,
) -> AttributeEncoding:
    """Encode by equality with values of the domain."""
    dialect = engine.dialect
    key, pairs, marks = _raw_values(engine, attribute, column, written)
    elsewhere = _elsewhere(attribute)
    if len(pairs) <= _LONGEST_CASE:
        return AttributeEncoding(
            key,
            lambda written: dialect.chosen(written, pairs, elsewhere),
            late=late,
            distinct_marks=marks,
        )
    code = f"{name}.code" if attribute.other is None else f"COALESCE({name}.code, {elsewhere})"
    return AttributeEncoding(
        key,
        lambda _: code,
        dialect.values(name, ("raw", "code"), pairs),
        lambda written: f"LEFT JOIN {name} ON {name}.raw = {written}",
        late,
        marks,
    )


def _elsewhere(attribute: Attribute) -> str:
    return "NULL" if attribute.other is None else str(attribute.code(attribute.other))


def _raw_values(
    engine: Engine, attribute: Attribute, column: str, written: SourceFormat
) -> tuple[str, Pairs, dict[str, int]]:
    """Return what to compare in each row, which of its values have which code, and the marks."""
    kind, dialect = engine.kinds[attribute.name], engine.dialect
    if kind == "nested":
        raise SourceError(f"attribute {attribute.name!r}: its column does not hold single values")
    known = direct_values(attribute, kind)
    text = dialect.same_text.format(column)
    key: str | None = column
    if kind == "text":
        key = dialect.cleaned(text, attribute.spellings) if attribute.kind == "text" else text
    elif kind == "float":
        key = f"CAST({column} AS {dialect.double})"
    if known is None or key is None:
        return text, *_distinct_values(engine, attribute, column, written)
    return key, known, {}


def direct_values(attribute: Attribute, kind: str) -> Pairs | None:
    """Return which values of a column of this kind have which code, where equality decides.

    >>> direct_values(Attribute("year", (2019, 2020)), "float")
    [(2019.0, 0), (2020.0, 1)]
    >>> direct_values(Attribute("year", (2019, 2020)), "text") is None
    True
    """
    codes = attribute.codes
    if attribute.kind == "text":
        spelled = attribute.spellings.codes
        if kind == "text":
            return list(spelled.items())
        if kind == "boolean":
            flags = ((flag, attribute.cell_code(flag)) for flag in (True, False))
            return [(flag, code) for flag, code in flags if code >= 0]
        if kind == "integer":
            whole = {text: _whole_text(text) for text in spelled}
            return [(n, spelled[text]) for text, n in whole.items() if n is not None]
        return None
    if attribute.kind == "boolean":
        spoken: dict[str, tuple[Cell, ...]] = {
            "boolean": (True, False),
            "integer": (1, 0),
            "float": (1.0, 0.0),
        }
        if kind not in spoken:
            return None
        said = zip((True, False), spoken[kind], strict=True)
        return [(raw, codes[flag]) for flag, raw in said if flag in codes]
    if kind == "boolean":
        return []  # neither true nor false is a number here
    if kind == "integer":
        return [(int(v), c) for v, c in codes.items() if v == int(v) and abs(int(v)) < _WHOLE]
    if kind == "float":
        # Not those that a float cannot hold: they would be rounded to a neighbour.
        return [(float(v), code) for v, code in codes.items() if _as_float(v) == v]
    return None


def _whole_text(text: str) -> int | None:
    """Return the whole number of 64 bits that is written like this, if there is one."""
    try:
        number = int(text)
    except ValueError:
        return None
    return number if str(number) == text and abs(number) < _WHOLE else None


def _as_float(value: object) -> float | None:
    try:
        return float(value)  # type: ignore[arg-type]
    except OverflowError:
        return None


def _distinct_values(
    engine: Engine, attribute: Attribute, column: str, written: SourceFormat
) -> tuple[Pairs, dict[str, int]]:
    """Read the values that occur and judge each as the encoding in memory does.

    A value that comes later would be in no list, so the marks of the rows come along.
    """
    key = engine.dialect.same_text.format(column)
    marks = {f"mark{i}": sql for i, sql in enumerate(marks_of(engine, attribute.name))}
    marked = "".join(f", {sql} AS {name}" for name, sql in marks.items())
    summed = "".join(f", SUM({name}) AS {name}" for name in marks)
    # Of texts that are equal, any of the values will do.
    query = (
        f"SELECT raw, MIN(cell) AS cell{summed} "
        f"FROM (SELECT {key} AS raw, {column} AS cell{marked} "
        f"FROM {engine.source} s WHERE {column} IS NOT NULL) t GROUP BY raw "
        f"LIMIT {DISTINCT_LIMIT + 1}"
    )
    with translated_errors(engine.dialect.name):
        found = engine.run(query)
    if found.num_rows > DISTINCT_LIMIT:
        raise SourceError(
            f"attribute {attribute.name!r}: its values have to be read one by one, because its "
            "column is not of the declared kind, or because of ignore_case, and it has more than "
            f"{DISTINCT_LIMIT:,} distinct ones; convert the column where it is stored, or declare "
            "edges"
        )
    raw = found.column("raw").to_pylist()
    cells = found.column("cell").to_pylist()
    judged = [
        (text, code_of(attribute, cell, written)) for text, cell in zip(raw, cells, strict=True)
    ]
    totals = {
        f"CASE WHEN {column} IS NULL THEN 0 ELSE {sql} END": sum(map(int, found[name].to_pylist()))
        for name, sql in marks.items()
    }
    return [(text, code) for text, code in judged if code >= 0], totals


def _metric(engine: Engine, metric: Metric, written: SourceFormat) -> tuple[str, str]:
    column = "s." + engine.dialect.column(metric.column)
    read, doubt = _read(engine, metric.column, column, metric.missing_values, written)
    if read is None:
        raise metric_not_numeric(metric)
    number = _without(read, map(engine.dialect.literal, numbers_among(metric.missing_values)))
    if engine.kinds[metric.column] in ("integer", "decimal"):
        return number, doubt
    return engine.dialect.without_nan(number), doubt


def _bin(
    engine: Engine, attribute: Attribute, column: str, written: SourceFormat
) -> tuple[str, str]:
    """Write the bin of each row; not-a-number is in none, whatever an engine takes it for."""
    words, days = attribute.missing_values, bool(attribute.days)
    value, doubt = _read(
        engine, attribute.name, column, words, written, days=days, strip=attribute.strip
    )
    if value is None:
        raise not_for_bins(attribute, written)
    first, *inner, last = _thresholds(engine, attribute, attribute.edges or ())
    missing = _thresholds(engine, attribute, days_among(words) if days else numbers_among(words))

    def ladder(value: str) -> str:
        steps = [f"WHEN {value} < {edge} THEN {code}" for code, edge in enumerate(inner)]
        nowhere = [f"{value} IN ({', '.join(missing)})"] if missing else []
        if engine.kinds[attribute.name] == "float":
            nowhere.append(engine.dialect.is_nan.format(value))
        none = [f"WHEN {fact} THEN NULL" for fact in (*nowhere, f"{value} < {first}")]
        return (
            f"CASE {' '.join([*none, *steps])} "
            f"WHEN {value} <= {last} THEN {len(inner)} ELSE NULL END"
        )

    return (engine.dialect.computed(value, ladder) if doubt else ladder(value)), doubt


def _without(value: str, missing: Iterable[str]) -> str:
    listed = ", ".join(missing)
    return f"CASE WHEN {value} IN ({listed}) THEN NULL ELSE {value} END" if listed else value


def _read(
    engine: Engine,
    name: str,
    column: str,
    words: Sequence[str],
    written: SourceFormat,
    *,
    days: bool = False,
    strip: bool = False,
) -> tuple[str | None, str]:
    """Return a column as numbers or days, NULL for a word that means no value; and the doubt."""
    dialect = engine.dialect
    if engine.kinds[name] == "text":
        stripped = dialect.stripped(dialect.same_text.format(column))
        column = stripped if strip else column
        if words:
            listed = ", ".join(map(dialect.literal, words))
            column = f"CASE WHEN {stripped} IN ({listed}) THEN NULL ELSE {column} END"
    if days:
        return _day(engine, name, column, written)
    return _number(engine, name, column, written)


def _thresholds(engine: Engine, attribute: Attribute, given: Sequence[Edge]) -> list[str]:
    """Write numbers or days as what ``_number`` or ``_day`` makes of a column."""
    if not attribute.days:
        return [engine.dialect.literal(float(number)) for number in given]  # type: ignore[arg-type]
    typed = engine.kinds[attribute.name] == "date"
    return [f"CAST('{day}' AS DATE)" if typed else f"'{day}'" for day in given]


def _day(engine: Engine, name: str, column: str, written: SourceFormat) -> tuple[str | None, str]:
    """Return a column as days, or as texts that sort like them; and when a text is no day."""
    kind, dialect = engine.kinds[name], engine.dialect
    if kind == "date":
        return f"CAST({column} AS DATE)", ""
    if kind != "text":
        return None, ""
    text = dialect.same_text.format(column)
    iso = day_sql(text, written.dates)
    is_day = dialect.computed(iso, dialect.is_day) if written.dates else dialect.is_day(iso)
    doubt = f"{column} IS NOT NULL AND TRIM({text}) <> '' AND NOT ({is_day})"
    return f"SUBSTR({iso}, 1, 10)", doubt


def _number(
    engine: Engine, name: str, column: str, written: SourceFormat
) -> tuple[str | None, str]:
    """Return a column as 64-bit floats, and for a column of texts when one is not a number."""
    kind, dialect = engine.kinds[name], engine.dialect
    if kind in ("integer", "float", "decimal"):
        return f"CAST({column} AS {dialect.double})", ""
    if kind != "text":
        return None, ""
    number = dialect.read_number(column, written)
    bare = f"TRIM({column})"
    if not written.usual_numbers:
        bare = dialect.replaced(column, [(blank, "") for blank in BLANKS])
    return number, f"{column} IS NOT NULL AND {bare} <> '' AND ({number}) IS NULL"
