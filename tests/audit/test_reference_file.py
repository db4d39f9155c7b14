"""The reference file: every context as the detector itself judges it, whole or not at all."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray
from pyarrow import parquet

import pcor
from pcor.audit import reference_file
from pcor.audit.reference_file import expected_seconds, read_entry, write_reference
from pcor.errors import ContextError, ParameterError, SourceError, TooLarge, WriteError
from pcor.public.guarantee import OWNER_ONLY
from pcor.search.every_context import EveryContext
from tests.helpers.every_context import SMALL, large, one_by_one, people, table_of
from tests.helpers.family_tables import family_table
from tests.helpers.other_systems import windows_files
from tests.helpers.waiting import DEADLINE

# -- the file -------------------------------------------------------------------------------------


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the 21 contexts of ``people`` five blocks."""
    monkeypatch.setattr(reference_file, "BLOCK", 5)
    monkeypatch.setattr(reference_file, "BLOCK_WITHOUT_KERNEL", 5)


@pytest.mark.parametrize("ids", ["none", "numbers", "texts", "both"])
@pytest.mark.usefixtures("small_blocks")
def test_the_file_lists_every_context_in_order(tmp_path: Path, ids: str) -> None:
    given_ids: dict[str, list[Any] | None] = {
        "none": None,
        "numbers": [1000 - i for i in range(60)],
        "texts": [f"p{i}" for i in range(60)],
        "both": [str(i) if i % 2 else f"{i}b" for i in range(60)],
    }
    table = people(given_ids[ids])
    done = write_reference(table, SMALL, path=tmp_path / "ref.parquet")
    file = parquet.read_table(tmp_path / "ref.parquet")
    assert file.column_names == ["mask_0", "population", "outliers"]
    whole = ids in ("none", "numbers")
    key = pa.int64() if whole else pa.string()
    assert file.schema.types[:2] == [pa.uint64(), pa.int64()]
    assert file.schema.field("outliers").type.value_type == key
    expected = one_by_one(table, SMALL)
    found = {
        row["mask_0"]: (row["population"], sorted(row["outliers"])) for row in file.to_pylist()
    }
    as_written = {m: (n, sorted(o if whole else map(str, o))) for m, (n, o) in expected.items()}
    assert found == as_written
    assert file["mask_0"].to_pylist() == sorted(found)
    assert (done.contexts, done.outliers) == (21, sum(len(o) for _, o in found.values()))
    assert done.outliers > 10
    assert [path.name for path in tmp_path.iterdir()] == ["ref.parquet"]


@pytest.mark.usefixtures("small_blocks")
def test_nothing_stays_where_no_open_file_can_be_removed(tmp_path: Path) -> None:
    with windows_files():
        write_reference(people(None), SMALL, path=tmp_path / "ref.parquet")
    assert [path.name for path in tmp_path.iterdir()] == ["ref.parquet"]


def test_outliers_come_by_rising_metric(tmp_path: Path) -> None:
    table = large(lambda numbers: numbers.lognormvariate(10, 1))
    write_reference(table, path=tmp_path / "ref.parquet")
    entry = read_entry(tmp_path / "ref.parquet", pcor.Context.full(table.schema))
    metric = [table.record(key).value for key in entry.outliers]
    assert metric == sorted(metric)
    assert len(metric) > 20


def test_small_and_empty_contexts_are_listed_without_outliers(tmp_path: Path) -> None:
    table = table_of((2, 2), [(0, 0)] * 7 + [(1, 0)], [1.0, 1.0, 1.0, 1.1, 1.2, 1.3, 50.0, 60.0])
    detector = pcor.LOF(k=2, min_population=8)
    write_reference(table, detector, path=tmp_path / "ref.parquet")
    entries = parquet.read_table(tmp_path / "ref.parquet").to_pylist()
    assert [row["population"] for row in entries] == [7, 1, 8, 0, 0, 0, 7, 1, 8]
    assert [len(row["outliers"]) > 0 for row in entries] == [
        n == 8 for n in (7, 1, 8, 0, 0, 0, 7, 1, 8)
    ]


def test_one_context_can_be_looked_up(tmp_path: Path, small_blocks: None) -> None:
    del small_blocks
    table = people()
    path = tmp_path / "ref.parquet"
    write_reference(table, SMALL, path=path)
    for mask, (population, outliers) in one_by_one(table, SMALL).items():
        entry = read_entry(path, pcor.Context.from_mask(table.schema, mask))
        assert (entry.population, sorted(entry.outliers)) == (population, outliers)
    with pytest.raises(ContextError, match="another schema"):
        read_entry(path, pcor.Context.full(people(list(range(60))).schema))
    parquet.write_table(pa.table({"a": [1]}), tmp_path / "other.parquet")
    with pytest.raises(SourceError, match="is no reference file"):
        read_entry(tmp_path / "other.parquet", pcor.Context.full(table.schema))
    with pytest.raises(SourceError, match="cannot be read"):
        read_entry(tmp_path / "none.parquet", pcor.Context.full(table.schema))


