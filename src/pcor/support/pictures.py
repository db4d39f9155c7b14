"""Charts of altair's, framed alike and written to files; the extra ``plots`` installs it.

Nothing is computed here, and who may see a file is for the caller to say in the chart. Files need
no network: PNG and SVG are drawn by vl-convert, and HTML holds its own JavaScript.
"""

from __future__ import annotations

import html
import io
from pathlib import Path
from typing import Any

import altair as alt
import vl_convert  # noqa: F401 (altair draws by it; where it is missing, say so before the work)

from pcor.support.files import check_target, write_whole

ENDINGS = (".png", ".svg", ".html")


def framed(chart: Any, title: str, subtitle: list[str], shown: str, **axes: Any) -> Any:
    """Return a chart with a title, and with what it shows in words for who cannot see it."""
    return (
        chart.properties(
            title=alt.TitleParams(title, subtitle=subtitle, anchor="start", fontSize=18, offset=14),
            description=f"{title}. {shown} {' '.join(subtitle)}",
            background="white",  # on a dark page dark letters stay readable
            padding=14,
        )
        .configure_view(stroke="#DDDDDD")
        .configure_axis(gridColor="#EEEEEE", labelFontSize=12, titleFontSize=12, **axes)
    )


def save_picture(chart: Any, path: str | Path) -> None:
    """Write a framed chart as .png, .svg or .html, whole or not at all."""
    check_target(Path(path), ENDINGS, "the chart")

    def write(part: Path) -> None:
        match part.suffix.lower():
            case ".png":
                chart.save(part, format="png", scale_factor=2)
            case ".svg":
                part.write_text(drawing(chart, str(chart.description)), encoding="utf-8")
            case _:
                part.write_text(_page(chart), encoding="utf-8")

    write_whole(path, write)


def drawing(chart: Any, said: str) -> str:
    """Return the chart as SVG that says to a screen reader what it shows."""
    text = io.StringIO()
    chart.save(text, format="svg")
    label = f'<svg role="img" aria-label="{html.escape(said)}" '
    return text.getvalue().replace("<svg ", label, 1)


def _page(chart: Any) -> str:
    """Return a page that loads nothing and sends nothing.

    The menu item that opens a chart in the public Vega editor would hand over its points.
    """
    menu = {"export": True, "source": False, "compiled": False, "editor": False}
    page: str = chart.to_html(inline=True, embed_options={"actions": menu})
    return page.replace("<html>", '<html lang="en">', 1).replace(
        "<head>", f"<head>\n  <title>PCOR: {chart.title.text}</title>", 1
    )
