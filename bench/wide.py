"""``python -m bench.wide``: direct releases where a record has 2^30 contexts, in refits.

A made-up table of eight attributes with 38 values (``studies.tables.many_values``). Records are
picked as in bench.subtrees: a random context, each value in it with chance 1/2, and in it a random
flagged row. The unit is the refit of bench.naive in a random context of a record. Besides, on the
salary table: the memory that a process with one release takes, and how the time of a release grows
with the rows: the same rows a hundred times, with a jitter.
"""

from __future__ import annotations

import random
import resource
import statistics
from functools import partial

import pyarrow as pa

import pcor
from bench.__main__ import QUICK, load, many_times, random_outliers
from bench.naive import Naive
from bench.subtrees import Refits, timed
from pcor.testing import SeededRandomSource
from studies.tables import MANY_SIZES, many_values

RECORDS, ROWS, TIMES, FEW = (5, 20_000, 10, 3) if QUICK else (30, 100_000, 100, 9)


def schema_of() -> pcor.Schema:
    """Return the schema of the table."""
    attributes = {f"a{n}": list(range(size)) for n, size in enumerate(MANY_SIZES)}
    return pcor.Schema(metric="amount", attributes=attributes)


def release(table: pcor.Table, key: int, seed: int) -> None:
    """Release a context of a record."""
    pcor.release(table, key, 0.2, "lof", "direct", chooser=SeededRandomSource(seed))


def peak() -> str:
    """Return the most memory that the process has taken so far."""
    return f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:,.0f} MiB at most so far"


def many_contexts() -> None:
    """Time exact direct releases among 2^30 contexts."""
    rows, schema = many_values(ROWS), schema_of()
    table = pcor.Table(rows, schema)
    records = random_outliers(table, random.Random(0), RECORDS)  # noqa: S311 (which to time)
    refits = Refits(table, Naive(rows, schema), records[:5])
    cells = len(table.cells.cell_counts)
    print(f"{schema.most_contexts:,} contexts of a record, {ROWS:,} rows, {cells:,} cells")
    draws = [partial(release, table, key, seed) for seed, key in enumerate(records)]
    refits.report("direct release, lof", draws)
    print(f"the process: {peak()}")


def growth(name: str, rows: pa.Table, schema: pcor.Schema) -> None:
    """Compare releases with those from the same rows again and again."""
    medians = []
    for large in (rows, many_times(rows, schema.metric.column, TIMES)):
        table = pcor.Table(large, schema)
        numbers = random.Random(0)  # noqa: S311 (which to time)
        # Other ones stand out among more; to find one takes half a minute.
        records = random_outliers(table, numbers, FEW)
        release(table, records[0], 0)
        taken = [timed(partial(release, table, key, n))[1] for n, key in enumerate(records)]
        medians.append(statistics.median(taken))
    print(f"{name}, {TIMES} x the rows: {medians[1] / medians[0]:.2f} x the time of a release")


def main() -> None:
    """Measure and print."""
    name, rows, schema = load()
    table = pcor.Table(rows, schema)
    (record,) = random_outliers(table, random.Random(0), 1)  # noqa: S311 (which to release)
    release(table, record, 0)
    print(f"{name}, one direct release: {peak()}", flush=True)
    many_contexts()
    growth(name, rows, schema)


if __name__ == "__main__":
    main()
