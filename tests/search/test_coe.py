"""COE, the set of valid contexts: against brute force, against itself, against the authors."""

from __future__ import annotations

import math
import os
import random
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pcor
from pcor.errors import ContextError, RecordError, TooLarge
from tests.helpers import naive
from tests.helpers.brute_force import (
    MetricOf,
    Small,
    compare_with_brute_force,
    found_by_pcor,
    mirrored,
    off_the_edges,
    small_tables,
    with_ties,
    without_ties,
)

# -- acceptance: COE is that of brute force -------------------------------------------------------


def test_coe_of_lof_is_that_of_scikit_learn() -> None:
    compare_with_brute_force(
        without_ties,
        {
            pcor.LOF(k=k, threshold=threshold, min_population=least): naive.sklearn_lof(
                k=k, threshold=threshold
            )
            for k, threshold, least in [(2, 1.5, 5), (3, 1.3, 6), (5, 1.5, 10), (5, 1.1, 7)]
        },
    )


@pytest.mark.parametrize(
    ("tail", "metric_of"), [("upper", with_ties), ("both", with_ties), ("lower", mirrored)]
)
def test_coe_of_grubbs_is_that_of_scipy(tail: str, metric_of: MetricOf) -> None:
    compare_with_brute_force(
        metric_of,
        {
            pcor.Grubbs(alpha=alpha, tail=tail, min_population=least): naive.grubbs(
                alpha=alpha, tail=tail
            )
            for alpha, least in [(0.05, 10), (0.01, 5), (0.3, 3)]
        },
    )


def test_coe_of_histogram_is_that_of_numpy() -> None:
    compare_with_brute_force(
        off_the_edges,
        {
            pcor.Histogram(
                rare=float(rare), include_maximum=include, min_population=least
            ): naive.numpy_histogram(rare=rare, include_maximum=include)
            for rare, include, least in [
                ("0.1", True, 10),
                ("0.2", True, 5),
                ("0.3", False, 5),
                ("0.25", False, 21),
            ]
        },
    )


def test_coe_of_lof_with_ties_is_that_of_the_definition() -> None:
    compare_with_brute_force(
        with_ties,
        {
            pcor.LOF(k=k, ties=ties, min_population=6): naive.lof(k=k, threshold=1.5, ties=ties)
            for k in (3, 5)
            for ties in ("lower", "all")
        },
    )


def test_coe_of_histogram_with_ties_is_that_of_exact_fractions() -> None:
    compare_with_brute_force(
        with_ties,
        {
            pcor.Histogram(
                rare=float(rare), include_maximum=include, min_population=5
            ): naive.exact_histogram(rare=rare, include_maximum=include)
            for rare in ("0.15", "0.3")
            for include in (True, False)
        },
    )


# -- COE agrees with itself -----------------------------------------------------------------------


STANDS_OUT = naive.grubbs(alpha=0.05, tail="both")
DETECTORS = [
    pcor.LOF(k=3, min_population=6),
    pcor.Grubbs(min_population=5),
    pcor.Histogram(rare=0.1, min_population=5),
]


@settings(max_examples=60, deadline=None)
@given(small_tables(with_ties, STANDS_OUT), st.sampled_from(DETECTORS))
def test_is_outlier_and_outliers_and_matching_contexts_agree(
    small: Small, detector: pcor.Detector
) -> None:
    table, schema = small.table, small.schema
    matching = found_by_pcor(small, detector)
    for chosen in naive.contexts(small.domains):
        context = pcor.Context(schema, {f"a{i}": values for i, values in enumerate(chosen)})
        valid = naive.mask(small.domains, chosen) in matching
        assert pcor.is_outlier(table, small.record, context, detector) is valid
        assert (small.record in pcor.outliers(table, context, detector)) is valid


@settings(max_examples=60, deadline=None)
@given(small_tables(with_ties, STANDS_OUT), st.sampled_from(DETECTORS))
def test_a_record_outside_a_context_is_no_outlier_there_and_no_error(
    small: Small, detector: pcor.Detector
) -> None:
    table, schema = small.table, small.schema
    for chosen in naive.contexts(small.domains):
        if not naive.covers(chosen, small.rows[small.record]):
            context = pcor.Context(schema, {f"a{i}": values for i, values in enumerate(chosen)})
            assert not pcor.is_outlier(table, small.record, context, detector)
            assert small.record not in pcor.outliers(table, context, detector)


