"""Pieces of HTML that notebooks and certificates share. Public: what is given to it already is.

Every text is escaped here and nowhere else. A piece needs nothing from outside, keeps its style to
itself (``.pcor``), takes its colours from the page around it, and still tells chosen values from
the others where a viewer throws styles away: they are bold, the others are struck through. On
paper the chosen ones are black, ticked and framed: browsers leave out backgrounds.
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping, Sequence

STYLE = """
.pcor { --line: #8886; --on: #2563eb; max-width: 46rem; line-height: 1.5 }
.pcor table { border-collapse: collapse; width: 100%; table-layout: auto }
.pcor tr { background: none }
.pcor th, .pcor td { border-bottom: 1px solid var(--line); padding: .4rem .6rem; text-align: left;
  vertical-align: top; overflow-wrap: anywhere; white-space: normal; font-size: 1em }
.pcor th { overflow-wrap: break-word; max-width: 14em }
.pcor .sentence { font-size: 1.1em; font-weight: 600 }
.pcor .value { display: inline-block; border: 1px solid var(--line); border-radius: .3rem;
  padding: 0 .4rem; margin: .1rem; font-weight: normal }
.pcor .in { background: var(--on); border-color: var(--on); color: #fff }
.pcor .out { opacity: .6 }
.pcor .warning { border: 3px solid #dc2626; padding: .6rem; font-weight: bold }
.pcor pre { white-space: pre-wrap; overflow-wrap: anywhere }
@media print {
  .pcor { --line: #999; color: #000; max-width: none }
  .pcor .in { background: none; border: 2px solid #000; color: #000; font-weight: bold }
  .pcor .in::before { content: "\u2713" / ""; margin-right: .3rem }
  .pcor .out { border-color: transparent; color: #666; opacity: 1 }
  .pcor tr, .pcor pre, .pcor li { break-inside: avoid }
}
"""


def fragment(*parts: str) -> str:
    """Return parts that are HTML already as one piece to be put into any page."""
    return f'<div class="pcor"><style>{STYLE}</style>{"".join(parts)}</div>'


def paragraph(text: str, kind: str = "") -> str:
    """Return a text as a paragraph of a class.

    >>> paragraph("1 < 2")
    '<p>1 &lt; 2</p>'
    """
    named = f' class="{kind}"' if kind else ""
    return f"<p{named}>{html.escape(text)}</p>"


def folded(title: str, text: str) -> str:
    """Return a text that is shown when its title is clicked.

    >>> folded("more", "1 < 2")
    '<details><summary>more</summary><p>1 &lt; 2</p></details>'
    """
    return f"<details><summary>{html.escape(title)}</summary>{paragraph(text)}</details>"


def listed(items: Iterable[str]) -> str:
    """Return texts as an HTML list."""
    return f"<ul>{''.join(f'<li>{html.escape(item)}</li>' for item in items)}</ul>"


def table(head: Sequence[str], rows: Iterable[Sequence[object]], last: bool = False) -> str:
    """Return texts as a table; with ``last`` the last row is a total."""
    rows = list(rows)
    titles = "".join(f'<th scope="col">{html.escape(title)}</th>' for title in head)
    body = [f"<tr>{''.join(f'<td>{_text(cell)}</td>' for cell in row)}</tr>" for row in rows]
    if last:
        first, *middle, end = rows[-1]
        cells = "".join(f"<td>{_text(cell)}</td>" for cell in middle)
        body[-1] = f'<tr><th scope="row">{_text(first)}</th>{cells}<th>{_text(end)}</th></tr>'
    return f"<table><tr>{titles}</tr>{''.join(body)}</table>"


def named_rows(rows: Mapping[str, object]) -> str:
    """Return a table of two columns, a name and what it is."""
    return f"<table>{''.join(_row(name, _text(what)) for name, what in rows.items())}</table>"


def chips(rows: Mapping[str, Sequence[tuple[str, bool]]]) -> str:
    """Return a table of attributes with all their values, each with whether it is chosen."""
    body = "".join(
        _row(name, " ".join(_chip(value, chosen) for value, chosen in every))
        for name, every in rows.items()
    )
    head = '<tr><th scope="col">attribute</th><th scope="col">values</th></tr>'
    return f"<table>{head}{body}</table>"


def _chip(value: object, chosen: bool) -> str:
    tag, kind = ("b", "in") if chosen else ("s", "out")
    return f'<{tag} class="value {kind}">{_text(value)}</{tag}>'


def _row(name: str, content: str) -> str:
    return f'<tr><th scope="row">{html.escape(name)}</th><td>{content}</td></tr>'


def _text(value: object) -> str:
    return html.escape(str(value))
