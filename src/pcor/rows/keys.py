"""Which row does a key name?

Private: the rows. A key is a whole number or a text; a whole number may be given as text, as the
command line does.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pcor.errors import RecordError
from pcor.rows.queries.pushdown import KeyedRow, Pushdown, no_order
from pcor.rows.queries.sql import Cell

_WHOLE = 1 << 63

# Kinds of id columns whose values mean the same here and in an engine; others are asked one by one.
_COMPARED = ("integer", "float", "text")


def check_key(key: object) -> None:
    """Raise if this cannot name a record."""
    if isinstance(key, bool) or not isinstance(key, int | str | np.integer):
        raise RecordError("a record is named by a whole number or a text")


def plain_key(key: object) -> int | str:
    """Return an id as a whole number where it is written like one.

    A CSV file holds text and a Parquet file numbers; "17" and 17 are the same record, "017" is a
    name of its own.
    """
    text = str(int(key)) if isinstance(key, float) and key.is_integer() else str(key)
    try:
        return int(text) if str(int(text)) == text else text
    except ValueError:
        return text


def find_rows(rows: Pushdown, key: int | str) -> list[KeyedRow]:
    """Return the rows of an engine that a key names; more than one only as two of them."""
    check_key(key)
    if rows.schema.id is not None:
        stored = _stored(key, rows.engine.kinds[rows.schema.id])
        return [] if stored is None else rows.find([stored])
    if rows.engine.numbered is None:
        raise RecordError(no_order(rows.engine.dialect.name))
    number = plain_key(key)
    whole = isinstance(number, int) and 0 <= number < _WHOLE
    return rows.row(int(number)) if whole else []


def find_several(rows: Pushdown, keys: Sequence[int | str]) -> dict[int | str, list[KeyedRow]]:
    """Return what ``find_rows`` would for each key, from one pass over the rows.

    A key that is not in the answer has to be asked for by itself.
    """
    kind = None if rows.schema.id is None else rows.engine.kinds[rows.schema.id]
    if kind not in _COMPARED or len(keys) < 2:
        return {}
    found: dict[int | str, list[KeyedRow]] = {key: [] for key in keys}
    stored = [value for key in keys if (value := _stored(key, kind)) is not None]
    for row in rows.find(stored) if stored else ():
        found.setdefault(plain_key(row.key), []).append(row)
    return found


def _stored(key: int | str, kind: str) -> Cell | None:
    """Return a key as an id column of this kind holds it; ``None`` where it cannot."""
    if kind not in ("integer", "float"):
        return str(key)
    number = plain_key(key)
    if not isinstance(number, int):
        return None
    if kind == "integer":
        return number if abs(number) < _WHOLE else None
    return float(number) if float(number) == number else None
