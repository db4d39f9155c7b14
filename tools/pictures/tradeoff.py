"""What utility an epsilon buys, for every search and both guarantees, from numbers that are kept.

Nothing private: the table is the synthetic one of ``pcor demo``. ``measure`` runs the commands that
made docs/pictures/tradeoff.json, a few minutes of work; drawing takes a second. The guarantee dp
needs a detector that counts, so the panel that has it asks about other outliers than the one with
the default detector, and says so: lines are to be compared within a panel.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from html import escape
from pathlib import Path
from typing import Any

import vl_convert

from pcor.audit.charts import SHAPES
from tools.pictures import FOLDER
from tools.pictures.palette import FONT, Palette

NUMBERS = FOLDER / "tradeoff.json"
TITLE = "What utility an epsilon buys"
COMMANDS = ("pcor tradeoff --json", "pcor tradeoff --detector tail --json")
KEPT = ("detector", "line", "guarantee", "records", "epsilon", "utility", "low", "high", "validity")

# Left and right; the searches of both, in the order of the legend.
PANELS = {
    "lof": "Outliers by lof (the default), OCDP",
    "tail": "Outliers by tail, OCDP and dp",
}


def measure() -> str:
    """Run the commands and return their numbers as the text of tradeoff.json."""
    points = []
    for command, detector in zip(COMMANDS, PANELS, strict=True):
        program = Path(sys.executable).with_name("pcor")
        arguments = [str(program), *command.split()[1:]]
        printed = subprocess.run(arguments, check=True, capture_output=True)  # noqa: S603
        measured = json.loads(printed.stdout)["points"]
        points += [kept(point) for point in measured if point["detector"] == detector]
    rows = ",\n".join(f"  {json.dumps(point)}" for point in points)  # one to a line, for diffs
    return f'{{\n "commands": {json.dumps(COMMANDS)},\n "points": [\n{rows}\n ]\n}}\n'


def kept(point: dict[str, Any]) -> dict[str, Any]:
    """Keep of a point what is drawn, by four decimals."""
    given = {name: point[name] for name in KEPT}
    return {n: round(one, 4) if isinstance(one, float) else one for n, one in given.items()}


def read() -> list[dict[str, Any]]:
    """Return the points that were kept."""
    points: list[dict[str, Any]] = json.loads(NUMBERS.read_text(encoding="utf-8"))["points"]
    return points


def chart(palette: Palette) -> str:
    """Draw the picture; its metadata has the fingerprint of what it was drawn from."""
    points = read()
    described = specification(palette, points)
    picture: str = vl_convert.vegalite_to_svg(described)
    said = (
        f'role="img" aria-labelledby="title desc"><title id="title">{escape(TITLE)}</title>'
        f'<desc id="desc">{escape(describe(points))}</desc>'
        f"<metadata>{fingerprint(described)}</metadata>"
    )
    head, body = picture.split(">", 1)
    return f"{head} {said}{body}\n"


def fingerprint(described: dict[str, Any]) -> str:
    """Return the SHA-256 of a chart's specification: its bytes may differ between versions."""
    return hashlib.sha256(json.dumps(described, sort_keys=True).encode()).hexdigest()


def describe(points: list[dict[str, Any]]) -> str:
    """Return the picture in words, with its numbers at both ends."""
    ends = min(p["epsilon"] for p in points), max(p["epsilon"] for p in points)
    found: dict[tuple[str, str], dict[float, float]] = {}
    for p in points:
        found.setdefault((p["detector"], p["line"]), {})[p["epsilon"]] = p["utility"]
    said = [
        f"{heading}: "
        + "; ".join(
            f"{line} {values[ends[0]]:.2f} to {values[ends[1]]:.2f}"
            for (where, line), values in found.items()
            if where == detector
        )
        for detector, heading in PANELS.items()
    ]
    return (
        "Two line charts of utility, the population of the context drawn over that of the largest "
        f"valid one, against epsilon from {ends[0]:g} to {ends[1]:g}. {'. '.join(said)}."
    )


