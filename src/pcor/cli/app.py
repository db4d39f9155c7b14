"""The command ``pcor`` and its list of commands."""

from __future__ import annotations

from typing import Annotated

import typer

from pcor.cli import demo, doctor, owner, releasing, schema

app = typer.Typer(
    name="pcor",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,  # a traceback can hold private rows
    help="""Explain why a record is an outlier without giving away everybody else.

PCOR releases a context, such as "job is Librarian; any employer", in which the record really is an
outlier, drawn so that the other people in it are protected (relaxed differential privacy, OCDP).

Try: pcor demo

Then, with your own table:

pcor schema init claims.csv --metric amount --attributes region,product --out claims.toml

pcor release claims.csv --schema claims.toml --record 17 --epsilon 0.2
""",
)


def _print_version(wanted: bool) -> None:
    if wanted:
        from pcor import __version__

        print(f"pcor {__version__}")
        raise typer.Exit


@app.callback()
def _main(
    version: Annotated[
        bool,
        typer.Option(
            "--version", help="Print the version.", callback=_print_version, is_eager=True
        ),
    ] = False,
) -> None:
    """Hold the options of ``pcor`` itself."""


app.command("demo")(demo.demo)
app.add_typer(schema.app, name="schema")
app.command("plan")(releasing.plan)
app.command("release")(releasing.release)
app.command("contexts")(owner.contexts)
app.command("outliers")(owner.outliers)
app.command("doctor")(doctor.doctor)


def run() -> None:
    """Run the command line."""
    app()
