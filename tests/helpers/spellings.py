"""Random rules of cleaning and messy columns, and the slow, obvious answer to what a cell means.

``meaning`` reads a declaration by itself: it compares a cell with every spelling, character by
character, and knows nothing of the library's tables.
"""

from __future__ import annotations

from collections.abc import Sequence
from string import ascii_lowercase, ascii_uppercase
from typing import Any

from hypothesis import strategies as st

from pcor.errors import is_printable

Declared = dict[str, Any]
Cells = list[str | None]

# The blanks that the documentation names.
BLANKS = " \t\n\r\u00a0\u2007\u2009\u202f\u3000"
# White to some engine or to Python, and yet no blanks.
NOT_BLANKS = "\u2003\u200b\ufeff\u0085\u2028"

# Letters and their capitals, in their order; here written down by hand.
SMALL = f"{ascii_lowercase}éäñσωабвгдеёжзийклмнопрстуфхцчшщъыьэюяիǆ\U00010428"
LARGE = f"{ascii_uppercase}ÉÄÑΣΩАБВГДЕЁЖЗИЙКЛМНОПРСТУФХЦЧШЩЪЫЬЭЮЯԻǄ\U00010400"
PAIRS = dict(zip(SMALL, LARGE, strict=True))

# Letters whose case is not one to one, or younger than the pairs; marks that are joined to what is
# before them, and signs that SQL, LIKE and patterns read in their own way.
ODD = "ßẞıİςſ\u212a\u01c5\u0149ŉﬁµᾳჰᲰᏣꮳ"
PLAIN = "0129'\"\\%_!{}$;- .\u0301\u0307東🙂"
PAIRED = "aAbBzZéÉñσΣжЖիԻǆǄ\U00010400\U00010428"  # noqa: RUF001

texts = st.text(st.sampled_from(PAIRED + ODD + PLAIN), min_size=1, max_size=5).filter(is_printable)
blanks = st.text(st.sampled_from(BLANKS), max_size=3)
almost_blanks = st.text(st.sampled_from(BLANKS + NOT_BLANKS), max_size=2)


def same_letter(one: str, other: str) -> bool:
    """Tell whether two characters differ in case only, and each is the other's only partner."""
    return one == other or PAIRS.get(one) == other or PAIRS.get(other) == one


def same_text(one: str, other: str, declared: Declared) -> bool:
    """Tell whether a cell is this spelling."""
    if declared.get("strip"):
        one, other = one.strip(BLANKS), other.strip(BLANKS)
    if not declared.get("ignore_case"):
        return one == other
    return len(one) == len(other) and all(map(same_letter, one, other))


def meaning(declared: Declared, cell: str | None) -> int | None:
    """Return the place of a cell's value in the domain; ``None`` for a row outside it."""
    values: list[str] = declared.get("values") or list(declared["merge"])
    elsewhere = values.index(declared["other"]) if "other" in declared else None
    if cell is None:
        return elsewhere
    stripped = cell.strip(BLANKS) if declared.get("strip") else cell
    if stripped in declared.get("missing_values", ()):
        return elsewhere
    for place, value in enumerate(values):
        spelled = [value, *declared.get("merge", {}).get(value, [])]
        spelled += [one for one, other in declared.get("aliases", {}).items() if other == value]
        if any(same_text(cell, one, declared) for one in spelled):
            return place
    return elsewhere


def alike(one: str, others: Sequence[str], declared: Declared) -> bool:
    return any(same_text(one, other, declared) for other in others)


@st.composite
def declarations(draw: st.DrawFn) -> Declared:
    """Draw the domain and the rules of an attribute of texts."""
    declared: Declared = {"outside": "drop"}
    for key in ("strip", "ignore_case"):
        if draw(st.booleans()):
            declared[key] = True
    spelled: list[str] = []
    for text in draw(st.lists(texts, min_size=2, max_size=9)):
        if not alike(text, spelled, declared):
            spelled.append(text)
    count = draw(st.integers(1, min(4, len(spelled))))
    values, others = spelled[:count], spelled[count:]
    rules: dict[str, dict[str, Any]] = {"aliases": {}, "merge": {}}
    for text in others:
        value = draw(st.sampled_from(values))
        if draw(st.booleans()):
            rules["aliases"][text] = value
        else:
            rules["merge"].setdefault(value, []).append(text)
    declared |= {key: rule for key, rule in rules.items() if rule}
    if set(rules["merge"]) != set(values) or draw(st.booleans()):
        declared["values"] = values
    words = [
        text
        for text in draw(st.lists(texts, max_size=2, unique=True))
        if text == text.strip(BLANKS)
    ]
    if words := [word for word in words if not alike(word, spelled, declared)]:
        declared["missing_values"] = words
    if draw(st.booleans()):
        del declared["outside"]
        declared["other"] = draw(st.sampled_from(values))
    return declared


@st.composite
def cells(draw: st.DrawFn, declared: Declared, most: int = 12) -> Cells:
    """Draw cells that are often a spelling in another case, with blanks or what looks like them."""
    known = [*declared.get("values", ()), *declared.get("aliases", ()), *declared.get("merge", ())]
    known += [one for listed in declared.get("merge", {}).values() for one in listed]
    known += declared.get("missing_values", [])
    recased = st.sampled_from(known).flatmap(
        lambda text: st.tuples(*(st.sampled_from([c, c.upper(), c.lower()]) for c in text))
    )
    cell = recased.map("".join) | st.sampled_from(known) | texts
    messy = st.tuples(almost_blanks | blanks, cell, blanks | almost_blanks).map("".join)
    return draw(st.lists(st.none() | cell | messy, max_size=most))


def spelled_out(declared: Declared) -> str:
    """Return a cell that has a value, so that a table has a row."""
    values: list[str] = declared.get("values") or list(declared["merge"])
    return values[0]
