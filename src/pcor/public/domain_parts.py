"""Check the parts of a declared domain: names, words, values, edges, shares.

Public: everything here. Each check returns what is declared as it is kept, or refuses it in one
sentence that names the column.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from datetime import date as Day  # noqa: N812 (as in domain, where a field is called date)
from itertools import pairwise
from typing import Any

from pcor.errors import UNPRINTABLE, SchemaError, is_printable
from pcor.public.dates import read_days

Value = str | int | float | bool
Edge = float | Day


def check_name(what: str, name: object) -> None:
    """Refuse a name that is not a text, or empty, or cannot be printed."""
    if not isinstance(name, str) or not name:
        raise SchemaError(f"{what} must be named by a text that is not empty")
    if not is_printable(name):
        raise SchemaError(f"{what}: the name {name!r} {UNPRINTABLE}")


def check_word(what: str, word: object, *, wanted: bool = False) -> None:
    """Refuse a word of a sentence that is not a text, is empty, or cannot be printed."""
    if word is None and not wanted:
        return
    if not isinstance(word, str) or not word or word != word.strip():
        raise SchemaError(f"{what} must be a text that is not empty, without spaces at its ends")
    if not is_printable(word):
        raise SchemaError(f"{what} {word!r} {UNPRINTABLE}")


def check_order(name: str, given: object) -> None:
    """Refuse a set: the order of a domain counts, and that of a set changes from run to run."""
    if isinstance(given, set | frozenset):
        raise SchemaError(
            f"attribute {name!r}: its domain is a set of values, whose order changes from one run "
            "of Python to the next, and with it the schema's fingerprint; give a list"
        )


def kind_of(values: Sequence[Value]) -> str:
    """Return what values are: one kind for all, or ``"mixed"``."""
    kinds = {type(value) for value in values}
    if kinds == {str}:
        return "text"
    if kinds == {bool}:
        return "boolean"
    if kinds == {int}:
        return "integer"
    return "number" if kinds <= {int, float} else "mixed"


def is_same(one: object, other: object) -> bool:
    """Tell whether two values are equal and of one type: to Python 1, 1.0 and True are equal."""
    return type(one) is type(other) and one == other


def checked_values(name: str, values: Sequence[Value]) -> tuple[Value, ...]:
    """Return the values of a domain, or refuse what is none."""
    if not values:
        raise SchemaError(f"attribute {name!r} has an empty domain; declare its values or edges")
    values = [_python(value) for value in values]
    if kind_of(values) == "mixed" or any(v != v or v in (math.inf, -math.inf) for v in values):
        raise SchemaError(
            f"attribute {name!r}: values must all be text, all finite numbers, or all true/false"
        )
    seen: set[Value] = set()
    for value in values:
        if isinstance(value, str) and not is_printable(value):
            raise SchemaError(f"attribute {name!r}: the value {value!r} {UNPRINTABLE}")
        if value in seen:
            raise SchemaError(f"attribute {name!r}: the value {value!r} is declared twice")
        seen.add(value)
    return tuple(values)


def _python(value: Any) -> Any:
    """Return NumPy's scalars as Python's own, so that they print as numbers and texts."""
    numpy = sys.modules.get("numpy")  # who has such a scalar has imported it
    return value if numpy is None or not isinstance(value, numpy.generic) else value.item()


_OPEN = {"-inf": -math.inf, "inf": math.inf}


def checked_edges(name: str, edges: Sequence[Any]) -> tuple[Edge, ...]:
    """Return the edges of bins, or refuse what are none."""
    # JSON has no infinite numbers: there they are written as texts.
    edges = [_OPEN.get(edge, edge) for edge in map(_python, edges)]
    if any(isinstance(edge, str | Day) for edge in edges):
        return read_days(f"attribute {name!r}", edges)
    if any(isinstance(e, bool) or not isinstance(e, int | float) or e != e for e in edges):
        raise SchemaError(f"attribute {name!r}: edges must be numbers, or dates as 2019-03-14")
    if len(edges) < 2:
        raise SchemaError(f"attribute {name!r}: edges must be at least two numbers")
    try:
        rounded = [float(edge) for edge in edges]  # as the rows are compared with them
    except OverflowError:
        raise SchemaError(f"attribute {name!r}: an edge is too large; inf is allowed") from None
    if any(low >= high for low, high in pairwise(rounded)):
        raise SchemaError(
            f"attribute {name!r}: bins overlap; edges must rise strictly from each to the next"
        )
    return tuple(edges)


def checked_shares(name: str, shares: Sequence[float], count: int) -> tuple[float, ...]:
    """Return the shares of ``count`` values, or refuse what are none."""
    shares = [_python(share) for share in shares]
    if any(isinstance(s, bool) or not isinstance(s, int | float) for s in shares):
        raise SchemaError(f"attribute {name!r}: shares must be numbers")
    if len(shares) != count:
        raise SchemaError(
            f"attribute {name!r}: shares must be one number for each of its {count} values, in "
            f"their order; {len(shares)} are given"
        )
    if not all(0 <= share < math.inf for share in shares) or not 0 < sum(shares) < math.inf:
        raise SchemaError(f"attribute {name!r}: shares must be 0 or more, finite, and not all 0")
    try:
        return tuple(float(share) for share in shares)
    except OverflowError:
        raise SchemaError(f"attribute {name!r}: a share is too large") from None


def bin_labels(edges: Sequence[Edge]) -> list[str]:
    """Write each bin by its edges."""
    last = len(edges) - 2
    return [
        f"[{', '.join(_written(low, high))}{']' if place == last else ')'}"
        for place, (low, high) in enumerate(pairwise(edges))
    ]


def _written(*edges: Edge) -> list[str]:
    """Write the edges of a bin: numbers with six digits, if that is what both of them are."""
    numbers = [edge for edge in edges if not isinstance(edge, Day)]
    if len(numbers) < len(edges):
        return [str(edge) for edge in edges]
    short = all(number == float(f"{number:g}") for number in numbers)
    return [f"{number:g}" if short else repr(number) for number in numbers]
