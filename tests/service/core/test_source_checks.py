"""Is a file still the registered one? No file waits for another, and a failure is no change."""

from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from pcor.errors import LedgerError
from pcor.service.core.fingerprints import Marker
from pcor.service.core.source_checks import SourceChecks
from pcor.service.core.sources import SourceChanged, Tables
from tests.helpers.service_world import SCHEMA, SOURCE, World, world
from tests.helpers.waiting import DEADLINE


def nothing(path: Path) -> None:
    """Do nothing while a file is hashed."""


class Hashing(Marker):
    """Counts the files that are hashed, and does something during each."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder / ".secret")
        self.make_secret()
        self.hashed = list[str]()
        self.during = nothing

    def of_file(self, path: Path) -> str:
        self.hashed.append(path.name)
        mark = super().of_file(path)
        self.during(path)
        return mark


@pytest.fixture
def marker(tmp_path: Path) -> Hashing:
    for name in ("one.csv", "two.csv"):
        (tmp_path / name).write_text("a,b\n", encoding="utf-8")
    return Hashing(tmp_path)


def test_a_file_that_is_long_to_hash_holds_up_no_other(marker: Hashing, tmp_path: Path) -> None:
    mark = Marker.of_file(marker, tmp_path / "two.csv")
    checks = SourceChecks(tmp_path, marker)
    begun, go = threading.Event(), threading.Event()

    def during(path: Path) -> None:
        if path.name == "one.csv":
            begun.set()
            assert go.wait(DEADLINE)

    marker.during = during
    with ThreadPoolExecutor(2) as pool:
        try:
            slow = pool.submit(checks.check, "one.csv", mark)
            assert begun.wait(DEADLINE)
            pool.submit(checks.check, "two.csv", mark).result(DEADLINE)
            assert not slow.done()
        finally:
            go.set()


def test_a_file_that_is_being_written_is_hashed_once_a_second(
    marker: Hashing, tmp_path: Path
) -> None:
    now = 0.0
    checks = SourceChecks(tmp_path, marker, clock=lambda: now)

    def during(path: Path) -> None:
        with path.open("a", encoding="utf-8") as stream:
            stream.write("more\n")

    marker.during = during
    for _ in range(3):
        with pytest.raises(SourceChanged):
            checks.check("one.csv", "the registered mark")
    assert len(marker.hashed) == 1
    now = 1.5
    marker.during = nothing
    checks.check("one.csv", Marker.of_file(marker, tmp_path / "one.csv"))
    assert len(marker.hashed) == 2


def test_a_file_that_cannot_be_read_is_not_one_that_changed(
    marker: Hashing, tmp_path: Path
) -> None:
    mark = Marker.of_file(marker, tmp_path / "one.csv")
    checks = SourceChecks(tmp_path, marker)

    def failing(path: Path) -> None:
        raise OSError(5, os.strerror(5), path)

    marker.during = failing
    with pytest.raises(LedgerError, match="cannot be read") as refused:
        checks.check("one.csv", mark)
    assert not isinstance(refused.value, SourceChanged)
    marker.during = nothing
    checks.check("one.csv", mark)
    (tmp_path / "one.csv").unlink()
    with pytest.raises(SourceChanged):
        checks.check("one.csv", mark)


def test_a_file_that_cannot_be_loaded_is_not_one_that_changed(
    marker: Hashing, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(*_: Any) -> str:
        raise PermissionError("one.csv")

    monkeypatch.setattr("pcor.service.core.sources.Snapshot", failing)
    with pytest.raises(LedgerError, match="cannot be read") as refused:
        Tables(tmp_path, 1, marker).get("one.csv", "mark", SCHEMA)
    assert not isinstance(refused.value, SourceChanged)


def test_a_question_about_a_file_that_cannot_be_read_is_a_503_and_not_charged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(*_: Any) -> str:
        raise PermissionError(SOURCE)

    with world(str(tmp_path / "books.db"), tmp_path, sweep=1000) as place:
        monkeypatch.setattr(Marker, "of_file", failing)
        refused = place.ask()
        assert (refused.status_code, refused.json()["kind"]) == (503, "ledger")
        assert SOURCE not in refused.text
        assert refused.headers["retry-after"]
        assert charges(place) == 0


def charges(place: World) -> int:
    return [entry.kind for entry in place.service.ledger.entries()].count("charge")
