"""Is a file still the registered one? No file waits for another, and a failure is no change."""

from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from pcor.errors import LedgerError
from pcor.service.core.fingerprints import FileFingerprints
from pcor.service.core.source_checks import MOST_WAITING, SourceChecks
from pcor.service.core.sources import SourceChanged, Tables
from tests.helpers.service_world import SCHEMA, SOURCE, World, world
from tests.helpers.waiting import DEADLINE, until


def nothing(path: Path) -> None:
    """Do nothing while a file is hashed."""


class Hashing(FileFingerprints):
    """Counts the files that are hashed, and does something during each."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder / ".secret")
        self.make_secret()
        self.hashed = list[str]()
        self.during = nothing

    def of_file(self, path: Path) -> str:
        self.hashed.append(path.name)
        file_fingerprint = super().of_file(path)
        self.during(path)
        return file_fingerprint


@pytest.fixture
def fingerprints(tmp_path: Path) -> Hashing:
    for name in ("one.csv", "two.csv"):
        (tmp_path / name).write_text("a,b\n", encoding="utf-8")
    return Hashing(tmp_path)


def test_a_file_that_is_long_to_hash_holds_up_no_other(
    fingerprints: Hashing, tmp_path: Path
) -> None:
    file_fingerprint = FileFingerprints.of_file(fingerprints, tmp_path / "two.csv")
    checks = SourceChecks(tmp_path, fingerprints)
    begun, go = threading.Event(), threading.Event()

    def during(path: Path) -> None:
        if path.name == "one.csv":
            begun.set()
            assert go.wait(DEADLINE)

    fingerprints.during = during
    with ThreadPoolExecutor(2) as pool:
        try:
            slow = pool.submit(checks.check, "one.csv", file_fingerprint)
            assert begun.wait(DEADLINE)
            pool.submit(checks.check, "two.csv", file_fingerprint).result(DEADLINE)
            assert not slow.done()
        finally:
            go.set()


def test_a_few_wait_for_a_file_that_is_long_to_hash_and_the_others_are_told_to_come_back(
    fingerprints: Hashing, tmp_path: Path
) -> None:
    file_fingerprint = FileFingerprints.of_file(fingerprints, tmp_path / "one.csv")
    checks = SourceChecks(tmp_path, fingerprints)
    begun, go = threading.Event(), threading.Event()

    def during(path: Path) -> None:
        del path
        begun.set()
        assert go.wait(DEADLINE)

    fingerprints.during = during
    with ThreadPoolExecutor(40) as pool:
        try:
            first = pool.submit(checks.check, "one.csv", file_fingerprint)
            assert begun.wait(DEADLINE)
            others = [pool.submit(checks.check, "one.csv", file_fingerprint) for _ in range(39)]
            until(lambda: sum(other.done() for other in others) == 39 - MOST_WAITING)
            for told in (other.exception() for other in others if other.done()):
                assert isinstance(told, LedgerError)
                assert "being looked at" in str(told)
        finally:
            go.set()
        assert sum(one.exception() is None for one in (first, *others)) == 1 + MOST_WAITING
    with ThreadPoolExecutor(40) as pool:  # whoever asks of a file that is known waits for nobody
        list(pool.map(lambda _: checks.check("one.csv", file_fingerprint), range(200)))
    assert fingerprints.hashed == ["one.csv"]


def test_a_file_that_is_being_written_is_hashed_once_a_second(
    fingerprints: Hashing, tmp_path: Path
) -> None:
    now = 0.0
    checks = SourceChecks(tmp_path, fingerprints, clock=lambda: now)

    def during(path: Path) -> None:
        with path.open("a", encoding="utf-8") as stream:
            stream.write("more\n")

    fingerprints.during = during
    for _ in range(3):
        with pytest.raises(SourceChanged):
            checks.check("one.csv", "the registered mark")
    assert len(fingerprints.hashed) == 1
    now = 1.5
    fingerprints.during = nothing
    checks.check("one.csv", FileFingerprints.of_file(fingerprints, tmp_path / "one.csv"))
    assert len(fingerprints.hashed) == 2


def test_a_file_that_cannot_be_read_is_not_one_that_changed(
    fingerprints: Hashing, tmp_path: Path
) -> None:
    file_fingerprint = FileFingerprints.of_file(fingerprints, tmp_path / "one.csv")
    checks = SourceChecks(tmp_path, fingerprints)

    def failing(path: Path) -> None:
        raise OSError(5, os.strerror(5), path)

    fingerprints.during = failing
    with pytest.raises(LedgerError, match="cannot be read") as refused:
        checks.check("one.csv", file_fingerprint)
    assert not isinstance(refused.value, SourceChanged)
    fingerprints.during = nothing
    checks.check("one.csv", file_fingerprint)
    (tmp_path / "one.csv").unlink()
    with pytest.raises(SourceChanged):
        checks.check("one.csv", file_fingerprint)


def test_a_file_that_cannot_be_loaded_is_not_one_that_changed(
    fingerprints: Hashing, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(*_: Any) -> str:
        raise PermissionError("one.csv")

    monkeypatch.setattr("pcor.service.core.sources.Snapshot", failing)
    with pytest.raises(LedgerError, match="cannot be read") as refused:
        Tables(tmp_path, 1, fingerprints).get("one.csv", "mark", SCHEMA)
    assert not isinstance(refused.value, SourceChanged)


def test_a_question_about_a_file_that_cannot_be_read_is_a_503_and_not_charged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(*_: Any) -> str:
        raise PermissionError(SOURCE)

    with world(str(tmp_path / "books.db"), tmp_path, sweep=1000) as place:
        monkeypatch.setattr(FileFingerprints, "of_file", failing)
        refused = place.ask()
        assert (refused.status_code, refused.json()["kind"]) == (503, "ledger")
        assert SOURCE not in refused.text
        assert refused.headers["retry-after"]
        assert charges(place) == 0


def charges(place: World) -> int:
    return [entry.kind for entry in place.service.ledger.entries()].count("charge")
