"""The text of a schema file: TOML, with marks on what the owner has not confirmed yet.

Public: everything here; a draft is for its owner alone until the marks are gone.
"""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from pcor.errors import SchemaError
from pcor.public.toml_text import toml_lines, toml_value

# Marks a line that ``pcor schema init`` read off the data and the owner has not confirmed.
REVIEW = "# REVIEW: read off the data"


def read_text(path: str | Path) -> tuple[dict[str, Any], str]:
    """Return what a schema file declares, and its text.

    Raises:
        SchemaError: it cannot be read, or is not TOML.
    """
    try:
        # Some editors begin a file with a byte order mark.
        text = Path(path).read_text(encoding="utf-8-sig")
        declared = tomllib.loads(text)
    except FileNotFoundError:
        raise SchemaError(f"no schema file {str(path)!r}; `pcor schema init` drafts one") from None
    except (OSError, UnicodeDecodeError):
        raise SchemaError(
            f"the schema file {str(path)!r} cannot be read: it must be a text file in UTF-8 "
            "that you may open"
        ) from None
    except RecursionError:
        raise SchemaError(
            f"the schema file {str(path)!r} is nested too deeply to be a schema"
        ) from None
    except tomllib.TOMLDecodeError as error:
        raise SchemaError(f"the schema file {str(path)!r} is not TOML: {error}") from None
    return declared, text


def written_tables(declared: Mapping[str, Any], unreviewed: Collection[str]) -> str:
    """Return the text of a schema file, with a mark on each table that is to be reviewed."""
    lines = []
    for table, content in declared.items():
        if table == "attributes":
            for name, attribute in content.items():
                marked = f"attributes.{name}" in unreviewed
                lines += ["", _title(f"attributes.{toml_value(name)}", marked)]
                lines += toml_lines(attribute)
        else:
            lines += ["", _title(table, table in unreviewed), *toml_lines(content)]
    return "\n".join(lines[1:]) + "\n"


def _title(table: str, marked: bool) -> str:
    return f"[{table}]{f'  {REVIEW}' if marked else ''}"


def marked_tables(text: str) -> list[str]:
    """Return the tables of a schema file that have a mark somewhere in them."""
    tables, title = [], "schema"
    for line in text.splitlines():
        if line.startswith("["):
            title = line[1 : line.rindex("]")].replace('"', "") if "]" in line else title
        if REVIEW in line and title not in tables:
            tables.append(title)
    return tables
