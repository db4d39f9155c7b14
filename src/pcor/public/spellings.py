r"""Cleaning: which texts of a column mean which value of a domain, and which mean no value.

Public: everything here; nothing reads a table. The rules, always in this order, each on what the
one before left of a cell's text:

1. ``strip``: blanks at both ends are ignored. Blanks are the characters of ``BLANKS``, no others.
2. ``missing_values``: a cell that is one of these words has no value. Numbers and dates are read
   without blanks around such a word, and one that is a number or a day means it however written.
3. ``ignore_case``: a capital counts as its small letter, character by character, where the two are
   each other's only partner: A and a, É and é, the two sigmas inside a word. Where case is not one
   to one nothing is changed: ß, ẞ and ss differ, and so do the sigma that ends a word and the
   others, the i without a dot, the İ with one and the usual pair I and i, the long s and s, the
   sign of kelvin and k. Nor is an accent joined to its letter: é in one character is not é in two.
   The pairs are those of Unicode 3.2, which no later version changes, so that every Python, and
   every engine that is told the pairs, agrees.
4. ``aliases`` and ``merge``: other spellings of a declared value. They are two ways to write one
   map, from spelling to value.

What is left is compared with the domain. Every declared value is a spelling of itself.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any

from pcor.errors import UNPRINTABLE, SchemaError, did_you_mean, is_printable
from pcor.public.dates import DAY_TEXT

if TYPE_CHECKING:
    from pcor.public.domain import Attribute, Value

Aliases = tuple[tuple[str, str], ...]
Merge = tuple[tuple[str, tuple[str, ...]], ...]

# Space, tab and line breaks; three spaces that do not break a line, and the thin one, which stand
# between groups of digits; the ideographic space.
BLANKS = " \t\n\r\u00a0\u2007\u2009\u202f\u3000"

# The rules that are about how a value is spelled.
SPELLING = ("strip", "ignore_case", "aliases", "merge")

_NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?", re.ASCII)


@dataclass(frozen=True)
class Spellings:
    """Which texts mean which value of an attribute of texts.

    Attributes:
        codes: for each spelling, as ``clean`` leaves it, the place of its value in the domain.
        strip: whether blanks at both ends are ignored.
        ignore_case: whether capitals count as small letters.
    """

    codes: Mapping[str, int]
    strip: bool = False
    ignore_case: bool = False

    @cached_property
    def folds(self) -> dict[str, str]:
        """The capitals that count as small letters: those of letters in some spelling.

        Any others need not be changed: with or without it they are in no spelling.
        """
        return capitals("".join(self.codes)) if self.ignore_case else {}

    @cached_property
    def _table(self) -> dict[int, str]:
        return str.maketrans(self.folds)

    def clean(self, text: str) -> str:
        """Return a text as it is looked up."""
        return (text.strip(BLANKS) if self.strip else text).translate(self._table)

    def code(self, cell: object) -> int:
        """Return the place of a cell's value in the domain, or -1."""
        return -1 if cell is None else self.codes.get(self.clean(str(cell)), -1)

    def of(self, places: Sequence[int]) -> list[str]:
        """Return every spelling of these values."""
        wanted = set(places)
        return [text for text, code in self.codes.items() if code in wanted]


def capitals(letters: str) -> dict[str, str]:
    """Return the capital of each small letter that has one of its own, with that letter.

    >>> capitals("Straße")
    {'A': 'a', 'E': 'e', 'R': 'r', 'T': 't'}
    """
    pairs = ((letter.upper(), letter) for letter in sorted(set(letters)))
    return {big: small for big, small in pairs if big != small and _small(big) == small}


def folded(text: str) -> str:
    """Return a text with small letters for all capitals that have one of their own.

    >>> folded("STRAẞE, ΟΔΟΣ")
    'straẞe, οδοσ'
    """
    return "".join(map(_small, text))


@cache
def _small(letter: str) -> str:
    small = letter.lower()
    is_pair = len(small) == 1 and small.upper() == letter and _is_stable(letter + small)
    return small if is_pair else letter


