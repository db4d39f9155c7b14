"""Fit a schema to data and data to a schema. For the owner's eyes: everything here shows rows.

``draft`` proposes a schema and marks every value that it read off the data: a domain is public
knowledge and has to be the owner's word, not the data's. ``misfits`` says what of the data does
not fit a schema, values and counts included.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from pcor.errors import MetricError, SourceError
from pcor.schema import Attribute, Metric, Schema, Value, toml_value
from pcor.sources.columns import column_names, read_columns
from pcor.sources.encoding import LARGEST_METRIC, encode_attribute, numbers

REVIEW = "# REVIEW: read off the data"

# A numeric column with more distinct values than this is drafted as bins.
MOST_VALUES = 20
_BINS = 5

_HEADER = """\
# A draft by `pcor schema init`, not yet fit for use.
# A domain is public knowledge: it says what could occur, not what does. Every line marked REVIEW
# was read off the data. Check each one, add what can occur but did not, remove what only an error
# can have put there, and then delete the marks.
"""


@dataclass(frozen=True)
class Misfit:
    """One way in which the data does not fit the schema. Private."""

    column: str
    problem: str
    rows: int
    examples: tuple[str, ...] = ()

    def __str__(self) -> str:
        shown = f", for example {', '.join(self.examples)}" if self.examples else ""
        return f"column {self.column!r}: {self.problem} in {self.rows:,} rows{shown}"


def draft(
    source: Any,
    *,
    metric: str,
    attributes: list[str],
    id_column: str | None = None,
    name: str = "",
) -> str:
    """Return the text of a schema file for a table, with every value from the data marked."""
    if not attributes:
        raise SourceError("name at least one attribute (--attributes a,b,c)")
    wanted = [metric, *attributes, *([id_column] if id_column is not None else [])]
    columns = read_columns(source, wanted)
    numbers(columns[metric], Metric(metric))  # refuses a metric that is not numeric
    dataset = name or (Path(source).stem if isinstance(source, str | Path) else "dataset")
    lines = [_HEADER, "[dataset]", f"name = {toml_value(dataset)}"]
    lines += [f"id = {toml_value(id_column)}"] if id_column is not None else []
    lines += ["", "[metric]", f"column = {toml_value(metric)}"]
    for attribute in attributes:
        lines += ["", f"[attributes.{toml_value(attribute)}]", *_domain(columns[attribute])]
    return "\n".join(lines) + "\n"


def misfits(source: Any, schema: Schema) -> list[Misfit]:
    """Return everything that does not fit, for the owner's eyes."""
    present = column_names(source)
    missing = [
        Misfit(c, "the table has no such column", 0) for c in schema.columns if c not in present
    ]
    columns = read_columns(source, [c for c in schema.columns if c in present])
    found = missing
    if schema.metric.column in present:
        found += _metric_misfits(columns[schema.metric.column], schema.metric)
    for attribute in schema.attributes:
        if attribute.name in present:
            found += _attribute_misfits(columns[attribute.name], attribute)
    if schema.id is not None and schema.id in present:
        found += _id_misfits(columns[schema.id].to_pylist(), schema.id)
    return found


def _domain(column: Any) -> list[str]:
    values = _natural(column)
    numeric = all(isinstance(v, int | float) and not isinstance(v, bool) for v in values)
    if numeric and len(values) > MOST_VALUES:
        low, high = float(min(values)), float(max(values))
        edges = [float(f"{edge:.3g}") for edge in np.linspace(low, high, _BINS + 1)]
        edges = sorted({min(edges[0], low), *edges[1:-1], max(edges[-1], high)})
        return ["edges = [", *(f"  {toml_value(edge)},  {REVIEW}" for edge in edges), "]"]
    return ["values = [", *(f"  {toml_value(value)},  {REVIEW}" for value in values), "]"]


def _natural(column: Any) -> list[Value]:
    """Return the distinct values in order, as numbers where every one of them is a number."""
    found = {v for v in column.unique().to_pylist() if v is not None and v == v}
    if not found:
        raise SourceError("an attribute's column has no values at all; leave it out")
    if all(isinstance(v, bool) for v in found):
        return sorted(found)
    for kind in (int, float):
        try:
            read = {kind(v) for v in found if not isinstance(v, bool)}
            if len(read) == len(found) and all(float(v) == kind(v) for v in found):
                return sorted(read)
        except (TypeError, ValueError, OverflowError):
            continue
    return sorted(str(v) for v in found)


def _metric_misfits(column: Any, metric: Metric) -> list[Misfit]:
    try:
        values = numbers(column, metric)
    except MetricError:
        bad = [str(v) for v in column.to_pylist() if v is not None and not _is_number(v)]
        return [Misfit(metric.column, "not a number", len(bad), _examples(bad))]
    missing = int(np.isnan(values).sum())
    huge = int((np.abs(values) > LARGEST_METRIC).sum())
    found = []
    if missing and metric.missing == "error":
        found.append(Misfit(metric.column, "no value", missing))
    if huge:
        found.append(Misfit(metric.column, "infinite or beyond 1e100", huge))
    return found


def _attribute_misfits(column: Any, attribute: Attribute) -> list[Misfit]:
    try:
        codes = encode_attribute(column, attribute)
    except SourceError:
        bad = [str(v) for v in column.to_pylist() if v is not None and not _is_number(v)]
        return [Misfit(attribute.name, "not a number", len(bad), _examples(bad))]
    outside = codes < 0
    if attribute.outside != "error" or not outside.any():
        return []
    values = column.filter(pa.array(outside)).to_pylist()
    named = [str(v) for v in values if v is not None]
    found = []
    if named:
        found.append(
            Misfit(attribute.name, "outside the declared domain", len(named), _examples(named))
        )
    if len(values) > len(named):
        found.append(Misfit(attribute.name, "no value", len(values) - len(named)))
    return found


def _id_misfits(keys: list[object], column: str) -> list[Misfit]:
    repeated = {key: count for key, count in Counter(keys).items() if count > 1}
    if not repeated:
        return []
    examples = tuple(repr(key) for key in list(repeated)[:3])
    return [Misfit(column, "an id that is not unique", sum(repeated.values()), examples)]


def _examples(values: list[str]) -> tuple[str, ...]:
    return tuple(f"{value!r} ({count:,})" for value, count in Counter(values).most_common(5))


def _is_number(value: object) -> bool:
    try:
        float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return False
    return not isinstance(value, bool)
