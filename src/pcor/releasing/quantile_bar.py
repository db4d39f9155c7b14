"""A small picture for a letter: the released quantiles on a line, and where the record lies.

Public: everything here. The picture is drawn from numbers that were released, and from the record's
own metric where that is shown; its scale ends at them, and tells nothing else of the rows.
"""

from __future__ import annotations

import html
from collections.abc import Callable, Sequence
from typing import NamedTuple

WIDTH, MARGIN = 440, 8
_LETTER, _LINE = 7.4, 17  # about the width and the height of a letter in 13 pixels
_TOP = 50  # of the bar, below the record's own label
_ROW = 2 * _LINE + 6  # of labels
_HALO = 'paint-order="stroke" stroke="#fff" stroke-width="4"'  # no line runs through a label


class BarPoint(NamedTuple):
    """A quantile as it was released.

    Attributes:
        words: what lies below it, such as "half are below".
        value: where it is, about.
        low: where its interval begins,
        high: and where it ends.
        text: the value as it is written.
    """

    words: str
    value: float
    low: float
    high: float
    text: str


class BarMark(NamedTuple):
    """Where the record lies, and how that is written."""

    value: float
    text: str


def quantile_bar(points: Sequence[BarPoint], mark: BarMark | None) -> str:
    """Return the picture as SVG; nothing where no quantile was released."""
    if not points:
        return ""
    ends = [end for point in points for end in (point.low, point.high)]
    ends += [] if mark is None else [mark.value]
    low, span = min(ends), (max(ends) - min(ends)) or 1.0

    def place(value: float) -> float:
        return MARGIN + 12 + (WIDTH - 2 * MARGIN - 24) * (value - low) / span

    labels, height = _labels(points, [place(point.value) for point in points])
    bars = [_interval(point, place) for point in points] + [
        f'<path d="M{place(p.value):.1f} {_TOP - 5}v22" stroke="currentColor" stroke-width="2.5"/>'
        for p in points
    ]
    parts = [
        f'<path d="M{MARGIN} {_TOP + 6}H{WIDTH - MARGIN}" stroke="currentColor"/>',
        *bars,
        *labels,
        *([] if mark is None else _marked(mark, place(mark.value))),
    ]
    said = html.escape(_in_words(points, mark))
    return (
        f'<svg class="bar" role="img" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" '
        f'xmlns="http://www.w3.org/2000/svg" fill="currentColor" font-size="13">'
        f"<title>{said}</title>{''.join(parts)}</svg>"
    )


def _in_words(points: Sequence[BarPoint], mark: BarMark | None) -> str:
    said = "; ".join(f"{point.words} about {point.text}" for point in points)
    return said if mark is None else f"{said}; {mark.text}"


def _interval(point: BarPoint, place: Callable[[float], float]) -> str:
    """Return the band in which the true quantile lies."""
    begin, end = place(point.low), place(point.high)
    return (
        f'<rect x="{begin:.1f}" y="{_TOP}" width="{max(end - begin, 3):.1f}" height="12" '
        'opacity=".25"/>'
    )


def _marked(mark: BarMark, at: float) -> list[str]:
    """Return the record's place: a triangle that points at the line, and its label."""
    x = _inside(at, mark.text)
    return [
        f'<path d="M{at:.1f} {_TOP - 8}l-7 -13h14z"/>',
        f'<text x="{x:.1f}" y="{_TOP - 28}" text-anchor="middle" font-weight="bold">'
        f"{html.escape(mark.text)}</text>",
    ]


def _labels(points: Sequence[BarPoint], places: Sequence[float]) -> tuple[list[str], int]:
    """Return the labels below the line, in as many rows as keep them apart, and the height."""
    ends: list[float] = []  # where the last label of each row ends
    leads, texts = [], []
    for point, at in zip(points, places, strict=True):
        lines = (point.words, f"about {point.text}")
        half = max(map(len, lines)) * _LETTER / 2
        x = _inside(at, max(lines, key=len))
        row = next((r for r, end in enumerate(ends) if x - half > end), len(ends))
        ends[row : row + 1] = [x + half]
        top = _TOP + 34 + row * _ROW
        leads.append(f'<path d="M{at:.1f} {_TOP + 17}V{top - 12}" stroke="currentColor"/>')
        texts += [
            f'<text x="{x:.1f}" y="{top + line * _LINE}" text-anchor="middle" {_HALO}>'
            f"{html.escape(text)}</text>"
            for line, text in enumerate(lines)
        ]
    return leads + texts, _TOP + 34 + len(ends) * _ROW - 12


def _inside(at: float, text: str) -> float:
    """Return the middle of a label that is to stand at a place and inside the picture."""
    half = len(text) * _LETTER / 2
    return max(MARGIN + half, min(at, WIDTH - MARGIN - half))