def _is_stable(letters: str) -> bool:
    """Tell whether these characters are old enough that no Unicode changes their case."""
    return all(unicodedata.ucd_3_2_0.category(letter) != "Cn" for letter in letters)


# -- declarations ---------------------------------------------------------------------------------


def read_rules(attribute: Attribute) -> dict[str, Any]:
    """Return the rules of an attribute in one order, and the values that ``merge`` stands for.

    Raises:
        SchemaError: one of them is not of the right shape.
    """
    who = f"attribute {attribute.name!r}"
    for key in ("strip", "ignore_case"):
        if not isinstance(getattr(attribute, key), bool):
            raise SchemaError(f"{who}: {key} must be true or false")
    aliases = _table(f"{who}: aliases", attribute.aliases)
    if not all(isinstance(value, str) for value in aliases.values()):
        raise SchemaError(f"{who}: aliases must have one value for each spelling, a text")
    merge = _table(f"{who}: merge", attribute.merge)
    for value, spellings in merge.items():
        if isinstance(spellings, str) or not isinstance(spellings, Sequence):
            raise SchemaError(f"{who}: merge must have a list of spellings for {value!r}")
    declared = attribute.edges is not None or attribute.date is not None
    values = attribute.values or (() if declared else tuple(merge))
    places = list(values)
    by_place = sorted(merge, key=lambda v: places.index(v) if v in places else len(places))
    return {
        "values": values,
        "aliases": tuple(sorted(aliases.items())),
        "merge": tuple((value, tuple(merge[value])) for value in by_place),
        "missing_values": read_words(who, attribute.missing_values),
    }


def read_words(who: str, words: object) -> tuple[str, ...]:
    """Return words that mean no value, or refuse them."""
    if isinstance(words, str) or not isinstance(words, Sequence):
        raise SchemaError(f'{who}: missing_values must be a list of texts, such as ["?", "-1"]')
    for place, word in enumerate(words):
        if isinstance(word, str) and word.strip(BLANKS) not in ("", word):
            raise SchemaError(
                f"{who}: missing_values has {word!r}, with a blank at an end; blanks at the ends "
                f"of cells are passed over, so write {word.strip(BLANKS)!r}"
            )
        if not isinstance(word, str) or not word.strip(BLANKS):
            raise SchemaError(
                f"{who}: each of missing_values must be a text that is not empty; "
                f'write "-1" for a number, not {word!r}'
            )
        _check_text(who, word)
        if word in words[:place]:
            raise SchemaError(f"{who}: missing_values has {word!r} twice")
    return tuple(words)


def check_rules(attribute: Attribute) -> None:
    """Refuse rules that mean nothing for the attribute's kind, or contradict each other."""
    kind, who = attribute.kind, f"attribute {attribute.name!r}"
    for key in SPELLING:
        if getattr(attribute, key) and kind != "text" and (kind, key) != ("dates", "strip"):
            what = {
                "bins": "bins of numbers",
                "dates": "bins of dates",
                "boolean": "true and false",
            }
            raise SchemaError(
                f"{who}: {key} is a rule for values that are texts, and its values are "
                f"{what.get(kind, 'numbers')}; leave it out"
                + ("" if kind in ("bins", "dates") else ", or write its values as texts")
            )
    if attribute.edges is not None:
        return
    if kind == "text":
        attribute.spellings  # noqa: B018 (which is refused here, or never)
    for word in attribute.missing_values:
        if (code := attribute.cell_code(word)) >= 0:
            raise SchemaError(
                f"{who}: {word!r} cannot be in missing_values, because it is read as the value "
                f"{attribute.values[code]!r}"
            )


