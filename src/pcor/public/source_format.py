"""How a table is written down: the separator and encoding of its file, and how numbers look.

Public: everything here. A format says how bytes become rows, the same for every command, every
engine and the service. Numbers of a format are told by one regular expression, which engines with
such expressions are given as it is, and rewritten by the same replacements everywhere: a text means
the same number wherever it is read, and whatever is not written like one is refused, not guessed.
"""

from __future__ import annotations

import codecs
import re
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any

from pcor.errors import SchemaError, did_you_mean, is_printable
from pcor.public.date_format import shapes
from pcor.public.spellings import BLANKS

# What can be named by a word; a tab is hard to type on a command line.
SEPARATORS = {"comma": ",", "semicolon": ";", "tab": "\t", "bar": "|"}
_DECIMALS = {"point": ".", "comma": ","}
_THOUSANDS = {"comma": ",", "point": ".", "space": " ", "apostrophe": "'"}

# The characters that a mark of thousands stands for: several blanks look alike, and so do quotes.
THOUSANDS = {",": ",", ".": ".", " ": " \u00a0\u2009\u202f", "'": "'\u2019"}

_ENCODINGS = ("utf-8", "utf-16", "latin-1", "windows-1252")


def _key(default: str, told: str) -> Any:
    return field(default=default, metadata={"help": told})


@dataclass(frozen=True)
class SourceFormat:
    """How the cells of a source are separated and encoded, and how numbers in texts are written.

    Attributes:
        separator: what stands between the cells of a CSV file: one character, or ``comma``,
            ``semicolon``, ``tab``, ``bar``.
        encoding: of a CSV file: ``utf-8`` (with a byte order mark or without), ``utf-16``,
            ``latin-1``, ``windows-1252`` or any other that Python knows.
        decimal: what stands before the decimals of a number: ``.`` or ``,``.
        thousands: what may stand between groups of three digits: ``,``, ``.``, ``'``, or a blank
            (``space``) of any width.
        currency: a sign or word that may stand before or after a number: ``$``, ``EUR``.
        dates: how days are written in texts, where not as 2019-03-14: ``DD.MM.YYYY``, ``M/D/YYYY``
            (one digit or two), ``YYYYMMDD``.
        sheet: which sheet of an Excel file; needed where it has several.

    Raises:
        SchemaError: no table is written like this.

    >>> SourceFormat(decimal=",", thousands=".", currency="€").plain("1.234.567,89 €")
    '1234567.89'
    >>> SourceFormat(decimal=",", thousands=".").plain("1.23") is None
    True
    """

    separator: str = _key(",", "What separates the cells of a CSV file, such as ';' or tab.")
    encoding: str = _key("utf-8", "The encoding of a CSV file, such as windows-1252.")
    decimal: str = _key(".", "What stands before decimals: a point or a comma.")
    thousands: str = _key("", "What stands between thousands: comma, point, space, apostrophe.")
    currency: str = _key("", "What may stand before or after a number, such as '$' or EUR.")
    dates: str = _key("", "How dates are written, such as DD.MM.YYYY or M/D/YYYY.")
    sheet: str = _key("", "Which sheet of an Excel file.")

    def __post_init__(self) -> None:
        for name, value in self._items():
            if not isinstance(value, str):
                raise SchemaError(f"[source] {name} must be a text, not {value!r}")
        marks = {
            "separator": _separator(self.separator),
            "encoding": _encoding(self.encoding),
            "decimal": _mark("decimal", self.decimal, _DECIMALS),
            "thousands": self.thousands and _mark("thousands", self.thousands, _THOUSANDS),
        }
        for name, mark in marks.items():
            object.__setattr__(self, name, mark)
        if self.decimal == self.thousands:
            raise SchemaError(
                f"[source] decimal and thousands are both {self.decimal!r}; a mark is one or the "
                "other"
            )
        _check_currency(self.currency)
        object.__setattr__(self, "dates", _dates(self.dates))
        if not is_printable(self.sheet):
            raise SchemaError("[source] sheet must be the name of a sheet, in printable characters")

    @classmethod
    def options(cls) -> Iterator[tuple[str, str]]:
        """Yield each key, and what it says to a person who has a flag to set."""
        for one in fields(cls):
            yield one.name, one.metadata["help"]

    def _items(self) -> Iterator[tuple[str, Any]]:
        for one in fields(self):
            yield one.name, getattr(self, one.name)

    def to_dict(self) -> dict[str, str]:
        """Return what is not as usual, as a schema file has it."""
        usual = {one.name: one.default for one in fields(self)}
        return {name: value for name, value in self._items() if value != usual[name]}

    @property
    def usual_numbers(self) -> bool:
        """Whether numbers are written as Python writes them."""
        return (self.decimal, self.thousands, self.currency) == (".", "", "")

    @cached_property
    def number(self) -> str:
        """What a number matches as a whole, as a regular expression that every engine reads.

        It has no backslash, which some engines read twice. Thousands are in groups of three or not
        marked at all: under a decimal comma "1.23" is a misprint, not 123.
        """
        blank, digits = f"[{BLANKS}]*", "[0-9]+"
        sign = f"(?:{_literal(self.currency)})?" if self.currency else ""
        if self.thousands:
            digits += f"|[0-9]{{1,3}}(?:[{THOUSANDS[self.thousands]}][0-9]{{3}})+"
        point = f"[{self.decimal}]"
        return (
            f"{blank}(?:[-+]?{blank}{sign}|{sign}{blank}[-+]?){blank}"
            f"(?:(?:{digits})(?:{point}[0-9]*)?|{point}[0-9]+)(?:[eE][-+]?[0-9]+)?"
            f"{blank}{sign}{blank}"
        )

    @cached_property
    def rewriting(self) -> tuple[tuple[str, str], ...]:
        """What to replace by what, in this order, so that a number is as Python writes it."""
        gone = dict.fromkeys([*THOUSANDS.get(self.thousands, ""), *BLANKS])
        currency = [(self.currency, "")] if self.currency else []  # first: it may hold a point
        decimal = [(self.decimal, ".")] if self.decimal != "." else []
        return (*currency, *((mark, "") for mark in gone), *decimal)

    def plain(self, text: str) -> str | None:
        """Return a number as Python writes it, or nothing where a text is none."""
        if not re.fullmatch(self.number, text):
            return None
        for old, new in self.rewriting:
            text = text.replace(old, new)
        return text


