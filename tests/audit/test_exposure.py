"""Who is exposed, and by how much: against tables rebuilt without each row, and exact chances.

Nothing is sampled here. The slow twin takes every row out of the table (or puts one in), builds the
table anew, asks for COE and for the exact distribution of the release, and adds up the definition.
"""

from __future__ import annotations

import json
import math
import os
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

import pcor
from pcor.audit import Exposed, Exposure, everyone, exact_log_chances, exposure, exposures
from pcor.audit.changed import Row as ChangedRow
from pcor.audit.changed import changed_table
from pcor.audit.divergence import ERROR, Scores, divergence
from pcor.audit.exact import selection_log_chances
from pcor.errors import ParameterError, StartError, TooLarge
from pcor.public.guarantee import OWNER_ONLY
from tests.helpers.divergence import Logs, naive_divergence
from tests.helpers.neighbours import DETECTORS, SCHEMA, Row, Small, small

MODULE = sys.modules["pcor.audit.exposure"]  # the function of that name hides it
EPSILON = 0.7
ROUNDING = 1e-9
MECHANISMS = ("exponential", "permute_and_flip")
COUNTING: dict[str, pcor.CountDetector] = {
    "tail": pcor.Tail(0.3, min_population=3),
    "neighbourhood": pcor.Neighbourhood(3.0, 0.25, min_population=3),
    "rare bin": pcor.RareBin([5.0, 20.0], 0.7, min_population=1),
}
Key = tuple[str, str, str, float]


@st.composite
def tables(draw: st.DrawFn) -> list[Row]:
    """Draw V, far out, and a few ordinary rows; some of them alike."""
    row = st.tuples(st.sampled_from("abc"), st.sampled_from("xy"), st.integers(0, 12).map(float))
    rows = draw(st.lists(row, min_size=4, max_size=9))
    return [("a", "x", 40.0), *rows, *draw(st.lists(st.sampled_from(rows), max_size=2))]


few = settings(max_examples=20, deadline=None)


# -- the slow twin --------------------------------------------------------------------------------


def changes(rows: list[Row], metrics: list[float]) -> dict[Key, list[Row]]:
    """Return every table with one row less, and with one more of these metrics."""
    found: dict[Key, list[Row]] = {}
    for row in set(rows[1:]):
        position = rows.index(row, 1)
        found["removed", *row] = rows[:position] + rows[position + 1 :]
    for job in "abc":
        for city in "xy":
            for pay in metrics:
                found["added", job, city, pay] = [*rows, (job, city, pay)]
    return found


def logs_of(here: Small, **options: Any) -> Logs:
    """Return the logarithms of the chances; a refused start is one more answer."""
    try:
        return exact_log_chances(here.table, 0, EPSILON, **options)
    except StartError:
        return {}


def check(rows: list[Row], detector: pcor.Detector, metrics: list[float], **options: Any) -> int:
    """Compare an audit with its twin; return how many changes are exposed."""
    here = small(rows, detector)
    options = {"detector": detector, **options}
    found = exposure(here.table, 0, EPSILON, insert=metrics, **options)
    seen = {
        (one.kind, str(one.values["job"]), str(one.values["city"]), one.metric): one
        for one in (*found.exposed, *found.newcomers)
    }
    before = logs_of(here, **options)
    expected = 0
    for key, others in changes(rows, metrics).items():
        there = small(others, detector)
        assert (key in seen) == (there.coe != here.coe), key
        if key not in seen:
            continue
        expected += 1
        one = seen[key]
        delta, ratio = naive_divergence(before, logs_of(there, **options), EPSILON)
        assert one.delta == pytest.approx(delta, abs=ROUNDING), key
        assert one.ratio == pytest.approx(ratio, abs=ROUNDING), key
        assert (one.lost, one.gained) == (len(here.coe - there.coe), len(there.coe - here.coe))
        assert one.people == (rows[1:].count(key[1:]) if key[0] == "removed" else 1)
    assert len(seen) == expected
    assert found.people == len(rows) - 1
    assert found.contexts == len(here.coe)
    return expected


