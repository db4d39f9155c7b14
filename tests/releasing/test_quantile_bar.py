"""The picture of a letter: released numbers in their order, labels apart, nothing else."""

from __future__ import annotations

import re
from itertools import combinations
from xml.etree import ElementTree as ET

import pytest

from pcor.releasing.quantile_bar import WIDTH, BarMark, BarPoint, quantile_bar

SVG = "{http://www.w3.org/2000/svg}"


def point(words: str, value: float, *, spread: float = 10) -> BarPoint:
    return BarPoint(words, value, value - spread, value + spread, f"{value:,}")


def drawn(picture: str) -> ET.Element:
    return ET.fromstring(picture)  # noqa: S314 (our own picture)


def boxes(picture: str) -> list[tuple[float, float, float]]:
    """Return where each text is: its ends, and its line."""
    found = []
    for text in drawn(picture).iter(f"{SVG}text"):
        x, half = float(text.attrib["x"]), len(text.text or "") * 7 / 2
        found.append((x - half, x + half, float(text.attrib["y"])))
    return found


@pytest.mark.parametrize("values", [(800, 2150), (800, 801, 802), (1,), (5, 5), (-3, 0, 1e9)])
@pytest.mark.parametrize("mark", [None, 7480.5, -1e6])
def test_labels_stay_inside_and_apart(values: tuple[float, ...], mark: float | None) -> None:
    points = [point(f"{n} % are below", value) for n, value in enumerate(values)]
    own = None if mark is None else BarMark(mark, f"this record: {mark:,}")
    placed = boxes(quantile_bar(points, own))
    assert len(placed) == 2 * len(points) + (own is not None)
    assert all(begin >= 0 and end <= WIDTH for begin, end, _ in placed)
    for one, other in combinations(placed, 2):
        assert one[2] != other[2] or one[1] <= other[0] or other[1] <= one[0]


def test_numbers_lie_in_their_order() -> None:
    picture = quantile_bar([point("half are below", 800), point("95 % are below", 2150)], None)
    ticks = [float(x) for x in re.findall(r'd="M([\d.]+) 45v22"', picture)]
    assert len(ticks) == 2
    assert ticks == sorted(ticks)
    assert "this record" not in picture


def test_without_a_quantile_there_is_no_picture() -> None:
    assert quantile_bar([], BarMark(3, "this record: 3")) == ""


def test_words_are_escaped() -> None:
    picture = quantile_bar([point("<b> & are below", 1)], BarMark(2, "<script>"))
    assert "<b>" not in picture
    assert "<script>" not in picture
    assert drawn(picture).findtext(f"{SVG}title") == "<b> & are below about 1; <script>"
