"""Write what a schema declares as TOML: values, and the lines of a table.

Public: a way of writing. The standard library reads TOML and does not write it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence

_WIDTH = 100
_BARE = re.compile(r"[A-Za-z0-9_-]+", re.ASCII)


def toml_value(value: object) -> str:
    """Write one value. A JSON string is a TOML basic string but for the DEL character.

    >>> toml_value({"by": "year", "a b": [1, True]})
    '{ by = "year", "a b" = [1, true] }'
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{_key(k)} = {toml_value(v)}" for k, v in value.items()) + " }"
    if isinstance(value, list):
        return f"[{', '.join(map(toml_value, value))}]"
    return repr(value)


def toml_lines(content: Mapping[str, object]) -> list[str]:
    """Write the lines of a table; a long list has as many as it takes."""
    lines = []
    for key, value in content.items():
        line = f"{_key(key)} = {toml_value(value)}"
        lines += _wrapped(key, value) if isinstance(value, list) and len(line) > _WIDTH else [line]
    return lines


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else toml_value(name)


def _wrapped(key: str, values: Sequence[object]) -> list[str]:
    lines = [f"{_key(key)} = ["]
    for value in map(toml_value, values):
        if lines[-1].startswith("  ") and len(lines[-1]) + len(value) + 2 <= _WIDTH:
            lines[-1] += f" {value},"
        else:
            lines.append(f"  {value},")
    return [*lines, "]"]
