"""A chart of who is exposed, by altair; the extra ``plots`` installs it.

Private: every mark is somebody, so a chart is for the owner only and says so in its title. Nothing
is computed here. Files need no network: PNG and SVG are drawn by vl-convert, and HTML holds its own
JavaScript and sends nothing anywhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import altair as alt

from pcor.audit.divergence import ERROR
from pcor.audit.joint import JointExposure, joint_exposure
from pcor.audit.report import NOTICEABLE, Exposure
from pcor.public.guarantee import OWNER_ONLY
from pcor.support.pictures import save_picture

TITLE = "Who a release would expose"
TOGETHER = "all together"
DELTA = "delta (logarithmic): 1 where the answer gives somebody away for certain"

# One for each kind; black and orange differ for the colour-blind too, and the shapes do.
_KINDS = {"removed": "people in the table", "added": "possible newcomers"}
_COLOURS = ("#D55E00", "#000000")
_SHAPES = ("circle", "triangle-up")


def exposure_chart(found: Sequence[Exposure]) -> alt.LayerChart:
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
    people = joint.exposed_people
    subtitle = [
        OWNER_ONLY,
        f"A mark: people of one cell and metric whose coming or going changes the set of valid "
        f"contexts. Left edge: below {ERROR:g}. Dashed: one in a million.",
    ]
    described = (
        f"{TITLE}. One row for each of {len(found)} records; {people} people in the table are "
        f"exposed, each marked by the delta they face, from {ERROR:g} to 1 on a logarithmic axis. "
        f"{' '.join(subtitle)}"
    )
    points = alt.Chart(alt.InlineData(values=marks)).mark_point(filled=True, opacity=0.7, size=70)
    chart = alt.layer(_line(), points.encode(**_encoding(records)))
    configured: alt.LayerChart = (
        chart.properties(
            title=alt.TitleParams(TITLE, subtitle=subtitle, anchor="start", fontSize=18, offset=14),
            description=described,
            width=640,
            height=40 * len(records),
            background="white",  # on a dark page dark letters stay readable
            padding=14,
        )
        .configure_view(stroke="#DDDDDD")
        .configure_axis(gridColor="#EEEEEE", labelFontSize=12, titleFontSize=12)
    )
    return configured


def save_exposure_chart(chart: alt.LayerChart, path: str | Path) -> None:
    """Write a chart as .png, .svg or .html, whole or not at all."""
    save_picture(chart, path, TITLE)


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
            "who:N", legend=legend, scale=alt.Scale(domain=kinds, range=list(_COLOURS))
        ),
        "shape": alt.Shape(
            "who:N", legend=legend, scale=alt.Scale(domain=kinds, range=list(_SHAPES))
        ),
        "tooltip": [
            *("record:N", "who:N", "people:Q", "values:N", "metric:Q"),
            alt.Tooltip("delta:Q", format=".3g"),
        ],
    }
