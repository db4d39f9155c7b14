"""How wide are the contexts that widest-first finds, and how long does it take? NOT PRIVATE.

Three tables. ``salary``: 51,000 rows and 25 values, where the largest valid context is known,
against the direct mechanism's best. ``ontario``: 658,000 rows of Ontario's public salary
disclosure and 110 values, where nobody can list the contexts, against the best that was found with
ten times the effort. ``census``: 46,000 rows and 53 values, made here, likewise.

    PCOR_DATA=... python -m studies.widest_first
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import statistics
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyarrow import parquet

import pcor
from bench.__main__ import random_outliers, seconds
from bench.naive import Naive
from pcor.errors import NoValidContext
from pcor.search import Explorer, WidestFirst
from pcor.search.validity import Validity
from pcor.search.widest_first import usual_tries
from pcor.testing import seeded
from studies.split import largest
from studies.tables import CENSUS_SIZES, census

EPSILONS = (0.2, 0.05, 0.01)
ONTARIO = {"sector": 12, "employer": 40, "job_title": 40}  # the most frequent, and `other`


def mean_and_interval(numbers: list[float]) -> list[float]:
    """Return the mean and its 90 % bootstrap interval."""
    draws = np.random.default_rng(0).choice(numbers, (10_000, len(numbers))).mean(axis=1)
    low, high = np.quantile(draws, [0.05, 0.95])
    return [round(float(number), 4) for number in (np.mean(numbers), low, high)]


def candidates(table: pcor.Table, record: int, search: pcor.Search) -> NDArray[np.int64]:
    """Return the populations of the candidates; none where nothing was found."""
    explorer = Explorer(
        Validity(table, table.record(record), pcor.LOF()), seeded(0), lambda _: 0, 0
    )
    try:
        return table.populations(search.explore(explorer))
    except NoValidContext:
        return np.zeros(0, dtype=np.int64)


def expected(populations: NDArray[np.int64], epsilon: float) -> float:
    """Return the mean population of one monotone draw by the exponential mechanism."""
    if not len(populations):
        return 0.0
    weights = np.exp(epsilon * (populations - populations.max()))
    return float((weights * populations).sum() / weights.sum())


def refit(rows: pa.Table, table: pcor.Table, records: list[int]) -> float:
    """Return the median seconds of one naive LOF verification of random contexts."""
    naive, numbers, taken = Naive(rows, table.schema), random.Random(1), []  # noqa: S311
    for key in records[:5]:
        record = table.record(key)
        for _ in range(4):
            mask = record.space.mask(numbers.randrange(record.space.size))
            taken.append(seconds(lambda m=mask, v=record.value: naive.verify("lof", m, v)))  # type: ignore[misc]
    return statistics.median(taken)


def release_times(table: pcor.Table, records: list[int], unit: float) -> dict[str, float]:
    """Return how long whole releases take, in refits."""
    release = [
        seconds(lambda r=r: pcor.release(table, r, 0.2, search="widest_first"))  # type: ignore[misc]
        for r in records
    ]
    return {
        "median_refits": round(statistics.median(release) / unit, 1),
        "slowest_refits": round(max(release) / unit, 1),
        "median_seconds": round(statistics.median(release), 3),
    }


def salary(folder: Path, count: int) -> dict[str, Any]:
    """Against the largest valid context, which best-first search knows."""
    path = folder / "salary_51k.parquet"
    rows = parquet.read_table(path)
    table = pcor.Table(rows, pcor.Schema.from_file(path.with_suffix(".toml")))
    records = random_outliers(table, random.Random(0), count)  # noqa: S311
    pcor.release(table, records[0], 0.2, search="widest_first")  # compiled before it is timed
    unit = refit(rows, table, records)
    best = [largest(Validity(table, table.record(key), pcor.LOF())) for key in records]
    found = [candidates(table, record, WidestFirst()) for record in records]
    reached = [float(f.max(initial=0)) / b for f, b in zip(found, best, strict=True)]
    return {
        "records": count,
        "refit_seconds": round(unit, 4),
        "release": release_times(table, records, unit),
        "nothing_found": sum(not len(populations) for populations in found),
        "best_candidate": mean_and_interval(reached),
        "below_0.95": sum(bool(ratio < 0.95) for ratio in reached),
        "worst": round(float(min(reached)), 3),
        "utility": {
            str(epsilon): mean_and_interval(
                [expected(f, epsilon) / b for f, b in zip(found, best, strict=True)]
            )
            for epsilon in EPSILONS
        },
    }


def ontario_rows(folder: Path) -> tuple[pa.Table, pcor.Schema]:
    """Return the disclosure with its most frequent values, the rest as ``other``."""
    rows = parquet.read_table(folder / "ontario_salaries.parquet")
    rows = rows.select([*ONTARIO, "year", "salary"])
    attributes: dict[str, Any] = {}
    for name, most in ONTARIO.items():
        counted = pc.value_counts(rows[name]).to_pylist()
        counted.sort(key=lambda entry: (-entry["counts"], entry["values"]))
        values = sorted(entry["values"] for entry in counted)
        if len(counted) > most:
            values = [*sorted(entry["values"] for entry in counted[: most - 1]), "other"]
            attributes[name] = {"values": values, "other": "other"}
            known = pc.is_in(rows[name], pa.array(values))
            column = pc.if_else(known, rows[name], "other")
            rows = rows.set_column(rows.schema.get_field_index(name), name, column)
        else:
            attributes[name] = {"values": values}
    attributes["year"] = {"values": sorted(set(rows["year"].to_pylist()))}
    return rows, pcor.Schema(metric="salary", attributes=attributes, name="ontario")


def with_shares(rows: pa.Table, schema: pcor.Schema) -> pcor.Schema:
    """Declare the shares of this table's own rows: allowed here, because it is public."""
    declared = schema.to_dict()
    for name, attribute in declared["attributes"].items():
        counts = {e["values"]: e["counts"] for e in pc.value_counts(rows[name]).to_pylist()}
        attribute["shares"] = [counts.get(value, 0) / len(rows) for value in attribute["values"]]
    return pcor.Schema.from_dict(declared)