@settings(max_examples=40, deadline=None)
@given(
    small_tables(with_ties, STANDS_OUT),
    st.sampled_from(DETECTORS),
    st.randoms(use_true_random=False),
)
def test_the_order_of_rows_does_not_change_coe(
    small: Small, detector: pcor.Detector, order: random.Random
) -> None:
    places = list(range(len(small.rows)))
    order.shuffle(places)
    shuffled = Small(
        small.domains,
        [small.rows[i] for i in places],
        [small.metric[i] for i in places],
        places.index(small.record),
    )
    assert found_by_pcor(shuffled, detector) == found_by_pcor(small, detector)


@settings(max_examples=40, deadline=None)
@given(small_tables(with_ties, STANDS_OUT), st.sampled_from(DETECTORS))
def test_the_whole_table_is_where_outliers_looks_by_default(
    small: Small, detector: pcor.Detector
) -> None:
    table = small.table
    flags = detector.flags(small.metric)
    assert pcor.outliers(table, detector=detector) == np.flatnonzero(flags).tolist()


def test_a_record_is_no_outlier_by_the_outlying_value_of_somebody_else() -> None:
    # Rows 30 and 31 have the same metric in different cities; each is an outlier in its own.
    columns = {"pay": [*range(30), 10_000, 10_000, *range(30)], "city": ["a"] * 31 + ["b"] * 31}
    schema = pcor.Schema(metric="pay", attributes={"city": ["a", "b"]})
    table = pcor.Table(pa.table(columns), schema)
    a, b = (pcor.Context(schema, {"city": [city]}) for city in "ab")
    assert pcor.is_outlier(table, 30, a, "grubbs")
    assert not pcor.is_outlier(table, 30, b, "grubbs")
    assert pcor.outliers(table, a, "grubbs") == [30]
    assert pcor.outliers(table, b, "grubbs") == [31]
    assert b.mask not in [c.mask for c in pcor.matching_contexts(table, 30, "grubbs").contexts]


# -- the shape of the answer ----------------------------------------------------------------------


def one_far_row(attributes: dict[str, list[str]], chosen: dict[str, str]) -> pcor.Table:
    """Thirty rows, 0 to 29, and a last one far away; all have the chosen values."""
    columns: dict[str, Any] = {name: [value] * 31 for name, value in chosen.items()}
    columns["pay"] = [*range(30), 10_000]
    return pcor.Table(pa.table(columns), pcor.Schema(metric="pay", attributes=attributes))


def test_masks_have_bit_j_for_the_jth_value_in_schema_order() -> None:
    table = one_far_row(
        {"job": ["CEO", "Lawyer"], "city": ["Ottawa", "Rome", "Oslo"]},
        {"job": "Lawyer", "city": "Oslo"},
    )
    found = pcor.matching_contexts(table, 30, "grubbs")
    # Lawyer is value 1 and Oslo value 4; the others may come or not.
    expected = {0b10010 | free for free in (0, 1, 4, 5, 8, 9, 12, 13)}
    assert found.masks.dtype == np.uint64
    assert found.masks.shape == (8, 1)
    assert {int(mask) for mask in found.masks[:, 0]} == expected
    assert found.populations.dtype == np.int64
    assert found.populations.tolist() == [31] * 8
    assert {context.mask for context in found.contexts} == expected
    assert [c.mask for c in found.contexts] == [int(mask) for mask in found.masks[:, 0]]


@pytest.mark.parametrize("single", [60, 61, 62, 63, 64, 125, 126, 200])
def test_masks_have_as_many_words_as_the_schema_needs(single: int) -> None:
    # Two values, then many attributes with one value, then two more values: width = single + 4.
    names = [f"s{i}" for i in range(single)]
    attributes = {"first": ["a", "b"], **{name: ["x"] for name in names}, "last": ["c", "d"]}
    table = one_far_row(attributes, {"first": "b", **dict.fromkeys(names, "x"), "last": "c"})
    found = pcor.matching_contexts(table, 30, "grubbs", limit=4)
    width = single + 4
    always = sum(1 << j for j in range(1, single + 3))
    expected = {always | first | last << (width - 1) for first in (0, 1) for last in (0, 1)}
    assert found.masks.dtype == np.uint64
    assert found.masks.shape == (4, math.ceil(width / 64))
    words = [[int(word) for word in row] for row in found.masks]
    assert {sum(word << 64 * i for i, word in enumerate(row)) for row in words} == expected
    assert {context.mask for context in found.contexts} == expected
    assert found.populations.tolist() == [31] * 4


