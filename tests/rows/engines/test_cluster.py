"""Rows on a real cluster of Spark, asked by its own driver and through Spark Connect.

Two executors, each a process of its own. Nine rows in ten are of one cell and lie in one partition.
Executors are killed while they work: either Spark goes on without, and the answer is that of the
rows, or the release is refused before it is charged and can be asked again.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

import pcor
from pcor.audit.exact import exact_log_chances, largest_log_ratio
from pcor.errors import SourceError
from pcor.ledger import Ledger
from pcor.testing import seeded
from tests.helpers import cluster
from tests.helpers.cluster import EXECUTORS, TASK_FAILURES, Driver, session
from tests.helpers.engines import SCHEMA, people

COUNT, PARTS = 3000, 4
KEYS = [19253, 3503, 17503, 19603]  # the last is an outlier almost nowhere
DETECTORS = ["lof:k=5", "grubbs:tail=upper", "histogram:rare=0.02", "tail"]
ROUNDING = 1e-9
# Each partition takes so long in each query, in milliseconds: long enough to be killed in; and
# where every attempt has to be killed, longer than any machine needs for that.
PAUSE, FOREVER = 700, 600_000


def skewed() -> pa.Table:
    """Return rows of which the first nine in ten are of one cell."""
    rows = people(COUNT)
    first = COUNT * 9 // 10
    for name in ("job", "year", "age"):
        values = rows[name].to_pylist()
        values[:first] = [values[0]] * first
        rows = rows.set_column(rows.column_names.index(name), name, pa.array(values))
    return rows


ROWS = skewed()


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The rows in as many files as partitions: one of them large."""
    folder = tmp_path_factory.mktemp("rows")
    ends = np.linspace(COUNT * 9 // 10, COUNT, PARTS).astype(int).tolist()
    for part, (start, end) in enumerate(zip([0, *ends], ends, strict=False)):
        parquet.write_table(ROWS.slice(start, end - start), folder / f"{part}.parquet")
    return str(folder)


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Driver]:
    with cluster.cluster(tmp_path_factory.mktemp("cluster")) as driver:
        yield driver


@pytest.fixture(scope="module", params=["driver", "connect"])
def driver(request: pytest.FixtureRequest, own: Driver) -> Iterator[Driver]:
    if request.param == "driver":
        yield own
    else:
        with cluster.connected(own) as client:
            yield client


@pytest.fixture(scope="module")
def memory() -> pcor.Table:
    return pcor.Table(ROWS, SCHEMA)


# -- what runs where the session is ----------------------------------------------------------------

_tables: dict[str, pcor.Table] = {}


def table(files: str, pause: int | Path = 0) -> pcor.Table:
    """Return the table of this process."""
    name = f"{files} {pause}"
    if name not in _tables:
        _tables[name] = pcor.Table(slow(session().read.parquet(files), pause), SCHEMA)
    return _tables[name]


def slow(frame: Any, pause: int | Path) -> Any:
    """Return the same rows, of which the first of each partition keeps an executor waiting.

    A file says how long from query to query (``set_pause``).
    """
    if not pause:
        return frame
    length = f"{pause}L"
    if isinstance(pause, Path):
        frame = frame.crossJoin(session().read.schema("pause LONG").csv(str(pause)))
        length = "pause"
    wait = f"length(java_method('java.lang.Thread', 'sleep', {length}))"
    first = ", ".join(str(ROWS["key"][row].as_py()) for row in first_rows())
    pay = f"CASE WHEN key IN ({first}) THEN pay + 0 * {wait} ELSE pay END AS pay"
    return frame.selectExpr("key", "job", "year", "age", pay)


def set_pause(file: Path, milliseconds: int) -> None:
    file.write_text(f"{milliseconds:010}\n")  # Spark reads as much of a file as it had at first


