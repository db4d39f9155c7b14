"""COE of small tables by brute force: every context, one by one, with other people's programs."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, NamedTuple

import pyarrow as pa
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import pcor
from tests.helpers import naive

# At most 4 free values: 16 contexts contain a record, of at most 147 in all.
SHAPES = [(2, 2), (3, 2), (2, 3), (3, 3), (2, 2, 2), (2, 3, 2), (3, 2, 2)]


class Small(NamedTuple):
    """A table that a person could check, and one of its records."""

    domains: list[list[str]]
    rows: list[naive.Row]
    metric: list[float]
    record: int

    @property
    def schema(self) -> pcor.Schema:
        return pcor.Schema(
            metric="pay", attributes={f"a{i}": values for i, values in enumerate(self.domains)}
        )

    @property
    def table(self) -> pcor.Table:
        columns: dict[str, Any] = {"pay": self.metric}
        for i in range(len(self.domains)):
            columns[f"a{i}"] = [row[i] for row in self.rows]
        return pcor.Table(pa.table(columns), self.schema)


MetricOf = Callable[[int], st.SearchStrategy[list[float]]]


# Numbers by the hundred follow from one that is drawn: Hypothesis takes longer to draw them one by
# one than it takes to compare.
numbers = st.integers(0, 2**32).map(random.Random)


@st.composite
def small_tables(draw: st.DrawFn, metric_of: MetricOf, rule: naive.Rule) -> Small:
    shape = draw(st.sampled_from(SHAPES))
    domains = [[f"{'abc'[i]}{j}" for j in range(size)] for i, size in enumerate(shape)]
    n = draw(st.integers(25, 60))
    cells = draw(numbers)
    rows = [tuple(cells.choice(values) for values in domains) for _ in range(n)]
    metric = draw(metric_of(n))
    # Mostly somebody who stands out in the whole table, sometimes anybody.
    record = st.integers(0, n - 1)
    if draw(st.integers(0, 3)) and (seen := [i for i, yes in enumerate(rule(metric)) if yes]):
        record = st.sampled_from(seen)
    return Small(domains, rows, metric, draw(record))


def without_ties(n: int) -> st.SearchStrategy[list[float]]:
    """Metrics of which no three are equally spaced, so that LOF has no ties to break."""

    def apart(drawn: random.Random) -> list[float]:
        return [float(naive.without_neighbour_ties(i)) for i in drawn.sample(range(2**14), n)]

    return numbers.map(apart)


def with_ties(n: int) -> st.SearchStrategy[list[float]]:
    """A crowd of small whole numbers and up to three far ones that may hide one another."""
    crowd = numbers.map(lambda drawn: [drawn.randint(0, 9) for _ in range(n - 3)])
    far = st.sampled_from(
        [[40, 5, 5], [1000, 150, 40], [1000, -150, 40], [60, 60, 5], [90, -60, 5], [18, 25, -30]]
    )
    return st.tuples(crowd, far).map(lambda both: [float(v) for v in both[0] + both[1]])


def mirrored(n: int) -> st.SearchStrategy[list[float]]:
    return with_ties(n).map(lambda metric: [-value for value in metric])


def off_the_edges(n: int) -> st.SearchStrategy[list[float]]:
    """Skewed metrics with so many digits that none lies on an inner edge of a histogram."""
    return numbers.map(lambda drawn: [drawn.lognormvariate(0, 1) for _ in range(n)])


def found_by_pcor(small: Small, detector: pcor.Detector) -> dict[int, int]:
    found = pcor.matching_contexts(small.table, small.record, detector)
    masks = [int(mask) for mask in found.masks[:, 0]]
    assert len(set(masks)) == len(masks) == len(found)
    return dict(zip(masks, found.populations.tolist(), strict=True))


def found_by_brute_force(small: Small, twin: naive.Rule, min_population: int) -> dict[int, int]:
    found = naive.coe(*small, twin, min_population=min_population)
    assume(not found.undecided)
    return found.populations


TABLES = 200


def compare_with_brute_force(metric_of: MetricOf, twins: dict[pcor.Detector, naive.Rule]) -> None:
    """Compare COE on 200 tables, and see to it that the comparison is not of nothing."""
    sizes: list[int] = []

    @settings(max_examples=TABLES, deadline=None)
    @given(st.data(), st.sampled_from(list(twins)))
    def compare(data: st.DataObject, detector: pcor.Detector) -> None:
        small = data.draw(small_tables(metric_of, twins[detector]))
        expected = found_by_brute_force(small, twins[detector], detector.min_population)
        assert found_by_pcor(small, detector) == expected
        sizes.append(len(expected))

    compare()
    assert len(sizes) >= TABLES
    # Usual are 50 to 90 % with something in COE, and a dozen different sizes of it.
    assert sum(size > 0 for size in sizes) >= TABLES // 4
    assert len(set(sizes)) >= 4
