"""The options that several commands share, each with its help text once."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pcor.cli.output import AsJson as AsJson
from pcor.errors import ContextError, SourceError

if TYPE_CHECKING:
    from pcor.public.context import Context
    from pcor.public.schema import Schema


File = Annotated[
    Path, typer.Argument(help="The table: a CSV, Parquet or Excel file.", metavar="FILE")
]
RowsFile = Annotated[
    str,
    typer.Argument(
        help="The table: a CSV, Parquet or Excel file, a pattern or folder of CSV or Parquet "
        "files, or a database table as postgresql://host/name#table or sqlite://file#table.",
        metavar="FILE",
    ),
]
Memory = Annotated[
    str | None,
    typer.Option(
        "--memory", help="The most memory to use, such as 4GiB, for files larger than that."
    ),
]
MostPairs = Annotated[
    int,
    typer.Option(
        "--pairs",
        help="With folders and databases: how many distinct values may be read into memory.",
    ),
]
SchemaFile = Annotated[
    Path, typer.Option("--schema", help="The schema file (TOML): metric, attributes and domains.")
]
RecordKey = Annotated[
    str,
    typer.Option("--record", help="The record's id, or its row number from 0 if there is no id."),
]
Epsilon = Annotated[
    str,
    typer.Option(
        "--epsilon",
        help="The total privacy cost, for example 0.2; smaller protects more.",
    ),
]
Force = Annotated[bool, typer.Option("--force", help="Replace an existing file.")]

Full = Annotated[
    bool,
    typer.Option("--full", help="Also print who is not protected, and what each step costs."),
]


def check_rows(place: str) -> None:
    """Refuse a file that is not there, without looking into it; patterns and URLs may pass."""
    from pcor.rows.engines.databases import is_database_url  # not for the help of a command
    from pcor.rows.engines.source import is_files

    if not is_database_url(place) and not is_files(place, None) and not Path(place).exists():
        raise SourceError(f"no such file: {place!r}; check the name, and the folder you are in")


def context(schema: Schema, flag: str, text: str) -> Context:
    """Read the context that a flag gives; a refusal names the flag."""
    from pcor.public.context import Context

    try:
        return Context.parse(schema, text)
    except ContextError as error:
        raise ContextError(f"{flag}: {error}") from None
