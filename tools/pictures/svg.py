"""A few functions that write SVG as text: the same call gives the same bytes everywhere.

Public. Text stays text, so it can be read aloud, searched and copied; nothing is fetched. Every
drawing is ``WIDTH`` wide and has a title and a description for those who do not see it.
"""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from tools.pictures.palette import FONT, Palette

WIDTH = 800


def number(value: float) -> str:
    """Write a coordinate with at most two decimals."""
    return f"{value:.2f}".rstrip("0").rstrip(".")


def tag(name: str, inside: str | None = None, **attributes: str | float) -> str:
    """Write an element; an underscore in a name stands for a hyphen."""
    given = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(_value(value))}"'
        for key, value in attributes.items()
    )
    return f"<{name}{given}/>" if inside is None else f"<{name}{given}>{inside}</{name}>"


def _value(value: str | float) -> str:
    return value if isinstance(value, str) else number(value)


def text(
    x: float,
    y: float,
    words: str,
    fill: str,
    *,
    size: float = 15,
    anchor: str = "start",
    bold: bool = False,
    halo: str | None = None,
) -> str:
    """Write one line of words; a halo keeps lines behind it away from the letters."""
    more: dict[str, str | float] = {"font_weight": "600"} if bold else {}
    if anchor != "start":
        more["text_anchor"] = anchor
    if halo is not None:
        more |= {"stroke": halo, "stroke_width": 5, "paint_order": "stroke"}
        more["stroke_linejoin"] = "round"
    return tag("text", escape(words, quote=False), x=x, y=y, font_size=size, fill=fill, **more)


def lines(x: float, y: float, words: Iterable[str], fill: str, *, size: float = 15) -> list[str]:
    """Write lines of words below each other; y is the first one's."""
    step = round(size * 1.4)
    return [text(x, y + step * place, line, fill, size=size) for place, line in enumerate(words)]


def box(
    x: float,
    y: float,
    width: float,
    height: float,
    fill: str,
    stroke: str,
    *,
    thick: float = 1.5,
    radius: float = 10,
) -> str:
    """Draw a rectangle with round corners."""
    return tag(
        "rect",
        x=x,
        y=y,
        width=width,
        height=height,
        rx=radius,
        fill=fill,
        stroke=stroke,
        stroke_width=thick,
    )


def circle(x: float, y: float, radius: float, fill: str, stroke: str, thick: float = 2) -> str:
    """Draw a circle."""
    return tag("circle", cx=x, cy=y, r=radius, fill=fill, stroke=stroke, stroke_width=thick)


def line(x: float, y: float, to_x: float, to_y: float, stroke: str, thick: float = 1.5) -> str:
    """Draw a straight line."""
    return tag("line", x1=x, y1=y, x2=to_x, y2=to_y, stroke=stroke, stroke_width=thick)


def document(
    palette: Palette, height: float, title: str, description: str, parts: Iterable[str]
) -> str:
    """Return a whole drawing on its own opaque ground: it is readable on any page."""
    body = "\n".join(parts)
    inside = (
        f'\n<title id="title">{escape(title)}</title>\n<desc id="desc">{escape(description)}</desc>'
        f"\n{tag('rect', width=WIDTH, height=height, rx=14, fill=palette.paper)}\n{body}\n"
    )
    return (
        tag(
            "svg",
            inside,
            xmlns="http://www.w3.org/2000/svg",
            viewBox=f"0 0 {WIDTH} {number(height)}",
            width=WIDTH,
            height=height,
            role="img",
            aria_labelledby="title desc",
            font_family=FONT,
        )
        + "\n"
    )
