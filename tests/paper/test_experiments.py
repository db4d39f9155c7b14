"""The paper's experiments: what they measure, how they resume, what they leave behind."""

from __future__ import annotations

import csv
import hashlib
import json
import os
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet
from typer.testing import CliRunner

import pcor
from pcor.audit.exact import exact_log_chances
from pcor.audit.neighbours import removals
from pcor.cli import app
from pcor.cli.experiment import NAMES
from pcor.errors import ParameterError, UnknownName
from pcor.paper import comparison, measurement, ratio, tables
from pcor.paper.catalogue import EXPERIMENTS
from pcor.paper.experiments import SYNTHETIC, ExperimentRequest, conduct
from pcor.paper.locality import MODULUS, RandomAssignment
from pcor.paper.published import SAMPLING
from pcor.paper.store import NOT_PRIVATE
from pcor.paper.subjects import has_more_than, subjects
from pcor.paper.summary import mean_and_interval, time_histogram
from pcor.paper.ways import Way, authors_detector, ours, paper
from pcor.public.guarantee import OWNER_ONLY
from pcor.releasing.run import draw
from pcor.search.validity import Validity
from tests.helpers.paper_units import BFS, DIRECT, REDUCED, pcor_, unit

# -- what is measured -----------------------------------------------------------------------------


@pytest.mark.parametrize("detector", ["lof", "grubbs", "histogram"])
def test_a_subject_starts_in_one_of_its_valid_contexts(detector: str) -> None:
    for subject in subjects(REDUCED, detector, 0, 0):
        table, key = subject.validity.table, subject.validity.record.key
        assert pcor.is_outlier(table, key, subject.start, authors_detector(detector))


@pytest.mark.parametrize("number", range(3))
def test_the_group_of_many_has_more_valid_contexts_than_the_paper_asked_for(number: int) -> None:
    for subject in subjects(REDUCED, "lof", number, 0):
        table, key = subject.validity.table, subject.validity.record.key
        count = len(pcor.matching_contexts(table, key, pcor.LOF()))
        assert ("many" in subject.groups) == (count > tables.MANY)


def test_looking_for_more_than_so_many_contexts_agrees_with_listing_them() -> None:
    table = tables.load(REDUCED)
    validity = subjects(REDUCED, "lof", 0, 0)[0].validity
    count = len(pcor.matching_contexts(table, validity.record.key))
    assert [has_more_than(validity, count + more) for more in (-1, 0, 1)] == [True, False, False]


def test_every_repetition_has_a_record_of_either_group() -> None:
    for number in range(3):
        groups = [g for s in subjects(REDUCED, "histogram", number, 1) for g in s.groups]
        assert sorted(groups) == ["all", "many"]


def test_utility_is_the_population_over_the_largest_of_all_valid_contexts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    drawn: list[int] = []

    def watched(*given: Any) -> int:
        drawn.append(draw(*given))
        return drawn[-1]

    monkeypatch.setattr(measurement, "draw", watched)
    measured = measurement.measure(unit(0, BFS))[BFS]
    subject = subjects(REDUCED, "lof", 0, 0)[-1]  # the one with many contexts comes last
    assert "many" in subject.groups
    table = tables.load(REDUCED)
    largest = pcor.matching_contexts(table, subject.validity.record.key).populations.max()
    expected = int(table.populations(drawn[-1:])[0]) / int(largest)
    assert measured["many"]["utility"] == pytest.approx(expected, abs=1e-6)


def test_the_direct_mechanism_gives_what_a_release_with_the_same_decisions_gives() -> None:
    subject = subjects(REDUCED, "lof", 1, 0)[0]
    table, record = subject.validity.table, subject.validity.record
    walk = measurement._SubjectReleases(subject)
    for epsilon in ("0.2", "0.05", "0.01"):  # the second and third go on with the first one's walk
        way = ours(epsilon)
        utility = walk.measured(way, pcor.testing.seeded(7))["utility"]
        released = pcor.release(
            table, record.key, epsilon, "lof", "direct", chooser=pcor.testing.seeded(7)
        )
        best = int(pcor.matching_contexts(table, record.key).populations.max())
        population = int(table.populations([released.context.mask])[0])
        assert utility == pytest.approx(population / best, abs=1e-6)


