"""Utilities count what they say, and the user's own is checked before anybody relies on it."""

from __future__ import annotations

import traceback
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pcor import Context, Overlap, Population, PopulationSize, Schema, Table, demo
from pcor.errors import ParameterError, UnknownName
from pcor.releasing.settings import plan
from pcor.search.utility import LARGEST_SCORE, Scorer, describe_utility, get_utility
from tests.helpers.strategies import METRIC, Row, arrow, contexts, covered, few, schemas, tables

PEOPLE = Table(demo.ten_people(), demo.ten_people_schema())
FULL = Context.full(PEOPLE.schema)
OTTAWA = Context.parse(PEOPLE.schema, "any job_title; city is Ottawa; any district")


def scores(utility: Any, table: Table, masks: list[int]) -> list[int]:
    """Score contexts afresh."""
    return Scorer(utility, table)(masks)


@st.composite
def rows_and_contexts(draw: st.DrawFn) -> tuple[list[Row], Context, Context]:
    schema = draw(schemas())
    return draw(tables(schema)), draw(contexts(schema)), draw(contexts(schema))


def encoded(schema: Schema, rows: list[Row]) -> Table:
    return Table(arrow(schema, rows), schema)


class HighEarners:
    """The user's own: how many rows have a metric of at least 200,000."""

    sensitivity = 1
    monotonic = True

    def score(self, population: Population) -> int:
        return int((population.metric >= 200_000).sum())


# -- what they count ------------------------------------------------------------------------------


@few
@given(drawn=rows_and_contexts())
def test_population_size_is_the_number_of_covered_rows(
    drawn: tuple[list[Row], Context, Context],
) -> None:
    rows, one, other = drawn
    table = encoded(one.schema, rows)
    expected = [len(covered(context, rows)) for context in (one, other)]
    assert scores(PopulationSize(), table, [one.mask, other.mask]) == expected


@few
@given(drawn=rows_and_contexts())
def test_overlap_is_the_number_of_rows_covered_by_both(
    drawn: tuple[list[Row], Context, Context],
) -> None:
    rows, one, other = drawn
    both = set(covered(one, rows)) & set(covered(other, rows))
    assert scores(Overlap(other), encoded(one.schema, rows), [one.mask]) == [len(both)]


@few
@given(drawn=rows_and_contexts())
def test_a_population_shows_its_metric_in_rising_order(
    drawn: tuple[list[Row], Context, Context],
) -> None:
    rows, context, _ = drawn
    expected = sorted(rows[number][METRIC] for number in covered(context, rows))
    assert Population(context, encoded(context.schema, rows)).metric.tolist() == expected


@few
@given(drawn=rows_and_contexts(), utility=st.sampled_from(["population", "overlap"]))
def test_one_score_and_many_scores_agree(
    drawn: tuple[list[Row], Context, Context], utility: str
) -> None:
    rows, one, other = drawn
    table = encoded(one.schema, rows)
    chosen = PopulationSize() if utility == "population" else Overlap(other)
    assert scores(chosen, table, [one.mask]) == [chosen.score(Population(one, table))]


@few
@given(drawn=rows_and_contexts(), data=st.data())
def test_a_removed_row_lowers_no_score_and_none_by_more_than_the_sensitivity(
    drawn: tuple[list[Row], Context, Context], data: st.DataObject
) -> None:
    rows, one, other = drawn
    place = data.draw(st.integers(1, len(rows) - 1)) if len(rows) > 1 else None
    fewer = rows if place is None else rows[:place] + rows[place + 1 :]
    drops = [
        before - after
        for utility in (PopulationSize(), Overlap(other))
        for before, after in zip(
            scores(utility, encoded(one.schema, rows), [one.mask]),
            scores(utility, encoded(one.schema, fewer), [one.mask]),
            strict=True,
        )
    ]
    assert all(0 <= drop <= 1 for drop in drops)


def test_the_ten_people_of_the_paper_are_counted_right() -> None:
    # Table 1: records 3, 5, 7, 8 live in Ottawa; 3, 5, 8 of them in the diplomatic district.
    diplomatic = Context.parse(PEOPLE.schema, "any job_title; any city; district is Diplomatic")
    counted = (
        scores(PopulationSize(), PEOPLE, [FULL.mask, OTTAWA.mask]),
        scores(Overlap(OTTAWA), PEOPLE, [FULL.mask, diplomatic.mask]),
    )
    assert counted == ([10, 4], [4, 3])


