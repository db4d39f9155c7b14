"""How a release flows: public knowledge, the curtain, and the one way out, with the ledger beside.

Nothing private: the rows behind the curtain are the made-up people of ``pcor.demo.ten_people``. The
order is that of ``releasing/run.py`` with a ledger: plan, charge, look, draw, store, show.
"""

from __future__ import annotations

from collections import Counter
from itertools import product

import pcor
from tools.pictures.palette import Palette
from tools.pictures.svg import arrow, box, circle, document, line, lines, number, tag, text

TITLE = "How a release flows"
DESCRIPTION = (
    "Above: what is public. A schema, a record V and an epsilon give a plan; it is free and no row "
    "is read for it. The ledger, at the right, charges first. In the middle, behind a curtain: the "
    "private rows, sorted into cells. The search asks of context after context whether V is an "
    "outlier in it and hears yes or no; then one valid context is drawn, larger ones more often, "
    "with exactly the chances that were promised. One door leads out. The ledger stores the answer "
    "before anybody sees it. Below, public again: the context, with a certificate."
)
HEIGHT = 716

RECORD = 8
_LEFT, _RIGHT = 24, 776
_TOP, _BOTTOM, _EDGE = 204, 552, 560  # of the curtain; _EDGE is its right side
_LEDGER = 616
_DOOR = 432
_SCALLOP = 14


def flow(palette: Palette) -> str:
    """Draw the picture."""
    parts = [
        *_public(palette),
        *_curtain(palette),
        *_table(palette),
        *_steps(palette),
        *_ledger(palette),
        *_out(palette),
    ]
    return document(palette, HEIGHT, TITLE, DESCRIPTION, parts)


def _heading(x: float, y: float, words: str, fill: str) -> str:
    return text(x, y, words, fill, size=14, bold=True)


def _card(
    palette: Palette, place: tuple[float, float, float, float], title: str, *words: str
) -> list[str]:
    x, y, width, height = place
    return [
        box(x, y, width, height, palette.surface, palette.line_strong),
        text(x + 14, y + 27, title, palette.ink, size=16, bold=True),
        *lines(x + 14, y + 50, words, palette.soft),
    ]


def _public(palette: Palette) -> list[str]:
    """Draw what goes in."""
    known = [
        ("Schema", "all values that an", "attribute can have"),
        ("Record V", "whom the answer", "is about"),
        ("Epsilon", "what the answer", "may cost"),
    ]
    parts = [_heading(_LEFT, 36, "PUBLIC KNOWLEDGE", palette.soft)]
    for place, words in enumerate(known):
        parts += _card(palette, (_LEFT + 176 * place, 50, 164, 88), *words)
    return [
        *parts,
        arrow([(544, 94), (580, 94)], palette.line_strong),
        *_card(palette, (584, 50, 192, 88), "1  Plan", "what runs, its cost,", "the promise: free"),
        arrow([(696, 138), (696, _TOP)], palette.line_strong),
        text(684, 176, "no row is read so far", palette.soft, anchor="end"),
    ]


def _curtain(palette: Palette) -> list[str]:
    """Draw the curtain round the private rows, with one door at the bottom."""
    step = number(_SCALLOP)
    radius = number(_SCALLOP / 2)
    across, down = (_EDGE - _LEFT) // _SCALLOP, (_BOTTOM - _TOP) // _SCALLOP
    wide, high = across * _SCALLOP, down * _SCALLOP

    def edge(count: int, move: str) -> str:
        return f"a{radius} {radius} 0 0 1 {move}" * count

    path = (
        f"M{_LEFT} {_TOP}"
        + edge(across, f"{step} 0")
        + edge(down, f"0 {step}")
        + edge(across, f"-{step} 0")
        + edge(down, f"0 -{step}")
        + "z"
    )
    bottom = _TOP + high
    folds = [
        line(x, _TOP + 4, x, _TOP + 20, palette.accent, 1)
        for x in range(_LEFT + _SCALLOP, _LEFT + wide, _SCALLOP)
    ]
    return [
        tag("path", d=path, fill=palette.tint, stroke=palette.accent, stroke_width=2.5),
        *folds,
        _heading(_LEFT + 20, _TOP + 44, "PRIVATE: BEHIND THE CURTAIN", palette.tint_ink),
        # The door: the hem is open here and nowhere else.
        tag("rect", x=_DOOR - 28, y=bottom - 3, width=56, height=13, fill=palette.paper),
        tag("rect", x=_DOOR - 28, y=bottom - 5, width=56, height=6, fill=palette.tint),
        line(_DOOR - 28, bottom - 6, _DOOR - 28, bottom + 10, palette.accent, 3),
        line(_DOOR + 28, bottom - 6, _DOOR + 28, bottom + 10, palette.accent, 3),
    ]


