"""Markdown that reads well as text and on the site: headings, tables, blocks."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Sequence


def section(level: int, title: str, *parts: str) -> str:
    """Return a heading with what belongs to it."""
    filled = [part.strip("\n") for part in parts if part.strip()]
    return "\n\n".join([f"{'#' * level} {title}", *filled])


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    r"""Return a table, without the columns that are empty in every row; nothing for no rows.

    >>> print(table(["name", "type", "meaning"], [["a", "", "first"], ["b", "", "x | y"]]))
    | name | meaning |
    | --- | --- |
    | a | first |
    | b | x \| y |
    """
    rows = [[cell(text) for text in row] for row in rows]
    kept = [place for place in range(len(head)) if any(row[place] for row in rows)]
    if not kept:
        return ""
    lines = [[head[place] for place in kept], ["---"] * len(kept)]
    lines += [[row[place] for place in kept] for row in rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def cell(text: str) -> str:
    r"""Return a text as one cell: on one line, and no bar in it ends the cell.

    In code a bar is written as HTML: some readers of Markdown show a backslash there, others need
    it.

    >>> print(cell("a | b, `int | str`"))
    a \| b, <code>int &#124; str</code>
    """
    words = " ".join(text.split())
    parts = re.split(r"(`[^`]+`)", words)
    return "".join(_code_cell(part) if part[:1] == "`" else _bars(part) for part in parts)


def _code_cell(part: str) -> str:
    inside = html.escape(part.strip("`"), quote=False).replace("|", "&#124;")
    return f"<code>{inside}</code>" if "|" in part else part


def _bars(part: str) -> str:
    return re.sub(r"(?<!\\)\|", r"\\|", part)


def code(text: object) -> str:
    """Return inline code; nothing for nothing."""
    words = " ".join(str(text).split())
    if not words:
        return ""
    return f"`` {words} ``" if "`" in words else f"`{words}`"


def either(text: str) -> str:
    """Return a type; the kinds of which it may be one are joined by a word.

    >>> either("str | list[int | str] | None")
    '`str` or `list[int | str]` or `None`'
    """
    kinds, depth, begin = [], 0, 0
    for place, sign in enumerate(text):
        depth += (sign in "[(") - (sign in "])")
        if sign == "|" and depth == 0:
            kinds.append(text[begin:place])
            begin = place + 1
    return " or ".join(code(kind) for kind in [*kinds, text[begin:]] if kind.strip())


def block(text: str, language: str = "text") -> str:
    """Return a code block."""
    return f"```{language}\n{text.rstrip()}\n```"


def anchor(title: str) -> str:
    """Return the anchor that the site gives to a heading.

    >>> anchor("pcor ledger show"), anchor("`Schema.from_file`")
    ('pcor-ledger-show', 'schemafrom_file')
    """
    kept = re.sub(r"[^\w\s-]", "", title).strip().lower()
    return re.sub(r"[-\s]+", "-", kept)


def link(title: str, target: str) -> str:
    """Return a link."""
    return f"[{title}]({target})"
