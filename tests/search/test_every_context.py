"""Every context as the detector itself judges it."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import pcor
from pcor.search.every_context import EveryContext
from tests.helpers.every_context import large, one_by_one, table_of
from tests.helpers.family_tables import TWINS, family_table

# -- every context is judged as the detector judges it --------------------------------------------


def far_from_most(rising: NDArray[np.float64]) -> NDArray[np.bool_]:
    return np.abs(rising - np.median(rising)) > 5


DETECTORS: list[pcor.Detector] = [
    *(pcor.LOF(k=k, threshold=1.2, min_population=k) for k in (1, 2, 3, 4, 5, 7, 10**9)),
    pcor.LOF(k=8, threshold=0.9, min_population=12),
    pcor.LOF(k=3, ties="all", min_population=4),
    *(pcor.Grubbs(alpha=0.2, tail=t, min_population=3) for t in ("both", "upper", "lower")),
    pcor.Histogram(rare=0.2, min_population=1),
    pcor.Histogram(rare=0.123456789012, include_maximum=False, min_population=5),
    pcor.Tail(share=0.2, min_population=3),
    pcor.Neighbourhood(2.0, share=0.2, min_population=3),
    pcor.RareBin([0, 5], share=0.3, min_population=3),
    pcor.Estimator(far_from_most, min_population=2),
]
SHAPES = [(1,), (5,), (2, 3), (3, 3), (1, 2, 1, 2), (2, 3, 2)]

# Piles of equal values, near ties, numbers of very different size, and plain ones.
METRICS = (
    st.integers(0, 3).map(float),
    st.integers(0, 40).map(lambda i: i / 10),
    st.sampled_from([0.0, 1e-9, 1.0, 1.0 + 1e-9, 7.0, 1e6, -1e12, 1e90]),
    st.floats(-1e6, 1e6),
)


@st.composite
def tables(draw: st.DrawFn) -> pcor.Table:
    shape = draw(st.sampled_from(SHAPES))
    row = st.tuples(*(st.integers(0, size - 1) for size in shape))
    rows = draw(st.lists(row, min_size=1, max_size=45))
    metric = st.lists(draw(st.sampled_from(METRICS)), min_size=len(rows), max_size=len(rows))
    return table_of(shape, rows, draw(metric))


def judged(table: pcor.Table, detector: pcor.Detector) -> dict[int, tuple[int, list[Any]]]:
    """Return population and sorted outliers by mask, from the library's pass over all contexts."""
    every = EveryContext(table, detector)
    found = every.judge(0, every.size)
    keys = every.keys.take(pa.array(found.places)).to_pylist()
    starts = [0, *found.ends.tolist()]
    masks = [int.from_bytes(m.tobytes(), "little") for m in every.contexts.words(0, every.size)]
    return {
        mask: (int(n), sorted(keys[starts[i] : starts[i + 1]]))
        for i, (mask, n) in enumerate(zip(masks, found.populations, strict=True))
    }


@pytest.mark.parametrize(
    "detector", DETECTORS, ids=[f"{d.name} {i}" for i, d in enumerate(DETECTORS)]
)
@settings(max_examples=12)
@given(table=tables())
def test_every_context_has_the_outliers_that_asking_for_it_alone_gives(
    detector: pcor.Detector, table: pcor.Table
) -> None:
    assert judged(table, detector) == one_by_one(table, detector)


@pytest.mark.parametrize(
    "metric",
    [
        lambda numbers: numbers.lognormvariate(10, 0.5),
        lambda numbers: float(round(numbers.gauss(0, 300))),
        lambda numbers: float(min(numbers.randrange(90), 60)),
    ],
    ids=["no ties", "some ties", "nearly all ties"],
)
@pytest.mark.parametrize(
    "detector",
    [pcor.LOF(), pcor.LOF(k=37, threshold=1.1), pcor.Grubbs(), pcor.Histogram()],
    ids=str,
)
def test_populations_of_thousands_are_judged_alike(
    detector: pcor.Detector, metric: Callable[[random.Random], float]
) -> None:
    table = large(metric)
    assert judged(table, detector) == one_by_one(table, detector)


def test_a_threshold_that_a_factor_equals_is_not_exceeded() -> None:
    table = large(lambda numbers: float(round(numbers.gauss(0, 40))), 400)
    values, counts = table.distribution((1 << 5) - 1)
    factors = pcor.LOF(k=5).factors(values, counts)
    some = sorted(factors[factors > 1.05].tolist())[::7]
    assert len(some) > 5
    for factor in some:
        detector = pcor.LOF(k=5, threshold=factor)
        assert judged(table, detector) == one_by_one(table, detector)


