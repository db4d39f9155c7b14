"""The options that several commands share, each with its help text once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pcor.context import Context
from pcor.errors import ContextError, SourceError
from pcor.schema import Schema
from pcor.sources.databases import is_database_url
from pcor.sources.opening import is_files

File = Annotated[Path, typer.Argument(help="The table: a CSV or Parquet file.", metavar="FILE")]
Rows = Annotated[
    str,
    typer.Argument(
        help="The table: a CSV or Parquet file, a pattern or folder of them, or a database table "
        "as postgresql://host/name#table or sqlite://file#table.",
        metavar="FILE",
    ),
]
Memory = Annotated[
    str | None,
    typer.Option("--memory", help="The most memory to use, for files larger than that: 4GiB."),
]
MostPairs = Annotated[
    int,
    typer.Option("--pairs", help="How many (cell, metric) pairs an engine may hand over."),
]
SchemaFile = Annotated[
    Path, typer.Option("--schema", help="The schema file (TOML) that declares the domains.")
]
RecordKey = Annotated[
    str,
    typer.Option("--record", help="The record's id, or its row number from 0 if there is no id."),
]
Epsilon = Annotated[str, typer.Option("--epsilon", help="The total privacy cost, for example 0.2.")]
DetectorName = Annotated[
    str,
    typer.Option(
        "--detector",
        help="lof, grubbs, histogram, tail, neighbourhood or rare_bin; settings after a colon: "
        "lof:k=10,threshold=2.0, neighbourhood:radius=500, 'rare_bin:edges=0|1000|5000'.",
    ),
]
SearchName = Annotated[
    str,
    typer.Option(
        "--search",
        help="auto, direct, widest_first, uniform, random_walk, depth_first or breadth_first.",
    ),
]
Samples = Annotated[
    int | None, typer.Option("--samples", help="How many contexts a sampling search collects.")
]
UtilityName = Annotated[
    str, typer.Option("--utility", help="What to maximise: population or overlap.")
]
OverlapWith = Annotated[
    str | None,
    typer.Option("--overlap-with", help="The context to stay close to, with --utility overlap."),
]
Start = Annotated[
    str | None,
    typer.Option(
        "--start",
        help="A valid context to start from: a sentence ('job is CEO; any city'), JSON or bits.",
    ),
]
Accounting = Annotated[
    str, typer.Option("--accounting", help="tight, or paper to reproduce its numbers.")
]
Selection = Annotated[
    str | None,
    typer.Option(
        "--selection",
        help="The final draw: exponential or permute_and_flip (default where it is the only one).",
    ),
]
Guarantee = Annotated[
    str,
    typer.Option(
        "--guarantee",
        help="ocdp, or dp for everyone but the record, with tail, neighbourhood or rare_bin.",
    ),
]
Delta = Annotated[
    str | None,
    typer.Option("--delta", help="Additive slack, for searches with many paid choices."),
]
Steepness = Annotated[
    int | None,
    typer.Option(
        "--steepness", help="With --guarantee dp: people of utility for one person of margin."
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout.")]


def check_rows(place: str) -> None:
    """Refuse a file that is not there, without looking into it; patterns and URLs may pass."""
    if not is_database_url(place) and not is_files(place, None) and not Path(place).exists():
        raise SourceError(f"no such file: {place!r}")


def context(schema: Schema, flag: str, text: str) -> Context:
    """Read the context that a flag gives; a refusal names the flag."""
    try:
        return Context.parse(schema, text)
    except ContextError as error:
        raise ContextError(f"{flag}: {error}") from None
