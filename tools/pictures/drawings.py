"""Pictures that are edited by hand, in the dark palette; the light ones follow from them.

``flow``: how a release flows. The order is that of ``releasing/run.py`` with a ledger: plan,
charge, look, draw, store, show. ``lattice``: the contexts of one record, ordered by inclusion, and
the draw among the valid ones; a test compares every number in it with the library. Nothing private:
both show the made-up people of ``pcor.demo.ten_people``.
"""

from __future__ import annotations

import re

from tools.pictures import FOLDER
from tools.pictures.palette import COLOURS, DARK, Palette

DRAWINGS = ("flow", "lattice")


def drawing(name: str, palette: Palette) -> str:
    """Return a drawing with the colours of a palette."""
    dark = (FOLDER / f"{name}-{DARK.mode}.svg").read_text(encoding="utf-8")
    return recoloured(dark, palette)


def recoloured(dark: str, palette: Palette) -> str:
    """Return a drawing in the dark palette with the colours of another.

    Not the other way round: a light surface has the colour of text on the accent.

    Raises:
        KeyError: the drawing has a colour that the dark palette does not have.
    """
    colours = {getattr(DARK, name): getattr(palette, name) for name in COLOURS}
    return re.sub(r"#[0-9a-f]{6}\b", lambda colour: colours[colour[0]], dark)