def first_rows() -> list[int]:
    return [0, *np.linspace(COUNT * 9 // 10, COUNT, PARTS).astype(int).tolist()[:-1]]


def processes(files: str) -> list[str]:
    """Return the processes in which rows are read, as each calls itself."""
    here = "java_method('java.lang.ProcessHandle', 'current')"
    found = slow(session().read.parquet(files), PAUSE).selectExpr(f"{here} AS p", "pay")
    return sorted(row.p for row in found.groupBy("p").agg({"pay": "max"}).collect())


def contexts(files: str, key: int, detector: str) -> tuple[list[Any], list[int]]:
    found = pcor.matching_contexts(table(files), key, detector)
    return found.masks.tolist(), found.populations.tolist()


def chances(files: str, key: int, detector: str) -> dict[str | None, float]:
    logs = exact_log_chances(table(files), key, 1, detector=detector)
    return {context.bits if context else None: log for context, log in logs.items()}


def drawn(files: str, keys: list[int], seed: int) -> list[str]:
    found = pcor.release_many(table(files), keys, 1, detector="lof:k=5", chooser=seeded(seed))
    return [str(released) for released in found]


def released(files: str, books: Path, key: int, detector: str, pause: int | Path = PAUSE) -> int:
    ledger = Ledger(books)
    return ledger.release(
        table(files, pause), key, 1, dataset="people", detector=detector
    ).context.mask


def released_many(files: str, books: Path, keys: list[int], detector: str) -> list[int]:
    how: dict[str, Any] = {"ledger": Ledger(books), "dataset": "people", "detector": detector}
    results = pcor.release_many(table(files, PAUSE), keys, 1, **how)
    return [found.context.mask for found in results.releases]


def cache(file: Path) -> None:
    """Make a table of a frame that is kept by the executors, and was read by them once."""
    columns = "key LONG, job STRING, year INT, age DOUBLE, pay DOUBLE"
    frame = session().read.schema(columns).csv(str(file)).cache()
    _tables["cached"] = pcor.Table(frame, SCHEMA)


def released_from_cache(books: Path, key: int) -> int:
    ledger = Ledger(books)
    return ledger.release(_tables["cached"], key, 1, dataset="people", detector="tail").context.mask


def prepare(files: str, pause: int | Path = PAUSE) -> None:
    table(files, pause)


# -- the same answers ------------------------------------------------------------------------------


def test_rows_are_read_by_executors_that_are_processes_of_their_own(
    own: Driver, driver: Driver, files: str
) -> None:
    found = driver.run(processes, files)
    assert [int(pid) for pid in found] == sorted(own.run(cluster.executors))
    assert len(found) == EXECUTORS


@pytest.mark.parametrize("detector", DETECTORS)
def test_coe_is_the_same_as_in_memory(
    driver: Driver, files: str, memory: pcor.Table, detector: str
) -> None:
    some = 0
    for key in KEYS:
        expected = pcor.matching_contexts(memory, key, detector)
        wanted = expected.masks.tolist(), expected.populations.tolist()
        assert driver.run(contexts, files, key, detector) == wanted
        some += len(expected.masks)
    assert some


@pytest.mark.parametrize("detector", ["lof:k=5", "grubbs:tail=upper"])
def test_every_answer_is_as_likely_as_in_memory(
    driver: Driver, files: str, memory: pcor.Table, detector: str
) -> None:
    logs = exact_log_chances(memory, KEYS[0], 1, detector=detector)
    expected = {context.bits if context else None: log for context, log in logs.items()}
    found = driver.run(chances, files, KEYS[0], detector)
    assert len(expected) > 1
    assert largest_log_ratio(found, expected) <= ROUNDING


def test_many_records_draw_the_same_from_the_same_seed(
    driver: Driver, files: str, memory: pcor.Table
) -> None:
    for seed in range(3):
        how: dict[str, Any] = {"detector": "lof:k=5", "chooser": seeded(seed)}
        expected = [str(found) for found in pcor.release_many(memory, KEYS, 1, **how)]
        assert driver.run(drawn, files, KEYS, seed) == expected


# -- executors that are lost -----------------------------------------------------------------------


@pytest.fixture
def books(tmp_path: Path) -> Path:
    Ledger(tmp_path / "books.db").set_budget("people", 10)
    return tmp_path / "books.db"


def valid(memory: pcor.Table, key: int) -> set[int]:
    """Return COE, as masks of one word."""
    return set(pcor.matching_contexts(memory, key, "lof:k=5").masks[:, 0].tolist())


def entries(books: Path) -> list[str]:
    return [entry.kind for entry in Ledger(books).entries()]


def test_a_release_that_loses_an_executor_ends_right_and_is_charged_once(
    own: Driver, driver: Driver, files: str, memory: pcor.Table, books: Path
) -> None:
    driver.run(prepare, files)
    own.run(cluster.begin_to_kill, 1)
    mask = driver.run(released, files, books, KEYS[0], "lof:k=5")
    assert own.run(cluster.end_of_killing) == (1, 1)
    assert mask in valid(memory, KEYS[0])
    assert entries(books) == ["budget", "charge", "answer"]
    assert driver.run(released, files, books, KEYS[0], "lof:k=5") == mask
    assert Ledger(books).left("people") == 9


def test_many_releases_that_lose_an_executor_are_charged_once_each(
    own: Driver, driver: Driver, files: str, memory: pcor.Table, books: Path
) -> None:
    driver.run(prepare, files)
    own.run(cluster.begin_to_kill, 1)
    found = driver.run(released_many, files, books, KEYS[:3], "lof:k=5")
    assert own.run(cluster.end_of_killing) == (1, 1)
    for key, mask in zip(KEYS, found, strict=False):
        assert mask in valid(memory, key)
    assert sorted(entries(books)) == ["answer"] * 3 + ["budget"] + ["charge"] * 3
    assert Ledger(books).left("people") == 7
    assert Ledger(books).verify().ok


def test_a_release_that_is_given_up_is_not_charged_and_may_be_asked_again(
    own: Driver, driver: Driver, files: str, books: Path, tmp_path: Path
) -> None:
    pause = tmp_path / "pause.csv"
    set_pause(pause, 1)
    driver.run(prepare, files, pause)
    set_pause(pause, FOREVER)
    # No task ends by itself, so after one more than there are tasks one of them failed twice.
    own.run(cluster.begin_to_kill, 1 << 20)
    try:
        with pytest.raises(SourceError, match=r"executors may have been lost.*ask again"):
            driver.run(released, files, books, KEYS[0], "lof:k=5", pause)
    finally:
        killed, _ = own.run(cluster.end_of_killing)
        own.run(cluster.kill_all)  # what was given up may still wait in one of them
    assert killed >= TASK_FAILURES
    assert entries(books) == ["budget"]
    set_pause(pause, 1)
    assert driver.run(released, files, books, KEYS[0], "lof:k=5", pause)
    assert entries(books) == ["budget", "charge", "answer"]
    assert Ledger(books).left("people") == 9


def test_cached_rows_that_are_lost_and_read_again_are_refused_if_they_changed(
    own: Driver, driver: Driver, books: Path, tmp_path: Path
) -> None:
    rows = ROWS.filter(pa.array([job == "CEO" for job in ROWS["job"].to_pylist()]))
    lines = [",".join(map(str, row.values())) for row in rows.to_pylist()]
    file, text = tmp_path / "rows.csv", "\n".join(lines)
    file.write_text(text)
    driver.run(cache, file)
    changed = text.replace(",1900.5\n", ",1950.5\n", 1)  # Spark reads as much as there was
    assert changed != text
    file.write_text(changed)
    driver.run(released_from_cache, books, KEYS[1])  # the rows as they were are still there
    assert entries(books) == ["budget", "charge", "answer"]
    own.run(cluster.kill_all)
    with pytest.raises(SourceError, match="rows changed since the table was made"):
        driver.run(released_from_cache, books, 3)
    assert entries(books) == ["budget", "charge", "answer"]