# -- the acceptance: exact, both mechanisms -------------------------------------------------------


@few
@given(tables(), st.sampled_from(sorted(DETECTORS)), st.sampled_from(MECHANISMS))
def test_the_direct_mechanism_is_audited_exactly(
    rows: list[Row], name: str, mechanism: str
) -> None:
    exposed = check(rows, DETECTORS[name], [0.0, 40.0], search="direct", selection=mechanism)
    event(f"exposed: {min(exposed, 3)}")


@few
@given(tables(), st.sampled_from(sorted(DETECTORS)), st.sampled_from(MECHANISMS))
def test_widest_first_is_audited_exactly(rows: list[Row], name: str, mechanism: str) -> None:
    search = pcor.WidestFirst(samples=2)
    check(rows, DETECTORS[name], [40.0], search=search, selection=mechanism)


@settings(max_examples=6, deadline=None)
@given(tables(), st.sampled_from(["uniform", "random_walk", "depth_first", "breadth_first"]))
def test_a_search_with_random_decisions_is_audited_exactly(rows: list[Row], search: str) -> None:
    check(rows, DETECTORS["lof"], [40.0], search=search, samples=2)


@settings(max_examples=8, deadline=None)
@given(tables(), st.sampled_from(["widest_first", "depth_first"]))
def test_a_start_context_that_stops_being_valid_is_an_answer_of_its_own(
    rows: list[Row], search: str
) -> None:
    here = small(rows, DETECTORS["lof"])
    if here.coe:
        start = min(here.coe, key=lambda context: context.mask)
        check(rows, DETECTORS["lof"], [40.0], search=search, samples=2, start=start)


@settings(max_examples=8, deadline=None)
@given(tables(), st.sampled_from(["direct", "widest_first"]))
def test_the_utility_overlap_is_audited_exactly(rows: list[Row], search: str) -> None:
    chosen = pcor.Context(SCHEMA, {"job": ["a", "b"], "city": ["x"]})
    check(rows, DETECTORS["lof"], [40.0], search=search, utility=pcor.Overlap(chosen))


@settings(max_examples=5, deadline=None)
@given(tables())
def test_an_overlap_with_a_start_that_is_found_is_audited_exactly(rows: list[Row]) -> None:
    check(rows, DETECTORS["lof"], [40.0], search="widest_first", utility="overlap")


@dataclass(frozen=True)
class Distinct:
    """A utility of one's own: how many different metrics there are."""

    sensitivity = 1
    monotonic = True

    def score(self, population: pcor.Population) -> int:
        return len(np.unique(population.metric))


@settings(max_examples=5, deadline=None)
@given(tables())
def test_a_utility_of_ones_own_is_audited_exactly(rows: list[Row]) -> None:
    check(rows, DETECTORS["lof"], [40.0], search="direct", utility=Distinct())


class Kinds:
    """How many kinds of people a context covers: one more where a cell gets its first row."""

    sensitivity = 1
    monotonic = True

    def score(self, population: pcor.Population) -> int:
        table = population.table
        covered = table.covered_cells(population.context.mask)
        return int((covered & (table.cells.cell_counts > 0)).sum())

    def cell_weights(self, table: pcor.Table) -> Any:
        return np.ones(len(table.cells.cell_counts), dtype=np.int64)


