"""A utility that declares the weights of cells is drawn in order, with the chances of its score."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pcor import (
    Context,
    Direct,
    Grubbs,
    Overlap,
    Population,
    PopulationSize,
    Schema,
    Table,
    Tail,
    demo,
)
from pcor.audit import exact_distribution
from pcor.errors import ParameterError
from pcor.mechanism.randomness import MECHANISMS
from pcor.releasing.plan import Plan
from pcor.releasing.run import best_first, release
from pcor.releasing.settings import plan
from pcor.search.utility import LARGEST_SCORE, Scorer, counts_rows, is_additive
from pcor.search.validity import Validity
from pcor.testing import seeded
from tests.helpers.strategies import arrow, contexts, few, schemas, tables

PEOPLE = Table(demo.ten_people(), demo.ten_people_schema())
FULL = Context.full(PEOPLE.schema)
OTTAWA = Context.parse(PEOPLE.schema, "any job_title; city is Ottawa; any district")
RULE = Grubbs(min_population=3)


@dataclass(frozen=True)
class Favouring:
    """Rows count one, those that a chosen context covers ``more`` in addition."""

    chosen: Context
    more: int = 2
    monotonic = True

    @property
    def sensitivity(self) -> int:
        return 1 + self.more

    def score(self, population: Population) -> int:
        return population.size + self.more * population.shared_with(self.chosen)


@dataclass(frozen=True)
class Declared(Favouring):
    """The same, and says what each cell adds."""

    def cell_weights(self, table: Table) -> Any:
        return table.cells.cell_counts * (1 + self.more * table.covered_cells(self.chosen.mask))


def planned(utility: Any, **options: Any) -> Plan:
    return plan(PEOPLE.schema, 1, detector=RULE, utility=utility, **{"search": "direct"} | options)


def ordered(utility: Any) -> bool:
    """Tell whether a release would meet the candidates best first."""
    validity = Validity(PEOPLE, PEOPLE.record(8), RULE)
    return best_first(planned(utility), validity) is not None


@few
@given(data=st.data())
def test_the_weights_add_up_to_the_score(data: st.DataObject) -> None:
    schema = data.draw(schemas())
    table = Table(arrow(schema, data.draw(tables(schema))), schema)
    asked, chosen = (
        [data.draw(contexts(schema)).mask for _ in range(4)],
        data.draw(contexts(schema)),
    )
    more = data.draw(st.integers(0, 5))
    by_score = Scorer(Favouring(chosen, more), table)(asked)
    assert Scorer(Declared(chosen, more), table)(asked) == by_score


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("epsilon", [0.1, 1, 20])
@pytest.mark.parametrize("more", [0, 1, 7])
def test_the_ordered_draw_has_the_chances_of_listing_all(
    more: int, epsilon: float, mechanism: str
) -> None:
    def chances(utility: Any) -> dict[Context, float]:
        options: dict[str, Any] = {"detector": RULE, "search": "direct", "selection": mechanism}
        return exact_distribution(PEOPLE, 8, epsilon, utility=utility, **options)

    fast, slow = chances(Declared(OTTAWA, more)), chances(Favouring(OTTAWA, more))
    assert (ordered(Declared(OTTAWA, more)), ordered(Favouring(OTTAWA, more))) == (True, False)
    assert fast == pytest.approx(slow, rel=1e-12)
    assert len(fast) == 26


def test_other_weights_have_other_chances() -> None:
    options: dict[str, Any] = {"detector": RULE, "search": "direct"}
    one, other = (
        exact_distribution(PEOPLE, 8, 1, utility=Declared(OTTAWA, more), **options)
        for more in (1, 2)
    )
    assert one != pytest.approx(other, rel=1e-3)


@pytest.mark.parametrize("search", ["uniform", "random_walk", "depth_first", "breadth_first"])
def test_other_searches_draw_the_same_by_weights_and_by_score(search: str) -> None:
    drawn = [
        [
            release(PEOPLE, 8, 5, RULE, search, utility, samples=5, chooser=seeded(seed)).context
            for seed in range(5)
        ]
        for utility in (Declared(OTTAWA), Favouring(OTTAWA))
    ]
    assert drawn[0] == drawn[1]


def test_auto_takes_the_direct_mechanism_on_spaces_where_a_listed_draw_would_take_too_long() -> (
    None
):
    schema = demo.salary_table(any_set=True).schema
    chosen = Context.full(schema)
    found = [
        plan(schema, 1, utility=utility(chosen)).search.name for utility in (Declared, Favouring)
    ]
    assert found == ["direct", "widest_first"]


def test_a_release_of_four_million_contexts_ends_soon_whatever_the_weights() -> None:
    table = demo.salary_table(any_set=True)
    record, chosen = demo.PLANTED[0].record, Context.full(table.schema)
    for more in (0, 10**12):
        utility = Declared(chosen, more)
        drawn = release(table, record, 1, "histogram", Direct(), utility, chooser=seeded(0))
        assert drawn.to_dict()["utility"]["name"] == "Declared"


# -- whose weights are trusted --------------------------------------------------------------------


class OtherScore(Declared):
    """Derived, and overrides the score alone."""

    def score(self, population: Population) -> int:
        return -population.size


class OtherWeights(Declared):
    """Derived, and overrides the weights alone."""

    def cell_weights(self, table: Table) -> Any:
        return 2 * super().cell_weights(table)


class Both(OtherScore):
    """Derived from one that has a score of its own, and declares weights for it."""

    def score(self, population: Population) -> int:
        return 5 * population.size

    def cell_weights(self, table: Table) -> Any:
        return 5 * table.cells.cell_counts


class Again(Both):
    """Derived from one that declares both, and overrides neither."""


class Withdrawn(Declared):
    """Derived, and has no weights."""

    cell_weights = None  # type: ignore[assignment]


class Mixed(Favouring, PopulationSize):  # type: ignore[override] # a constant and a property
    """Its score comes before the class that it has the weights of."""


class Fewest(PopulationSize):
    """Derived from one of PCOR's, and scores the other way round."""

    def score(self, population: Population) -> int:
        return -population.size


