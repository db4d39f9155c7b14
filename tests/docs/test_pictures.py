"""The pictures of the documentation: drawn by code, the same each time, readable in both modes."""

from __future__ import annotations

import json
import re
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

import pcor
from tools.pictures import FOLDER
from tools.pictures.__main__ import PICTURES, main
from tools.pictures.drawings import DRAWINGS, drawing, recoloured
from tools.pictures.palette import DARK, LIGHT, PALETTES, Palette
from tools.pictures.tradeoff import COMMANDS, KEPT, PANELS, fingerprint, kept, read, specification

SVG = "{http://www.w3.org/2000/svg}"
STYLE_SHEET = Path(pcor.__file__).parent / "service" / "static" / "page.css"
COMMITTED = [FOLDER / f"{name}-{palette.mode}.svg" for name in PICTURES for palette in PALETTES]
REDRAW = "draw it again: python -m tools.pictures"

# What stands on what in the pictures: words, and marks that mean something.
TEXTS = (
    *(("ink", "paper"), ("soft", "paper"), ("accent", "paper")),
    *(("ink", "surface"), ("soft", "surface"), ("accent", "surface")),
    *(("tint_ink", "tint"), ("ink", "tint"), ("on_accent", "accent")),
)
MARKS = (
    *(("line_strong", "paper"), ("line_strong", "surface"), ("line_strong", "tint")),
    *(("accent", "paper"), ("accent", "tint"), ("accent", "surface")),
)

of_both_modes = pytest.mark.parametrize("palette", PALETTES, ids=lambda palette: palette.mode)
of_all_files = pytest.mark.parametrize("path", COMMITTED, ids=lambda path: path.stem)
of_all_drawings = pytest.mark.parametrize("name", DRAWINGS)


# -- the files ------------------------------------------------------------------------------------


@of_both_modes
@of_all_drawings
def test_a_drawing_is_the_same_in_both_modes_but_for_its_colours(
    name: str, palette: Palette
) -> None:
    committed = FOLDER / f"{name}-{palette.mode}.svg"
    assert committed.read_bytes() == drawing(name, palette).encode(), REDRAW


@of_both_modes
def test_the_committed_tradeoff_was_drawn_from_the_committed_numbers(palette: Palette) -> None:
    # Not its bytes: Vega and the fonts of a machine place the words.
    committed = ET.parse(FOLDER / f"tradeoff-{palette.mode}.svg").getroot()  # noqa: S314
    expected = fingerprint(specification(palette, read()))
    assert committed.findtext(f"{SVG}metadata") == expected, REDRAW


@of_both_modes
def test_drawing_twice_gives_the_same_bytes(palette: Palette) -> None:
    first = [draw(palette) for draw in PICTURES.values()]
    assert [draw(palette) for draw in PICTURES.values()] == first


@of_all_files
def test_a_picture_is_well_formed_and_says_what_it_shows(path: Path) -> None:
    root = ET.parse(path).getroot()  # noqa: S314
    assert root.tag == f"{SVG}svg"
    assert root.get("role") == "img"
    assert root.get("aria-labelledby") == "title desc"
    assert len(root.findtext(f"{SVG}title") or "") > 10
    assert len(root.findtext(f"{SVG}desc") or "") > 200


@of_all_files
def test_a_picture_fetches_nothing_and_runs_nothing(path: Path) -> None:
    root = ET.parse(path).getroot()  # noqa: S314
    for element in root.iter():
        assert element.tag.removeprefix(SVG) not in {"script", "image", "use", "style", "a"}
        for name, value in element.attrib.items():
            assert "href" not in name
            assert "url(" not in value
    # What is left are the names of the format itself.
    addresses = re.findall(r"https?://[^\"'<\s]+", path.read_text(encoding="utf-8"))
    assert set(addresses) <= {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}


@of_all_files
def test_the_words_of_a_picture_stay_words(path: Path) -> None:
    root = ET.parse(path).getroot()  # noqa: S314
    words = [element.text for element in root.iter(f"{SVG}text") if element.text]
    assert len(words) >= 20


@of_all_drawings
def test_no_word_leaves_the_picture_even_in_a_wide_font(name: str) -> None:
    root = ET.fromstring(drawing(name, LIGHT))  # noqa: S314
    width, height = float(root.get("width", 0)), float(root.get("height", 0))
    for element in root.iter(f"{SVG}text"):
        # DejaVu Sans, about the widest that a system has, takes 0.6 of its size for a letter.
        long = 0.6 * float(element.get("font-size", 0)) * len(element.text or "")
        before = {"start": 0.0, "middle": 0.5, "end": 1.0}[element.get("text-anchor", "start")]
        left = float(element.get("x", 0)) - before * long
        assert left >= 0, element.text
        assert left + long <= width, element.text
        assert 0 < float(element.get("y", 0)) < height


