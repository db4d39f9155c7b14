"""Contexts that are valid because a test says so, and what a search collects of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

import pcor
from pcor.search import Explorer
from pcor.search.validity import Validity
from tests.helpers.neighbours import SCHEMA


def lattice(valid: Sequence[str]) -> tuple[pcor.Table, pcor.Detector]:
    """Return a table and a rule under which exactly these contexts are valid for record 0.

    Every cell has its own number of rows at a power of two, so the rule can tell contexts apart
    by the values it sees, as a detector may.
    """
    cells = [(job, city) for job in "abc" for city in "xy"]
    rows: list[tuple[str, str, float]] = [("a", "x", 1e6)]
    rows += [(job, city, float(2**i)) for i, (job, city) in enumerate(cells)]
    columns = {
        "id": list(range(len(rows))),
        "job": [row[0] for row in rows],
        "city": [row[1] for row in rows],
        "pay": [row[2] for row in rows],
    }
    table = pcor.Table(pa.table(columns), SCHEMA)
    wanted = {
        tuple(table.distribution(pcor.Context.from_bits(SCHEMA, bits).mask)[0]) for bits in valid
    }

    def rule(values: Any) -> Any:
        return (values == 1e6) & (tuple(values) in wanted)

    return table, pcor.Estimator(rule, min_population=1)


# Free bits of record 0 ("a", "x"): b, c, y.
ISOLATED = ["10010"]
CHAIN = ["10010", "11010", "11110", "11111"]
TWO_PARTS = ["10010", "11010", "10111"]


def explore(search: pcor.Search, valid: Sequence[str], seed: int = 0) -> list[str]:
    """Return the candidates that a search collects, as bits."""
    table, detector = lattice(valid)
    validity = Validity(table, table.record(0), detector)
    explorer = Explorer(validity, pcor.testing.seeded(seed), lambda masks: len(masks) - 1, 1000)
    return [pcor.Context.from_mask(SCHEMA, m).bits for m in search.explore(explorer)]


def start(bits: str) -> pcor.Context:
    return pcor.Context.from_bits(SCHEMA, bits)
