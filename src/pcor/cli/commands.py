"""The command ``pcor`` and its list of commands.

A command's module, and the part of the library that it needs, is imported when the command runs,
shows its own help or completes its own options: ``pcor --help`` needs none of them.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperCommand, TyperGroup

# Each command: where it is, and its line in the list, which is the first sentence of its own help.
COMMANDS = {
    "demo": (
        "demo:demo",
        "Release one context on built-in synthetic data.",
    ),
    "schema": ("schema:app", "Draft a schema, or check that a table fits one."),
    "plan": ("releases:plan", "Tell what a release would do and cost."),
    "release": ("releases:release", "Release one context in which the record is an outlier."),
    "contexts": (
        "owner:contexts",
        "OWNER ONLY: list COE, the contexts where a record stands out.",
    ),
    "outliers": (
        "owner:outliers",
        "OWNER ONLY: list the records that are outliers in one context.",
    ),
    "reference": (
        "owner:reference",
        "OWNER ONLY: write every context with all of its outliers.",
    ),
    "calibrate": (
        "calibrate:calibrate",
        "OWNER ONLY: tell how many rows stand out somewhere.",
    ),
    "audit": ("audit:audit", "OWNER ONLY: say who a release would expose, and by how much."),
    "tradeoff": (
        "tradeoff:tradeoff",
        "Draw utility and validity against epsilon.",
    ),
    "experiment": ("experiment:app", "Run the paper's experiments again."),
    "ledger": (
        "ledger:app",
        "Keep a budget that outlives the command.",
    ),
    "verify": (
        "verify:verify",
        "Check a signed certificate: by which key, and unchanged since.",
    ),
    "serve": (
        "serve:serve",
        "Serve releases over HTTP.",
    ),
    "doctor": (
        "doctor:doctor",
        "Check the installation: versions, randomness, detectors.",
    ),
    "explain": (
        "explain:explain",
        "Explain an error: its cause, and what to do.",
    ),
}


class LazyCommand(TyperCommand):
    """A command that is known by its name and its line until somebody uses it."""

    def load(self) -> Any:
        """Import the command itself."""
        place, _ = COMMANDS[self.name or ""]
        module, _, name = place.partition(":")
        found = getattr(import_module(f"pcor.cli.{module}"), name)
        holder = typer.Typer(rich_markup_mode=None)
        if isinstance(found, typer.Typer):
            holder.add_typer(found, name=self.name)
        else:
            holder.command(self.name)(found)
        return typer.main.get_group(holder).commands[self.name or ""]

    def make_context(self, *args: Any, **kwargs: Any) -> Any:
        """Hand over to the command itself: typer goes on with the one that the context names."""
        return self.load().make_context(*args, **kwargs)


class Commands(TyperGroup):
    """Know the commands by name; refuse a misspelt line, as JSON where JSON was asked for."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        for name, (_, line) in COMMANDS.items():
            self.add_command(LazyCommand(name, help=line))

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
        if not standalone_mode:
            return super().main(words, prog_name, complete_var, False, windows_expand_args, **extra)
        try:
            done = super().main(words, prog_name, complete_var, False, windows_expand_args, **extra)
        except typer.Abort:
            sys.exit("Aborted!")
        except Exception as error:
            # Typer's refusals can show themselves; their base class is not one of its public names.
            if not hasattr(error, "show") or not hasattr(error, "format_message"):
                raise
            _refuse(error, as_json="--json" in words)
        finally:
            _flush()
        sys.exit(done)


def _refuse(error: Any, *, as_json: bool) -> NoReturn:
    """Say what typer says of a misspelt line, and where there is more about it."""
    with suppress(BrokenPipeError):  # where nobody reads it, the exit code still says it
        error.show()
        sentence = error.format_message()
        if not sentence.startswith("Usage:"):  # else a bare command, which shows its help
            print("(more: pcor explain usage)", file=sys.stderr)
        if as_json:
            from pcor.cli.output import say_json

            say_json({"ok": False, "error": sentence, "kind": "usage"})
    sys.exit(2)


def _flush() -> None:
    """Write what print still holds back. A reader who went away (pcor ... | head) is no error.

    Python itself would write it when it ends, where all it can do with a failure is to print it.
    """
    for stream in (sys.stdout, sys.stderr):
        if stream is None:  # closed by whoever started the program
            continue
        try:
            stream.flush()
        except OSError as error:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
            if not isinstance(error, BrokenPipeError):
                sys.exit(f"pcor: the result cannot be written: {error.strerror}")


app = typer.Typer(
    name="pcor",
    cls=Commands,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,  # a traceback can hold private rows
    help="""Explain why a record is an outlier without giving away everybody else.

PCOR releases a context, such as "job is Librarian; year is 2006 to 2008", in which the record is
really an outlier, drawn so that it tells little about the other people in it. The usual guarantee
is a relaxed one (OCDP) and does not cover everybody; --guarantee dp covers everyone but the record.
Each release states its guarantee, and with --full who is not protected.

Try: pcor demo

Then, with your own table:

pcor schema init claims.csv --metric amount --attributes region,product --out claims.toml

In claims.toml, read the parts marked REVIEW, correct them, and delete the marks. Then:

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