def test_the_page_is_there_in_both_modes_and_small() -> None:
    for palette in PALETTES:
        picture = (FOLDER / f"page-{palette.mode}.png").read_bytes()
        assert picture.startswith(b"\x89PNG")
        assert 1000 < int.from_bytes(picture[16:20]) <= 1280  # the width
        assert len(picture) < 200_000


# -- the colours ----------------------------------------------------------------------------------


def contrast(one: str, other: str) -> float:
    """Return the contrast of two colours, from 1 to 21 (WCAG 2.2, relative luminance)."""
    dark, light = sorted((_luminance(one), _luminance(other)))
    return (light + 0.05) / (dark + 0.05)


def _luminance(colour: str) -> float:
    parts = (int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5))
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@of_both_modes
@pytest.mark.parametrize(("words", "ground"), TEXTS)
def test_words_stand_out_from_their_ground(palette: Palette, words: str, ground: str) -> None:
    assert contrast(getattr(palette, words), getattr(palette, ground)) >= 4.5


@of_both_modes
@pytest.mark.parametrize(("mark", "ground"), MARKS)
def test_marks_stand_out_from_their_ground(palette: Palette, mark: str, ground: str) -> None:
    assert contrast(getattr(palette, mark), getattr(palette, ground)) >= 3


@of_both_modes
def test_every_line_of_a_chart_stands_out_and_has_a_colour_of_its_own(palette: Palette) -> None:
    assert min(contrast(colour, palette.paper) for colour in palette.lines) >= 3
    names = {point["line"] for point in read()}
    assert len({*palette.lines, palette.ink}) == len(palette.lines) + 1 == len(names)


def test_contrast_is_that_of_the_guidelines() -> None:
    # The example that WCAG tools agree on: #767676 on white just passes.
    assert contrast("#767676", "#ffffff") == pytest.approx(4.54, abs=0.005)
    assert contrast("#ffffff", "#767676") == contrast("#767676", "#ffffff")
    assert contrast("#777777", "#ffffff") < 4.5


def test_the_colours_are_those_of_the_page() -> None:
    light, dark = STYLE_SHEET.read_text(encoding="utf-8").split("@media", 2)[:2]
    shared = ("paper", "surface", "ink", "soft", "line", "accent", "on_accent", "tint", "tint_ink")
    for palette, sheet in ((LIGHT, light), (DARK, dark)):
        declared = dict(re.findall(r"--([a-z-]+): (#[0-9a-f]{6});", sheet))
        for name in shared:
            assert getattr(palette, name) == declared[name.replace("_", "-")], name


# -- the numbers ----------------------------------------------------------------------------------


@of_both_modes
def test_the_flow_draws_every_row_once_and_the_record_filled(palette: Palette) -> None:
    root = ET.fromstring(drawing("flow", palette))  # noqa: S314
    circles = list(root.iter(f"{SVG}circle"))
    filled = [c for c in circles if c.get("fill") == palette.accent]
    assert len(circles) == pcor.demo.ten_people().num_rows + 1  # and the key
    assert len(filled) == 2


def test_a_colour_that_no_palette_has_is_not_drawn() -> None:
    assert recoloured(f'fill="{DARK.accent}"', LIGHT) == f'fill="{LIGHT.accent}"'
    with pytest.raises(KeyError, match="#123456"):
        recoloured('fill="#123456"', LIGHT)


def test_the_kept_numbers_say_which_commands_made_them() -> None:
    numbers = json.loads((FOLDER / "tradeoff.json").read_text(encoding="utf-8"))
    assert numbers["commands"] == list(COMMANDS)
    assert all(list(point) == list(KEPT) for point in numbers["points"])
    assert [kept(point) for point in numbers["points"]] == numbers["points"]


def test_lines_in_one_panel_are_about_the_same_outliers() -> None:
    points = read()
    assert {point["detector"] for point in points} == set(PANELS)
    assert {point["detector"] for point in points if point["guarantee"] == "dp"} == {"tail"}
    said = json.dumps(specification(LIGHT, points))
    assert "compare lines within a panel" in said
    assert PANELS["lof"] in said
    assert PANELS["tail"] in said


# -- the command ----------------------------------------------------------------------------------


def test_the_command_draws_every_picture_for_both_modes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "docs" / "pictures"
    folder.mkdir(parents=True)
    monkeypatch.setattr("tools.pictures.__main__.FOLDER", folder)
    main([])
    assert sorted(path.name for path in folder.iterdir()) == sorted(p.name for p in COMMITTED)
    assert "written: docs/pictures/flow-dark.svg" in capsys.readouterr().out