@pytest.mark.parametrize(
    ("utility", "trusted"),
    [
        (PopulationSize(), True),
        (Overlap(OTTAWA), True),
        (Declared(OTTAWA), True),
        (OtherWeights(OTTAWA), True),
        (Both(OTTAWA), True),
        (Again(OTTAWA), True),
        (Favouring(OTTAWA), False),
        (OtherScore(OTTAWA), False),
        (Withdrawn(OTTAWA), False),
        (Mixed(OTTAWA), False),
        (Fewest(), False),
    ],
    ids=lambda value: type(value).__name__,
)
def test_weights_are_trusted_where_no_class_below_theirs_has_another_score(
    utility: Any, trusted: bool
) -> None:
    assert is_additive(utility) == ordered(utility) == trusted


def test_a_derived_class_is_scored_by_what_it_overrides() -> None:
    masks = [FULL.mask, OTTAWA.mask]
    found = [
        Scorer(utility(OTTAWA), PEOPLE)(masks)
        for utility in (Declared, OtherScore, OtherWeights, Both, Again, Withdrawn, Mixed)
    ]
    declared = [18, 12]
    expected = [declared, [-10, -4], [36, 24], [50, 20], [50, 20], declared, declared]
    assert found == expected


def test_a_score_put_on_the_object_itself_is_what_counts() -> None:
    class Plain:
        sensitivity = 1
        monotonic = True

        def score(self, population: Population) -> int:
            return population.size

        def cell_weights(self, table: Table) -> Any:
            return table.cells.cell_counts

    utility = Plain()
    assert is_additive(utility)
    utility.score = lambda _: 7  # type: ignore[method-assign, assignment]
    assert not is_additive(utility)
    assert Scorer(utility, PEOPLE)([FULL.mask]) == [7]


@pytest.mark.parametrize("utility", [Declared(OTTAWA), Again(OTTAWA)], ids=repr)
def test_differential_privacy_for_everyone_takes_counts_of_rows_alone(utility: Any) -> None:
    assert not counts_rows(utility)
    with pytest.raises(ParameterError, match="its proof holds only for counts of rows"):
        plan(PEOPLE.schema, 1, detector="tail", utility=utility, guarantee="dp")


