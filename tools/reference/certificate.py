"""The members of a certificate, from its JSON Schema."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from pcor.releasing.certificate import JSON_SCHEMA
from tools.reference import json_types, markdown


def table() -> str:
    """Return every member with its type and meaning."""
    schema = json.loads(JSON_SCHEMA.read_text(encoding="utf-8"))
    rows = [
        [
            markdown.code(path),
            json_types.told(one),
            "always" if required else "optional",
            one["description"],
        ]
        for path, one, required in members(schema)
    ]
    return markdown.table(["member", "type", "", "meaning"], rows)


def members(
    schema: Mapping[str, Any], above: str = ""
) -> Iterator[tuple[str, Mapping[str, Any], bool]]:
    """Yield every declared member: its path, its schema, whether it is always there."""
    required = schema.get("required", ())
    for name, one in schema.get("properties", {}).items():
        path = f"{above}{name}"
        yield path, one, name in required
        yield from members(one, f"{path}.")
        yield from members(one.get("items", {}), f"{path}[].")
