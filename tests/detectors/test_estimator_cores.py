"""Detectors that are fitted anew in every context: on all cores, in silence, and timed before."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import sklearn
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.ensemble import IsolationForest
from sklearn.neighbors import LocalOutlierFactor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.svm import OneClassSVM
from typer.testing import CliRunner

import pcor
from pcor.cli import app
from pcor.detectors import registry
from pcor.errors import ParameterError, others_code
from pcor.releasing import estimate
from pcor.search.validity import Validity
from pcor.support import threads as parallel
from tests.helpers.families import with_steps
from tests.helpers.waiting import DEADLINE

Numbers = NDArray[np.float64]

SCHEMA = pcor.Schema(
    metric="amount",
    attributes={"a": ["p", "q", "r"], "b": ["s", "t", "u"], "c": ["v", "w"]},
)


@pytest.fixture(scope="module")
def table() -> pcor.Table:
    """300 rows; row 0 is far away in some contexts and has company in others."""
    generator = np.random.default_rng(5)
    columns: dict[str, Any] = {
        attribute.name: generator.choice(attribute.values, 300) for attribute in SCHEMA.attributes
    }
    columns["amount"] = np.round(generator.lognormal(3, 0.5, 300))
    columns["amount"][:4] = [70, 68, 71, 69]
    return pcor.Table(pd.DataFrame(columns), SCHEMA)


@pytest.fixture
def two_cores(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Two threads, whatever the machine has."""
    parallel._pool.cache_clear()
    monkeypatch.setattr(parallel, "cores", lambda: 2)
    yield
    parallel._pool.cache_clear()


def every_verdict(table: pcor.Table, detector: pcor.Detector) -> list[bool]:
    record = table.record(0)
    masks = [record.space.mask(index) for index in range(record.space.size)]
    return [bool(verdict) for verdict in Validity(table, record, detector)(masks)]


class Own(BaseEstimator):  # type: ignore[misc]
    """An estimator of the user's: the score is the distance to the median."""

    def fit(self, column: Numbers) -> Own:
        self.decision_scores_ = np.abs(column[:, 0] - np.median(column))
        return self


class Raises(Own):
    def fit(self, column: Numbers) -> Own:
        raise ValueError(f"cannot fit {column.tolist()}")


class Warns(Own):
    def fit(self, column: Numbers) -> Own:
        warnings.warn(f"{len(column)} rows", stacklevel=1)
        # scikit-learn's own way with the filters, for long enough to be in another thread's way.
        with warnings.catch_warnings():
            warnings.resetwarnings()
            time.sleep(1e-4)
            warnings.warn(f"{len(column)} rows", stacklevel=1)
        return super().fit(column)


# -- the cores ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "detector",
    [
        pcor.Estimator(LocalOutlierFactor(n_neighbors=10), 1.5),
        pcor.Estimator(IsolationForest(n_estimators=5, random_state=0), 0.6),
        pcor.Estimator(make_pipeline(StandardScaler(), OneClassSVM(nu=0.1)), -2.0),
        pcor.Estimator(Own(), 40.0, threads=True),
        pcor.Estimator(lambda numbers: numbers - np.median(numbers), 40.0, threads=True),
    ],
    ids=["lof", "forest", "pipeline", "own", "function"],
)
@pytest.mark.usefixtures("two_cores")
def test_two_cores_say_what_one_says(table: pcor.Table, detector: pcor.Estimator) -> None:
    two = every_verdict(table, detector)
    assert two == every_verdict(table, replace(detector, threads=False))
    assert set(two) == {True, False}


