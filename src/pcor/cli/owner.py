"""``pcor contexts``, ``pcor outliers`` and ``pcor reference``: private, for the owner only."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any

import pyarrow as pa
import typer
from pyarrow import csv, parquet

import pcor
from pcor.audit.reference_file import (
    REFERENCE_LIMIT,
    check_reference_size,
    expected_seconds,
    write_reference,
)
from pcor.cli import options
from pcor.cli.output import OWNER_ONLY, guarded, progress_bar, say, say_json, tell, waiting
from pcor.cli.setting_flags import NO_SOURCE, DetectorName, GivenSource, with_source
from pcor.detectors import get_detector
from pcor.errors import TooLarge
from pcor.public import wording
from pcor.public.context import Context
from pcor.public.context_list import count_contexts
from pcor.releasing.estimate import MOST_ROWS, duration, estimate
from pcor.search.blocks import ENUMERATION_LIMIT, listed_size
from pcor.search.coe import (
    MatchingContexts,
    check_size,
    joined,
    matching_parts,
    outlier_rows,
)
from pcor.search.coe_file import SHOWN, Tally, write_contexts
from pcor.support.files import check_target, write_whole

# More contexts than this are written as bits only: as sentences they would fill the memory.
MOST_SENTENCES = 1_000_000

CONTEXT_COLUMNS = pa.schema({"bits": pa.string(), "population": pa.int64(), "context": pa.string()})

ShownRow = dict[str, Any]
Out = Annotated[
    Path | None, typer.Option("--out", help="Write all rows to a .parquet, .csv or .json file.")
]


@guarded
@with_source
def contexts(
    file: options.RowsFile,
    schema: options.SchemaFile,
    record: options.RecordKey,
    detector: DetectorName = None,
    limit: Annotated[
        int, typer.Option(help="The largest number of contexts to look at.")
    ] = ENUMERATION_LIMIT,
    out: Out = None,
    source: GivenSource = NO_SOURCE,
    as_json: options.AsJson = False,
) -> None:
    """OWNER ONLY: list COE, the contexts where a record stands out.

    A .parquet file takes any number of them, as packed bits and populations, and says in its
    metadata how to read them; .csv and .json spell out up to a million, largest first.

    Example: pcor contexts claims.csv --schema claims.toml --record 17 --out coe.parquet
    """
    _check_out(out)
    declared = source.schema(schema, draft=True)
    with waiting("reading the table", quiet=as_json):
        table = pcor.Table(file, declared)
    _tell_time(table, record, detector, limit)
    rows: list[ShownRow] = []
    with progress_bar("looking at contexts") as progress:
        if out is not None and out.suffix.lower() == ".parquet":
            tally = write_contexts(
                table, record, detector, path=out, limit=limit, progress=progress
            )
        else:
            tally = Tally(table)
            found = matching_parts(table, record, detector, limit=limit, progress=progress)
            parts = tally.watch(found)
            if out is not None or as_json:
                rows = _sentences(joined(_few_enough(parts)))
            else:
                deque(parts, maxlen=0)  # the tally keeps what the screen shows
            if out is not None:
                _write(out, rows, CONTEXT_COLUMNS)
    largest = _sentences(tally.largest)
    content = {"record": record, "count": tally.count}
    content |= {"contexts": rows} if out is None else {"largest": largest, "out": str(out)}
    title = f"{tally.count:,} contexts in which record {record} is an outlier"
    _report(title, content, largest, tally.count, out, as_json=as_json)


def _few_enough(parts: Iterable[MatchingContexts]) -> Iterator[MatchingContexts]:
    """Refuse to spell out more contexts than anybody reads, as soon as there are too many."""
    count = 0
    for part in parts:
        count += len(part)
        if count > MOST_SENTENCES:
            raise TooLarge(
                f"there are more than {MOST_SENTENCES:,} contexts, too many to write out as text; "
                "--out FILE.parquet takes any number"
            )
        yield part


def _sentences(found: MatchingContexts) -> list[ShownRow]:
    """Spell out contexts, largest first."""
    ordered = found.largest(len(found))
    pairs = zip(ordered.contexts, ordered.populations.tolist(), strict=True)
    return [{"bits": c.bits, "population": n, "context": str(c)} for c, n in pairs]


@guarded
@with_source
def outliers(
    file: options.File,
    schema: options.SchemaFile,
    detector: DetectorName = None,
    context: Annotated[
        str | None, typer.Option(help="Where to look; by default the whole table.")
    ] = None,
    out: Out = None,
    source: GivenSource = NO_SOURCE,
    as_json: options.AsJson = False,
) -> None:
    """OWNER ONLY: list the records that are outliers in one context.

    Each with its metric, the largest first.

    Example: pcor outliers claims.csv --schema claims.toml --context "region is north"
    """
    _check_out(out)
    declared = source.schema(schema, draft=True)
    where = (
        Context.full(declared)
        if context is None
        else options.context(declared, "--context", context)
    )
    with waiting("reading the table and judging its rows", quiet=as_json):
        found = outlier_rows(pcor.Table(file, declared), where, detector)
    rows: list[ShownRow] = [{"record": key, "value": value} for key, value in found]
    # Ids such as 17 and "17b" side by side: a file's column holds one kind, so all become text.
    whole = all(isinstance(key, int) for key, _ in found)
    columns = pa.schema({"record": pa.int64() if whole else pa.string(), "value": pa.float64()})
    among = wording.among(declared, where.mask)
    title = f"outliers among {among}, by falling {declared.metric.column}: {len(rows):,}"
    if out is not None:
        _write(out, rows, columns)
    content = {
        "context": where.values,
        "outliers": [key for key, _ in found],
        "values": [value for _, value in found],
    }
    _report(title, content, rows[:SHOWN], len(rows), out, as_json=as_json)


@guarded
@with_source
def reference(
    file: options.File,
    schema: options.SchemaFile,
    out: Annotated[Path, typer.Option(help="The .parquet file to write.")],
    detector: DetectorName = None,
    limit: Annotated[
        int, typer.Option(help="The largest number of contexts to list.")
    ] = REFERENCE_LIMIT,
    source: GivenSource = NO_SOURCE,
    as_json: options.AsJson = False,
) -> None:
    """OWNER ONLY: write every context with all of its outliers. The file has each population, too.

    Finished blocks are kept in a folder beside the file until it is complete: interrupted, the
    same command goes on where it was.

    Example: pcor reference claims.csv --schema claims.toml --out reference.parquet
    """
    check_target(out, (".parquet",))
    declared = source.schema(schema, draft=True)
    check_reference_size(declared, limit)
    with waiting("reading the table", quiet=as_json):
        table = pcor.Table(file, declared)
    tell(
        f"{count_contexts(declared):,} contexts, about "
        f"{duration(expected_seconds(table, detector))}; interrupted, the same command goes on"
    )
    with progress_bar("judging every context") as progress:
        done = write_reference(table, detector, path=out, limit=limit, progress=progress)
    content = {"contexts": done.contexts, "outliers": done.outliers, "out": str(out)}
    title = f"{done.contexts:,} contexts with {done.outliers:,} outliers in all"
    _report(title, content, [], 0, out, as_json=as_json)


def _tell_time(table: pcor.Table, record: int | str, detector: str | None, limit: int) -> None:
    """Say beforehand how long a detector without a kernel may take; with one it is seconds."""
    check_size(listed_size(table.record(record).space), limit)
    rows = min(int(table.cells.cell_counts.sum()), MOST_ROWS)
    if expected := estimate(get_detector(detector, table.schema), table.schema, rows):
        tell(f"expect {expected}")


def _check_out(out: Path | None) -> None:
    if out is not None:
        check_target(out, (".parquet", ".csv", ".json"))


def _report(
    title: str,
    content: dict[str, Any],
    shown: list[ShownRow],
    count: int,
    out: Path | None,
    *,
    as_json: bool,
) -> None:
    if out is not None:
        tell(f"{OWNER_ONLY} Written to {out}")
    if as_json:
        say_json({"owner_only": OWNER_ONLY, **content})
        return
    say(OWNER_ONLY)
    say(title)
    for row in shown:
        say("  " + "  ".join(str(value) for value in row.values()))
    if count > len(shown):
        where = "--out FILE writes all of them" if out is None else f"all of them are in {out}"
        say(f"  ... and {count - len(shown):,} more; {where}")


def _write(out: Path, rows: list[ShownRow], columns: pa.Schema) -> None:
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
