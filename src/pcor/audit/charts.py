"""Charts of who is exposed and of the trade-off, by altair; the extra ``plots`` installs it.

Private: every mark of an exposure chart is somebody, so it is for the owner only and says so in its
title. A chart of the trade-off is what its points are made from: one of a real table carries the
same note. Nothing is computed here.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import altair as alt

from pcor.audit.calibration import CalibrationPoint
from pcor.audit.divergence import ERROR
from pcor.audit.joint import JointExposure, joint_exposure
from pcor.audit.report import NOTICEABLE, Exposure
from pcor.audit.tradeoff import INTERVAL, Point
from pcor.public.guarantee import OWNER_ONLY
from pcor.support.pictures import framed

TOGETHER = "all together"
DELTA = "delta (logarithmic): 1 where the answer gives somebody away for certain"

UTILITY = "Utility: population over that of the largest valid context"
VALIDITY = "Validity: chance that the context is a valid one"

# -- who is exposed --------------------------------------------------------------------------------

# One for each kind; black and orange differ for the colour-blind too, and the shapes do.
_KINDS = {"removed": "people in the table", "added": "possible newcomers"}
_KIND_COLOURS = ("#D55E00", "#000000")
_KIND_SHAPES = ("circle", "triangle-up")


def exposure_chart(found: Sequence[Exposure]) -> Any:
    """Draw the delta of everybody who is exposed, a row for each record, and one for all of them.

    Args:
        found: from ``pcor.audit.exposure``.
    """
    joint = joint_exposure(found)
    rows: dict[str, Exposure | JointExposure] = {str(one.record): one for one in found}
    if len(found) > 1:
        rows[TOGETHER] = joint
    records = list(rows)
    marks = [mark for name, one in rows.items() for mark in _marks(name, one)]
    alike = "with the same rows" if found[0].by_person else "of one cell and metric"
    subtitle = [
        OWNER_ONLY,
        f"A mark: people {alike} whose coming or going changes the set of valid "
        f"contexts. Left edge: below {ERROR:g}. Dashed: one in a million.",
    ]
    shown = (
        f"One row for each of {len(found)} records; {joint.exposed_people} people in the table are "
        f"exposed, each marked by the delta they face, from {ERROR:g} to 1 on a logarithmic axis."
    )
    points = alt.Chart(alt.InlineData(values=marks)).mark_point(filled=True, opacity=0.7, size=70)
    chart = alt.layer(_line(), points.encode(**_encoding(records)))
    sized = chart.properties(width=640, height=40 * len(records))
    return framed(sized, "Who a release would expose", subtitle, shown)


def _marks(name: str, found: Exposure | JointExposure) -> list[dict[str, Any]]:
    """Return a mark for each kind of people."""
    return [
        {
            "record": name,
            "who": _KINDS[one.kind],
            "place": max(one.delta, ERROR),
            "delta": one.delta,
            "people": one.people,
            "values": ", ".join(map(str, one.values.values())),
            "metric": one.metric,
        }
        for one in (*found.exposed, *found.newcomers)
    ]


def _line() -> alt.Chart:
    line = alt.Chart(alt.InlineData(values=[{"at": NOTICEABLE}]))
    drawn: alt.Chart = line.mark_rule(strokeDash=[4, 4], color="#8C8C8C").encode(x="at:Q")
    return drawn


def _encoding(records: list[str]) -> dict[str, Any]:
    kinds = list(_KINDS.values())
    legend = alt.Legend(title=None, labelFontSize=12, labelLimit=240, symbolOpacity=1)
    return {
        "x": alt.X(
            "place:Q",
            title=DELTA,
            scale=alt.Scale(type="log", domain=[ERROR / 2, 2]),  # room for marks at both ends
            axis=alt.Axis(format="~e", values=[10.0**power for power in range(-9, 1)]),
        ),
        "y": alt.Y("record:N", title="record", scale=alt.Scale(domain=records)),
        "yOffset": alt.YOffset("who:N", scale=alt.Scale(domain=kinds)),
        "color": alt.Color(
            "who:N", legend=legend, scale=alt.Scale(domain=kinds, range=list(_KIND_COLOURS))
        ),
        "shape": alt.Shape(
            "who:N", legend=legend, scale=alt.Scale(domain=kinds, range=list(_KIND_SHAPES))
        ),
        "tooltip": [
            *("record:N", "who:N", "people:Q", "values:N", "metric:Q"),
            alt.Tooltip("delta:Q", format=".3g"),
        ],
    }


# -- the trade-off ---------------------------------------------------------------------------------

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


def tradeoff_chart(points: Sequence[Point], note: str = OWNER_ONLY) -> Any:
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
    shown = (
        "Two panels, each from 0 to 1, against epsilon on a logarithmic axis: utility and validity "
        f"of {len(lines)} ways to release: {', '.join(lines)}."
    )
    base = _base(points, lines)
    bars = base.mark_rule(strokeWidth=1.5, opacity=0.4).encode(y="low:Q", y2="high:Q")
    utility = alt.layer(bars, *_curves(base, "utility", lines))
    validity = alt.layer(*_curves(base, "validity", lines))
    chart = alt.hconcat(
        utility.properties(title=_heading(UTILITY), width=480, height=360),
        validity.properties(title=_heading(VALIDITY), width=400, height=360),
        spacing=30,
    )
    title = "Utility and validity against epsilon"
    return framed(chart, title, subtitle, shown, titleFontWeight="normal")


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


# -- how rare it is to stand out -------------------------------------------------------------------


def calibration_chart(points: Sequence[CalibrationPoint]) -> Any:
    """Draw which part of the rows stands out somewhere, a bar for each family and rule.

    Args:
        points: from ``pcor.calibrate``.
    """
    rows = [
        point.to_dict() | {"what": f"{point.family}; {point.detector}", "place": place}
        for place, point in enumerate(points)
    ]
    order = [row["what"] for row in rows]
    count = max((point.rows for point in points), default=0)
    subtitle = [
        OWNER_ONLY,
        f"Of {count} random rows, the part that is an outlier in some context. Lines: 95 %.",
    ]
    shown = "; ".join(f"{row['what']}: {row['share']:.0%}" for row in rows)
    base = alt.Chart(alt.InlineData(values=rows)).encode(
        y=alt.Y("what:N", title=None, sort=order, axis=alt.Axis(labelLimit=420))
    )
    bars = base.mark_bar(color="#56B4E9").encode(
        x=alt.X("share:Q", title="share of rows", scale=alt.Scale(domain=[0, 1])),
        tooltip=["what:N", _number("share"), _number("named"), _number("exposed")],
    )
    lines = base.mark_rule(strokeWidth=2).encode(x="low:Q", x2="high:Q")
    chart = alt.layer(bars, lines).properties(width=520, height=34 * max(1, len(rows)))
    return framed(chart, "How rare it is to stand out", subtitle, shown)
