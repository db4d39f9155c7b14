"""``pcor audit``: who a release would expose; private results, for the owner only."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

import pcor
from pcor.audit import (
    Exposed,
    Exposure,
    JointExposure,
    JointlyExposed,
    Match,
    coe_match,
    joint_exposure,
)
from pcor.audit.divergence import ERROR
from pcor.audit.exposure import audited_settings, planned_exposure
from pcor.audit.match import KINDS, REPEATS, group_delta, group_epsilon
from pcor.audit.report import chance
from pcor.cli import options
from pcor.cli.output import (
    OWNER_ONLY,
    aligned,
    check_plots,
    guarded,
    progress_bar,
    say,
    say_json,
    tell,
    tell_of_compiling,
    waiting,
)
from pcor.cli.setting_flags import (
    NO_SETTINGS,
    NO_SOURCE,
    GivenSettings,
    GivenSource,
    with_settings,
    with_source,
)
from pcor.errors import ParameterError, check_whole, plain
from pcor.public.guarantee import Promise
from pcor.search.blocks import ENUMERATION_LIMIT
from pcor.support.files import check_target

ENDINGS = (".png", ".svg", ".html")
SHOWN = 10  # people of one record on the screen; --json has all

Records = Annotated[
    list[str],
    typer.Option(
        "--record",
        help="A record's id, or its row number from 0 if there is no id; may be repeated.",
    ),
]


@guarded
@with_settings("audit")
@with_source
def audit(
    file: options.RowsFile,
    schema: options.SchemaFile,
    record: Records = [],  # noqa: B006 (typer copies it)
    records: Annotated[
        Path | None, typer.Option(help="Many records: a text file with one on each line.")
    ] = None,
    epsilon: Annotated[
        str, typer.Option(help="The cost of the release to be audited, for each record.")
    ] = "0.2",
    given: GivenSettings = NO_SETTINGS,
    insert: Annotated[
        str | None,
        typer.Option(
            help="Metrics of newcomers to look at, 100,250.5; none for no newcomers. By default "
            "the record's own and the table's smallest, quartiles and largest."
        ),
    ] = None,
    match: Annotated[
        bool,
        typer.Option(
            "--match",
            help="Also: how often random rows (people, where the schema says whose rows are whose) "
            "that come or go change the set of valid contexts.",
        ),
    ] = False,
    repeats: Annotated[
        int, typer.Option(help="With --match: random tables for each number of rows or people.")
    ] = REPEATS,
    seed: Annotated[int, typer.Option(help="With --match: which random rows.")] = 0,
    limit: Annotated[
        int | None, typer.Option(help="How often the detector may be asked; more takes longer.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Also draw a chart: a .png, .svg or .html file.")
    ] = None,
    source: GivenSource = NO_SOURCE,
    as_json: options.AsJson = False,
) -> None:
    """OWNER ONLY: say who a release would expose, and by how much.

    The usual guarantee (OCDP) promises nothing to a person without whom the record's set of valid
    contexts would be another one. This looks at everybody in the table, and at possible newcomers.
    Nothing is released, nothing is charged, and what is printed must not leave the owner's hands.

    Example: pcor audit claims.csv --schema claims.toml --record 17 --epsilon 0.2
    """
    if out is not None:
        check_target(out, ENDINGS)
        check_plots(f"--out {str(out)!r}", ", or leave --out out; --json works without them")
    keys = _keys(record, records)
    metrics = _metrics(insert)
    check_whole("--repeats", repeats)
    declared = source.schema(schema, draft=True)
    settings = audited_settings(given.read(declared), limit)
    plan = settings.plan(declared, epsilon)  # refuses without looking at rows
    tell_of_compiling()
    with waiting("reading the table", quiet=as_json):
        table = pcor.Table(file, declared)
    for key in keys:
        table.record(key)  # refuses all at once, before the first takes its time
    found: list[Exposure] = []
    matches: list[list[Match]] = []
    for key in keys:
        tell(f"auditing record {key}: judging its contexts again for each person in the table ...")
        with progress_bar(f"auditing record {key}") as progress:
            found.append(
                planned_exposure(
                    plan,
                    table,
                    key,
                    insert=metrics,
                    public=keys,
                    limit=limit,
                    progress=progress,
                )
            )
        matches.append(_matches(table, key, plan.detector, repeats, seed, limit) if match else [])
    if out is not None:
        from pcor.audit.charts import exposure_chart
        from pcor.support.pictures import save_picture

        save_picture(exposure_chart(found), out)
        tell(f"{OWNER_ONLY} Written to {out}")
    if as_json:
        say_json(_content(found, matches, match=match))
        return
    say(OWNER_ONLY)
    for one, several in zip(found, matches, strict=True):
        say("")
        say(_text(one, several))
    if len(found) > 1:
        say("")
        say(_joint_text(joint_exposure(found)))


def _keys(given: Sequence[str], file: Path | None) -> list[str]:
    """Return the records that were asked for, each once."""
    lines: list[str] = []
    if file is not None:
        try:
            lines = file.read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError):
            raise ParameterError(
                f"--records {str(file)!r} cannot be read; give a text file with one record on "
                "each line"
            ) from None
    keys = [key for key in dict.fromkeys([*given, *map(str.strip, lines)]) if key]
    if not keys:
        raise ParameterError(
            "give at least one --record, or --records FILE with one record on each line"
        )
    return keys


def _metrics(text: str | None) -> list[float] | None:
    """Read --insert: numbers with commas between them, or none."""
    if text is None:
        return None
    if text.strip().lower() == "none":
        return []
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise ParameterError(
            "--insert takes numbers with commas between them, such as 100,250.5, or none"
        ) from None


def _matches(
    table: pcor.Table, key: str, detector: pcor.Detector, repeats: int, seed: int, limit: int | None
) -> list[Match]:
    found: list[Match] = []
    for kind in KINDS:
        with progress_bar(f"rows {kind} at random, record {key}") as progress:
            found += coe_match(
                table,
                key,
                detector,
                repeats=repeats,
                kind=kind,
                seed=seed,
                limit=max(limit or 0, ENUMERATION_LIMIT),
                progress=progress,
            )
    return found


def _content(
    found: Sequence[Exposure], matches: Sequence[Sequence[Match]], *, match: bool
) -> dict[str, Any]:
    """Return everything as one JSON object; what is the same for all records stands once."""
    records = []
    for one, several in zip(found, matches, strict=True):
        content = {k: v for k, v in one.to_dict().items() if k not in ("owner_only", "plan")}
        if match:
            promise = one.plan.promise
            content["match"] = [m.to_dict() | {"group": m.group(promise)} for m in several]
        records.append(content)
    return {
        "owner_only": OWNER_ONLY,
        "private": True,
        "plan": found[0].plan.to_dict(),
        "records": records,
        "together": {k: v for k, v in joint_exposure(found).to_dict().items() if k != "owner_only"},
    }


def _text(found: Exposure, matches: Sequence[Match]) -> str:
    """Say the verdict, then who; all of it private."""
    lines = [found.verdict]
    lines += _table("People in the table (private):", found.exposed)
    lines += _table("Possible newcomers (private):", found.newcomers)
    if found.largest_ratio is not None and found.exposed:
        lines += [
            "",
            f"Of answers possible with and without an exposed person {found.ratio_words} "
            f"(epsilon is {plain(found.plan.bill.epsilon)}).",
        ]
    if matches:
        who = "people" if found.by_person else "rows"
        lines += _match_lines(who, matches, found.plan.promise)
    return "\n".join(lines)


def _joint_text(found: JointExposure) -> str:
    """Say what all records come to together; private."""
    return "\n".join(
        [
            found.verdict,
            *_table("People in the table, over all records (private):", found.exposed),
            *_table("Possible newcomers, over all records (private):", found.newcomers),
        ]
    )


def _table(title: str, people: Sequence[Exposed] | Sequence[JointlyExposed]) -> list[str]:
    """Lay out the most exposed."""
    if not people:
        return []
    names = list(people[0].values)
    told = ["contexts lost", "gained", "delta"]
    if isinstance(people[0], JointlyExposed):
        told = ["records", "delta at most"]
    several = any(one.rows for one in people)
    head = [*names, "metric", *(["rows"] if several else []), "people", *told]
    rows = [
        [
            *(str(one.values[name]) for name in names),
            f"{one.metric:.10g}",
            *([f"{len(one.rows):,}"] if several else []),
            f"{one.people:,}",
            *(
                [f"{len(one.records):,}"]
                if isinstance(one, JointlyExposed)
                else [f"{one.lost:,}", f"{one.gained:,}"]
            ),
            f"< {ERROR:g}" if one.delta < ERROR else chance(one.delta),
        ]
        for one in people[:SHOWN]
    ]
    rest = len(people) - len(rows)
    more = [f"  ... and {rest:,} more kinds of people; --json has all of them"] if rest else []
    if several:
        more.append("  Of several rows that with the smallest metric is shown; --json has all.")
    return ["", title, *_indented([head, *rows], len(names)), *more]


def _indented(rows: Sequence[Sequence[str]], texts: int) -> list[str]:
    return [f"  {line}" for line in aligned(rows, texts)]


def _match_lines(who: str, matches: Sequence[Match], promise: Promise) -> list[str]:
    head = [who, "at once", "COE the same", "mean overlap", "mean kept", "promised to the group"]
    epsilon, delta = promise.epsilon, promise.delta
    rows = [
        [
            match.kind,
            f"{match.changes}",
            f"{match.equal:.1%}",
            f"{match.overlap:.2%}",
            f"{match.kept:.2%}",
            plain(group_epsilon(epsilon, match.changes))
            + (f", delta {group_delta(epsilon, delta, match.changes):.3g}" if delta else ""),
        ]
        for match in matches
    ]
    return [
        "",
        f"Random {who} that come or go, {matches[0].repeats} tables each (private). The promise "
        f"holds {promise.guarantee.condition}:",
        *_indented([head, *rows], 1),
    ]
