r"""A schema as the fields of a form, and the fields as a schema again: the one place for both.

Private: what a draft read off the rows, which is for the owner's eyes. The form is all there is of
it; nothing is kept between two requests. Each attribute has a number, and its fields begin with it:
``0.name``, ``0.values``. Lists have one entry on each line; an entry that begins or ends with a
blank, or has a line break in it, is written in quotes, as TOML writes texts.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any

from pcor.audit.schema_draft import SchemaDraft
from pcor.errors import SchemaError
from pcor.public.domain import Attribute, Metric, Value
from pcor.public.schema import Schema
from pcor.public.source_format import SourceFormat
from pcor.public.toml_text import toml_value

Form = Mapping[str, str]

# What a ticked box sends.
TICKED = "yes"

# Each way to declare a domain, each type of values, and what contexts may have of them.
KINDS = {"values": "a list of values", "edges": "bins of numbers or dates", "date": "dates"}
TYPES = {"text": "words", "number": "numbers", "boolean": "true and false"}
FAMILIES = {"one": "one value, or all", "range": "an unbroken run", "any": "any set of them"}
OUTSIDE = {
    "error": "are refused",
    "drop": "are left out",
    "other": "count as another value",
}
OVER = {"error": "are refused", "keep": "have only so many counted"}
MISSING = {"error": "are refused", "drop": "are left out"}

# Marks that a field would lose, since forms are read without blanks at their ends.
_WORDS_FOR_MARKS = {"\t": "tab", " ": "space"}
# What declares the grid of a metric.
GRID = ("low", "high", "step")

_WHOLE = re.compile(r"[-+]?\d+", re.ASCII)
_ALIAS = re.compile(r'("(?:[^"\\]|\\.)*"|.*?)\s*=\s*(.*)')


class FormRefused(Exception):
    """The fields declare no schema.

    Args:
        said: for each field, or part of the form, what is wrong with it; "" is the whole.
    """

    def __init__(self, said: Mapping[str, str]) -> None:
        super().__init__("; ".join(said.values()))
        self.said = dict(said)


class _FieldRefused(Exception):
    """One field cannot be read.

    Args:
        field: its name, without the number of its attribute.
        said: what is wrong with it.
    """

    def __init__(self, field: str, said: str) -> None:
        super().__init__(said)
        self.field = field


# -- a draft as fields ----------------------------------------------------------------------------


def draft_fields(drafted: SchemaDraft, source: str) -> dict[str, str]:
    """Return the form for a draft of a file; what was read off the data waits to be reviewed."""
    schema, noticed = drafted.schema, dict(drafted.noticed)
    metric = schema.metric
    fields = {
        "source": source,
        "name": schema.name,
        "id": "" if schema.id is None else entry(schema.id),
        "person": "" if schema.person is None else entry(schema.person),
        "rows_per_person": "" if schema.rows_per_person is None else str(schema.rows_per_person),
        "over": schema.over,
        "detector": str(schema.release.get("detector", "")),
        "metric.column": entry(metric.column),
        "metric.missing": metric.missing,
        "metric.missing_values": _lines(metric.missing_values),
        **{f"metric.{key}": _said_number(getattr(metric, key)) for key in GRID},
        "metric.noticed": "\n".join(noticed.pop(metric.column, ())),
        "contexts.max_clauses": "" if schema.max_clauses is None else str(schema.max_clauses),
        "contexts.noticed": "\n".join(noticed.pop("", ())),
    }
    written = schema.source.to_dict()
    for key, _ in SourceFormat.options():
        fields[f"written.{key}"] = _WORDS_FOR_MARKS.get(mark := written.get(key, ""), mark)
    parts = {"metric": "metric", "contexts": "contexts", "source": "written"}
    fields |= {f"{parts[one]}.marked": TICKED for one in schema.unreviewed if one in parts}
    fields |= added_fields({}, drafted)
    left = [(name, said) for name, said in noticed.items() if name not in schema.domains]
    for place, (name, said) in enumerate(left):
        fields |= {f"left.{place}.name": entry(name), f"left.{place}.noticed": "\n".join(said)}
    return fields


def added_fields(form: Form, drafted: SchemaDraft) -> dict[str, str]:
    """Return the form with the attributes of another draft of the same file."""
    schema, fields = drafted.schema, dict(form)
    first = max(map(int, numbers(form)), default=-1) + 1
    for number, attribute in enumerate(schema.attributes, first):
        own = _attribute_fields(attribute) | {"included": TICKED}
        own["noticed"] = "\n".join(drafted.noticed.get(attribute.name, ()))
        if f"attributes.{attribute.name}" in schema.unreviewed:
            own["marked"] = TICKED
        fields |= {f"{number}.{key}": text for key, text in own.items()}
    for place, name in left_out(form):
        if text_of(name) in schema.domains:
            for key in ("name", "noticed", "add"):
                fields.pop(f"left.{place}.{key}", None)
    return fields


def _attribute_fields(attribute: Attribute) -> dict[str, str]:
    declared = attribute.to_dict()
    kind = next(kind for kind in KINDS if kind in declared)
    values, span = declared.get("values", []), declared.get("date", {})
    types = {"integer": "number", "number": "number", "boolean": "boolean"}
    aliases = (" = ".join(entry(text, "=") for text in pair) for pair in attribute.aliases)
    return {
        "name": entry(attribute.name),
        "kind": kind,
        "type": types.get(attribute.kind, "text"),
        "values": _lines(values),
        "edges": ", ".join(map(str, declared.get("edges", []))),
        "by": span.get("by", "year"),
        "from": span.get("from", ""),
        "to": span.get("to", ""),
        "contexts": attribute.contexts,
        "outside": attribute.outside,
        "other": "" if attribute.other is None else entry(attribute.other),
        "strip": TICKED if attribute.strip else "",
        "ignore_case": TICKED if attribute.ignore_case else "",
        "aliases": "\n".join(aliases),
        "missing_values": _lines(attribute.missing_values),
    }


def _lines(values: Iterable[Value]) -> str:
    return "\n".join(map(entry, values))


def entry(value: Value, signs: str = "") -> str:
    """Write a value as an entry, in quotes where it could be read as something else.

    Args:
        value: a text, a number, true or false.
        signs: those that an entry without quotes may not have.

    >>> entry("north"), entry("north "), entry(True)
    ('north', '"north "', 'true')
    """
    if not isinstance(value, str):
        return toml_value(value)
    plain = value == value.strip() and value.isprintable() and not value.startswith('"')
    return value if value and plain and not set(value) & set(signs) else toml_value(value)


# -- fields as a schema ---------------------------------------------------------------------------


def numbers(form: Form) -> list[str]:
    """Return the numbers of the attributes in a form, in their order."""
    found = (re.fullmatch(r"(\d{1,6})\.name", field, re.ASCII) for field in form)
    return sorted({match[1] for match in found if match}, key=int)


def left_out(form: Form) -> list[tuple[str, str]]:
    """Return the columns that the draft left out, each with its place."""
    found = ((re.fullmatch(r"left\.(\d{1,6})\.name", field, re.ASCII), field) for field in form)
    places = sorted((int(match[1]), form[field]) for match, field in found if match)
    return [(str(place), name) for place, name in places]


def ticked_columns(form: Form) -> list[str]:
    """Return the columns that are ticked where a file was chosen, in their order there."""
    found = ((re.fullmatch(r"column\.(\d{1,6})", field, re.ASCII), field) for field in form)
    return [text_of(name) for _, name in sorted((int(m[1]), form[f]) for m, f in found if m)]


def schema_of(form: Form) -> Schema:
    """Return what the fields declare; a part that nobody has ticked as reviewed is marked.

    Raises:
        FormRefused: some of them are wrong.
    """
    said: dict[str, str] = {}
    metric: dict[str, Any] = {}
    attributes: dict[str, Any] = {}
    included = [number for number in numbers(form) if form.get(f"{number}.included")]
    try:
        metric = _metric(form)
        Metric(**metric)
    except SchemaError as error:
        said["metric"] = str(error)
    for number in included:
        own = _fields_of(form, number)
        try:
            name = text_of(own["name"])
            attributes[name] = _attribute(own)
            # Alone, beside some other metric: what is wrong with it is said where it stands.
            Schema(f"not {name}", {name: attributes[name]})
        except SchemaError as error:
            said[number] = str(error)
        except _FieldRefused as error:
            said[f"{number}.{error.field}"] = str(error)
    written = _written(form, said)
    limits = _limits(form, said)
    if not included:
        said[""] = "a context speaks of at least one attribute; include one"
    if said:
        raise FormRefused(said)
    declared = {
        "dataset": _dataset(form),
        "metric": metric,
        "attributes": attributes,
        "contexts": limits,
        "release": {"detector": form["detector"]} if form.get("detector") else {},
        "source": written,
    }
    try:
        return Schema.from_dict(declared).marked(unreviewed(form).values())
    except SchemaError as error:
        raise FormRefused({"": str(error)}) from None


def unreviewed(form: Form) -> dict[str, str]:
    """Return the parts that still wait for the owner: in the form, and in a schema file."""
    tables = {"metric": "metric", "contexts": "contexts", "written": "source"}
    for number in numbers(form):
        if form.get(f"{number}.included"):
            tables[number] = f"attributes.{text_of(form[f'{number}.name'])}"
    return {
        part: table
        for part, table in tables.items()
        if form.get(f"{part}.marked") and not form.get(f"{part}.reviewed")
    }


def written_of(form: Form) -> dict[str, str]:
    """Return what the form says of how the file is written, as ``[source]`` has it."""
    keys = (key for key, _ in SourceFormat.options())
    return {key: form[f"written.{key}"] for key in keys if form.get(f"written.{key}")}


def _fields_of(form: Form, number: str) -> dict[str, str]:
    begins = f"{number}."
    return {f.removeprefix(begins): text for f, text in form.items() if f.startswith(begins)}


def _dataset(form: Form) -> dict[str, Any]:
    named: dict[str, Any] = {"name": form["name"]} if form.get("name") else {}
    named |= {key: text_of(form[key]) for key in ("id", "person") if form.get(key)}
    if most := form.get("rows_per_person"):
        # What is no number is refused by the schema, in its own words.
        named["rows_per_person"] = int(most) if most.isascii() and most.isdigit() else most
    if form.get("person") and form.get("over"):
        named["over"] = form["over"]
    return named


def _metric(form: Form) -> dict[str, Any]:
    declared: dict[str, Any] = {
        "column": text_of(form.get("metric.column", "")),
        "missing": form.get("metric.missing", "error"),
    }
    if words := list(map(text_of, _split(form.get("metric.missing_values", "")))):
        declared["missing_values"] = words
    grid = {key: form.get(f"metric.{key}", "") for key in GRID}
    return declared | {key: _number_or_text(text) for key, text in grid.items() if text}


def _said_number(number: float | None) -> str:
    return "" if number is None else repr(number)


def _number_or_text(text: str) -> float | str:
    """Return a number; whatever is none is refused by the schema, in its own words."""
    try:
        return _number(text)
    except ValueError:
        return text


def _written(form: Form, said: dict[str, str]) -> dict[str, str]:
    declared = written_of(form)
    try:
        SourceFormat(**declared)
    except SchemaError as error:
        said["written"] = str(error)
    return declared


def _limits(form: Form, said: dict[str, str]) -> dict[str, int]:
    text = form.get("contexts.max_clauses", "")
    if not text:
        return {}
    if not _WHOLE.fullmatch(text) or len(text) > 9:
        said["contexts.max_clauses"] = "give a whole number, or leave this empty for no limit"
        return {}
    return {"max_clauses": int(text)}


def _attribute(own: Form) -> dict[str, Any]:
    """Return the table of one attribute in a schema file."""
    declared = _domain(own)
    if own.get("contexts") in FAMILIES and own["contexts"] != "any":
        declared["contexts"] = own["contexts"]
    if own.get("outside") == "drop":
        declared["outside"] = "drop"
    if own.get("outside") == "other":
        if not own.get("other"):
            raise _FieldRefused("other", "name the value that such rows count as")
        declared["other"] = _value("other", own["other"], own.get("type", "text"))
    declared |= {rule: True for rule in ("strip", "ignore_case") if own.get(rule)}
    if aliases := dict(_aliases(own.get("aliases", ""))):
        declared["aliases"] = aliases
    if words := list(map(text_of, _split(own.get("missing_values", "")))):
        declared["missing_values"] = words
    return declared


def _domain(own: Form) -> dict[str, Any]:
    kind = own.get("kind", "values")
    if kind == "edges":
        texts = [text for text in re.split(r"[,;\s]+", own.get("edges", "")) if text]
        return {"edges": [_edge(text) for text in texts]}
    if kind == "date":
        for key in ("from", "to"):
            if not own.get(key):
                raise _FieldRefused(key, "give a day, such as 2019-03-14")
        return {"date": {key: own.get(key, "") for key in ("by", "from", "to")}}
    kind = own.get("type", "text")
    values = [_value("values", line, kind) for line in _split(own.get("values", ""))]
    if not values:
        raise _FieldRefused("values", "declare what can occur, one value on each line")
    return {"values": values}


def _edge(text: str) -> int | float | str:
    """Read an edge; a text that is no number may be a date, which the schema checks."""
    try:
        return _number(text)
    except ValueError:
        if re.match(r"\d{4}-", text, re.ASCII):
            return text
        said = f"{text!r} is neither a number nor a date such as 2019-03-14"
        raise _FieldRefused("edges", said) from None


def _number(text: str) -> int | float:
    return int(text) if _WHOLE.fullmatch(text) else float(text)


def _split(lines: str) -> list[str]:
    """Return the entries on lines; not by ``splitlines``, which takes other signs for ends too."""
    return [line.strip() for line in lines.split("\n") if line.strip()]


def _value(field: str, text: str, kind: str) -> Value:
    """Read an entry as a value of a type."""
    if kind == "boolean":
        if text not in ("true", "false"):
            raise _FieldRefused(field, f"{text!r} is neither true nor false; write words as words")
        return text == "true"
    if kind == "number":
        try:
            return _number(text)
        except ValueError:
            said = f"{text!r} is not a number; say that the values are words if they are"
            raise _FieldRefused(field, said) from None
    return text_of(text)


def text_of(written: str) -> str:
    """Read what ``entry`` wrote of a text; quotes that hold no such text are a part of it.

    >>> text_of(entry("north ")), text_of('"so" and "so"')
    ('north ', '"so" and "so"')
    """
    if len(written) > 1 and written[0] == written[-1] == '"':
        with suppress(ValueError):
            return str(json.loads(written))
    return written


def _aliases(lines: str) -> Iterator[tuple[str, str]]:
    for line in _split(lines):
        match = _ALIAS.fullmatch(line)
        if match is None or not match[1] or not match[2]:
            raise _FieldRefused("aliases", f"write each as: spelling = value; {line!r} is not")
        yield text_of(match[1]), text_of(match[2])
