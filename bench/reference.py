"""``python -m bench.reference``: the reference file against the naive way, measured in one run.

The authors' reduced salary table is done whole. Of the 51,000-row table random blocks are judged
and the rest is extrapolated: every row is in the same number of contexts, so how many (context,
row) pairs there are is known exactly, and the time goes with them. The naive way filters the rows
of a context and refits scikit-learn or scipy on them (bench.naive), on one core. Needs PCOR_DATA.
"""

from __future__ import annotations

import os
import random
import statistics
import sys
import tempfile
import time
from math import prod
from pathlib import Path

from pyarrow import parquet

import pcor
from bench.naive import Naive
from pcor.audit.reference_file import _columns, _content, _put_together, write_reference
from pcor.detectors import Detector
from pcor.releasing.estimate import duration
from pcor.search.every_context import EveryContext

BLOCKS, CONTEXTS, REFITS = 24, 2048, 12

# The authors' rules, all with more than 20 rows.
DETECTORS: list[Detector] = [
    pcor.LOF(),
    pcor.Grubbs(tail="upper"),
    pcor.Histogram(include_maximum=False),
]


def load(folder: Path, name: str) -> pcor.Table:
    """Return one of the tables with a schema beside it."""
    return pcor.Table(folder / f"{name}.parquet", folder / f"{name}.toml")


class Timer:
    """Adds up what happens inside: seconds, and seconds of processor time on all cores."""

    def __init__(self) -> None:
        self.seconds = self.processor = 0.0

    def __enter__(self) -> None:
        self._began = time.perf_counter(), time.process_time()

    def __exit__(self, *_: object) -> None:
        self.seconds += time.perf_counter() - self._began[0]
        self.processor += time.process_time() - self._began[1]


def whole(table: pcor.Table, detector: Detector) -> None:
    """Write a complete file and say how long it took."""
    EveryContext(table, detector).judge(0, 256)  # compiled before it is timed
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "reference.parquet"
        with (timer := Timer()):
            done = write_reference(table, detector, path=path)
        size = path.stat().st_size
    print(
        f"{table.schema.name}, {detector.name}: {done.contexts:,} contexts in "
        f"{duration(timer.seconds)} ({duration(timer.processor)} of a core), {size / 1e6:,.2f} MB",
        flush=True,
    )


def extrapolated(table: pcor.Table, naive: Naive, detector: Detector) -> None:
    """Judge random blocks and say what all of them would take, here and naively."""
    numbers = random.Random(0)  # noqa: S311 (which contexts to time)
    every = EveryContext(table, detector)
    columns = _columns(table, every)
    every.judge(0, 256)  # compiled before it is timed
    judging, joining, pairs = Timer(), Timer(), 0
    with tempfile.TemporaryDirectory() as folder:
        parts = [Path(folder) / f"{block}.parquet" for block in range(BLOCKS)]
        for part in parts:
            first = numbers.randrange(every.size - CONTEXTS)
            with judging:
                content = _content(every, first, CONTEXTS, columns)
                parquet.write_table(content, part, compression="zstd")
            pairs += int(content["population"].to_numpy().sum())
        with joining:
            outliers = _put_together(parts, Path(folder) / "whole.parquet", columns)
        size = (Path(folder) / "whole.parquet").stat().st_size
    contexts, cores = BLOCKS * CONTEXTS, len(os.sched_getaffinity(0))
    all_pairs = every.rows * prod(1 << (len(a.values) - 1) for a in table.schema.attributes)
    times, copies = all_pairs / pairs, every.size / contexts
    ours = judging.processor * times + joining.processor * copies
    naively = statistics.mean(refits(every, naive, numbers)) * every.size
    print(f"{table.schema.name}, {detector.name}: {every.size:,} contexts, {all_pairs:.3g} pairs")
    print(
        f"  judging: {judging.processor / pairs * 1e9:.1f} ns of a core a pair, "
        f"{duration(judging.processor * times / cores)} on {cores} idle cores, "
        f"{duration(judging.seconds * times)} at the pace of this run"
    )
    print(
        f"  putting together: {duration(joining.processor * copies)} of a core, "
        f"{duration(joining.seconds * copies)} at the pace of this run"
    )
    print(
        f"  {outliers / contexts:.1f} outliers and {size / contexts:.1f} bytes a context: "
        f"{size * copies / 1e9:.2f} GB"
    )
    print(
        f"  naively: {duration(naively)} of a core, {naively / ours:,.0f} x as much",
        flush=True,
    )


def refits(every: EveryContext, naive: Naive, numbers: random.Random) -> list[float]:
    """Return the seconds of processor time of the naive way for random contexts."""
    taken = []
    for _ in range(REFITS):
        words = every.contexts.words(numbers.randrange(every.size), 1)[0]
        start = time.process_time()
        # Asked about nobody: the whole population is judged.
        naive.verify(every.detector.name, int.from_bytes(words.tobytes(), "little"), float("nan"))
        taken.append(time.process_time() - start)
    return taken


def main() -> None:
    """Measure both tables for all three detectors."""
    if "PCOR_DATA" not in os.environ:
        sys.exit("set PCOR_DATA to the folder of tables")
    folder = Path(os.environ["PCOR_DATA"])
    small, large = load(folder, "authors_salary_11k"), load(folder, "salary_51k")
    naive = Naive(parquet.read_table(folder / "salary_51k.parquet"), large.schema)
    for detector in DETECTORS:
        whole(small, detector)
    for detector in DETECTORS:
        extrapolated(large, naive, detector)


if __name__ == "__main__":
    main()
