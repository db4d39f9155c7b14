"""Who can leave a table, and with which rows. For the owner only.

Private: everything here. Where the schema says whose rows are whose, a person leaves with all of
their rows at once; only rows that are queried are public and stay. Where of each person only so
many rows are counted, queried ones that were left out may be counted then (docs/proofs/people.md).
People whose rows hold the same are alike: one of them is tried for all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pcor.audit.changed import Row
from pcor.audit.owner_only import OwnerOnly
from pcor.public.schema import Schema
from pcor.rows.encoded_rows import EncodedRows
from pcor.rows.people import in_order
from pcor.rows.table import Record, Table

# Of newcomers it is looked at those with one row, and those with as many as a person may have, all
# alike; but with no more than this.
MOST_NEW_ROWS = 100


@dataclass(frozen=True, eq=False, repr=False)
class PersonKind(OwnerOnly):
    """People who are alike: the same rows go with each of them, and the same stay.

    Attributes:
        rows: those that go, by rising metric.
        kept: those of theirs that are queried: they stay, or are not counted anyway.
        taken: where the rows of one of these people are among the table's that go.
        people: how many they are.
        come: those of theirs that are queried and counted only when the others went.
        back: where those are among the table's that are left out.
    """

    rows: tuple[Row, ...]
    kept: tuple[Row, ...]
    taken: tuple[int, ...]
    people: int
    come: tuple[Row, ...] = ()
    back: tuple[int, ...] = ()


def kinds_of_people(
    table: Table,
    record: Record,
    *,
    public: Iterable[int | str] = (),
    some: Sequence[int | str] | None = None,
) -> list[PersonKind]:
    """Return everybody who can leave, people alike together, by rising metric.

    Args:
        table: with the record among the rows that are counted.
        record: the queried record, which stays.
        public: the keys of other rows that stay.
        some: the keys of rows of the people to look at, and with them those who are alike; by
            default everybody.
    """
    rows, people, own = _rows_of(table.rows), table.people, table.row_of(record)
    queried = {one.key: one for one in [record, *map(table.record, public)]}.values()
    kept: dict[int, list[_Sortable]] = {}
    for one in queried:
        kept.setdefault(table.person_of(one), []).append(_sortable(table.schema, one))
    found: dict[tuple[tuple[_Sortable, ...], ...], list[tuple[int, ...]]] = {}
    for places in _by_person(people):
        stay = sorted(kept.get(int(people[places[0]]), []))
        after = _counted(stay, table.schema.unit.rows)
        if own in places and rows[own] not in after:
            after.append(rows[own])  # held in addition
        going, come = _difference(rows, sorted(places, key=lambda place: place != own), after)
        if going:
            key = tuple(rows[place] for place in going), tuple(stay), come
            found.setdefault(key, []).append(going)
    wanted = None if some is None else {table.person_of(table.record(key)) for key in some}
    return [
        PersonKind(
            tuple(map(_as_row, going)),
            tuple(map(_as_row, stay)),
            alike[0],
            len(alike),
            tuple(map(_as_row, come)),
            _left_out_places(table.rows.left_out, int(people[alike[0][0]]), come),
        )
        for (going, stay, come), alike in sorted(found.items())
        if wanted is None or any(int(people[taken[0]]) in wanted for taken in alike)
    ]


def newcomer_sizes(table: Table) -> tuple[int, ...]:
    """Return how many rows, all alike, the newcomers have who are looked at; public."""
    return tuple(sorted({1, min(table.schema.unit.rows, MOST_NEW_ROWS)}))


# A row as it is sorted: its metric first.
_Sortable = tuple[float, tuple[int, ...]]


def _as_row(row: _Sortable) -> Row:
    return Row(row[1], row[0])


def _counted(rows: list[_Sortable], bound: int) -> list[_Sortable]:
    """Return those of a person's rows that are counted where there are no others of theirs."""
    if len(rows) <= bound:
        return list(rows)
    order = in_order(np.array([row[1] for row in rows]), np.array([row[0] for row in rows]))
    return [rows[place] for place in order[:bound].tolist()]


def _difference(
    rows: list[_Sortable], places: list[int], after: list[_Sortable]
) -> tuple[tuple[int, ...], tuple[_Sortable, ...]]:
    """Return the places of a person's rows that go, by rising metric, and the rows that come.

    Of rows that hold the same, those stay that are first among the places.
    """
    come, going = Counter(after), []
    for place in places:
        if come[rows[place]]:
            come[rows[place]] -= 1
        else:
            going.append(place)
    going.sort(key=lambda place: (rows[place], place))
    return tuple(going), tuple(sorted(come.elements()))


def _left_out_places(
    left_out: EncodedRows | None, person: int, come: tuple[_Sortable, ...]
) -> tuple[int, ...]:
    """Return where rows of a person are among those left out."""
    if left_out is None or not come:
        return ()
    rows, places = _rows_of(left_out), left_out.of_person(person).tolist()
    return tuple(places.pop([rows[place] for place in places].index(row)) for row in come)


def _rows_of(rows: EncodedRows) -> list[_Sortable]:
    cells = list(map(tuple, rows.cells.tolist()))
    return [
        (value, cells[cell])
        for value, cell in zip(rows.metric.tolist(), rows.cell.tolist(), strict=True)
    ]


def _sortable(schema: Schema, record: Record) -> _Sortable:
    row = Row.of(schema, record.space.fixed, record.value)
    return row.value, row.places


def _by_person(people: NDArray[np.int32]) -> list[list[int]]:
    """Return the places of the rows of each person."""
    order = np.argsort(people, kind="stable")
    starts = np.flatnonzero(np.diff(people[order])) + 1
    return [places.tolist() for places in np.split(order, starts)]
