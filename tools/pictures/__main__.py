"""Draw the pictures: ``python -m tools.pictures``."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial

from tools.pictures import FOLDER, tradeoff
from tools.pictures.drawings import DRAWINGS, drawing
from tools.pictures.palette import PALETTES, Palette

PICTURES: dict[str, Callable[[Palette], str]] = {
    **{name: partial(drawing, name) for name in DRAWINGS},
    "tradeoff": tradeoff.chart,
}


def main(arguments: list[str] | None = None) -> None:
    """Draw everything."""
    parser = argparse.ArgumentParser(prog="python -m tools.pictures", description=__doc__)
    parser.add_argument(
        "--measure", action="store_true", help="measure the trade-off anew first: minutes"
    )
    if parser.parse_args(arguments).measure:
        tradeoff.NUMBERS.write_text(tradeoff.measure(), encoding="utf-8")
    for name, draw in PICTURES.items():
        for palette in PALETTES:
            target = FOLDER / f"{name}-{palette.mode}.svg"
            target.write_text(draw(palette), encoding="utf-8")
            print(f"written: {target.relative_to(FOLDER.parents[1])}")


if __name__ == "__main__":
    main()