@pytest.mark.parametrize("name", ["score", "cell_weights"])
@pytest.mark.parametrize(
    "sound", [PopulationSize(), Overlap(OTTAWA)], ids=["population", "overlap"]
)
def test_a_method_put_on_our_own_utility_is_no_count_of_rows(sound: Any, name: str) -> None:
    utility = type(sound)(**vars(sound))
    object.__setattr__(utility, name, lambda _: 10**6)
    assert counts_rows(sound)
    assert not counts_rows(utility)
    with pytest.raises(ParameterError, match="its proof holds only for counts of rows"):
        plan(PEOPLE.schema, 1, detector="tail", utility=utility, guarantee="dp")


def test_without_weights_nothing_is_drawn_for_everyone_but_the_record() -> None:
    """Whatever passed as a count of rows: the draw never falls back to another mechanism."""
    schema = Schema("pay", {"job": ["a", "b"]}, id="id")
    rows = {"id": [*range(9)], "job": [*"aaaabbbbb"], "pay": [*range(8), 99]}
    table = Table(pa.table(rows), schema)
    planned = plan(schema, 1, detector=Tail(0.5, min_population=2), guarantee="dp")
    wrong = replace(planned, utility=Favouring(Context.full(schema)))
    validity = Validity(table, table.record(8), planned.detector)
    assert best_first(planned, validity) is not None
    with pytest.raises(ParameterError, match="needs a utility that counts rows"):
        best_first(wrong, validity)


@dataclass(frozen=True)
class Careless(Favouring):
    """Doubles the counts where they are, by a slip."""

    def cell_weights(self, table: Table) -> Any:
        weights = table.cells.cell_counts
        weights *= 2
        return weights


def test_a_utility_cannot_write_into_the_table() -> None:
    before = PEOPLE.populations([FULL.mask]).tolist()
    with pytest.raises(ParameterError, match="the utility Careless failed with a ValueError"):
        release(PEOPLE, 8, 1, RULE, "direct", Careless(OTTAWA))
    assert PEOPLE.populations([FULL.mask]).tolist() == before


# -- what weights must be -------------------------------------------------------------------------


@dataclass(frozen=True)
class Returning(Favouring):
    """A utility whose weights are what it is told."""

    weights: Callable[[int], Any] = np.zeros

    def cell_weights(self, table: Table) -> Any:
        return self.weights(len(table.cells.cell_counts))


REFUSED: dict[str, Callable[[int], Any]] = {
    "negative": lambda cells: np.arange(cells) - 73917,
    "not whole": lambda cells: np.full(cells, 73917.0),
    "truth values": lambda cells: np.ones(cells, dtype=bool),
    "texts": lambda cells: np.full(cells, "73917"),
    "objects": lambda cells: np.full(cells, 73917, dtype=object),
    "one too few": lambda cells: np.full(cells - 1, 73917),
    "one for all": lambda _: 73917,
    "two for each": lambda cells: np.full((2, cells), 73917),
    "none": lambda _: None,
    "together too large": lambda cells: np.full(cells, LARGEST_SCORE // 2),
    "together beyond 64 bits": lambda cells: np.full(cells, LARGEST_SCORE),
    "beyond signed numbers": lambda cells: np.full(cells, 2**64 - 1, dtype=np.uint64),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_weights_that_are_no_whole_numbers_of_at_least_0_are_refused(kind: str) -> None:
    with pytest.raises(ParameterError, match="Returning: cell_weights must return one whole") as no:
        Scorer(Returning(OTTAWA, weights=REFUSED[kind]), PEOPLE)
    assert "73917" not in str(no.value)


@pytest.mark.parametrize(
    "weights",
    [
        lambda cells: np.zeros(cells, dtype=np.int8),
        lambda cells: np.arange(cells, dtype=np.uint64),
        lambda cells: list(range(cells)),
        lambda cells: np.append(np.zeros(cells - 1, dtype=np.int64), LARGEST_SCORE),
    ],
)
def test_any_whole_numbers_of_at_least_0_are_weights(weights: Callable[[int], Any]) -> None:
    expected = sum(np.asarray(weights(len(PEOPLE.cells.cell_counts))).tolist())
    assert Scorer(Returning(OTTAWA, weights=weights), PEOPLE)([FULL.mask]) == [expected]


def test_the_error_of_weights_that_fail_is_named_and_not_quoted() -> None:
    def failing(cells: int) -> Any:
        raise ValueError(f"{cells} cells of 390000")

    with pytest.raises(ParameterError, match="Returning failed with a ValueError") as refused:
        Scorer(Returning(OTTAWA, weights=failing), PEOPLE)
    assert "390000" not in str(refused.value)
