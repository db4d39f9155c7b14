"""The command ``pcor`` and its list of commands."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from pcor.cli import (
    audit,
    demo,
    doctor,
    experiment,
    ledger,
    owner,
    reference,
    releasing,
    schema,
    serve,
    tradeoff,
)
from pcor.cli.output import say_json


class Commands(TyperGroup):
    """Also say a misspelt command line as JSON, where JSON was asked for."""

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        windows_expand_args: bool = True,
        **extra: Any,
    ) -> Any:
        """Run; what typer itself refuses never reaches a command's own guard."""
        words = list(sys.argv[1:] if args is None else args)
        if not standalone_mode or "--json" not in words:
            return super().main(
                words, prog_name, complete_var, standalone_mode, windows_expand_args, **extra
            )
        try:
            done = super().main(words, prog_name, complete_var, False, windows_expand_args, **extra)
        except Exception as error:
            # Typer's refusals can show themselves; their base class is not one of its public names.
            if not hasattr(error, "show") or not hasattr(error, "format_message"):
                raise
            error.show()
            say_json({"ok": False, "error": error.format_message(), "kind": "usage"})
            sys.exit(2)
        sys.exit(done)


app = typer.Typer(
    name="pcor",
    cls=Commands,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,  # a traceback can hold private rows
    help="""Explain why a record is an outlier without giving away everybody else.

PCOR releases a context, such as "job is Librarian; any employer", in which the record really is an
outlier, drawn so that it tells little about the other people in it. The usual guarantee is a
relaxed one (OCDP) and does not cover everybody; --guarantee dp covers everyone but the record.
Each release says in full what it promises.

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
app.command("reference")(reference.reference)
app.command("audit")(audit.audit)
app.command("tradeoff")(tradeoff.tradeoff)
app.add_typer(experiment.app, name="experiment")
app.add_typer(ledger.app, name="ledger")
app.command("serve")(serve.serve)
app.command("doctor")(doctor.doctor)


def run() -> None:
    """Run the command line."""
    app()
