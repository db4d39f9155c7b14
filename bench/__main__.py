"""``make bench``: one table, every row a ratio measured in this run.

The unit is the refit: the median time of one naive verification (bench.naive) of a random context
that contains the record. ``QUICK=1`` measures on fewer records and fewer rows.
"""

from __future__ import annotations

import json
import os
import platform
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import parquet

import pcor
from bench.naive import Naive
from pcor.search.validity import Validity

QUICK = bool(os.environ.get("QUICK"))
RESULTS = Path(__file__).parent / "results"


def seconds(action: Callable[[], object]) -> float:
    """Return the seconds of one call."""
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


class Bench:
    """Rows of (what, measured, unit, target), printed as they come."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []
        print(f"{'what':<66}{'measured':>12}  unit, target")

    def row(self, what: str, measured: float, unit: str) -> None:
        """Print and keep one result."""
        self.rows.append({"what": what, "measured": measured, "unit": unit})
        print(f"{what:<66}{measured:>12,.4g}  {unit}", flush=True)


def load() -> tuple[str, pa.Table, pcor.Schema]:
    """Return the 51,000-row table of PCOR_DATA, or the demo's, without an id."""
    folder = os.environ.get("PCOR_DATA")
    if not folder:
        return "demo salaries", *demo()
    path = Path(folder) / "salary_51k.parquet"
    return "salary_51k", parquet.read_table(path), pcor.Schema.from_file(path.with_suffix(".toml"))


def demo() -> tuple[pa.Table, pcor.Schema]:
    """Return the demo's salaries with row numbers as keys."""
    rows = pcor.demo.salaries().drop_columns(["employee"])
    declared = pcor.demo.salary_schema(any_set=True).to_dict()
    del declared["dataset"]["id"]
    return rows, pcor.Schema.from_dict(declared)


def random_outliers(
    table: pcor.Table, numbers: random.Random, count: int, detector: str = "lof"
) -> list[int]:
    """Return random records that are outliers in some random context."""
    found: list[int] = []
    while len(found) < count:
        bits = numbers.getrandbits(table.schema.width)
        if all(bits & own for own in table.schema.attribute_masks):
            flagged = pcor.outliers(table, pcor.Context.from_mask(table.schema, bits), detector)
            found += [int(numbers.choice(flagged))] if flagged else []
    return found


def verification(
    bench: Bench, table: pcor.Table, naive: Naive, records: list[int], numbers: random.Random
) -> float:
    """One verification in batches of random contexts; returns the seconds of a LOF refit."""
    refit = 0.0
    for detector, target in (("lof", 5000), ("grubbs", 1000), ("histogram", 1000)):
        slow, fast = [], []
        for key in records[:5]:
            record = table.record(key)
            space = record.space
            masks = [space.mask(numbers.randrange(space.size)) for _ in range(20)]
            slow += [
                seconds(lambda m=m, r=record: naive.verify(detector, m, r.value))  # type: ignore[misc]  # noqa: B023
                for m in masks[: 4 if QUICK else 20]
            ]
            indices = np.array([numbers.randrange(space.size) for _ in range(20_000)], np.uint64)
            words = space.words_of(indices)
            validity = Validity(table, record, pcor.get_detector(detector))
            validity.of_words(words[:512])
            fast.append(seconds(lambda v=validity, w=words: v.of_words(w)) / len(words))  # type: ignore[misc]
        ratio = statistics.median(slow) / statistics.median(fast)
        bench.row(f"one verification, {detector}", ratio, f"x faster than naive, >= {target:,}")
        if detector == "lof":
            refit = statistics.median(slow)
            bench.row("  the unit: one naive LOF verification", refit * 1e3, "ms")
    return refit


def enumeration(bench: Bench, table: pcor.Table, record: int, refit: float) -> None:
    """The complete COE of one record."""
    for detector, target in (("lof", 800), ("histogram", 800), ("grubbs", 100)):
        taken = seconds(lambda d=detector: pcor.matching_contexts(table, record, d))  # type: ignore[misc]
        bench.row(f"complete COE, {detector}", taken / refit, f"refits, <= {target}")


def releases(bench: Bench, table: pcor.Table, records: list[int], refit: float) -> None:
    """Whole releases, draws included."""
    direct = [seconds(lambda r=r: pcor.release(table, r, 0.2, search="direct")) for r in records]  # type: ignore[misc]
    bench.row("release, direct, median", statistics.median(direct) / refit, "refits, <= 8")
    slowest = records[direct.index(max(direct))]
    whole = seconds(lambda: pcor.matching_contexts(table, slowest))
    bench.row("release, direct, worst", max(direct) / refit, "refits, <= complete COE")
    bench.row("  the complete COE of that record", whole / refit, "refits")
    few = records[:20]
    broad = [
        seconds(lambda r=r: pcor.release(table, r, 0.2, search="breadth_first", samples=100))  # type: ignore[misc]
        for r in few
    ]
    bench.row(
        "release, breadth_first, 100 samples, median",
        statistics.median(broad) / refit,
        "refits, <= 10",
    )


