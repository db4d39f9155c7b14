"""How a context is written: as a sentence, as a JSON object, as the condition of an SQL query.

Public: everything here; nothing reads a table. Whatever is written can be read again and means the
same: a sentence, because values that could be mistaken for its own words stand in quotes; an SQL
condition, because names and texts are quoted and escaped.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pcor.errors import ContextError
from pcor.public.schema import Attribute, Schema, Value

# A value is written bare in a sentence where it cannot be mistaken for the sentence's own words.
# A brace would open a JSON object.
_BARE = re.compile(r"[^\s;\"{]+( [^\s;\"{]+)*")
_RESERVED = re.compile(r"\b(or|is|any)\b", re.IGNORECASE)
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|;|[^\s;"]+')

_EVERY = "/* all declared values */"
_ALL_ROWS = "all rows"
_READS_LIKE = (
    "a context reads like 'job is CEO or Lawyer; any city', "
    'or is a JSON object {"job": ["CEO"], ...}, or bits'
)

# Attribute -> the values it may take, in the order of the domain.
Chosen = Mapping[str, Sequence[Value]]


# -- sentences ------------------------------------------------------------------------------------


def sentence(attributes: Sequence[Attribute], values: Chosen) -> str:
    """Write a context as a sentence."""
    return "; ".join(_clause(attribute, values[attribute.name]) for attribute in attributes)


def rows(attributes: Sequence[Attribute], values: Chosen) -> str:
    """Write whom a context covers, to go on from "among": some rows, or all of them."""
    if all(len(values[attribute.name]) == len(attribute.values) for attribute in attributes):
        return _ALL_ROWS
    return f"rows where {sentence(attributes, values)}"


def read_sentence(schema: Schema, text: str) -> dict[str, list[Value]]:
    """Return what a sentence says of each attribute that it speaks of."""
    if " ".join(text.lower().split()) == _ALL_ROWS:
        return {attribute.name: list(attribute.values) for attribute in schema.attributes}
    chosen: dict[str, list[Value]] = {}
    for name, values in _clauses(schema, text):
        if name in chosen:
            raise ContextError(f"the context speaks of attribute {name!r} twice")
        chosen[name] = values
    if not chosen:  # nothing at all is a mistake; whoever means every row says so
        raise ContextError(_READS_LIKE)
    return chosen


def read_json(text: str) -> dict[str, Any]:
    """Return what a JSON object says of each attribute."""
    try:
        values: dict[str, Any] = json.loads(text)
    except (ValueError, RecursionError):
        raise ContextError(
            'the context is not well-formed JSON such as {"job": ["CEO"], "city": ["Ottawa"]}'
        ) from None
    return values


def _word(value: object) -> str:
    text = str(value)
    bare = _BARE.fullmatch(text) and not _RESERVED.search(text)
    return text if bare else json.dumps(text, ensure_ascii=False)


def _clause(attribute: Attribute, chosen: Sequence[Value]) -> str:
    if len(chosen) == len(attribute.values):
        return f"any {_word(attribute.name)}"
    return f"{_word(attribute.name)} is {' or '.join(_word(v) for v in chosen)}"


def _clauses(schema: Schema, text: str) -> Iterator[tuple[str, list[Value]]]:
    """Split a sentence into its attributes and values, minding quotes."""
    tokens = _TOKEN.findall(text)
    if _TOKEN.sub("", text).strip():
        raise ContextError(
            'a quoted text in the context is not closed; a value in quotes needs one " at each end'
        )
    while tokens:
        stop = tokens.index(";") if ";" in tokens else len(tokens)
        clause, tokens = tokens[:stop], tokens[stop + 1 :]
        words = [token.lower() for token in clause]
        if words[:1] == ["any"]:
            attribute = schema.attribute(_text(clause[1:]))
            yield attribute.name, list(attribute.values)
        elif "is" in words:
            cut = words.index("is")
            attribute = schema.attribute(_text(clause[:cut]))
            yield (
                attribute.name,
                [
                    attribute.values[attribute.code(_text(part))]
                    for part in _split_or(clause[cut + 1 :])
                ],
            )
        else:
            raise ContextError(_READS_LIKE)


def _split_or(tokens: Sequence[str]) -> Iterator[list[str]]:
    part: list[str] = []
    for token in tokens:
        if token.lower() == "or":
            yield part
            part = []
        else:
            part.append(token)
    yield part


def _text(tokens: Sequence[str]) -> str:
    words = []
    for token in tokens:
        if token.startswith('"'):
            try:
                token = json.loads(token)
            except json.JSONDecodeError:
                raise ContextError(
                    'a quoted text in the context is not well formed; write \\" for a quote in it'
                ) from None
        words.append(token)
    return " ".join(words)


# -- SQL ------------------------------------------------------------------------------------------


def where(attributes: Sequence[Attribute], values: Chosen) -> str:
    """Write a context as the condition of an SQL WHERE clause.

    It selects from the raw table the rows that the context covers. So an attribute of which the
    context takes all values is a condition too: rows outside its domain were left out of the
    comparison (``outside = "drop"``), or were not there yet. Only where an ``other`` value stands
    for whatever is not declared are all values all rows, and the condition is TRUE.
    """
    return " AND ".join(_condition(attribute, values[attribute.name]) for attribute in attributes)


def _name(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _literal(value: Value) -> str:
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    return repr(value)


def _listed(column: str, values: Sequence[Value]) -> str:
    if len(values) == 1:
        return f"{column} = {_literal(values[0])}"
    return f"{column} IN ({', '.join(_literal(v) for v in values)})"


def _condition(attribute: Attribute, chosen: Sequence[Value]) -> str:
    column = _name(attribute.name)
    everything = len(chosen) == len(attribute.values)
    if attribute.edges is not None:
        condition = _ranges(column, attribute, chosen)
    elif attribute.other is not None and attribute.other in chosen:
        # The other value stands for everything undeclared, so name what is left out instead.
        left_out = [v for v in attribute.values if v not in chosen]
        if not left_out:
            return f"TRUE {_EVERY}"
        condition = f"({column} IS NULL OR NOT {_listed(column, left_out)})"
    else:
        condition = _listed(column, chosen)
    return f"{condition} {_EVERY}" if everything else condition


def _ranges(column: str, attribute: Attribute, chosen: Sequence[Value]) -> str:
    """Write bins as ranges; bins that touch become one."""
    assert attribute.edges is not None  # noqa: S101 (the caller branches on it)
    codes = [attribute.codes[label] for label in chosen]
    runs: list[list[int]] = []
    for code in codes:
        if runs and runs[-1][1] == code - 1:
            runs[-1][1] = code
        else:
            runs.append([code, code])
    ranges = [_range(column, attribute.edges, first, last) for first, last in runs]
    return ranges[0] if len(ranges) == 1 else f"({' OR '.join(ranges)})"


def _range(column: str, edges: Sequence[float], first: int, last: int) -> str:
    low, high = edges[first], edges[last + 1]
    closed = last == len(edges) - 2
    parts = [] if low == float("-inf") else [f"{column} >= {low!r}"]
    if high != float("inf"):
        parts.append(f"{column} {'<=' if closed else '<'} {high!r}")
    return f"({' AND '.join(parts)})" if parts else f"{column} IS NOT NULL"
