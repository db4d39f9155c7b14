"""The figures of the report: histograms as in the paper's appendix, and intervals. By altair.

Private: what is drawn. Nothing is computed here. Every figure is an SVG on a white ground, readable
on a light and on a dark page, and says to a screen reader what it shows. Colours are told apart by
the colour-blind (Okabe and Ito), and shapes differ too.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import altair as alt

from pcor.paper.experiment import ResultRow
from pcor.paper.layout import GROUPS, setting
from pcor.paper.summary import UTILITY_BINS
from pcor.support.pictures import drawing

_BLUE, _ORANGE, _GREEN, _GREY = "#0072B2", "#D55E00", "#009E73", "#6B6B6B"
_WIDE = 190  # of one histogram


def figures(summary: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the figures of a summary as (caption, SVG)."""
    drawn = []
    rows = summary["rows"]
    for table in dict.fromkeys(row["table"] for row in rows):
        here = [row for row in rows if row["table"] == table]
        match summary["experiment"]:
            case "coe_match":
                drawn.append(_match(table, here))
            case "ratio":
                drawn.append(_ratio(table, here))
            case "locality":
                drawn.append(_locality(table, here))
            case _:
                drawn += [_intervals(table, here), _utilities(table, here), _times(table, here)]
    name = summary["experiment"]
    return [
        (said, svg(chart, said, f"{name}-{number}")) for number, (said, chart) in enumerate(drawn)
    ]


def svg(chart: alt.TopLevelMixin, said: str, name: str) -> str:
    """Draw a chart; its own ids get a name in front, as many drawings share one page."""
    return re.sub(r'(id="|url\(#|href="#)(?=[A-Za-z])', rf"\g<1>{name}-", drawing(chart, said))


Figure = tuple[str, alt.TopLevelMixin]


def _intervals(table: str, rows: Sequence[ResultRow]) -> Figure:
    """Means with intervals: ours by group of records, and the paper's."""
    points = []
    for row in rows:
        label = setting(row)
        if row["utility"] is not None:
            points.append(_point(label, f"ours: {GROUPS[row['group']]}", row, ""))
        if "paper_utility" in row and row["group"] == "many":
            points.append(_point(label, "paper", row, "paper_"))
    said = f"{table}: mean utility and 90 % interval of each release, beside the paper's."
    order = list(dict.fromkeys(setting(row) for row in rows))
    looks = {
        f"ours: {GROUPS['many']}": (_BLUE, "circle"),
        f"ours: {GROUPS['all']}": (_GREEN, "square"),
        f"ours: {GROUPS['program']}": (_GREY, "triangle-up"),
        "paper": (_ORANGE, "diamond"),
    }
    whose = [name for name in looks if name in {point["whose"] for point in points}]
    base = alt.Chart(alt.InlineData(values=points)).encode(
        y=alt.Y("label:N", sort=order, title=None, axis=alt.Axis(labelLimit=260)),
        yOffset=alt.YOffset("whose:N", scale=alt.Scale(domain=whose)),
        color=alt.Color(
            "whose:N",
            scale=alt.Scale(domain=whose, range=[looks[name][0] for name in whose]),
            legend=alt.Legend(title=None, labelLimit=300),
        ),
    )
    bars = base.mark_rule(strokeWidth=2).encode(
        x=alt.X("low:Q", scale=alt.Scale(domain=[0, 1]), title="utility"), x2="high:Q"
    )
    marks = base.mark_point(filled=True, size=50, opacity=1).encode(
        x="utility:Q",
        shape=alt.Shape(
            "whose:N",
            scale=alt.Scale(domain=whose, range=[looks[name][1] for name in whose]),
        ),
    )
    return said, _ready(alt.layer(bars, marks).properties(width=460, height=alt.Step(11)))


def _point(label: str, whose: str, row: ResultRow, prefix: str) -> dict[str, Any]:
    named = {key: row[f"{prefix}{key}"] for key in ("utility", "low", "high")}
    return {"label": label, "whose": whose} | named


def _utilities(table: str, rows: Sequence[ResultRow]) -> Figure:
    width = 1 / UTILITY_BINS
    bars = [
        {"label": setting(row), "low": n * width, "high": (n + 1) * width, "count": count}
        for row in rows
        if row["group"] == "many"
        for n, count in enumerate(row["utility_histogram"])
    ]
    said = f"{table}: histograms of the utility of single releases (records with many contexts)."
    return said, _histograms(bars, "utility", alt.Scale(domain=[0, 1]))


def _times(table: str, rows: Sequence[ResultRow]) -> Figure:
    bars = [
        {"label": setting(row), "low": low, "high": high, "count": count}
        for row in rows
        if row["group"] == "many"
        for low, high, count in row["time_histogram"]
    ]
    said = f"{table}: histograms of the time of single releases, in seconds, logarithmic."
    return said, _histograms(bars, "seconds", alt.Scale(type="log"))


