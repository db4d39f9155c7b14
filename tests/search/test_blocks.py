"""Blocks settled by their sums: the verdicts of the detector, on every context.

``tests.kernels.test_every_context`` compares blocks with ``is_outlier``; here they are compared
with the engine that asks for each context, on larger tables and on families.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pcor
from pcor._kernels import grubbs_lattice
from pcor._kernels.grubbs import NO, YES
from pcor.detectors import grubbs_blocks
from pcor.detectors.context_block import ContextBlock
from pcor.detectors.grubbs import critical_values, share_tables
from pcor.search.blocks import block, block_size, inner_chains
from pcor.search.validity import Validity
from tests.helpers.family_tables import family_table
from tests.helpers.kernel_cases import (
    ALPHAS,
    EXAMPLES,
    METRICS,
    SMALL,
    Case,
    cases,
    grubbs,
    histograms,
)

SHAPES = [*SMALL, (6, 6), (4, 4, 4), (11,), (3, 3, 3, 3), (2,) * 10]

counting = st.builds(
    pcor.Tail, st.sampled_from([0.05, 0.3]), tail=st.sampled_from(["upper", "lower"])
) | st.builds(pcor.Neighbourhood, st.sampled_from([0, 2, 30]), share=st.sampled_from([0.05, 0.3]))
detectors = grubbs | grubbs | histograms | counting


@pytest.fixture(params=[64, 1 << 40], ids=["rounds while they pay", "all rounds"])
def rounds(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Small blocks are settled by the first rounds: once every round that there is."""
    monkeypatch.setattr(grubbs_blocks, "_FEW_OF", request.param)


def parts(validity: Validity) -> Iterator[ContextBlock]:
    space = validity.record.space
    size = block_size(space)
    radices = np.array(space.radices[: inner_chains(space)], dtype=np.int64)
    for first in range(0, space.size, size):
        yield ContextBlock(space, first, size, radices, validity.table.cells)


def check(validity: Validity) -> None:
    """Compare blocks with contexts that are asked for one by one, before anything is settled."""
    assert validity.block_judge is not None
    for part in parts(validity):
        found = block(validity, part.space, part.first)
        assert found.valid.tolist() == validity.of_words(part.words).tolist()
        assert np.array_equal(found.populations, validity.table.cells.populations(part.words))


usual = settings(max_examples=EXAMPLES, deadline=None)
in_rounds = pytest.mark.usefixtures("rounds")


@in_rounds
@usual
@given(cases(SHAPES, most=400), detectors)
def test_blocks_have_the_verdicts_of_their_contexts(case: Case, detector: pcor.Detector) -> None:
    """Ties, equal values, numbers far apart, outliers that hide one another, on either side."""
    check(case.validity(detector))


@in_rounds
@usual
@given(st.integers(0, 2**32 - 1), detectors, st.sampled_from(sorted(METRICS)))
def test_blocks_of_a_family_have_the_verdicts_of_their_contexts(
    seed: int, detector: pcor.Detector, metric: str
) -> None:
    """Ranges, groups and single values: chains of several steps; limits leave some out."""
    some = family_table(seed, largest=5, rows=150)
    values = METRICS[metric](np.random.default_rng(seed), len(some.metric))
    rows = some.frame.set_column(
        some.frame.schema.get_field_index("metric"), "metric", pa.array(values, pa.float64())
    )
    table = pcor.Table(rows, some.schema)
    check(Validity(table, table.record(int(np.argmax(np.abs(values)))), detector))


def pay_table(sign: int) -> pcor.Table:
    """Return some 2^15 contexts of pay with a long tail on one side, and a few far out on it."""
    rng = np.random.default_rng(7)
    sizes = {"a": 6, "b": 6, "c": 6}
    columns = {name: rng.integers(0, size, 3000) for name, size in sizes.items()}
    pay = np.round(100 + rng.gamma(2.0, 12.0 + 2.0 * columns["a"]), 2)
    pay[:6] = [290.0, 230.0, 400.0, 900.0, 101.0, 150.0]
    schema = pcor.Schema(
        metric="pay", attributes={name: list(range(size)) for name, size in sizes.items()}
    )
    return pcor.Table(pa.table(columns | {"pay": sign * pay}), schema)


