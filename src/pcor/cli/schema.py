"""``pcor schema init`` and ``pcor schema check``."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from pcor.audit.schema_draft import NO_ID, draft
from pcor.audit.schema_fit import RowsOfPeople, misfits, rows_of_people
from pcor.cli import options
from pcor.cli.output import OWNER_ONLY, guarded, say, say_json, tell, waiting
from pcor.cli.setting_flags import NO_SOURCE, GivenSource, with_source
from pcor.errors import counted
from pcor.public.guarantee import PureDP
from pcor.public.schema import MOST_NUMBERED, Schema
from pcor.releasing.settings import Settings
from pcor.search.blocks import ENUMERATION_LIMIT
from pcor.search.coe import PATIENCE
from pcor.support.files import check_new, check_target, write_text

app = typer.Typer(
    help="Draft a schema, or check that a table fits one.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@app.command("init")
@guarded
@with_source
def init(
    file: options.File,
    metric: Annotated[str, typer.Option(help="The numeric column that outliers stand out in.")],
    attributes: Annotated[
        str | None,
        typer.Option(
            help="The columns that contexts speak of: a,b,c, in quotes where a name has blanks: "
            "'a,b c'. Without any, a few are proposed."
        ),
    ] = None,
    id_column: Annotated[
        str | None,
        typer.Option(
            "--id", help="The column that names a record; without one, rows are counted from 0."
        ),
    ] = None,
    person: Annotated[
        str | None,
        typer.Option(
            help="The column that says whose a row is: all rows of a person are then protected "
            "together."
        ),
    ] = None,
    out: Annotated[Path, typer.Option(help="Where to write the draft.")] = Path("schema.toml"),
    force: options.Force = False,
    source: GivenSource = NO_SOURCE,
    as_json: options.AsJson = False,
) -> None:
    """Draft a schema file from a table. Everything read off the data is marked for review.

    It says what it noticed: spellings, dates, bins, identifiers, how many contexts there are.

    Example: pcor schema init claims.csv --metric amount --attributes region,product
    """
    check_target(out)
    check_new(out, force=force)
    names = None
    if attributes is not None:
        names = [name.strip() for name in attributes.split(",") if name.strip()]
    with waiting("reading the table", quiet=as_json):
        found = draft(
            file,
            metric=metric,
            attributes=names,
            id_column=id_column,
            person=person,
            given=source.texts,
        )
    write_text(out, found.text)
    drafted = Schema.from_file(out, draft=True)
    if as_json:
        said = {"schema": str(out), "to_review": found.marks, "noticed": found.noticed}
        say_json({"owner_only": OWNER_ONLY, **said, **_size(drafted)})
        return
    say(OWNER_ONLY)
    for note in found.notes:
        say(f"- {note}")
    parts = "part is" if found.marks == 1 else "parts are"
    say(f"drafted {out}: {found.marks} {parts} marked REVIEW, having been read off the data.")
    say("A domain is public: it must say what could occur. Go through them and delete the marks;")
    say("until then pcor release refuses this schema.")
    if id_column is None:
        tell(f"note: {NO_ID}; --id names one")
    _say_size(drafted)


@app.command("check")
@guarded
@with_source
def check(
    file: options.File,
    schema: options.SchemaFile,
    source: GivenSource = NO_SOURCE,
    as_json: options.AsJson = False,
) -> None:
    """OWNER ONLY: say what in a table does not fit the schema.

    Example: pcor schema check claims.csv --schema claims.toml
    """
    declared = source.schema(schema, draft=True)
    Settings().plan(declared, 1)  # refuses a [release] that nothing can be released by
    with waiting("reading the table", quiet=as_json):
        found = misfits(file, declared)
        refused = any(misfit.refused for misfit in found)
        people = None if refused else rows_of_people(file, declared)
    marks = len(declared.unreviewed)
    if as_json:
        rows = [asdict(misfit) for misfit in found]
        fits = {"fits": not refused, "to_review": marks, "misfits": rows}
        counted_people = {} if people is None else {"people": asdict(people)}
        say_json({"owner_only": OWNER_ONLY, **fits, **counted_people, **_size(declared)})
    else:
        say(OWNER_ONLY)
        for misfit in found:
            say(f"- {misfit}")
        say("the table does not fit the schema" if refused else "the table fits the schema")
        if people is not None:
            say(f"{people}; rows_per_person is {declared.unit.rows:,}.{_kept(people)}")
        if not declared.names_records:
            tell(f"note: {NO_ID}")
        for attribute in declared.attributes:
            if attribute.contexts == "range" and attribute.kind == "text":
                order = ", ".join(map(str, attribute.values[:4]))
                tell(
                    f"note: contexts have ranges of {attribute.name!r}, whose values are words: "
                    f"the order in which they are declared counts ({order}, ...)"
                )
        _say_size(declared)
        if marks:
            tell(f"{marks} parts of the schema are still marked REVIEW")
    if refused:
        raise typer.Exit(2)


def _kept(people: RowsOfPeople) -> str:
    if not people.over:
        return ""
    return f" {people.lost:,} rows of {people.over:,} people are not counted."


def _size(schema: Schema) -> dict[str, int | str]:
    """Return how many contexts there are, and what that rules out."""
    size, too_much = schema.most_contexts, beyond_limits(schema)
    noted: dict[str, int | str] = {"note": too_much} if too_much else {}
    return {"possible_contexts": size if size < 1 << 53 else counted(size), **noted}


def _say_size(schema: Schema) -> None:
    """Say how many contexts there are; after the draft or the check, what that rules out."""
    what = "values" if schema.most_steps == schema.width - len(schema.attributes) else "steps"
    say(
        f"{schema.width} values of {len(schema.attributes)} attributes: "
        f"{counted(schema.most_contexts)} contexts can contain a record "
        f"({schema.most_steps} {what} may come or go)."
    )
    if too_much := beyond_limits(schema):
        say(f"Note: {too_much}.")


def beyond_limits(schema: Schema) -> str:
    """Say what is refused for its size, and where a limit can be raised; nothing if nothing is."""
    size = schema.most_numbered
    if size <= ENUMERATION_LIMIT:
        return ""
    if schema.drawable(ENUMERATION_LIMIT):
        return (
            f"{counted(size)} contexts are numbered before the limits on whole contexts: pcor "
            "audit needs a larger --limit, or fewer values"
        )
    drawing, listing = (
        f"--guarantee {PureDP.name}, --search direct, pcor tradeoff",
        "pcor audit, pcor contexts",
    )
    if size > MOST_NUMBERED:
        refused = f"{drawing}, {listing} are not to be had, whatever the limit"
    elif size > PATIENCE:
        refused = f"{drawing} need a larger --limit; {listing} are not to be had"
    else:
        refused = f"{drawing}, {listing} need a larger --limit"
    return (
        f"with more than {ENUMERATION_LIMIT:,} contexts {refused}. A release with --search auto "
        "needs nothing. Fewer values, by wider bins or with rare ones together as 'other', help all"
    )
