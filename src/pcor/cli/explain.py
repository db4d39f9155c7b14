"""``pcor explain``: what an error means, its cause and its fix, without a network.

Public: all of it. The pages are ``docs/errors`` of the repository; a wheel carries them along as
``pcor/error_pages``. Nothing here reads a table.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Annotated

import typer

from pcor.cli.output import AsJson, aligned, guarded, say, say_json
from pcor.errors import PcorError, UnknownName

_PACKAGE = Path(__file__).resolve().parent.parent
_LINK = re.compile(r"\[([^]]+)]\(([^)]+)\)")


def _kinds(incomplete: str) -> list[str]:
    return [kind for kind in pages(find_folder(_PACKAGE)) if kind.startswith(incomplete)]


@guarded
def explain(
    kind: Annotated[
        str | None,
        typer.Argument(
            help="The kind of error, as a message or its JSON names it; without one, all kinds.",
            metavar="[KIND]",
            autocompletion=_kinds,
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Explain an error: its cause, and what to do. It also says whether anything was charged.

    Example: pcor explain budget_exceeded
    """
    found = pages(find_folder(_PACKAGE))
    if kind is None:
        _list(found, as_json=as_json)
        return
    if kind not in found:
        raise UnknownName("kind of error", kind, found)
    text = found[kind]
    if as_json:
        say_json({"kind": kind, "summary": summary(text), "page": text})
    elif sys.stdout.isatty():
        _show(text)
    else:
        say(text.rstrip())


def find_folder(package: Path) -> Path:
    """Return where the pages are: in the installed package, or in the repository around it.

    Args:
        package: the folder of the package ``pcor``.
    """
    for folder in (package / "error_pages", package.parent.parent / "docs" / "errors"):
        if (folder / "index.md").is_file():
            return folder
    raise PcorError(
        "the pages about errors are not installed with this pcor; they are in docs/errors of its "
        "repository"
    )


def pages(folder: Path) -> dict[str, str]:
    """Return the page of each kind, in the order of their names."""
    files = sorted(path for path in folder.glob("*.md") if path.stem != "index")
    return {path.stem: path.read_text(encoding="utf-8") for path in files}


def summary(text: str) -> str:
    r"""Return what a page says first, in one line.

    >>> summary("# source\n\nThe table\ncannot be read.\n\n## What you see\n")
    'The table cannot be read.'
    """
    return " ".join(text.split("\n\n")[1].split())


def _list(found: dict[str, str], *, as_json: bool) -> None:
    if as_json:
        say_json({"kinds": {kind: summary(text) for kind, text in found.items()}})
        return
    for line in aligned([(kind, summary(text)) for kind, text in found.items()], 2):
        say(line)
    say("\npcor explain KIND says more about one.")


def _show(text: str) -> None:
    """Lay out a page for a person at a terminal, where links to other pages lead nowhere."""
    from rich.console import Console
    from rich.markdown import Markdown

    Console().print(Markdown(_LINK.sub(r"\1", text)))
