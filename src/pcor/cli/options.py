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


def _detectors(incomplete: str) -> list[str]:
    from pcor.detectors import detector_names

    return [name for name in detector_names() if name.startswith(incomplete)]


def _searches(incomplete: str) -> list[str]:
    from pcor.search import SEARCHES

    return [name for name in ("auto", *SEARCHES) if name.startswith(incomplete)]


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
DetectorName = Annotated[
    str,
    typer.Option(
        "--detector",
        autocompletion=_detectors,
        help="What calls a record an outlier: lof, grubbs, histogram, tail, neighbourhood or "
        "rare_bin; settings after a colon: lof:k=10,threshold=2.0, neighbourhood:radius=500, "
        "'rare_bin:edges=0|1000|5000'.",
    ),
]
SearchName = Annotated[
    str,
    typer.Option(
        "--search",
        autocompletion=_searches,
        help="How contexts are looked for: auto, direct, widest_first, uniform, random_walk, "
        "depth_first or breadth_first.",
    ),
]
Samples = Annotated[
    int | None,
    typer.Option(
        "--samples",
        help="How many contexts a sampling search collects before the final draw: at most a "
        "million, 100,000 for random_walk, 10,000 for depth_first and breadth_first.",
    ),
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
    str,
    typer.Option(
        "--accounting",
        help="How the cost is worked out: tight, or paper to reproduce the paper's numbers.",
    ),
]
Selection = Annotated[
    str | None,
    typer.Option(
        "--selection",
        help="The mechanism of every paid draw: permute_and_flip, or exponential (the default with "
        "--delta or paper accounting).",
    ),
]
Guarantee = Annotated[
    str,
    typer.Option(
        "--guarantee",
        help="ocdp (relaxed), or dp, which covers everyone but the record and needs tail, "
        "neighbourhood or rare_bin.",
    ),
]
Delta = Annotated[
    str | None,
    typer.Option(
        "--delta",
        help="A small chance, such as 1e-6, that buys depth_first and breadth_first more accuracy.",
    ),
]
Limit = Annotated[
    int | None,
    typer.Option(
        "--limit",
        help="The largest space of contexts to draw from directly: 2^24 by default, 2^22 for auto. "
        "Beyond 2^24 time and memory depend on the rows.",
    ),
]
Steepness = Annotated[
    int | None,
    typer.Option(
        "--steepness",
        help="With --guarantee dp: how much being an outlier counts against population; by default "
        "chosen for you.",
    ),
]
Full = Annotated[
    bool,
    typer.Option("--full", help="Also print who is not protected, and what each step costs."),
]


def check_rows(place: str) -> None:
    """Refuse a file that is not there, without looking into it; patterns and URLs may pass."""
    from pcor.rows.engines.databases import is_database_url  # not for the help of a command
    from pcor.rows.engines.opening import is_files

    if not is_database_url(place) and not is_files(place, None) and not Path(place).exists():
        raise SourceError(f"no such file: {place!r}; check the name, and the folder you are in")


def context(schema: Schema, flag: str, text: str) -> Context:
    """Read the context that a flag gives; a refusal names the flag."""
    from pcor.public.context import Context

    try:
        return Context.parse(schema, text)
    except ContextError as error:
        raise ContextError(f"{flag}: {error}") from None
