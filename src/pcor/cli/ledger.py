"""``pcor ledger``: budgets, allotments, and the books of a ledger.

Public: all that is printed. A ledger holds what was asked, what it cost and what was released.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import pcor
from pcor.cli import options
from pcor.cli.output import aligned, guarded, say, say_json, tell
from pcor.errors import LedgerError, ParameterError, did_you_mean, plain
from pcor.support.files import check_new, check_target

if TYPE_CHECKING:
    from pcor.ledger import Entry, Head, Status

app = typer.Typer(
    help="Keep a budget that outlives the command. Set it, share it out, look at the books.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

Url = Annotated[
    str, typer.Argument(help="A file (books.db), or a postgresql:// URL.", metavar="LEDGER")
]
Dataset = Annotated[
    str,
    typer.Argument(
        help="The people the budget is for; by default releases use the schema's name.",
        metavar="DATASET",
    ),
]
Analyst = Annotated[str, typer.Argument(help="The analyst, or a project.", metavar="ANALYST")]
OnlyDataset = Annotated[str | None, typer.Argument(help="Only this dataset.", metavar="[DATASET]")]
Ceiling = Annotated[
    str, typer.Option("--epsilon", help="What all releases together may cost, for example 2.")
]
Slack = Annotated[
    str | None, typer.Option("--delta", help="All deltas together, at most; by default 0.")
]


@app.command("budget")
@guarded
def budget(
    url: Url,
    dataset: Dataset,
    epsilon: Ceiling,
    delta: Slack = None,
    cap: Annotated[str | None, typer.Option(help="The most that one release may cost.")] = None,
    as_json: options.AsJson = False,
) -> None:
    """Set what all releases about a dataset's people may spend. A new ledger is made.

    A later call replaces all three numbers, but nothing below what is spent. Example:

    pcor ledger budget books.db claims --epsilon 2 --cap 0.5
    """
    books = pcor.Ledger(url)
    if books.head().entries == 0:
        tell("note: this ledger is new; a second one for the same people is a second budget")
    known = books.datasets()
    if known and dataset not in known:
        tell(
            f"note: dataset {dataset!r} is new in this ledger: a second one for the same people is "
            f"a second budget{did_you_mean(dataset, known)}"
        )
    before = books.status(dataset).cap if dataset in known else None
    _show([books.set_budget(dataset, epsilon, delta, cap)], as_json)
    if before is not None and cap is None:
        tell(f"note: the cap of {plain(before)} on one release is removed; --cap keeps one")


@app.command("allot")
@guarded
def allot(
    url: Url,
    dataset: Dataset,
    analyst: Analyst,
    epsilon: Ceiling,
    delta: Slack = None,
    as_json: options.AsJson = False,
) -> None:
    """Set what one analyst may spend of a dataset's budget.

    Example: pcor ledger allot books.db claims ana --epsilon 0.5
    """
    _show([_open(url).allot(dataset, analyst, epsilon, delta)], as_json)


@app.command("close")
@guarded
def close(
    url: Url,
    dataset: Dataset,
    analyst: Analyst,
    as_json: options.AsJson = False,
) -> None:
    """Let one analyst spend nothing more of a dataset's budget.

    What was spent stays spent, what was paid for is answered; `allot` opens it again. Example:

    pcor ledger close books.db claims ana
    """
    _show([_open(url).close_allotment(dataset, analyst)], as_json)


@app.command("show")
@guarded
def show(
    url: Url,
    dataset: OnlyDataset = None,
    as_json: options.AsJson = False,
) -> None:
    """Show budgets: what is spent, and what is left. Spending is listed by guarantee.

    Example: pcor ledger show books.db
    """
    ledger = _open(url)
    names = ledger.datasets() if dataset is None else [dataset]
    _show([ledger.status(name) for name in names], as_json, ledger.head())


@app.command("history")
@guarded
def history(
    url: Url,
    dataset: OnlyDataset = None,
    as_json: options.AsJson = False,
) -> None:
    """List budgets, charges, answers and refusals, in order.

    An answer has no time: how long it took depends on private rows. Example:

    pcor ledger history books.db claims
    """
    ledger = _open(url)
    if dataset is not None:
        ledger.status(dataset)  # refuses a name without a budget
    entries = list(ledger.entries(dataset))
    if as_json:
        say_json({"entries": [entry.to_dict() for entry in entries], "head": str(ledger.head())})
        return
    _print_entries(entries)


@app.command("export")
@guarded
def export(
    url: Url,
    out: Annotated[Path | None, typer.Option(help="Where to write; by default to stdout.")] = None,
    as_json: options.AsJson = False,
) -> None:
    """Write every entry as one line of JSON. Entries are budgets, charges, answers, refusals.

    Example: pcor ledger export books.db --out books.jsonl
    """
    ledger = _open(url)
    if out is None:
        if as_json:
            raise ParameterError(
                "--json goes with --out FILE; without it stdout has the entries, as lines of JSON"
            )
        ledger.export(sys.stdout)
        return
    check_target(out)
    written = ledger.export(out)
    if as_json:
        say_json({"entries": written, "out": str(out), "head": str(ledger.head())})
    else:
        tell(f"{written} entries written to {out}")


@app.command("verify")
@guarded
def verify(
    url: Url,
    noted: Annotated[
        str | None, typer.Option(help="A head that was noted earlier, as `show` prints it.")
    ] = None,
    as_json: options.AsJson = False,
) -> None:
    """Check that no entry was changed, removed or moved. All totals must follow from them.

    Example: pcor ledger verify books.db
    """
    checked = _open(url).verify(None if noted is None else _head(noted))
    if as_json:
        problems = list(checked.problems)
        say_json({"ok": checked.ok, "problems": problems, "head": str(checked.head)})
    else:
        say(str(checked))
    if not checked.ok:
        raise typer.Exit(LedgerError.exit_code)


@app.command("keygen")
@guarded
def keygen(
    private: Annotated[
        Path, typer.Argument(help="Where the private key goes; a new file.", metavar="PRIVATE")
    ],
    public: Annotated[
        Path | None,
        typer.Option(help="Where the public key goes; by default beside it, with .pub."),
    ] = None,
    as_json: options.AsJson = False,
) -> None:
    """Make a key that signs certificates, and its public key. The public key checks them.

    Only you can read the private one (mode 0600); no file is ever replaced. Example:

    pcor ledger keygen owner.key
    """
    shared = private.with_name(f"{private.name}.pub") if public is None else public
    for path, what in ((private, "PRIVATE"), (shared, "--public")):
        check_target(path, what=what)
        check_new(path, "name; keys are never replaced")
    key = pcor.SigningKey.generate()
    key.save(private)
    key.public.save(shared)
    if as_json:
        say_json({"key": str(key.public), "private": str(private), "public": str(shared)})
        return
    say(str(key.public))
    tell(f"private key written to {private}: keep it, and a copy, where nobody else can read it")
    tell(f"public key written to {shared}: give it to whoever is to check what you sign")


@app.command("upgrade")
@guarded
def upgrade(url: Url, as_json: options.AsJson = False) -> None:
    """Bring the tables of a ledger up to date. Every other command does so too.

    Example: pcor ledger upgrade books.db
    """
    from pcor.ledger.tables import VERSION  # brings a database library along

    _open(url)
    if as_json:
        say_json({"version": VERSION})
    else:
        say(f"the ledger's tables are of version {VERSION}")


def _open(url: str) -> pcor.Ledger:
    """Open a ledger that exists: a misspelt name must not make one."""
    return pcor.Ledger(url, create=False)


def _head(text: str) -> Head:
    from pcor.ledger import Head

    count, _, digits = text.partition(":")
    if not count.isdecimal() or len(digits) != 64:
        raise ParameterError("--noted is a number, a colon and 64 digits, as `show` prints it")
    return Head(int(count), digits)


def _print_entries(entries: list[Entry]) -> None:
    """Print entries as a table; a hash by its first digits, which `grep` finds."""
    from pcor.ledger.entries import entry_in_words

    rows = [("number", "when (UTC)", "kind", "dataset", "analyst", "hash", "what")]
    rows += [
        (
            str(entry.number),
            entry.at.replace("T", " ").removesuffix("Z"),
            entry.kind,
            entry.dataset,
            entry.analyst,
            entry.hash[:10],
            entry_in_words(entry),
        )
        for entry in entries
    ]
    for line in aligned(rows, len(rows[0])):
        say(line)


def _show(found: list[Status], as_json: bool, head: Head | None = None) -> None:
    if as_json:
        content: dict[str, Any] = {"datasets": [status.to_dict() for status in found]}
        say_json(content if head is None else content | {"head": str(head)})
        return
    for status in found:
        say(str(status))
    if not found:
        say("no budget is set yet")
    if head is not None:
        tell(f"head {head}")
