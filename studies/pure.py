"""Pure mode, computed exactly: how often the context drawn is valid, and how large it is.

No draw takes part: the scores of all contexts are listed and the chances of the exponential
mechanism follow from its definition (permute-and-flip is never worse). The steepness is chosen on
the synthetic demo table; the real table only confirms it. Owner only: it reads private rows.

    PCOR_DATA=... python -m studies.pure
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

import pcor
from pcor.audit.tradeoff import Outcome, ScoredContexts, expected
from pcor.releasing.settings import plan
from pcor.search.margin import MarginOrder, default_steepness
from pcor.search.validity import Validity

RANKS = (10, 300, 2000)


def outcome(
    table: pcor.Table, record: int | str, detector: pcor.Tail, epsilon: str, steepness: int
) -> Outcome:
    """Return the chance of a valid context, and the expected population over the largest valid."""
    planned = plan(table.schema, epsilon, detector=detector, guarantee="dp", steepness=steepness)
    validity = Validity(table, table.record(record), detector)
    order = MarginOrder(validity, detector, table.cells.cell_counts, steepness)
    order.list_all()
    candidates = ScoredContexts(order.scores, order.populations() * (order.scores > 0))
    largest = int(candidates.populations.max())
    if largest == 0:
        return Outcome(0.0, 0.0)
    return expected(candidates, largest, float(planned.bill.eta), "exponential")


def ranked(table: pcor.Table, ranks: Sequence[int]) -> Iterator[tuple[int, int | str]]:
    """Yield the records of these ranks by metric, the largest first."""
    full = pcor.Context.full(table.schema).mask
    values, counts = table.distribution(full)
    above = np.cumsum(counts[::-1])
    for rank in ranks:
        value = values[::-1][np.searchsorted(above, rank)]
        yield rank, table.keys_in(full, np.array([value]))[0]


def table_of(name: str) -> pcor.Table:
    """Return the demo table or a real one."""
    if name == "demo":
        return pcor.demo.salary_table(any_set=True)
    path = Path(os.environ["PCOR_DATA"]) / f"{name}.parquet"
    declared = pcor.Schema.from_file(path.with_suffix(".toml")).to_dict()
    if "id" not in declared["dataset"]:
        declared["dataset"]["positions"] = "public"  # a published file
    return pcor.Table(path, pcor.Schema.from_dict(declared))


def main() -> None:
    """Choose the steepness on the demo table, then confirm on the real one."""
    demo = table_of("demo")
    print("demo table: the least over ranks 10, 300, 2,000 of (validity, utility)")
    multiples = (1, 2, 3, 4, 6, 10)
    print("| share | epsilon | " + " | ".join(f"{m} / share" for m in multiples) + " |")
    print("| --- | --- |" + " --- |" * len(multiples))
    for share in (0.05, 0.02):
        for epsilon in ("0.2", "0.5", "1"):
            cells = []
            for multiple in multiples:
                detector = pcor.Tail(share)
                found = [
                    outcome(demo, key, detector, epsilon, round(multiple / share))
                    for _, key in ranked(demo, RANKS)
                ]
                cells.append(
                    f"{min(o.validity for o in found):.3f}, {min(o.utility for o in found):.3f}"
                )
            print(f"| {share} | {epsilon} | " + " | ".join(cells) + " |", flush=True)
    if "PCOR_DATA" not in os.environ:
        print("PCOR_DATA is not set: no real table")
        return
    real = table_of("salary_51k")
    detector = pcor.Tail(0.05)
    steepness = default_steepness(detector)
    print(f"\nsalary_51k, Tail(0.05), steepness {steepness}")
    print("| rank | epsilon | validity | expected utility |")
    print("| --- | --- | --- | --- |")
    for rank, key in ranked(real, RANKS):
        for epsilon in ("0.2", "0.5", "1"):
            one = outcome(real, key, detector, epsilon, steepness)
            print(f"| {rank:,} | {epsilon} | {one.validity:.4f} | {one.utility:.4f} |", flush=True)


if __name__ == "__main__":
    main()
