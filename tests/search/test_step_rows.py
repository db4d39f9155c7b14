"""Contexts judged by steps of one word are judged as by the bits of all values."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest

import pcor
from pcor.search.best_first import BestFirst
from pcor.search.step_rows import StepRows
from pcor.search.validity import Validity

ATTRIBUTES = {
    "year": {"values": list(range(40)), "contexts": "range"},
    "job": {"values": [f"j{n}" for n in range(30)], "contexts": "one"},
    "city": {"values": [f"c{n}" for n in range(30)], "groups": {"few": ["c0", "c1", "c2"]}},
}


def table(limit: int | None) -> pcor.Table:
    numbers = random.Random(1)  # noqa: S311 (rows to judge)
    rows = 500
    columns = {
        "year": [numbers.choice([3, 4, 5, 39]) for _ in range(rows)],
        "job": [f"j{numbers.choice([0, 0, 7, 29])}" for _ in range(rows)],
        "city": [f"c{numbers.choice([0, 1, 2, 28])}" for _ in range(rows)],
        "pay": [*(float(numbers.randrange(90)) for _ in range(rows - 1)), 300.0],
    }
    schema = pcor.Schema(metric="pay", attributes=ATTRIBUTES, max_clauses=limit)
    return pcor.Table(pa.table(columns), schema)


@pytest.mark.parametrize("detector", [pcor.LOF(k=5), pcor.Grubbs(), pcor.Histogram(), pcor.Tail()])
@pytest.mark.parametrize("limit", [None, 1])
def test_verdicts_by_steps_are_those_by_values(limit: int | None, detector: pcor.Detector) -> None:
    rows = table(limit)
    validity = Validity(rows, rows.record(499), detector)
    space = validity.record.space
    assert StepRows(validity, space).helps  # 100 values are two words
    members = space.members
    indices = np.arange(space.size, dtype=np.uint64) if members is None else members
    found = StepRows(validity, space).judge(indices)
    assert found.any()
    assert found.tolist() == validity.judge(validity.cells, space.words_of(indices)).tolist()


def test_the_ordered_draw_judges_few_contexts_by_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = table(1)
    validity = Validity(rows, rows.record(499), pcor.LOF(k=5))

    def ranked() -> list[int]:
        order = BestFirst(validity, rows.cells.cell_counts)
        while not order.finished:
            order.advance()
        return order.masks()

    by_steps = ranked()
    assert by_steps
    monkeypatch.setattr(StepRows, "helps", False)
    assert ranked() == by_steps
