"""Rows that do not fit the schema: refused, left out, or counted as declared."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from pcor import Table
from pcor.errors import DomainError, MetricError, SourceError
from tests.helpers.pay_tables import PAY, counts, job_schema, people

UNFIT = ["CEO", "Astronaut", None]


def test_a_value_outside_the_domain_refuses_the_table() -> None:
    with pytest.raises(DomainError, match="column 'job' has a value outside its declared domain"):
        Table(people(job=["CEO", "Astronaut", "CEO"]), PAY)


def test_a_missing_value_refuses_the_table() -> None:
    with pytest.raises(DomainError, match=r"'job'.*outside its declared domain .or none at all"):
        Table(people(job=["CEO", None, "CEO"]), PAY)


def test_a_column_of_nothing_refuses_the_table() -> None:
    with pytest.raises(DomainError, match="column 'job'"):
        Table(people(job=pa.nulls(3)), PAY)


def test_drop_leaves_out_what_does_not_fit() -> None:
    schema = job_schema({"values": ["Lawyer", "CEO"], "outside": "drop"})
    assert counts(Table(people(job=UNFIT), schema)) == [0, 1]


def test_other_takes_what_does_not_fit() -> None:
    schema = job_schema({"values": ["CEO", "else"], "other": "else"})
    assert counts(Table(people(job=UNFIT), schema)) == [1, 2]


def test_not_a_number_in_a_numeric_attribute_is_no_value() -> None:
    schema = job_schema({"values": [1.5, 2.5], "outside": "drop"})
    assert counts(Table(people(job=[1.5, math.nan, 2.5]), schema)) == [1, 1]


def test_a_table_with_no_fitting_row_is_refused() -> None:
    schema = job_schema({"values": ["Astronaut"], "outside": "drop"})
    with pytest.raises(SourceError, match="no row of the table fits the schema"):
        Table(people(), schema)


@pytest.mark.parametrize(
    "pay", [[1.0, None, 3.0], [1.0, math.nan, 3.0], ["1", "", "3"], ["1", " ", "3"]]
)
def test_a_missing_metric_refuses_the_table(pay: list[Any]) -> None:
    with pytest.raises(MetricError, match="the metric 'pay' has rows with no value"):
        Table(people(pay=pay), PAY)


@pytest.mark.parametrize(
    "pay",
    [
        pa.array([1.0, None, 3.0]),
        pa.array([1.0, math.nan, 3.0]),
        pa.array(["1", "", "3"]),
        pa.array([1, None, 3]),
        pa.array([1.0, None, 3.0]).dictionary_encode(),
        pa.array([Decimal("1.00"), None, Decimal("3.00")]),
    ],
)
def test_drop_leaves_out_rows_without_a_metric(pay: pa.Array) -> None:
    table = Table(people(pay=pay), job_schema(["CEO", "Lawyer"], missing="drop"))
    assert [part.tolist() for part in table.distribution(3)] == [[1.0, 3.0], [1, 1]]


@pytest.mark.parametrize("missing", ["error", "drop"])
@pytest.mark.parametrize("value", [math.inf, -math.inf, 1.1e100])
def test_an_infinite_metric_refuses_the_table(value: float, missing: str) -> None:
    with pytest.raises(MetricError, match="the metric 'pay' has values that are infinite"):
        Table(people(pay=[1.0, value, 2.0]), job_schema(["CEO", "Lawyer"], missing=missing))


@pytest.mark.parametrize(
    "pay",
    [
        pa.array(["1", "two", "3"]),
        pa.array(["1", "NA", "3"]),
        pa.array([True, False, True]),
        pa.array([1, 2, 3], pa.timestamp("s")),
        pa.array([[1.0], [2.0], [3.0]]),
    ],
)
def test_a_metric_that_is_not_numeric_refuses_the_table(pay: pa.Array) -> None:
    with pytest.raises(MetricError, match="the metric 'pay' is not numeric"):
        Table(people(pay=pay), PAY)


@pytest.mark.parametrize("job", [[["CEO"]] * 3, [{"title": "CEO"}] * 3])
def test_an_attribute_of_nested_values_is_refused(job: list[Any]) -> None:
    with pytest.raises(SourceError, match="attribute 'job': its column does not hold single"):
        Table(people(job=job), PAY)


@pytest.mark.parametrize(
    ("cell", "expected"),
    [
        (17.999, None),
        (18, 0),
        (math.nextafter(25, 0), 0),
        (25, 1),
        (65, 2),
        (120, 2),
        (120.001, None),
        (math.nan, None),
        (None, None),
        (math.inf, None),
        (-math.inf, None),
        ("25", 1),
        ("", None),
    ],
)
def test_bins_take_their_lower_edge_and_the_last_both(cell: Any, expected: int | None) -> None:
    schema = job_schema({"edges": [18, 25, 65, 120], "outside": "drop"})
    kind = pa.string() if isinstance(cell, str) else pa.float64()
    rows = people(
        job=pa.array([cell, 18, 18] if kind == pa.float64() else [cell, "18", "18"], kind)
    )
    own = [int(place == expected) for place in range(3)]
    assert counts(Table(rows, schema)) == [own[0] + 2, *own[1:]]


def test_open_ended_bins_take_infinite_values() -> None:
    schema = job_schema({"edges": [-math.inf, 0, math.inf]})
    assert counts(Table(people(job=[-math.inf, 0.0, math.inf]), schema)) == [1, 2]


def test_bins_of_text_that_is_not_numeric_are_refused() -> None:
    with pytest.raises(SourceError, match="'job' has declared edges, but its column is not num"):
        Table(people(), job_schema({"edges": [0, 1]}))


def test_categories_may_be_missing_in_bins() -> None:
    schema = job_schema({"edges": [0, 1, 2], "outside": "drop"})
    assert counts(Table(people(job=pa.array([0.5, None, 1.5]).dictionary_encode()), schema)) == [
        1,
        1,
    ]