def restricted_outliers(table: pcor.Table, numbers: random.Random, count: int) -> list[int]:
    """Return records that are outliers in some context of one to three restricted attributes."""
    found: list[int] = []
    while len(found) < count:
        values = {a.name: list(a.values) for a in table.schema.attributes}
        for name in numbers.sample(list(values), numbers.randint(1, 3)):
            most = min(len(values[name]) - 1, numbers.choice([1, 1, 2, 3, 5]))
            values[name] = numbers.sample(values[name], most)
        flagged = pcor.outliers(table, pcor.Context(table.schema, values))
        found += [int(numbers.choice(flagged))] if flagged else []
    return found


def ontario(folder: Path, count: int, compared: int) -> dict[str, Any]:
    """Against the best that anybody found with ten times the effort, on a part of the records."""
    rows, schema = ontario_rows(folder)
    tables = {
        "without shares": pcor.Table(rows, schema),
        "with shares": pcor.Table(rows, with_shares(rows, schema)),
    }
    plain, shared = tables.values()
    records = restricted_outliers(plain, random.Random(11), count)  # noqa: S311
    pcor.release(plain, records[0], 0.2, search="widest_first")
    unit = refit(rows, plain, records)
    report: dict[str, Any] = {
        "values": schema.width,
        "rows": len(rows),
        "records": count,
        "refit_seconds": round(unit, 3),
        "release": release_times(plain, records[:20], unit),
    }
    found = {
        name: [candidates(table, record, WidestFirst()) for record in records]
        for name, table in tables.items()
    }
    reached = {name: sum(len(f) > 0 for f in results) for name, results in found.items()}
    print(json.dumps(report | reached), file=sys.stderr, flush=True)
    more = WidestFirst(tries=10 * usual_tries(schema.most_steps))
    best = []
    for place, record in enumerate(records[:compared]):
        longer = [(plain, more), (shared, more)]
        tops = [candidates(t, record, s).max(initial=0) for t, s in longer]
        own = [results[place].max(initial=0) for results in found.values()]
        best.append(max(*tops, *own))
        shown = " ".join(f"{top / best[-1]:.3f}" for top in (*own, *tops))
        print(f"{place + 1} of {compared}: {shown}", file=sys.stderr, flush=True)
    for name, results in found.items():
        ratios = [f.max(initial=0) / b for f, b in zip(results, best, strict=False)]
        report[name] = {
            "found": reached[name],
            "of_the_best": mean_and_interval(ratios),
            "below_0.95": sum(bool(ratio < 0.95) for ratio in ratios),
            "worst": round(float(min(ratios)), 3),
            "utility_at_0.2": mean_and_interval(
                [expected(f, 0.2) / b for f, b in zip(results, best, strict=False)]
            ),
        }
    return report | {"compared": compared}


def census_like(count: int) -> dict[str, Any]:
    """Against the best that was found with ten times the effort."""
    rows = census()
    attributes = {f"a{n}": list(range(size)) for n, size in enumerate(CENSUS_SIZES)}
    table = pcor.Table(rows, pcor.Schema(metric="hours", attributes=attributes))
    records = random_outliers(table, random.Random(0), count)  # noqa: S311
    pcor.release(table, records[0], 0.2, search="widest_first")
    unit = refit(rows, table, records)
    more = WidestFirst(tries=10 * usual_tries(table.schema.most_steps))
    found = [candidates(table, record, WidestFirst()) for record in records]
    best = [
        max(candidates(table, record, more).max(initial=0), own.max(initial=0))
        for record, own in zip(records, found, strict=True)
    ]
    ratios = [float(f.max(initial=0) / b) for f, b in zip(found, best, strict=True)]
    return {
        "records": count,
        "refit_seconds": round(unit, 4),
        "release": release_times(table, records, unit),
        "found": sum(len(f) > 0 for f in found),
        "of_the_best": mean_and_interval(ratios),
        "below_0.95": sum(ratio < 0.95 for ratio in ratios),
        "worst": round(min(ratios), 3),
        "utility_at_0.2": mean_and_interval(
            [expected(f, 0.2) / float(b) for f, b in zip(found, best, strict=True)]
        ),
    }


def main() -> None:
    """Run them and print one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--records", type=int, default=100)
    parser.add_argument("--compared", type=int, default=6, help="with ten times the effort")
    parser.add_argument("--only", choices=["salary", "ontario", "census"])
    options = parser.parse_args()
    if not os.environ.get("PCOR_DATA"):
        sys.exit("PCOR_DATA is not set; it names the folder with the tables")
    folder = Path(os.environ["PCOR_DATA"])
    cores = len(os.sched_getaffinity(0))
    report: dict[str, Any] = {
        "private": False,
        "machine": f"{platform.machine()}, {cores} cores, Python {platform.python_version()}",
    }
    parts: dict[str, Callable[[], dict[str, Any]]] = {
        "salary": lambda: salary(folder, options.records),
        "ontario": lambda: ontario(folder, options.records, options.compared),
        "census": lambda: census_like(options.records),
    }
    for name, part in parts.items():
        if options.only in (None, name):
            report[name] = part()
            print(json.dumps(report[name]), file=sys.stderr, flush=True)
    print(json.dumps(report, indent=2))


if __name__ == "__main__":
    main()
