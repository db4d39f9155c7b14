"""Polars: a LazyFrame, asked in its own engine and streamed.

Private: the rows. A scan reads its files anew for each question, so rows are marked.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from pcor.errors import SourceError
from pcor.rows.engines.base import kind_of, translated_errors
from pcor.rows.queries.sql import POLARS

# Before it, its SQL misreads names in joins, and computes both sides of a CASE.
_OLDEST = (1, 44)


class PolarsEngine:
    """A Polars LazyFrame. ``engine.Engine`` describes the attributes."""

    dialect = POLARS
    source = "pcor_source"
    numbered: str | None = "pcor_numbered"

    def __init__(self, frame: Any) -> None:
        import polars as pl

        self.version = str(pl.__version__)
        if tuple(map(int, re.findall(r"\d+", self.version)[:2])) < _OLDEST:
            raise SourceError(
                f"a lazy frame needs Polars {_OLDEST[0]}.{_OLDEST[1]} or newer, and {self.version} "
                "is installed: update it, or give frame.collect()"
            )
        with translated_errors("polars"):
            schema = frame.collect_schema()
            arrow = pl.DataFrame(schema=schema).to_arrow().schema
        self.kinds: Mapping[str, str] = {field.name: kind_of(field.type) for field in arrow}
        for name in self.kinds:
            if name == "*" or name.startswith("^"):
                raise SourceError(
                    f"Polars reads the column name {name!r} as a pattern; rename that column"
                )
        self._frame, self._salt = frame, secrets.randbits(64)
        # Of each column that is marked: the names of its marks, and what they are.
        self._marked: dict[str, tuple[tuple[str, ...], tuple[Any, ...]]] = {}
        self._frames = pl.SQLContext()
        self._register()

    def _register(self) -> None:
        marked = self._frame.with_columns(
            expression.alias(name)
            for names, parts in self._marked.values()
            for name, expression in zip(names, parts, strict=True)
        )
        self._frames.register("pcor_source", marked)
        self._frames.register("pcor_numbered", marked.with_row_index("pcor_row"))

    def marks(self, column: str) -> tuple[str, ...]:
        """Write the marks of a column: two parts of a hash that nobody can foresee.

        Polars has no hash in its SQL, so they are columns of the frame, computed when asked for.
        """
        import polars as pl

        if column not in self._marked:
            mixed = pl.col(column).hash(self._salt)
            parts = (mixed % (1 << 30), mixed // (1 << 34))
            # No column of the user's can have that name.
            names = tuple(f"pcor_{secrets.token_hex(8)}" for _ in parts)
            self._marked[column] = names, tuple(part.cast(pl.Int64) for part in parts)
            self._register()
        return tuple(f"s.{name}" for name in self._marked[column][0])

    def run(self, query: str) -> pa.Table:
        """Return the answer to a query."""
        return self._frames.execute(query).collect(engine="streaming").to_arrow()
