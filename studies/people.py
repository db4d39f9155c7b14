"""What it costs to protect people and not rows: utility and exposure, side by side. NOT PRIVATE.

The table is made here: the shape of the paper's salary table, one row for each person and year,
heavy-tailed careers of up to eight years. The same rows are released under a schema that protects
each row by itself, and under one that protects people with up to eight rows. Utility is what the
draw gives on average, computed and not drawn; exposure is the exact audit, without newcomers.

    python -m studies.people
"""

from __future__ import annotations

import argparse
import time

import numpy as np
import pyarrow as pa

import pcor
from pcor.audit.tradeoff import LINES, random_outliers, tradeoff
from studies.tables import EMPLOYERS, TITLES, YEARS, careers

EPSILONS = ("0.05", "0.2")
AUDITED_AT = "0.2"


def schema(**unit: object) -> pcor.Schema:
    """Return the schema of the careers, with the unit that is protected."""
    attributes = {
        "job_title": list(range(TITLES)),
        "employer": list(range(EMPLOYERS)),
        "year": list(range(2006, 2006 + YEARS)),
    }
    return pcor.Schema(metric="salary", attributes=attributes, **unit)  # type: ignore[arg-type]


def tables(rows: pa.Table) -> dict[str, pcor.Table]:
    """Return the rows under both units."""
    return {
        "row": pcor.Table(rows, schema()),
        "person": pcor.Table(rows, schema(person="employee", rows_per_person=YEARS)),
    }


def careers_line(rows: pa.Table) -> str:
    """Say how long careers are."""
    lengths = np.bincount(np.unique(rows["employee"].to_numpy(), return_counts=True)[1])
    counts = ", ".join(f"{number:,} with {years}" for years, number in enumerate(lengths) if number)
    return f"{rows.num_rows:,} rows of {int(lengths.sum()):,} people: {counts}"


def print_utilities(sides: dict[str, pcor.Table], records: list[int | str]) -> None:
    """Print the mean utility of direct for each unit and epsilon."""
    print(f"\nDirect, LOF, {len(records)} random outliers, mean utility and its interval")
    print("| epsilon | row | person | person over row |\n| --- | --- | --- | --- |")
    points = {
        unit: tradeoff(table, records, detector="lof", epsilons=EPSILONS, lines=LINES[:1])
        for unit, table in sides.items()
    }
    for row, person in zip(points["row"], points["person"], strict=True):
        cells = [f"{one.utility:.5f} ({one.low:.5f} to {one.high:.5f})" for one in (row, person)]
        print(f"| {row.epsilon:g} | {' | '.join(cells)} | {person.utility / row.utility:.5f} |")


def owners(rows: pa.Table, found: pcor.audit.Exposure, delta: float) -> int:
    """Return how many people have an exposed row, or are exposed themselves, above a delta."""
    if found.by_person:
        return found.facing(delta) if delta else found.exposed_people
    exposed = {(*one.values.values(), one.metric) for one in found.exposed if one.delta >= delta}
    columns = [rows[name].to_pylist() for name in ("job_title", "employer", "year", "salary")]
    whose = zip(rows["employee"].to_pylist(), zip(*columns, strict=True), strict=True)
    return len({employee for employee, row in whose if row in exposed})


def print_exposures(rows: pa.Table, sides: dict[str, pcor.Table], records: list[int | str]) -> None:
    """Print who is exposed for each record, by unit."""
    print(f"\nExposed at epsilon {AUDITED_AT}, direct, LOF, no newcomers")
    print("| record | unit | looked at | exposed | of people | above 1e-6 | of people | seconds |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for number, record in enumerate(records, start=1):
        for unit, table in sides.items():
            begun = time.perf_counter()
            found = pcor.audit.exposure(
                table, record, AUDITED_AT, detector="lof", search="direct", insert=[]
            )
            seconds = time.perf_counter() - begun
            print(
                f"| {number} | {unit} | {found.people:,} | {found.exposed_people:,} | "
                f"{owners(rows, found, 0):,} | {found.facing(1e-6):,} | "
                f"{owners(rows, found, 1e-6):,} | {seconds:.0f} |",
                flush=True,
            )


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=20, help="for utility")
    parser.add_argument("--audited", type=int, default=4, help="for exposure")
    given = parser.parse_args()
    rows = careers()
    print(careers_line(rows))
    sides = tables(rows)
    records = random_outliers(sides["row"], "lof", given.records, seed=5)
    print_utilities(sides, records)
    print_exposures(rows, sides, records[: given.audited])


if __name__ == "__main__":
    main()
