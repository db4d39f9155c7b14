"""``pcor plan`` and ``pcor release``, for one record or for a list of them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

import pcor
from pcor.cli import many, options, payment
from pcor.cli.output import (
    guarded,
    promised,
    say,
    say_json,
    tell,
    tell_of_compiling,
    tell_untold,
    waiting,
)
from pcor.cli.papers import Papers
from pcor.cli.schema import beyond_limits
from pcor.cli.setting_flags import (
    NO_SETTINGS,
    NO_SOURCE,
    GivenSettings,
    GivenSource,
    with_settings,
    with_source,
)
from pcor.errors import ParameterError
from pcor.public.guarantee import OCDP
from pcor.public.schema import Schema
from pcor.releasing.run import release_planned
from pcor.rows.queries.queries import PAIRS_LIMIT

# Above this the bound on what a release tells is so weak that a person should hear of it.
HARDLY_PRIVATE = 10

# A condition on cleaned columns lists blanks and letters one by one; longer, it hides the rest.
_MOST_SQL = 500

_WORK = "reading the table and drawing a context"


def _plan(schema: Schema, given: GivenSettings, epsilon: str) -> pcor.Plan:
    """Plan what is asked for; say where its epsilon is too large to mean much."""
    plan = given.read(schema).plan(schema, epsilon)
    if plan.bill.epsilon > HARDLY_PRIVATE:
        tell(f"note: epsilon above {HARDLY_PRIVATE} promises hardly anything")
    return plan


def _condition(where: str, *, full: bool) -> str:
    """Write the condition of a query, if that is one line for a person to read."""
    if full or (len(where) <= _MOST_SQL and where.isprintable()):
        return f"WHERE {where}"
    return "a long condition, which --full and the certificate have"


@guarded
@with_settings("release")
@with_source
def plan(
    file: options.RowsFile,
    schema: options.SchemaFile,
    epsilon: many.EachEpsilon,
    record: many.OneRecord = None,
    records: many.ListFile = None,
    records_column: many.ListColumn = None,
    given: GivenSettings = NO_SETTINGS,
    rows: Annotated[
        int | None,
        typer.Option(
            help="Also estimate the time, for a table of this many rows, a guess of yours."
        ),
    ] = None,
    full: options.Full = False,
    source: GivenSource = NO_SOURCE,
    as_json: options.AsJson = False,
) -> None:
    """Tell what a release would do and cost. Free: no row is looked at.

    Example: pcor plan claims.csv --schema claims.toml --record 17 --epsilon 0.2
    """
    one = many.check_one(record, records, records_column=records_column)
    options.check_rows(file)
    declared = source.schema(schema, draft=True)
    if declared.unreviewed:
        tell("note: the schema is a draft, with parts marked REVIEW; a release would refuse it")
    plan = _plan(declared, given, epsilon)
    if records is not None:
        if rows is not None:
            raise ParameterError("--rows goes with --record: it estimates the time of one release")
        many.plan_listed(plan, records, records_column, full=full, as_json=as_json)
        return
    declared.check_id(one)
    expected = None if rows is None else plan.estimate(rows)
    if as_json:
        timed = {} if expected is None else {"estimate": expected.to_dict()}
        notes = [note for note in (plan.note, beyond_limits(declared)) if note]
        noted = {"note": ". ".join(notes)} if notes else {}
        say_json({"record": one, **plan.to_dict(), **timed, **noted})
        return
    say(f"A release for record {one} would do this; no row was looked at.\n")
    say(f"{plan}\n\n{promised(plan.promise, full=full)}")
    if too_much := beyond_limits(declared):
        say(f"\nNote: {too_much}.")
    wanted = plan.needed()
    if rows is not None and wanted is not None and wanted.rows > rows:
        say(
            f"\nA table of {rows:,} rows has no such context. Take a larger epsilon, a larger "
            "share (--detector tail:share=0.2) or a smaller --steepness, or --guarantee "
            f"{OCDP.name}."
        )
    elif rows is None and wanted is not None:
        say("\n--rows N says whether a table of N rows can have such a context.")
    if rows is not None:
        compiled = "microseconds for each context, however many rows; this detector is compiled"
        say(f"\nTime: {expected or compiled}.")


@guarded
@with_settings("release")
@with_source
def release(
    file: options.RowsFile,
    schema: options.SchemaFile,
    epsilon: many.EachEpsilon,
    record: many.OneRecord = None,
    records: many.ListFile = None,
    records_column: many.ListColumn = None,
    given: GivenSettings = NO_SETTINGS,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Also write the certificate: .json or .html; with --records the answers: .jsonl."
        ),
    ] = None,
    force: options.Force = False,
    workers: many.Workers = None,
    seed: Annotated[
        int | None, typer.Option(help="NOT PRIVATE: repeatable draws, for tests only.")
    ] = None,
    memory: options.Memory = None,
    pairs: options.MostPairs = PAIRS_LIMIT,
    ledger: Annotated[
        str | None, typer.Option(help="Pay from this ledger: a file or a postgresql:// URL.")
    ] = None,
    dataset: Annotated[
        str | None,
        typer.Option(help="With --ledger: whose budget pays. By default the name in the schema."),
    ] = None,
    analyst: Annotated[
        str | None, typer.Option(help="With --ledger: whose allotment pays. By default the owner.")
    ] = None,
    key: Annotated[
        str | None,
        typer.Option(
            help="With --ledger: a name for this request. The same name again is free; a new one "
            "pays for a new draw."
        ),
    ] = None,
    version: Annotated[
        str | None, typer.Option(help="With --ledger: which state of the table this is.")
    ] = None,
    letter: Annotated[
        Path | None,
        typer.Option(help="Also write a letter for the person concerned, or a regulator: .html."),
    ] = None,
    letter_template: Annotated[
        Path | None,
        typer.Option(help="With --letter: a template of your own (Jinja2)."),
    ] = None,
    sign: Annotated[
        Path | None,
        typer.Option(
            help="Sign what --out, --letter or --json gives with the private key in this file."
        ),
    ] = None,
    full: options.Full = False,
    source: GivenSource = NO_SOURCE,
    as_json: options.AsJson = False,
) -> None:
    """Release one context in which the record is an outlier.

    Prints the context, its cost and its guarantee; --full and the certificate say more. Example:

    pcor release claims.csv --schema claims.toml --record 17 --epsilon 0.2 --out certificate.html

    With --ledger the budget outlives the command, and the same request again is free. With
    --records FILE and --out FILE.jsonl, one context for each record of a list, at epsilon each;
    the same command again goes on where it was.
    """
    one = many.check_one(record, records, records_column=records_column, workers=workers)
    papers = Papers.of(out, letter, letter_template, sign, records, as_json=as_json, force=force)
    declared = source.schema(schema)
    # What can be refused without the rows is, before they are read.
    plan = _plan(declared, given, epsilon)
    if plan.stand_in:
        tell(f"note: {plan.stand_in}")
    if plan.needed() is not None:  # whatever the rows are
        name = plan.guarantee.name
        tell(
            f"note: under guarantee {name!r} nobody is told if the record is an outlier there; "
            f"`pcor plan` with --guarantee {name} --rows N says, for free, what it takes and "
            "whether a table of N rows can have it"
        )
    names = {"dataset": dataset, "analyst": analyst, "key": key, "version": version}
    paid: dict[str, Any] = {name: value for name, value in names.items() if value is not None}
    if ledger is None and paid:
        raise ParameterError(
            f"--{next(iter(paid))} goes with --ledger: it says how a ledger pays; give --ledger "
            "too, or leave it out"
        )
    if ledger is not None and seed is not None:
        raise ParameterError(
            "--seed makes a release that is NOT PRIVATE, for tests, and no ledger pays for it; "
            "leave out --ledger, or --seed"
        )
    tell_of_compiling()
    if records is not None:
        many.release_listed(
            plan,
            records,
            records_column,
            lambda: pcor.Table(file, declared, memory=memory, pairs=pairs),
            ledger=ledger,
            names=paid,
            seed=seed,
            out=out,
            workers=workers,
            full=full,
            as_json=as_json,
        )
        return
    if ledger is None:
        chooser = None if seed is None else pcor.testing.seeded(seed)
        with waiting(_WORK, quiet=as_json):
            table = pcor.Table(file, declared, memory=memory, pairs=pairs)
            released = release_planned(plan, table, one, chooser=chooser)
    else:
        books = pcor.Ledger(ledger, create=False)
        paid["dataset"] = payment.check_dataset(books, dataset, declared.name)
        with payment.told(books, plan, one, paid), waiting(_WORK, quiet=as_json):
            table = pcor.Table(file, declared, memory=memory, pairs=pairs)
            released = books.release_planned(plan, table, one, **paid)
    papers.write(released)
    tell_untold([released])
    if as_json:
        say(released.to_json(key=papers.key))
        return
    say(f"{released}\n")
    say(f"SQL: {_condition(released.context.where(), full=full)}\n")
    if full:
        say(f"What was done, and its cost:\n{released.explain()}\n")
    else:
        say(f"Cost: {released.plan.bill.total}")
    if not released.private:
        say("Nothing is promised, because of --seed. Drawn without it, this would be:")
    say(promised(released.promise, full=full))
    if ledger is None and seed is None:
        tell(payment.ON_NO_BOOKS)
