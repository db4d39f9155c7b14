"""Conduct experiments: choose tables, do what is missing, sum up. NOT PRIVATE.

Private: the summaries. All work of all experiments asked for is put together first, so that
experiments with common repetitions share them.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pcor.errors import UnknownName, check_whole
from pcor.paper.catalogue import EXPERIMENTS
from pcor.paper.store import Store, about, write_summary
from pcor.paper.summary import INTERVAL
from pcor.paper.tables import choose, is_synthetic
from pcor.paper.units import Progress, merged, run
from pcor.public.guarantee import OWNER_ONLY
from pcor.support.threads import cores

SYNTHETIC = "Synthetic salaries: nobody in them exists."


@dataclass(frozen=True)
class ExperimentRequest:
    """What is asked for.

    Attributes:
        names: of the experiments.
        tables: names of tables; none for the usual ones that are there.
        quick: a few repetitions instead of all.
        seed: of every decision.
        workers: how many processes; by default a core each.
        so_far: sum up what earlier runs measured, and measure nothing.
    """

    names: tuple[str, ...]
    tables: tuple[str, ...] = ()
    quick: bool = False
    seed: int = 0
    workers: int | None = None
    so_far: bool = False

    def __post_init__(self) -> None:
        for name in self.names:
            if name not in EXPERIMENTS:
                raise UnknownName("experiment", name, EXPERIMENTS)
        if self.workers is not None:
            check_whole("workers", self.workers, 256)

    @property
    def command(self) -> str:
        """The command that asks for the same."""
        name = "all" if len(self.names) == len(EXPERIMENTS) else " ".join(self.names)
        words = [f"pcor experiment {name}", *(f"--table {table}" for table in self.tables)]
        words += ["--quick"] if self.quick else []
        return " ".join([*words, f"--seed {self.seed}"])

    def chosen(self, name: str) -> tuple[str, ...]:
        """Return the tables that an experiment is run on."""
        experiment = EXPERIMENTS[name]
        return choose(self.tables, experiment.usual, experiment.fallback)


def conduct(
    request: ExperimentRequest, out: Path, progress: Progress | None = None
) -> list[dict[str, Any]]:
    """Run experiments and write their summaries; return them in order."""
    tables = {name: request.chosen(name) for name in request.names}
    store = Store(out)
    units = merged(
        unit
        for name in request.names
        for unit in EXPERIMENTS[name].units(tables[name], quick=request.quick, seed=request.seed)
    )
    # Repetition by repetition: a run that is stopped has equally many for every table.
    units.sort(key=lambda unit: unit.number)
    begun, used, before = time.perf_counter(), _processor_seconds(), _busy()
    workers = request.workers or cores()
    fresh = 0
    if not request.so_far:
        fresh = run(units, store, workers=workers, progress=progress)
    took = {
        "seconds": round(time.perf_counter() - begun, 1),
        "processor_seconds": round(_processor_seconds() - used, 1),
        "units_measured": fresh,
        "units_from_earlier_runs": sum(not store.missing(unit) for unit in units) - fresh,
        "units_missing": sum(bool(store.missing(unit)) for unit in units),
        "processes": workers,
        "load_before": before,
        "load_after": _busy(),
    }
    return [_summary(name, tables[name], request, store, took, out) for name in request.names]


def _summary(
    name: str,
    tables: Sequence[str],
    request: ExperimentRequest,
    store: Store,
    took: dict[str, Any],
    out: Path,
) -> dict[str, Any]:
    experiment = EXPERIMENTS[name]
    content = {
        "owner_only": SYNTHETIC if all(map(is_synthetic, tables)) else OWNER_ONLY,
        "experiment": name,
        "title": experiment.title,
        "source": experiment.source,
        "remarks": list(experiment.remarks),
        "command": request.command,
        "interval": INTERVAL,
        "about": about(tables, seed=request.seed, quick=request.quick),
        "run": took,
        "rows": experiment.rows(store, tables, quick=request.quick, seed=request.seed),
    }
    write_summary(out, name, content)
    return content


def _processor_seconds() -> float:
    """Return what this process and those it started and saw end have used."""
    return sum(os.times()[:4])


def _busy() -> float | None:
    """Return how many processes want a core, on average over a minute."""
    return round(os.getloadavg()[0], 1) if hasattr(os, "getloadavg") else None
