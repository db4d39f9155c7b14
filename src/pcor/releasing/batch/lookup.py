"""Look up many records at once in rows that lie elsewhere.

Private: everything that is found. An engine goes through its rows once for all keys, where one key
after the other would mean a pass for each. What comes back is one line for each key. It is what
``Table.record`` would have found, and ``Table.record`` still says what it means.
"""

from __future__ import annotations

from collections.abc import Sequence

from pcor.rows.keys import find_several
from pcor.rows.queries.pushdown import KeyedRow
from pcor.rows.table import Table

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
