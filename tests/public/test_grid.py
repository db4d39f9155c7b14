"""The grid of a metric: declared as a whole, and every number belongs to its nearest point."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pcor
from pcor.errors import SchemaError
from pcor.public.grid import MetricGrid

ATTRIBUTES = {"job": ["cook", "clerk"]}


def schema(**grid: Any) -> pcor.Schema:
    return pcor.Schema({"column": "pay", **grid}, ATTRIBUTES)


def test_a_grid_is_part_of_a_schema_and_of_its_file() -> None:
    declared = schema(low=0, high=1, step=0.1)
    assert declared.metric.grid == MetricGrid(0, 1, 0.1)
    assert pcor.Schema.from_dict(declared.to_dict()) == declared
    assert "low = 0\nhigh = 1\nstep = 0.1\n" in declared.to_toml()
    assert [declared.metric.grid.point(i) for i in (0, 3, 10)] == [0, 0.3, 1]


def test_a_schema_without_one_is_as_it_was() -> None:
    assert pcor.Schema("pay", ATTRIBUTES).to_dict()["metric"] == {
        "column": "pay",
        "missing": "error",
    }


@pytest.mark.parametrize(
    ("grid", "said"),
    [
        ({"low": 0, "high": 10}, "has no step: a grid needs low, high and step"),
        ({"step": 1}, "has no low"),
        ({"low": "0", "high": 10, "step": 1}, "low must be a number"),
        ({"low": 0, "high": float("inf"), "step": 1}, "high must be a number"),
        ({"low": 0, "high": 10, "step": True}, "step must be a number"),
        ({"low": 10, "high": 0, "step": 1}, "low must be below high"),
        ({"low": 0, "high": 10, "step": 0}, "step above 0"),
        ({"low": 0, "high": 10, "step": 3}, "in whole steps"),
        ({"low": 0, "high": 10**6, "step": 1}, "1,000,001 points, and at most 100,000"),
    ],
)
def test_what_is_no_grid_is_refused(grid: dict[str, Any], said: str) -> None:
    with pytest.raises(SchemaError, match=said):
        schema(**grid)


@given(st.lists(st.floats(-3, 15), min_size=1), st.sampled_from([0.1, 0.25, 1, 2.5]))
def test_every_number_belongs_to_a_nearest_point_and_their_order_is_kept(
    values: list[float], step: float
) -> None:
    grid = MetricGrid(0, 10, step)
    given_ = np.sort(values)
    places = grid.places(given_)
    assert (np.diff(places) >= 0).all()
    assert 0 <= places[0] <= places[-1] < grid.size
    for value, place in zip(given_, places, strict=True):
        away = abs(Fraction(float(value)) - Fraction(repr(grid.point(int(place)))))
        # Nearest but for the rounding of a few operations.
        assert away <= Fraction(repr(step)) / 2 + Fraction(1, 10**12) or not 0 <= value <= 10
