"""Encode columns against a schema: attribute values become codes, the metric becomes float64.

Private: everything. Errors name the column and what to do, never the value that did not fit.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from pcor.errors import DomainError, MetricError, SourceError, TooLarge
from pcor.public.date_format import shapes
from pcor.public.dates import DAY_TEXT, day_number
from pcor.public.record_ids import matching
from pcor.public.schema import Attribute, Metric, Schema
from pcor.public.source_format import SourceFormat
from pcor.public.spellings import BLANKS, days_among, numbers_among
from pcor.rows.encoded_rows import EncodedRows
from pcor.rows.people import no_single_person, of_people

# Beyond this, squares and ranges of float64 overflow; no real metric is near it.
LARGEST_METRIC = 1e100

# Counts of rows, multiplied as scores are, then stay within whole numbers of 64 bits.
MOST_ROWS = 2**31 - 1

# Cells are numbered by a table of all combinations while it has at most this many entries.
_MOST_COMBINATIONS = 1 << 24


def encode(columns: pa.Table, schema: Schema) -> EncodedRows:
    """Encode and apply what the schema says about rows that do not fit, and about people."""
    metric = numbers(columns[schema.metric.column], schema.metric, schema.source)
    keep = ~np.isnan(metric)
    largest = np.abs(metric[keep]).max(initial=0)
    check_metric(schema.metric, missing=not keep.all(), largest=largest)
    cell, count = np.zeros(len(metric), dtype=np.int32), 1
    codes_of: list[NDArray[np.int32]] = []
    for attribute in schema.attributes:
        codes = encode_attribute(columns[attribute.name], attribute, schema.source)
        fits = codes >= 0
        check_outside(attribute, fits=bool(fits.all()))
        keep &= fits
        cell, count = _refined(cell, count, codes, len(attribute.values))
        codes_of.append(codes)
    if not keep.any():
        raise nothing_fits()
    check_rows(int(np.count_nonzero(keep)))
    member = np.empty(count, dtype=np.int64)  # one row of each cell; any will do
    member[cell] = np.arange(len(cell))
    cells = np.column_stack([codes[member] for codes in codes_of]).astype(np.int64)
    keys = None if schema.id is None else _combined(columns[schema.id])
    rows = EncodedRows(cell, cells, metric, keys)
    rows = rows if keep.all() else rows.taken(np.flatnonzero(keep))
    _check_ids(rows.keys, schema)
    return rows if schema.person is None else _people(rows, columns[schema.person], keep, schema)


def _people(rows: EncodedRows, column: Any, fits: NDArray[np.bool_], schema: Schema) -> EncodedRows:
    try:
        names, indices = _distinct(column)
    except pa.ArrowException:
        raise no_single_person(schema) from None
    return of_people(rows, names, indices[fits], schema)


def fitting_ids(keys: Any, schema: Schema) -> NDArray[np.bool_]:
    """Return which ids are as the schema says that they are."""
    column = keys
    if pa.types.is_floating(keys.type):  # whole numbers beside missing ones
        column = pa.array([None if one is None else _whole(one) for one in keys.to_pylist()])
    fits: NDArray[np.bool_] = matching(column, schema.id_patterns).to_numpy(zero_copy_only=False)
    return fits


def _whole(number: float) -> str:
    return str(int(number)) if number.is_integer() else str(number)


def _check_ids(keys: Any, schema: Schema) -> None:
    """Refuse ids that are not as the schema says."""
    if schema.id_patterns and not fitting_ids(keys, schema).all():
        raise DomainError(
            f"column {schema.id!r} has a missing id, or one that does not match id_type or "
            "id_pattern; correct the ids, or the declaration; `pcor schema check` shows "
            "the owner what does not fit"
        )


def _refined(
    cell: NDArray[np.int32], count: int, codes: NDArray[np.int32], size: int
) -> tuple[NDArray[np.int32], int]:
    """Split cells by one more attribute; return the number of each row's cell, and how many.

    Rows outside the domain (code -1) are split off too; they are about to be refused or dropped.
    """
    combined = cell.astype(np.int64) * (size + 1) + (codes + 1)
    if count * (size + 1) <= _MOST_COMBINATIONS:
        occurs = np.bincount(combined, minlength=count * (size + 1)) > 0
        number = np.cumsum(occurs, dtype=np.int32) - 1
        return number[combined], int(occurs.sum())
    present, inverse = np.unique(combined, return_inverse=True)
    return inverse.astype(np.int32), len(present)


def encode_attribute(column: Any, attribute: Attribute, written: SourceFormat) -> NDArray[np.int32]:
    """Return the code of each row, -1 for a row outside the domain."""
    if attribute.edges is not None:
        return _binned(column, attribute, written)
    try:
        dictionary, indices = _distinct(column)
    except pa.ArrowException:
        raise SourceError(
            f"attribute {attribute.name!r}: its column does not hold single values"
        ) from None
    found = np.array([code_of(attribute, cell, written) for cell in dictionary], dtype=np.int32)
    elsewhere = -1 if attribute.other is None else attribute.code(attribute.other)
    found[found < 0] = elsewhere
    # The last place stands for rows without a value.
    found = np.append(found, np.int32(elsewhere))
    codes: NDArray[np.int32] = found[indices]
    return codes


def code_of(attribute: Attribute, cell: object, written: SourceFormat) -> int:
    """Return the code of a cell, or -1; a text that should be a number is read as one is written.

    >>> code_of(Attribute("size", (0.5, 1.5)), "1,5", SourceFormat(decimal=","))
    1
    """
    if isinstance(cell, str) and attribute.kind in ("integer", "number"):
        cell = cell if written.usual_numbers else written.plain(cell)
    return attribute.cell_code(cell)


def numbers(column: Any, metric: Metric, written: SourceFormat) -> NDArray[np.float64]:
    """Return the metric as float64, NaN where it is missing."""
    words = metric.missing_values
    try:
        return _without(_floats(without_words(column, words), written), numbers_among(words))
    except (pa.ArrowException, TypeError):
        raise metric_not_numeric(metric) from None


def without_words(column: Any, words: Sequence[str], *, strip: bool = False) -> Any:
    """Return a column of texts without the words that mean no value; another one as it is.

    Args:
        column: of numbers or dates, that may be texts.
        words: which mean no value, with blanks at their ends or not.
        strip: whether to leave out the blanks at the ends of the others, too.
    """
    column = _decoded(column)
    if not is_text(column.type) or not (words or strip):
        return column
    texts = column.cast(pa.string())
    stripped = pc.utf8_trim(texts, BLANKS)
    is_word = pc.is_in(stripped, value_set=pa.array(words, pa.string()))
    return pc.if_else(is_word, pa.scalar(None, pa.string()), stripped if strip else texts)


def _without(values: NDArray[np.float64], missing: Sequence[float]) -> NDArray[np.float64]:
    values[np.isin(values, missing)] = np.nan
    return values


def _distinct(column: Any) -> tuple[list[object], NDArray[np.int32]]:
    """Return the distinct values and, per row, which one it has; missing points past the end."""
    encoded = _combined(column)
    if not pa.types.is_dictionary(encoded.type):
        encoded = encoded.dictionary_encode()
    dictionary = encoded.dictionary.to_pylist()
    indices = encoded.indices.cast(pa.int32())
    if indices.null_count:
        indices = pc.fill_null(indices, len(dictionary))
    return dictionary, indices.to_numpy(zero_copy_only=False)


def _decoded(column: Any) -> pa.Array:
    column = _combined(column)
    return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column


def _combined(column: Any) -> pa.Array:
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if isinstance(column, pa.ChunkedArray):  # several chunks only where one array cannot hold it
        column = pa.concat_arrays(column.chunks)
    return column


def _floats(column: Any, written: SourceFormat) -> NDArray[np.float64]:
    kind = column.type
    if pa.types.is_dictionary(kind):
        column = _combined(column).dictionary_decode()
        kind = column.type
    if is_text(kind):
        column = _plain_texts(column.cast(pa.string()), written)
    elif not any(is_kind(kind) for is_kind in _NUMERIC):
        raise TypeError
    floats = pc.cast(column, pa.float64(), safe=False)
    values: NDArray[np.float64] = floats.to_numpy(zero_copy_only=False).astype(np.float64)
    return values


def _plain_texts(texts: Any, written: SourceFormat) -> Any:
    """Return numbers in texts as Arrow reads them, and what is blank as missing.

    Raises:
        TypeError: a text is not written like a number.
    """
    if written.usual_numbers:
        texts = pc.utf8_trim_whitespace(texts)
        return pc.if_else(pc.equal(texts, ""), pa.scalar(None, pa.string()), texts)
    blank = pc.equal(pc.utf8_trim(texts, BLANKS), "")
    texts = pc.if_else(blank, pa.scalar(None, pa.string()), texts)
    if not pc.all(pc.or_(matching(texts, [written.number]), pc.is_null(texts))).as_py():
        raise TypeError
    for old, new in written.rewriting:
        texts = pc.replace_substring(texts, old, new)
    return texts


def days(column: Any, written: SourceFormat) -> NDArray[np.float64]:
    """Return dates, moments or texts as days since the year 1970, NaN where there is none.

    Raises:
        TypeError: the column holds something else, or moments that have a time zone.
    """
    column = _decoded(column)
    kind = column.type
    if is_text(kind):
        # Blanks only: engines trim nothing else.
        blank = pc.equal(pc.utf8_trim(column.cast(pa.string()), " "), "")
        column = pc.if_else(blank, pa.scalar(None, pa.string()), column.cast(pa.string()))
        column = _day_texts(column, written.dates)
        if not pc.all(pc.or_(matching(column, [DAY_TEXT]), pc.is_null(column))).as_py():
            raise TypeError
        column = pc.utf8_slice_codeunits(column, 0, 10)
    elif not (is_day(kind) or pa.types.is_null(kind)):
        raise TypeError
    found = pc.cast(column, pa.date32(), safe=False).cast(pa.int32()).cast(pa.float64())
    values: NDArray[np.float64] = found.to_numpy(zero_copy_only=False).astype(np.float64)
    return values


def _day_texts(texts: Any, given: str) -> Any:
    """Return texts with their days as 2019-03-14, as ``date_format.day_text`` does it for one."""
    if not given:
        return texts
    found: Any = pa.scalar("", pa.string())
    for shape in reversed(shapes(given)):  # of several that fit, the first is meant
        cuts = [(place - 1, place - 1 + digits) for place, digits in shape.places]
        year, month, day = (pc.utf8_slice_codeunits(texts, *cut) for cut in cuts)
        _, zero, another = (pa.scalar(zero) for zero in shape.zeros)
        time = pc.utf8_slice_codeunits(texts, shape.length)
        dash, nothing = pa.scalar("-"), pa.scalar("")
        parts = (year, dash, zero, month, dash, another, day, time, nothing)
        has_shape = pc.is_in(pc.utf8_slice_codeunits(time, 0, 1), pa.array(["", " "]))
        for place in shape.marks:
            mark = pc.equal(pc.utf8_slice_codeunits(texts, place - 1, place), shape.mark)
            has_shape = pc.and_(has_shape, mark)
        found = pc.if_else(has_shape, pc.binary_join_element_wise(*parts), found)
    return pc.if_else(pc.is_null(texts), pa.scalar(None, pa.string()), found)


def is_day(kind: Any) -> bool:
    """Tell whether each value of an Arrow type has a day: not where that depends on a zone."""
    return bool(pa.types.is_date(kind) or (pa.types.is_timestamp(kind) and kind.tz is None))


def is_text(kind: Any) -> bool:
    """Tell whether a column of this type holds texts."""
    texts = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
    return any(is_kind(kind) for is_kind in texts)


_NUMERIC = (
    pa.types.is_integer,
    pa.types.is_floating,
    pa.types.is_decimal,
    pa.types.is_null,
)


def _binned(column: Any, attribute: Attribute, written: SourceFormat) -> NDArray[np.int32]:
    words = attribute.missing_values
    column = without_words(column, words, strip=attribute.strip)
    try:
        values = days(column, written) if attribute.days else _floats(column, written)
    except (pa.ArrowException, TypeError):
        raise not_for_bins(attribute, written) from None
    days_or_numbers = map(day_number, days_among(words)) if attribute.days else numbers_among(words)
    values = _without(values, list(days_or_numbers))
    edges = np.array(attribute.thresholds)
    codes = np.searchsorted(edges, values, side="right").astype(np.int32) - 1
    codes[values == edges[-1]] = len(edges) - 2  # the last bin is closed
    codes[np.isnan(values) | (values > edges[-1])] = -1
    return codes


# The refusals, which are the same wherever the rows are.


def check_metric(metric: Metric, *, missing: bool, largest: float) -> None:
    """Refuse a metric that is missing where it must not be, or beyond what can be squared."""
    if metric.missing == "error" and missing:
        raise MetricError(
            f"the metric {metric.column!r} has rows with no value; fill them in, or declare "
            'missing = "drop" under [metric] to leave such rows out'
        )
    if not largest <= LARGEST_METRIC:
        raise MetricError(
            f"the metric {metric.column!r} has values that are infinite or beyond 1e100; "
            "correct or remove them"
        )


def check_outside(attribute: Attribute, *, fits: bool) -> None:
    """Refuse rows outside a domain that must not have any."""
    if attribute.outside != "error" or fits:
        return
    ways = 'declare it, or set outside = "drop" for this attribute in the schema'
    if attribute.edges is None:
        ways = 'declare it, or set outside = "drop" or an `other` value for this attribute'
    raise DomainError(
        f"column {attribute.name!r} has a value outside its declared domain (or none at all): "
        f"{ways}; `pcor schema check` shows the owner what does not fit"
    )


def check_rows(count: int) -> None:
    """Refuse more rows than the arithmetic of scores has room for; once, when a table is made."""
    if count > MOST_ROWS:
        raise TooLarge(
            f"more than {MOST_ROWS:,} rows fit the schema, too many for exact scores; leave out "
            "rows that no context is about, such as those of other years"
        )


def nothing_fits() -> SourceError:
    """Say that there are no rows."""
    return SourceError("no row of the table fits the schema; `pcor schema check` says why")


def unreadable_column(schema: Schema, column: str) -> SourceError:
    """Say that a column must hold numbers, or dates, and does not."""
    if column == schema.metric.column:
        return metric_not_numeric(schema.metric)
    return not_for_bins(schema.attribute(column), schema.source)


def metric_not_numeric(metric: Metric) -> MetricError:
    """Say that the metric is not a number in every row."""
    return MetricError(
        f"the metric {metric.column!r} is not numeric: at least one row holds text or another "
        "kind of value; a metric must be a number in every row. `pcor schema check` shows the "
        "owner which are not"
    )


def not_for_bins(attribute: Attribute, written: SourceFormat) -> SourceError:
    """Say that a binned attribute is not a number, or a date, in every row."""
    if attribute.days:
        return SourceError(
            f"attribute {attribute.name!r} has bins of dates, but its column does not hold a date "
            "in every row: a date, a timestamp without time zone, or a text that begins like "
            f"{written.dates or '2019-03-14'}; correct the column, or say under [source] how dates "
            'are written, such as dates = "DD.MM.YYYY". `pcor schema check` shows the owner which '
            "are not"
        )
    return SourceError(
        f"attribute {attribute.name!r} has declared edges, but its column is not numeric; correct "
        "the column, or declare values instead of edges"
    )