@settings(max_examples=5, deadline=None)
@given(tables())
def test_a_utility_of_ones_own_that_adds_up_is_audited_exactly(rows: list[Row]) -> None:
    """Also where whoever leaves was the only one of their kind, and the cell goes with them."""
    check(rows, DETECTORS["lof"], [40.0], search="direct", utility=Kinds())


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("utility", ["population", "overlap"])
def test_with_a_large_epsilon_most_contexts_are_left_out_and_nothing_changes(
    mechanism: str, utility: str
) -> None:
    """At epsilon 6 whoever is 7 people below the best is negligible: most contexts are."""
    numbers = np.random.default_rng(4)
    rows: list[Row] = [("a", "x", 122.0)]
    for _ in range(150):
        pay = round(float(numbers.normal(100, 8)))
        rows.append(("abc"[numbers.integers(3)], "xy"[numbers.integers(2)], float(pay)))
    rule = pcor.LOF(k=5, threshold=1.8, min_population=21)
    here = small(rows, rule)
    chosen = pcor.Context(SCHEMA, {"job": ["a", "b"], "city": ["x"]})
    options: dict[str, Any] = {"detector": rule, "selection": mechanism}
    options["utility"] = pcor.Overlap(chosen) if utility == "overlap" else utility
    found = exposure(here.table, 0, 6, insert=[122.0, 128.0], **options)
    assert found.exposed
    assert found.newcomers
    assert found.contexts > 3
    before = exact_log_chances(here.table, 0, 6, **options)
    for one in (*found.exposed, *found.newcomers):
        places = tuple(a.codes[one.values[a.name]] for a in SCHEMA.attributes)
        other = changed_table(here.table, **{one.kind: [ChangedRow(places, one.metric)]})
        expected = naive_divergence(before, exact_log_chances(other, 0, 6, **options), 6)
        assert one.delta == pytest.approx(expected.delta, abs=ROUNDING)
        assert one.ratio == pytest.approx(expected.ratio, abs=ROUNDING)


# -- the arithmetic -------------------------------------------------------------------------------


@few
@given(st.integers(0, 2**32 - 1), st.sampled_from(MECHANISMS), st.sampled_from([0.05, 0.4, 3.0]))
def test_contexts_far_below_the_best_change_nothing_that_is_stated(
    seed: int, mechanism: str, eta: float
) -> None:
    numbers = np.random.default_rng(seed)
    here = numbers.integers(0, numbers.choice([3, 40, 2000]), 300)
    there = here - numbers.integers(0, 2, 300)
    in_here, in_there = numbers.random(300) < 0.9, numbers.random(300) < 0.9
    some = in_here | in_there
    scores = Scores(here[some], there[some], in_here[some], in_there[some])
    found = divergence(scores, eta=eta, epsilon=EPSILON, mechanism=mechanism)
    sides = []
    for utilities, inside in ((here, in_here), (there, in_there)):
        places = np.flatnonzero(inside)
        logs = selection_log_chances(utilities[places].tolist(), eta=eta, mechanism=mechanism)  # type: ignore[arg-type]
        sides.append(dict(zip(places.tolist(), logs.tolist(), strict=True)))
    expected = naive_divergence(sides[0], sides[1], EPSILON)
    assert found.delta == pytest.approx(expected.delta, abs=ERROR)
    assert found.ratio == pytest.approx(expected.ratio, abs=ERROR)


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_three_contexts_by_hand(mechanism: str) -> None:
    """Two equal contexts; a removal takes the second away: its chance of a half is the delta."""
    here = np.array([5, 5])
    scores = Scores(here, here, np.array([True, True]), np.array([True, False]))
    found = divergence(scores, eta=0.1, epsilon=math.log(2), mechanism=mechanism)
    # The other way: 1 - 2 * 1/2 = 0. The first one's chance doubles.
    assert found == pytest.approx((0.5, math.log(2)))


@pytest.mark.parametrize("gap", [10, 1000, 10**6])
def test_a_best_context_that_is_lost_is_nearly_all_of_the_chance(gap: int) -> None:
    here = np.array([gap, 0, 0])
    scores = Scores(here, here, np.ones(3, dtype=bool), np.array([False, True, True]))
    found = divergence(scores, eta=1.0, epsilon=0.1, mechanism="exponential")
    # Its own chance; the other way, what the two others gain beyond the factor.
    first = 1 / (1 + 2 * math.exp(-gap))
    assert found.delta == pytest.approx(max(first, 1 - math.exp(0.1) * (1 - first)), abs=1e-12)
    assert found.ratio == pytest.approx(gap + math.log1p(2 * math.exp(-gap)) - math.log(2))


