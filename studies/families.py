"""What families change, on four tables. NOT PRIVATE: seeded, it reads rows; for the results page.

For each table and family: how many of some random rows are outliers in some context; and for
records that are outliers in every family, what the sentence names, how many rows its context keeps
of the largest valid context of the widest family, how many people a release exposes, and the time.

    PCOR_DATA=... python -m studies.families > families.jsonl
    PCOR_DATA=... python -m studies.families --tables ontario_salaries --rows 400
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import compute, parquet

import pcor
from pcor.audit.calibration import calibrate, families
from pcor.audit.neighbours import removals
from pcor.errors import NoValidContext, TooLarge
from pcor.search.validity import Validity
from pcor.testing import seeded
from studies.tables import CENSUS_SIZES, census

EPSILON = "0.2"

# Two of the paper's, one with many values, and a census that nobody took.
TABLES = ("salary_51k", "homicide_110k", "ontario_salaries", "census")


def read(name: str, folder: Path) -> pcor.Table:
    """Return one of the tables."""
    if name == "ontario_salaries":
        return ontario(parquet.read_table(folder / f"{name}.parquet"))
    if name == "census":
        # One has an order, like ages; the others are names, like jobs.
        attributes: dict[str, Any] = {
            f"a{n}": [code if n == 0 else str(code) for code in range(size)]
            for n, size in enumerate(CENSUS_SIZES)
        }
        return pcor.Table(census(), pcor.Schema(metric="hours", attributes=attributes))
    schema = pcor.Schema.from_file(folder / f"{name}.toml")
    return pcor.Table(folder / f"{name}.parquet", schema)


def ontario(rows: pa.Table) -> pcor.Table:
    """Return the disclosed salaries with sectors, the commonest employers and jobs, and years."""
    attributes: dict[str, Any] = {"sector": sorted(compute.unique(rows["sector"]).to_pylist())}
    for name in ("employer", "job_title"):
        counted = compute.value_counts(rows[name]).to_pylist()
        common = sorted(counted, key=lambda one: (-one["counts"], one["values"]))[:39]
        values = [*(one["values"] for one in common), "elsewhere"]
        attributes[name] = {"values": values, "other": "elsewhere"}
    attributes["year"] = list(range(1996, 2014))
    return pcor.Table(rows, pcor.Schema(metric="salary", attributes=attributes))


def released(table: pcor.Table, record: int, detector: str) -> tuple[pcor.Context, float] | None:
    """Return the context of a release and its seconds of CPU; nothing where there is none."""
    start = time.process_time()
    try:
        found = pcor.release(table, record, EPSILON, detector, chooser=seeded(record))
    except NoValidContext:
        return None
    return found.context, time.process_time() - start


def exposed(table: pcor.Table, record: int, detector: str) -> int | None:
    """Return how many people a release exposes; nothing where that takes too long."""
    try:
        found = removals(Validity(table, table.record(record), pcor.get_detector(detector)))
    except TooLarge:
        return None
    return sum(one.rows for one in found)


def measured(table: pcor.Table, detector: str, rows: int, records: int) -> Iterator[dict[str, Any]]:
    """Yield a row for each family that can be drawn from directly."""
    shares = {p.family: p for p in calibrate(table, rows, detector, exposed=0).points[::-1]}
    every = families(table.schema)
    kinds = {name: table.in_family(schema) for name, schema in every if name in shares}
    smallest = list(kinds.values())[-1]
    numbers = random.Random(0)  # noqa: S311 (which records to look at)
    chosen: list[int] = []
    for record in numbers.sample(range(len(table.rows.metric)), 3000):
        if len(chosen) < records and released(smallest, record, detector) is not None:
            chosen.append(record)
    largest: dict[int, int] = {}
    for name, one in kinds.items():
        answers = {record: released(one, record, detector) for record in chosen}
        found = {record: answer for record, answer in answers.items() if answer is not None}
        sizes = {r: int(one.populations([context.mask])[0]) for r, (context, _) in found.items()}
        largest = {r: max(size, largest.get(r, 0)) for r, size in sizes.items()}
        people = [n for r in chosen[:5] if (n := exposed(one, r, detector)) is not None]
        yield {
            "family": name,
            "contexts": one.schema.most_contexts,
            "rows": shares[name].rows,
            "stand_out": shares[name].standing_out,
            "records": len(found),
            "named": statistics.mean(context.named for context, _ in found.values()),
            "kept": statistics.mean(sizes[r] / largest[r] for r in sizes),
            "exposed": statistics.mean(people) if people else None,
            "audited": len(people),
            "seconds": statistics.median(seconds for _, seconds in found.values()),
        }


def main() -> None:
    """Measure, and print one JSON object for each table and family."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--tables", nargs="+", choices=TABLES, default=TABLES)
    parser.add_argument("--rows", type=int, default=100, help="random rows that may stand out")
    parser.add_argument("--records", type=int, default=20, help="outliers that are released")
    options = parser.parse_args()
    for name in options.tables:
        table = read(name, Path(os.environ["PCOR_DATA"]))
        for row in measured(table, "lof", options.rows, options.records):
            print(json.dumps({"table": name, **row}), flush=True)


if __name__ == "__main__":
    main()
