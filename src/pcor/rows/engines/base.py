"""What an engine is: something that holds rows and answers SQL.

Private: the rows, and every answer. An engine's own error messages quote cells, so
``translated_errors`` replaces them. It also tells Ctrl-C from a query that failed.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Protocol

import pyarrow as pa

from pcor.errors import PcorError, SourceError
from pcor.rows.encoding import is_day
from pcor.rows.queries.sql import Dialect

# What else can be the reason, and what helps.
_HINTS = {
    "spark": "; executors may have been lost more often than the cluster makes up for, or the "
    "session has ended: ask again once the cluster is back",
}

KINDS = ("text", "boolean", "integer", "float", "decimal", "date", "other", "nested")


class Engine(Protocol):
    """Rows that stay where they are.

    All answers of an engine must come from one state of the rows. One that cannot promise this has
    ``marks(column)`` besides: whole numbers from 0 to 2^30, as SQL, that stand for what row ``s``
    holds in a column. Every answer then brings the sums of the marks of the rows that it was
    computed from, and one that was computed from other rows is refused.

    One that runs in this process may have ``batches(query)``, which yields an answer in small parts
    as Arrow record batches: encoded rows are then counted here where aggregates would be slow.

    Attributes:
        dialect: how to write SQL for it.
        version: of the engine, for certificates.
        source: what stands after FROM.
        numbered: the same with the 0-based number of each row as ``pcor_row``; ``None`` where rows
            have no order.
        kinds: for each column, which of ``KINDS`` it is; ``date`` if each of its values has a day.
    """

    dialect: Dialect
    version: str
    source: str
    numbered: str | None
    kinds: Mapping[str, str]

    def run(self, query: str) -> pa.Table:
        """Return the answer to a query."""
        ...


def marks_of(engine: Engine, column: str) -> tuple[str, ...]:
    """Return the marks of a column; none where all answers come from one state of the rows."""
    marks = getattr(engine, "marks", None)
    return () if marks is None else tuple(marks(column))


def batches_of(engine: Engine) -> Callable[[str], Iterator[pa.RecordBatch]] | None:
    """Return what hands over the answer to a query in small parts, where an engine has that."""
    return getattr(engine, "batches", None)


def rows_changed() -> SourceError:
    """Say that an answer was computed from other rows than the table was made of."""
    return SourceError(
        "the rows changed since the table was made, so nothing was released; make the table anew, "
        "from rows that stay as they are meanwhile, such as a copy or a version"
    )


def kind_of(arrow: Any) -> str:
    """Return which of ``KINDS`` an Arrow type is."""
    if pa.types.is_dictionary(arrow):
        return kind_of(arrow.value_type)
    tests = {
        "text": (
            pa.types.is_string,
            pa.types.is_large_string,
            pa.types.is_string_view,
            pa.types.is_null,
        ),
        "boolean": (pa.types.is_boolean,),
        "integer": (pa.types.is_integer,),
        "float": (pa.types.is_floating,),
        "decimal": (pa.types.is_decimal,),
        "date": (is_day,),
        "nested": (pa.types.is_nested,),
    }
    for kind, ways in tests.items():
        if any(is_kind(arrow) for is_kind in ways):
            return kind
    return "other"


@contextmanager
def translated_errors(engine: str) -> Iterator[None]:
    """Translate an engine's errors into ours, which quote no cell."""
    try:
        yield
    except PcorError:
        raise
    except Exception as error:
        if _is_interrupt(error):
            raise KeyboardInterrupt from None
        if os.environ.get("PCOR_DEBUG"):
            raise
        raise SourceError(
            f"{engine} could not answer: the rows may have gone or changed, a file may be broken, "
            f"or the memory or space for temporary files may be too small{_HINTS.get(engine, '')}"
        ) from None


def _is_interrupt(error: Exception) -> bool:
    """Tell whether an engine says in its own way that Ctrl-C has ended its query.

    Engines watch for the signal themselves while the main thread waits for them, and what Python
    would have raised is lost.
    """
    if threading.current_thread() is not threading.main_thread():
        return False  # no signal is for it
    duckdb = type(error).__name__ == "InterruptException" or str(error) == "Query interrupted"
    # ADBC; a server that cancels a query because of its own time limit says so.
    status = getattr(getattr(error, "status_code", None), "name", "")
    adbc = status == "CANCELLED" and "timeout" not in str(error)
    return duckdb or adbc or isinstance(error.__cause__, KeyboardInterrupt)
