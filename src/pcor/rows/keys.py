"""Which row does a key name?

Private: the rows. A key is a whole number or a text; a whole number may be given as text, as the
command line does.
"""

from __future__ import annotations

import numpy as np

from pcor.errors import RecordError
from pcor.rows.queries.pushdown import KeyedRow, Pushdown, no_order

_WHOLE = 1 << 63


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
    engine, column = rows.engine, rows.schema.id
    number = plain_key(key)
    if column is None:
        if engine.numbered is None:
            raise RecordError(no_order(engine.dialect.name))
        whole = isinstance(number, int) and 0 <= number < _WHOLE
        return rows.row(int(number)) if whole else []
    name = "s." + engine.dialect.column(column)
    kind = engine.kinds[column]
    if kind == "integer":
        if not isinstance(number, int) or abs(number) >= _WHOLE:
            return []
        return rows.find(f"{name} = {engine.dialect.literal(number)}")
    if kind == "float":
        if not isinstance(number, int) or float(number) != number:
            return []
        return rows.find(f"{name} = {engine.dialect.literal(float(number))}")
    text = engine.dialect.same_text.format(name)
    return rows.find(f"{text} = {engine.dialect.literal(str(key))}")