def large_table(bench: Bench, rows: pa.Table, schema: pcor.Schema, records: list[int]) -> None:
    """The same table many times over, with jitter on the metric."""
    times = 10 if QUICK else 100
    large = many_times(rows, schema.metric.column, times)
    values = large[schema.metric.column].to_numpy()
    sort = statistics.median(seconds(lambda: np.sort(values)) for _ in range(3))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.perf_counter()
    table = pcor.Table(large, schema)
    built = time.perf_counter() - start
    peak = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024 / large.num_rows
    bench.row(f"table build, {large.num_rows:,} rows, time", built / sort, "x np.sort, < 5")
    bench.row(f"table build, {large.num_rows:,} rows, peak", peak, "bytes a row, < 60")
    small = pcor.Table(rows, schema)
    numbers = random.Random(3)  # noqa: S311 (which records to time)
    own = random_outliers(table, numbers, 3 if QUICK else 9)  # other records stand out among more
    growth = median_release(table, own) / median_release(small, records[: len(own)])
    bench.row(f"growth: release, breadth_first, {times} x the rows", growth, "x the time, <= 2")


def many_times(rows: pa.Table, metric: str, times: int) -> pa.Table:
    """Return the rows so many times over, with a jitter: among equal ones nobody stands out."""
    large = pa.concat_tables([rows] * times).combine_chunks()
    jitter = np.random.default_rng(0).random(large.num_rows)
    place = large.schema.get_field_index(metric)
    return large.set_column(place, metric, pa.array(large[metric].to_numpy() + jitter))


def median_release(table: pcor.Table, records: list[int]) -> float:
    """Return the median seconds of a breadth-first release."""
    return statistics.median(
        seconds(lambda r=r: pcor.release(table, r, 0.2, search="breadth_first"))  # type: ignore[misc]
        for r in records
    )


def many_values(bench: Bench) -> None:
    """Ten attributes of twenty values, 200,000 rows."""
    count = 20_000 if QUICK else 200_000
    numbers = np.random.default_rng(1)
    names = [f"a{i}" for i in range(10)]
    columns: dict[str, Any] = {name: numbers.integers(0, 20, count) for name in names}
    columns["m"] = np.round(numbers.lognormal(10, 0.5, count), 2)
    columns["m"][0] = columns["m"].max() * 3
    rows = pa.table(columns)
    schema = pcor.Schema(metric="m", attributes={name: list(range(20)) for name in names})
    table, naive = pcor.Table(rows, schema), Naive(rows, schema)
    start = pcor.Context.full(schema)
    space = table.record(0).space
    choose = random.Random(2)  # noqa: S311 (which contexts to time)
    masks = [space.mask(choose.randrange(space.size)) for _ in range(7)]
    v = float(columns["m"][0])
    times = [seconds(partial(naive.verify, "lof", mask, v)) for mask in masks]
    refit = statistics.median(times)
    taken = seconds(
        lambda: pcor.release(table, 0, 0.2, search="breadth_first", samples=100, start=start)
    )
    bench.row(
        f"t = 200, {count:,} rows, breadth_first, 100 samples", taken / refit, "refits there, <= 60"
    )


def command_line(bench: Bench, rows: pa.Table, schema: pcor.Schema, record: int) -> None:
    """A warm ``pcor release`` beyond the start of the interpreter."""
    program = str(Path(sys.executable).with_name("pcor"))
    with tempfile.TemporaryDirectory() as folder:
        table, declared = Path(folder) / "t.parquet", Path(folder) / "t.toml"
        parquet.write_table(rows, table)
        declared.write_text(schema.to_toml(), encoding="utf-8")
        command = [program, "release", str(table), "--schema", str(declared)]
        command += ["--record", str(record), "--epsilon", "0.2"]

        def run(words: list[str]) -> float:
            return seconds(lambda: subprocess.run(words, check=True, capture_output=True))  # noqa: S603

        run(command)
        warm = statistics.median(run(command) for _ in range(3))
        bare = statistics.median(run([sys.executable, "-c", "pass"]) for _ in range(3))
    bench.row("pcor release, warm command line, beyond the interpreter", warm - bare, "s, <= 3")


def main() -> None:
    """Measure everything, print one table, save it as JSON."""
    name, rows, schema = load()
    packages = ", ".join(f"{p} {version(p)}" for p in ("numpy", "numba", "scikit-learn", "opendp"))
    cores = len(os.sched_getaffinity(0))
    machine = f"{platform.machine()}, {cores} cores, Python {platform.python_version()}"
    print(f"{name}; {machine}; {packages}")
    bench = Bench()
    table, naive = pcor.Table(rows, schema), Naive(rows, schema)
    numbers = random.Random(0)  # noqa: S311 (which records and contexts to time)
    records = random_outliers(table, numbers, 20 if QUICK else 100)
    for detector in ("lof", "grubbs", "histogram"):  # compiled before anything is timed
        pcor.matching_contexts(table, records[0], detector)
    pcor.release(table, records[0], 0.2, search="breadth_first")
    refit = verification(bench, table, naive, records, numbers)
    enumeration(bench, table, records[0], refit)
    releases(bench, table, records, refit)
    command_line(bench, rows, schema, records[0])
    many_values(bench)
    large_table(bench, rows, schema, records)
    RESULTS.mkdir(exist_ok=True)
    report = {
        "table": name,
        "machine": machine,
        "packages": packages,
        "quick": QUICK,
        "rows": bench.rows,
    }
    (RESULTS / "latest.json").write_text(json.dumps(report, indent=2), encoding="utf-8")
    print(f"saved {RESULTS.name}/latest.json")


if __name__ == "__main__":
    main()