@in_rounds
@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("record", range(6))
def test_nearly_all_contexts_are_settled_by_sums(record: int, sign: int) -> None:
    table = pay_table(sign)
    validity = Validity(table, table.record(record), pcor.Grubbs())
    judge = validity.block_judge
    assert judge is not None
    check(validity)
    sizes = [(len(judge(part).unsure), part.size) for part in parts(validity)]
    assert sum(unsure for unsure, _ in sizes) * 50 < sum(size for _, size in sizes)


@in_rounds
@pytest.mark.parametrize(("sign", "mark"), [(1, "LEAP_DOWN"), (-1, "LEAP_UP")])
def test_what_hides_a_record_is_removed_on_either_side(
    sign: int, mark: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The record is one of those that have to wait for others; not all of them are outliers."""
    table, settled = pay_table(sign), []
    leap = grubbs_lattice.settle_in_leaps

    def watched(masks, totals, beyond, what, critical, out):  # type: ignore[no-untyped-def]
        marked = np.flatnonzero(out == what)
        leap(masks, totals, beyond, what, critical, out)
        settled.extend([(what, int(verdict)) for verdict in out[marked]])

    monkeypatch.setattr(grubbs_lattice, "settle_in_leaps", watched)
    for record in (0, 1):
        check(Validity(table, table.record(record), pcor.Grubbs()))
    assert {what for what, _ in settled} == {getattr(grubbs_lattice, mark)}
    assert {verdict for _, verdict in settled} >= {NO, YES}


@in_rounds
@pytest.mark.parametrize("sign", [1, -1])
def test_a_record_that_the_other_end_hides_is_found_once_that_is_removed(sign: int) -> None:
    """30 is no outlier while -40 is there; but -40 is one."""
    pay = [30.0, -40.0, *[float(number) for number in range(10)] * 3]
    job = [0, 1, *[0] * 30]
    schema = pcor.Schema(metric="pay", attributes={"job": [0, 1]})
    table = pcor.Table(pa.table({"job": job, "pay": [sign * one for one in pay]}), schema)
    one_test = pcor.Grubbs(tail="upper" if sign > 0 else "lower")
    for detector, expected in ((pcor.Grubbs(), [True, True]), (one_test, [True, False])):
        validity = Validity(table, table.record(0), detector)
        assert block(validity, validity.record.space, 0).valid.tolist() == expected
        check(validity)


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("tail", ["both", "upper", "lower"])
def test_shares_are_critical_values_of_the_share(alpha: float, tail: str) -> None:
    """A point of G standard deviations among n rows has the share ``G*G*n/(G*G*n + n - 1)``."""
    critical, most, shares, least = share_tables(3000, alpha, tail)
    for n in (3, 4, 21, 500, 3000):
        g = critical_values(n, alpha, tail)[n]
        rows = np.zeros(n)
        # One row at 1 and the others so that the first lies g deviations from the mean.
        rows[0] = 1.0
        rows[1:] = np.resize([1.0, -1.0], n - 1)
        rows[1:] -= rows[1:].mean()
        wanted = (n - 1) / n / g  # of the deviation, in units of the distance of row 0 from 0
        left = (wanted**2 * (n - 1) - (n - 1) / n) / np.sum(rows[1:] ** 2)
        if left < 0:
            continue  # no sample has a point that far out
        rows[1:] *= np.sqrt(left)
        assert (rows[0] - rows.mean()) / rows.std(ddof=1) == pytest.approx(g)
        distances = rows[0] - rows
        assert shares[n] == pytest.approx(distances.sum() ** 2 / n / (distances**2).sum())
    assert np.array_equal(most, np.maximum.accumulate(shares))
    assert np.array_equal(least[::-1], np.minimum.accumulate(critical[::-1]))


@usual
@given(cases(SHAPES))
def test_extremes_of_a_block_are_those_of_the_rows(case: Case) -> None:
    cells = case.cells
    validity = case.validity(pcor.Histogram())
    for part in parts(validity):
        lows, highs = part.extremes(*cells.cell_extremes(cells.values))
        for place in range(0, part.size, max(1, part.size // 16)):
            covered = case.covered(part.space.mask(part.first + place))
            metric = [case.metric[row] for row in covered]
            assert (lows[place], highs[place]) == (min(metric), max(metric))


def test_a_rule_of_somebody_else_is_asked_for_each_context() -> None:
    class Mine(pcor.Grubbs):
        name = "mine"

    class Other(Validity):
        pass

    table = pay_table(1)
    assert Validity(table, table.record(0), Mine()).block_judge is None
    assert Other(table, table.record(0), pcor.Grubbs()).block_judge is None
