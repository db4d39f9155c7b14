"""``python -m bench.widest``: releases where no list of contexts is possible, in refits.

A census-like table (46,000 rows, 7 attributes, 53 values, any set of them allowed: 2^46 contexts
of a record), with the search that ``auto`` takes; 1,000 values in 20 attributes, with a tenth of
the rows of the table of bench.families, and outliers of contexts that restrict few of them; and,
where PCOR_DATA is set, the 51,000-row salary table with ``widest_first``. Other records are picked,
and the refit is measured, as in bench.subtrees.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from functools import partial

import pyarrow as pa

import pcor
from bench.__main__ import QUICK, load, random_outliers
from bench.naive import Naive
from bench.subtrees import Refits
from studies.tables import CENSUS_SIZES, census, wide
from studies.widest_first import restricted_outliers

RECORDS, FEW = (5, 2) if QUICK else (50, 10)


Pick = Callable[[pcor.Table, random.Random, int], list[int]]


def releases(
    what: str,
    rows: pa.Table,
    schema: pcor.Schema,
    search: str,
    count: int,
    pick: Pick = random_outliers,
) -> None:
    """Report releases of outliers."""
    table = pcor.Table(rows, schema)
    records = pick(table, random.Random(0), count)  # noqa: S311 (which to time)
    refits = Refits(table, Naive(rows, schema), records[:5])
    name = f"{what}, {schema.most_steps} free values, {len(table.cells.cell_counts):,} cells"
    release = partial(pcor.release, table, epsilon=0.2, search=search)
    refits.report(f"{name}: {search}", [partial(release, record=key) for key in records])


def domain(metric: str, sizes: list[int]) -> pcor.Schema:
    """Return a schema with attributes of so many values, any set of them allowed."""
    attributes = {f"a{n}": list(range(size)) for n, size in enumerate(sizes)}
    return pcor.Schema(metric=metric, attributes=attributes)


def main() -> None:
    """Measure and print."""
    print(f"{len(os.sched_getaffinity(0))} cores")
    releases("census", census(), domain("hours", list(CENSUS_SIZES)), "auto", RECORDS)
    many = wide(rows=20_000)
    releases("1,000 values", many, domain("amount", [50] * 20), "auto", FEW, restricted_outliers)
    if not os.environ.get("PCOR_DATA"):
        print("PCOR_DATA is not set: the salaries are left out")
        return
    name, rows, schema = load()
    releases(name, rows, schema, "widest_first", RECORDS)


if __name__ == "__main__":
    main()
