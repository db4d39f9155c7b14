"""Polars: a LazyFrame, asked in its own engine and streamed.

Private: the rows.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from pcor.errors import SourceError
from pcor.sources.engine import asking, kind_of
from pcor.sources.sql import POLARS

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
        with asking("polars"):
            schema = frame.collect_schema()
            arrow = pl.DataFrame(schema=schema).to_arrow().schema
        self.kinds: Mapping[str, str] = {field.name: kind_of(field.type) for field in arrow}
        for name in self.kinds:
            if name == "*" or name.startswith("^"):
                raise SourceError(
                    f"Polars reads the column name {name!r} as a pattern; rename that column"
                )
        self._frames = pl.SQLContext(
            pcor_source=frame, pcor_numbered=frame.with_row_index("pcor_row")
        )

    def run(self, query: str) -> pa.Table:
        """Return the answer to a query."""
        return self._frames.execute(query).collect(engine="streaming").to_arrow()
