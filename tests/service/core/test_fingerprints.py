"""File fingerprints: nothing kept or sent lets anybody try out guesses at a registered file.

The adversary has all of a file but one row, and so can write down every candidate for the whole
file. What they must not find is anything to compare a candidate with.
"""

from __future__ import annotations

import base64
import hashlib
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet
from sqlalchemy import text

from pcor.errors import LedgerError, ParameterError
from pcor.rows.table import Table
from pcor.service.core import sources
from pcor.service.core.fingerprints import NAME, FileFingerprints
from pcor.service.core.registry import Registration
from pcor.service.core.settings import ServiceSettings
from tests.helpers.service_world import (
    ANALYST,
    DATASET,
    OUTLIER,
    SOURCE,
    World,
    columns,
    registration,
    world,
)

DATASETS = f"/v1/datasets/{DATASET}"


@pytest.fixture
def place(tmp_path: Path) -> Iterator[World]:
    with world(str(tmp_path / "books.db"), tmp_path) as place:
        yield place


def source(place: World) -> Path:
    return place.service.settings.data / SOURCE


def change_the_file(place: World) -> None:
    changed = dict(columns())
    changed["pay"] = [pay + 1 for pay in changed["pay"]]
    parquet.write_table(pa.table(changed), source(place))


def register(place: World, **changes: Any) -> dict[str, Any]:
    answer = place.send("owner", "PUT", DATASETS, json=registration(**changes))
    assert answer.status_code < 300, answer.text
    registered: dict[str, Any] = answer.json()
    return registered


def answered(place: World) -> dict[str, Any]:
    return place.wait(place.ask().json()["id"])


# -- nothing to compare a guess with --------------------------------------------------------------


def digests(content: bytes) -> Iterator[bytes]:
    """Yield every digest of a file that Python knows, as anybody would write it."""
    for name in sorted(hashlib.algorithms_guaranteed):
        made = hashlib.new(name, content)
        length = (32,) if made.digest_size == 0 else ()
        found = made.digest(*length)
        yield from (found, found.hex().encode(), found.hex().upper().encode())
        yield base64.b64encode(found).rstrip(b"=")
        yield base64.urlsafe_b64encode(found).rstrip(b"=")


def has_a_digest(kept: bytes, content: bytes) -> bool:
    return any(digest in kept for digest in digests(content))


def all_that_is_kept(place: World) -> bytes:
    """Return every byte of the database, and every value as the database tells it."""
    engine = place.service.ledger.database.engine
    books = Path(str(engine.url.database))
    kept = b"".join(path.read_bytes() for path in books.parent.glob(f"{books.name}*"))
    with place.service.ledger.database.reading() as connection:
        names = connection.execute(text("SELECT name FROM sqlite_master WHERE type = 'table'"))
        for name in names.scalars().all():
            rows = connection.execute(text(f"SELECT * FROM {name}"))  # noqa: S608
            kept += "\n".join(str(value) for row in rows for value in row).encode()
    return kept


def all_that_is_sent(place: World, release: str) -> bytes:
    """Return what each role can read."""
    paths = {
        "owner": [DATASETS, "/v1/datasets", "/v1/ledger", "/v1/audit", "/v1/releases"],
        "auditor": ["/v1/ledger/export", "/v1/ledger", "/v1/audit", "/v1/metrics"],
        ANALYST: [DATASETS, "/v1/releases", f"/v1/releases/{release}"],
    }
    said = [place.send(who, "GET", path) for who, each in paths.items() for path in each]
    assert {answer.status_code for answer in said} == {200}
    return b"".join(answer.content for answer in said)


def test_no_digest_of_the_file_is_kept_or_sent(place: World) -> None:
    release = answered(place)
    content = source(place).read_bytes()
    kept, sent = all_that_is_kept(place), all_that_is_sent(place, release["id"])
    assert DATASET.encode() in kept
    assert DATASET.encode() in sent
    assert not has_a_digest(kept, content)
    assert not has_a_digest(sent, content)


@pytest.mark.parametrize("name", ["sha256", "sha1", "md5", "blake2b"])
def test_a_digest_would_have_been_found(name: str) -> None:
    made = hashlib.new(name, b"rows")
    for written in (made.digest(), made.hexdigest().encode(), base64.b64encode(made.digest())):
        assert has_a_digest(b"..." + written + b"...", b"rows")


