"""``python -m bench.leave_one_out``: which rows change COE, for several LOF outliers, in refits.

The unit is the refit of bench.naive, measured in this run: one verification by refitting
scikit-learn. Leaving out every row in every context that way would take billions of them. With
``CHECK=1`` fifty rows of the first record, half of them near it, are also left out for good: the
table is rebuilt without the row and every context that covers it is judged anew.
"""

from __future__ import annotations

import os
import random
import resource
import statistics

import numpy as np
import pyarrow as pa

import pcor
from bench.__main__ import QUICK, load, random_outliers, seconds
from bench.naive import Naive
from pcor.audit.neighbours import removals
from pcor.search.validity import Validity


def refit_seconds(
    table: pcor.Table, naive: Naive, records: list[int], numbers: random.Random
) -> float:
    """Return the median seconds of one naive LOF verification of a random context."""
    taken = []
    for key in records[:5]:
        record = table.record(key)
        space = record.space
        for _ in range(4 if QUICK else 20):
            mask = space.mask(numbers.randrange(space.size))
            taken.append(seconds(lambda m=mask, r=record: naive.verify("lof", m, r.value)))  # type: ignore[misc]
    return statistics.median(taken)


def without(rows: pa.Table, place: int) -> pa.Table:
    """Return the rows but one."""
    return pa.concat_tables([rows.slice(0, place), rows.slice(place + 1)])


def check(rows: pa.Table, table: pcor.Table, key: int, numbers: random.Random) -> int:
    """Leave out fifty rows for good; return how many of them changed COE as ``removals`` said."""
    record = table.record(key)
    space, detector = record.space, pcor.LOF()
    validity = Validity(table, record, detector)
    offsets = table.schema.offsets
    said = {
        (sum(1 << (o + p) for o, p in zip(offsets, one.places, strict=True)), one.value): one
        for one in removals(validity)
    }
    metric = rows[table.schema.metric.column].to_numpy()
    near = np.argsort(np.abs(metric - record.value), kind="stable")[:300].tolist()
    chosen = numbers.sample(range(len(metric)), 25) + numbers.sample(near, 25)
    changed, every = 0, np.arange(space.size, dtype=np.uint64)
    for place in (place for place in chosen if place != key):
        mask = table.record(place).space.fixed
        need = int(space.indices_of(table.words([mask]))[0])
        words = space.words_of(every[space.covering(every, need)])
        before = validity.of_words(words)
        smaller = pcor.Table(without(rows, place), table.schema)
        after = Validity(smaller, record, detector).of_words(words)
        indices = space.indices_of(words)
        one = said.get((mask, float(metric[place])))
        lost = np.zeros(0, np.uint64) if one is None else one.lost
        gained = np.zeros(0, np.uint64) if one is None else one.gained
        assert np.array_equal(lost, indices[before & ~after]), "not the contexts that are lost"  # noqa: S101
        assert np.array_equal(gained, indices[after & ~before]), "not those that are gained"  # noqa: S101
        changed += one is not None
    return changed


def main() -> None:
    """Measure and print."""
    name, rows, schema = load()
    table, naive = pcor.Table(rows, schema), Naive(rows, schema)
    numbers = random.Random(0)  # noqa: S311 (which records and contexts to time)
    records = random_outliers(table, numbers, 5 if QUICK else 25)
    removals(Validity(table, table.record(records[0]), pcor.LOF()))  # compiled before it is timed
    refit = refit_seconds(table, naive, records, numbers)
    cores = len(os.sched_getaffinity(0))
    print(f"{name}; {cores} cores; one naive LOF verification: {refit * 1e3:.1f} ms")
    taken = []
    for key in records:
        validity = Validity(table, table.record(key), pcor.LOF())
        taken.append(seconds(lambda v=validity: removals(v)) / refit)  # type: ignore[misc]
    print(f"leaving out every row in every context, {len(records)} random LOF outliers:")
    print(f"  median {statistics.median(taken):,.0f} refits, worst {max(taken):,.0f}; target 200")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"  peak memory of the whole run {peak:,.0f} MB")
    if os.environ.get("CHECK"):
        changed = check(rows, table, records[0], numbers)
        print(f"  50 rows left out for good: equal in every context; {changed} of them change COE")


if __name__ == "__main__":
    main()
