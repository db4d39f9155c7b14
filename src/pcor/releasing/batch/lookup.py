"""Look up many records at once in rows that lie elsewhere.

Private: everything that is found. An engine goes through its rows once for all keys, where one key
after the other would mean a pass for each. What comes back is one line for each key. It is what
``Table.record`` would have found, and ``Table.record`` still says what it means.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pcor.rows.keys import plain_key
from pcor.rows.queries.pushdown import KeyedRow, Pushdown
from pcor.rows.queries.queries import Queries, column
from pcor.rows.table import Table

# Kinds of id columns whose values mean the same here and in an engine; others are asked one by one.
_COMPARED = ("integer", "float", "text")
_LARGEST = {"integer": 1 << 63, "float": 1 << 53}

RecordKey = int | str


class Lookup:
    """The rows that some keys of a table name, found in one pass and remembered. Private.

    Args:
        table: where to look.

    Attributes:
        table: the same table, which asks here what a key names.
    """

    def __init__(self, table: Table) -> None:
        self.table = table.found_by(self.find)
        self._source = table
        self._known: dict[RecordKey, list[KeyedRow]] = {}

    def look_up(self, keys: Sequence[RecordKey]) -> None:
        """Find the rows of several keys in one pass, and forget those found before."""
        pushdown = self._source.pushdown
        self._known = {} if pushdown is None else find_several(pushdown, keys)

    def find(self, key: RecordKey) -> list[KeyedRow]:
        """Return the rows that a key names."""
        # Also what was asked by itself: the draw, which is charged, must not ask again.
        if key not in self._known:
            self._known[key] = self._source.find(key)
        return self._known[key]


def find_several(rows: Pushdown, keys: Sequence[RecordKey]) -> dict[RecordKey, list[KeyedRow]]:
    """Return what each key names: nothing, a row, or two to say that it is more than one.

    A key that is not in the answer has to be asked for by itself.
    """
    kind = None if rows.schema.id is None else rows.engine.kinds[rows.schema.id]
    if kind not in _COMPARED or len(keys) < 2:
        return {}
    found: dict[RecordKey, list[KeyedRow]] = {key: [] for key in keys if _comparable(key, kind)}
    return found | _ask(rows, list(found), kind) if found else {}


def _comparable(key: RecordKey, kind: str) -> bool:
    return kind == "text" or (isinstance(key, int) and abs(key) < _LARGEST[kind])


def _ask(rows: Pushdown, keys: Sequence[RecordKey], kind: str) -> dict[RecordKey, list[KeyedRow]]:
    """Ask for all keys at once: how many rows each has, and what stands in the only one."""
    dialect = rows.engine.dialect
    queries = Queries(rows.engine, rows.schema)
    name = "s." + dialect.column(str(rows.schema.id))
    key = dialect.same_text.format(name) if kind == "text" else name
    wanted = ", ".join(dialect.literal(_as_kind(k, kind)) for k in keys)
    codes = ", ".join(f"MIN({code}) AS {code}" for code in queries.names)
    what = f"k, COUNT(*) AS n, MIN(x) AS x, {codes}"
    answer = queries.ask(
        f"SELECT {what} FROM coded {queries.where()} GROUP BY k",  # noqa: S608 (names of our own)
        *queries.coded(key, where=f"{key} IN ({wanted})"),
    )
    numbers = [column(answer, code, np.int64).tolist() for code in queries.names]
    values = column(answer, "x", np.float64).tolist()
    counts = column(answer, "n", np.int64).tolist()
    found = {}
    for own, value, count, *places in zip(
        answer.column("k").to_pylist(), values, counts, *numbers, strict=True
    ):
        row = KeyedRow(own, float(value), tuple(places))
        found[plain_key(own)] = [row] if count == 1 else [row, row]
    return found


def _as_kind(key: RecordKey, kind: str) -> RecordKey | float:
    if kind == "text":
        return str(key)
    return float(key) if kind == "float" else int(key)