def _table(palette: Palette) -> list[str]:
    """Draw the rows as dots in the cells of two attributes."""
    schema, rows = pcor.demo.ten_people_schema(), pcor.demo.ten_people().to_pylist()
    jobs, cities = (schema.attributes[place].values for place in (0, 1))
    counts = Counter((row["job_title"], row["city"]) for row in rows)
    own = next((row["job_title"], row["city"]) for row in rows if row["record"] == RECORD)
    x, y, wide, high = 106, 298, 64, 56
    parts = [
        text(x + wide * place + wide / 2, y - 10, str(city), palette.ink, size=13, anchor="middle")
        for place, city in enumerate(cities)
    ]
    for place, job in enumerate(jobs):
        middle = y + high * place + high / 2 + 5
        parts.append(text(x - 10, middle, _short(job), palette.ink, size=13, anchor="end"))
    for (down, job), (across, city) in product(enumerate(jobs), enumerate(cities)):
        left, top = x + wide * across, y + high * down
        parts.append(box(left, top, wide, high, palette.surface, palette.line_strong, radius=0))
        for dot in range(counts[job, city]):
            is_v = (job, city) == own and dot == 0
            fill = palette.accent if is_v else palette.surface
            parts.append(circle(left + 14 + 18 * dot, top + high / 2, 6.5, fill, palette.accent))
    below = y + 3 * high + 28
    return [
        *parts,
        circle(x + 7, below - 5, 6.5, palette.accent, palette.accent),
        text(x + 20, below, "V, a row among rows", palette.tint_ink),
        text(x, below + 24, "rows sorted into cells", palette.tint_ink),
    ]


def _short(value: object) -> str:
    return str(value).split()[-1]


def _steps(palette: Palette) -> list[str]:
    """Draw looking and drawing."""
    x, wide = 332, 200
    look = (
        '"Is V an outlier in C?"',
        "asked of context after",
        "context C; the search",
        "hears yes or no",
    )
    draw = ("one valid context, the", "larger the likelier,", "by exact chances")
    return [
        arrow([(298, 348), (x - 2, 348)], palette.line_strong),
        *_card(palette, (x, 268, wide, 130), "3  Look", *look),
        arrow([(_DOOR, 398), (_DOOR, 424)], palette.line_strong),
        *_card(palette, (x, 426, wide, 104), "4  Draw one", *draw),
    ]


def _ledger(palette: Palette) -> list[str]:
    """Draw the ledger outside the curtain: it holds no rows."""
    wide = _RIGHT - _LEDGER
    words = ("It charges before", "the first look,", "and only once", "for each answer.")
    pages = [line(_LEDGER + 14, y, _RIGHT - 14, y, palette.line) for y in range(412, 520, 22)]
    return [
        box(_LEDGER, _TOP + 2, wide, 330, palette.surface, palette.accent, thick=2.5),
        line(_LEDGER + 7, _TOP + 4, _LEDGER + 7, _TOP + 330, palette.accent, 1),
        text(_LEDGER + 18, _TOP + 32, "2  Ledger", palette.ink, size=16, bold=True),
        *lines(_LEDGER + 18, _TOP + 58, words, palette.soft),
        *pages,
        text(_LEDGER + 18, 407, "budget", palette.soft, size=14),
        text(_RIGHT - 14, 407, "1", palette.soft, size=14, anchor="end"),
        text(_LEDGER + 18, 429, "charge", palette.soft, size=14),
        text(_RIGHT - 14, 429, "0.5", palette.soft, size=14, anchor="end"),
        text(_LEDGER + 18, 451, "answer stored", palette.soft, size=14),
        arrow([(_LEDGER - 1, 308), (534, 308)], palette.line_strong),
        text(_LEDGER - 8, 298, "paid", palette.ink, size=14, anchor="end"),
    ]


def _out(palette: Palette) -> list[str]:
    """Draw what leaves."""
    people = "medical doctors and lawyers of any city."
    return [
        arrow([(_DOOR, 530), (_DOOR, 610)], palette.accent),
        text(_DOOR - 38, 588, "the only way out", palette.soft, anchor="end"),
        arrow([(_DOOR + 1, 584), (696, 584), (696, 538)], palette.accent, dashed=True),
        text(_DOOR + 20, 604, "5  stored before it is shown", palette.soft),
        _heading(_LEFT, 602, "PUBLIC AGAIN", palette.soft),
        box(_LEFT, 612, _RIGHT - _LEFT, 84, palette.surface, palette.accent, thick=2.5),
        text(_LEFT + 18, 640, "6  Context and certificate", palette.ink, size=16, bold=True),
        text(_LEFT + 18, 663, f'"V is an outlier by salary among {people}"', palette.ink),
        text(
            _LEFT + 18,
            685,
            "With the request, the cost and the promise. Without counts, scores or times.",
            palette.soft,
        ),
    ]