def spellings_of(attribute: Attribute) -> Spellings:
    """Return which texts mean which of an attribute's values, which are texts.

    Raises:
        SchemaError: a text would mean two of them, or one that is not declared.
    """
    codes: dict[str, int] = {}
    who = f"attribute {attribute.name!r}"

    def cleaned(text: str) -> str:
        text = text.strip(BLANKS) if attribute.strip else text
        return folded(text) if attribute.ignore_case else text

    for place, value in enumerate(map(str, attribute.values)):
        if (other := codes.setdefault(cleaned(value), place)) != place:
            raise SchemaError(
                f"{who}: the values {attribute.values[other]!r} and {value!r} are the same by its "
                "rules (strip, ignore_case); declare one of them"
            )
    declared, places = dict(codes), {value: place for place, value in enumerate(attribute.values)}
    for key, spelling, value in _pairs(attribute):
        _check_text(who, spelling)
        if value not in places:
            raise SchemaError(
                f"{who}: {key} has {spelling!r} for {value!r}, which is none of its values"
                f"{did_you_mean(value, attribute.values)}"
            )
        text, place = cleaned(spelling), places[value]
        if text in declared:
            if key == "merge" and declared[text] == place:
                continue  # whoever lists what a value stands for may list the value itself
            own = attribute.values[declared[text]]
            raise SchemaError(
                f"{who}: {key} has {spelling!r} for {value!r}, but it is read as the declared "
                f"value {own!r}; {'leave it out' if own == value else 'declare only one of them'}"
            )
        if text in codes:
            raise SchemaError(
                f"{who}: aliases and merge have {spelling!r} twice, or as another spelling that is "
                "the same by its rules; say once what it stands for"
            )
        codes[text] = place
    by_place = sorted(codes.items(), key=lambda pair: pair[1])
    return Spellings(dict(by_place), attribute.strip, attribute.ignore_case)


def _pairs(attribute: Attribute) -> Iterator[tuple[str, str, str]]:
    """Yield each further spelling with its value, and the rule that has it."""
    for spelling, value in attribute.aliases:
        yield "aliases", spelling, value
    for value, spellings in attribute.merge:
        if not spellings and value not in attribute.values:
            raise SchemaError(
                f"attribute {attribute.name!r}: merge has {value!r}, which is none of its values"
                f"{did_you_mean(value, attribute.values)}"
            )
        for spelling in spellings:
            yield "merge", spelling, value


def _table(what: str, given: object) -> dict[str, Any]:
    """Return a rule that is a table, or refuse what is none."""
    if isinstance(given, tuple):  # as an attribute keeps it
        return dict(given)
    if not isinstance(given, Mapping) or not all(isinstance(key, str) for key in given):
        raise SchemaError(f'{what} must be a table of texts, such as {{ "Priv." = "Private" }}')
    return dict(given)


def _check_text(who: str, text: object) -> None:
    if not isinstance(text, str):
        raise SchemaError(f"{who}: a spelling must be a text, not {text!r}; put it in quotes")
    if not is_printable(text):
        raise SchemaError(f"{who}: the spelling {text!r} {UNPRINTABLE}")


# -- words that mean no value ---------------------------------------------------------------------


def numbers_among(words: Iterable[str]) -> list[float]:
    """Return the words that are numbers: they mean that number however it is written.

    >>> numbers_among(["?", "-1", "1e3"])
    [-1.0, 1000.0]
    """
    numbers = (float(word) for word in words if _NUMBER.fullmatch(word))
    return [number for number in numbers if math.isfinite(number)]


def days_among(words: Iterable[str]) -> list[date]:
    """Return the words that are days, which mean any moment of that day.

    >>> days_among(["?", "9999-12-31", "2019-02-30"])
    [datetime.date(9999, 12, 31)]
    """
    days = (word for word in words if len(word) == 10 and re.fullmatch(DAY_TEXT, word))
    return [date.fromisoformat(day) for day in days if day >= "0001"]


def is_missing(words: Sequence[str], cell: Value) -> bool:
    """Tell whether a cell that has no code is one of the words, so that an owner is told so."""
    text = str(cell).strip(BLANKS)
    return text in words or bool(set(numbers_among([text])) & set(numbers_among(words)))
