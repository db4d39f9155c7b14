"""The schema file: its tables and their keys.

The keys are asked of the code that reads the file: a table with an unknown key is refused with the
list of those it allows.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Mapping
from typing import Any

from pcor import Attribute, Metric, Schema
from pcor.errors import SchemaError
from pcor.public import schema
from pcor.public.source_format import SourceFormat
from pcor.public.unit import OVER
from tools.reference import docstrings, markdown, signatures

_MINIMAL: dict[str, Any] = {"metric": {"column": "m"}, "attributes": {"a": {"values": ["x", "y"]}}}


def example() -> str:
    """Return the example of the module's docstring."""
    text = inspect.cleandoc(schema.__doc__ or "").partition("::\n")[2]
    return markdown.block(inspect.cleandoc(text), "toml")


def dataset() -> str:
    """Return the keys of the table about the dataset."""
    return _table("dataset", Schema, docstrings.read(Schema).named["Args"])


def metric() -> str:
    """Return the keys of the table about the metric."""
    return _table("metric", Metric, docstrings.read(Metric).named["Attributes"])


def attribute() -> str:
    """Return the keys of the table about an attribute."""
    return _table("a", Attribute, docstrings.read(Attribute).named["Attributes"])


def source() -> str:
    """Return the keys of the table about how the table is written."""
    return _table("source", SourceFormat, docstrings.read(SourceFormat).named["Attributes"])


def keys(table: str) -> list[str]:
    """Return the keys that a table of the file may have, as the code itself lists them.

    >>> keys("metric")
    ['column', 'missing', 'label', 'unit', 'missing_values']
    """
    wrong = {"no such key": 1}
    where = {"attributes": {"a": wrong}} if table == "a" else {table: wrong}
    return refusal({**_MINIMAL, "dataset": {}, **where}).partition("allowed: ")[2].split(", ")


def refusal(declared: Mapping[str, Any]) -> str:
    """Return the words in which a schema is refused."""
    try:
        Schema.from_dict(declared)
    except SchemaError as error:
        return str(error)
    raise AssertionError("the schema was not refused")


def _table(name: str, owner: type, told: Mapping[str, str]) -> str:
    defaults = {one.name: one for one in signatures.parameters(owner)}
    allowed = {
        "missing": schema.MISSING,
        "outside": schema.OUTSIDE,
        "positions": schema.POSITIONS,
        "over": OVER,
    }
    rows = [
        [
            markdown.code(key),
            _type(owner, key),
            " ".join(markdown.code(f'"{one}"') for one in allowed.get(key, ())),
            _default(defaults[key]),
            told[key],
        ]
        for key in keys(name)
    ]
    return markdown.table(["key", "type", "allowed", "default", "meaning"], rows)


def _type(owner: type, key: str) -> str:
    """Return a field's type in TOML's words."""
    hints = {one.name: signatures.annotation(one.type) for one in dataclasses.fields(owner)}
    hint = hints[key].removesuffix(" | None")
    words = {
        "str": "text",
        "int": "whole number",
        "Value": "text, number or true/false",
        "tuple[Value, ...]": "array of texts, of numbers or of true/false",
        "tuple[float, ...]": "array of numbers",
        "tuple[Edge, ...]": "array of numbers or of dates",
        "Span": "table",
        "Groups": "table of arrays",
        "Aliases": "table of texts",
        "Merge": "table of arrays of texts",
        "bool": "true or false",
        "tuple[str, ...]": "array of texts",
    }
    return words[hint]


def _default(one: inspect.Parameter) -> str:
    given = one.default
    if given is one.empty:
        return "required"
    if given is False:
        return markdown.code("false")
    return "" if given in (None, (), "") else markdown.code(f'"{given}"')