def _histograms(bars: list[dict[str, Any]], title: str, scale: alt.Scale) -> alt.TopLevelMixin:
    order = list(dict.fromkeys(bar["label"] for bar in bars))
    axis = alt.Axis(title=title, tickCount=4, format="~g")
    chart = (
        alt.Chart(alt.InlineData(values=bars))
        .mark_rect(color=_BLUE, stroke="white", strokeWidth=0.5)
        .encode(
            x=alt.X("low:Q", scale=scale, axis=axis),
            x2="high:Q",
            y=alt.Y("count:Q", title="releases"),
            y2=alt.datum(0),
        )
        .properties(width=_WIDE, height=110)
        .facet(facet=alt.Facet("label:N", sort=order, title=None), columns=4)
    )
    return _ready(chart)


def _match(table: str, rows: Sequence[ResultRow]) -> Figure:
    points = []
    for row in rows:
        panel = f"{row['detector']}, rows {row['kind']}"
        place = {"panel": panel, "changed": str(row["changed_rows"])}
        points += [place | {"measure": name, "share": row[name]} for name in ("equal", "common")]
        points += [place | {"measure": "paper", "share": row["paper"]}] if "paper" in row else []
    said = f"{table}: the share of changed tables with the same valid contexts, beside the paper's."
    names = ["equal", "common", "paper"]
    order = list(dict.fromkeys(point["panel"] for point in points))
    base = alt.Chart(alt.InlineData(values=points)).encode(
        x=alt.X(
            "changed:O",
            title="changed rows",
            sort=[str(row["changed_rows"]) for row in rows],
            axis=alt.Axis(labelAngle=0),
        ),
        y=alt.Y("share:Q", title=None, scale=alt.Scale(domain=[0, 1]), axis=alt.Axis(format="%")),
        color=alt.Color(
            "measure:N",
            scale=alt.Scale(domain=names, range=[_BLUE, _GREEN, _ORANGE]),
            legend=alt.Legend(title=None),
        ),
    )
    marks = base.mark_point(filled=True, size=50, opacity=1).encode(
        shape=alt.Shape(
            "measure:N", scale=alt.Scale(domain=names, range=["circle", "square", "diamond"])
        )
    )
    layered = alt.layer(base.mark_line(opacity=0.6), marks).properties(width=_WIDE, height=130)
    return said, _ready(
        layered.facet(facet=alt.Facet("panel:N", sort=order, title=None), columns=3)
    )


def _ratio(table: str, rows: Sequence[ResultRow]) -> Figure:
    bars = [
        {"detector": row["detector"], "which": which, "count": row[key]}
        for row in rows
        for which, key in (
            ("removals that change COE", "changes_of_coe"),
            ("of them beyond e^epsilon", "beyond_the_bound"),
        )
    ]
    said = f"{table}: removals that change COE, and those with a ratio of chances beyond e^epsilon."
    return said, _bars(bars, "detector", "which", [_ORANGE, _GREY], "removals")


def _locality(table: str, rows: Sequence[ResultRow]) -> Figure:
    bars = [
        {"rule": row["rule"], "samples collected": _size(size), "count": count}
        for row in rows
        for size, count in row["sizes"]
    ]
    said = f"{table}: how many samples breadth-first search collects by each rule, in records."
    return said, _bars(
        bars, "rule", "samples collected", [_GREY, _ORANGE, _GREEN, _BLUE], "records"
    )


def _size(samples: int) -> str:
    return {0: "none", 1: "1, the start", 50: "50, all"}.get(samples, "2 to 49")


def _bars(
    bars: list[dict[str, Any]], group: str, part: str, colours: Sequence[str], title: str
) -> alt.TopLevelMixin:
    parts = sorted({bar[part] for bar in bars}, key=lambda name: (name != "none", name))
    chart = (
        alt.Chart(alt.InlineData(values=bars))
        .mark_bar()
        .encode(
            y=alt.Y(f"{group}:N", title=None, sort=None),
            yOffset=alt.YOffset(f"{part}:N", scale=alt.Scale(domain=parts)),
            x=alt.X("sum(count):Q", title=title),
            color=alt.Color(
                f"{part}:N",
                scale=alt.Scale(domain=parts, range=list(colours)[: len(parts)]),
                legend=alt.Legend(title=None, labelLimit=300),
            ),
        )
        .properties(width=420, height=alt.Step(14))
    )
    return _ready(chart)


def _ready(chart: Any) -> alt.TopLevelMixin:
    configured: alt.TopLevelMixin = (
        chart.properties(background="white", padding=10)
        .configure_view(stroke="#DDDDDD")
        .configure_axis(gridColor="#EEEEEE", labelFontSize=11, titleFontWeight="normal")
        .configure_header(labelFontSize=11)
    )
    return configured
