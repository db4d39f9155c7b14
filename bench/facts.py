"""``python -m bench.facts [ROWS]``: what facts add to the time of a release.

Each figure is the processor time of a release with facts over that without, both measured in this
run and in turns; processor time, because other programs on the machine then do not count. First on
the 51,000 rows of ``bench`` in memory, where the table is there already; then on ROWS rows (2
million by default) in partitioned Parquet through DuckDB, with the table made anew, as one release
from files is.
"""

from __future__ import annotations

import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pcor
from bench.__main__ import Bench, load, random_outliers
from bench.engines import SCHEMA, generate, outlier

FACTS = [None, "count", "rank", "median", "count,rank,median"]
MOST = 1.3
ROUNDS = 3


def seconds(action: Callable[[], object]) -> float:
    """Return the processor time of one call, of all threads together."""
    start = time.process_time()
    action()
    return time.process_time() - start


def with_grid(schema: pcor.Schema, high: float) -> pcor.Schema:
    """Return a schema whose metric has a grid of a thousand steps."""
    declared = schema.to_dict()
    grid = {"low": 0, "high": high, "step": high / 1000}
    return pcor.Schema.from_dict(declared | {"metric": declared["metric"] | grid})


def in_memory(bench: Bench) -> None:
    """Time releases of random outliers from a table in memory."""
    name, rows, schema = load()
    table = pcor.Table(rows, with_grid(schema, 1_000_000))
    records = random_outliers(table, random.Random(0), 10)  # noqa: S311 (which records to time)
    taken: dict[str | None, list[float]] = {facts: [] for facts in FACTS}
    for record in [records[0], *records]:  # the first also compiles
        for facts, times in taken.items():
            times.append(seconds(partial(pcor.release, table, record, 1, facts=facts)))
    report(bench, name, {facts: times[1:] for facts, times in taken.items()})


def through_duckdb(bench: Bench, rows: int) -> None:
    """Time whole releases from files: the table is made anew."""
    schema = with_grid(SCHEMA, 100_000)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "rows"
        generate(folder, rows)
        key = outlier(folder)

        def release(facts: str | None) -> None:
            table = pcor.Table(folder, schema, memory="4GiB")
            pcor.release(table, key, 1, "lof", facts=facts)

        release(None)
        taken: dict[str | None, list[float]] = {facts: [] for facts in FACTS}
        for _ in range(ROUNDS):
            for facts, times in taken.items():
                times.append(seconds(partial(release, facts)))
    report(bench, f"DuckDB, {rows:,} rows", taken)


def report(bench: Bench, where: str, taken: dict[str | None, list[float]]) -> None:
    """Print how long a release takes, and how many times as long with facts."""
    bare = statistics.median(taken[None])
    bench.row(f"{where}: a release without facts", bare * 1e3, "ms")
    for facts, times in taken.items():
        if facts is not None:
            ratio = statistics.median(times) / bare
            bench.row(f"{where}: with {facts}", ratio, f"x, <= {MOST}")


def main() -> None:
    """Measure both."""
    bench = Bench()
    in_memory(bench)
    through_duckdb(bench, int(sys.argv[1]) if len(sys.argv) > 1 else 2_000_000)


if __name__ == "__main__":
    main()
