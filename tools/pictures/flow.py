"""How a release flows: public knowledge, the curtain, and the one way out, with the ledger beside.

Nothing private: the rows behind the curtain are the made-up people of ``pcor.demo.ten_people``. The
order is that of ``releasing/run.py`` with a ledger: plan, charge, look, draw, store, show. Nothing
in it is computed, so the light picture is edited by hand and the dark one follows from it.
"""

from __future__ import annotations

import re

from tools.pictures import FOLDER
from tools.pictures.palette import LIGHT, Palette

SOURCE = FOLDER / "flow-light.svg"


def flow(palette: Palette) -> str:
    """Return the picture with the colours of a palette.

    Raises:
        KeyError: the picture has a colour that the light palette does not have.
    """
    # Text on the accent is as light as a surface, so the picture can have only one of them.
    names = ("paper", "surface", "ink", "soft", "line", "line_strong", "accent", "tint", "tint_ink")
    colours = {getattr(LIGHT, name): getattr(palette, name) for name in names}
    drawing = SOURCE.read_text(encoding="utf-8")
    return re.sub(r"#[0-9a-f]{6}\b", lambda colour: colours[colour[0]], drawing)
