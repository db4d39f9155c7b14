"""Types of JSON Schema, in words: of the certificate, and of the service's OpenAPI document."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from tools.reference import markdown

_LIMITS = {
    "minimum": ">= {}",
    "exclusiveMinimum": "> {}",
    "maximum": "<= {}",
    "exclusiveMaximum": "< {}",
    "maxLength": "at most {} characters",
    "maxItems": "at most {} of them",
}


def told(schema: Mapping[str, Any], declared: Mapping[str, Any] | None = None) -> str:
    """Return a type with its limits; ``declared`` has the types that it may refer to by name.

    >>> told({"type": "array", "items": {"type": ["integer", "string"], "minimum": 1}})
    'array of integer or string (>= 1)'
    """
    if "$ref" in schema:
        members = (declared or {})[name_of(schema)]["properties"]
        return f"object: {', '.join(map(markdown.code, members))}"
    if "anyOf" in schema:
        kinds = [told(one, declared) for one in schema["anyOf"] if one.get("type") != "null"]
        return " or ".join(dict.fromkeys(kinds))
    if "const" in schema:
        return markdown.code(json.dumps(schema["const"]))
    if "enum" in schema:
        return " or ".join(markdown.code(json.dumps(value)) for value in schema["enum"])
    kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    inside = f" of {told(schema['items'], declared)}" if "items" in schema else ""
    return " or ".join(kinds) + inside + _limits(schema)


def name_of(schema: Mapping[str, Any]) -> str:
    """Return the name of the type that a schema refers to."""
    return str(schema["$ref"]).rsplit("/", 1)[1]


def _limits(schema: Mapping[str, Any]) -> str:
    said = [words.format(_number(schema[key])) for key, words in _LIMITS.items() if key in schema]
    if "pattern" in schema:
        said.append(f"like {markdown.code(schema['pattern'])}")
    return f" ({', '.join(said)})" if said else ""


def _number(value: float) -> str:
    return f"{int(value):,}" if value == int(value) else str(value)
