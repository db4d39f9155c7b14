"""Utility of the paper's breadth-first search on the authors' reduced salary table. NOT PRIVATE.

Settings of the paper: Algorithm 5, LOF, n = 50, its own accounting ((2n+2) eps_1 = epsilon),
outliers with more than 500 valid contexts, starts drawn uniformly from the valid contexts. Utility
is the population of the drawn context over that of the largest valid one. Expected (FINDINGS):
about 0.87 at epsilon 0.1 and 0.94 at 0.2.

    PCOR_DATA=... python -m studies.breadth_first_utility
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import sys
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

import pcor
from pcor.releasing.run import draw
from pcor.releasing.settings import plan
from pcor.search.validity import Validity

TABLE = "authors_salary_11k"
MORE_THAN = 500


def load(folder: Path) -> pcor.Table:
    """Read the authors' table."""
    return pcor.Table(folder / f"{TABLE}.parquet", str(folder / f"{TABLE}.toml"))


def flagged_anywhere(table: pcor.Table, numbers: random.Random, contexts: int) -> list[int | str]:
    """Return records flagged in random contexts, in random order."""
    seen: dict[int | str, None] = {}
    for _ in range(contexts):
        bits = numbers.getrandbits(table.schema.width)
        if all(bits & own for own in table.schema.attribute_masks):
            context = pcor.Context.from_mask(table.schema, bits)
            seen |= dict.fromkeys(pcor.outliers(table, context))
    records = sorted(seen, key=str)
    numbers.shuffle(records)
    return records


def utilities(
    record: int | str, *, folder: Path, epsilons: list[str], repetitions: int
) -> dict[str, list[float]] | None:
    """Return the utility of each draw, or nothing where the record has too few valid contexts."""
    table = load(folder)
    validity = Validity(table, table.record(record), pcor.LOF())
    every = list(validity.record.space.masks())
    valid = [mask for mask, yes in zip(every, validity(every), strict=True) if yes]
    if len(valid) <= MORE_THAN:
        return None
    best = int(table.populations(valid).max())
    results = {}
    for epsilon in epsilons:
        planned = plan(
            table.schema, epsilon, search="breadth_first", samples=50, accounting="paper"
        )
        masks = [draw(planned, validity, pcor.testing.seeded(seed)) for seed in range(repetitions)]
        results[epsilon] = [int(n) / best for n in table.populations(masks)]
    return results


def main() -> None:
    """Run the experiment and print one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--outliers", type=int, default=50)
    parser.add_argument("--repetitions", type=int, default=20, help="draws for each outlier")
    parser.add_argument("--epsilons", default="0.1,0.2")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    if not os.environ.get("PCOR_DATA"):
        sys.exit("PCOR_DATA is not set; it names the folder with the authors' tables")
    folder = Path(os.environ["PCOR_DATA"])
    epsilons = options.epsilons.split(",")
    records = flagged_anywhere(load(folder), random.Random(options.seed), contexts=500)  # noqa: S311
    work = partial(utilities, folder=folder, epsilons=epsilons, repetitions=options.repetitions)
    kept: list[dict[str, list[float]]] = []
    with ProcessPoolExecutor() as pool:
        for done, result in enumerate(pool.map(work, records), start=1):
            kept += [result] if result is not None else []
            print(f"\r{done} records tried, {len(kept)} kept", end="", file=sys.stderr)
            if len(kept) == options.outliers:
                pool.shutdown(cancel_futures=True)
                break
    print(file=sys.stderr)
    report = {
        epsilon: round(statistics.mean(u for result in kept for u in result[epsilon]), 4)
        for epsilon in epsilons
    }
    print(json.dumps({"private": False, "outliers": len(kept), "mean_utility": report}))


if __name__ == "__main__":
    main()
