"""One page with all results: tables, figures and how to get them again. It loads nothing.

Private: what it shows. The page is a file of its own: no script, no font, no picture from anywhere.
"""

from __future__ import annotations

import html
import json
from collections.abc import Sequence
from typing import Any

from pcor.paper.experiments import SYNTHETIC
from pcor.paper.figures import figures
from pcor.paper.layout import Grid, grids
from pcor.paper.reasons import REASONS
from pcor.paper.store import NOT_PRIVATE
from pcor.public.guarantee import OWNER_ONLY

TITLE = "PCOR: the paper's experiments again"

_STYLE = """
:root { color-scheme: light dark; --ground: #ffffff; --ink: #1b1b1b; --line: #cfcfcf; }
@media (prefers-color-scheme: dark) {
  :root { --ground: #16181c; --ink: #e8e8e8; --line: #454a52; }
}
body { margin: 2rem auto; max-width: 72rem; padding: 0 1rem; background: var(--ground);
  color: var(--ink); font: 16px/1.5 system-ui, sans-serif; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; margin: 0.5rem 0 1rem; font-size: 0.85rem; }
caption { text-align: left; font-weight: 600; padding: 0.3rem 0; }
td { font-variant-numeric: tabular-nums; }
th, td { border: 1px solid var(--line); padding: 0.25rem 0.5rem; text-align: left; }
figure { margin: 1rem 0; }
figure svg { max-width: 100%; height: auto; }
figcaption { font-size: 0.85rem; }
.note { border-left: 4px solid #d55e00; padding-left: 0.8rem; }
pre { overflow-x: auto; }
"""


def first_line(summaries: Sequence[dict[str, Any]]) -> str:
    """Return who may see the results; those of a real table are for its owner."""
    return SYNTHETIC if all(s["owner_only"] == SYNTHETIC for s in summaries) else OWNER_ONLY


def page(summaries: Sequence[dict[str, Any]]) -> str:
    """Write the page."""
    sections = "\n".join(map(_section, summaries))
    links = "".join(
        f'<li><a href="#{s["experiment"]}">{html.escape(s["title"])}</a></li>' for s in summaries
    )
    return (
        f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<title>{TITLE}</title>'
        '\n<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<link rel="icon" href="data:,">\n<style>{_STYLE}</style>\n</head>\n<body>\n'
        f'<p class="note"><strong>{first_line(summaries)}</strong><br>{NOT_PRIVATE}</p>\n'
        f"<main>\n<h1>{TITLE}</h1>\n{_introduction()}\n<nav><ul>{links}</ul></nav>\n{sections}\n"
        "</main>\n</body>\n</html>\n"
    )


def _introduction() -> str:
    return (
        "<p>Utility is the population of the released context over that of the largest valid one. "
        "Numbers in brackets are 90 % intervals of the mean. <em>Paper</em> settings have the "
        "paper's search, number of samples and price list; <em>ours</em> is what the library does "
        "by itself. Times are those of one core.</p>"
    )


def _section(summary: dict[str, Any]) -> str:
    name = summary["experiment"]
    remarks = "".join(f"<li>{html.escape(remark)}</li>" for remark in summary["remarks"])
    reasons = "".join(f"<li>{html.escape(reason)}</li>" for reason in REASONS.get(name, ()))
    tables = "\n".join(map(_table, grids(summary)))
    drawn = "\n".join(
        f"<figure>{drawing}<figcaption>{html.escape(said)}</figcaption></figure>"
        for said, drawing in figures(summary)
    )
    about = {key: summary[key] for key in ("command", "interval", "about", "run")}
    return (
        f'<section id="{name}">\n<h2>{html.escape(summary["title"])}</h2>\n'
        f"<p>{html.escape(summary['source'])}.</p>\n<ul>{remarks}</ul>\n{tables}\n"
        + (f"<h3>Where we differ, and why</h3>\n<ul>{reasons}</ul>\n" if reasons else "")
        + f"{drawn}\n<details><summary>How to get this again</summary>\n"
        f"<pre>{html.escape(json.dumps(about, indent=1))}</pre></details>\n</section>"
    )


def _table(grid: Grid) -> str:
    heads = "".join(f'<th scope="col">{html.escape(name)}</th>' for name in grid.columns)
    rows = "\n".join(
        "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in cells) + "</tr>"
        for cells in grid.cells
    )
    return (
        f'<div class="scroll"><table><caption>{html.escape(grid.title)}</caption>'
        f"<thead><tr>{heads}</tr></thead><tbody>\n{rows}\n</tbody></table></div>"
    )
