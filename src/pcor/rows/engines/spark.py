"""Spark: a DataFrame of the user's session, classic or Connect, or files by a local session.

Private: the rows, which stay on the executors; what comes to the driver is as small as from any
other engine. Everything is Spark SQL: no Python runs on the executors. Aggregates are formed on
each partition before anything is exchanged, so a cell that holds most rows is no hot spot. Nothing
is cached here: each query reads the frame anew, from what the user cached of it if that is there.
Rows may change between two queries, and lost ones are read again, so they are marked.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from pcor.errors import SourceError
from pcor.rows.engines.base import translated_errors
from pcor.rows.queries.sql import SPARK

_KINDS = {
    "string": "text",
    "char": "text",
    "varchar": "text",
    "boolean": "boolean",
    "tinyint": "integer",
    "smallint": "integer",
    "int": "integer",
    "bigint": "integer",
    "float": "float",
    "double": "float",
    "decimal": "decimal",
    "date": "date",
    "timestamp": "date",  # it has no zone of its own: its day is the one that the session shows
    "timestamp_ntz": "date",
    "array": "nested",
    "map": "nested",
    "struct": "nested",
    "void": "text",
}


class SparkEngine:
    """A Spark DataFrame. ``engine.Engine`` describes the attributes."""

    dialect = SPARK
    numbered: str | None = None  # rows have no order

    def __init__(self, frame: Any) -> None:
        # Spark reads the frame of a query through a view that it drops, and with a view goes what
        # is cached of just that frame. Of this one nothing is cached, but of the user's in it.
        self._frame, self._session = frame.where("true"), frame.sparkSession
        # No text of the user's can be mistaken for it.
        self.source = f"pcor_{secrets.token_hex(8)}"
        self._salt = secrets.randbits(63)
        with translated_errors("spark"):
            self.version = str(self._session.version)
            self.kinds: Mapping[str, str] = {
                name: _KINDS.get(re.split(r"\W", kind)[0], "other") for name, kind in frame.dtypes
            }

    def marks(self, column: str) -> tuple[str, ...]:
        """Write the marks of a column: two parts of a hash that nobody can foresee."""
        mixed = f"xxhash64({self._salt}L, s.{self.dialect.column(column)})"
        return f"({mixed} & {(1 << 30) - 1}L)", f"shiftrightunsigned({mixed}, 34)"

    def run(self, query: str) -> pa.Table:
        """Return the answer to a query."""
        escaped = query.replace("{", "{{").replace("}", "}}").replace(self.source, "{source}")
        answer = self._session.sql(escaped, source=self._frame)
        if hasattr(answer, "toArrow"):
            return answer.toArrow()
        rows = answer.collect()  # before Spark 4
        return pa.table({name: [row[name] for row in rows] for name in answer.columns})


def local_session(*, threads: int | None = None, memory: str = "2g") -> Any:
    """Return the Spark session that is running, or start one on this machine.

    A session that is started listens to this machine only and has no web page.
    """
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        raise SourceError("Spark is not installed: pip install 'pcor[spark]'") from None
    settings = {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": memory,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.adaptive.enabled": "true",
    }
    active = SparkSession.getActiveSession()
    if active is not None:
        return active
    builder = SparkSession.builder.appName("pcor").master(f"local[{threads or '*'}]")
    for key, value in settings.items():
        builder = builder.config(key, value)
    with translated_errors("spark"):
        return builder.getOrCreate()
