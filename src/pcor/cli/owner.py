"""``pcor contexts`` and ``pcor outliers``: private results, for the owner only."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import pyarrow as pa
import typer
from pyarrow import csv, parquet

import pcor
from pcor.cli import options
from pcor.cli.output import OWNER_ONLY, guarded, progress_bar, say, say_json, tell
from pcor.context import Context
from pcor.enumeration import ENUMERATION_LIMIT
from pcor.schema import Schema
from pcor.writing import check_target, write_whole

SHOWN = 20

Out = Annotated[
    Path | None, typer.Option("--out", help="Write all rows to a .parquet, .csv or .json file.")
]


@guarded
def contexts(
    file: options.File,
    schema: options.SchemaFile,
    record: options.RecordKey,
    detector: options.DetectorName = "lof",
    limit: Annotated[
        int, typer.Option("--limit", help="The largest number of contexts to look at.")
    ] = ENUMERATION_LIMIT,
    out: Out = None,
    as_json: options.AsJson = False,
) -> None:
    """OWNER ONLY: list every context in which the record is an outlier (COE).

    Example: pcor contexts claims.csv --schema claims.toml --record 17 --out coe.parquet
    """
    _check_out(out)
    table = pcor.Table(file, Schema.from_file(schema))
    with progress_bar("looking at contexts") as progress:
        found = pcor.matching_contexts(table, record, detector, limit=limit, progress=progress)
    largest_first = sorted(
        zip((int(n) for n in found.populations), found.contexts, strict=True),
        key=lambda pair: (-pair[0], pair[1].bits),
    )
    rows = [{"bits": c.bits, "population": n, "context": str(c)} for n, c in largest_first]
    columns = pa.schema({"bits": pa.string(), "population": pa.int64(), "context": pa.string()})
    title = f"{len(rows):,} contexts in which record {record} is an outlier"
    _report(title, {"record": record, "contexts": rows}, rows, columns, out, as_json=as_json)


@guarded
def outliers(
    file: options.File,
    schema: options.SchemaFile,
    detector: options.DetectorName = "lof",
    context: Annotated[
        str | None,
        typer.Option("--context", help="Where to look; by default the whole table."),
    ] = None,
    out: Out = None,
    as_json: options.AsJson = False,
) -> None:
    """OWNER ONLY: list the records that are outliers in one context.

    Example: pcor outliers claims.csv --schema claims.toml --context "region is north; any product"
    """
    _check_out(out)
    declared = Schema.from_file(schema)
    where = (
        Context.full(declared)
        if context is None
        else options.context(declared, "--context", context)
    )
    found = pcor.outliers(pcor.Table(file, declared), where, detector)
    rows = [{"record": key} for key in found]
    # Ids such as 17 and "17b" side by side: a file's column holds one kind, so all become text.
    whole = all(isinstance(key, int) for key in found)
    columns = pa.schema({"record": pa.int64() if whole else pa.string()})
    title = f"{len(rows):,} outliers among rows where {where}"
    _report(
        title, {"context": where.values, "outliers": found}, rows, columns, out, as_json=as_json
    )


def _check_out(out: Path | None) -> None:
    if out is not None:
        check_target(out, (".parquet", ".csv", ".json"))


def _report(
    title: str,
    content: dict[str, Any],
    rows: list[dict[str, Any]],
    columns: pa.Schema,
    out: Path | None,
    *,
    as_json: bool,
) -> None:
    if out is not None:
        _write(out, rows, columns)
        tell(f"{OWNER_ONLY} Written to {out}")
    if as_json:
        say_json({"owner_only": OWNER_ONLY, **content})
        return
    say(OWNER_ONLY)
    say(title)
    for row in rows[:SHOWN]:
        say("  " + "  ".join(str(value) for value in row.values()))
    if len(rows) > SHOWN:
        say(f"  ... and {len(rows) - SHOWN:,} more; --out FILE writes all of them")


def _write(out: Path, rows: list[dict[str, Any]], columns: pa.Schema) -> None:
    def write(part: Path) -> None:
        if out.suffix.lower() == ".json":
            part.write_text(json.dumps(rows, ensure_ascii=False, indent=1), encoding="utf-8")
            return
        table = pa.table({c.name: _column(c, [row[c.name] for row in rows]) for c in columns})
        if out.suffix.lower() == ".csv":
            csv.write_csv(table, part)
        else:
            parquet.write_table(table, part)

    write_whole(out, write)


def _column(field: pa.Field, cells: list[Any]) -> pa.Array:
    return pa.array([str(c) for c in cells] if field.type == pa.string() else cells, field.type)
