"""A rerun does what is missing, and nothing else."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pcor.paper.catalogue import EXPERIMENTS
from pcor.paper.experiments import ExperimentRequest, conduct
from pcor.paper.layout import grids
from pcor.paper.store import UNITS, Store
from pcor.paper.units import merged, run
from tests.helpers.paper_units import BFS, DIRECT, REDUCED, unit


def test_a_rerun_does_only_what_is_missing(tmp_path: Path) -> None:
    units = [unit(number, BFS) for number in range(3)]
    assert run(units[:2], Store(tmp_path), workers=1) == 2
    assert run(units, Store(tmp_path), workers=1) == 1
    assert run(units, Store(tmp_path), workers=1) == 0


def test_a_line_that_a_crash_cut_short_is_measured_again(tmp_path: Path) -> None:
    units = [unit(number, BFS) for number in range(2)]
    run(units, Store(tmp_path), workers=1)
    stored = (tmp_path / UNITS).read_text()
    (tmp_path / UNITS).write_text(stored[:-40])
    assert run(units, Store(tmp_path), workers=1) == 1
    again = Store(tmp_path)
    assert [again.missing(one) for one in units] == [(), ()]


@pytest.mark.usefixtures("few")
def test_what_a_stopped_run_measured_can_be_summed_up(tmp_path: Path) -> None:
    request = ExperimentRequest(("detectors",), (REDUCED,), quick=True, workers=1)
    units = merged(EXPERIMENTS["detectors"].units([REDUCED], quick=True, seed=0))
    run(units[:1], Store(tmp_path), workers=1)
    found = conduct(replace(request, so_far=True), tmp_path)[0]
    assert (found["run"]["units_from_earlier_runs"], found["run"]["units_missing"]) == (1, 3)
    assert {row["repetitions"] for row in found["rows"]} == {0, 1}
    assert {row["utility"] for row in found["rows"] if not row["repetitions"]} == {None}


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("name", sorted(EXPERIMENTS))
def test_where_nothing_was_measured_there_is_a_summary_of_nothing(
    name: str, tmp_path: Path
) -> None:
    request = ExperimentRequest((name,), (REDUCED,), quick=True, so_far=True)
    found = conduct(request, tmp_path)[0]
    assert found["run"]["units_from_earlier_runs"] == 0
    text = (tmp_path / f"{name}.json").read_text()
    assert json.loads(text)["rows"]
    assert "NaN" not in text
    assert all(grid.text() for grid in grids(found))


def test_another_seed_or_another_table_is_other_work(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.keep(unit(0, BFS), {BFS: {}})
    assert store.missing(unit(0, BFS)) == ()
    assert store.missing(unit(0, BFS, seed=1)) == (BFS,)
    assert store.missing(replace(unit(0, BFS), table="synthetic")) == (BFS,)
    assert store.missing(unit(0, DIRECT, BFS)) == (DIRECT,)


def test_experiments_with_common_repetitions_share_the_work() -> None:
    both = [
        part
        for name in ("epsilon", "samples")
        for part in EXPERIMENTS[name].units([REDUCED], quick=True, seed=0)
    ]
    together = merged(both)
    assert len(together) == len(both) // 2
    assert all(len(set(one.parts)) == len(one.parts) for one in together)


def test_a_quick_run_is_the_beginning_of_a_full_one() -> None:
    for experiment in EXPERIMENTS.values():
        quick = experiment.units([REDUCED], quick=True, seed=0)
        assert set(quick) < set(experiment.units([REDUCED], quick=False, seed=0))


def test_two_processes_measure_what_one_does(tmp_path: Path) -> None:
    units = [unit(number, BFS) for number in range(3)]
    stores = [Store(tmp_path / name) for name in ("one", "two")]
    for workers, store in enumerate(stores, start=1):
        run(units, store, workers=workers)
    one, two = ([_utilities(store.found(u)[BFS]) for u in units] for store in stores)
    assert one == two


def _utilities(groups: dict[str, Any]) -> dict[str, float]:
    return {group: measured["utility"] for group, measured in groups.items()}