def test_the_file_explains_itself_and_duckdb_reads_it(tmp_path: Path) -> None:
    table = people([f"p{i}" for i in range(60)])
    path = tmp_path / "ref.parquet"
    write_reference(table, SMALL, path=path)
    about = {k.decode(): v.decode() for k, v in parquet.read_metadata(path).metadata.items()}
    assert about["owner_only"] == OWNER_ONLY
    assert about["schema_sha256"] == table.schema.sha256
    assert json.loads(about["detector"]) == SMALL.describe()
    assert json.loads(about["values"])["city"] == ["Köln", "Rome"]
    assert "64 * w + i" in about["how_to_read"]
    query = f"SELECT mask_0, population, len(outliers) FROM '{path}' ORDER BY ALL"  # noqa: S608
    expected = sorted((m, n, len(o)) for m, (n, o) in one_by_one(table, SMALL).items())
    assert duckdb.connect().execute(query).fetchall() == expected


def test_nothing_private_is_in_a_repr(tmp_path: Path) -> None:
    table = people()
    done = write_reference(table, SMALL, path=tmp_path / "ref.parquet")
    for shown in (repr(done), repr(EveryContext(table, SMALL))):
        assert "PRIVATE" in shown
        assert str(done.outliers) not in shown.replace(str(tmp_path), "")


def test_the_expected_time_is_a_time() -> None:
    for detector in ("lof", "grubbs", "histogram", "tail"):
        assert 0 < expected_seconds(people(), detector, samples=2) < 600


# -- interrupted, it goes on ----------------------------------------------------------------------


class Stopped(BaseException):
    """Like an interrupt, but pytest lets it be expected."""


def stop_after(contexts: int) -> Callable[[int, int], None]:
    def progress(done: int, _: int) -> None:
        if done >= contexts:
            raise Stopped

    return progress


