"""``python -m bench.subtrees``: COE, direct releases and the audit of many outliers, in refits.

Records are picked as ``random_outliers`` does: a random context, each value in it with chance 1/2,
and in it a random flagged row; flagged by LOF, but for the releases of Grubbs and Histogram by
these. The unit is the refit of bench.naive, measured anew before each record, since other work on
the machine slows both. Each figure is given twice: by the clock, and by the processor time of all
cores. Never the median alone: the slowest records are other records.
``QUICK=1`` looks at fewer of them.
"""

from __future__ import annotations

import os
import random
import statistics
import time
from collections.abc import Callable, Sequence
from functools import partial

import pcor
from bench.__main__ import QUICK, load, random_outliers
from bench.naive import Naive
from pcor.audit.neighbours import removals
from pcor.search.validity import Validity
from pcor.testing import SeededRandomSource

COE, OTHERS, RELEASES, AUDITS = (6, 4, 30, 2) if QUICK else (40, 20, 200, 15)

Seconds = tuple[float, float]


def timed(action: Callable[[], object]) -> Seconds:
    """Return the seconds of one call by the clock, and those of the processor."""
    clock, processor = time.perf_counter(), time.process_time()
    action()
    return time.perf_counter() - clock, time.process_time() - processor


class Refits:
    """Measures actions in refits: naive LOF verifications of the median one of some contexts."""

    def __init__(self, table: pcor.Table, naive: Naive, records: Sequence[int]) -> None:
        numbers = random.Random(1)  # noqa: S311 (which contexts to time)
        taken: list[tuple[float, int, Callable[[], object]]] = []
        for record in map(table.record, records):
            space = record.space
            for _ in range(6):
                mask = space.mask(numbers.randrange(space.size))
                verify = partial(naive.verify, "lof", mask, record.value)
                # The best of three: contexts are ordered by what they take, not by what else ran.
                taken.append((min(timed(verify)[1] for _ in range(3)), len(taken), verify))
        self._verify = sorted(taken)[len(taken) // 2][2]

    def _unit(self) -> Seconds:
        clock, processor = zip(*(timed(self._verify) for _ in range(3)), strict=True)
        return statistics.median(clock), statistics.median(processor)

    def report(self, what: str, actions: Sequence[Callable[[], object]]) -> None:
        """Print the median, the 90 % quantile and the worst of some actions."""
        actions[0]()  # compiled before it is timed
        ratios: list[list[float]] = [[], []]
        for action in actions:
            unit = self._unit()
            for column, took in enumerate(timed(action)):
                ratios[column].append(took / unit[column])
        words = [
            f"{statistics.median(some):,.1f} / {quantile(some):,.1f} / {max(some):,.1f}"
            for some in ratios
        ]
        print(
            f"{what}, {len(actions)} records, median / 90 % / worst, in refits: {words[0]} by the "
            f"clock; {words[1]} of processor time",
            flush=True,
        )


def quantile(some: list[float]) -> float:
    """Return what nine of ten do not exceed."""
    return sorted(some)[min(len(some) - 1, 9 * len(some) // 10)]


def main() -> None:
    """Measure and print."""
    name, rows, schema = load()
    table = pcor.Table(rows, schema)
    records = random_outliers(table, random.Random(0), RELEASES)  # noqa: S311 (which to time)
    refits = Refits(table, Naive(rows, schema), records[:5])
    print(f"{name}; {len(os.sched_getaffinity(0))} cores")

    def direct(key: int, seed: int, detector: str = "lof") -> None:
        pcor.release(table, key, 0.2, detector, "direct", chooser=SeededRandomSource(seed))

    def audit(key: int) -> None:
        removals(Validity(table, table.record(key), pcor.LOF()))

    for detector, count in (("lof", COE), ("grubbs", OTHERS), ("histogram", OTHERS)):
        coe = partial(pcor.matching_contexts, table, detector=detector)
        refits.report(f"complete COE, {detector}", [partial(coe, key) for key in records[:count]])
    draws = [partial(direct, key, seed) for seed, key in enumerate(records)]
    refits.report("direct release, lof", draws)
    for detector in ("grubbs", "histogram"):
        own = random_outliers(table, random.Random(0), RELEASES, detector)  # noqa: S311
        draws = [partial(direct, key, seed, detector) for seed, key in enumerate(own)]
        refits.report(f"direct release, {detector}", draws)
    refits.report("leave-one-out audit, lof", [partial(audit, key) for key in records[:AUDITS]])


if __name__ == "__main__":
    main()
