"""``pcor demo``: the whole story on built-in synthetic data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from pyarrow import csv, parquet

import pcor
from pcor.cli import options
from pcor.cli.output import guarded, say, say_json
from pcor.demo import PLANTED, salaries, salary_schema, salary_table
from pcor.errors import WriteError
from pcor.writing import write_text, write_whole


@guarded
def demo(
    epsilon: options.Epsilon = "0.2",
    write: Annotated[
        Path | None,
        typer.Option("--write", help="Also write the table and its schema into this folder."),
    ] = None,
    as_json: options.AsJson = False,
) -> None:
    """Release one context on built-in synthetic salaries; no data needed.

    Example: pcor demo --write demo
    """
    if write is not None:
        _write(write)
    planted = PLANTED[0]
    released = pcor.release(salary_table(), planted.record, epsilon)
    if as_json:
        say_json(released.to_dict())
        return
    say("PCOR demo: 51,000 synthetic salaries (9 job titles, 8 employers, 8 years).")
    say("Nobody in this table exists, so here we may show what a release keeps to itself.\n")
    say(
        f"Employee {planted.record} earns {planted.salary:,}. In the whole table that is nothing "
        "special; among people with the same job it is.\n"
        "An employer that has to justify the review of this record must name the context, and\n"
        "the context gives away facts about everybody else in it. PCOR draws one privately:\n"
    )
    say(f"  {released}\n")
    say("What was done, and its cost:")
    say("  " + released.explain().replace("\n", "\n  ") + "\n")
    say("What is promised:")
    say("  " + str(released.promise).replace("\n", "\n  ") + "\n")
    say("Run it again: the context may differ, because it is drawn. Releases about the same people")
    say("add up, so keep the sum of their epsilons (in Python: pcor.Budget).")
    if write is None:
        say("\nNext: `pcor demo --write demo` puts the table and its schema into a folder to try")
    else:
        say(
            f"\nNext: pcor release {write}/salaries.csv --schema {write}/salaries.toml "
            f"--record {planted.record} --epsilon 0.2"
        )


def _write(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        raise WriteError(f"cannot make the folder {str(folder)!r}") from None
    table = salaries()
    write_whole(folder / "salaries.csv", lambda part: csv.write_csv(table, part))
    write_whole(folder / "salaries.parquet", lambda part: parquet.write_table(table, part))
    write_text(folder / "salaries.toml", salary_schema().to_toml())
