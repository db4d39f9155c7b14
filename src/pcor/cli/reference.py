"""``pcor reference``: every context with its outliers in one file, for the owner only."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import pcor
from pcor.audit.reference_file import (
    REFERENCE_LIMIT,
    check_reference_size,
    expected_seconds,
    write_reference,
)
from pcor.cli import options
from pcor.cli.output import OWNER_ONLY, guarded, progress_bar, say, say_json, tell, waiting
from pcor.cli.setting_flags import DetectorName
from pcor.public.schema import Schema
from pcor.releasing.estimate import duration
from pcor.search.every_context import count_contexts
from pcor.support.files import check_target


@guarded
def reference(
    file: options.File,
    schema: options.SchemaFile,
    out: Annotated[Path, typer.Option("--out", help="The .parquet file to write.")],
    detector: DetectorName = "lof",
    limit: Annotated[
        int, typer.Option("--limit", help="The largest number of contexts to list.")
    ] = REFERENCE_LIMIT,
    as_json: options.AsJson = False,
) -> None:
    """OWNER ONLY: write every context with its population and all of its outliers.

    Finished blocks are kept in a folder beside the file until it is complete: interrupted, the
    same command goes on where it was.

    Example: pcor reference claims.csv --schema claims.toml --out reference.parquet
    """
    check_target(out, (".parquet",))
    declared = Schema.from_file(schema, draft=True)
    check_reference_size(declared, limit)
    with waiting("reading the table", quiet=as_json):
        table = pcor.Table(file, declared)
    tell(
        f"{count_contexts(declared):,} contexts, about "
        f"{duration(expected_seconds(table, detector))}; interrupted, the same command goes on"
    )
    with progress_bar("judging every context") as progress:
        done = write_reference(table, detector, path=out, limit=limit, progress=progress)
    tell(f"{OWNER_ONLY} Written to {out}")
    if as_json:
        counts = {"contexts": done.contexts, "outliers": done.outliers}
        say_json({"owner_only": OWNER_ONLY, **counts, "out": str(out)})
        return
    say(OWNER_ONLY)
    say(f"{done.contexts:,} contexts with {done.outliers:,} outliers in all")
