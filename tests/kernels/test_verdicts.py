"""Each compiled rule against its slow, obvious twin: the same answers, bit for bit.

No comparison here has a tolerance but those with other people's programs, which are left out where
rounding or a tie decides.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import pcor
from pcor.rows.table import Record
from pcor.search.validity import Validity
from tests.helpers import naive
from tests.helpers.kernel_cases import Case, cases, grubbs, histograms, lofs, often
from tests.helpers.waiting import DEADLINE

# -- verdicts -------------------------------------------------------------------------------------


@often
@given(cases(), lofs())
def test_the_lof_kernel_agrees_with_the_rule(case: Case, detector: pcor.LOF) -> None:
    found = detector.batch(case.cells, case.value, case.words)
    assert found.tolist() == case.verdicts(detector)


@often
@given(cases(), lofs(), st.data())
def test_the_lof_kernel_agrees_where_the_factor_is_the_threshold(
    case: Case, detector: pcor.LOF, data: st.DataObject
) -> None:
    for exact in case.at_factor(detector, data.draw(st.sampled_from(case.masks))):
        found = exact.batch(case.cells, case.value, case.words)
        assert found.tolist() == case.verdicts(exact)


@often
@given(cases(), grubbs)
def test_the_grubbs_kernel_agrees_with_the_rule_when_it_knows_no_tails(
    case: Case, detector: pcor.Grubbs
) -> None:
    found = detector.batch(case.cells, case.value, case.words)
    assert found.tolist() == case.verdicts(detector)


@often
@given(cases(), grubbs)
def test_the_grubbs_kernel_agrees_with_the_rule_when_it_knows_the_tails(
    case: Case, detector: pcor.Grubbs
) -> None:
    found = case.validity(detector).judge(case.cells, case.words)
    assert found.tolist() == case.verdicts(detector)


@often
@given(cases(), grubbs, st.sampled_from([1, -1]), st.data())
def test_grubbs_after_a_changed_row_agrees_with_the_rule_wherever_it_is_sure(
    case: Case, detector: pcor.Grubbs, rows: int, data: st.DataObject
) -> None:
    place = data.draw(st.integers(0, len(case.codes) - 1))
    if rows < 0 and place == case.row:
        return
    x = case.metric[place] if rows < 0 else data.draw(st.sampled_from([*case.metric, 0.5, 1e7]))
    masks = [mask for mask in case.masks if case.required[place] & ~mask == 0]
    words = case.table.words(masks)
    moments = case.cells.several_totals(words, detector.cell_moments(case.cells, case.value))
    quick = detector.changed_verdicts(case.cells, case.value, words, moments, np.array([x]), rows)
    assert quick is not None
    codes, metric = list(case.codes), list(case.metric)
    if rows < 0:
        del codes[place], metric[place]
    else:
        codes.append(codes[place])
        metric.append(x)
    row = case.row - (rows < 0 and place < case.row)
    expected = np.array(
        replace(case, codes=codes, metric=metric, row=row, masks=masks).verdicts(detector)
    )
    verdicts, sure = quick[0][0], quick[1][0]
    assert verdicts[sure].tolist() == expected[sure].tolist()


def test_grubbs_after_a_changed_row_is_mostly_sure() -> None:
    sure: Counter[bool] = Counter()

    @settings(max_examples=150, deadline=None, derandomize=True, database=None)
    @given(cases(), grubbs)
    def count(case: Case, detector: pcor.Grubbs) -> None:
        moments = case.cells.several_totals(
            case.words, detector.cell_moments(case.cells, case.value)
        )
        metrics = np.array([case.value])
        quick = detector.changed_verdicts(case.cells, case.value, case.words, moments, metrics, 1)
        assert quick is not None
        sure.update(quick[1].ravel().tolist())

    count()
    assert sure[True] > sure[False]  # otherwise every audit is as slow as without it


@often
@given(cases(), histograms)
def test_the_histogram_kernel_agrees_with_the_rule(case: Case, detector: pcor.Histogram) -> None:
    found = detector.batch(case.cells, case.value, case.words)
    assert found.tolist() == case.verdicts(detector)


@pytest.mark.parametrize("tail", ["both", "upper"])
def test_grubbs_finds_an_outlier_though_the_centre_is_far_away(tail: str) -> None:
    # The centre is about 3e18, from which 0, 1 and 50 look the same.
    codes: list[tuple[int, ...]] = [*[(0,)] * 31, (1,)]
    case = Case((3,), codes, [0.0, 1.0] * 15 + [50.0, 1e20], 30, [0b001, 0b011, 0b101, 0b111])
    detector = pcor.Grubbs(tail=tail)
    assert case.verdicts(detector) == [True] * 4
    assert case.validity(detector)(case.masks).tolist() == [True] * 4
    assert detector.batch(case.cells, case.value, case.words).tolist() == [True] * 4


@often
@given(st.lists(st.integers(0, 3), min_size=3, max_size=9), st.integers(0, 8), grubbs)
def test_grubbs_agrees_in_the_smallest_populations(
    numbers: list[int], row: int, detector: pcor.Grubbs
) -> None:
    # Here the critical value can be so low that a removed extreme makes the deviation grow.
    case = Case((1,), [(0,)] * len(numbers), [float(x) for x in numbers], row % len(numbers), [1])
    detector = replace(detector, min_population=1)
    expected = case.verdicts(detector)
    assert case.validity(detector)(case.masks).tolist() == expected
    assert detector.batch(case.cells, case.value, case.words).tolist() == expected


@pytest.mark.parametrize("rules", [lofs(), grubbs, histograms], ids=["lof", "grubbs", "histogram"])
def test_the_comparisons_meet_both_answers(rules: st.SearchStrategy[pcor.Detector]) -> None:
    tables: Counter[bool] = Counter()

    # Always the same draws: how often something is met is no property that must hold for all.
    @settings(max_examples=150, deadline=None, derandomize=True, database=None)
    @given(cases(), rules)
    def count(case: Case, detector: pcor.Detector) -> None:
        tables.update(set(case.validity(detector)(case.masks).tolist()))

    count()
    # In six free runs of 150 tables each, 24 to 55 had a yes for LOF, 13 to 25 for Grubbs, 18 to 33
    # for Histogram.
    assert tables[True] >= 8
    assert tables[False] >= 75


# -- real data ------------------------------------------------------------------------------------


def data_folder() -> Path:
    folder = os.environ.get("PCOR_DATA")
    if folder is None:
        pytest.skip("PCOR_DATA is not set: it names the folder with the salary tables")
    return Path(folder)


@pytest.fixture(scope="module")
def salaries() -> pcor.Table:
    data = data_folder()
    return pcor.Table(data / "salary_51k.parquet", data / "salary_51k.toml")


@pytest.fixture(scope="module")
def authors_salaries() -> pcor.Table:
    data = data_folder()
    return pcor.Table(data / "authors_salary_11k.parquet", data / "authors_salary_11k.toml")


@dataclass(frozen=True)
class Pair:
    """A record of a table and a context that covers it."""

    table: pcor.Table
    record: Record
    mask: int

    def verdict(self, detector: pcor.Detector) -> bool:
        return bool(Validity(self.table, self.record, detector)([self.mask])[0])

    @property
    def value(self) -> float:
        return self.record.value

    @cached_property
    def population(self) -> NDArray[np.float64]:
        """The metric of the rows in the context, rising: by numpy, not by the kernels."""
        rows = self.table.covered_cells(self.mask)[self.table.rows.cell]
        return np.sort(self.table.rows.metric[rows])


def random_pairs(table: pcor.Table, seed: int, shares: Sequence[float]) -> Iterator[Pair]:
    """Yield pairs without end: records by turns any and one of the 3,000 highest paid."""
    rng = np.random.default_rng(seed)
    order = np.argsort(table.rows.metric, kind="stable")
    while True:
        for rows in (order, order[-3000:]):
            record = table.record(int(rng.choice(rows)))
            steps = record.space.steps
            chosen = np.flatnonzero(rng.random(len(steps)) < rng.choice(shares))
            mask = record.space.mask(sum(1 << int(place) for place in chosen))
            yield Pair(table, record, mask)


def has_ties_at_a_border(population: NDArray[np.float64], value: float, k: int) -> bool:
    """Tell whether V, or one of its k neighbours, has more than k records within its k-distance.

    If not, each of these neighbourhoods is one certain set, and the densities of V and of its
    neighbours, which make its factor, need nothing else: k-distances do not depend on ties. What
    differs by less than a thousandth of a cent counts as equally far.
    """

    def neighbours(place: int) -> list[int] | None:
        distances = np.abs(population - population[place])
        distances[place] = np.inf
        reach = np.partition(distances, k - 1)[k - 1]
        near = np.flatnonzero(distances <= reach + 1e-5)
        return None if len(near) > k else [int(o) for o in near]

    own = neighbours(int(np.searchsorted(population, value)))
    return own is None or any(neighbours(o) is None for o in own)


# Of piles elsewhere in the population: V's neighbourhood has none where the two are compared.
@pytest.mark.filterwarnings("ignore:Duplicate values are leading to incorrect results")
def test_lof_on_salaries_is_that_of_scikit_learn_without_ties_at_the_borders(
    salaries: pcor.Table,
) -> None:
    detector = pcor.LOF(k=20, threshold=1.5)
    compared: list[bool] = []
    for pair in islice(random_pairs(salaries, 0, [0.2, 0.3, 0.5]), 500):
        population, verdict = pair.population, pair.verdict(detector)
        if len(population) < detector.min_population:
            assert not verdict
            continue
        if has_ties_at_a_border(population, pair.value, detector.k):
            continue
        answers = naive.sklearn_lof(k=20, threshold=1.5)(population.tolist())
        answer = answers[int(np.searchsorted(population, pair.value))]
        assert answer is None or verdict == answer
        compared.append(verdict)
    assert len(compared) >= 250  # usual are 395, of which 22 are outliers
    assert 3 <= sum(compared) <= len(compared) - 100


TWINS: list[tuple[pcor.Detector, naive.Rule, range]] = [
    (pcor.Grubbs(tail=tail), naive.grubbs(alpha=0.05, tail=tail), range(21, 500))
    for tail in ("both", "upper", "lower")
] + [
    (
        pcor.Histogram(include_maximum=included),
        naive.exact_histogram(rare="0.0025", include_maximum=included),
        range(400, 650),  # no bin of fewer than 400 rows can be rare
    )
    for included in (True, False)
]


@pytest.mark.parametrize(("detector", "twin", "sizes"), TWINS)
def test_grubbs_and_histogram_on_salaries_are_those_of_their_twins(
    salaries: pcor.Table, detector: pcor.Detector, twin: naive.Rule, sizes: range
) -> None:
    # 300 pairs for each detector; the twins are too slow for large populations.
    wanted = 100 if detector.name == "grubbs" else 150
    compared: list[bool] = []
    for pair in random_pairs(salaries, 1, [0.02, 0.1, 0.2]):
        if len(pair.population) not in sizes:
            continue
        verdict = pair.verdict(detector)
        answer = twin(pair.population.tolist())[int(np.searchsorted(pair.population, pair.value))]
        assert answer is None or verdict == answer
        compared.append(verdict)
        if len(compared) == wanted:
            break
    assert sum(compared) >= (0 if detector == pcor.Grubbs(tail="lower") else 5)


@pytest.mark.parametrize("name", ["lof", "grubbs", "histogram"])
@pytest.mark.parametrize("rank", [0, 2000])
def test_coe_on_the_authors_salaries_is_that_of_contexts_one_by_one(
    authors_salaries: pcor.Table, name: str, rank: int
) -> None:
    table = authors_salaries
    detector = pcor.detectors.get_detector(name)
    values, _ = table.distribution((1 << table.schema.width) - 1)
    key = table.keys_in((1 << table.schema.width) - 1, values[[-1 - rank]])[0]
    record = table.record(key)
    # Whether it is valid and how many rows it has; two contexts in three cover the same cells as
    # another.
    judged: dict[bytes, tuple[bool, int]] = {}
    expected = {}
    for mask in record.space.masks():
        covered = table.covered_cells(mask).tobytes()
        if covered not in judged:
            population = Pair(table, record, mask).population
            values, counts = np.unique(population, return_counts=True)
            valid = detector.is_outlier(values, counts.astype(np.int64), record.value)
            judged[covered] = valid, len(population)
        valid, rows = judged[covered]
        if valid:
            expected[mask] = rows
    found = pcor.matching_contexts(table, key, detector)
    masks = [context.mask for context in found.contexts]
    assert dict(zip(masks, found.populations.tolist(), strict=True)) == expected
    assert len(masks) == len(expected)


# -- without the compiler -------------------------------------------------------------------------


ROOT = Path(__file__).parents[2]
PLACES = ("tests/kernels", "tests/rows/test_cells.py")
INTERPRETED = (
    "kernel_agrees",
    "plain_loops",
    "sums_over",
    "near_a_context",
    "inside_a_context",
    "all_neighbours",
    "nearest_rows",
    "of_sorting",
    "blocks_hold",
    "best_first_meets",
    "smallest_populations",
    "far_away",
)


@pytest.mark.skipif(
    os.environ.get("NUMBA_DISABLE_JIT") == "1", reason="this is the run without the compiler"
)
def test_the_kernels_are_right_as_plain_python_too() -> None:
    names = ["-k", " or ".join(INTERPRETED)]
    finished = subprocess.run(  # noqa: S603 (ourselves)
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *PLACES, *names],
        cwd=ROOT,
        env=os.environ | {"NUMBA_DISABLE_JIT": "1", "PCOR_KERNEL_EXAMPLES": "20"},
        capture_output=True,
        text=True,
        timeout=DEADLINE,
    )
    assert finished.returncode == 0, finished.stdout[-5000:]
    assert " passed" in finished.stdout


def test_a_value_below_the_mean_may_become_an_upper_outlier() -> None:
    """Three that are far out go first; only then the mean falls below the record."""
    metric = [0.0] * 14 + [10.0, 100.0, 100.0, 1000.0, 1e7, 1e8, 1e8]
    schema = pcor.Schema(metric="m", attributes={"a": ["x"]})
    table = pcor.Table(pa.table({"a": ["x"] * len(metric), "m": metric}), schema)
    for row in range(len(metric)):
        expected = bool(pcor.Grubbs().flags(metric)[row])
        assert pcor.is_outlier(table, row, "any a", "grubbs") == expected
    assert pcor.is_outlier(table, 14, "any a", "grubbs")
