"""How much of the budget the final draw of a steered search should get. NOT PRIVATE.

Measured on the synthetic demo table alone: the default must not be fitted to real ones. Utility is
the population of the drawn context over that of the largest valid one, for random LOF outliers and
starts drawn from the valid contexts; every share is given the same records and seeds.

    python -m studies.split
"""

from __future__ import annotations

import argparse
import random
import statistics
from concurrent.futures import ProcessPoolExecutor
from functools import partial

import numpy as np

import pcor
from bench.__main__ import demo, random_outliers
from pcor.releasing.run import draw
from pcor.releasing.settings import plan
from pcor.search.best_first import BestFirst
from pcor.search.validity import Validity

SHARES = (None, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7)
SETTINGS = [
    (kind, samples, epsilon)
    for kind in (pcor.BreadthFirst, pcor.DepthFirst)
    for samples in (20, 50, 100)
    for epsilon in ("0.05", "0.2", "1")
]


def largest(validity: Validity) -> int:
    """Return the population of the largest valid context."""
    order = BestFirst(validity, validity.table.cells.cell_counts)
    while not order.ranked() and not order.finished:
        order.advance()
    return order.ranked()[0].utility


def utilities(record: int, table: pcor.Table) -> list[list[float]]:
    """Return the utility of one record for every setting and share."""
    best = largest(Validity(table, table.record(record), pcor.LOF()))
    found = []
    for kind, samples, epsilon in SETTINGS:
        row = []
        for share in SHARES:
            even = 1 / samples  # None: every draw gets the same
            search = kind(samples=samples, final_share=even if share is None else share)
            planned = plan(table.schema, epsilon, search=search)
            validity = Validity(table, table.record(record), planned.detector)
            mask = draw(planned, validity, pcor.testing.seeded(record))
            row.append(int(table.populations([mask])[0]) / best)
        found.append(row)
    return found


def main() -> None:
    """Print one table: the mean utility for each setting and share."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=200)
    count = parser.parse_args().records
    table = pcor.Table(*demo())
    records = random_outliers(table, random.Random(5), count)  # noqa: S311 (which records)
    with ProcessPoolExecutor(2) as pool:
        found = np.array(list(pool.map(partial(utilities, table=table), records, chunksize=5)))
    names = ["even", *(str(share) for share in SHARES[1:])]
    print(f"demo table, LOF, {count} random outliers, mean utility by share of the final draw")
    print("| search | samples | epsilon | " + " | ".join(names) + " |")
    print("| --- | --- | --- |" + " --- |" * len(names))
    for (kind, samples, epsilon), means in zip(SETTINGS, found.mean(axis=0), strict=True):
        cells = " | ".join(f"{mean:.3f}" for mean in means)
        print(f"| {kind.name} | {samples} | {epsilon} | {cells} |")
    overall = [statistics.mean(column) for column in found.mean(axis=0).T]
    print("| all | | | " + " | ".join(f"{mean:.3f}" for mean in overall) + " |")


if __name__ == "__main__":
    main()
