"""Every search on the same records, starts and budgets. NOT PRIVATE: seeded, and it reads rows.

Utility is the population of the drawn context over that of the largest valid one, for random LOF
outliers with any number of valid contexts; a search that comes back with nothing has utility 0.
Starts are drawn uniformly from the valid contexts and given to every search that takes one; what
finding them takes is not counted. Time is a ratio to one naive LOF verification in the same run.

    PCOR_DATA=... python -m studies.searches
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import time
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from pyarrow import parquet

import pcor
from bench.__main__ import random_outliers
from pcor.releasing.run import draw
from pcor.releasing.settings import plan
from pcor.search.base import GraphSearch
from pcor.search.validity import Validity
from studies.split import largest
from studies.widest_first import refit

TABLE = "salary_51k"
EPSILONS = ("0.2", "0.05", "0.01")
DRAWS = 2  # of each record and setting

LINES: dict[str, dict[str, Any]] = {
    "direct": {"search": "direct"},
    "widest_first": {"search": "widest_first"},
    "uniform, 50": {"search": "uniform", "samples": 50},
    "random_walk, 50": {"search": "random_walk", "samples": 50},
    "depth_first, 50": {"search": "depth_first", "samples": 50},
    "breadth_first, 50": {"search": "breadth_first", "samples": 50},
    "breadth_first, 50, delta 1e-6": {
        "search": "breadth_first", "samples": 50, "delta": "1e-6"
    },
    "breadth_first, 50, even split": {"search": pcor.BreadthFirst(samples=50, final_share=0.02)},
    "breadth_first, 50, paper's accounting": {
        "search": "breadth_first", "samples": 50, "accounting": "paper"
    },
}  # fmt: skip


class Measured(NamedTuple):
    """Mean utility and seconds of one record, by line and epsilon."""

    utility: list[list[float]]
    seconds: list[list[float]]


def measure(record: int, table: pcor.Table) -> Measured:
    """Release for one record by every line at every epsilon."""
    numbers = pcor.testing.seeded(record)
    queried = table.record(record)
    validity = Validity(table, queried, pcor.LOF())
    best = largest(validity)
    space = queried.space
    found = numbers.sample(
        space.size, lambda tried: validity([space.mask(i) for i in tried]), wanted=1, cap=10**6
    )
    start = pcor.Context.from_mask(table.schema, space.mask(found[0])) if found else None
    utility, seconds = [], []
    for options in LINES.values():
        rows: tuple[list[float], list[float]] = ([], [])
        for epsilon in EPSILONS:
            planned = plan(table.schema, epsilon, **options)
            takes_start = isinstance(planned.search, GraphSearch)
            if takes_start and start is not None and options["search"] != "widest_first":
                planned = plan(table.schema, epsilon, start=start, **options)
            begun, drawn = time.perf_counter(), []
            for _ in range(DRAWS):
                try:
                    mask = draw(planned, Validity(table, queried, planned.detector), numbers)
                    drawn.append(int(table.populations([mask])[0]) / best)
                except pcor.errors.NoValidContext:
                    drawn.append(0.0)
            rows[0].append(statistics.mean(drawn))
            rows[1].append((time.perf_counter() - begun) / DRAWS)
        utility.append(rows[0])
        seconds.append(rows[1])
    return Measured(utility, seconds)


def main() -> None:
    """Print one table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=100)
    count = parser.parse_args().records
    path = Path(os.environ["PCOR_DATA"]) / f"{TABLE}.parquet"
    rows, schema = parquet.read_table(path), pcor.Schema.from_file(path.with_suffix(".toml"))
    table = pcor.Table(rows, schema)
    records = random_outliers(table, random.Random(0), count)  # noqa: S311 (which records)
    with ProcessPoolExecutor(2) as pool:
        found = list(pool.map(partial(measure, table=table), records, chunksize=1))
    unit = refit(rows, table, records)
    utility = np.array([one.utility for one in found])
    seconds = np.array([one.seconds for one in found])
    print(f"{TABLE}, {count} random LOF outliers, {DRAWS} draws each, a refit {unit * 1e3:.1f} ms")
    print("| search | " + " | ".join(f"epsilon {e}" for e in EPSILONS) + " | refits, median |")
    print("| --- |" + " --- |" * (len(EPSILONS) + 1))
    for number, name in enumerate(LINES):
        cells = []
        for column in range(len(EPSILONS)):
            values = utility[:, number, column]
            half = 1.645 * values.std(ddof=1) / len(values) ** 0.5  # 90 %, normal approximation
            cells.append(f"{values.mean():.4f} ± {half:.4f}")
        taken = np.median(seconds[:, number, 0]) / unit
        print(f"| {name} | " + " | ".join(cells) + f" | {taken:.1f} |")


if __name__ == "__main__":
    main()
