"""The built-in tables are what they say they are."""

from __future__ import annotations

import hashlib

import pytest

import pcor
from pcor.demo import PLANTED, Planted


@pytest.fixture(scope="module")
def table() -> pcor.Table:
    return pcor.demo.salary_table()


def test_the_salaries_have_the_shape_of_the_paper() -> None:
    rows, schema = pcor.demo.salaries(), pcor.demo.salary_schema()
    assert rows.num_rows == 51_000
    assert [len(a.values) for a in schema.attributes] == [9, 8, 8]


def test_the_salaries_are_the_same_on_every_machine() -> None:
    rows = pcor.demo.salaries()
    text = "\n".join(
        ",".join(map(str, row)) for row in zip(*rows.to_pydict().values(), strict=True)
    )
    assert hashlib.sha256(text.encode()).hexdigest() == FINGERPRINT


def test_the_upper_tail_is_heavy(table: pcor.Table) -> None:
    values, counts = table.distribution(pcor.Context.full(table.schema).mask)
    half = values[counts.cumsum().searchsorted(counts.sum() // 2)]
    assert values[-1] > 5 * half


@pytest.mark.parametrize("planted", PLANTED, ids=lambda p: str(p.record))
@pytest.mark.parametrize("detector", ["lof", "grubbs"])
def test_planted_records_are_hidden_outliers(
    table: pcor.Table, planted: Planted, detector: str
) -> None:
    everyone = pcor.Context.full(table.schema)
    assert table.record(planted.record).value == planted.salary
    assert pcor.is_outlier(table, planted.record, planted.context, detector)
    assert not pcor.is_outlier(table, planted.record, everyone, detector)


def test_the_ten_people_are_those_of_the_papers_table_1() -> None:
    rows = pcor.demo.ten_people().to_pylist()
    eighth = {key: rows[7][key] for key in ("record", "job_title", "city", "district")}
    assert len(rows) == 10
    assert eighth == {
        "record": 8,
        "job_title": "Lawyer",
        "city": "Ottawa",
        "district": "Diplomatic",
    }


def test_the_papers_worked_context_covers_ceos_and_lawyers_in_historic_toronto() -> None:
    context = pcor.Context.from_bits(pcor.demo.ten_people_schema(), "<101001010>")
    assert context.values == {
        "job_title": ["CEO", "Lawyer"],
        "city": ["Toronto"],
        "district": ["Historic"],
    }


FINGERPRINT = "9752d15e127c050127caa95eedc6656b37799e8eb018e9daebdf2d29a519130b"