def test_neither_the_secret_nor_a_mark_is_sent(place: World) -> None:
    sent = all_that_is_sent(place, answered(place)["id"])
    kept = all_that_is_kept(place)
    secret = (source(place).parent / NAME).read_bytes().strip()
    file_fingerprint = place.service.fingerprints.of_file(source(place)).encode()
    assert file_fingerprint in kept
    assert file_fingerprint not in sent
    assert secret not in kept + sent
    assert bytes.fromhex(secret.decode()) not in kept


def test_the_books_of_two_files_are_the_same_but_for_times_and_answers(tmp_path: Path) -> None:
    told = []
    for name in ("one", "other"):
        folder = tmp_path / name
        (folder / "data").mkdir(parents=True)
        pay = [*columns()["pay"]]
        pay[3] += len(name)  # one row differs
        parquet.write_table(pa.table(columns() | {"pay": pay}), folder / "data" / SOURCE)
        with world(str(folder / "books.db"), folder) as place:
            answered(place)
            entries = [entry.to_dict() for entry in place.service.ledger.entries()]
            events = place.send("auditor", "GET", "/v1/audit").json()["events"]
        asked = [(e["kind"], e["key"], e["body"]) for e in entries if e["kind"] != "answer"]
        registered = [e["body"] for e in events if e["kind"] == "dataset_registered"]
        told.append((asked, registered))
    assert told[0] == told[1]


# -- the same file is the same, another is another -------------------------------------------------


def test_the_same_file_under_other_settings_keeps_its_answers(place: World) -> None:
    first, left = answered(place), place.service.ledger.left(DATASET)
    newer = register(place, records=[OUTLIER], budget=None)
    assert (newer["version"], newer["source_state"]) == (2, 1)
    assert answered(place)["release"] == first["release"]
    assert place.service.ledger.left(DATASET) == left


def test_another_file_is_another_state_and_is_paid_for(place: World) -> None:
    answered(place)
    left = place.service.ledger.left(DATASET)
    change_the_file(place)
    assert register(place, budget=None)["source_state"] == 2
    answered(place)
    assert place.service.ledger.left(DATASET) < left


def test_a_file_that_comes_back_has_the_state_that_it_had(place: World) -> None:
    rows = source(place).read_bytes()
    first, left = answered(place), place.service.ledger.left(DATASET)
    change_the_file(place)
    register(place, budget=None)
    source(place).write_bytes(rows)
    assert register(place, budget=None)["source_state"] == 1
    assert answered(place)["id"] == first["id"]
    assert place.service.ledger.left(DATASET) == left


# -- a file that is replaced while it is read -----------------------------------------------------


def in_its_place(path: Path, content: bytes) -> None:
    """Put another file under the name, as ``mv`` does."""
    other = path.with_suffix(".new")
    other.write_bytes(content)
    other.replace(path)


def in_place(path: Path, content: bytes) -> None:
    """Write into the file that is there, as ``cp`` does."""
    with path.open("r+b") as stream:
        stream.write(content)
        stream.truncate()


class Swapping:
    """Replaces the file between the step that knows it again and the step that reads its rows.

    Args:
        place: whose file.
        way: how.
        back: the old file is put back as soon as the rows are read.
    """

    def __init__(self, place: World, way: Callable[[Path, bytes], None], *, back: bool) -> None:
        self._path, self._way, self._back = source(place), way, back
        self.before = self._path.read_bytes()
        change_the_file(place)
        self.after = self._path.read_bytes()
        in_its_place(self._path, self.before)
        self.swaps = 0

    def table(self, *given: Any) -> Table:
        """Return a table, of a file that is swapped before it is read."""
        self._way(self._path, self.after)
        self.swaps += 1
        try:
            return Table(*given)
        finally:
            if self._back:
                self._way(self._path, self.before)


@pytest.fixture(params=["replaced", "in place", "replaced and back", "in place and back"])
def swapping(
    request: pytest.FixtureRequest, place: World, monkeypatch: pytest.MonkeyPatch
) -> Swapping:
    way = in_place if request.param.startswith("in place") else in_its_place
    made = Swapping(place, way, back=request.param.endswith("back"))
    monkeypatch.setattr(sources, "Table", made.table)
    place.service.tables._kept.clear()
    return made