def test_nothing_on_both_sides_is_the_same_answer() -> None:
    nothing, nobody = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=bool)
    scores = Scores(nothing, nothing, nobody, nobody)
    assert divergence(scores, eta=1.0, epsilon=1.0, mechanism="exponential") == (0.0, 0.0)


def test_a_changed_table_is_the_table_built_anew() -> None:
    rows = [("a", "x", 40.0), ("b", "y", 3.0), ("b", "y", 3.0), ("c", "x", 5.0)]
    other = changed_table(
        small(rows, DETECTORS["lof"]).table,
        removed=[ChangedRow((1, 1), 3.0), ChangedRow((2, 0), 5.0)],
        added=[ChangedRow((0, 1), 7.0)],
    )
    anew = small([rows[0], rows[1], ("a", "y", 7.0)], DETECTORS["lof"]).table
    masks = list(range(1 << SCHEMA.width))
    assert other.populations(masks).tolist() == anew.populations(masks).tolist()
    for mask in masks:
        for side, built in zip(other.distribution(mask), anew.distribution(mask), strict=True):
            assert side.tolist() == built.tolist()


# -- differential privacy for everyone but the record ---------------------------------------------


@few
@given(
    st.lists(
        st.tuples(st.sampled_from("abc"), st.sampled_from("xy"), st.integers(0, 20).map(float)),
        max_size=8,
    ),
    st.sampled_from(sorted(COUNTING)),
    st.sampled_from(MECHANISMS),
)
def test_under_dp_nobody_is_exposed_and_the_ratio_is_that_of_every_neighbour(
    others: list[Row], name: str, mechanism: str
) -> None:
    rows = [("a", "x", 15.0), *others]
    options: dict[str, Any] = {"detector": COUNTING[name], "guarantee": "dp"}
    options["selection"] = mechanism
    table = small(rows, COUNTING[name]).table
    found = exposure(table, 0, EPSILON, insert=[0.0, 15.0], **options)
    assert (found.exposed, found.newcomers, found.largest_delta) == ((), (), 0.0)
    assert found.everyone is not None
    assert found.everyone <= EPSILON + ROUNDING
    before = exact_log_chances(table, 0, EPSILON, **options)
    ratios = [
        naive_divergence(
            before,
            exact_log_chances(small(there, COUNTING[name]).table, 0, EPSILON, **options),
            EPSILON,
        )
        for there in changes(rows, [0.0, 15.0]).values()
    ]
    assert found.everyone == pytest.approx(max(r.ratio or 0.0 for r in ratios), abs=ROUNDING)
    assert max(r.delta for r in ratios) == pytest.approx(0.0, abs=ROUNDING)


def test_the_relaxed_guarantee_exposes_whom_dp_does_not() -> None:
    detector = COUNTING["tail"]
    table = small(CROWD, detector).table
    relaxed = exposure(table, 0, EPSILON, detector=detector)
    pure = exposure(table, 0, EPSILON, detector=detector, guarantee="dp")
    assert relaxed.exposed_people > 0
    assert relaxed.largest_delta > 0.01
    assert pure.exposed_people == 0
    assert "exposes nobody" in pure.verdict


