"""The page of the schema file: its tables and keys, and what is refused.

The keys are asked of the code that reads the file: a table with an unknown key is refused with the
list of those it allows.
"""

from __future__ import annotations

import dataclasses
import inspect
import tomllib
from collections.abc import Mapping
from typing import Any

from pcor import Attribute, Metric, Schema
from pcor.errors import SchemaError
from pcor.public import schema
from tools.reference import docstrings, markdown, signatures

_INTRO = """
A schema file declares what is public about a table before anybody looks at its rows: the metric,
the context attributes with their whole domains in order, and what to do with rows that do not fit.
It is TOML, read by `Schema.from_file` and written by `Schema.to_toml`; `pcor schema init` drafts
one. How to declare domains well: [declare domains](../how-to/domains.md).
"""

_DATASET = "Optional. Says what the table is called, and which column names a record."
_METRIC = "Required."
_ATTRIBUTE = """
One table for each context attribute, at least one; its name is the column. The order of attributes
and values is the order of a context's bits. Either `values` or `edges` is required.
"""

_MINIMAL: dict[str, Any] = {"metric": {"column": "m"}, "attributes": {"a": {"values": ["x", "y"]}}}

# Each is refused; the page shows with which words.
_WRONG = (
    '[metric]\ncolumn = "pay"',
    '[metric]\ncolumn = "pay"\nmissing = "skip"\n[attributes.job]\nvalues = ["a"]',
    '[metric]\ncolumn = "pay"\n[attributes.job]\nvalues = []',
    '[metric]\ncolumn = "pay"\n[attributes.job]\nvalues = ["a", "a"]',
    '[metric]\ncolumn = "pay"\n[attributes.job]\nvalues = ["a", 1]',
    '[metric]\ncolumn = "pay"\n[attributes.job]\nvalue = ["a"]',
    '[metric]\ncolumn = "pay"\n[attributes.job]\nvalues = ["a"]\nother = "b"',
    '[metric]\ncolumn = "pay"\n[attributes.age]\nedges = [18, 65, 25]',
    '[metric]\ncolumn = "pay"\n[attributes.age]\nedges = [18, 65]\nother = "rest"',
    '[metric]\ncolumn = "pay"\n[attributes.job]\nvalues = ["a", "b"]\nshares = [1]',
    '[metric]\ncolumn = "pay"\n[attributes.pay]\nedges = [0, 1]',
    '[metric]\ncolumn = "pay"\n[dataset]\nid = "key"\npositions = "public"\n'
    '[attributes.job]\nvalues = ["a"]',
    '[metric]\ncolumn = "pay"\n[attributes.job]\nvalues = ["a"]\n[dataset]\nid_type = "integer"',
    '[metric]\ncolumn = "pay"\n[attributes.a]\nvalues = [1]\n[dataset]\nid = "x"\nid_pattern = "["',
)


def page() -> str:
    """Return the page."""
    attribute = docstrings.read(Attribute).named["Attributes"]
    metric = docstrings.read(Metric).named["Attributes"]
    dataset = docstrings.read(Schema).named["Args"]
    named = {key: dataset[key] for key in keys("dataset")}
    return markdown.page(
        "Schema file",
        _INTRO,
        markdown.block(example(), "toml"),
        markdown.section(2, "[dataset]", _DATASET, _table("dataset", Schema, named)),
        markdown.section(2, "[metric]", _METRIC, _table("metric", Metric, metric)),
        markdown.section(2, "[attributes.NAME]", _ATTRIBUTE, _table("a", Attribute, attribute)),
        markdown.section(2, "What is refused", _refusals()),
    )


def example() -> str:
    """Return the example of the module's docstring."""
    text = inspect.cleandoc(schema.__doc__ or "").partition("::\n")[2]
    return inspect.cleandoc(text)


def keys(table: str) -> list[str]:
    """Return the keys that a table of the file may have, as the code itself lists them.

    >>> keys("metric")
    ['column', 'missing', 'label', 'unit']
    """
    declared = {**_MINIMAL, "dataset": {}}
    if table == "a":
        declared["attributes"] = {"a": {"no such key": 1}}
    else:
        declared[table] = {"no such key": 1}
    return refusal(declared).partition("allowed: ")[2].split(", ")


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
        "Value": "text, number or true/false",
        "tuple[Value, ...]": "array of texts, of numbers or of true/false",
        "tuple[float, ...]": "array of numbers",
        "tuple[str, ...]": "array of texts",
    }
    return words[hint]


def _default(one: inspect.Parameter) -> str:
    given = one.default
    if given is one.empty:
        return "required"
    return "" if given in (None, ()) else markdown.code(f'"{given}"')


def _told(text: str) -> list[str]:
    """Return the lines that matter: the metric's own are the same in most."""
    lines = text.splitlines()
    return lines[2:] or lines


def _refusals() -> str:
    rows = [
        [markdown.code("; ".join(_told(text))), refusal(tomllib.loads(text))] for text in _WRONG
    ]
    return markdown.table(["written", "said"], rows)
