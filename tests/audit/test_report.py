"""What an audit says of ratios where a release also tells facts."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import pcor
from pcor.audit import exact_log_chances, exposure
from tests.helpers.divergence import naive_divergence
from tests.helpers.fact_ratios import joint_ratio

SCHEMA = pcor.Schema(
    metric={"column": "pay", "low": 0, "high": 100, "step": 10},
    attributes={"job": ["a", "b"]},
    id="id",
)
PAY = [100.0, *map(float, range(1, 9))]
TAIL = pcor.Tail(0.3, min_population=3)
FACTS: dict[str, Any] = {"detector": TAIL, "facts": ["count"], "facts_share": "0.9"}


def table(rows: list[int]) -> pcor.Table:
    columns = {"id": rows, "pay": [PAY[r] for r in rows], "job": ["aabababab"[r] for r in rows]}
    return pcor.Table(pa.table(columns), SCHEMA)


ROWS = list(range(len(PAY)))


def test_under_dp_the_largest_ratio_covers_context_and_facts_together() -> None:
    options = FACTS | {"guarantee": "dp"}
    found = exposure(table(ROWS), 0, 1, insert=[], **options)
    together = max(
        joint_ratio(table(ROWS), table([r for r in ROWS if r != gone]), 1, **options)
        for gone in ROWS[1:]
    )
    assert found.everyone is not None
    assert 0.9 < together <= found.everyone + 1e-9 <= 1 + 2e-9
    assert (
        "the largest log ratio is at most 0.909259: 0.00925926 for the context, and at most 0.9 "
        "that the facts add" in found.verdict
    )
    assert found.to_dict()["facts_ratio"] == 0.9


def test_the_ratio_of_an_exposed_person_has_the_part_of_the_facts() -> None:
    options = FACTS | {"detector": pcor.Grubbs(min_population=5)}
    found = exposure(table(ROWS), 0, 1, insert=[], **options)
    before = exact_log_chances(table(ROWS), 0, 1, **options)
    seen = 0
    for one in found.exposed:
        gone = PAY.index(one.metric)
        after = exact_log_chances(table([r for r in ROWS if r != gone]), 0, 1, **options)
        ratio = naive_divergence(before, after, 0.1).ratio
        if ratio is not None:
            seen += 1
            assert one.ratio == pytest.approx(ratio + 0.9, abs=1e-9)
    assert seen > 0


def test_without_facts_nothing_is_said_of_them() -> None:
    found = exposure(table(ROWS), 0, 1, detector=TAIL, guarantee="dp", insert=[])
    assert "Computed on this table, the largest log ratio is" in found.verdict
    assert "facts" not in found.verdict
    assert "facts_ratio" not in found.to_dict()