def test_no_contexts_have_no_scores() -> None:
    assert scores(PopulationSize(), PEOPLE, []) == []


def test_contexts_that_share_no_value_share_no_rows() -> None:
    toronto = Context.parse(PEOPLE.schema, "any job_title; city is Toronto; any district")
    assert scores(Overlap(OTTAWA), PEOPLE, [toronto.mask]) == [0]


# -- by name --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "kind"), [("population", PopulationSize), ("overlap", Overlap)])
def test_a_utility_may_be_named(name: str, kind: type) -> None:
    assert isinstance(get_utility(name), kind)


def test_an_unknown_name_is_refused_with_the_nearest_one() -> None:
    with pytest.raises(UnknownName, match="unknown utility 'populaton'; did you mean 'population'"):
        get_utility("populaton")


def test_overlap_without_a_context_says_what_to_give() -> None:
    with pytest.raises(ParameterError, match=r"give pcor.Overlap\(context\)"):
        scores(Overlap(), PEOPLE, [FULL.mask])


def test_overlap_with_something_else_than_a_context_is_refused() -> None:
    with pytest.raises(ParameterError, match=r"context must be a pcor.Context"):
        Overlap("city is Ottawa")  # type: ignore[arg-type]


def test_overlap_with_a_context_of_another_schema_is_refused() -> None:
    elsewhere = Context.full(Schema(metric="pay", attributes={"a": ["b"]}))
    with pytest.raises(ParameterError, match="of another schema"):
        scores(Overlap(elsewhere), PEOPLE, [FULL.mask])


def test_rows_shared_with_a_context_of_another_schema_are_not_counted() -> None:
    elsewhere = Context.full(Schema(metric="pay", attributes={"a": ["b"]}))
    with pytest.raises(ParameterError, match="different schemas"):
        Population(FULL, PEOPLE).shared_with(elsewhere)


# -- the user's own -------------------------------------------------------------------------------


def test_a_utility_of_ones_own_is_taken_as_it_is() -> None:
    utility = HighEarners()
    assert get_utility(utility) is utility


def test_a_utility_of_ones_own_scores_the_population() -> None:
    # Table 1: records 1, 6, 8, 9 and 10 earn that much; of those in Ottawa only record 8.
    assert scores(HighEarners(), PEOPLE, [FULL.mask, OTTAWA.mask]) == [5, 1]


class Fewest(PopulationSize):
    """Derived, and scores the other way round."""

    def score(self, population: Population) -> int:
        return -population.size


class NotShared(Overlap):
    """Derived, and scores what is not shared."""

    def score(self, population: Population) -> int:
        return population.size - super().score(population)


def test_a_derived_class_that_overrides_the_score_alone_is_scored_by_it() -> None:
    masks = [FULL.mask, OTTAWA.mask]
    found = scores(Fewest(), PEOPLE, masks), scores(NotShared(OTTAWA), PEOPLE, masks)
    assert found == ([-10, -4], [6, 0])


def test_a_derived_class_describes_itself_by_its_own_name() -> None:
    names = [describe_utility(utility)["name"] for utility in (Fewest(), NotShared(OTTAWA))]
    assert names == ["Fewest", "NotShared"]


def test_a_derived_overlap_is_not_replaced_by_the_overlap_with_the_start() -> None:
    with pytest.raises(ParameterError, match="the utility NotShared has no context to compare"):
        plan(PEOPLE.schema, 1, utility=NotShared(), search="breadth_first")


@pytest.mark.parametrize("sensitivity", [3, 3.0, Fraction(3)])
def test_a_whole_sensitivity_may_be_written_as_any_number(sensitivity: Any) -> None:
    utility = HighEarners()
    utility.sensitivity = sensitivity
    assert get_utility(utility).sensitivity == 3


@pytest.mark.parametrize("missing", ["sensitivity", "monotonic", "score"])
def test_an_undeclared_property_is_named(missing: str) -> None:
    parts: dict[str, Any] = {"sensitivity": 1, "monotonic": True, "score": lambda _, __: 1}
    del parts[missing]
    with pytest.raises(ParameterError, match=f"the utility Mine does not declare '{missing}'"):
        get_utility(type("Mine", (), parts)())


