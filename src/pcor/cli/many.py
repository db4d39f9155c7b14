"""``pcor release --records`` and ``pcor plan --records``: a list of records in one run.

Private: the table. Public: the list, what it costs, and the answers. The progress tells how many
records are done and nothing of any one of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import pcor
from pcor.cli import payment
from pcor.cli.output import progress_bar, promised, say, say_json, tell, tell_untold, waiting
from pcor.errors import ParameterError, SourceError, did_you_mean, plain
from pcor.public.schema import Schema
from pcor.releasing.batch.plan import ManyPlan, listed
from pcor.releasing.batch.run import release_many_planned
from pcor.releasing.budget import NO_BOOKS
from pcor.rows.columns import column_names, read_columns
from pcor.rows.keys import plain_key
from pcor.support.files import check_target

if TYPE_CHECKING:
    from pcor.releasing.batch import Results

OneRecord = Annotated[
    list[str] | None,  # of which there may be one
    typer.Option(
        "--record",
        help="The record's id, or its row number from 0 if there is no id.",
        metavar="<str>",
    ),
]
EachEpsilon = Annotated[
    str,
    typer.Option(
        "--epsilon",
        help="The total privacy cost, for example 0.2; smaller protects more. With --records, the "
        "cost of each record.",
    ),
]
ListFile = Annotated[
    Path | None,
    typer.Option(
        "--records",
        help="Many records: a .txt file with one on each line, or a column of a .csv or "
        ".parquet file.",
    ),
]
ListColumn = Annotated[
    str | None,
    typer.Option(
        "--records-column",
        help="The column of the --records file. By default the schema's id, or the only one.",
    ),
]
Workers = Annotated[
    int | None,
    typer.Option("--workers", help="With --records: how many draws run side by side."),
]


def check_one(record: list[str] | None, records: Path | None, **goes_with: object) -> str:
    """Return the one record, or nothing where there is a list; refuse both, or neither.

    Args:
        record: what ``--record`` says, each time that it is there.
        records: what ``--records`` says.
        goes_with: options that mean something only with a list.
    """
    if record and len(record) > 1:
        raise ParameterError(
            "--record names one record, and is given more than once; for many, list them in a file "
            "and give --records FILE"
        )
    if (not record) == (records is None):
        raise ParameterError("give one record with --record, or many with --records FILE")
    for name, value in goes_with.items():
        if records is None and value is not None:
            raise ParameterError(
                f"--{name.replace('_', '-')} goes with --records FILE, a list of records; leave it "
                "out for one --record"
            )
    return record[0] if record else ""


def read_list(path: Path, column: str | None, schema: Schema) -> list[int | str]:
    """Return the keys that a file lists, in its order; empty lines and cells are passed over."""
    if path.suffix.lower() == ".txt":
        if column is not None:
            raise ParameterError(
                "--records-column goes with a .csv or .parquet file; a .txt file has one record on "
                "each line"
            )
        found: list[Any] = _lines(path)
    elif path.suffix.lower() in (".csv", ".parquet", ".pq"):
        name = _column(path, column, schema)
        found = read_columns(path, [name]).column(name).to_pylist()
    else:
        raise SourceError(f"--records {str(path)!r} must end in .txt, .csv or .parquet")
    keys = [plain_key(key) for key in found if key is not None and str(key).strip()]
    if not keys:
        raise SourceError(
            f"--records {str(path)!r} lists no records; write one on each line, or one in each row"
        )
    return keys


def _lines(path: Path) -> list[Any]:
    try:
        return [line.strip() for line in path.read_text(encoding="utf-8-sig").splitlines()]
    except (OSError, UnicodeDecodeError):
        raise SourceError(
            f"--records {str(path)!r} cannot be read: no such file, or not a text in UTF-8"
        ) from None


def _column(path: Path, given: str | None, schema: Schema) -> str:
    """Return which column holds the keys."""
    names = column_names(path)
    if given is not None:
        if given not in names:
            raise SourceError(
                f"--records {str(path)!r} has no column {given!r}{did_you_mean(given, names)}; "
                "--records-column names one that it has"
            )
        return given
    if schema.id is not None and schema.id in names:
        return schema.id
    if len(names) == 1:
        return names[0]
    raise ParameterError(
        f"--records {str(path)!r} has several columns; say which one holds the records with "
        "--records-column NAME"
    )


def plan_listed(
    each: pcor.Plan,
    records: Path,
    column: str | None,
    *,
    full: bool,
    as_json: bool,
) -> None:
    """Tell what a run over a list would do and cost. Free: no row is looked at."""
    planned = ManyPlan(each, listed(read_list(records, column, each.schema)))
    if as_json:
        say_json(planned.to_dict())
        return
    say(f"A run over this list would do this; no row was looked at.\n\n{planned}\n")
    say(f"For each record:\n{planned.each}\n\n{promised(planned.each.promise, full=full)}")


def release_listed(
    each: pcor.Plan,
    records: Path,
    column: str | None,
    read_table: Callable[[], pcor.Table],
    *,
    ledger: str | None,
    names: Mapping[str, str],
    seed: int | None,
    out: Path | None,
    workers: int | None,
    full: bool,
    as_json: bool,
) -> None:
    """Release for a list of records; end with the exit code of the results."""
    if out is None:
        raise ParameterError(
            "--records needs --out FILE.jsonl: each answer is kept there as soon as it is paid for"
        )
    check_target(out, (".jsonl",))
    if "key" in names:
        raise ParameterError(
            "--key names one request; with --records each record has a key of its own: leave it out"
        )
    planned = ManyPlan(each, listed(read_list(records, column, each.schema)))
    books = None if ledger is None else pcor.Ledger(ledger, create=False)
    paid: dict[str, Any] = dict(names)
    if books is not None:
        paid["dataset"] = payment.check_dataset(books, names.get("dataset"), each.schema.name)
    _tell_price(planned, books, paid)
    if books is None and seed is None and not as_json:
        tell(payment.ON_NO_BOOKS)
    with waiting("reading the table", quiet=as_json):
        table = read_table()
    with progress_bar("records", count=True) as progress:
        results = release_many_planned(
            planned,
            table,
            payer=NO_BOOKS if books is None else books,
            names=paid,
            out=out,
            workers=workers,
            progress=progress,
            chooser=None if seed is None else pcor.testing.seeded(seed),
        )
    _show(results, out, full=full, as_json=as_json)
    if results.exit_code:
        raise typer.Exit(results.exit_code)


def _tell_price(planned: ManyPlan, books: pcor.Ledger | None, paid: Mapping[str, str]) -> None:
    tell(f"{planned.price}.")
    if books is not None:
        left = books.left(paid["dataset"], paid.get("analyst"))
        short = "" if left >= planned.epsilon else "; what is answered already costs nothing"
        tell(f"The ledger has epsilon {plain(left)} left{short}.")


def _show(results: Results, out: Path, *, full: bool, as_json: bool) -> None:
    tell(f"{results}\nresults written to {out}")
    tell_untold(results.releases)
    if as_json:
        say_json({**results.to_dict(), "out": str(out)})
        return
    for record, outcome in results.by_record():
        released = isinstance(outcome, pcor.Release)
        say(str(outcome) if released else f"Record {record}: {outcome}.")
    each = results.plan.each
    steps = f"{each.explain()}\n\n" if full else ""
    said = promised(each.promise, full=full)
    say(f"\n{results.plan.together}\n\nEach release:\n{steps}{said}")
