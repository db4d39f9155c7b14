"""Small tables of people with several rows, and the tables that differ from them by one person.

The queried record V is row 0 and is in every table: it is public. Neighbours come by removing all
rows of another person, or all other rows of V's own; and by adding a person with 1 up to the
declared number of rows, or as many as V's own person has left.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

import pcor
from tests.helpers.neighbours import Small

BOUND = 3
ATTRIBUTES = {"job": ["a", "b", "c"], "city": ["x", "y"]}

# job, city, pay, who
PersonRow = tuple[str, str, float, str]

# Where V is an outlier: among a in x, among a in both cities, among a and b in x; b in y has many
# as high. Few rows are in y, many in x.
BULK: list[PersonRow] = [
    ("a", "x", 40.0, "V"),
    *[("a", "x", float(pay), f"A{pay}") for pay in range(4)],
    *[("a", "y", float(pay), f"Y{pay}") for pay in range(3)],
    *[("b", "x", 1.0 + place % 5, f"B{place}") for place in range(70)],
    *[("b", "y", 40.0, f"H{place}") for place in range(40)],
    *[("c", "x", 40.0, f"C{place}") for place in range(80)],
    *[("c", "y", 40.0, f"C{place}") for place in range(80)],
]


def declared(over: str = "error", most: int = BOUND) -> pcor.Schema:
    """Return the schema of the small tables with a person in it."""
    return pcor.Schema(
        metric="pay",
        attributes=ATTRIBUTES,
        id="id",
        person="who",
        rows_per_person=most,
        over=over,
    )


def encoded(rows: list[PersonRow], schema: pcor.Schema) -> pcor.Table:
    """Encode rows; the id is the position, V is 0."""
    job, city, pay, who = (list(column) for column in zip(*rows, strict=True))
    columns = {"id": list(range(len(rows))), "job": job, "city": city, "pay": pay, "who": who}
    return pcor.Table(pa.table(columns), schema)


def small_of_people(rows: list[PersonRow], detector: pcor.Detector, schema: pcor.Schema) -> Small:
    """Encode rows, and find COE."""
    table = encoded(rows, schema)
    return Small(table, frozenset(pcor.matching_contexts(table, 0, detector).contexts))


def removals(rows: list[PersonRow]) -> Iterator[list[PersonRow]]:
    """Yield every table without all rows of one person; of V's own, without all others."""
    for who in sorted({row[3] for row in rows}):
        left = [rows[0], *[row for row in rows[1:] if row[3] != who]]
        if len(left) < len(rows):
            yield left


def arrivals(rows: list[PersonRow], bound: int = BOUND) -> Iterator[list[PersonRow]]:
    """Yield tables with a person more, in one cell or in two, and with more of V's own person."""
    pays = sorted({row[2] for row in rows})
    pays = [pays[0], pays[len(pays) // 2], pays[-1]]
    cells = [(job, city) for job in ATTRIBUTES["job"] for city in ATTRIBUTES["city"]]
    own = rows[0][3]
    left = bound - sum(row[3] == own for row in rows)
    for place, cell in enumerate(cells):
        other = cells[(place + 3) % len(cells)]
        for pay in pays:
            for count in range(1, bound + 1):
                yield [*rows, *[(*cell, pay, "new")] * count]
            if bound > 1:
                yield [*rows, *[(*cell, pay, "new")] * (bound - 1), (*other, pays[0], "new")]
            if left > 0:
                yield [*rows, *[(*cell, pay, own)] * left]


def person_neighbours(rows: list[PersonRow]) -> list[list[PersonRow]]:
    """Return all of them."""
    return [*removals(rows), *arrivals(rows)]
