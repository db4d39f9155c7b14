"""How rare it is to stand out: by the definition, in every family."""

from __future__ import annotations

import pyarrow as pa
import pytest

import pcor
from pcor.audit.calibration import CalibrationPoint, calibrate, families, stricter
from tests.helpers.family_tables import TWINS, family_table


def test_who_stands_out_is_who_has_a_valid_context() -> None:
    detector, twin = TWINS["grubbs"]
    seen = set()
    for seed in range(12):
        case = family_table(seed, rows=25)
        found = calibrate(case.table, rows=1000, detector=detector, exposed=0).points[0]
        valid = [case.of(row).coe(twin, detector.min_population) for row in range(len(case.metric))]
        if None in valid:
            continue
        assert found.rows == 25
        assert found.standing_out == sum(bool(one) for one in valid)
        seen.add(found.standing_out)
    assert len(seen) > 4


def test_a_smaller_family_has_fewer_who_stand_out_and_fewer_exposed() -> None:
    schema = pcor.Schema(
        metric="metric",
        attributes={"year": list(range(5)), "job": ["a", "b", "c"], "city": ["x", "y"]},
    )
    rows = {
        "year": [n % 5 for n in range(60)],
        "job": ["abc"[n % 3] for n in range(60)],
        "city": ["xy"[n % 2] for n in range(60)],
        "metric": [float((n * 7) % 23) if n % 11 else 60.0 + n for n in range(60)],
    }
    table = pcor.Table(pa.table(rows), schema)
    detector = pcor.Grubbs(alpha=0.3, min_population=4)
    points = calibrate(table, rows=60, detector=detector, exposed=60).points
    shares = [point.standing_out for point in points if point.detector == points[0].detector]
    assert [point.family for point in points] == [
        "as declared",
        "as declared",
        "ranges and own values",
        "the same, at most 2 clauses",
        "the same, at most 1 clause",
    ]
    assert shares == sorted(shares, reverse=True)
    assert shares[0] > shares[-1] > 0
    assert points[1].standing_out < points[0].standing_out  # the stricter rule


def test_families_are_named_once_and_keep_groups() -> None:
    schema = pcor.Schema(
        metric="m",
        attributes={"a": ["x", "y", "z"], "b": [1, 2]},
        groups={"a": {"first": ["x", "y"]}},
        contexts={"b": "range"},
    )
    found = dict(families(schema))
    assert list(found) == ["as declared", "any set of values", "the same, at most 1 clause"]
    assert found["the same, at most 1 clause"].attributes[0].groups
    assert found["any set of values"].most_contexts == 8


def test_wilsons_interval_is_that_of_the_formula() -> None:
    """Against scipy's."""
    from scipy.stats import binomtest

    for hits, rows in ((0, 20), (7, 20), (20, 20), (133, 200)):
        point = CalibrationPoint("", "", 1, rows, hits, None, None)
        expected = binomtest(hits, rows).proportion_ci(method="wilson")
        assert point.interval == pytest.approx((expected.low, expected.high), abs=1e-6)


def test_stricter_rules_have_a_higher_bar() -> None:
    assert stricter(pcor.LOF()) == [pcor.LOF(threshold=2.0)]
    assert stricter(pcor.Tail(0.05)) == [pcor.Tail(0.01)]
    assert stricter(pcor.Estimator(lambda values: values > 3)) == []


def test_a_family_that_is_too_large_is_left_out_and_the_others_are_looked_at() -> None:
    """Whoever declared too much learns what a smaller family would say."""
    names = {f"a{n}": ["x", "y", "z"] for n in range(20)}
    rows = {name: ["x", "y", "z"] * 20 for name in names}
    table = pcor.Table(
        pa.table(rows | {"m": [*map(float, range(59)), 900.0]}),
        pcor.Schema(metric="m", attributes=names),
    )
    found = pcor.calibrate(table, 5, "grubbs", exposed=0, limit=5000)
    assert found.left_out["as declared"] == 4**20
    assert "as declared" not in [point.family for point in found.points]
    assert found.points[0].detector != found.points[1].detector
    with pytest.raises(pcor.errors.TooLarge):
        pcor.calibrate(table, 5, "grubbs", limit=3)