def test_a_space_too_large_for_every_ratio_under_dp_says_what_is_proven(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(everyone, "_MOST_SCORES", 10)
    detector = COUNTING["tail"]
    table = small(CROWD, detector).table
    found = exposure(table, 0, EPSILON, detector=detector, guarantee="dp")
    assert found.largest_ratio is None
    assert "Computed" not in found.verdict


# -- what it says ---------------------------------------------------------------------------------

# Four people and V: with a minimum of five, everybody is needed for V to be an outlier anywhere.
NEEDED = [("a", "x", 40.0), *[("a", "x", float(pay)) for pay in (1, 2, 2, 3)]]
FIVE = pcor.LOF(k=2, threshold=1.3, min_population=5)
CROWD = [
    ("a", "x", 40.0),
    *[("abc"[n % 3], "xy"[n % 2], float(n)) for n in range(9)],
]


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_whoever_decides_whether_there_is_any_answer_faces_a_delta_of_one(mechanism: str) -> None:
    found = exposure(small(NEEDED, FIVE).table, 0, 0.2, detector=FIVE, selection=mechanism)
    assert found.exposed_people == 4
    assert [(one.metric, one.people) for one in found.exposed] == [(1.0, 1), (2.0, 2), (3.0, 1)]
    assert found.largest_delta == 1.0
    assert found.largest_ratio is None
    assert found.facing(0.5) == 4
    assert found.verdict.startswith(
        "For record 0, a release under OCDP with epsilon 0.2 would expose 4 people of 4: "
    )
    assert "The most exposed faces a delta of more than 0.999999999:" in found.verdict
    assert "Under guarantee 'dp' (detectors tail, neighbourhood, rare_bin) nobody" in found.verdict


def test_a_record_that_is_no_outlier_yet_has_people_who_would_make_it_one() -> None:
    found = exposure(small(NEEDED[:-1], FIVE).table, 0, 0.2, detector=FIVE, insert=[2.0])
    assert found.contexts == 0
    assert found.exposed == ()
    assert found.largest_newcomer_delta == 1.0
    assert "expose nobody of the 3 people looked at" in found.verdict
    assert "and empty, so the answer is always that none was found." in found.verdict
    assert "the most exposed would face a delta of more than 0.999999999" in found.verdict


def test_newcomers_are_looked_at_only_where_wanted() -> None:
    table = small(CROWD, DETECTORS["lof"]).table
    none = exposure(table, 0, 0.2, detector=DETECTORS["lof"], insert=[])
    assert (none.tried, none.newcomers) == (0, ())
    assert "newcomers" not in none.verdict
    usual = exposure(table, 0, 0.2, detector=DETECTORS["lof"])
    assert usual.metrics == (0.0, 2.0, 4.0, 7.0, 40.0)  # quartiles of ten rows, and V's own
    assert usual.tried == 6 * 5


def test_newcomers_that_nobody_asked_for_are_passed_over_where_they_are_too_many(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise TooLarge("too many")

    monkeypatch.setattr(MODULE, "insertions", refuse)
    table = small(CROWD, DETECTORS["lof"]).table
    found = exposure(table, 0, 0.2, detector=DETECTORS["lof"])
    assert found.tried == 0
    assert "Newcomers were not looked at" in found.verdict
    with pytest.raises(TooLarge):
        exposure(table, 0, 0.2, detector=DETECTORS["lof"], insert=[1.0])


def test_some_people_can_be_looked_at_alone() -> None:
    table = small(NEEDED, FIVE).table
    found = exposure(table, 0, 0.2, detector=FIVE, rows=[0, 1, 4], insert=[])
    assert found.people == 2  # not the record itself
    assert [one.metric for one in found.exposed] == [1.0, 3.0]
    alike = exposure(table, 0, 0.2, detector=FIVE, rows=[2], insert=[])
    assert (alike.people, alike.exposed_people) == (2, 2)  # rows 2 and 3 are alike


def test_several_records_are_audited_each_by_itself() -> None:
    table = small(NEEDED, FIVE).table
    found = exposures(table, [0, 1], 0.2, detector=FIVE, insert=[])
    assert [one.record for one in found] == [0, 1]
    assert found[0].to_dict() == exposure(table, 0, 0.2, detector=FIVE, insert=[]).to_dict()


def test_an_audit_shows_nothing_unless_it_is_asked_to() -> None:
    found = exposure(small(NEEDED, FIVE).table, 0, 0.2, detector=FIVE)
    assert repr(found) == "<Exposure: PRIVATE, for the owner only>"
    assert repr(found.exposed[0]) == "<Exposed: PRIVATE, for the owner only>"
    assert str(found).splitlines()[0] == OWNER_ONLY
    assert next(iter(found.to_dict())) == "owner_only"


def test_an_audit_can_be_written_as_json() -> None:
    found = exposure(small(NEEDED, FIVE).table, 0, 0.2, detector=FIVE, insert=[2.0])
    read = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert read["exposed_people"] == 4
    assert read["exposed"][0]["values"] == {"job": "a", "city": "x"}
    assert read["newcomers"]["tried"] == 6
    assert read["plan"]["epsilon_exact"] == "0.2"


def test_progress_never_goes_back_and_ends_at_the_end() -> None:
    heard: list[tuple[int, int]] = []
    exposure(
        small(NEEDED, FIVE).table,
        0,
        0.2,
        detector=FIVE,
        progress=lambda done, total: heard.append((done, total)),
    )
    assert heard == sorted(heard)
    assert heard[-1][0] == heard[-1][1]


def test_a_verdict_about_hardly_anything_says_so() -> None:
    plan = pcor.plan(SCHEMA, 0.2)
    one = Exposed("removed", {"job": "a", "city": "x"}, 1.0, 1, 1, 0, 1e-15, 0.1)
    found = Exposure(0, plan, 5, 10, (one,))
    assert "would expose 1 person of 10" in found.verdict
    assert "a delta of less than 1e-09: hardly anything" in found.verdict
    noticed = replace(found, exposed=(replace(one, delta=0.01),))
    assert "with at least that chance the answer, on the table with them or" in noticed.verdict


# -- refusals -------------------------------------------------------------------------------------


def test_a_search_with_too_many_decisions_points_to_what_can_be_audited() -> None:
    table = small(CROWD, DETECTORS["lof"]).table
    with pytest.raises(TooLarge, match=r"'direct' or 'widest_first'.*sampled_epsilon"):
        exposure(table, 0, 0.2, detector=DETECTORS["lof"], search="uniform", samples=50)


@pytest.mark.parametrize("metric", [math.nan, math.inf, -1e200, "many"])
def test_metrics_of_newcomers_must_be_such_as_a_table_can_hold(metric: Any) -> None:
    with pytest.raises(ParameterError, match="insert must be finite numbers up to 1e"):
        exposure(small(NEEDED, FIVE).table, 0, 0.2, detector=FIVE, insert=[metric])


def test_a_space_too_large_to_list_is_refused() -> None:
    wide = pcor.Schema(metric="pay", attributes={"job": [f"job {n}" for n in range(40)]})
    table = pcor.Table(pa.table({"pay": [1.0, 2.0], "job": ["job 0", "job 1"]}), wide)
    with pytest.raises(TooLarge, match="possible contexts"):
        exposure(table, 0, 0.2, search="widest_first")


def test_a_larger_space_is_listed_where_the_limit_is_raised(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(MODULE, "ENUMERATION_LIMIT", 4)
    table = small(NEEDED, FIVE).table
    with pytest.raises(TooLarge, match=r"more than the limit of 4; raise limit="):
        exposure(table, 0, 0.2, detector=FIVE)
    assert exposure(table, 0, 0.2, detector=FIVE, limit=1000, insert=[]).exposed_people == 4


# -- a real table ---------------------------------------------------------------------------------


@pytest.mark.skipif("PCOR_DATA" not in os.environ, reason="PCOR_DATA names no folder of tables")
def test_on_the_authors_table_the_most_exposed_are_exposed_by_recomputation() -> None:
    folder = Path(os.environ["PCOR_DATA"])
    file = folder / "authors_salary_11k.parquet"
    table = pcor.Table(file, folder / "authors_salary_11k.toml")
    record = pcor.outliers(table)[0]
    found = exposure(table, record, 0.2, insert=[])
    before = pcor.matching_contexts(table, record)
    assert found.contexts == len(before)
    assert found.people == 11_395
    old = set(map(tuple, before.masks.tolist()))
    for one in found.exposed[:5]:
        places = tuple(a.codes[one.values[a.name]] for a in table.schema.attributes)
        other = changed_table(table, removed=[ChangedRow(places, one.metric)])
        new = set(map(tuple, pcor.matching_contexts(other, record).masks.tolist()))
        assert (len(old - new), len(new - old)) == (one.lost, one.gained)
        here, there = (exact_log_chances(side, record, 0.2) for side in (table, other))
        assert one.delta == pytest.approx(naive_divergence(here, there, 0.2).delta, abs=ROUNDING)