@pytest.fixture
def judged_blocks(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Note the first context of every block that is judged."""
    firsts: list[int] = []
    judge = EveryContext.judge

    def noting(self: EveryContext, first: int, count: int) -> Any:
        firsts.append(first)
        return judge(self, first, count)

    monkeypatch.setattr(EveryContext, "judge", noting)
    return firsts


@pytest.mark.parametrize("exists", [True, False], ids=["over a file", "a new file"])
@pytest.mark.usefixtures("small_blocks")
def test_an_interrupted_run_leaves_no_half_file_and_the_next_one_goes_on(
    tmp_path: Path, exists: bool, judged_blocks: list[int]
) -> None:
    table, path = people(), tmp_path / "ref.parquet"
    write_reference(table, SMALL, path=tmp_path / "undisturbed.parquet")
    if exists:
        path.write_text("old", encoding="utf-8")
    with pytest.raises(Stopped):
        write_reference(table, SMALL, path=path, progress=stop_after(10))
    assert path.exists() == exists
    assert not exists or path.read_text(encoding="utf-8") == "old"
    judged_blocks.clear()
    seen: list[tuple[int, int]] = []
    write_reference(table, SMALL, path=path, progress=lambda *step: seen.append(step))
    assert judged_blocks == [10, 15, 20]
    assert seen == [(5, 21), (10, 21), (15, 21), (20, 21), (21, 21)]
    assert path.read_bytes() == (tmp_path / "undisturbed.parquet").read_bytes()
    assert {p.name for p in tmp_path.iterdir()} == {"ref.parquet", "undisturbed.parquet"}


# A run that is killed by itself at a chosen moment; signal 9 lets nothing be tidied up.
KILLED = """
import os, signal, sys
from pathlib import Path
from pyarrow import parquet
from pcor.audit import reference_file
from tests.helpers.every_context import SMALL, people

reference_file.BLOCK = 5
when, path = sys.argv[1], Path(sys.argv[2])

def die(*_, **__):
    os.kill(os.getpid(), signal.SIGKILL)

def progress(done, _):
    if when == "after a block" and done == 10:
        die()
    if when == "in a block" and done == 10:
        Path.replace = die  # written, but not yet in its place
    if when == "at the end" and done == 21:
        parquet.ParquetWriter.close = die

reference_file.write_reference(people(), SMALL, path=path, progress=progress)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there is no signal 9")
@pytest.mark.parametrize(
    ("when", "left"),
    [
        ("after a block", [10, 15, 20]),
        ("in a block", [10, 15, 20]),
        ("at the end", []),
    ],
)
def test_after_kill_9_the_next_run_goes_on_to_the_same_file(
    tmp_path: Path, when: str, left: list[int], judged_blocks: list[int], small_blocks: None
) -> None:
    del small_blocks
    path = tmp_path / "ref.parquet"
    done = subprocess.run(  # noqa: S603 (our own program)
        [sys.executable, "-c", KILLED, when, str(path)],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        timeout=DEADLINE,
        check=False,
    )
    assert done.returncode == -signal.SIGKILL, done.stderr.decode()
    assert not path.exists()
    write_reference(people(), SMALL, path=path)
    assert judged_blocks == left
    write_reference(people(), SMALL, path=tmp_path / "undisturbed.parquet")
    assert path.read_bytes() == (tmp_path / "undisturbed.parquet").read_bytes()
    assert {p.name for p in tmp_path.iterdir()} == {"ref.parquet", "undisturbed.parquet"}


@pytest.mark.usefixtures("small_blocks")
def test_a_damaged_block_is_judged_again(tmp_path: Path, judged_blocks: list[int]) -> None:
    path = tmp_path / "ref.parquet"
    with pytest.raises(Stopped):
        write_reference(people(), SMALL, path=path, progress=stop_after(15))
    parts = sorted((tmp_path / "ref.parquet.parts").glob("0*.parquet"))
    parts[0].write_bytes(b"PAR1")
    parquet.write_table(parquet.read_table(parts[1]).slice(1), parts[1])
    judged_blocks.clear()
    write_reference(people(), SMALL, path=path)
    assert judged_blocks == [0, 5, 15, 20]
    assert parquet.read_metadata(path).num_rows == 21


@pytest.mark.usefixtures("small_blocks")
def test_finished_blocks_of_another_request_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "ref.parquet"
    with pytest.raises(Stopped):
        write_reference(people(), SMALL, path=path, progress=stop_after(10))
    before = {p: p.read_bytes() for p in (tmp_path / "ref.parquet.parts").iterdir()}
    others: list[tuple[pcor.Table, pcor.Detector, str]] = [
        (people(), pcor.LOF(k=4, min_population=8), "another detector"),
        (people(list(range(60))), SMALL, "another schema"),
        (changed(people()), SMALL, "another table"),
    ]
    for table, detector, what in others:
        with pytest.raises(WriteError, match=what) as refused:
            write_reference(table, detector, path=path)
        assert str(refused.value) == (
            f"{str(path) + '.parts'!r} holds finished blocks of another request ({what}); name "
            "another output, or delete that folder"
        )
    assert {p: p.read_bytes() for p in before} == before


def changed(table: pcor.Table) -> pcor.Table:
    """Raise one person's pay by a cent."""
    table.rows.metric[7] += 0.01
    return table


def test_without_a_finished_block_any_request_may_begin(tmp_path: Path) -> None:
    path = tmp_path / "ref.parquet"
    folder = tmp_path / "ref.parquet.parts"
    folder.mkdir()
    (folder / "request.json").write_text("{}", encoding="utf-8")
    (folder / ".000000000000000.parquet.x.parquet").write_text("left by a killed run")
    write_reference(people(), SMALL, path=path)
    assert [p.name for p in tmp_path.iterdir()] == ["ref.parquet"]


def test_a_folder_with_blocks_and_no_note_is_not_trusted(tmp_path: Path) -> None:
    folder = tmp_path / "ref.parquet.parts"
    folder.mkdir()
    (folder / "000000000000000.parquet").write_bytes(b"")
    with pytest.raises(WriteError, match="holds finished blocks of another request"):
        write_reference(people(), SMALL, path=tmp_path / "ref.parquet")


@pytest.mark.skipif(sys.platform == "win32", reason="no locks there")
def test_two_runs_do_not_share_a_folder(tmp_path: Path) -> None:
    path = tmp_path / "ref.parquet"

    def second(*_: int) -> None:
        with pytest.raises(WriteError, match="another run is at work"):
            write_reference(people(), SMALL, path=path)

    write_reference(people(), SMALL, path=path, progress=second)
    assert parquet.read_metadata(path).num_rows == 21


def test_a_detector_that_fails_is_a_sentence_and_leaves_nothing(tmp_path: Path) -> None:
    def failing(rising: NDArray[np.float64]) -> NDArray[np.bool_]:
        raise ValueError(f"secret {rising[0]}")

    with pytest.raises(ParameterError, match="failed with a ValueError") as refused:
        write_reference(people(), pcor.Estimator(failing), path=tmp_path / "ref.parquet")
    assert "secret" not in str(refused.value)
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_is_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device: secret 12345")

    monkeypatch.setattr(parquet, "write_table", full)
    with pytest.raises(WriteError, match=r"cannot write '.*0.parquet'; is the disk full"):
        write_reference(people(), SMALL, path=tmp_path / "ref.parquet")
    assert list(tmp_path.iterdir()) == []


def test_what_cannot_be_done_is_refused_before_anything_is_looked_at(
    tmp_path: Path, judged_blocks: list[int]
) -> None:
    table, path = people(), tmp_path / "ref.parquet"
    with pytest.raises(TooLarge, match="the schema has 21 contexts, more than the limit of 20"):
        write_reference(table, path=path, limit=20)
    with pytest.raises(WriteError, match=r"path= .* must end in .parquet"):
        write_reference(table, path=tmp_path / "ref.csv")
    with pytest.raises(WriteError, match="there is no folder"):
        write_reference(table, path=tmp_path / "no" / "ref.parquet")
    wide = pcor.Schema(metric="pay", attributes={"a": list(range(60))})
    with pytest.raises(TooLarge, match="can be listed up to 281,474,976,710,656"):
        write_reference(
            pcor.Table(pa.table({"a": [1], "pay": [1.0]}), wide), path=path, limit=1 << 70
        )
    assert judged_blocks == []
    assert list(tmp_path.iterdir()) == []


# -- families -------------------------------------------------------------------------------------


def test_in_a_family_the_file_has_its_members_and_gives_every_records_coe(tmp_path: Path) -> None:
    path, detector = tmp_path / "ref.parquet", pcor.Grubbs(alpha=0.2, min_population=5)
    for seed in range(4):
        case = family_table(seed)
        done = write_reference(case.table, detector, path=path)
        rows = parquet.read_table(path).to_pylist()
        members = {mask for n in range(len(case.codes)) for mask in case.of(n).members}
        assert members <= {row["mask_0"] for row in rows}
        assert done.contexts == len(rows) < 1 << case.schema.width
        for record in range(0, len(case.codes), 7):
            coe = pcor.matching_contexts(case.table, record, detector)
            listed = [row for row in rows if record in row["outliers"]]
            assert sorted((row["mask_0"], row["population"]) for row in listed) == sorted(
                zip(coe.masks[:, 0].tolist(), coe.populations.tolist(), strict=True)
            )


def test_a_context_outside_the_family_is_not_in_the_file(tmp_path: Path) -> None:
    declared = people().schema.to_dict()
    declared["attributes"]["job"]["contexts"] = "one"
    schema = pcor.Schema.from_dict(declared)
    rows = {"job": ["clerk", "cook", "pilot"] * 9, "city": ["Rome"] * 27, "pay": [1.0] * 27}
    path = tmp_path / "ref.parquet"
    assert write_reference(pcor.Table(pa.table(rows), schema), SMALL, path=path).contexts == 12
    assert read_entry(path, pcor.Context.parse(schema, "job is cook")).population == 9
    with pytest.raises(ContextError, match="not one of those that the schema allows"):
        read_entry(path, pcor.Context.parse(schema, "job is cook or pilot"))


# -- the authors' own file ------------------------------------------------------------------------


# (context, record) where ways of breaking ties among neighbours give different verdicts.
TIE_DEPENDENT = {
    ((13, 18, 15), 87690),
    ((13, 22, 12), 87690),
    ((13, 24, 14), 120212),
    ((19, 21, 6), 88116),
    ((19, 28, 14), 119688),
    ((31, 9, 13), 16658),
    ((31, 13, 5), 96269),
}


@pytest.mark.skipif("PCOR_DATA" not in os.environ, reason="PCOR_DATA names no folder of tables")
def test_the_whole_file_agrees_with_what_the_authors_found(tmp_path: Path) -> None:
    data = Path(os.environ["PCOR_DATA"])
    table = pcor.Table(data / "authors_salary_11k.parquet", data / "authors_salary_11k.toml")
    path = tmp_path / "ref.parquet"
    assert write_reference(table, "lof", path=path).contexts == 31 * 31 * 15
    file = parquet.read_table(path)
    masks, populations = file["mask_0"].to_numpy(), file["population"].to_numpy()
    for row in parquet.read_table(data / "authors_salary_11k_lof_sample.parquet").to_pylist():
        sets = (row["m0"], row["m1"], row["m2"])
        place = int(np.searchsorted(masks, sets[0] | sets[1] << 5 | sets[2] << 10))
        assert populations[place] == row["population"]
        differ = set(file["outliers"][place].as_py()) ^ set(row["outliers"])
        assert {(sets, record) for record in differ} <= TIE_DEPENDENT
