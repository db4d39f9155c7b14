"""Sentences and conditions as they were written before words of the schema; kept as they were.

Ledgers hold certificates with these texts, and know requests by the sentences in them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from pcor import Context
from pcor.public.schema import Attribute, Value

_BARE = re.compile(r"[^\s;\"{]+( [^\s;\"{]+)*")
_RESERVED = re.compile(r"\b(or|is|any)\b", re.IGNORECASE)
_EVERY = "/* all declared values */"


def old_certificate(certificate: dict[str, Any], context: Context) -> dict[str, Any]:
    """Return a certificate with the words that it had."""
    start, found, _ = certificate["sentence"].partition(" among ")
    end = " [" + certificate["sentence"].partition(" [")[2]
    assert found
    assert end.startswith(" [NOT PRIVATE")  # all are seeded
    shown = certificate.get("metric_value")
    if shown is not None:
        start = re.sub(r"^((?:Record|If record) \S+) \([^()]*\)", r"\1", start)
        start = re.sub(r"is unusually (high|low) in", "is an outlier by", start)
    rest = {key: value for key, value in certificate.items() if key != "metric_value"}
    words = {"sentence": f"{start} among {old_rows(context)}.{end}", "where": old_where(context)}
    return rest | words


def old_sentence(context: Context) -> str:
    """Return the sentence that speaks of every attribute."""
    return "; ".join(
        _clause(attribute, context.values[attribute.name])
        for attribute in context.schema.attributes
    )


def old_rows(context: Context) -> str:
    """Return whom a context covers."""
    full = context == Context.full(context.schema)
    return "all rows" if full else f"rows where {old_sentence(context)}"


def _clause(attribute: Attribute, chosen: Sequence[Value]) -> str:
    if len(chosen) == len(attribute.values):
        return f"any {_word(attribute.name)}"
    return f"{_word(attribute.name)} is {' or '.join(_word(v) for v in chosen)}"


def _word(value: object) -> str:
    text = str(value)
    bare = _BARE.fullmatch(text) and not _RESERVED.search(text)
    return text if bare else json.dumps(text, ensure_ascii=False)


def old_where(context: Context) -> str:
    """Return the condition that lists every value."""
    return " AND ".join(
        _condition(attribute, context.values[attribute.name])
        for attribute in context.schema.attributes
    )


def _condition(attribute: Attribute, chosen: Sequence[Value]) -> str:
    assert attribute.other is None  # as in the schema of the two hundred requests
    column = f'"{attribute.name}"'
    if attribute.edges is None:
        condition = _listed(column, chosen)
    else:
        condition = _ranges(column, attribute, chosen)
    everything = len(chosen) == len(attribute.values)
    return f"{condition} {_EVERY}" if everything else condition


def _listed(column: str, values: Sequence[Value]) -> str:
    written = [
        "'" + value.replace("'", "''") + "'" if isinstance(value, str) else repr(value)
        for value in values
    ]
    return (
        f"{column} = {written[0]}" if len(written) == 1 else f"{column} IN ({', '.join(written)})"
    )


def _ranges(column: str, attribute: Attribute, chosen: Sequence[Value]) -> str:
    runs: list[list[int]] = []
    for code in (attribute.codes[label] for label in chosen):
        if runs and runs[-1][1] == code - 1:
            runs[-1][1] = code
        else:
            runs.append([code, code])
    edges = [edge for edge in attribute.edges or () if isinstance(edge, int | float)]
    ranges = [_range(column, edges, first, last) for first, last in runs]
    return ranges[0] if len(ranges) == 1 else f"({' OR '.join(ranges)})"


def _range(column: str, edges: Sequence[float], first: int, last: int) -> str:
    low, high = edges[first], edges[last + 1]
    closed = last == len(edges) - 2
    parts = [] if low == float("-inf") else [f"{column} >= {low!r}"]
    if high != float("inf"):
        parts.append(f"{column} {'<=' if closed else '<'} {high!r}")
    return f"({' AND '.join(parts)})" if parts else f"{column} IS NOT NULL"
