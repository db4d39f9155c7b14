"""Option: what flags, form fields, requests and certificates need to know of one setting.

Public: everything here. ``Settings`` declares one for each of its fields.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

# Where settings are given: a release on the command line, an audit there, a dataset's registration.
Interface = Literal["release", "audit", "service"]

EVERY_INTERFACE: tuple[Interface, ...] = ("release", "audit", "service")


@dataclass(frozen=True)
class Option:
    """What the interfaces need to know of a setting.

    Attributes:
        help: what it does, for a person who has a flag to set.
        kind: a text, a whole number, an exact number, a context of the schema, or a switch that is
            on or off.
        names: what a text may be, as far as that is known.
        only: whether a text may be nothing else; a detector's name may have settings behind it.
        least: the smallest whole number,
        most: and the largest.
        label: what the page calls it.
        hint: what the page says below it.
        chosen: whether the page lets choose from the names.
        first: whether the page shows it before all others.
        interfaces: where it is offered.
        registered: what a registration has that does not name it, where that is not the default.
        describe: how a certificate and a request write what a plan has settled; ``None`` where the
            search's or the bill's own words say it.
        later: whether requests were written without it: left at its default, it is not in them, so
            that what was answered once keeps its fingerprint. A plan leaves such a setting as it
            was given.
    """

    help: str
    kind: Literal["text", "whole", "amount", "context", "switch"] = "text"
    names: Callable[[], tuple[str, ...]] | None = None
    only: bool = False
    least: int = 1
    most: int | None = None
    label: str = ""
    hint: str = ""
    chosen: bool = True
    first: bool = False
    interfaces: tuple[Interface, ...] = EVERY_INTERFACE
    registered: object = None
    describe: Callable[[Any], Any] | None = None
    later: bool = False


def declare(words: str, **declared: Any) -> dict[str, Option]:
    """Declare an option, as the metadata of its field."""
    return {"option": Option(words, **declared)}


def either(*names: str) -> str:
    """Write names as a choice: a, b or c."""
    return f"{', '.join(names[:-1])} or {names[-1]}"


def as_it_is(value: object) -> object:
    """Describe a value as itself."""
    return value
