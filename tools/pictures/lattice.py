"""The contexts of one record, ordered by inclusion, and the draw among the valid ones.

Nothing private: the table is ``pcor.demo.ten_people`` without districts, which is made up; of a
real one all of this would be for its owner only. Every number is computed by the library:
populations and verdicts by the enumeration, chances by ``pcor.audit.exact_distribution``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from itertools import combinations

import pcor
from tools.pictures.palette import Palette
from tools.pictures.svg import WIDTH, box, circle, document, line, lines, text

RECORD = 8
EPSILON = "0.5"
TITLE = "The contexts of one record, and the draw among the valid ones"

_TOP, _STEP, _SPREAD = 142, 104, 130
_ROW = 25
_BAR, _LONGEST = 486, 210


@dataclass(frozen=True)
class Node:
    """A context that contains the record.

    Attributes:
        context: the context.
        population: how many rows it covers.
        valid: whether the record is an outlier in it.
        coin: the chance that its coin shows success in permute-and-flip; 0 where it has none.
        chance: the exact chance that it is released.
    """

    context: pcor.Context
    population: int
    valid: bool
    coin: float
    chance: float

    def words(self) -> tuple[str, ...]:
        """Return a line for each attribute: its values, or that it may be any."""
        return tuple(
            f"any {a.name.removesuffix('_title')}"
            if len(chosen) == len(a.values)
            else ", ".join(str(value).split()[-1] for value in chosen)
            for a, chosen in zip(
                self.context.schema.attributes, self.context.values.values(), strict=True
            )
        )


def small_table() -> pcor.Table:
    """Return the ten people with two attributes: sixteen contexts fit on a page."""
    whole = pcor.demo.ten_people_schema()
    kept = {a.name: list(a.values) for a in whole.attributes if a.name != "district"}
    schema = pcor.Schema(metric=whole.metric, attributes=kept, id=whole.id, name="ten-people")
    return pcor.Table(pcor.demo.ten_people().drop_columns(["district"]), schema)


@cache
def nodes() -> tuple[Node, ...]:
    """Return every context of the record: valid ones first and by falling population."""
    table, detector = small_table(), pcor.Grubbs(min_population=3)
    chances = pcor.audit.exact_distribution(table, RECORD, EPSILON, detector=detector)
    eta = pcor.plan(table.schema, EPSILON, detector=detector).bill.eta
    contexts = [
        pcor.Context.from_mask(table.schema, mask) for mask in table.record(RECORD).space.masks()
    ]
    counted = table.populations([context.mask for context in contexts]).tolist()
    people = dict(zip(contexts, counted, strict=True))
    best = max(people[context] for context in chances)
    found = [
        Node(
            context,
            people[context],
            pcor.is_outlier(table, RECORD, context, detector),
            math.exp(eta * (people[context] - best)) if context in chances else 0.0,
            chances.get(context, 0.0),
        )
        for context in contexts
    ]
    return tuple(sorted(found, key=lambda node: (not node.valid, -node.population)))


def lattice(palette: Palette) -> str:
    """Draw the contexts above and the draw below."""
    found = nodes()
    valid = [node for node in found if node.valid]
    middle = _TOP + 4 * _STEP + 84
    height = middle + 118 + _ROW * len(valid) + 10
    parts = [*_key(palette, len(found)), *_contexts(palette, found)]
    parts += [line(24, middle, WIDTH - 24, middle, palette.line), *_draw(palette, valid, middle)]
    return document(palette, height, TITLE, _description(found, valid), parts)


def _description(found: tuple[Node, ...], valid: list[Node]) -> str:
    chances = "; ".join(
        f"{', '.join(node.words())}: {node.population} people, {node.chance:.1%}" for node in valid
    )
    return (
        f"A made-up table of ten people. Record {RECORD}, a lawyer in Ottawa, is in {len(found)} "
        f"contexts, drawn as circles, each above those that it includes. It is an outlier in "
        f"{len(valid)} of them, which are filled; not in the one at the top, the whole table. "
        f"Below, the exact chance that a release with epsilon {EPSILON} gives each: {chances}."
    )


def _key(palette: Palette, count: int) -> list[str]:
    filled, hollow = (24 + 10, 82), (24 + 290, 82)
    return [
        text(24, 38, f"The {count} contexts of one record", palette.ink, size=18, bold=True),
        text(
            24, 61, "A made-up table of ten people; record 8 is a lawyer in Ottawa.", palette.soft
        ),
        circle(*filled, 8, palette.accent, palette.accent),
        text(filled[0] + 16, 87, "valid: record 8 is an outlier in it", palette.soft),
        circle(*hollow, 8, palette.surface, palette.line_strong),
        text(hollow[0] + 16, 87, "not valid", palette.soft),
        text(hollow[0] + 116, 87, "number and size: people in it", palette.soft),
    ]


def _places(found: tuple[Node, ...]) -> dict[pcor.Context, tuple[float, float]]:
    """Put a context on the level of its number of values, the whole table at the top."""
    levels: dict[int, list[pcor.Context]] = {}
    for node in sorted(found, key=lambda node: node.context.mask):
        levels.setdefault(len(node.context), []).append(node.context)
    return {
        context: (
            WIDTH / 2 + _SPREAD * (place - (len(level) - 1) / 2),
            _TOP + _STEP * (max(levels) - size),
        )
        for size, level in levels.items()
        for place, context in enumerate(level)
    }


def _contexts(palette: Palette, found: tuple[Node, ...]) -> list[str]:
    """Draw the circles, and a line wherever one value makes the difference."""
    places = _places(found)
    parts = [
        line(*places[low], *places[high], palette.line_strong, 1)
        for one, other in combinations(places, 2)
        for low, high in [sorted((one, other), key=len)]
        if low <= high and len(high) == len(low) + 1
    ]
    for node in found:
        x, y = places[node.context]
        radius = 7 * math.sqrt(node.population)  # the area is the population
        fill, edge = (
            (palette.accent, palette.accent)
            if node.valid
            else (palette.surface, palette.line_strong)
        )
        inside = palette.on_accent if node.valid else palette.ink
        parts.append(circle(x, y, radius, fill, edge))
        parts.append(text(x, y + 5, str(node.population), inside, size=14, anchor="middle"))
        for place, words in enumerate(node.words()):
            below = y + radius + 16 + 17 * place
            parts.append(
                text(x, below, words, palette.ink, size=13, anchor="middle", halo=palette.paper)
            )
    return parts


def _draw(palette: Palette, valid: list[Node], top: float) -> list[str]:
    """Draw a row for each valid context, in the order in which the draw meets them."""
    said = (
        "Valid contexts are met from the largest on. Each has a coin; of those that succeed one",
        "is released, all alike. The bars are the exact chances that follow.",
    )
    head = top + 106
    parts = [
        text(24, top + 32, f"The ordered draw, epsilon {EPSILON}", palette.ink, size=18, bold=True),
        *lines(24, top + 56, said, palette.soft),
        text(24, head, "valid context", palette.soft, size=14),
        text(386, head, "people", palette.soft, size=14, anchor="end"),
        text(462, head, "coin", palette.soft, size=14, anchor="end"),
        text(_BAR, head, "chance to be released", palette.soft, size=14),
    ]
    most = max(node.chance for node in valid)
    for place, node in enumerate(valid):
        y = head + _ROW * (place + 1)
        length = _LONGEST * node.chance / most
        parts += [
            text(24, y, "; ".join(node.words()), palette.ink),
            text(386, y, str(node.population), palette.ink, anchor="end"),
            text(462, y, f"{node.coin:.3f}", palette.ink, anchor="end"),
            box(_BAR, y - 13, length, 16, palette.accent, palette.accent, thick=0, radius=2),
            text(_BAR + length + 8, y, f"{node.chance:.1%}", palette.ink),
        ]
    return parts