def specification(palette: Palette, points: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the chart for Vega-Lite: a panel for each detector, one legend."""
    names = list(dict.fromkeys(point["line"] for point in points))
    (records,) = {point["records"] for point in points}
    surest = min(point["validity"] for point in points if point["guarantee"] == "dp")
    subtitle = [
        "Utility: the population of the context drawn over that of the largest valid one.",
        f"Synthetic salaries. Means over {records} outliers by lof on the left, {records} by tail "
        "on the right:",
        "compare lines within a panel. Bars hold 90 % of the means of resamples (bootstrap).",
        f"An OCDP context is always valid; under dp with a mean chance of {surest:.2f} or more.",
    ]
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v5.json",
        "title": {"text": TITLE, "subtitle": subtitle},
        "hconcat": [
            _panel(palette, names, [p for p in points if p["detector"] == detector], heading)
            for detector, heading in PANELS.items()
        ],
        "spacing": 24,
        "config": _look(palette),
    }


def _panel(
    palette: Palette, names: list[str], points: list[dict[str, Any]], heading: str
) -> dict[str, Any]:
    """Return the lines of one detector."""
    ticks = sorted({point["epsilon"] for point in points})
    legend = {"title": None, "columns": 3, "orient": "bottom"}
    colours = [*palette.lines, palette.ink]
    x = {
        "field": "epsilon",
        "type": "quantitative",
        "title": "epsilon (logarithmic)",
        "scale": {"type": "log", "nice": False, "padding": 10},
        "axis": {"values": ticks, "format": "~g", "grid": False},
    }
    y = {
        "field": "utility",
        "type": "quantitative",
        "title": None,
        "scale": {"domain": [0, 1]},
        "axis": {"tickCount": 5},
    }
    colour = {
        "field": "line",
        "type": "nominal",
        "scale": {"domain": names, "range": colours[: len(names)]},
        "legend": legend,
    }
    shape = colour | {"scale": {"domain": names, "range": list(SHAPES[: len(names)])}}
    return {
        "title": {"text": heading, "fontSize": 15},
        "width": 322,
        "height": 300,
        "data": {"values": points},
        "encoding": {"x": x, "color": colour},
        "layer": [
            {
                "mark": {"type": "rule", "opacity": 0.5},
                "encoding": {"y": y | {"field": "low"}, "y2": {"field": "high"}},
            },
            {
                "mark": {"type": "line"},
                "encoding": {"y": y, "strokeWidth": _for_direct(7, 2)},
            },
            {
                "mark": {"type": "point", "filled": True, "opacity": 1},
                "encoding": {"y": y, "shape": shape, "size": _for_direct(190, 60)},
            },
        ],
    }


def _for_direct(value: float, others: float) -> dict[str, Any]:
    """Draw direct wider than the others: it comes first, and they lie on it."""
    return {"condition": {"test": "datum.line == 'direct'", "value": value}, "value": others}


def _look(palette: Palette) -> dict[str, Any]:
    """Return the look of all pictures, in Vega's words."""
    words = {"labelColor": palette.ink, "titleColor": palette.soft}
    sizes = {"labelFontSize": 14, "titleFontSize": 14, "titleFontWeight": "normal"}
    return {
        # The picture speaks as one; see describe().
        "aria": False,
        "background": palette.paper,
        "font": FONT,
        "padding": 20,
        "axis": words
        | sizes
        | {
            "gridColor": palette.line,
            "domainColor": palette.line_strong,
            "tickColor": palette.line_strong,
        },
        "legend": words
        | sizes
        | {
            "labelLimit": 260,
            "symbolSize": 100,
            "symbolOpacity": 1,
            "columnPadding": 30,
            "rowPadding": 7,
            "offset": 16,
        },
        "view": {"stroke": palette.line},
        "title": {
            "anchor": "start",
            "color": palette.ink,
            "fontSize": 18,
            "fontWeight": 600,
            "subtitleColor": palette.soft,
            "subtitleFontSize": 15,
            "subtitleLineHeight": 21,
            "subtitlePadding": 8,
            "offset": 14,
        },
    }