def test_only_a_walk_of_its_own_is_timed() -> None:
    measured = measurement.measure(unit(0, DIRECT, ours("0.05").key))
    assert "seconds" in measured[DIRECT]["many"]
    assert "seconds" not in measured[ours("0.05").key]["many"]


def test_overlap_with_the_start_is_at_most_one() -> None:
    way = paper("breadth_first", "0.2", 10, "overlap").key
    direct = ours("0.2", "overlap").key
    measured = measurement.measure(unit(0, way, direct))
    assert 0 < measured[way]["many"]["utility"] <= 1
    assert measured[direct]["many"]["utility"] > 0.9


def test_the_same_unit_is_measured_the_same_twice_and_another_seed_otherwise() -> None:
    def utilities(seed: int) -> list[float]:
        found = [measurement.measure(unit(n, BFS, seed=seed))[BFS] for n in range(2)]
        return [group["utility"] for one in found for group in one.values()]

    assert utilities(0) == utilities(0)
    assert utilities(0) != utilities(1)


@given(
    st.builds(
        Way,
        settings=st.builds(
            pcor.Settings,
            search=st.sampled_from(["direct", "breadth_first"]),
            samples=st.one_of(st.none(), st.integers(1, 500)),
            accounting=st.sampled_from(["tight", "paper"]),
            utility=st.sampled_from(["population", "overlap"]),
        ),
        epsilon=st.sampled_from(["0.2", "0.05"]),
    )
)
def test_a_way_is_read_back_from_its_key(way: Way) -> None:
    assert Way.read(way.key) == way


# -- the other experiments ------------------------------------------------------------------------


def small_table(numbers: random.Random, rows: int = 60) -> pa.Table:
    """Return rows that keep one cell apart, with a few far values."""
    pay = [float(numbers.randint(0, 20)) for _ in range(rows - 3)] + [90.0, 80.0, 70.0]
    return pa.table(
        {
            "job": [numbers.choice("abc") for _ in pay],
            "city": [numbers.choice("xy") for _ in pay],
            "pay": pay,
        }
    )


SMALL = pcor.Schema(metric="pay", attributes={"job": list("abc"), "city": list("xy")})


@pytest.mark.parametrize("seed", range(4))
def test_the_largest_ratio_is_that_of_the_exact_chances_on_both_tables(seed: int) -> None:
    rows = small_table(random.Random(seed))  # noqa: S311 (test data)
    table, rule, queried = pcor.Table(rows, SMALL), pcor.Grubbs(min_population=5), 57
    validity = Validity(table, table.record(queried), rule)
    answers = ratio.direct_comparison(validity)
    asked: dict[str, Any] = {
        "detector": rule,
        "search": "direct",
        "accounting": "paper",
        "selection": "exponential",
    }
    before = exact_log_chances(table, queried, 0.2, **asked)
    looked = 0
    for change in removals(validity):
        codes = list(zip("abc", range(3), strict=True)), list(zip("xy", range(2), strict=True))
        cell = tuple(
            next(name for name, code in domain if code == place)
            for domain, place in zip(codes, change.places, strict=True)
        )
        row = next(
            n
            for n, (job, city, pay) in enumerate(zip(*rows.to_pydict().values(), strict=True))
            if n != queried and (job, city) == cell and pay == change.value
        )
        kept = [n for n in range(len(rows)) if n != row]
        other = pcor.Table(rows.take(kept), SMALL)
        after = exact_log_chances(other, kept.index(queried), 0.2, **asked)
        both = [c for c in before if c in after and c is not None]
        expected = max((abs(before[c] - after[c]) for c in both), default=None)
        found = answers.against(change).ratio
        assert (found is None) == (expected is None)
        if expected is not None:
            assert found == pytest.approx(expected, abs=1e-9)
        looked += 1
    assert looked or seed  # the first table has such rows


