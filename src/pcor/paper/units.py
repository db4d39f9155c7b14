"""Do what is left of an experiment's work, on several cores, and keep each part as it is done.

Private: what is measured. A unit of work is one repetition on one table with one detector, and it
follows from its own seed alone: units can be done in any order, by any process, today or tomorrow.
What is stored already is not done again.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass, replace
from importlib import import_module
from itertools import islice
from multiprocessing import get_context
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pcor.paper.store import Store

Progress = Callable[[int, int], None]

# Where each kind of unit is measured: by a function ``measure`` of this module.
KINDS = {
    "releases": "pcor.paper.measurement",
    "match": "pcor.paper.coe_match",
    "ratio": "pcor.paper.ratio",
    "locality": "pcor.paper.locality",
}


@dataclass(frozen=True)
class Unit:
    """One repetition.

    Attributes:
        kind: what is measured (``KINDS``).
        table: the name of the table.
        detector: the name of the detector.
        number: which repetition, from 0.
        seed: of the whole experiment.
        parts: what is asked for; each is stored under its name.
    """

    kind: str
    table: str
    detector: str
    number: int
    seed: int
    parts: tuple[str, ...]


def run(
    units: Sequence[Unit], store: Store, *, workers: int, progress: Progress | None = None
) -> int:
    """Measure what is missing; return how many units had something missing."""
    left = [replace(unit, parts=missing) for unit in units if (missing := store.missing(unit))]
    done = len(units) - len(left)
    for count, (unit, measured) in enumerate(_measured(left, workers), start=1):
        store.keep(unit, measured)
        if progress is not None:
            progress(done + count, done + len(left))
    return len(left)


def merged(units: Iterable[Unit]) -> list[Unit]:
    """Merge the units of one repetition, so that experiments share its work."""
    found: dict[Unit, dict[str, None]] = {}
    for unit in units:
        found.setdefault(replace(unit, parts=()), {}).update(dict.fromkeys(unit.parts))
    return [replace(unit, parts=tuple(parts)) for unit, parts in found.items()]


def measure(unit: Unit) -> dict[str, Any]:
    """Measure one unit, in whatever process this is."""
    measured: dict[str, Any] = import_module(KINDS[unit.kind]).measure(unit)
    return measured


def _measured(units: Sequence[Unit], workers: int) -> Iterator[tuple[Unit, dict[str, Any]]]:
    """Yield units as they are done."""
    if workers == 1 or len(units) < 2:
        yield from ((unit, measure(unit)) for unit in units)
        return
    # Spawned, not forked: a forked process would inherit threads that are not there.
    context = get_context("spawn")
    turns = context.Value("i", 0)
    with ProcessPoolExecutor(
        workers, context, initializer=_pin_to_core, initargs=(turns, os.getpid())
    ) as pool:
        todo = iter(units)
        running: dict[Future[dict[str, Any]], Unit] = {}
        try:
            # A short queue: an interrupted run waits only for what has begun.
            for unit in islice(todo, 2 * workers):
                running[pool.submit(measure, unit)] = unit
            while running:
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    yield running.pop(future), future.result()
                    for unit in islice(todo, 1):
                        running[pool.submit(measure, unit)] = unit
        finally:
            for future in running:
                future.cancel()


def _pin_to_core(turns: Any, parent: int) -> None:
    """Give each process a core of its own, so that it starts no threads for the others'.

    And let it end when whoever started it is gone, instead of waiting for work for ever.
    """
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    if hasattr(os, "sched_setaffinity"):
        with turns.get_lock():
            turn, turns.value = turns.value, turns.value + 1
        cores = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, {cores[turn % len(cores)]})


def _end_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(2)
    os._exit(1)
