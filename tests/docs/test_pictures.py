"""The pictures of the documentation: drawn by code, the same each time, readable in both modes."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

import pcor
from tools.pictures import FOLDER
from tools.pictures import flow as flow_module
from tools.pictures.__main__ import PICTURES, main
from tools.pictures.flow import flow
from tools.pictures.lattice import EPSILON, RECORD, lattice, nodes, small_table
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
of_both_writers = pytest.mark.parametrize("draw", [flow, lattice])


# -- the files ------------------------------------------------------------------------------------


@of_both_modes
@of_both_writers
def test_what_is_committed_is_what_the_code_draws(
    draw: Callable[[Palette], str], palette: Palette
) -> None:
    committed = FOLDER / f"{draw.__name__}-{palette.mode}.svg"
    assert committed.read_bytes() == draw(palette).encode(), REDRAW


@of_both_modes
def test_the_committed_tradeoff_was_drawn_from_the_committed_numbers(palette: Palette) -> None:
    # Not its bytes: Vega and the fonts of a machine place the words.
    committed = ET.parse(FOLDER / f"tradeoff-{palette.mode}.svg").getroot()  # noqa: S314
    expected = fingerprint(specification(palette, read()))
    assert committed.findtext(f"{SVG}metadata") == expected, REDRAW


@of_both_modes
def test_drawing_twice_gives_the_same_bytes(palette: Palette) -> None:
    nodes.cache_clear()
    first = [draw(palette) for draw in PICTURES.values()]
    nodes.cache_clear()
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


@of_both_modes
@of_both_writers
def test_no_word_leaves_the_picture_even_in_a_wide_font(
    draw: Callable[[Palette], str], palette: Palette
) -> None:
    root = ET.fromstring(draw(palette))  # noqa: S314
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


def test_the_lattice_has_every_context_of_the_record_once() -> None:
    table = small_table()
    expected = list(table.record(RECORD).space.masks())
    assert sorted(node.context.mask for node in nodes()) == sorted(expected)


def test_the_lattice_says_what_the_library_says() -> None:
    table, detector = small_table(), pcor.Grubbs(min_population=3)
    found = pcor.matching_contexts(table, RECORD, detector)
    populations = dict(zip(found.contexts, found.populations.tolist(), strict=True))
    valid = {node.context: node.population for node in nodes() if node.valid}
    assert valid == populations
    chances = pcor.audit.exact_distribution(table, RECORD, EPSILON, detector=detector)
    assert {node.context: node.chance for node in nodes() if node.valid} == chances
    assert sum(node.chance for node in nodes()) == pytest.approx(1)


def test_the_population_of_a_node_is_a_count_of_rows() -> None:
    rows = pcor.demo.ten_people().to_pylist()
    for node in nodes():
        named = node.context.values
        inside = [row for row in rows if all(row[name] in named[name] for name in named)]
        assert node.population == len(inside)


def test_the_coins_of_the_lattice_give_its_chances() -> None:
    coins = [node.coin for node in nodes() if node.valid]
    expected = _first_success(coins)
    chances = [node.chance for node in nodes() if node.valid]
    assert chances == pytest.approx(expected, rel=1e-9)


def _first_success(coins: list[float]) -> list[float]:
    """Return the chance of each to be the one taken of all that succeed, by brute force."""
    chances = [0.0] * len(coins)
    for flips in range(1 << len(coins)):
        up = [place for place in range(len(coins)) if flips >> place & 1]
        weight = 1.0
        for place, coin in enumerate(coins):
            weight *= coin if place in up else 1 - coin
        for place in up:
            chances[place] += weight / len(up)
    return chances


@of_both_modes
def test_the_lattice_draws_its_numbers(palette: Palette) -> None:
    root = ET.fromstring(lattice(palette))  # noqa: S314
    words = [element.text for element in root.iter(f"{SVG}text")]
    for node in nodes():
        assert str(node.population) in words
        assert not node.valid or f"{node.chance:.1%}" in words
    # The key has one of either kind as well.
    filled = [c for c in root.iter(f"{SVG}circle") if c.get("fill") == palette.accent]
    assert len(filled) == sum(node.valid for node in nodes()) + 1
    assert len(list(root.iter(f"{SVG}circle"))) == len(nodes()) + 2
    assert "made-up table" in " ".join(word for word in words if word)


@of_both_modes
def test_the_flow_draws_every_row_once_and_the_record_filled(palette: Palette) -> None:
    root = ET.fromstring(flow(palette))  # noqa: S314
    circles = list(root.iter(f"{SVG}circle"))
    filled = [c for c in circles if c.get("fill") == palette.accent]
    assert len(circles) == pcor.demo.ten_people().num_rows + 1  # and the key
    assert len(filled) == 2


def test_a_colour_that_no_palette_has_is_not_drawn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "flow-light.svg"
    other.write_text(flow(LIGHT).replace(LIGHT.accent, "#123456"))
    monkeypatch.setattr(flow_module, "SOURCE", other)
    with pytest.raises(KeyError, match="#123456"):
        flow(DARK)


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
