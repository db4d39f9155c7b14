"""Charts of the trade-off, by altair; the extra ``plots`` installs it.

Nothing is computed here. What the points are made from decides who may see a chart: one of a real
table is for the owner only, and carries the note that says so. Files need no network: PNG and SVG
are drawn by vl-convert, and HTML holds its own JavaScript.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import altair as alt

from pcor.audit.tradeoff import INTERVAL, Point
from pcor.public.guarantee import OWNER_ONLY
from pcor.support.pictures import save_picture

TITLE = "Utility and validity against epsilon"
UTILITY = "Utility: population over that of the largest valid context"
VALIDITY = "Validity: chance that the context is a valid one"

_STAR = "M0,-1L.22,-.31L.95,-.31L.36,.12L.59,.81L0,.38L-.59,.81L-.36,.12L-.95,-.31L-.22,-.31Z"
# Colours that the colour-blind can tell apart (Okabe and Ito, darkened where white swallows them);
# every line has a shape of its own as well.
_COLOURS = (
    *("#000000", "#D55E00", "#8C8C8C", "#B8860B", "#009E73"),
    *("#0072B2", "#56B4E9", "#6A3D9A", "#C2378B", "#7A4B00"),
)
SHAPES = (
    *("circle", "square", "cross", "diamond", "triangle-up"),
    *("triangle-down", "triangle-right", "triangle-left", _STAR, "wedge"),
)


def tradeoff_chart(points: Sequence[Point], note: str = OWNER_ONLY) -> alt.HConcatChart:
    """Draw utility and validity against epsilon, a line for each way to release.

    Args:
        points: from ``pcor.audit.tradeoff.tradeoff``.
        note: a line under the title: who may see this. Only synthetic tables have another one.
    """
    lines = list(dict.fromkeys(point.line for point in points))
    count = max((point.records for point in points), default=0)
    subtitle = [
        note,
        f"Means over {count} records. Bars: {INTERVAL}. Points of one epsilon stand side by side.",
    ]
    described = (
        f"{TITLE}. Two panels, each from 0 to 1, against epsilon on a logarithmic axis: utility "
        f"and validity of {len(lines)} ways to release: {', '.join(lines)}. {' '.join(subtitle)}"
    )
    base = _base(points, lines)
    bars = base.mark_rule(strokeWidth=1.5, opacity=0.4).encode(y="low:Q", y2="high:Q")
    utility = alt.layer(bars, *_curves(base, "utility", lines))
    validity = alt.layer(*_curves(base, "validity", lines))
    chart = alt.hconcat(
        utility.properties(title=_heading(UTILITY), width=480, height=360),
        validity.properties(title=_heading(VALIDITY), width=400, height=360),
        spacing=30,
    ).properties(
        title=alt.TitleParams(TITLE, subtitle=subtitle, anchor="start", fontSize=18, offset=14),
        description=described,
        # An opaque ground: on a dark page dark letters stay readable.
        background="white",
        padding=14,
    )
    configured: alt.HConcatChart = chart.configure_view(stroke="#DDDDDD").configure_axis(
        gridColor="#EEEEEE", labelFontSize=12, titleFontSize=12, titleFontWeight="normal"
    )
    return configured


def save_chart(chart: alt.HConcatChart, path: str | Path) -> None:
    """Write a chart as .png, .svg or .html, whole or not at all."""
    save_picture(chart, path, TITLE)


def _base(points: Sequence[Point], lines: list[str]) -> alt.Chart:
    """Put epsilon on a logarithmic axis; lines have their colours."""
    ticks = sorted({point.epsilon for point in points})
    # Lines share half of the way to the next epsilon, so that none hides another.
    gap = min((high / low for low, high in pairwise(ticks)), default=2.0)
    middle = (len(lines) - 1) / 2
    aside = {line: gap ** ((n - middle) / (2 * len(lines))) for n, line in enumerate(lines)}
    rows = [point.to_dict() | {"place": point.epsilon * aside[point.line]} for point in points]
    return alt.Chart(alt.InlineData(values=rows)).encode(
        x=alt.X(
            "place:Q",
            title="epsilon (logarithmic)",
            scale=alt.Scale(type="log", nice=False, padding=12),
            axis=alt.Axis(values=ticks, format="~g", labelOverlap=True),
        ),
        color=_of_line(alt.Color, _COLOURS, lines),
    )


def _curves(base: alt.Chart, field: str, lines: list[str]) -> tuple[alt.Chart, alt.Chart]:
    """Return lines and points; shapes are for the points alone."""
    base = base.encode(y=alt.Y(f"{field}:Q", title=None, scale=alt.Scale(domain=[0, 1])))
    marks = base.mark_point(filled=True, size=60, opacity=1).encode(
        shape=_of_line(alt.Shape, SHAPES, lines),
        tooltip=["line:N", "epsilon:Q", _number("utility"), _number("validity")],
    )
    return base.mark_line(strokeWidth=2, opacity=0.6), marks


def _of_line(channel: Any, kinds: Sequence[str], lines: list[str]) -> Any:
    """Return an encoding of the line, the same in both panels so that they share the legend."""
    kept = [kinds[place % len(kinds)] for place in range(len(lines))]
    legend = alt.Legend(
        title=None, labelFontSize=12, labelLimit=240, symbolSize=90, symbolOpacity=1
    )
    return channel("line:N", legend=legend, scale=alt.Scale(domain=lines, range=kept))


def _heading(text: str) -> alt.TitleParams:
    return alt.TitleParams(text, anchor="start", fontSize=13, fontWeight="normal")


def _number(name: str) -> alt.Tooltip:
    return alt.Tooltip(f"{name}:Q", format=".3f")
