"""The picture of the lattice says what the library says, to the last number."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from itertools import combinations
from xml.etree import ElementTree as ET

import pytest

import pcor
from tools.pictures import FOLDER
from tools.pictures.palette import DARK

SVG = "{http://www.w3.org/2000/svg}"
RECORD = 8
EPSILON = "0.5"
DETECTOR = pcor.Grubbs(min_population=3)
Words = tuple[str, ...]


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

    def words(self) -> Words:
        """Return a line for each attribute: its values, or that it may be any."""
        attributes = self.context.schema.attributes
        return tuple(
            f"any {a.name.removesuffix('_title')}"
            if len(chosen) == len(a.values)
            else ", ".join(str(value).split()[-1] for value in chosen)
            for a, chosen in zip(attributes, self.context.values.values(), strict=True)
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
    table = small_table()
    chances = pcor.audit.exact_distribution(table, RECORD, EPSILON, detector=DETECTOR)
    eta = pcor.plan(table.schema, EPSILON, detector=DETECTOR).bill.eta
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
            pcor.is_outlier(table, RECORD, context, DETECTOR),
            math.exp(eta * (people[context] - best)) if context in chances else 0.0,
            chances.get(context, 0.0),
        )
        for context in contexts
    ]
    return tuple(sorted(found, key=lambda node: (not node.valid, -node.population)))


@pytest.fixture(scope="module")
def picture() -> ET.Element:
    return ET.parse(FOLDER / "lattice-dark.svg").getroot()  # noqa: S314


def number(element: ET.Element, name: str) -> float:
    return float(element.get(name, "nan"))


def circles(picture: ET.Element) -> dict[Words, ET.Element]:
    """Return the circles by the words below them; those of the key have none."""
    below: dict[float, list[ET.Element]] = {}
    for words in picture.iter(f"{SVG}text"):
        if words.get("stroke"):
            below.setdefault(number(words, "x"), []).append(words)
    found = {}
    for circle in picture.iter(f"{SVG}circle"):
        edge = number(circle, "cy") + number(circle, "r")
        near = [w for w in below.get(number(circle, "cx"), []) if 0 < number(w, "y") - edge < 34]
        if near:
            found[tuple(word.text or "" for word in near)] = circle
    return found


def test_every_context_of_the_record_has_its_circle(picture: ET.Element) -> None:
    drawn = circles(picture)
    assert sorted(drawn) == sorted(node.words() for node in nodes())
    assert len(list(picture.iter(f"{SVG}circle"))) == len(drawn) + 2  # the key has two


def test_a_circle_has_its_population_as_number_and_area_and_is_filled_if_valid(
    picture: ET.Element,
) -> None:
    drawn = circles(picture)
    words = {
        (number(one, "x"), number(one, "y")): one.text
        for one in picture.iter(f"{SVG}text")
        if one.get("font-size") == "14"
    }
    for node in nodes():
        circle = drawn[node.words()]
        assert words[number(circle, "cx"), number(circle, "cy") + 5] == str(node.population)
        assert number(circle, "r") == pytest.approx(7 * math.sqrt(node.population), abs=0.01)
        assert circle.get("fill") == (DARK.accent if node.valid else DARK.surface)


def test_a_line_joins_two_contexts_where_one_value_makes_the_difference(
    picture: ET.Element,
) -> None:
    places = {
        (number(circle, "cx"), number(circle, "cy")): words
        for words, circle in circles(picture).items()
    }
    lines = [
        {places[number(one, f"x{end}"), number(one, f"y{end}")] for end in (1, 2)}
        for one in picture.iter(f"{SVG}line")
        if one.get("stroke-width") == "1"
    ]
    expected = [
        {one.words(), other.words()}
        for one, other in combinations(nodes(), 2)
        if (one.context <= other.context or other.context <= one.context)
        and abs(len(one.context) - len(other.context)) == 1
    ]
    assert sorted(map(sorted, lines)) == sorted(map(sorted, expected))


def test_the_draw_has_every_valid_context_with_its_coin_and_chance(picture: ET.Element) -> None:
    rows: dict[float, list[str]] = {}
    for one in picture.iter(f"{SVG}text"):
        rows.setdefault(number(one, "y"), []).append(one.text or "")
    drawn = [row for row in rows.values() if row[-1].endswith("%")]
    valid = [node for node in nodes() if node.valid]
    assert drawn == [
        ["; ".join(n.words()), str(n.population), f"{n.coin:.3f}", f"{n.chance:.1%}"] for n in valid
    ]
    bars = [one for one in picture.iter(f"{SVG}rect") if one.get("height") == "16"]
    most = max(node.chance for node in valid)
    lengths = [number(bar, "width") / 210 for bar in bars]
    assert lengths == pytest.approx([node.chance / most for node in valid], abs=1e-4)


def test_the_description_has_the_same_numbers(picture: ET.Element) -> None:
    valid = [node for node in nodes() if node.valid]
    said = picture.findtext(f"{SVG}desc") or ""
    assert f"is in {len(nodes())} contexts" in said
    assert f"an outlier in {len(valid)} of them" in said
    assert f"epsilon {EPSILON} gives each" in said
    chances = [f"{', '.join(n.words())}: {n.population} people, {n.chance:.1%}" for n in valid]
    assert said.endswith(f"{'; '.join(chances)}.")


def test_the_library_says_the_same_in_its_other_ways() -> None:
    table = small_table()
    found = pcor.matching_contexts(table, RECORD, DETECTOR)
    populations = dict(zip(found.contexts, found.populations.tolist(), strict=True))
    assert {node.context: node.population for node in nodes() if node.valid} == populations
    assert sum(node.chance for node in nodes()) == pytest.approx(1)
    rows = pcor.demo.ten_people().to_pylist()
    for node in nodes():
        named = node.context.values
        inside = [row for row in rows if all(row[name] in named[name] for name in named)]
        assert node.population == len(inside)


def test_the_coins_give_the_chances() -> None:
    coins = [node.coin for node in nodes() if node.valid]
    chances = [node.chance for node in nodes() if node.valid]
    assert chances == pytest.approx(_first_success(coins), rel=1e-9)


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