def _literal(text: str) -> str:
    """Write a currency as a part of a regular expression."""
    return "".join(f"[{one}]" if one in "$./" else one for one in text)


def _mark(key: str, given: str, names: Mapping[str, str]) -> str:
    """Return the mark that a text is, or names."""
    for name, mark in names.items():
        if given == name or (len(given) == 1 and given in (mark, *THOUSANDS.get(mark, ""))):
            return mark
    raise SchemaError(
        f"[source] {key} must be one of {' '.join(filter(str.strip, names.values()))} or a word: "
        f"{', '.join(names)}; not {given!r}{did_you_mean(given, names)}"
    )


def _separator(given: str) -> str:
    mark = {**SEPARATORS, "\\t": "\t"}.get(given, given)
    if len(mark) == 1 and mark.isascii() and not mark.isalnum() and mark not in '"\r\n\0':
        return mark
    raise SchemaError(
        '[source] separator must be one character, such as ";", that is no letter, digit or '
        f"quote, or a word: {', '.join(SEPARATORS)}; not {given!r}{did_you_mean(given, SEPARATORS)}"
    )


def _encoding(given: str) -> str:
    """Return an encoding by the one name that Python has for it: fingerprints depend on it."""
    try:
        "a".encode(given)  # not what Python turns texts into texts with
        name = codecs.lookup(given).name
    except (LookupError, ValueError):  # ValueError: a name that no file can have
        raise SchemaError(
            f"[source] encoding {given!r} is not known{did_you_mean(given, _ENCODINGS)}; for "
            f"example: {', '.join(_ENCODINGS)}"
        ) from None
    return "utf-8" if name == "utf-8-sig" else name


def _dates(given: str) -> str:
    """Return a format of days by its one name: fingerprints depend on it."""
    format_ = given.upper()
    if format_:
        shapes(format_)
    return "" if format_ == "YYYY-MM-DD" else format_


def _check_currency(given: str) -> None:
    kinds = {"Sc", "Lu", "Ll", "Lo"}  # signs of money, and letters
    allowed = all(unicodedata.category(one) in kinds or one in "./" for one in given)
    spoken = any(one not in "./" for one in given) and given not in ("e", "E")
    if given and not (allowed and spoken):
        raise SchemaError(
            f'[source] currency must be a sign or a word, such as "$" or "EUR", not {given!r}'
        )