def by_grubbs_kernel(
    table: pcor.Table, critical: NDArray[np.float64]
) -> tuple[list[float], list[bool]]:
    """Return the outliers of all contexts by metric, and which contexts are unsure."""
    from pcor._kernels.grubbs_all import grubbs_in_contexts

    every = EveryContext(table, pcor.Grubbs())
    counts = np.empty((2, every.size), dtype=np.int64)
    rows = every._sorted
    contexts = every.contexts.part(0, every.size)
    columns = (*contexts, rows.codes, rows.values, critical)
    places, unsure = grubbs_in_contexts(*columns, (0, 0.0, 3), *counts)
    return rows.values[places].tolist(), unsure.tolist()


def test_where_grubbs_kernel_is_unsure_the_rule_decides() -> None:
    # In the first context both extremes are equally far: which goes first is left to rounding.
    rows = [(i % 2,) for i in range(60)]
    table = table_of((2,), rows, [-50.0, 52.0, 50.0, -49.0, *[0.0, 1.0] * 28])
    assert by_grubbs_kernel(table, np.full(61, 3.0))[1] == [True, False, False]
    detector = pcor.Grubbs(min_population=3)
    assert judged(table, detector) == one_by_one(table, detector)


@pytest.mark.parametrize("sign", [1, -1])
def test_where_one_of_equal_extremes_is_removed_all_are_outliers(sign: int) -> None:
    # Real critical values fall with the rows left; here the second removal is made impossible.
    critical = np.full(31, 1e9)
    critical[30] = 2.0
    table = table_of((1,), [(0,)] * 30, [sign * x for x in [*range(28), 90.0, 90.0]])
    assert by_grubbs_kernel(table, critical) == ([sign * 90.0, sign * 90.0], [False])


def test_another_rule_under_a_known_class_is_asked_itself() -> None:
    class Nobody(pcor.LOF):
        def verdicts(self, values: Any, counts: Any) -> Any:
            del counts
            return np.zeros(len(values), dtype=bool)

    table = large(lambda numbers: numbers.lognormvariate(10, 1), 300)
    assert any(outliers for _, outliers in judged(table, pcor.LOF(k=5)).values())
    assert not any(outliers for _, outliers in judged(table, Nobody(k=5)).values())


# -- families -------------------------------------------------------------------------------------

# By a kernel for all records, by the rule itself, and by counting.
IN_FAMILIES = [pcor.LOF(k=3, min_population=5), *(TWINS[n][0] for n in ("lof", "grubbs", "tail"))]
IN_FAMILIES.append(TWINS["histogram"][0])


@pytest.mark.parametrize("detector", IN_FAMILIES, ids=str)
def test_a_context_of_the_family_lists_a_record_if_and_only_if_it_is_in_its_coe(
    detector: pcor.Detector,
) -> None:
    """Of every record of random tables, families and limits: the same contexts and populations."""
    valid = 0
    for case in (family_table(seed, rows=24) for seed in range(25)):
        found = judged(case.table, detector)
        for record in range(len(case.codes)):
            coe = pcor.matching_contexts(case.table, record, detector)
            pairs = zip((c.mask for c in coe.contexts), coe.populations.tolist(), strict=True)
            listed = {mask: n for mask, (n, outliers) in found.items() if record in outliers}
            assert listed == dict(pairs)
            valid += len(listed)
    assert valid > 100


def test_a_value_can_be_one_of_hundreds_where_the_family_has_few_sets() -> None:
    """Beyond the bits of a word, and of a byte."""
    domain = {"a": {"values": list(range(300)), "contexts": "one"}, "b": ["x", "y"]}
    schema = pcor.Schema(metric="pay", attributes=domain)
    rows = {"a": [i % 3 * 149 for i in range(60)], "b": ["x", "y"] * 30}
    table = pcor.Table(pa.table(rows | {"pay": [float(i % 7) for i in range(59)] + [90.0]}), schema)
    detector = pcor.Grubbs(min_population=3)
    found = judged(table, detector)
    assert len(found) == 301 * 3
    coe = pcor.matching_contexts(table, 59, detector)
    assert {mask for mask, (_, outliers) in found.items() if 59 in outliers} == {
        context.mask for context in coe.contexts
    }
    assert len(coe) > 1
