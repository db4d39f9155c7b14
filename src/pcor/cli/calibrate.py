"""``pcor calibrate``: how rare it is to stand out in a table, as a table, JSON or a chart."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

import pcor
from pcor.audit.calibration import (
    EXPOSED,
    ROWS,
    Calibration,
    CalibrationPoint,
    describe,
    families,
    stricter,
)
from pcor.audit.calibration import calibrate as calibration_of
from pcor.cli import options
from pcor.cli.output import OWNER_ONLY, check_plots, guarded, progress_bar, say, say_json, tell
from pcor.cli.setting_flags import NO_SOURCE, DetectorName, GivenSource, with_source
from pcor.detectors import get_detector
from pcor.errors import counted
from pcor.search.blocks import ENUMERATION_LIMIT
from pcor.support.files import check_target, write_text

ENDINGS = (".png", ".svg", ".html", ".json")
# Wide enough for the numbers, since lines are printed as families are done.
WIDTHS = (9, 14, 11, 5, 0)
HEADINGS = ("family", "detector", "contexts", "stand out", "95 %", "named", "exposed")


@guarded
@with_source
def calibrate(
    file: options.File,
    schema: options.SchemaFile,
    detector: DetectorName = None,
    rows: Annotated[int, typer.Option(help="How many random rows to look at.")] = ROWS,
    exposed: Annotated[
        int, typer.Option(help="Of how many that stand out to count whom a release exposes.")
    ] = EXPOSED,
    seed: Annotated[int, typer.Option(help="Of which rows are looked at.")] = 0,
    limit: Annotated[
        int, typer.Option(help="Families with more contexts for a record are left out.")
    ] = ENUMERATION_LIMIT,
    out: Annotated[
        Path | None, typer.Option(help="Also write a .png, .svg, .html or .json file.")
    ] = None,
    source: GivenSource = NO_SOURCE,
    as_json: options.AsJson = False,
) -> None:
    """OWNER ONLY: tell how many rows stand out somewhere. Does an answer mean anything here?

    Random rows are looked at, in the schema's family of contexts and in a few others, by the
    detector and a stricter one. Where nearly every row is an outlier in some context, declare a
    smaller family (contexts, groups, max_clauses in the schema) or a stricter detector.

    Named is how many things the sentence for the largest such context names, on average; exposed,
    how many people a release for such a row exposes, as pcor audit counts them.

    Example: pcor calibrate claims.csv --schema claims.toml --detector grubbs
    """
    if out is not None:
        check_target(out, ENDINGS)
        if out.suffix.lower() != ".json":
            check_plots(f"--out {str(out)!r}", ". --json, and --out with .json, work without them")
    table = pcor.Table(file, source.schema(schema, draft=True))
    rule = get_detector(detector, table.schema)
    rules = [describe(one) for one in (rule, *stricter(rule))]
    names = [name for name, _ in families(table.schema)]
    wide = (max(map(len, names)), max(map(len, rules)), *WIDTHS)
    heading = [OWNER_ONLY, _line(HEADINGS, wide)]

    def told(point: CalibrationPoint) -> None:
        say("\n".join([*heading, _line(_row(point), wide)]))
        heading.clear()

    with progress_bar("the rows of this family") as progress:
        found = calibration_of(
            table,
            rows,
            rule,
            exposed=exposed,
            seed=seed,
            limit=limit,
            progress=progress,
            found=None if as_json else told,
        )
    if out is not None:
        _write(out, found)
        tell(f"{OWNER_ONLY} Written to {out}")
    if as_json:
        say_json(found.to_dict())
        return
    for name, contexts in found.left_out.items():
        say(f"{name}: not looked at, a record can have {counted(contexts)} contexts")
    first = found.points[0]
    say(
        f"{first.standing_out:,} of {first.rows:,} random rows stand out in some context of the "
        f"family {first.family}, by {first.detector}."
    )


def _write(out: Path, found: Calibration) -> None:
    if out.suffix.lower() == ".json":
        write_text(out, json.dumps(found.to_dict(), indent=1, ensure_ascii=False) + "\n")
        return
    from pcor.audit.charts import calibration_chart
    from pcor.support.pictures import save_picture

    save_picture(calibration_chart(found.points), out)


def _line(cells: tuple[str, ...], wide: tuple[int, ...]) -> str:
    """Lay out the line of a family and a rule."""
    return "  ".join(cell.ljust(width) for cell, width in zip(cells, wide, strict=True)).rstrip()


def _row(point: CalibrationPoint) -> tuple[str, ...]:
    low, high = point.interval
    return (
        point.family,
        point.detector,
        counted(point.contexts),
        f"{point.standing_out:,} of {point.rows:,}",
        f"{low:.0%} to {high:.0%}",
        "-" if point.named is None else f"{point.named:.1f}",
        "-" if point.exposed is None else f"{point.exposed:,.1f}",
    )
