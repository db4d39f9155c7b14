"""The reference file: every context as the detector itself judges it, whole or not at all."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from pyarrow import parquet
from typer.testing import CliRunner

import pcor
from pcor.audit import reference_file
from pcor.audit.reference_file import expected_seconds, read_entry, write_reference
from pcor.cli import app
from pcor.errors import ContextError, ParameterError, SourceError, TooLarge, WriteError
from pcor.public.guarantee import OWNER_ONLY
from pcor.search.every_context import EveryContext, count_contexts, number_of
from tests.helpers.waiting import DEADLINE

# -- every context is judged as the detector judges it --------------------------------------------


def far_from_most(rising: NDArray[np.float64]) -> NDArray[np.bool_]:
    return np.abs(rising - np.median(rising)) > 5


DETECTORS: list[pcor.Detector] = [
    *(pcor.LOF(k=k, threshold=1.2, min_population=k) for k in (1, 2, 3, 4, 5, 7, 10**9)),
    pcor.LOF(k=8, threshold=0.9, min_population=12),
    pcor.LOF(k=3, ties="all", min_population=4),
    *(pcor.Grubbs(alpha=0.2, tail=t, min_population=3) for t in ("both", "upper", "lower")),
    pcor.Histogram(rare=0.2, min_population=1),
    pcor.Histogram(rare=0.123456789012, include_maximum=False, min_population=5),
    pcor.Tail(share=0.2, min_population=3),
    pcor.Neighbourhood(2.0, share=0.2, min_population=3),
    pcor.RareBin([0, 5], share=0.3, min_population=3),
    pcor.Estimator(far_from_most, min_population=2),
]
SHAPES = [(1,), (5,), (2, 3), (3, 3), (1, 2, 1, 2), (2, 3, 2)]

# Piles of equal values, near ties, numbers of very different size, and plain ones.
METRICS = (
    st.integers(0, 3).map(float),
    st.integers(0, 40).map(lambda i: i / 10),
    st.sampled_from([0.0, 1e-9, 1.0, 1.0 + 1e-9, 7.0, 1e6, -1e12, 1e90]),
    st.floats(-1e6, 1e6),
)


def table_of(shape: tuple[int, ...], rows: Sequence[tuple[int, ...]], metric: Any) -> pcor.Table:
    attributes = {f"a{i}": list(range(size)) for i, size in enumerate(shape)}
    columns = {f"a{i}": [row[i] for row in rows] for i in range(len(shape))}
    schema = pcor.Schema(metric="pay", attributes=attributes)
    return pcor.Table(pa.table(columns | {"pay": metric}), schema)


@st.composite
def tables(draw: st.DrawFn) -> pcor.Table:
    shape = draw(st.sampled_from(SHAPES))
    row = st.tuples(*(st.integers(0, size - 1) for size in shape))
    rows = draw(st.lists(row, min_size=1, max_size=45))
    metric = st.lists(draw(st.sampled_from(METRICS)), min_size=len(rows), max_size=len(rows))
    return table_of(shape, rows, draw(metric))


def judged(table: pcor.Table, detector: pcor.Detector) -> dict[int, tuple[int, list[Any]]]:
    """Return population and sorted outliers by mask, from the library's pass over all contexts."""
    every = EveryContext(table, detector)
    found = every.judge(0, every.size)
    keys = every.keys.take(pa.array(found.places)).to_pylist()
    starts = [0, *found.ends.tolist()]
    masks = [int.from_bytes(m.tobytes(), "little") for m in every.masks(0, every.size)]
    return {
        mask: (int(n), sorted(keys[starts[i] : starts[i + 1]]))
        for i, (mask, n) in enumerate(zip(masks, found.populations, strict=True))
    }


def one_by_one(table: pcor.Table, detector: pcor.Detector) -> dict[int, tuple[int, list[Any]]]:
    """Return the same, each context by itself."""
    masks = [m for m in range(1 << table.schema.width) if is_context(table.schema, m)]
    return {
        mask: (
            int(table.populations([mask])[0]),
            in_order(pcor.outliers(table, pcor.Context.from_mask(table.schema, mask), detector)),
        )
        for mask in masks
    }


def in_order(keys: Sequence[int | str]) -> list[Any]:
    """Sort ids of any kind."""
    return sorted(keys, key=lambda key: (str(type(key)), key))


def is_context(schema: pcor.Schema, mask: int) -> bool:
    return all(mask & own for own in schema.attribute_masks)


