"""Write a chart of altair's to a file; the extra ``plots`` installs it.

Nothing is computed here, and who may see a file is for the caller to say in the chart. Files need
no network: PNG and SVG are drawn by vl-convert, and HTML holds its own JavaScript.
"""

from __future__ import annotations

import html
import io
from pathlib import Path
from typing import Any

import vl_convert  # noqa: F401 (altair draws by it; where it is missing, say so before the work)

from pcor.support.files import check_target, write_whole

ENDINGS = (".png", ".svg", ".html")


def save_picture(chart: Any, path: str | Path, title: str) -> None:
    """Write a chart as .png, .svg or .html, whole or not at all; a page has the title."""
    check_target(Path(path), ENDINGS, "the chart")

    def write(part: Path) -> None:
        match part.suffix.lower():
            case ".png":
                chart.save(part, format="png", scale_factor=2)
            case ".svg":
                part.write_text(_drawing(chart), encoding="utf-8")
            case _:
                part.write_text(_page(chart, title), encoding="utf-8")

    write_whole(path, write)


def _drawing(chart: Any) -> str:
    """Return the chart as SVG that says to a screen reader what it shows."""
    text = io.StringIO()
    chart.save(text, format="svg")
    said = html.escape(str(chart.description))
    return text.getvalue().replace("<svg ", f'<svg role="img" aria-label="{said}" ', 1)


def _page(chart: Any, title: str) -> str:
    """Return a page that loads nothing and sends nothing.

    The menu item that opens a chart in the public Vega editor would hand over its points.
    """
    menu = {"export": True, "source": False, "compiled": False, "editor": False}
    page: str = chart.to_html(inline=True, embed_options={"actions": menu})
    return page.replace("<html>", '<html lang="en">', 1).replace(
        "<head>", f"<head>\n  <title>PCOR: {title}</title>", 1
    )
