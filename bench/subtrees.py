"""``python -m bench.subtrees``: COE, direct releases and the audit of many LOF outliers, in refits.

Records are picked as ``random_outliers`` does: a random context, each value in it with chance 1/2,
and in it a random flagged row. The unit is the refit of bench.naive, measured in this run. Each
figure is given twice: by the clock, and by the processor time of all cores, which other work on the
machine disturbs less. Never the median alone: the slowest records are other records. ``QUICK=1``
looks at fewer of them.
"""

from __future__ import annotations

import os
import random
import statistics
import time
from collections.abc import Callable
from functools import partial

import pcor
from bench.__main__ import QUICK, load, random_outliers
from bench.naive import Naive
from pcor.audit.neighbours import removals
from pcor.search.validity import Validity
from pcor.testing import SeededRandomSource

COE, OTHERS, RELEASES, AUDITS = (6, 2, 30, 2) if QUICK else (40, 5, 200, 15)

Seconds = tuple[float, float]


def timed(action: Callable[[], object]) -> Seconds:
    """Return the seconds of one call by the clock, and those of the processor."""
    clock, processor = time.perf_counter(), time.process_time()
    action()
    return time.perf_counter() - clock, time.process_time() - processor


def refit(table: pcor.Table, naive: Naive, records: list[int]) -> Seconds:
    """Return the median seconds of one naive LOF verification of a random context."""
    numbers, taken = random.Random(1), []  # noqa: S311 (which contexts to time)
    for key in records[:5]:
        record = table.record(key)
        for _ in range(6):
            mask = record.space.mask(numbers.randrange(record.space.size))
            taken.append(timed(partial(naive.verify, "lof", mask, record.value)))
    clock, processor = zip(*taken, strict=True)
    return statistics.median(clock), statistics.median(processor)


def report(what: str, taken: list[Seconds], unit: Seconds) -> None:
    """Print the median, the 90 % quantile and the worst, in refits."""
    words = []
    for column, name in enumerate(("by the clock", "of processor time")):
        ratios = sorted(one[column] / unit[column] for one in taken)
        high = ratios[min(len(ratios) - 1, 9 * len(ratios) // 10)]
        words.append(
            f"{statistics.median(ratios):,.1f} / {high:,.1f} / {ratios[-1]:,.1f} refits {name}"
        )
    print(f"{what}, {len(taken)} records, median / 90 % / worst: {'; '.join(words)}", flush=True)


def main() -> None:
    """Measure and print."""
    name, rows, schema = load()
    table, naive = pcor.Table(rows, schema), Naive(rows, schema)
    records = random_outliers(table, random.Random(0), RELEASES)  # noqa: S311 (which to time)
    unit = refit(table, naive, records)
    cores = len(os.sched_getaffinity(0))
    print(
        f"{name}; {cores} cores; a refit: {unit[0] * 1e3:.1f} ms, {unit[1] * 1e3:.1f} of processor"
    )

    def direct(key: int, seed: int) -> None:
        pcor.release(table, key, 0.2, "lof", "direct", chooser=SeededRandomSource(seed))

    def audit(key: int) -> None:
        removals(Validity(table, table.record(key), pcor.LOF()))

    coe(table, records, unit)
    for key in records[:2]:  # compiled before it is timed
        direct(key, 0)
    releases = [timed(partial(direct, key, seed)) for seed, key in enumerate(records)]
    report("direct release, lof", releases, unit)
    audit(records[0])
    audits = [timed(partial(audit, key)) for key in records[:AUDITS]]
    report("leave-one-out audit, lof", audits, unit)


def coe(table: pcor.Table, records: list[int], unit: Seconds) -> None:
    """Measure the complete COE of some records."""
    for detector, count in (("lof", COE), ("grubbs", OTHERS), ("histogram", OTHERS)):
        pcor.matching_contexts(table, records[0], detector)
        taken = [
            timed(partial(pcor.matching_contexts, table, key, detector)) for key in records[:count]
        ]
        report(f"complete COE, {detector}", taken, unit)


if __name__ == "__main__":
    main()
