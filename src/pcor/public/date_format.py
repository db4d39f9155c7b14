"""How days are written in texts, where not as 2019-03-14: in which order, with what between.

Public: everything here. A format is written with the letters of its parts: ``DD.MM.YYYY`` has two
digits for the day and the month, ``D.M.YYYY`` one or two. Whatever is written so is first written
anew as 2019-03-14, in SQL and in memory by the same shapes, and then judged as all days are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import product

from pcor.errors import SchemaError

_PARTS = re.compile(r"(YYYY|MM?|DD?)([./ -]?)(YYYY|MM?|DD?)\2(YYYY|MM?|DD?)", re.ASCII)


@dataclass(frozen=True)
class Shape:
    """One way in which a format is written: with as many digits for each part.

    Attributes:
        places: for year, month and day: where the part begins, counted from 1, and its digits.
        marks: where what stands between the parts has to be.
        mark: what stands between the parts.
        length: of the whole; what follows after a blank is a time of day.
    """

    places: tuple[tuple[int, int], ...]
    marks: tuple[int, ...]
    mark: str
    length: int

    @property
    def zeros(self) -> list[str]:
        """What is missing before year, month and day."""
        return ["0" if digits == 1 else "" for _, digits in self.places]

    def sql(self, text: str) -> str:
        """Write when a text has this shape, and what it is then with its day written anew."""
        ends = f"SUBSTR({text}, {self.length + 1}, 1) IN ('', ' ')"
        between = [f"SUBSTR({text}, {place}, 1) = '{self.mark}'" for place in self.marks]
        year, month, day = (f"SUBSTR({text}, {place}, {digits})" for place, digits in self.places)
        _, zero, another = self.zeros
        parts = [
            year,
            f"'-{zero}'",
            month,
            f"'-{another}'",
            day,
            f"SUBSTR({text}, {self.length + 1})",
        ]
        return f"WHEN {' AND '.join([*between, ends])} THEN {' || '.join(parts)}"

    def rewritten(self, text: str) -> str | None:
        """Return a text of this shape with its day written anew."""
        between = all(text[place - 1 : place] == self.mark for place in self.marks)
        if not between or text[self.length : self.length + 1] not in ("", " "):
            return None
        parts = (text[place - 1 : place - 1 + digits] for place, digits in self.places)
        padded = (zero + part for zero, part in zip(self.zeros, parts, strict=True))
        return "-".join(padded) + text[self.length :]


@cache
def shapes(given: str) -> tuple[Shape, ...]:
    """Return the shapes of a format; of several that a text fits, the first is meant.

    Raises:
        SchemaError: it does not say how a day is written.
    """
    found = _PARTS.fullmatch(given)
    first, mark, second, third = found.groups() if found else ("", "", "", "")
    parts = (first, second, third)
    kinds = [part[:1] for part in parts]
    if sorted(kinds) != ["D", "M", "Y"] or (not mark and min(map(len, parts)) == 1):
        raise SchemaError(
            '[source] dates must say how a day is written, such as "DD.MM.YYYY", "M/D/YYYY" (one '
            'digit or two) or "YYYYMMDD": a year has four digits, between the parts stands one of '
            f"./- or a blank, or nothing; not {given!r}"
        )
    return tuple(
        _shapes(kinds, [(len(part),) if len(part) > 1 else (1, 2) for part in parts], mark)
    )


def _shapes(kinds: list[str], digits: list[tuple[int, ...]], mark: str) -> Iterator[Shape]:
    """Yield those with fewer digits first: a text that ends early fits a longer shape, too."""
    for chosen in product(*digits):
        begins = [1 + sum(chosen[:i]) + i * len(mark) for i in range(3)]
        places = dict(zip(kinds, zip(begins, chosen, strict=True), strict=True))
        marks = tuple(begin - 1 for begin in begins[1:] if mark)
        length = sum(chosen) + 2 * len(mark)
        yield Shape((places["Y"], places["M"], places["D"]), marks, mark, length)


def day_sql(text: str, given: str, otherwise: str = "''") -> str:
    """Write a text with its day as 2019-03-14; ``otherwise`` where not written like the format.

    >>> day_sql("t", "YYYYMMDD")[:44]
    "CASE WHEN SUBSTR(t, 9, 1) IN ('', ' ') THEN "
    """
    if not given:
        return text
    return f"CASE {' '.join(shape.sql(text) for shape in shapes(given))} ELSE {otherwise} END"


def day_text(text: str, given: str) -> str:
    """Return a text with its day as 2019-03-14; empty where it is not written like the format.

    >>> day_text("3/14/2019 23:30", "M/D/YYYY")
    '2019-03-14 23:30'
    """
    if not given:
        return text
    found = (shape.rewritten(text) for shape in shapes(given))
    return next((day for day in found if day is not None), "")