@pytest.mark.parametrize(("single", "words"), [(1, 1), (70, 2)])
def test_an_empty_coe_keeps_its_shape(single: int, words: int) -> None:
    names = [f"s{i}" for i in range(single)]
    table = one_far_row({name: ["x"] for name in names}, dict.fromkeys(names, "x"))
    found = pcor.matching_contexts(table, 15, "grubbs")
    assert found.masks.shape == (0, words)
    assert found.masks.dtype == np.uint64
    assert found.populations.shape == (0,)
    assert found.populations.dtype == np.int64
    assert len(found) == 0
    assert found.contexts == []


def test_a_space_beyond_the_limit_is_refused() -> None:
    attributes = {"a": ["0", "1", "2", "3"], "b": ["0", "1"]}  # 2^4 contexts contain a record
    table = one_far_row(attributes, {"a": "0", "b": "0"})
    assert len(pcor.matching_contexts(table, 30, "grubbs", limit=16)) == 16
    with pytest.raises(TooLarge, match=r"16 possible contexts, more than the limit of 15.*limit="):
        pcor.matching_contexts(table, 30, "grubbs", limit=15)


def test_a_large_space_is_refused_by_default_before_anything_is_enumerated() -> None:
    attributes = {"a": [str(i) for i in range(100)]}
    table = one_far_row(attributes, {"a": "7"})
    with pytest.raises(TooLarge, match="limit"):
        pcor.matching_contexts(table, 30, "grubbs")


def test_progress_ends_at_the_whole_space() -> None:
    attributes = {"a": [str(i) for i in range(12)]}  # 2^11 contexts: two batches
    table = one_far_row(attributes, {"a": "0"})
    calls: list[tuple[int, int]] = []
    pcor.matching_contexts(table, 30, "grubbs", progress=lambda done, of: calls.append((done, of)))
    assert calls[-1] == (2048, 2048)
    assert [done for done, _ in calls] == sorted({done for done, _ in calls})


def test_the_repr_of_coe_says_nothing_of_the_rows() -> None:
    table = one_far_row({"a": ["0", "1"]}, {"a": "0"})
    assert repr(pcor.matching_contexts(table, 30, "grubbs")) == (
        "<MatchingContexts of 'dataset': PRIVATE, for the owner only>"
    )


def test_a_population_below_the_smallest_has_no_outliers() -> None:
    table = one_far_row({"a": ["0", "1"]}, {"a": "0"})
    nobody = pcor.Context(table.schema, {"a": ["1"]})
    assert pcor.outliers(table, nobody, "grubbs") == []
    assert pcor.outliers(table, detector=pcor.Grubbs(min_population=31)) == [30]
    assert pcor.outliers(table, detector=pcor.Grubbs(min_population=32)) == []
    assert len(pcor.matching_contexts(table, 30, pcor.Grubbs(min_population=31))) == 2
    assert len(pcor.matching_contexts(table, 30, pcor.Grubbs(min_population=32))) == 0


def test_a_context_of_another_schema_is_refused() -> None:
    table = one_far_row({"a": ["0", "1"]}, {"a": "0"})
    other = pcor.Context.full(pcor.Schema(metric="pay", attributes={"b": ["0", "1"]}))
    with pytest.raises(ContextError, match="another schema"):
        pcor.is_outlier(table, 30, other, "grubbs")
    with pytest.raises(ContextError, match="another schema"):
        pcor.outliers(table, other, "grubbs")


def test_a_record_that_is_not_there_is_refused() -> None:
    table = one_far_row({"a": ["0", "1"]}, {"a": "0"})
    with pytest.raises(RecordError, match="no record with row number 31"):
        pcor.matching_contexts(table, 31, "grubbs")
    with pytest.raises(RecordError, match="no record with row number 31"):
        pcor.is_outlier(table, 31, pcor.Context.full(table.schema), "grubbs")


# -- the authors' data ----------------------------------------------------------------------------


# (m0, m1, m2), record, LOF with lower values first, with higher values first, the authors' verdict.
# In these, and in no others of the sample, ways to break ties differ about 1.5; the authors' way
# followed the order of rows in their file.
TIE_DEPENDENT = [
    ((13, 18, 15), 87690, 1.5140, 1.4481, True),
    ((13, 22, 12), 87690, 1.5053, 1.4395, True),
    ((13, 24, 14), 120212, 1.5156, 1.3370, True),
    ((19, 21, 6), 88116, 1.4676, 1.5263, True),
    ((19, 28, 14), 119688, 1.4978, 1.5028, False),
    ((31, 9, 13), 16658, 1.5317, 1.4697, True),
    ((31, 13, 5), 96269, 1.5007, 1.4995, True),
]


