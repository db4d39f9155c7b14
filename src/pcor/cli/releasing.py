"""``pcor plan`` and ``pcor release``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

import pcor
from pcor.cli import options
from pcor.cli.output import guarded, say, say_json, tell
from pcor.errors import ParameterError, SourceError
from pcor.schema import Schema
from pcor.sources.fitting import marked_lines
from pcor.writing import check_target


def _request(
    schema: Schema, utility: str, overlap_with: str | None, start: str | None
) -> dict[str, Any]:
    """Read the contexts of a request against the schema."""
    if overlap_with is not None and utility != "overlap":
        raise ParameterError("--overlap-with goes with --utility overlap")
    wanted: object = utility
    if overlap_with is not None:
        wanted = pcor.Overlap(options.context(schema, "--overlap-with", overlap_with))
    return {
        "utility": wanted,
        "start": None if start is None else options.context(schema, "--start", start),
    }


@guarded
def plan(
    file: options.File,
    schema: options.SchemaFile,
    record: options.RecordKey,
    epsilon: options.Epsilon,
    detector: options.DetectorName = "lof",
    search: options.SearchName = "auto",
    samples: options.Samples = None,
    utility: options.UtilityName = "population",
    overlap_with: options.OverlapWith = None,
    start: options.Start = None,
    accounting: options.Accounting = "tight",
    selection: options.Selection = None,
    guarantee: options.Guarantee = "ocdp",
    delta: options.Delta = None,
    steepness: options.Steepness = None,
    rows: Annotated[
        int | None,
        typer.Option(
            "--rows",
            help="Also estimate the time, for a table of this many rows, a guess of yours.",
        ),
    ] = None,
    as_json: options.AsJson = False,
) -> None:
    """Tell what a release would do and cost. Free: no row is looked at.

    Example: pcor plan claims.csv --schema claims.toml --record 17 --epsilon 0.2
    """
    if not file.exists():
        raise SourceError(f"no such file: {str(file)!r}")
    declared = Schema.from_file(schema)
    settled = pcor.plan(
        declared,
        epsilon,
        detector=detector,
        search=search,
        samples=samples,
        accounting=accounting,
        selection=selection,
        guarantee=guarantee,
        delta=delta,
        steepness=steepness,
        **_request(declared, utility, overlap_with, start),
    )
    expected = None if rows is None else settled.estimate(rows)
    if as_json:
        timed = {} if expected is None else {"estimate": expected.to_dict()}
        say_json({"record": record, **settled.to_dict(), **timed})
        return
    say(f"A release for record {record} would do this; no row was looked at.\n")
    say(f"{settled}\n\n{settled.promise}")
    wanted = settled.needed()
    if rows is not None and wanted is not None and wanted.people > rows:
        say(
            f"\nA table of {rows:,} rows has no such context. Take a larger epsilon or a smaller "
            "--steepness, or --guarantee ocdp."
        )
    if rows is not None:
        say(f"\nTime: {expected or 'microseconds for each context; this detector is compiled'}.")


@guarded
def release(
    file: options.File,
    schema: options.SchemaFile,
    record: options.RecordKey,
    epsilon: options.Epsilon,
    detector: options.DetectorName = "lof",
    search: options.SearchName = "auto",
    samples: options.Samples = None,
    utility: options.UtilityName = "population",
    overlap_with: options.OverlapWith = None,
    start: options.Start = None,
    accounting: options.Accounting = "tight",
    selection: options.Selection = None,
    guarantee: options.Guarantee = "ocdp",
    delta: options.Delta = None,
    steepness: options.Steepness = None,
    out: Annotated[
        Path | None, typer.Option("--out", help="Also write the certificate: .json or .html.")
    ] = None,
    seed: Annotated[
        int | None, typer.Option("--seed", help="NOT PRIVATE: repeatable draws, for tests only.")
    ] = None,
    as_json: options.AsJson = False,
) -> None:
    """Release one context in which the record is an outlier.

    Prints the context and public parameters, nothing else. Example:

    pcor release claims.csv --schema claims.toml --record 17 --epsilon 0.2 --out certificate.html
    """
    if out is not None:
        check_target(out, (".json", ".html", ".htm"))
    declared = Schema.from_file(schema)
    request: dict[str, Any] = {
        "epsilon": epsilon,
        "detector": detector,
        "search": search,
        "samples": samples,
        "accounting": accounting,
        "selection": selection,
        "guarantee": guarantee,
        "delta": delta,
        "steepness": steepness,
        **_request(declared, utility, overlap_with, start),
    }
    if marks := marked_lines(schema):
        tell(f"note: {marks} lines of the schema are still marked REVIEW: read off the data")
    pcor.plan(declared, **request)  # what can be refused without the rows is, before they are read
    chooser = None if seed is None else pcor.testing.seeded(seed)
    released = pcor.release(pcor.Table(file, declared), record, chooser=chooser, **request)
    if out is not None:
        released.save(out)
        tell(f"certificate written to {out}")
    if as_json:
        say_json(released.to_dict())
        return
    say(f"{released}\n")
    say(f"SQL: WHERE {released.context.where()}\n")
    say(f"What was done, and its cost:\n{released.explain()}\n")
    say(str(released.promise))
