"""``python -m bench.files``: what large and odd files cost: to read, draft, check and release.

A column of 10,000 words, 300 columns, 20 million rows. Each step runs in a process of its own, and
is given as a ratio to the time in which Arrow reads all of the file, with the most memory that it
had. ``ROWS=1000000`` makes the long file shorter.
"""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import csv

ROWS = int(os.environ.get("ROWS", "20000000"))
BATCH = 500_000
REGIONS = np.array(["north", "south", "east", "west", "abroad"])

# What each step does with a file: its program, in which ``path`` and ``schema`` are set.
STEPS = {
    "read by Arrow": "from pyarrow import csv; csv.read_csv(path)",
    "drafted": "draft(); ",
    "drafted, attributes named": "draft(['region', 'age', 'day'])",
    "checked": "pcor.Schema.from_file(schema).check(path)",
    "read as a table": "table()",
    "released": "pcor.release(table(), 0, 1, search='direct')",
}
BEGIN = """
import sys
path, schema = sys.argv[1:]
"""
PCOR = """
import pcor
def draft(attributes=None):
    return pcor.Schema.draft(path, metric='amount', id='key', attributes=attributes)
def table():
    return pcor.Table(path, pcor.Schema.from_file(schema))
"""


def batches(rows: int, extra: int = 0, words: int = 0) -> Iterator[pa.RecordBatch]:
    """Yield rows of made-up claims; the first is an outlier everywhere."""
    numbers = np.random.default_rng(0)
    for first in range(0, rows, BATCH):
        count = min(BATCH, rows - first)
        amount = numbers.lognormal(6, 0.5, count).round(2)
        if first == 0:
            amount[0] = 1e6
        days = np.datetime64("2015-01-01") + numbers.integers(0, 3000, count)
        columns = {
            "key": np.arange(first, first + count),
            "region": REGIONS[numbers.integers(0, len(REGIONS), count)],
            "age": numbers.integers(17, 95, count),
            "day": days,
            "amount": amount,
        }
        if words:
            columns["word"] = np.char.add("w", numbers.integers(0, words, count).astype(str))
        columns |= {f"extra{n}": numbers.integers(0, 2 + n % 40, count) for n in range(extra)}
        yield pa.record_batch(columns)


def write(path: Path, rows: int, **odd: int) -> None:
    """Write such rows as a CSV file."""
    found = batches(rows, **odd)
    first = next(found)
    with csv.CSVWriter(path, first.schema) as writer:
        writer.write_batch(first)
        for batch in found:
            writer.write_batch(batch)


def measured(program: str, *given: Path) -> tuple[float, float]:
    """Return the seconds and the MiB that a program takes in a process of its own."""
    begun = time.perf_counter()
    process = subprocess.Popen([sys.executable, "-c", program, *map(str, given)])  # noqa: S603
    _, status, used = os.wait4(process.pid, 0)
    took = time.perf_counter() - begun
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"failed: {program}")
    return took, used.ru_maxrss / 1024


def report(name: str, path: Path) -> None:
    """Print what each step on one file costs."""
    size = path.stat().st_size / 2**20
    print(f"{name}, {size:,.0f} MiB:", flush=True)
    schema = path.with_suffix(".toml")
    schema.write_text(SCHEMA, encoding="utf-8")
    unit = None
    for step, program in STEPS.items():
        begin = BEGIN if step == "read by Arrow" else BEGIN + PCOR
        took, memory = measured(begin + program, path, schema)
        unit = unit or took
        print(f"  {step}: {took / unit:.2f} x ({took:.1f} s), {memory:,.0f} MiB", flush=True)


SCHEMA = """
[dataset]
id = "key"
[metric]
column = "amount"
[attributes.region]
values = ["north", "south", "east", "west", "abroad"]
[attributes.age]
edges = [0, 25, 35, 45, 55, 65, 75, 100]
contexts = "range"
[attributes.day]
date = { by = "year", from = "2015-01-01", to = "2023-12-31" }
contexts = "range"
[release]
detector = "grubbs"
"""


def main() -> None:
    """Measure and print."""
    print(f"{platform.machine()}, {os.cpu_count()} cores")
    with tempfile.TemporaryDirectory(prefix="pcor-files-") as name:
        path = Path(name) / "rows.csv"
        for title, rows, odd in (
            ("a column of 10,000 words, 1 million rows", 1_000_000, {"words": 10_000}),
            ("300 columns, 100,000 rows", 100_000, {"extra": 295}),
            (f"{ROWS:,} rows", ROWS, {}),
        ):
            write(path, rows, **odd)
            report(title, path)


if __name__ == "__main__":
    main()
