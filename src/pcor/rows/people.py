"""Whose rows are whose: how many a person has, and which of them are counted.

Private: everything. A schema that declares a person says how many rows one has at most. Somebody
with more is refused, in words that name nobody; or so many of their rows are counted, those that
come first in the order of a public hash of what they hold. So the choice depends on that person's
rows alone, and it is the same in whatever order, and wherever, the rows are.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace
from functools import cache

import numpy as np
from numpy.typing import NDArray

from pcor.errors import SourceError
from pcor.public.schema import Schema
from pcor.rows.encoded_rows import EncodedRows

# What remainders are taken of in the hash that orders the rows of a person. A power of two: Polars
# multiplies by the reciprocal where it is to divide, by which any other number rounds differently,
# and where it does so depends on other rows.
HASH_SIZE = 2**31


def of_people(
    rows: EncodedRows, names: list[object], people: NDArray[np.int32], schema: Schema
) -> EncodedRows:
    """Say whose each row is; refuse a person with too many rows, or leave some of them out.

    Args:
        rows: those that fit the schema.
        names: of people, as they stand in the table.
        people: for each row, the place of its person among the names; past the end for nobody.
        schema: says how many rows a person may have.
    """
    unnamed = [place for place, name in enumerate(names) if name != name]  # not a number
    check_named(schema, nobody=bool(np.isin(people, [len(names), *unnamed]).any()))
    rows = replace(rows, people=people.astype(np.int32, copy=False))
    counts = np.bincount(people)
    if not schema.unit.chooses:
        check_bound(schema, int(counts.max()))
        return rows
    too_many = np.flatnonzero(counts[people] > schema.unit.rows)
    if len(too_many) == 0:
        return rows
    kept = np.ones(len(people), dtype=bool)
    kept[_surplus(rows, people, too_many, schema.unit.rows)] = False
    left_out = rows.taken(np.flatnonzero(~kept))
    return replace(rows.taken(np.flatnonzero(kept)), left_out=left_out)


def _surplus(
    rows: EncodedRows, people: NDArray[np.int32], places: NDArray[np.int64], bound: int
) -> NDArray[np.int64]:
    """Return the places of rows beyond the first ``bound`` of their person.

    Rows of a person that hold the same are the same to every context: it does not matter which of
    them is counted.
    """
    codes, metric = rows.cells[rows.cell[places]], rows.metric[places]
    order = np.lexsort((*_order_keys(codes, metric), people[places]))
    sorted_people = people[places[order]]
    first = np.concatenate([[True], sorted_people[1:] != sorted_people[:-1]])
    number = np.arange(len(order))
    number -= np.maximum.accumulate(np.where(first, number, 0))
    return places[order[number >= bound]]


def in_order(codes: NDArray[np.int64], metric: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the places of some rows of one person, those first that are counted first."""
    return np.lexsort(_order_keys(codes, metric))


def _order_keys(
    codes: NDArray[np.int64], metric: NDArray[np.float64]
) -> tuple[NDArray[np.int64] | NDArray[np.float64], ...]:
    """Return by what the rows of a person are sorted, the last first, as ``lexsort`` wants it."""
    return metric, *codes.T[::-1], row_order(codes, metric)


def row_order(codes: NDArray[np.int64], metric: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the public hash, from 0 to 1, by which the rows of a person are ordered.

    It is a remainder that every engine computes to the last bit: multiplied, added, divided by a
    power of two and rounded down in float64, one after the other. ``queries.Queries`` writes the
    same as SQL.
    """
    mixed = metric * float(hash_factor(0))
    for place, code in enumerate(codes.T, start=1):
        mixed = mixed + code.astype(np.float64) * float(hash_factor(place))
    turns = mixed / float(HASH_SIZE)
    order: NDArray[np.float64] = turns - np.floor(turns)
    return order


@cache
def hash_factor(place: int) -> int:
    """Return the public key: what the metric (0) or an attribute (from 1 on) is multiplied with."""
    digest = hashlib.sha256(f"pcor keep {place}".encode()).digest()
    return int.from_bytes(digest[:4], "big") % (1 << 30) + 1


# The refusals, which are the same wherever the rows are.


def check_named(schema: Schema, *, nobody: bool) -> None:
    """Refuse rows without a person."""
    if nobody:
        raise SourceError(
            f"column {schema.person!r} has a row without a person in it, and whose rows are whose "
            "must be known for all of them; fill it in, or leave such rows out of the table"
        )


def check_bound(schema: Schema, most: int) -> None:
    """Refuse a person with more rows than declared. Nobody is named."""
    if most > schema.unit.rows:
        raise SourceError(
            f"column {schema.person!r} has a person with more rows than rows_per_person = "
            f'{schema.unit.rows:,} allows; declare a larger bound, or over = "keep" under '
            "[dataset] to count only so many rows of each person; `pcor schema check` shows the "
            "owner how many rows people have"
        )


def no_single_person(schema: Schema) -> SourceError:
    """Say that the person column holds lists or the like."""
    return SourceError(f"the person column {schema.person!r} does not hold single values")
