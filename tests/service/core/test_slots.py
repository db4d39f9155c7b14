"""What is counted about callers is the same in one process and in several, and survives a kill."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from pcor.service.core import slots
from pcor.service.core.limits import TokenBuckets
from pcor.service.core.problems import Problem
from pcor.service.core.slots import KnownNames, OwnSlots, SharedSlots, Slots, make_files, open_slots
from tests.helpers.waiting import DEADLINE

TAKE = """
import sys
from pathlib import Path
from pcor.service.core.limits import TokenBuckets
from pcor.service.core.problems import Problem
from pcor.service.core.slots import SharedSlots
buckets = TokenBuckets(1.0, 500, clock=lambda: 1.0, slots=SharedSlots(Path(sys.argv[1])))
sys.stdin.readline()
taken = 0
for _ in range(400):
    try:
        buckets.take("a key")
        taken += 1
    except Problem:
        pass
print(taken)
"""

HOLD = """
import sys, time
from pathlib import Path
from pcor.service.core.slots import SharedSlots
with SharedSlots(Path(sys.argv[1])).locked():
    print("held", flush=True)
    time.sleep(600)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    make_files(tmp_path)
    return tmp_path


@pytest.fixture(params=["one process", "several"])
def places(request: pytest.FixtureRequest, folder: Path) -> Slots:
    return OwnSlots() if request.param == "one process" else SharedSlots(folder / slots.REQUESTS)


def refused(buckets: TokenBuckets, who: str) -> bool:
    try:
        buckets.take(who)
    except Problem:
        return True
    return False


def test_a_slot_is_written_read_and_freed(places: Slots) -> None:
    with places.locked():
        assert places.get("a") is None
        places.put("a", 2.5, 7.0)
        places.put("b", 1.0, 8.0)
        places.put("a", 0.5, 9.0)
        assert places.get("a") == (0.5, 9.0)
        places.forget("a")
        places.forget("never there")
        assert places.get("a") is None
        assert places.get("b") == (1.0, 8.0)


def test_buckets_count_alike_wherever_they_are_kept(places: Slots) -> None:
    now = 0.0  # also a clock that begins there
    buckets = TokenBuckets(2.0, 3, clock=lambda: now, slots=places)
    assert [refused(buckets, "a") for _ in range(4)] == [False] * 3 + [True]
    assert not refused(buckets, "b")
    now = 0.5
    buckets.check("a")
    assert [refused(buckets, "a") for _ in range(2)] == [False, True]


def test_a_name_is_known_until_it_is_forgotten(places: Slots) -> None:
    known = KnownNames(places)
    assert not known.has("a")
    known.add("a")
    assert known.has("a")
    assert known.has("a")
    known.forget("a")
    assert not known.has("a")


def test_what_was_untouched_longest_makes_room_and_nothing_grows(places: Slots) -> None:
    with places.locked():
        places.put("first", 1.0, 1.0)
        for number in range(60_000):
            places.put(f"other {number}", 1.0, 2.0 + number)
        assert places.get("first") is None
        assert places.get("other 59999") == (1.0, 60_001.0)
        left = sum(places.get(f"other {number}") is not None for number in range(60_000))
    assert 8_000 < left <= 16_384


def test_a_file_stays_as_large_as_it_was_and_is_nobody_else_s(folder: Path) -> None:
    path = folder / slots.GUESSES
    size = path.stat().st_size
    opened = SharedSlots(path)
    with opened.locked():
        for number in range(1000):
            opened.put(f"192.0.2.{number}", 1.0, 1.0)
    assert path.stat().st_size == size < 1 << 20
    assert path.stat().st_mode & 0o077 == 0
    assert b"192.0.2" not in path.read_bytes()


def test_two_files_hash_a_name_to_different_places(folder: Path) -> None:
    for name in (slots.GUESSES, slots.KNOWN):
        KnownNames(SharedSlots(folder / name)).add("203.0.113.7")
    one, other = ((folder / name).read_bytes()[32:] for name in (slots.GUESSES, slots.KNOWN))
    assert one != other


def test_without_a_folder_a_process_counts_for_itself(folder: Path) -> None:
    assert isinstance(open_slots(None, slots.KNOWN), OwnSlots)
    assert isinstance(open_slots(folder, slots.KNOWN), SharedSlots)


@pytest.mark.parametrize("gone", ["file", "folder"])
def test_a_process_that_starts_after_a_tidy_up_counts_by_itself_and_says_so(
    gone: str, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (folder / slots.GUESSES).unlink()
    if gone == "folder":
        shutil.rmtree(folder)
    assert isinstance(open_slots(folder, slots.GUESSES), OwnSlots)
    (said,) = [record for record in caplog.records if record.name == "pcor.service"]
    assert said.levelname == "WARNING"
    assert "'guesses'" in said.getMessage()
    if gone == "file":
        assert isinstance(open_slots(folder, slots.KNOWN), SharedSlots)


def test_processes_that_take_at_once_get_no_token_twice(folder: Path) -> None:
    started = [
        subprocess.Popen(  # noqa: S603 (our own words)
            [sys.executable, "-c", TAKE, str(folder / slots.REQUESTS)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(3)
    ]
    for one in started:
        assert one.stdin is not None
        one.stdin.write("go\n")
        one.stdin.flush()
    taken = [int(one.communicate(timeout=DEADLINE)[0]) for one in started]
    assert sum(taken) == 500


def test_a_process_that_is_killed_at_work_holds_up_nobody(folder: Path) -> None:
    path = folder / slots.REQUESTS
    with subprocess.Popen(  # noqa: S603 (our own words)
        [sys.executable, "-c", HOLD, str(path)], stdout=subprocess.PIPE, text=True
    ) as holding:
        assert holding.stdout is not None
        assert holding.stdout.readline() == "held\n"
        holding.kill()
    assert not refused(TokenBuckets(1.0, 3, slots=SharedSlots(path)), "a")
