"""COE as a file: complete, readable without us, written in bounded memory or not at all."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

import pcor
from pcor.errors import RecordError, TooLarge, WriteError
from pcor.search import coe_file
from pcor.search.blocks import LARGEST_BLOCK
from pcor.search.coe import MatchingContexts, joined, matching_parts
from pcor.search.coe_file import Tally, write_contexts
from tests.helpers.family_tables import TWINS, family_table
from tests.helpers.far_row import one_far_row
from tests.helpers.waiting import DEADLINE


def loaded(path: Path) -> tuple[pa.Table, Any, Any]:
    """Read the file as its documentation says."""
    file = parquet.read_table(path)
    masks = np.column_stack([file[c] for c in file.column_names if c.startswith("mask_")])
    return file, masks, file["population"].to_numpy()


# -- what is in the file --------------------------------------------------------------------------


@pytest.mark.parametrize("valid_in", ["everywhere", "somewhere"])
# t = 12, 64, 65 and 140: one word, one full word, two words and three.
@pytest.mark.parametrize(("single", "words"), [(0, 1), (52, 1), (53, 2), (128, 3)])
def test_the_file_has_the_masks_and_populations_of_matching_contexts(
    tmp_path: Path, single: int, words: int, valid_in: str
) -> None:
    table = one_far_row(single, 12, valid_in)
    found = pcor.matching_contexts(table, 0, "grubbs")
    tally = write_contexts(table, 0, "grubbs", path=tmp_path / "coe.parquet")
    file, masks, populations = loaded(tmp_path / "coe.parquet")
    assert file.column_names == [*(f"mask_{i}" for i in range(words)), "population"]
    assert masks.dtype == np.uint64
    assert masks.tolist() == found.masks.tolist()
    assert populations.dtype == np.int64
    assert populations.tolist() == found.populations.tolist()
    assert tally.count == len(found) == (2**11 if valid_in == "everywhere" else 2**10)


def test_in_a_family_the_file_has_its_members_alone(tmp_path: Path) -> None:
    """As the definition of the family and the slow twin of the detector find them."""
    detector, twin = TWINS["tail"]
    contexts = 0
    for seed in range(12):
        case = family_table(seed)
        write_contexts(case.table, case.record, detector, path=tmp_path / "coe.parquet")
        _, masks, populations = loaded(tmp_path / "coe.parquet")
        found = dict(zip(masks[:, 0].tolist(), populations.tolist(), strict=True))
        assert found == case.coe(twin, detector.min_population)
        contexts += len(found)
    assert contexts > 20


def test_batches_keep_the_order_and_lose_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = one_far_row(0, 19)  # 2^18 contexts, all valid: 16 blocks
    monkeypatch.setattr(coe_file, "BATCH", 3 * 2**14)
    write_contexts(table, 0, "grubbs", path=tmp_path / "coe.parquet")
    about = parquet.read_metadata(tmp_path / "coe.parquet")
    sizes = [about.row_group(i).num_rows for i in range(about.num_row_groups)]
    assert sizes == [3 * 2**14] * 5 + [2**14]
    # v0 is the record's own and the lowest bit: the masks are the odd numbers.
    _, masks, populations = loaded(tmp_path / "coe.parquet")
    assert np.array_equal(masks[:, 0], np.arange(1, 2**19, 2, dtype=np.uint64))
    assert (populations == 31).all()


@pytest.mark.parametrize(("single", "words"), [(0, 1), (70, 2)])
def test_an_empty_coe_is_a_file_with_its_columns(tmp_path: Path, single: int, words: int) -> None:
    table = one_far_row(single, 3)
    tally = write_contexts(table, 15, "grubbs", path=tmp_path / "coe.parquet")
    file, masks, _ = loaded(tmp_path / "coe.parquet")
    assert masks.shape == (0, words)
    assert file.schema.names[-1] == "population"
    assert (tally.count, len(tally.largest)) == (0, 0)


def test_the_metadata_says_all_that_is_needed_to_read_the_file(tmp_path: Path) -> None:
    schema = pcor.Schema(
        metric="pay",
        attributes={"stadt": ["Köln", "Rome"], "grade": [1, 2], "age": {"edges": [0, 30, 60]}},
        id="who",
        name="people",
    )
    columns: dict[str, Any] = {
        "pay": [*range(30), 10_000],
        "stadt": ["Köln"] * 31,
        "grade": [2] * 31,
        "age": [40] * 31,
        "who": [f"p{i}" for i in range(31)],
    }
    table = pcor.Table(pa.table(columns), schema)
    detector = pcor.Grubbs(alpha=0.01)
    write_contexts(table, "p30", detector, path=tmp_path / "coe.parquet")
    stored = parquet.read_metadata(tmp_path / "coe.parquet").metadata
    about = {key.decode(): value.decode() for key, value in stored.items()}
    assert about["owner_only"].startswith("OWNER ONLY: ")
    assert "64 * w + i" in about["how_to_read"]
    assert json.loads(about["record"]) == "p30"
    assert json.loads(about["detector"]) == detector.describe()
    assert about["schema_sha256"] == schema.sha256
    assert about["software"] == f"pcor {pcor.__version__}"
    assert about["format"] == "pcor-contexts/1"
    assert (about["dataset"], about["metric"]) == ("people", "pay")
    # With the metadata alone a row reads as the context that it is.
    values = json.loads(about["values"])
    expected = {"stadt": ["Köln", "Rome"], "grade": [1, 2], "age": ["[0, 30)", "[30, 60]"]}
    assert list(values.items()) == list(expected.items())  # in the order of the schema
    flat = [(name, value) for name, domain in values.items() for value in domain]
    _, masks, _ = loaded(tmp_path / "coe.parquet")
    contexts = pcor.matching_contexts(table, "p30", detector).contexts
    for row, context in zip(masks, contexts, strict=True):
        chosen = [pair for j, pair in enumerate(flat) if int(row[j // 64]) >> j % 64 & 1]
        assert chosen == [(n, v) for n, domain in context.values.items() for v in domain]


def test_duckdb_reads_it_as_the_documentation_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = one_far_row(0, 12, "somewhere")
    tally = write_contexts(table, 0, "grubbs", path=tmp_path / "coe.parquet")
    monkeypatch.chdir(tmp_path)
    queries = re.findall("SELECT.*", write_contexts.__doc__ or "")
    with duckdb.connect() as database:
        largest, metadata = (database.execute(query).fetchall() for query in queries)
    assert [population for _, population in largest] == tally.largest.populations.tolist()
    assert dict(metadata)["schema_sha256"] == table.schema.sha256


# -- the largest ----------------------------------------------------------------------------------


@given(st.data())
def test_the_largest_are_those_of_a_plain_sort_by_population_and_bits(data: st.DataObject) -> None:
    single = data.draw(st.sampled_from([0, 1, 62, 70]))
    table = one_far_row(single, 6)
    space = table.record(0).space
    places = st.lists(st.integers(0, 31), unique=True, max_size=32)
    indices = np.array(data.draw(places), dtype=np.uint64)
    sizes = data.draw(st.lists(st.integers(1, 3), min_size=len(indices), max_size=len(indices)))
    found = MatchingContexts(table, space.words_of(indices), np.array(sizes, dtype=np.int64))
    expected = sorted(zip(sizes, found.contexts, strict=True), key=lambda p: (-p[0], p[1].bits))
    count = data.draw(st.integers(0, 33))
    first = found.largest(count)
    assert list(zip(first.populations.tolist(), first.contexts, strict=True)) == expected[:count]
    cuts = sorted(data.draw(st.lists(st.integers(0, len(indices)), max_size=3)))
    parts = [
        MatchingContexts(table, found.masks[a:b], found.populations[a:b])
        for a, b in pairwise([0, *cuts, len(indices)])
    ]
    tally = Tally(table)
    assert joined(tally.watch(parts)).masks.tolist() == found.masks.tolist()
    assert tally.count == len(found)
    assert tally.largest.masks.tolist() == found.largest(20).masks.tolist()


def test_a_tally_shows_nothing_of_itself() -> None:
    table = one_far_row(0, 3)
    tally = Tally(table)
    joined(tally.watch(matching_parts(table, 0, "grubbs")))
    assert tally.count == 4
    assert "count" not in repr(tally)


# -- written whole or not at all ------------------------------------------------------------------


class Stopped(BaseException):
    """Like an interrupt, but pytest lets it be expected."""


def stop_at(block: int) -> Any:
    def progress(done: int, _: int) -> None:
        if done == (block + 1) * LARGEST_BLOCK:
            raise Stopped

    return progress


@pytest.mark.parametrize("exists", [True, False], ids=["over a file", "a new file"])
@pytest.mark.parametrize("block", [0, 3, 7])
def test_interrupted_writing_leaves_nothing(
    tmp_path: Path, block: int, exists: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(coe_file, "BATCH", 2**14)  # one row group for each block
    table = one_far_row(0, 18)
    path = tmp_path / "coe.parquet"
    if exists:
        path.write_text("old", encoding="utf-8")
    before = list(tmp_path.iterdir())
    with pytest.raises(Stopped):
        write_contexts(table, 0, "grubbs", path=path, progress=stop_at(block))
    assert list(tmp_path.iterdir()) == before
    assert not exists or path.read_text(encoding="utf-8") == "old"


def test_a_full_disk_is_a_sentence_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device: secret 12345")

    monkeypatch.setattr(parquet.ParquetWriter, "write_table", full)
    with pytest.raises(WriteError, match=r"cannot write '.*coe.parquet'; is the disk full"):
        write_contexts(one_far_row(0, 3), 0, "grubbs", path=tmp_path / "coe.parquet")
    assert list(tmp_path.iterdir()) == []


def test_what_cannot_be_done_is_refused_before_anything_is_looked_at(tmp_path: Path) -> None:
    table = one_far_row(0, 5)
    path = tmp_path / "coe.parquet"
    looked: list[int] = []
    how: dict[str, Any] = {"progress": lambda done, _: looked.append(done)}
    with pytest.raises(TooLarge, match="16 possible contexts, more than the limit of 15"):
        write_contexts(table, 0, "grubbs", path=path, limit=15, **how)
    with pytest.raises(RecordError, match="no record with row number 31"):
        write_contexts(table, 31, "grubbs", path=path, **how)
    with pytest.raises(WriteError, match=r"path= .* must end in .parquet"):
        write_contexts(table, 0, "grubbs", path=tmp_path / "coe.csv", **how)
    with pytest.raises(WriteError, match=r"path= .*: there is no folder"):
        write_contexts(table, 0, "grubbs", path=tmp_path / "no" / "coe.parquet", **how)
    assert looked == []
    assert list(tmp_path.iterdir()) == []


# -- memory ---------------------------------------------------------------------------------------


# The peak of the whole process, pyarrow's memory included, before and after a COE of 2^21 contexts.
GROWTH = """
import resource, sys
from pathlib import Path
from pcor.search.coe_file import write_contexts
from tests.helpers.far_row import one_far_row

def peak(many):
    write_contexts(one_far_row(0, many), 0, "grubbs", path=Path(sys.argv[1]))
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024

print(-peak(20) + peak(22))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="ru_maxrss has another unit elsewhere")
def test_memory_does_not_grow_with_the_number_of_contexts(tmp_path: Path) -> None:
    done = subprocess.run(  # noqa: S603 (our own program)
        [sys.executable, "-c", GROWTH, str(tmp_path / "coe.parquet")],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        timeout=DEADLINE,
        check=True,
    )
    assert parquet.read_metadata(tmp_path / "coe.parquet").num_rows == 2**21
    assert int(done.stdout) < 2**21 * 16 / 4  # a quarter of the masks and populations: 8 MiB
