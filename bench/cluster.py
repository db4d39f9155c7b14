"""``python -m bench.cluster``: Spark with two executors in processes of their own, on this machine.

``ROWS [MEMORY [ROUNDS]]``
    A LOF release against Spark's own GROUP BY of the same columns, in turns and both warm, asked by
    the driver and through Spark Connect; once with rows spread evenly, once with nine in ten of one
    cell in one file. Each process of Spark has so many megabytes, 2048 if not said;
    the median of so many rounds, 5 if not said.
Generated files are removed afterwards. Two cores are assumed: a figure is a ratio, not a time.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import duckdb

import pcor
from bench.engines import GROUPS, SCHEMA, generate, outlier, seconds
from pcor.errors import NoValidContext
from tests.helpers import cluster
from tests.helpers.cluster import Driver, session

SKEW = (
    "COPY (SELECT id, CASE WHEN id % 10 < 9 THEN 'product 1' ELSE product END AS product, "
    "CASE WHEN id % 10 < 9 THEN 'channel 1' ELSE channel END AS channel, "
    "CASE WHEN id % 10 < 9 THEN 2019 ELSE year END AS year, amount, "
    "CASE WHEN id % 10 < 9 THEN 'region 1' ELSE region END AS region "
    "FROM '{even}/**/*.parquet') "
    "TO '{skewed}' (FORMAT parquet, PARTITION_BY (region))"
)


def skew(even: Path, skewed: Path) -> None:
    """Write the same rows again, nine in ten of them in one cell and in one part of the table."""
    with duckdb.connect(config={"memory_limit": "3GB", "threads": 2}) as connection:
        connection.execute(SKEW.format(even=even, skewed=skewed))


# -- in the process of a driver --------------------------------------------------------------------


def in_turns(folder: str, key: int, rounds: int) -> dict[str, Any]:
    """Return the median ratio of a release to a GROUP BY, and what came back."""
    frame = session().read.parquet(folder)
    frame.createOrReplaceTempView("rows")
    query = f"SELECT {GROUPS}, count(*), sum(amount) FROM rows GROUP BY {GROUPS}"  # noqa: S608
    tables: list[pcor.Table] = []

    def released() -> None:
        tables.append(pcor.Table(frame, SCHEMA))
        with suppress(NoValidContext):  # it reads the same rows, whatever they say
            pcor.release(tables[-1], key, 0.2, "lof")

    def group_by() -> None:
        session().sql(query).collect()

    group_by()
    released()
    ratios = []
    for _ in range(rounds):
        before, ours, after = (seconds(action) for action in (group_by, released, group_by))
        ratios.append(2 * ours / (before + after))
    return {
        "ratio": round(statistics.median(ratios), 2),
        "ratios": [round(ratio, 2) for ratio in ratios],
        "bytes": tables[-1].bytes_returned,
    }


# -- here ------------------------------------------------------------------------------------------


def speed(rows: int, memory: int, rounds: int) -> dict[str, Any]:
    """Compare releases with Spark's GROUP BY."""

    def measure(folder: Path, both: dict[str, Driver]) -> dict[str, Any]:
        even, skewed = folder / "even", folder / "skewed"
        generate(even, rows)
        skew(even, skewed)
        return {
            f"{kind}, {how}": driver.run(in_turns, str(place), outlier(even), rounds)
            for kind, place in (("even", even), ("skewed", skewed))
            for how, driver in both.items()
        }

    return on_a_cluster(measure, memory)


def on_a_cluster(measure: Callable[[Path, dict[str, Driver]], Any], memory: int) -> dict[str, Any]:
    """Measure something on a cluster, by its driver and through Connect."""
    with tempfile.TemporaryDirectory(prefix="pcor-bench-") as name:
        folder = Path(name)
        (folder / "cluster").mkdir()
        with (
            cluster.cluster(folder / "cluster", memory=memory, quick=False) as own,
            cluster.connected(own) as client,
        ):
            found: dict[str, Any] = measure(folder, {"driver": own, "connect": client})
    return found


def main(words: list[str]) -> dict[str, Any]:
    """Do what the command says."""
    if not 1 <= len(words) <= 3:
        raise SystemExit(__doc__)
    rows, memory, rounds = (int(w) for w in (*words, *("", "2048", "5")[len(words) :]))
    return speed(rows, memory, rounds)


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1:]), indent=1))
