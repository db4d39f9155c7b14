"""``pcor tradeoff``: utility and validity against epsilon, as a table, JSON or a chart."""

from __future__ import annotations

import json
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any

import typer

import pcor
from pcor.audit.tradeoff import (
    EPSILONS,
    INTERVAL,
    LINES,
    PURE_DP,
    RECORDS,
    Point,
    TradeoffLine,
    check_space,
    random_outliers,
)
from pcor.audit.tradeoff import tradeoff as points_of
from pcor.cli import options
from pcor.cli.output import OWNER_ONLY, check_plots, guarded, progress_bar, say, say_json, tell
from pcor.cli.setting_flags import NO_SOURCE, DetectorName, GivenSource, with_source
from pcor.demo import salary_table
from pcor.detectors import get_detector
from pcor.errors import NoValidContext, ParameterError
from pcor.public.accounting import exact
from pcor.public.guarantee import PureDP
from pcor.search.blocks import ENUMERATION_LIMIT
from pcor.support.files import check_target, write_text

ENDINGS = (".png", ".svg", ".html", ".json")
QUICK_EPSILONS = ("0.02", "0.1", "0.5")
QUICK_OUTLIERS = 4

SYNTHETIC = "Synthetic salaries: nobody in them exists."
SEEDED = "NOT PRIVATE: computed from the rows, with seeded decisions; nobody paid for it."


@guarded
@with_source
def tradeoff(
    file: Annotated[
        Path | None,
        typer.Argument(help="The owner's table; without one, synthetic salaries.", metavar="FILE"),
    ] = None,
    schema: Annotated[Path | None, typer.Option(help="The schema file (TOML) of FILE.")] = None,
    detector: DetectorName = None,
    outliers: Annotated[
        int | None, typer.Option(help=f"How many outliers: {RECORDS} by default.")
    ] = None,
    epsilons: Annotated[str | None, typer.Option(help=f"By default {','.join(EPSILONS)}.")] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Few outliers and epsilons: seconds, not minutes.")
    ] = False,
    seed: Annotated[int, typer.Option(help="Of the records and of every decision.")] = 0,
    limit: Annotated[
        int,
        typer.Option(help="The largest space of contexts to look for the largest valid one in."),
    ] = ENUMERATION_LIMIT,
    out: Annotated[
        Path | None, typer.Option(help="Also write a .png, .svg, .html or .json file.")
    ] = None,
    source: GivenSource = NO_SOURCE,
    as_json: options.AsJson = False,
) -> None:
    """Draw utility and validity against epsilon. There is a curve for each search and guarantee.

    Utility is the population of the context drawn over that of the largest valid one. On built-in
    synthetic salaries unless a table is given; what is said of a table is for its owner only.
    Outliers are drawn at random. The guarantee dp needs a detector that counts: the given one if
    it does, otherwise tail.

    Example: pcor tradeoff --quick --out tradeoff.png
    """
    if out is not None:
        check_target(out, ENDINGS)
        if out.suffix.lower() != ".json":
            check_plots(f"--out {str(out)!r}", ". --json, and --out with .json, work without them")
    table = _table(file, schema, source, limit)
    usual = QUICK_EPSILONS if quick else EPSILONS
    costs = sorted({exact(cost) for cost in (epsilons.split(",") if epsilons else usual)})
    count = outliers if outliers is not None else QUICK_OUTLIERS if quick else RECORDS
    if count < 1:
        raise ParameterError("--outliers must be at least 1")
    rule = get_detector(detector, table.schema)
    points = _points(table, rule, LINES, costs, count, seed, limit)
    counting = pcor.Tail() if rule.count_rule is None else rule.count_rule
    left_out = f"note: guarantee {PureDP.name} is left out"
    if table.schema.names_records:
        try:
            points += _points(table, counting, [PURE_DP], costs, count, seed, limit)
        except NoValidContext:
            tell(f"{left_out}: no outlier by {counting.name} was found")
    else:
        tell(f"{left_out}: the schema has no id column")
    note = SYNTHETIC if file is None else OWNER_ONLY
    content = {
        **({} if file is None else {"owner_only": OWNER_ONLY}),
        "private": False,
        "dataset": table.schema.name,
        "seed": seed,
        "interval": INTERVAL,
        "points": [point.to_dict() for point in points],
    }
    if out is not None:
        _write(out, points, content, note)
        tell(f"{note} Written to {out}")
    if as_json:
        say_json(content)
        return
    say(note)
    say(_text(points))


def _table(file: Path | None, schema: Path | None, source: GivenSource, limit: int) -> pcor.Table:
    if (file is None) != (schema is None):
        raise ParameterError("FILE and --schema go together; give both, or none for the demo table")
    if file is None or schema is None:
        return salary_table(any_set=True)  # the paper's sets, for its comparison
    declared = source.schema(schema, draft=True)
    check_space(declared, limit)  # before the rows are read
    return pcor.Table(file, declared)


def _points(
    table: pcor.Table,
    rule: pcor.Detector,
    lines: Sequence[TradeoffLine],
    costs: Sequence[Fraction],
    count: int,
    seed: int,
    limit: int,
) -> list[Point]:
    """Find outliers by a detector and compute the lines on them."""
    for line in lines:  # what can be refused without looking at rows
        for cost in costs:
            line.plan(table.schema, cost, rule, limit)
    found = random_outliers(table, rule, count, seed)
    with progress_bar(
        f"trade-off by {rule.name}, guarantee {lines[0].settings.guarantee}"
    ) as progress:
        return points_of(
            table,
            found,
            detector=rule,
            epsilons=costs,
            lines=lines,
            seed=seed,
            limit=limit,
            progress=progress,
        )


def _write(out: Path, points: Sequence[Point], content: dict[str, Any], note: str) -> None:
    if out.suffix.lower() == ".json":
        write_text(out, json.dumps(content, indent=1, ensure_ascii=False) + "\n")
        return
    from pcor.audit.charts import tradeoff_chart
    from pcor.support.pictures import save_picture

    save_picture(tradeoff_chart(points, note), out)


def _text(points: Sequence[Point]) -> str:
    """Write two small tables: utilities, and validities where one is not 1."""
    counts = {point.detector: point.records for point in points}
    outliers = " and ".join(f"{count} outliers by {name}" for name, count in counts.items())
    unsure = {point.line for point in points if point.validity < 0.9995}
    lines = [
        SEEDED,
        f"Means over {outliers}; --json has the intervals.",
        "",
        "Utility: the population of the context drawn over that of the largest valid one",
        *_rows(points, "utility"),
        "",
        "Validity: the chance that a context comes back and is a valid one"
        + (", where it is not 1" if unsure else ": 1 for all"),
    ]
    if unsure:
        lines += _rows([point for point in points if point.line in unsure], "validity")
    return "\n".join(lines)


def _rows(points: Sequence[Point], field: str) -> list[str]:
    """Lay out one number for each line and epsilon."""
    costs = sorted({point.epsilon for point in points})
    rows = {"epsilon": [f"{cost:7g}" for cost in costs]}
    for point in points:  # line by line, epsilon rises
        rows.setdefault(point.line, []).append(f"{getattr(point, field):7.3f}")
    wide = max(map(len, rows))
    return [f"  {name:{wide}}  {' '.join(cells)}" for name, cells in rows.items()]
