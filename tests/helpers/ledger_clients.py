"""Clients of a ledger, for tests: a small table, draws that leave a trace, processes that die.

The processes are forked from a server that has loaded all of this once; a new one takes
milliseconds. ``trace`` files are appended to line by line, so what a killed process did is known.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import random
import signal
import sys
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from functools import cache
from multiprocessing import forkserver
from multiprocessing.context import ForkServerContext
from multiprocessing.process import BaseProcess
from pathlib import Path
from threading import Barrier
from typing import Any
from unittest.mock import patch

import pyarrow as pa
from sqlalchemy import event

import pcor
from pcor.errors import BudgetExceeded, StillRunning
from pcor.ledger import Claim, Ledger, Request
from pcor.mechanism.ordered_selection import Candidates
from pcor.mechanism.selection import SystemRandomSource

DATASET = "people"
OUTLIER = 17
EACH = "0.01"  # so small that two draws often differ
SETTINGS: dict[str, Any] = {"detector": "grubbs:min_population=5"}
STEPS = ("before charge", "after charge", "after draw", "after store")


@cache
def table() -> pcor.Table:
    """Return 120 people, one of whom clearly is an outlier."""
    numbers = random.Random(7)  # noqa: S311 (test data)
    columns: dict[str, list[Any]] = {
        "job": [numbers.choice(["clerk", "cook", "pilot"]) for _ in range(120)],
        "city": [numbers.choice(["Rome", "Oslo"]) for _ in range(120)],
        "pay": [round(numbers.gauss(100, 5), 3) for _ in range(120)],
    }
    columns["pay"][OUTLIER] = 400.5
    schema = pcor.Schema(
        metric="pay",
        attributes={"job": ["clerk", "cook", "pilot"], "city": ["Rome", "Oslo"]},
        name=DATASET,
        positions="public",
    )
    return pcor.Table(pa.table(columns), schema)


def note(trace: Path, *words: object) -> None:
    """Append a line in one write, which other processes cannot cut in two."""
    handle = os.open(trace, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(handle, (" ".join(map(str, words)) + "\n").encode())
    os.close(handle)


def lines(trace: Path) -> list[list[str]]:
    """Return what was noted."""
    return [line.split() for line in trace.read_text().splitlines()] if trace.exists() else []


class Tracing(SystemRandomSource):
    """Real draws, each noted before anybody learns of it."""

    def __init__(self, trace: Path, key: str) -> None:
        self._trace, self._key = trace, key

    def select_first(self, candidates: Candidates, *, eta: Fraction, mechanism: str) -> int | None:
        note(self._trace, "drawn", self._key)
        return super().select_first(candidates, eta=eta, mechanism=mechanism)


def ask(ledger: Ledger, key: str, trace: Path, **options: Any) -> pcor.Release:
    """Ask under a key; note the draw and the answer."""
    given: dict[str, Any] = {"epsilon": EACH, "dataset": DATASET, **SETTINGS, **options}
    released = ledger.release(table(), OUTLIER, key=key, chooser=Tracing(trace, key), **given)
    note(trace, "answered", key, released.context.bits)
    return released


def request(key: str | None = None, **options: Any) -> Request:
    """Return the request that ``ask`` makes."""
    names: dict[str, Any] = {"dataset": DATASET, "analyst": "owner", "key": key}
    names |= {name: options.pop(name) for name in list(options) if name in (*names, "version")}
    plan = pcor.plan(table().schema, options.pop("epsilon", EACH), **SETTINGS | options)
    return Request.of(plan, OUTLIER, **names)


def drawn() -> pcor.Release:
    """Return a draw as a client makes it between charge and store."""
    return pcor.release(table(), OUTLIER, EACH, **SETTINGS)


# -- processes ------------------------------------------------------------------------------------


@cache
def processes() -> ForkServerContext:
    """Return the server that processes are forked from."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.helpers.ledger_warm"])
    with patch.dict(os.environ, PYTHONPATH=os.pathsep.join(filter(None, sys.path))):
        forkserver.ensure_running()
    return context


def start(work: Callable[..., None], *words: object) -> BaseProcess:
    """Start a process."""
    process = processes().Process(target=work, args=words, daemon=True)
    process.start()
    return process


def die() -> None:
    """End this process as kill -9 does: nothing is cleaned up."""
    os.kill(os.getpid(), signal.SIGKILL)


class Dying(Ledger):
    """A ledger whose process is killed at one step of a request."""

    step = ""

    def charge(self, request: Request, admit: Any = None) -> Claim:
        if self.step == "before charge":
            die()
        claim = super().charge(request, admit)
        if self.step == "after charge":
            die()
        return claim

    def store(self, *given: Any, **options: Any) -> Mapping[str, Any]:
        if self.step == "after draw":
            die()
        stored = super().store(*given, **options)
        if self.step == "after store":
            die()
        return stored


def ask_and_die(url: str, trace: Path, key: str, step: str) -> None:
    """Ask, and be killed at a step."""
    ledger = Dying(url)
    ledger.step = step
    ask(ledger, key, trace)


def ask_and_die_at_statement(url: str, trace: Path, key: str, number: int) -> None:
    """Ask, and be killed when the database is spoken to for the n-th time; commits count too."""
    ledger = Ledger(url)
    left = number

    def count(*_: object) -> None:
        nonlocal left
        left -= 1
        if left == 0:
            die()

    event.listen(ledger.database.engine, "before_cursor_execute", count)
    event.listen(ledger.database.engine, "commit", count)
    ask(ledger, key, trace)


def ask_without_end(url: str, trace: Path, keys: int, seed: int) -> None:
    """Ask for one key after the other until killed."""
    numbers = random.Random(seed)  # noqa: S311 (test data)
    ledger = Ledger(url)
    while True:
        try:
            ask(ledger, f"k{numbers.randrange(keys)}", trace)
        except StillRunning:
            continue


def ask_at_once(url: str, trace: Path, keys: list[str], out: Path) -> None:
    """Ask from many threads at once; write down what each of them got, and got again."""
    ledger = Ledger(url)
    together = Barrier(len(keys))

    def one(key: str) -> tuple[str, str | None, bool]:
        together.wait()
        try:
            first = ask(ledger, key, trace).to_dict()
        except (BudgetExceeded, StillRunning) as refused:
            return key, refused.kind, True
        again = [ask(ledger, key, trace).to_dict() for _ in range(2)]
        return key, None, again == [first, first]

    with ThreadPoolExecutor(len(keys)) as pool:
        out.write_text(json.dumps(list(pool.map(one, keys))))