class Authors(NamedTuple):
    """The authors' reduced salary table and what their program found in 300 of its contexts."""

    table: pcor.Table
    sample: list[dict[str, Any]]

    def context(self, masks: tuple[int, int, int]) -> pcor.Context:
        chosen = {
            attribute.name: [v for i, v in enumerate(attribute.values) if mask >> i & 1]
            for attribute, mask in zip(self.table.schema.attributes, masks, strict=True)
        }
        return pcor.Context(self.table.schema, chosen)

    def population(self, masks: tuple[int, int, int]) -> list[float]:
        values, counts = self.table.distribution(self.context(masks).mask)
        population: list[float] = np.repeat(values, counts).tolist()
        return population


@pytest.fixture(scope="module")
def authors() -> Authors:
    folder = os.environ.get("PCOR_DATA")
    if folder is None:
        pytest.skip("PCOR_DATA is not set: it names the folder with the authors' tables")
    data = Path(folder)
    table = pcor.Table(
        data / "authors_salary_11k.parquet",
        pcor.Schema.from_file(data / "authors_salary_11k.toml"),
    )
    sample = pq.read_table(data / "authors_salary_11k_lof_sample.parquet").to_pylist()
    return Authors(table, sample)


def masks_of(row: dict[str, Any]) -> tuple[int, int, int]:
    return row["m0"], row["m1"], row["m2"]


def test_populations_are_those_of_the_authors(authors: Authors) -> None:
    masks = [authors.context(masks_of(row)).mask for row in authors.sample]
    assert len(masks) == 300
    populations = authors.table.populations(masks).tolist()
    assert populations == [row["population"] for row in authors.sample]


def test_lof_outliers_are_those_of_the_authors_where_ties_do_not_decide(authors: Authors) -> None:
    depends = {(masks, record) for masks, record, *_ in TIE_DEPENDENT}
    differing = []
    for row in authors.sample:
        masks = masks_of(row)
        found = set(pcor.outliers(authors.table, authors.context(masks), "lof"))
        for record in found ^ set(row["outliers"]):
            assert (masks, record) in depends
            differing.append((masks, record))
    assert differing == [((19, 21, 6), 88116)]


@pytest.mark.parametrize(("masks", "record", "lower", "higher", "by_authors"), TIE_DEPENDENT)
def test_lof_of_the_tie_dependent_pairs(
    authors: Authors,
    masks: tuple[int, int, int],
    record: int,
    lower: float,
    higher: float,
    by_authors: bool,
) -> None:
    context = authors.context(masks)
    value = authors.table.record(record).value
    values, counts = authors.table.distribution(context.mask)
    place = int(np.searchsorted(values, value))
    assert round(float(pcor.LOF().factors(values, counts)[place]), 4) == lower
    # Higher values first is lower values first in the mirror.
    mirrored = pcor.LOF().factors(-values[::-1], counts[::-1])
    assert round(float(mirrored[::-1][place]), 4) == higher
    assert pcor.is_outlier(authors.table, record, context, "lof") is (lower > 1.5)
    (row,) = (row for row in authors.sample if masks_of(row) == masks)
    assert (record in row["outliers"]) is by_authors


def test_some_contexts_of_the_sample_agree_with_the_definition_of_lof(authors: Authors) -> None:
    small = sorted(authors.sample, key=lambda row: row["population"])[:10]
    for row in small:
        population = authors.population(masks_of(row))
        expected = naive.lof(k=20, threshold=1.5, ties="lower")(population)
        assert pcor.LOF().flags(population).tolist() == expected


def test_grubbs_on_the_authors_table_is_that_of_scipy(authors: Authors) -> None:
    # In the middle of the sample: some hundreds of rows each.
    middle = sorted(authors.sample, key=lambda row: row["population"])[40:60]
    flagged = 0
    for row in middle:
        population = authors.population(masks_of(row))
        flags = pcor.Grubbs(tail="upper").flags(population).tolist()
        assert flags == naive.grubbs(alpha=0.05, tail="upper")(population)
        flagged += sum(flags)
    assert flagged > 0


def test_histogram_on_the_authors_table_is_that_of_exact_fractions(authors: Authors) -> None:
    detector = pcor.Histogram(include_maximum=False)
    flagged = 0
    for row in authors.sample[:20]:
        population = authors.population(masks_of(row))
        flags = detector.flags(population).tolist()
        twin = naive.exact_histogram(rare="0.0025", include_maximum=False)
        assert flags == twin(population)
        assert not flags[-1]
        assert len(population) >= 400 or not any(flags)
        flagged += sum(flags)
    assert flagged > 0
