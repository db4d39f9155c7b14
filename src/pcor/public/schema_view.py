"""How a schema is shown: one line, and a table for notebooks. Public: everything a schema says."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from pcor.errors import counted

if TYPE_CHECKING:
    from pcor.public.domain import Attribute
    from pcor.public.schema import Schema

_SHOWN = 12


def one_line(schema: Schema) -> str:
    """Return what a schema declares, in a line.

    >>> from pcor import Schema
    >>> Schema(metric="pay", attributes={"job": ["clerk", "cook"], "year": [2019, 2020]})
    <Schema 'dataset': pay by job (2), year (2); 4 contexts can contain a record>
    """
    attributes = ", ".join(f"{a.name} ({len(a.values)})" for a in schema.attributes)
    draft = "DRAFT, " if schema.unreviewed else ""
    return (
        f"<{draft}Schema {schema.name!r}: {schema.metric.column} by {attributes}; "
        f"{counted(schema.most_contexts)} contexts can contain a record{_people(schema)}>"
    )


def as_html(schema: Schema) -> str:
    """Return a table of the attributes, each with its values and what contexts have of them."""
    head = "<tr><th>attribute</th><th>values</th><th>a context has</th></tr>"
    rows = "".join(_row(a, f"attributes.{a.name}" in schema.unreviewed) for a in schema.attributes)
    draft = "<p><strong>A draft</strong>: what is marked was read off the data.</p>"
    return (
        f"<p>{escape(schema.name)}: {escape(schema.metric.column)}; "
        f"{counted(schema.most_contexts)} contexts can contain a record"
        f"{escape(_people(schema))}</p>"
        f"{draft if schema.unreviewed else ''}<table>{head}{rows}</table>"
    )


def _people(schema: Schema) -> str:
    unit = schema.unit
    return f"; up to {unit.rows:,} rows of a person, by {unit.person}" if unit.is_person else ""


def _row(attribute: Attribute, marked: bool) -> str:
    values = [str(value) for value in attribute.values[:_SHOWN]]
    more = len(attribute.values) - len(values)
    listed = ", ".join(values) + (f" and {more:,} more" if more else "")
    family = {"any": "any set of them", "range": "an unbroken run", "one": "one, or all"}
    kind = "a group, one, or all" if attribute.groups else family[attribute.contexts]
    name = f"{attribute.name} (to review)" if marked else attribute.name
    return f"<tr><td>{escape(name)}</td><td>{escape(listed)}</td><td>{kind}</td></tr>"