@pytest.mark.parametrize(
    "detector", DETECTORS, ids=[f"{d.name} {i}" for i, d in enumerate(DETECTORS)]
)
@settings(max_examples=12)
@given(table=tables())
def test_every_context_has_the_outliers_that_asking_for_it_alone_gives(
    detector: pcor.Detector, table: pcor.Table
) -> None:
    assert judged(table, detector) == one_by_one(table, detector)


def large(metric: Callable[[random.Random], float], rows: int = 3000) -> pcor.Table:
    numbers = random.Random(3)  # noqa: S311 (test data)
    shape = (3, 2)
    cells = [tuple(numbers.randrange(size) for size in shape) for _ in range(rows)]
    return table_of(shape, cells, [metric(numbers) for _ in range(rows)])


@pytest.mark.parametrize(
    "metric",
    [
        lambda numbers: numbers.lognormvariate(10, 0.5),
        lambda numbers: float(round(numbers.gauss(0, 300))),
        lambda numbers: float(min(numbers.randrange(90), 60)),
    ],
    ids=["no ties", "some ties", "nearly all ties"],
)
@pytest.mark.parametrize(
    "detector",
    [pcor.LOF(), pcor.LOF(k=37, threshold=1.1), pcor.Grubbs(), pcor.Histogram()],
    ids=str,
)
def test_populations_of_thousands_are_judged_alike(
    detector: pcor.Detector, metric: Callable[[random.Random], float]
) -> None:
    table = large(metric)
    assert judged(table, detector) == one_by_one(table, detector)


def test_a_threshold_that_a_factor_equals_is_not_exceeded() -> None:
    table = large(lambda numbers: float(round(numbers.gauss(0, 40))), 400)
    values, counts = table.distribution((1 << 5) - 1)
    factors = pcor.LOF(k=5).factors(values, counts)
    some = sorted(factors[factors > 1.05].tolist())[::7]
    assert len(some) > 5
    for factor in some:
        detector = pcor.LOF(k=5, threshold=factor)
        assert judged(table, detector) == one_by_one(table, detector)


def by_grubbs_kernel(
    table: pcor.Table, critical: NDArray[np.float64]
) -> tuple[list[float], list[bool]]:
    """Return the outliers of all contexts by metric, and which contexts are unsure."""
    from pcor._kernels.grubbs_all import grubbs_in_contexts

    every = EveryContext(table, pcor.Grubbs())
    counts = np.empty((2, every.size), dtype=np.int64)
    rows = every._sorted
    columns = (rows.codes, rows.tops, rows.values, critical)
    places, unsure = grubbs_in_contexts(0, *columns, (0, 0.0, 3), *counts)
    return rows.values[places].tolist(), unsure.tolist()


def test_where_grubbs_kernel_is_unsure_the_rule_decides() -> None:
    # In the first context both extremes are equally far: which goes first is left to rounding.
    rows = [(i % 2,) for i in range(60)]
    table = table_of((2,), rows, [-50.0, 52.0, 50.0, -49.0, *[0.0, 1.0] * 28])
    assert by_grubbs_kernel(table, np.full(61, 3.0))[1] == [True, False, False]
    detector = pcor.Grubbs(min_population=3)
    assert judged(table, detector) == one_by_one(table, detector)


@pytest.mark.parametrize("sign", [1, -1])
def test_where_one_of_equal_extremes_is_removed_all_are_outliers(sign: int) -> None:
    # Real critical values fall with the rows left; here the second removal is made impossible.
    critical = np.full(31, 1e9)
    critical[30] = 2.0
    table = table_of((1,), [(0,)] * 30, [sign * x for x in [*range(28), 90.0, 90.0]])
    assert by_grubbs_kernel(table, critical) == ([sign * 90.0, sign * 90.0], [False])


def test_another_rule_under_a_known_class_is_asked_itself() -> None:
    class Nobody(pcor.LOF):
        def verdicts(self, values: Any, counts: Any) -> Any:
            del counts
            return np.zeros(len(values), dtype=bool)

    table = large(lambda numbers: numbers.lognormvariate(10, 1), 300)
    assert any(outliers for _, outliers in judged(table, pcor.LOF(k=5)).values())
    assert not any(outliers for _, outliers in judged(table, Nobody(k=5)).values())


# -- numbers and bits -----------------------------------------------------------------------------


