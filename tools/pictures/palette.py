"""Two palettes for all pictures: the colours of the service's page, with names.

Public. WCAG 2.2 asks for a contrast of 4.5 between text and ground and of 3 between a mark that
means something and its ground; a test computes it for the pairs that the pictures use.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

FONT = (
    "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', 'Liberation Sans', Arial, "
    "sans-serif"
)


@dataclass(frozen=True)
class Palette:
    """The colours of one mode: those of the page's style sheet, with stronger edges and more lines.

    Attributes:
        mode: light or dark.
        paper: the ground of a picture.
        surface: the ground of a box.
        ink: text.
        soft: text that matters less.
        line: what only guides the eye.
        line_strong: the edge of a box, an arrow.
        accent: what a picture is about.
        on_accent: text on it.
        tint: the ground behind the curtain.
        tint_ink: text on it.
        lines: colours for the lines of a chart; there every line has a shape of its own too.
    """

    mode: str
    paper: str
    surface: str
    ink: str
    soft: str
    line: str
    line_strong: str
    accent: str
    on_accent: str
    tint: str
    tint_ink: str
    lines: tuple[str, ...]


LIGHT = Palette(
    mode="light",
    paper="#faf9f6",
    surface="#ffffff",
    ink="#1c2328",
    soft="#565f66",
    line="#e2dfd8",
    line_strong="#7d796f",
    accent="#17565a",
    on_accent="#ffffff",
    tint="#e3f0ee",
    tint_ink="#0f4145",
    lines=("#17565a", "#b8500a", "#6b747a", "#8f6c00", "#00805d", "#0068a8", "#6a3d9a", "#b02a7c"),
)
DARK = Palette(
    mode="dark",
    paper="#14181b",
    surface="#1c2226",
    ink="#e6e9ea",
    soft="#a3adb3",
    line="#2e363b",
    line_strong="#87939b",
    accent="#7cc7bd",
    on_accent="#0d2426",
    tint="#1f3d3d",
    tint_ink="#c3e8e2",
    lines=("#7cc7bd", "#f08a4b", "#a3adb3", "#dcb43c", "#4fc38c", "#6cb4ee", "#b79af0", "#ee83bd"),
)
PALETTES = (LIGHT, DARK)
# The names of single colours.
COLOURS = tuple(one.name for one in fields(Palette) if one.name not in ("mode", "lines"))
