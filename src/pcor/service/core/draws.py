"""Draws: one paid question about one file, answered.

Private: the rows, the time that an answer takes. A draw is a function of what is asked and of
chance alone: it knows no ledger, no key and no clock, so it can be made in any process. Whoever has
it made holds the claim, stores the answer and decides when it is seen (``worker``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from pcor.errors import NoValidContext, RecordError
from pcor.mechanism.selection import SystemRandomSource
from pcor.releasing.answers import Outcome, answer_from
from pcor.releasing.plan import Plan
from pcor.releasing.run import read_and_draw
from pcor.service.core.sources import Tables

# Said of a record that is an outlier nowhere, and of one that is not in the table.
NONE = (
    "no context was found in which the record is an outlier by the detector of this dataset; a "
    "record that is not in the table gets the same answer, so check that it was not mistyped"
)


@dataclass(frozen=True)
class Draw:
    """What is to be drawn.

    Attributes:
        source: the file, relative to the data folder.
        file_fingerprint: by which the file is known again.
        plan: what was settled when it was asked, with the schema of the table.
        record: the queried record.
    """

    source: str
    file_fingerprint: str
    plan: Plan
    record: int | str


class Draws(Protocol):
    """Where draws are made: in threads of this process, or in processes of their own."""

    def start(self) -> None:
        """Get ready, so that the first draw need not wait."""
        ...

    def draw(self, asked: Draw) -> Outcome:
        """Draw; a source that fails, or is another, raises and is no answer."""
        ...

    def close(self) -> None:
        """End what still runs."""
        ...


class InProcessDraws:
    """Draws in the thread that asks.

    Args:
        tables: the rows.
    """

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    def start(self) -> None:
        """Nothing to start."""

    def draw(self, asked: Draw) -> Outcome:
        """Draw now."""
        return make_draw(self._tables, asked)

    def close(self) -> None:
        """Nothing to end: draws run in the caller's thread."""


def make_draw(tables: Tables, asked: Draw) -> Outcome:
    """Return the release, or the error that is its answer."""
    table = tables.get(asked.source, asked.file_fingerprint, asked.plan.schema)
    outcome = answer_from(
        lambda: read_and_draw(asked.plan, table, asked.record, SystemRandomSource())
    )
    if isinstance(outcome, RecordError | NoValidContext):
        # The same words for both, whatever the search says: who is in the table is private.
        return NoValidContext(NONE)
    return outcome
