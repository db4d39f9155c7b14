"""How the command line speaks: results on stdout, all else on stderr, errors as sentences."""

from __future__ import annotations

import functools
import json
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Annotated, Any, NoReturn, TypeVar

import typer

from pcor.cli import interrupts
from pcor.errors import ParameterError, PcorError, sendable
from pcor.public.guarantee import OWNER_ONLY as OWNER_ONLY
from pcor.public.guarantee import Promise

if TYPE_CHECKING:
    from pcor.releasing.certificate import Release

# Here and not among the options: a doctor must not need what it looks for.
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout.")]

# Seconds that a person waits without wondering.
PATIENCE = 1

# Seconds until whoever reads a file instead of a terminal is told how long it takes.
ESTIMATE_AFTER = 10

Command = TypeVar("Command", bound=Callable[..., None])


def say(text: str) -> None:
    """Print a result."""
    print(sendable(text))


def tell(text: str) -> None:
    """Print a message that is not part of the result."""
    with suppress(BrokenPipeError):  # who does not read it may still read the result
        print(text, file=sys.stderr)


def say_json(content: dict[str, Any]) -> None:
    """Print a result as one JSON object."""
    say(json.dumps(content, indent=2, ensure_ascii=False))


def promised(promise: Promise, *, full: bool) -> str:
    """Write a promise: what is guaranteed and what holds of the context; in full, all of it."""
    if full:
        return str(promise)
    said = filter(None, [promise.claim, promise.numbers, promise.validity])
    return "\n".join([*said, "(--full says who is not protected)"])


def guarded(command: Command) -> Command:
    """Turn every failure of a command into a sentence and an exit code.

    No traceback reaches the user: its lines can hold private rows. A developer sets PCOR_DEBUG=1.
    """

    @functools.wraps(command)
    def wrapper(*args: Any, **kwargs: Any) -> None:
        try:
            interrupts.tell_the_command()
            command(*args, **kwargs)
        except PcorError as error:
            # Notes are for whoever has the rows: they name what the schema need not name.
            sentence = "; ".join([error.at("cli"), *getattr(error, "__notes__", ())])
            _fail(sentence, error.kind, error.exit_code, as_json=kwargs.get("as_json", False))
        except KeyboardInterrupt:
            _interrupted()
        except (typer.Exit, typer.Abort):
            raise
        except BrokenPipeError:
            # The reader went away (pcor ... | head): not an error, and nothing left to say.
            raise typer.Exit(0) from None
        except Exception as error:
            if interrupts.was_dropped():
                _interrupted()
            if os.environ.get("PCOR_DEBUG"):
                raise
            sentence = (
                f"an internal error ({type(error).__name__}); nothing was released. Details are "
                "withheld because they can hold private rows; PCOR_DEBUG=1 shows them, to you alone"
            )
            _fail(sentence, "internal", 1, as_json=kwargs.get("as_json", False))

    return wrapper  # type: ignore[return-value]


def _interrupted() -> NoReturn:
    tell("pcor: interrupted; no file was left half-written")
    raise typer.Exit(130) from None


def _fail(sentence: str, kind: str, code: int, *, as_json: bool) -> None:
    with suppress(BrokenPipeError):  # where nobody reads it, the exit code still says it
        if as_json:
            say_json({"ok": False, "error": sentence, "kind": kind})
    tell(f"pcor: {sentence}\n(more: pcor explain {kind})")
    raise typer.Exit(code) from None


def check_plots(what: str, otherwise: str = "") -> None:
    """Refuse before the work a chart that nothing here can draw.

    Args:
        what: needs the chart.
        otherwise: what else there is to do.
    """
    try:
        import pcor.support.pictures  # noqa: F401 (takes a while, and is an extra)
    except ImportError:
        raise ParameterError(
            f"{what} needs altair and vl-convert, which are not installed: "
            f"pip install 'pcor[plots]'{otherwise}"
        ) from None


def tell_untold(released: Sequence[Release]) -> None:
    """Note what to do where epsilon was too small for a quantile: by released numbers alone."""
    from pcor.releasing.facts import untold  # not for a command that releases nothing

    said = [untold(one.facts, one.plan.schema) for one in released]
    if any(said):
        often = f" ({sum(map(bool, said)):,} of {len(said):,} records)" if len(said) > 1 else ""
        tell(
            f"note: {next(filter(None, said))}{often}: its interval is the whole grid. It takes a "
            "larger --epsilon or --facts-share, fewer --facts, or a coarser grid (step under "
            "[metric])"
        )


def tell_of_compiling() -> None:
    """Say that loops are about to be compiled, once, where a person waits for it, and how long."""
    if not sys.stderr.isatty():
        return
    from pcor.demo.warm_up import is_compiled, last_seconds  # brings Numba along

    if not is_compiled():
        known = last_seconds()
        long = "up to a minute" if known is None else f"it took {known} s last time for all of them"
        tell(
            "compiling the loops that judge contexts, once after an installation or an update "
            f"({long}; `pcor doctor` does it ahead) ..."
        )


def aligned(rows: Sequence[Sequence[str]], texts: int) -> list[str]:
    """Lay out columns: the first ones, which are texts, to the left, numbers to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.ljust(width) if place < texts else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


@contextmanager
def waiting(what: str, *, quiet: bool = False) -> Iterator[None]:
    """Turn a spinner on stderr for a person who has to wait; print nothing meanwhile.

    It turns and does not count: how far a private computation has come depends on the rows.
    """
    if quiet or not sys.stderr.isatty():
        yield
        return
    from rich.console import Console

    status = Console(stderr=True).status(what)
    timer = threading.Timer(PATIENCE, status.start)
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()  # it may be starting the spinner at this moment
        status.stop()


@contextmanager
def progress_bar(what: str, *, count: bool = False) -> Iterator[Callable[[int, int], None]]:
    """Show a progress bar on stderr where a person is looking. For owner-only work.

    Elsewhere it says once, after some seconds, how many are left; not of what is counted.

    Args:
        what: is done.
        count: whether it shows how many parts are done, and not the time that is left.
    """
    from rich import progress
    from rich.console import Console

    told = (progress.MofNCompleteColumn(),)
    timed = (progress.TaskProgressColumn(), progress.TimeRemainingColumn())
    columns = (
        progress.TextColumn("{task.description}"),
        progress.BarColumn(),
        *(told if count else timed),
    )
    console = Console(stderr=True)
    if not console.is_terminal:
        yield (lambda *_: None) if count else _estimate(what)
        return
    with progress.Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(what)

        def step(done: int, total: int) -> None:
            if done == 0:  # another part of the work begins, at a pace of its own
                bar.reset(task)
            bar.update(task, completed=done, total=total)

        yield step


def _estimate(what: str) -> Callable[[int, int], None]:
    """Return what says on stderr, once, about how long the rest takes."""
    from pcor.releasing.estimate import duration  # brings more of the library along

    began, told = time.monotonic(), False

    def step(done: int, total: int) -> None:
        nonlocal began, told
        if done == 0:  # another part of the work begins
            began, told = time.monotonic(), False
        passed = time.monotonic() - began
        if not told and passed > ESTIMATE_AFTER and 0 < done < total:
            told = True
            tell(f"{what}: about {duration(passed * (total - done) / done)} left")

    return step
