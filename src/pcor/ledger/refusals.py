"""Refusals: how many are written down one by one, and how the others are counted.

Public: everything here. A refusal costs nothing, so nothing but a rate limit keeps anybody from
asking for it again. Of each analyst and dataset the first ``MOST`` since their account last changed
are entries; after that only those whose number is a power of two, which say that number. So what
refusals take of the disk grows with the logarithm of their number.
"""

from __future__ import annotations

from sqlalchemy import Connection, bindparam, delete, insert, select

from pcor.ledger import tables

_COLUMNS = tables.refusals.c
_OF_DATASET = _COLUMNS.dataset == bindparam("dataset")
_OF_ANALYST = _COLUMNS.analyst == bindparam("analyst")
_ALL = delete(tables.refusals).where(_OF_DATASET)
_ONE = _ALL.where(_OF_ANALYST)
_COUNT = select(_COLUMNS.refused).where(_OF_DATASET, _OF_ANALYST)

# This many refusals of an analyst and dataset are entries of their own; the rest are counted.
MOST = 16


def is_written(count: int) -> bool:
    """Whether the refusal of this number is an entry.

    >>> [count for count in range(1, 100) if is_written(count)][-4:]
    [15, 16, 32, 64]
    """
    return count <= MOST or count & (count - 1) == 0


def read_refusals(connection: Connection, dataset: str, analyst: str) -> int:
    """Return how many refusals there were since the account last changed."""
    place = {"dataset": dataset, "analyst": analyst}
    return connection.execute(_COUNT, place).scalar_one_or_none() or 0


def count_refusal(connection: Connection, dataset: str, analyst: str) -> int:
    """Count a refusal; return its number. The caller holds the ledger's lock."""
    count = read_refusals(connection, dataset, analyst) + 1
    forget_refusals(connection, dataset, analyst)
    new = {"dataset": dataset, "analyst": analyst, "refused": count}
    connection.execute(insert(tables.refusals).values(new))
    return count


def forget_refusals(connection: Connection, dataset: str, analyst: str | None = None) -> None:
    """Count from one again: an account has changed, that of an analyst or that of all."""
    chosen = _ALL if analyst is None else _ONE
    connection.execute(chosen, {"dataset": dataset, "analyst": analyst})
