"""Draw the pictures: ``python -m tools.pictures [NAME ...] [--out docs/pictures]``."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

from tools.pictures.flow import flow
from tools.pictures.lattice import lattice
from tools.pictures.palette import PALETTES

FOLDER = Path(__file__).parents[2] / "docs" / "pictures"


def draw_flow(folder: Path) -> None:
    """Write how a release flows."""
    for palette in PALETTES:
        _write(folder / f"flow-{palette.mode}.svg", flow(palette))


def draw_lattice(folder: Path) -> None:
    """Write the contexts of a record and the draw among them."""
    for palette in PALETTES:
        _write(folder / f"lattice-{palette.mode}.svg", lattice(palette))


def draw_tradeoff(folder: Path) -> None:
    """Write the trade-off from the numbers that were measured last."""
    from tools.pictures.tradeoff import read, tradeoff

    points = read(FOLDER)
    for palette in PALETTES:
        _write(folder / f"tradeoff-{palette.mode}.svg", tradeoff(palette, points))


def draw_page(folder: Path) -> None:
    """Write the service's page as a browser shows it, where there is a browser."""
    from tools.pictures.page import NO_CHROMIUM, chromium, page

    browser = chromium()
    if browser is None:
        print(NO_CHROMIUM)
        return
    for mode, picture in page(browser).items():
        target = folder / f"page-{mode}.png"
        target.write_bytes(picture)
        print(f"{target}: {len(picture):,} bytes")


PICTURES: dict[str, Callable[[Path], None]] = {
    "flow": draw_flow,
    "lattice": draw_lattice,
    "tradeoff": draw_tradeoff,
    "page": draw_page,
}


def main(arguments: list[str] | None = None) -> None:
    """Draw what was asked for, or everything."""
    parser = argparse.ArgumentParser(prog="python -m tools.pictures", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(PICTURES)}")
    parser.add_argument("--out", type=Path, default=FOLDER, help="the folder; docs/pictures")
    parser.add_argument(
        "--measure", action="store_true", help="measure the trade-off anew first: minutes"
    )
    given = parser.parse_args(arguments)
    unknown = [name for name in given.names if name not in PICTURES]
    if unknown:
        parser.error(f"there is no picture {unknown[0]!r}; there are {', '.join(PICTURES)}")
    given.out.mkdir(parents=True, exist_ok=True)
    if given.measure:
        from tools.pictures.tradeoff import measure

        _write(FOLDER / "tradeoff.json", measure())
    for name in given.names or PICTURES:
        PICTURES[name](given.out)


def _write(path: Path, content: str) -> None:
    path.write_text(content, encoding="utf-8", newline="\n")
    print(f"{path}: {len(content.encode()):,} bytes")


if __name__ == "__main__":
    main()