@pytest.mark.parametrize(
    ("detector", "expected"),
    [
        (pcor.Estimator(LocalOutlierFactor(), 1.5), True),
        (pcor.Estimator(make_pipeline(StandardScaler(), OneClassSVM()), 1.0), True),
        (pcor.Estimator(LocalOutlierFactor(), 1.5, threads=False), False),
        # What runs code of the user, or uses the cores itself, keeps to one.
        (pcor.Estimator(lambda numbers: numbers > 3), False),
        (pcor.Estimator(Own(), 1.0), False),
        (pcor.Estimator(make_pipeline(FunctionTransformer(np.sqrt), OneClassSVM()), 1.0), False),
        (pcor.Estimator(LocalOutlierFactor(metric=lambda x, y: abs(x - y)[0]), 1.5), False),
        (pcor.Estimator(LocalOutlierFactor(n_jobs=2), 1.5), False),
        (pcor.Estimator(make_pipeline(StandardScaler(), Own()), 1.0), False),
        (pcor.Estimator(Own(), 1.0, threads=True), True),
    ],
)
@pytest.mark.usefixtures("two_cores")
def test_only_rules_known_to_bear_it_run_in_several_threads(
    table: pcor.Table,
    detector: pcor.Estimator,
    expected: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: set[bool] = set()

    def seen(*_: object) -> bool:
        asked.add(threading.current_thread() is threading.main_thread())
        return False

    monkeypatch.setattr(pcor.Estimator, "is_outlier", seen)
    every_verdict(table, detector)
    assert asked == {not expected}


def test_threads_is_yes_no_or_nothing() -> None:
    with pytest.raises(ParameterError, match="threads must be True, False or None"):
        pcor.Estimator(Own(), 1.0, threads="two")  # type: ignore[arg-type]


@pytest.mark.usefixtures("two_cores")
def test_other_threads_have_the_settings_of_the_caller(table: pcor.Table) -> None:
    seen: set[tuple[int, str]] = set()

    def rule(numbers: Numbers) -> NDArray[np.bool_]:
        seen.add((sklearn.get_config()["working_memory"], np.geterr()["over"]))
        return numbers > 1

    with sklearn.config_context(working_memory=77), np.errstate(over="raise"):
        every_verdict(table, pcor.Estimator(rule, threads=True))
    assert seen == {(77, "raise")}


@pytest.mark.usefixtures("two_cores")
def test_work_that_shares_out_its_own_work_comes_to_an_end() -> None:
    done: list[tuple[int, int]] = []
    parallel.one_by_one(
        8, lambda outer: parallel.one_by_one(8, lambda inner: done.append((outer, inner)))
    )
    assert len(set(done)) == 64


@pytest.mark.usefixtures("two_cores")
def test_the_first_failure_is_told_and_nothing_runs_on_behind_it() -> None:
    running: set[int] = set()
    begun: list[int] = []

    def work(place: int) -> None:
        begun.append(place)
        running.add(place)
        time.sleep(0.02 if place == 3 else 0.002)  # the first to fail is not the first to say so
        running.discard(place)
        if place >= 3:
            raise ValueError(str(place))

    with pytest.raises(ValueError, match=r"^3$"):
        parallel.one_by_one(500, work)
    assert not running
    assert len(begun) < 500
    count = len(begun)
    time.sleep(0.02)
    assert len(begun) == count


def test_a_forked_process_has_threads_of_its_own() -> None:
    """In a process of its own: a fork of this one would take its threads along."""
    script = (
        "import os\nfrom pcor.support import threads\nthreads.cores = lambda: 2\n"
        "threads.one_by_one(4, lambda _: None)\n"
        "child = os.fork()\n"
        "threads.one_by_one(4, lambda _: None)\n"
        "child or os._exit(7)\n"
        "print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\n"
    )
    ran = subprocess.run(  # noqa: S603
        [sys.executable, "-W", "ignore", "-c", script],
        capture_output=True,
        text=True,
        timeout=DEADLINE,
        check=True,
    )
    assert ran.stdout == "7\n"


# -- what it says ---------------------------------------------------------------------------------


@pytest.mark.parametrize("threads", [False, True])
@pytest.mark.parametrize(
    ("rule", "sentence"),
    [
        (Raises(), "^Raises failed with a ValueError; try it on a table that is not private$"),
        (lambda _: None, "must return one answer per row"),
        (lambda numbers: numbers[1:], "must return one answer per row"),
        (lambda numbers: ["odd"] * len(numbers), "failed with a "),
        (lambda numbers: 1 / 0 * numbers, "failed with a ZeroDivisionError"),
    ],
    ids=["raises", "nothing", "too few", "words", "divides"],
)
@pytest.mark.usefixtures("two_cores")
def test_a_failure_is_the_same_sentence_on_any_core(
    table: pcor.Table, rule: Any, sentence: str, threads: bool
) -> None:
    with pytest.raises(ParameterError, match=sentence) as caught:
        every_verdict(table, pcor.Estimator(rule, 1.0, threads=threads))
    assert caught.value.__cause__ is None


@pytest.mark.parametrize("rule", [Warns(), LocalOutlierFactor(n_neighbors=200)])
@pytest.mark.usefixtures("two_cores")
def test_no_thread_lets_a_warning_out(
    table: pcor.Table, rule: Any, capfd: pytest.CaptureFixture[str]
) -> None:
    filters, show = list(warnings.filters), warnings.showwarning
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        for _ in range(5):
            every_verdict(table, pcor.Estimator(rule, 1.5, threads=True))
    assert not heard
    assert capfd.readouterr().err == ""
    assert (list(warnings.filters), warnings.showwarning) == (filters, show)


def test_code_of_others_in_several_threads_leaves_the_filters_as_they_were() -> None:
    before = list(warnings.filters)
    first_in, last_out = threading.Barrier(2, timeout=DEADLINE), threading.Event()

    def short() -> None:
        with others_code("short"):
            first_in.wait()
        last_out.set()

    def long() -> None:
        with others_code("long"):
            first_in.wait()
            last_out.wait(DEADLINE)
            warnings.warn("private", stacklevel=1)  # an error in these tests, were it heard

    with ThreadPoolExecutor(2) as pool:
        for task in [pool.submit(short), pool.submit(long)]:
            task.result()
    assert list(warnings.filters) == before
    with pytest.warns(UserWarning, match="heard again"):
        warnings.warn("heard again", stacklevel=1)


# -- how long it takes ----------------------------------------------------------------------------


@dataclass
class Clock:
    """Stands still but while the rule runs, which takes ``each`` seconds by it."""

    each: float = 0.002
    now: float = 0.0

    def perf_counter(self) -> float:
        return self.now

    def rule(self, numbers: Numbers) -> NDArray[np.bool_]:
        self.now += self.each
        return numbers > 1


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(estimate, "time", clock)
    return clock


def test_an_estimate_is_what_was_measured_times_what_is_to_be_done(clock: Clock) -> None:
    plan = pcor.plan(SCHEMA, 1, detector=pcor.Estimator(clock.rule), search="direct")
    expected = plan.estimate(rows=1000)
    assert expected is not None
    assert expected.verifications == (2**5, 2**5)
    assert expected.rows == 333  # (4/6)(4/6)(3/4) of them
    assert expected.seconds_each == pytest.approx(0.002)
    assert expected.seconds == (32 * expected.seconds_each, 32 * expected.seconds_each)


@pytest.mark.parametrize(("each", "fits"), [(2, 1), (0.3, 1 + 4), (0.03, 1 + 4 + 16)])
def test_a_rule_is_timed_for_a_fraction_of_a_second_or_a_few_fits(
    clock: Clock, each: float, fits: int
) -> None:
    clock.each = each
    assert estimate.seconds_each(pcor.Estimator(clock.rule), 50) == pytest.approx(each)
    assert clock.now == pytest.approx(fits * each)


def test_an_estimate_reads_as_a_sentence() -> None:
    sure = estimate.Estimate((1024, 1024), 9000, 0.0204)
    assert str(sure) == (
        "1,024 verifications of 9,000 rows on average, 20 ms each on this machine: about 21 s"
    )
    lucky = estimate.Estimate((1079, 101_078), 9000, 0.0204)
    assert str(lucky) == (
        "1,079 to 101,078 verifications of 9,000 rows on average, 20 ms each on this machine: "
        "about 22 s to 34 minutes, by how soon valid contexts are met"
    )
    assert "days" in str(estimate.Estimate((1 << 5000, 1 << 5000), 9000, 0.0204))


@pytest.mark.usefixtures("two_cores")
def test_a_rule_is_timed_on_the_cores_that_it_may_use(clock: Clock) -> None:
    # Broken, and the rule fails, unless two run at once.
    both = threading.Barrier(2, timeout=DEADLINE)
    seen = set()

    def rule(numbers: Numbers) -> NDArray[np.bool_]:
        seen.add(threading.current_thread())
        if threading.current_thread() is not threading.main_thread():
            both.wait()
        return clock.rule(numbers)

    clock.each = 0.3
    estimate.seconds_each(pcor.Estimator(rule, threads=True), 50)
    assert len(seen) == 3  # a first fit here, then four by two others


def test_the_average_share_is_the_average_over_all_contexts() -> None:
    one_of_each = pd.DataFrame(itertools.product("pqr", "stu", "vw"), columns=["a", "b", "c"])
    table = pcor.Table(one_of_each.assign(amount=1.0), SCHEMA)
    space = table.record(0).space
    populations = table.populations([space.mask(index) for index in range(space.size)])
    assert estimate.average_share(SCHEMA) == pytest.approx(populations.mean() / 18)


def test_a_compiled_detector_needs_no_estimate() -> None:
    assert pcor.plan(SCHEMA, 1, detector="lof").estimate(rows=1000) is None


@pytest.mark.parametrize("rows", [0, -1, True, 2.5, "many", 10**12])
def test_an_estimate_for_no_number_of_rows_is_refused(rows: Any) -> None:
    with pytest.raises(ParameterError, match="rows must be a whole number from 1 to 100,000,000"):
        pcor.plan(SCHEMA, 1).estimate(rows)


@pytest.mark.parametrize(
    ("search", "free", "expected"),
    [
        (pcor.Direct(), 10, (128, 1024)),
        (pcor.Uniform(samples=50), 10, (1024, 1024)),
        (pcor.Uniform(samples=50), 40, (50, 100_000)),
        (pcor.BreadthFirst(samples=50), 40, (1 + 49 * 40, 100_000 + 49 * 40)),
        (pcor.BreadthFirst(start=pcor.Context.full(SCHEMA)), 40, (1 + 49 * 40, 1 + 49 * 40)),
        (pcor.RandomWalk(samples=50), 4, (16, 16)),
    ],
)
def test_the_verifications_of_a_search_follow_from_public_numbers(
    search: pcor.Search, free: int, expected: tuple[int, int]
) -> None:
    assert search.verifications(with_steps(free)) == expected


SEARCHES: list[Callable[..., pcor.Search]] = [
    pcor.Uniform,
    pcor.RandomWalk,
    pcor.DepthFirst,
    pcor.BreadthFirst,
]


@pytest.mark.parametrize("search", [pcor.Direct(), *(s(samples=3, tries=9) for s in SEARCHES)])
def test_no_release_judges_more_contexts_than_its_plan_says(
    table: pcor.Table, search: pcor.Search
) -> None:
    judged = 0

    def rule(numbers: Numbers) -> NDArray[np.bool_]:
        nonlocal judged
        judged += 1
        return numbers > 60

    pcor.release(table, 0, 1, pcor.Estimator(rule, min_population=1), search)
    assert 0 < judged <= search.verifications(table.schema)[1]


def test_the_command_line_tells_the_time_before_it_starts(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "rows.csv").write_text("no table at all: no row is looked at")
    (tmp_path / "schema.toml").write_text(SCHEMA.to_toml())
    request = ["plan", str(tmp_path / "rows.csv"), "--schema", str(tmp_path / "schema.toml")]
    request += ["--record", "0", "--epsilon", "1", "--rows", "1000"]
    monkeypatch.setitem(registry._registered, "slow", lambda: pcor.Estimator(clock.rule))
    ran = [
        CliRunner().invoke(app, [*request, "--detector", *rest]).stdout
        for rest in (["slow"], ["slow", "--json"], ["lof"])
    ]
    assert "\nTime: 32 verifications of 333 rows on average, 2 ms each on this machine" in ran[0]
    assert json.loads(ran[1])["estimate"]["verifications"] == [32, 32]
    assert ran[2].endswith(
        "microseconds for each context, however many rows; this detector is compiled.\n"
    )
