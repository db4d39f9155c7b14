"""PostgreSQL while others write: all that is asked of one table is answered from one state."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
import pyarrow as pa
import pytest

import pcor
from pcor.audit.exact import exact_log_chances, largest_log_ratio
from pcor.ledger import Ledger
from pcor.rows.engines import databases
from tests.helpers.engines import SCHEMA, SERVERS, people
from tests.helpers.waiting import until

KEY, ROUNDING = 353, 1e-9
COUNT = 600
AT_EACH_QUERY = "SET TRANSACTION ISOLATION LEVEL READ COMMITTED, READ ONLY"
# What the schema's columns are called in every state.
READ = "SELECT key, job, year, age, pay FROM people"
# In one transaction, so that no state has one without the other. There are more rows after it than
# before, and some of them far out: no state comes twice.
ADD = (
    "INSERT INTO people SELECT %(new)s + row_number() OVER (), job, year, age, pay + 300 "
    "FROM people WHERE key %% 97 = %(part)s AND key < 10000"
)
REMOVE = "DELETE FROM people WHERE key = %(old)s AND key <> %(kept)s"


class Writer(threading.Thread):
    """Somebody who adds rows and removes others, one transaction after the other."""

    def __init__(self, url: str, number: int) -> None:
        super().__init__(daemon=True)
        self._url, self._number = url, number
        self.commits, self.over = 0, threading.Event()

    def run(self) -> None:
        with psycopg.connect(self._url) as connection:
            for turn in count():
                if self.over.wait(0.001):
                    return
                words = {
                    "new": 1_000_000 * (self._number + 1) + 100 * turn,
                    "part": turn % 97,
                    "old": 3 + 7 * (2 * turn + self._number),
                    "kept": KEY,
                }
                connection.execute(ADD, words)
                connection.execute(REMOVE, words)
                connection.commit()
                self.commits += 1


@contextmanager
def writers(url: str) -> Iterator[list[Writer]]:
    """Write from two connections meanwhile."""
    busy = [Writer(url.partition("#")[0], number) for number in range(2)]
    for writer in busy:
        writer.start()
    try:
        yield busy
    finally:
        for writer in busy:
            writer.over.set()
        for writer in busy:
            writer.join()


def asked_meanwhile(table: pcor.Table, busy: list[Writer]) -> list[str]:
    """Have every query wait until each writer committed once more; return the list of queries."""
    assert table.pushdown is not None
    engine, asked = table.pushdown.engine, []
    run = engine.run

    def later(query: str) -> pa.Table:
        before = [writer.commits for writer in busy]
        until(lambda: all(w.commits > b for w, b in zip(busy, before, strict=True)))
        asked.append(query)
        return run(query)

    engine.run = later  # type: ignore[method-assign]
    return asked


def answers(table: pcor.Table, detector: str) -> tuple[Any, dict[Any, float]]:
    """Return COE with its populations, and the chance of every answer."""
    found = pcor.matching_contexts(table, KEY, detector)
    logs = exact_log_chances(table, KEY, 1, detector=detector)
    return np.column_stack([found.masks, found.populations]).tolist(), logs


@pytest.mark.parametrize(
    ("level", "is_one_state"),
    [(databases._ONE_STATE, True), (AT_EACH_QUERY, False)],
    ids=["a snapshot", "no snapshot"],
)
@pytest.mark.parametrize("detector", ["lof:k=5", "grubbs:tail=upper", "tail"])
def test_answers_are_those_of_one_state_only_with_a_snapshot(
    detector: str, level: str, is_one_state: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(databases, "_ONE_STATE", level)
    url = SERVERS["postgresql"](people(COUNT), Path())
    with writers(url) as busy:
        table = pcor.Table(url, SCHEMA)
        asked = asked_meanwhile(table, busy)
        coe, logs = answers(table, detector)
        rows = table.pushdown.engine.run(READ)  # type: ignore[union-attr]
    expected_coe, expected = answers(pcor.Table(rows, SCHEMA), detector)
    assert len(asked) > 2
    assert len(expected) > 1
    same = coe == expected_coe and largest_log_ratio(logs, expected) <= ROUNDING
    assert same == is_one_state


def test_releases_among_writers_are_of_one_state_and_charged_once(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "books.db")
    ledger.set_budget("people", 10)
    url = SERVERS["postgresql"](people(COUNT), Path())
    with writers(url) as busy:
        for turn in range(5):
            table = pcor.Table(url, SCHEMA)
            asked_meanwhile(table, busy)
            how: dict[str, Any] = {"dataset": "people", "version": str(turn), "key": str(turn)}
            found = ledger.release(table, KEY, 1, detector="lof:k=5", **how)
            rows = table.pushdown.engine.run(READ)  # type: ignore[union-attr]
            coe = pcor.matching_contexts(pcor.Table(rows, SCHEMA), KEY, "lof:k=5")
            assert found.context.mask in coe.masks[:, 0].tolist()
    kinds = [entry.kind for entry in ledger.entries()]
    assert kinds == ["budget", *["charge", "answer"] * 5]
    assert ledger.left("people") == 5
