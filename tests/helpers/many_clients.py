"""Runs over many records that are killed, for tests. Each is a process, so imports are few."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pcor
from pcor.ledger import Ledger
from pcor.releasing.batch import Results, run
from pcor.releasing.run import read_and_draw
from tests.helpers.ledger_clients import EACH, die, note, table

EVERYBODY = list(range(90))
# Some are outliers somewhere, most are not; the kernel is warm in the server of processes.
STRICT: dict[str, Any] = {"detector": "grubbs:min_population=3,alpha=0.99"}


def drawing_with(work: Callable[[Any], object]) -> Any:
    """Call ``work`` with the record before each draw."""

    def traced(plan: pcor.Plan, rows: pcor.Table, record: Any, *words: Any) -> pcor.Release:
        work(record)
        return read_and_draw(plan, rows, record, *words)

    return patch.object(run, "read_and_draw", traced)


def run_over_everybody(ledger: Ledger | None, out: Path, trace: Path) -> Results:
    """Run; each draw leaves a trace before anybody learns of it."""
    with drawing_with(lambda record: note(trace, "drawn", record)):
        return pcor.release_many(table(), EVERYBODY, EACH, ledger=ledger, out=out, **STRICT)


def run_and_die(url: str | None, out: Path, trace: Path, draws: int, seed: int) -> None:
    """Run, and be killed some moments after so many draws, at any point of any step."""
    moments = random.Random(seed).uniform(0, 0.02)  # noqa: S311 (when to die)
    left = draws

    def kill() -> None:
        time.sleep(moments)
        die()

    def count(record: object) -> None:
        nonlocal left
        note(trace, "drawn", record)
        left -= 1
        if left == 0:
            threading.Thread(target=kill, daemon=True).start()
        if left < -1:  # however quick draws are, the run does not end before it is killed
            threading.Event().wait()

    ledger = None if url is None else Ledger(url)
    with drawing_with(count):
        pcor.release_many(table(), EVERYBODY, EACH, ledger=ledger, out=out, workers=2, **STRICT)