def test_the_random_rule_is_the_hash_of_the_context_and_the_record() -> None:
    known = subjects(REDUCED, "lof", 0, 0)[0].validity
    validity = RandomAssignment(known.table, known.record, known.detector)
    masks = [known.record.space.mask(index) for index in range(known.record.space.size)]
    expected = [
        int(hashlib.md5(m.to_bytes(8, "little") + str(known.record.key).encode()).hexdigest(), 16)  # noqa: S324
        % MODULUS
        == 0
        for m in masks
    ]
    assert validity(masks).tolist() == expected
    # Binomial(2048, 1/128): outside 1 to 45 with a chance below 1e-6, and the hash is fixed anyway.
    assert 1 <= sum(expected) <= 45


@pytest.mark.usefixtures("few")
def test_without_locality_breadth_first_search_finds_next_to_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("pcor.paper.locality.QUICK", 2)
    rows = conduct(ExperimentRequest(("locality",), quick=True, workers=1), tmp_path)[0]["rows"]
    found = {row["rule"]: row["mean_samples"] for row in rows}
    assert found["at random"] < 5 < min(found[name] for name in ("lof", "grubbs", "histogram"))


@pytest.mark.usefixtures("few")
def test_coe_match_counts_removed_and_added_rows_apart(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("pcor.paper.coe_match.QUICK", 1)
    monkeypatch.setattr("pcor.paper.coe_match.NEIGHBOURS", 2)
    rows = conduct(ExperimentRequest(("coe_match",), quick=True, workers=1), tmp_path)[0]["rows"]
    assert [row["changed_rows"] for row in rows] == [1, 5, 10, 25] * 6
    assert {row["kind"] for row in rows} == {"removed", "added"}
    assert all(0 <= row["equal"] <= row["common"] <= 1 for row in rows)
    assert not any("paper" in row for row in rows)  # the paper has no synthetic table


# -- sums -----------------------------------------------------------------------------------------


def test_the_interval_is_the_normal_one_where_that_is_right() -> None:
    numbers = np.random.default_rng(3).normal(0.5, 0.1, 400)
    mean, low, high = mean_and_interval(numbers.tolist())
    assert mean is not None
    half = 1.645 * numbers.std() / 20
    assert mean == pytest.approx(numbers.mean(), abs=1e-4)
    # Quantiles of 10,000 resamples are off by a hundredth of the half-width or two.
    assert [low, high] == pytest.approx([mean - half, mean + half], abs=half / 10)


@given(st.lists(st.floats(1e-5, 1e4), min_size=1, max_size=30))
def test_every_time_is_in_one_bin_of_the_histogram(seconds: list[float]) -> None:
    bins = time_histogram(seconds)
    assert sum(count for _, _, count in bins) == len(seconds)
    assert bins[0][0] <= min(seconds) * 1.001
    assert max(seconds) <= bins[-1][1] * 1.001


def test_within_is_the_union_of_the_papers_interval_and_three_hundredths() -> None:
    row = SAMPLING["uniform"]  # 0.65 (0.64, 0.67)
    assert [row.near(u) for u in (0.61, 0.62, 0.65, 0.68, 0.69)] == [False, True, True, True, False]


# -- what is left behind --------------------------------------------------------------------------


@pytest.fixture(scope="module")
def detectors(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Run one experiment on the command line, on the reduced synthetic table."""
    out = tmp_path_factory.mktemp("results")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(comparison, "QUICK", 2)
        code, said, err = pcor_(
            "detectors", "--quick", "--table", REDUCED, "--workers", 1, "--out", out
        )
        assert code == 0, err
        (out / "said.txt").write_text(said)
        yield out


def test_the_first_lines_say_who_is_in_the_table_and_that_nothing_is_private(
    detectors: Path,
) -> None:
    first, second, *_ = (detectors / "said.txt").read_text().splitlines()
    assert [first, second] == [SYNTHETIC, NOT_PRIVATE]


def test_the_summary_has_all_that_is_needed_to_run_it_again(detectors: Path) -> None:
    found = json.loads((detectors / "detectors.json").read_text())
    assert found["private"] is False
    assert found["command"] == f"pcor experiment detectors --table {REDUCED} --quick --seed 0"
    assert found["about"]["tables"] == {REDUCED: tables.fingerprint(REDUCED)}
    assert {"pcor", "python", "numpy", "numba"} <= set(found["about"]["versions"])
    assert found["about"]["settings"] == {"seed": 0, "quick": True}
    assert found["run"]["units_measured"] == 4


def test_nothing_of_the_machine_but_its_kind_is_written(detectors: Path) -> None:
    text = (detectors / "detectors.json").read_text() + (detectors / "detectors.csv").read_text()
    name = os.uname().nodename
    assert str(detectors) not in text
    assert str(Path.home()) not in text
    assert name not in text or len(name) < 4


def test_the_csv_has_the_rows_of_the_json(detectors: Path) -> None:
    rows = json.loads((detectors / "detectors.json").read_text())["rows"]
    with (detectors / "detectors.csv").open() as file:
        listed = list(csv.DictReader(file))
    assert [(r["label"], r["group"]) for r in listed] == [(r["label"], r["group"]) for r in rows]
    assert [float(r["utility"]) for r in listed] == [r["utility"] for r in rows]


def test_our_defaults_are_beside_the_papers_settings_and_other_readings(detectors: Path) -> None:
    rows = json.loads((detectors / "detectors.json").read_text())["rows"]
    readings = {(row["detector"], row["reading"], row["epsilon"]) for row in rows}
    assert {(detector, reading) for detector, reading, _ in readings} == {
        (detector, reading)
        for detector in ("grubbs", "histogram")
        for reading in (comparison.PAPER, comparison.OTHER, comparison.OURS)
    }
    ours = [row["utility"] for row in rows if row["reading"] == comparison.OURS]
    assert all(utility > 0.99 for utility in ours)


@pytest.mark.usefixtures("few")
def test_a_real_table_makes_the_output_the_owners(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    table = tables.load(REDUCED)
    source = tables._reduced()[0]
    parquet.write_table(source, tmp_path / "authors_salary_11k.parquet")
    (tmp_path / "authors_salary_11k.toml").write_text(table.schema.to_toml())
    monkeypatch.setenv(tables.FOLDER, str(tmp_path))
    monkeypatch.setattr("pcor.paper.locality.QUICK", 1)
    tables.load.cache_clear()
    tables.fingerprint.cache_clear()
    try:
        code, said, err = pcor_("locality", "--quick", "--workers", 1, "--out", tmp_path / "out")
    finally:
        tables.load.cache_clear()
        tables.fingerprint.cache_clear()
    assert code == 0, err
    assert said.startswith(OWNER_ONLY)
    assert "authors_salary_11k" in said
    assert str(tmp_path) not in (tmp_path / "out" / "locality.json").read_text()


# -- asking ---------------------------------------------------------------------------------------


def test_every_experiment_is_a_command() -> None:
    assert set(NAMES) == set(EXPERIMENTS)
    listed = CliRunner().invoke(app, ["experiment", "--help"]).stdout
    assert all(name in listed for name in (*EXPERIMENTS, "all", "report", "prepare"))


def test_without_real_tables_the_synthetic_ones_serve(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(tables.FOLDER, raising=False)
    assert ExperimentRequest(("sampling",)).chosen("sampling") == ("synthetic",)
    assert ExperimentRequest(("coe_match",)).chosen("coe_match") == ("synthetic_reduced",)


def test_what_cannot_be_run_is_refused_in_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(tables.FOLDER, raising=False)
    with pytest.raises(ParameterError, match=r"--table salary_51k: set PCOR_DATA to a folder"):
        ExperimentRequest(("sampling",), ("salary_51k",)).chosen("sampling")
    with pytest.raises(UnknownName, match=r"unknown table 'synthtic'; did you mean 'synthetic'"):
        ExperimentRequest(("sampling",), ("synthtic",)).chosen("sampling")
    with pytest.raises(UnknownName, match=r"unknown experiment 'samplin'"):
        ExperimentRequest(("samplin",))
    code, out, err = pcor_("sampling", "--workers", 0)
    assert (code, out) == (2, "")
    assert "workers must be a whole number" in err
