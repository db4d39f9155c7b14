"""``pcor demo``: the whole story on built-in synthetic data."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer
from pyarrow import csv, parquet

import pcor
from pcor.cli import options
from pcor.cli.output import guarded, say, say_json, tell_of_compiling, waiting
from pcor.demo import (
    CLAIM,
    CLAIM_AMOUNT,
    PLANTED,
    claims_csv,
    claims_export,
    claims_table,
    salaries,
    salary_schema,
    salary_table,
)
from pcor.errors import UnknownName, WriteError
from pcor.support.files import write_text, write_whole

STORIES = ("salaries", "claims")


@guarded
def demo(
    epsilon: options.Epsilon = "0.2",
    story: Annotated[
        str, typer.Option(help="Which table: salaries, or claims (the tutorial's).")
    ] = "salaries",
    write: Annotated[
        Path | None,
        typer.Option(
            help="Also write the table into this folder: salaries with their schema, claims raw, "
            "and as a messy export."
        ),
    ] = None,
    as_json: options.AsJson = False,
) -> None:
    """Release one context on built-in synthetic data. No data of yours is needed.

    Example: pcor demo --write demo
    """
    if story not in STORIES:
        raise UnknownName("story", story, STORIES)
    if write is not None:
        _write(write, story)
    if story == "claims" and write is not None and not as_json:
        _begin_the_tutorial(write)
        return
    tell_of_compiling()
    with waiting("making up a table and drawing a context", quiet=as_json):
        table, record = (
            (claims_table(), CLAIM) if story == "claims" else (salary_table(), PLANTED[0].record)
        )
        released = pcor.release(table, record, epsilon)
    if as_json:
        say_json(released.to_dict())
        return
    say(_CLAIMS if story == "claims" else _SALARIES)
    say(f"  {released}\n")
    say("What was done, and its cost:")
    say("  " + released.explain().replace("\n", "\n  ") + "\n")
    say("What is promised:")
    say("  " + str(released.promise).replace("\n", "\n  ") + "\n")
    say("The context is drawn, so another run can tell another one; in a table this large, at an")
    say("epsilon like 0.2, it is nearly always the widest. Releases about the same people add up,")
    say("so keep the sum of their epsilons: `pcor ledger` does (in Python pcor.Ledger, or")
    say("pcor.Budget while a program runs).")
    say("\n" + _next_step(story, write, record))


_SALARIES = f"""\
PCOR demo: 51,000 synthetic salaries (9 job titles, 8 employers, 8 years).
Nobody in this table exists, so here we may show what a release keeps to itself.

Employee {PLANTED[0].record} earns {PLANTED[0].salary:,}. In the whole table that is nothing \
special; among people of certain jobs, employers and years it is.
An employer that has to justify the review of this record must name the context, and
the context gives away facts about everybody else in it. PCOR draws one privately:
"""

_CLAIMS = f"""\
PCOR demo: 20,000 synthetic motor claims (region, age, vehicle, year).
Nobody in this table exists, so here we may show what a release keeps to itself.

Claim {CLAIM} is about {CLAIM_AMOUNT:,.2f}; one claim in five is about more. It was examined all the
same, because it is unusual among similar drivers. An insurer that has to say so must name the
context, and the context gives away facts about everybody else in it. PCOR draws one privately:
"""


def _next_step(story: str, write: Path | None, record: int) -> str:
    if story == "claims":
        return "Next: `pcor demo --story claims --write claims` writes the tutorial's raw file"
    if write is None:
        return "Next: `pcor demo --write demo` puts the table and its schema into a folder to try"
    letter = " --letter letter.html" if find_spec("jinja2") else ""  # what letters need
    return (
        f"Next: pcor release {write}/salaries.parquet --schema {write}/salaries.toml "
        f"--record {record} --epsilon 0.2 --out certificate.html{letter}"
    )


def _begin_the_tutorial(folder: Path) -> None:
    file = folder / "claims.csv"
    say(f"wrote {file}: 20,000 synthetic motor claims, raw. Nobody in it exists.")
    say(f"wrote {folder / 'export.csv'}: the same as a messy export (docs: read messy files).")
    say(f"A customer asks why claim {CLAIM} was examined. To answer, first say what is public:\n")
    say(
        f"Next: pcor schema init {file} --metric amount --attributes region,age,vehicle,year "
        f"--id claim --out {folder / 'draft.toml'}"
    )


def _write(folder: Path, story: str) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        raise WriteError(
            f"--write: cannot make the folder {str(folder)!r}; is there a file of that name, or "
            "may you not write there?"
        ) from None
    if story == "claims":  # raw, and alone: to declare its schema is what the tutorial is about
        write_text(folder / "claims.csv", claims_csv())
        write_whole(folder / "export.csv", lambda part: part.write_bytes(claims_export()))
        return
    table = salaries()
    write_whole(folder / "salaries.csv", lambda part: csv.write_csv(table, part))
    write_whole(folder / "salaries.parquet", lambda part: parquet.write_table(table, part))
    write_text(folder / "salaries.toml", salary_schema().to_toml())