@pytest.mark.parametrize(
    "sensitivity",
    [0, -1, 0.5, "1", True, None, float("nan"), float("inf"), Fraction(-1), Fraction(1, 2)],
)
def test_a_sensitivity_that_is_no_positive_whole_number_is_refused(sensitivity: object) -> None:
    utility = HighEarners()
    utility.sensitivity = sensitivity  # type: ignore[assignment]
    with pytest.raises(ParameterError, match="HighEarners: sensitivity must be a positive whole"):
        get_utility(utility)


@pytest.mark.parametrize("monotonic", [1, "yes", None])
def test_a_monotonic_that_is_not_true_or_false_is_refused(monotonic: object) -> None:
    utility = HighEarners()
    utility.monotonic = monotonic  # type: ignore[assignment]
    with pytest.raises(ParameterError, match="HighEarners: monotonic must be True or False"):
        get_utility(utility)


def test_a_score_that_is_no_function_is_refused() -> None:
    utility = HighEarners()
    utility.score = 5  # type: ignore[assignment, method-assign]
    with pytest.raises(ParameterError, match="HighEarners: score must be a function"):
        get_utility(utility)


def test_a_class_instead_of_an_object_is_refused() -> None:
    with pytest.raises(ParameterError, match=r"HighEarners is a class; give an object"):
        get_utility(HighEarners)


class Returning(HighEarners):
    """A utility that returns what it is told."""

    def __init__(self, score: Any) -> None:
        self._score = score

    def score(self, population: Population) -> int:
        del population
        return self._score  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    "score",
    [73917.391, 73917.0, "73917", None, True, 73917 * LARGEST_SCORE, -73917 * LARGEST_SCORE],
)
def test_a_score_that_is_no_whole_number_is_refused(score: Any) -> None:
    with pytest.raises(ParameterError, match="Returning must return whole numbers"):
        scores(Returning(score), PEOPLE, [FULL.mask])


@pytest.mark.parametrize("score", [73917.391, "73917", 73917 * LARGEST_SCORE])
def test_a_refused_score_is_not_quoted(score: Any) -> None:
    with pytest.raises(ParameterError) as refused:
        scores(Returning(score), PEOPLE, [FULL.mask])
    assert str(score)[:5] not in str(refused.value)


@pytest.mark.parametrize("score", [LARGEST_SCORE, -LARGEST_SCORE, 0, -3])
def test_any_whole_number_within_the_limit_is_a_score(score: int) -> None:
    assert scores(Returning(score), PEOPLE, [FULL.mask]) == [score]


def test_a_whole_number_of_numpy_is_a_score() -> None:
    assert scores(Returning(pa.array([7]).to_numpy()[0]), PEOPLE, [FULL.mask]) == [7]


class Failing(HighEarners):
    """A utility whose error quotes the rows."""

    def score(self, population: Population) -> int:
        raise ValueError(f"cannot score {population.metric.tolist()}")


def test_the_error_of_a_utility_that_fails_is_named_and_not_quoted() -> None:
    with pytest.raises(ParameterError) as refused:
        scores(Failing(), PEOPLE, [FULL.mask])
    printed = "".join(traceback.format_exception(refused.value))
    assert ("Failing failed with a ValueError" in printed, "390000" in printed) == (True, False)


# -- descriptions and reprs -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("utility", "described"),
    [
        (PopulationSize(), {"name": "population", "sensitivity": "1", "monotonic": True}),
        (
            Overlap(OTTAWA),
            {"name": "overlap", "with": OTTAWA.in_full, "sensitivity": "1", "monotonic": True},
        ),
        (HighEarners(), {"name": "HighEarners", "sensitivity": "1", "monotonic": True}),
    ],
)
def test_the_description_says_what_is_declared(utility: Any, described: dict[str, Any]) -> None:
    assert describe_utility(utility) == described


def test_the_repr_of_a_population_shows_nothing_of_the_rows() -> None:
    population = Population(OTTAWA, PEOPLE)
    assert (population.size, "4" in repr(population).split(" at ")[0]) == (4, False)