@pytest.mark.parametrize("single", [0, 59, 62, 63, 64, 130])
def test_contexts_are_numbered_by_their_sets_the_first_attribute_fastest(single: int) -> None:
    attributes = {f"s{i}": ["x"] for i in range(single)} | {"b": ["x", "y", "z"], "c": ["x", "y"]}
    schema = pcor.Schema(metric="pay", attributes=attributes)
    columns: dict[str, Any] = {name: ["x"] for name in attributes}
    every = EveryContext(pcor.Table(pa.table(columns | {"pay": [1.0]}), schema), pcor.LOF())
    assert every.size == count_contexts(schema) == 21
    masks = [int.from_bytes(m.astype("<u8").tobytes(), "little") for m in every.masks(0, 21)]
    always = (1 << single) - 1
    sets = [(c, b) for c in range(1, 4) for b in range(1, 8)]
    assert masks == [always | b << single | c << (single + 3) for c, b in sets]
    numbers = [number_of(pcor.Context.from_mask(schema, mask)) for mask in masks]
    assert numbers == list(range(21))
    assert every.masks(5, 3).tolist() == every.masks(0, 21)[5:8].tolist()


# -- the file -------------------------------------------------------------------------------------

SMALL = pcor.LOF(k=3, min_population=8)


def people(ids: list[Any] | None = None) -> pcor.Table:
    """Sixty people in six cells, two of them far from the others."""
    numbers = random.Random(5)  # noqa: S311 (test data)
    jobs = [numbers.choice(["clerk", "cook", "pilot"]) for _ in range(60)]
    cities = [numbers.choice(["Köln", "Rome"]) for _ in range(60)]
    pay = [round(numbers.gauss(100, 9), 1) for _ in range(58)] + [900.0, 900.0]
    columns: dict[str, Any] = {"job": jobs, "city": cities, "pay": pay}
    attributes = {"job": ["clerk", "cook", "pilot"], "city": ["Köln", "Rome"]}
    if ids is None:
        return pcor.Table(pa.table(columns), pcor.Schema(metric="pay", attributes=attributes))
    schema = pcor.Schema(metric="pay", attributes=attributes, id="who", name="people")
    return pcor.Table(pa.table(columns | {"who": ids}), schema)


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
from tests.audit.test_reference_file import SMALL, people

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


# -- the command line -----------------------------------------------------------------------------


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    table = people()
    codes = table.rows.cells[table.rows.cell]
    columns: dict[str, Any] = {
        a.name: [a.values[code] for code in codes[:, i]]
        for i, a in enumerate(table.schema.attributes)
    }
    parquet.write_table(pa.table(columns | {"pay": table.rows.metric}), tmp_path / "t.parquet")
    (tmp_path / "t.toml").write_text(table.schema.to_toml(), encoding="utf-8")
    return ["reference", str(tmp_path / "t.parquet"), "--schema", str(tmp_path / "t.toml")]


DETECTOR = ["--detector", "lof:k=3,min_population=8"]


def test_the_command_writes_the_file_and_says_that_it_is_private(
    files: list[str], tmp_path: Path
) -> None:
    out = str(tmp_path / "ref.parquet")
    ran = CliRunner().invoke(app, [*files, "--out", out, *DETECTOR])
    assert ran.exit_code == 0
    expected = write_reference(people(), SMALL, path=tmp_path / "own.parquet")
    assert ran.stdout.splitlines() == [
        OWNER_ONLY,
        f"21 contexts with {expected.outliers} outliers in all",
    ]
    assert "21 contexts, about " in ran.stderr
    assert (tmp_path / "own.parquet").read_bytes() == Path(out).read_bytes()


def test_the_command_speaks_json(files: list[str], tmp_path: Path) -> None:
    out = str(tmp_path / "ref.parquet")
    ran = CliRunner().invoke(app, [*files, "--out", out, *DETECTOR, "--json"])
    content = json.loads(ran.stdout)
    assert list(content) == ["owner_only", "contexts", "outliers", "out"]
    assert (content["contexts"], content["out"]) == (21, out)


def test_the_command_refuses_with_a_sentence(files: list[str], tmp_path: Path) -> None:
    out = str(tmp_path / "ref.parquet")
    for words, sentence in (
        (["--out", out, "--limit", "20"], "21 contexts, more than the limit of 20"),
        (["--out", str(tmp_path / "ref.csv")], "must end in .parquet"),
        (["--out", out, "--detector", "lov"], "did you mean 'lof'?"),
    ):
        ran = CliRunner().invoke(app, [*files, *words])
        assert ran.exit_code == 2
        assert sentence in ran.stderr
    assert not Path(out).exists()


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
