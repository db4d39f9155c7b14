"""``python -m bench.families``: how fast releases are where the schema allows fewer contexts.

Every figure is a ratio to the refit of that table, measured in the same run (bench.naive).
"""

from __future__ import annotations

import contextlib
import os
import random
import statistics
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import compute, parquet

import pcor
from bench.__main__ import QUICK, Bench, seconds
from bench.naive import Naive
from studies.tables import CENSUS_SIZES, census, wide

RECORDS = 10 if QUICK else 50


def random_records(table: pcor.Table, rows: int, numbers: random.Random) -> Iterator[int]:
    """Yield records, each flagged in a random context of the family: of a random row's."""
    while True:
        space = table.record(numbers.randrange(rows)).space
        mask = space.mask(numbers.randrange(space.size))
        if mask in space:
            flagged = pcor.outliers(table, pcor.Context.from_mask(table.schema, mask))
            if flagged:
                yield int(numbers.choice(flagged))


def refit(naive: Naive, table: pcor.Table, records: list[int], numbers: random.Random) -> float:
    """Return the seconds of one naive verification in a random context of the family."""
    taken = []
    for key in records[:10]:
        record = table.record(key)
        mask = record.space.mask(numbers.randrange(record.space.size))
        taken.append(seconds(partial(naive.verify, "lof", mask, record.value)))
    return statistics.median(taken)


def released(table: pcor.Table, record: int) -> None:
    """Release a context, or find that there is none."""
    with contextlib.suppress(pcor.errors.NoValidContext):
        pcor.release(table, record, 0.2, search="direct")


def direct(bench: Bench, what: str, rows: pa.Table, schema: pcor.Schema, most: int) -> None:
    """Time exact direct releases of random outliers against the refit of that table."""
    table, naive = pcor.Table(rows, schema), Naive(rows, schema)
    numbers = random.Random(0)  # noqa: S311 (which records to time)
    found = random_records(table, rows.num_rows, numbers)
    records = [next(found) for _ in range(RECORDS)]
    released(table, records[0])  # compiled before anything is timed
    unit = refit(naive, table, records, numbers)
    taken = sorted(seconds(partial(released, table, record)) / unit for record in records)
    bench.row(f"{what}: refit", unit * 1e3, "ms")
    bench.row(f"{what}: contexts of a record, at most", schema.most_contexts, "contexts")
    bench.row(f"{what}: direct, median", statistics.median(taken), f"refits, <= {most}")
    bench.row(f"{what}: direct, worst", taken[-1], "refits")


def census_like(bench: Bench) -> None:
    """Seven attributes, one range and otherwise the record's own value or all."""
    attributes: dict[str, Any] = {
        f"a{n}": {"values": list(range(size)), "contexts": "range" if n == 0 else "one"}
        for n, size in enumerate(CENSUS_SIZES)
    }
    direct(bench, "census", census(), pcor.Schema(metric="hours", attributes=attributes), 5)


def many_attributes(bench: Bench) -> None:
    """Twenty attributes of fifty values, of which four may be restricted."""
    attributes = {f"a{n}": {"values": list(range(50)), "contexts": "one"} for n in range(20)}
    schema = pcor.Schema(metric="amount", attributes=attributes, max_clauses=4)
    direct(bench, "20 x 50 values", wide(), schema, 3)


def salaries(bench: Bench, folder: Path) -> None:
    """The complete COE with ranges of years, against that with any set of years."""
    path = folder / "salary_51k.parquet"
    rows, plain = parquet.read_table(path), pcor.Schema.from_file(path.with_suffix(".toml"))
    declared = plain.to_dict()
    declared["attributes"]["year"]["contexts"] = "range"
    ranges = pcor.Schema.from_dict(declared)
    table, narrow = pcor.Table(rows, plain), pcor.Table(rows, ranges)
    numbers = random.Random(0)  # noqa: S311 (which records to time)
    found = random_records(table, rows.num_rows, numbers)
    records = [next(found) for _ in range(5 if QUICK else 15)]
    pcor.matching_contexts(narrow, records[0])
    taken = [
        seconds(partial(pcor.matching_contexts, narrow, r))
        / seconds(partial(pcor.matching_contexts, table, r))
        for r in records
    ]
    what = "salary_51k, year as range"
    bench.row(f"{what}: contexts of a record, at most", ranges.most_contexts, "contexts")
    bench.row(f"{what}: complete COE", statistics.median(taken), "of any set, <= 0.25")


def ontario(bench: Bench, folder: Path) -> None:
    """110 values: sectors, the largest employers and jobs, years; at most three clauses."""
    rows = parquet.read_table(folder / "ontario_salaries.parquet")
    attributes: dict[str, Any] = {}
    for name, count in (("sector", 12), ("employer", 40), ("job_title", 40)):
        common = compute.value_counts(rows[name]).to_pylist()
        largest = sorted(common, key=lambda one: -one["counts"])[: count - 1]
        values = (
            [one["values"] for one in largest]
            if name != "sector"
            else [one["values"] for one in common]
        )
        kept = values if name == "sector" else [*values, "elsewhere"]
        attributes[name] = {"values": kept, "contexts": "one"}
        if name != "sector":
            attributes[name]["other"] = "elsewhere"
    attributes["year"] = {"values": list(range(1996, 2014)), "contexts": "range"}
    schema = pcor.Schema(metric="salary", attributes=attributes, max_clauses=3)
    direct(bench, "ontario_salaries", rows, schema, 3)


def main() -> None:
    """Measure, and print one table."""
    bench = Bench()
    census_like(bench)
    many_attributes(bench)
    folder = os.environ.get("PCOR_DATA")
    if not folder:
        print("PCOR_DATA is not set: the real tables are left out")
        return
    salaries(bench, Path(folder))
    ontario(bench, Path(folder))


if __name__ == "__main__":
    main()