def pay_in_memory(place: World) -> float:
    """Return what the outlier earns by the one table in memory."""
    (table,) = place.service.tables._kept.values()
    return table.record(OUTLIER).value


def test_a_file_that_is_replaced_while_it_is_loaded_is_not_asked(
    place: World, swapping: Swapping
) -> None:
    assert answered(place)["release"] is not None
    assert swapping.swaps == 1
    assert pay_in_memory(place) == columns()["pay"][OUTLIER]


def test_a_file_that_is_replaced_while_it_is_registered_is_not_asked(
    place: World, swapping: Swapping
) -> None:
    assert register(place, budget=None)["source_state"] == 1
    assert swapping.swaps == 1
    assert pay_in_memory(place) == columns()["pay"][OUTLIER]


def test_a_file_that_changes_before_its_rows_are_read_is_not_registered(
    place: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    check = Registration.check

    def late(new: Registration) -> None:
        check(new)
        change_the_file(place)

    monkeypatch.setattr(Registration, "check", late)
    place.service.tables._kept.clear()
    refused = place.send("owner", "PUT", DATASETS, json=registration(description="another"))
    assert refused.status_code == 422
    assert "changed while it was being registered" in refused.json()["detail"]
    assert place.send("owner", "GET", DATASETS).json()["version"] == 1


# -- the secret -----------------------------------------------------------------------------------


def test_a_mark_is_of_the_file_and_of_the_secret(tmp_path: Path) -> None:
    (tmp_path / "rows").write_bytes(b"1")
    one, other = FileFingerprints(tmp_path / "one"), FileFingerprints(tmp_path / "other")
    for fingerprints in (one, other):
        fingerprints.make_secret()
    file_fingerprint = one.of_file(tmp_path / "rows")
    assert file_fingerprint == FileFingerprints(tmp_path / "one").of_file(tmp_path / "rows")
    assert file_fingerprint != other.of_file(tmp_path / "rows")
    (tmp_path / "rows").write_bytes(b"2")
    assert file_fingerprint != one.of_file(tmp_path / "rows")


def test_a_secret_is_for_its_owners_eyes_and_made_once(tmp_path: Path) -> None:
    path = tmp_path / "secret"
    starts = threading.Barrier(8)

    def begin() -> None:
        starts.wait()
        FileFingerprints(path).make_secret()

    threads = [threading.Thread(target=begin) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    made = path.read_bytes()
    FileFingerprints(path).make_secret()
    assert path.read_bytes() == made
    assert path.stat().st_mode & 0o777 == 0o600
    assert [*tmp_path.iterdir()] == [path]


def test_a_secret_that_cannot_be_made_is_said_so_without_its_place(tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match="--secret") as refusal:
        FileFingerprints(tmp_path / "nowhere" / "secret").make_secret()
    assert str(tmp_path) not in str(refusal.value)


@pytest.mark.parametrize("damage", ["", "x" * 64, "0" * 63, "é"])
def test_a_damaged_secret_marks_nothing_and_is_not_replaced(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "secret"
    path.write_text(damage, encoding="utf-8")
    FileFingerprints(path).make_secret()
    with pytest.raises(LedgerError, match="missing or damaged"):
        FileFingerprints(path).of_bytes(b"rows")


def test_without_the_secret_nothing_is_charged(place: World) -> None:
    (source(place).parent / NAME).unlink()
    place.service.tables._kept.clear()
    left = place.service.ledger.left(DATASET)
    refused = place.ask()
    assert (refused.status_code, refused.json()["kind"]) == (503, "ledger")
    assert "secret is missing or damaged" in refused.text
    assert place.service.ledger.left(DATASET) == left


def test_with_a_new_secret_an_old_file_is_a_new_state(place: World) -> None:
    (source(place).parent / NAME).unlink()
    assert register(place, budget=None)["source_state"] == 2
    assert answered(place)["release"] is not None


def test_the_secret_can_be_kept_elsewhere(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    with world(str(tmp_path / "books.db"), tmp_path, secret=elsewhere) as place:
        assert elsewhere.exists()
        assert not (source(place).parent / NAME).exists()
        settings = place.service.settings
        assert ServiceSettings.from_json(settings.to_json()) == settings
