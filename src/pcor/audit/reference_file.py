"""The reference file: every context of the schema's family, with its population and its outliers.

Private: everything here, the file, and the folder of finished blocks beside it while it is made.
The paper's authors judged their searches by such a file (Section 6); theirs took three days on 132
cores. ``search.every_context`` finds what is in it, block by block. A finished block is a file of
its own, so an interrupted run goes on where it was; a note in the folder says what was asked, so no
block of another table or detector can slip in. The reference file is put together last and appears
whole.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from pcor.detectors import Detector, get_detector
from pcor.errors import ContextError, SourceError, TooLarge, WriteError, counted
from pcor.public.context import Context, pack
from pcor.public.context_list import check_listable, count_contexts
from pcor.public.guarantee import OWNER_ONLY
from pcor.public.schema import Schema
from pcor.rows.table import Table
from pcor.search.coe import Progress, patience
from pcor.search.every_context import EveryContext
from pcor.support import locks
from pcor.support.files import check_target, write_text, write_whole
from pcor.support.locks import try_lock

FORMAT = "pcor-reference/1"
HOW_TO_READ = (
    "A row is a context; population says how many rows of the table it covers, outliers which "
    "records are outliers there, by rising metric. Bit i of mask_w (bit 0 is the lowest) stands "
    "for value number 64 * w + i, counted from 0, in the order of 'values' (attribute -> its "
    "values); set: it belongs to the context."
)

# The largest file that is begun when nobody says otherwise; public. The paper's has 2^25 contexts.
REFERENCE_LIMIT = 1 << 26

# Contexts in a block, which is what an interruption loses at most: seconds of a kernel and, one
# hopes, minutes of another detector. Of large tables fewer, so that its lists fit 31 bits.
BLOCK = 1 << 15
BLOCK_WITHOUT_KERNEL = 1 << 8
MOST_IN_LISTS = (1 << 31) - 1

OUTLIERS = "outliers.list.element"
NOTE, WHOLE, LOCK = "request.json", "whole.parquet", "lock"


@dataclass(frozen=True, repr=False)
class Reference:
    """What was written. Private.

    Attributes:
        path: the file.
        contexts: how many contexts it lists.
        outliers: how many pairs of a context and an outlier in it.
    """

    path: Path
    contexts: int
    outliers: int

    def __repr__(self) -> str:
        return f"<Reference {str(self.path)!r}: PRIVATE, for the owner only>"


class ReferenceEntry(NamedTuple):
    """One context of a reference file. Private."""

    population: int
    outliers: list[int | str]


def write_reference(
    table: Table,
    detector: str | Detector | None = None,
    *,
    path: str | Path,
    limit: int = REFERENCE_LIMIT,
    progress: Progress | None = None,
) -> Reference:
    """Write every context with its population and outliers to a Parquet file. For the owner only.

    Every context of the schema's family, for whichever record it is a member: a record's COE is
    the contexts that list it.

    The columns are ``mask_0``, ``mask_1``, ... (64-bit words of the context's bits),
    ``population``, and ``outliers``, a list of record ids (or 0-based row numbers). Below the
    detector's ``min_population`` the list is empty. Finished blocks are kept in a folder beside the
    file, named like it with ``.parts`` behind, until the file is there; the same call goes on after
    an interruption. (The rule of an ``Estimator`` is known by its name and settings alone.)

    >>> from tempfile import TemporaryDirectory
    >>> from pcor import Grubbs, demo
    >>> table = Table(demo.ten_people(), demo.ten_people_schema())
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "reference.parquet"
    ...     done = write_reference(table, Grubbs(min_population=3), path=path)
    ...     two_jobs = "job_title is Medical Doctor or Lawyer; any city; any district"
    ...     entry = read_entry(path, Context.parse(table.schema, two_jobs))
    >>> done.contexts, entry.population, entry.outliers
    (343, 8, [8])

    Args:
        table: the rows.
        detector: a detector or its name. LOF (with ties="lower"), Grubbs and Histogram have
            kernels; any other is asked once for each context.
        path: the file, which ends in ``.parquet``.
        limit: the most contexts to list.
        progress: called with (contexts done, contexts in all) after each block.

    Raises:
        TooLarge: there are more contexts than the limit, or they cannot be listed.
        WriteError: the file cannot be written, or finished blocks are of another request.
    """
    target = Path(path)
    check_target(target, (".parquet",), "path=")
    check_reference_size(table.schema, limit)
    every = EveryContext(table, get_detector(detector, table.schema))
    columns = _columns(table, every)
    block = _block_size(every)
    with _folder_of_parts(target, _request(table, every, block)) as folder:
        parts: list[Path] = []
        for first in range(0, every.size, block):
            count = min(block, every.size - first)
            parts.append(folder / f"{first:015d}.parquet")
            if not _is_finished(parts[-1], count):
                content = _content(every, first, count, columns)
                write_whole(parts[-1], partial(parquet.write_table, content, compression="zstd"))
            if progress is not None:
                progress(first + count, every.size)
        outliers = _put_together(parts, folder / WHOLE, columns)
        with _as_sentence(target):
            (folder / WHOLE).replace(target)
    return Reference(target, every.size, outliers)


def check_reference_size(schema: Schema, limit: int) -> None:
    """Refuse to list more contexts than a public limit, or than can be listed."""
    size = count_contexts(schema)
    if size > limit:
        raise TooLarge(
            f"the schema has {counted(size)} contexts, more than the limit of {limit:,}",
            python=patience(size, "raise limit="),
            cli=patience(size, "raise --limit"),
        )
    check_listable(schema)


def expected_seconds(
    table: Table, detector: str | Detector | None = None, *, samples: int = 8
) -> float:
    """Return about how long ``write_reference`` takes, by contexts drawn at random. Private."""
    every = EveryContext(table, get_detector(detector, table.schema))
    count = max(1, min(256 if every.compiled else 1, every.size // samples))
    numbers = random.Random(0)  # noqa: S311 (which contexts to time)
    every.judge(0, 1)  # compiled before anything is timed
    started = time.perf_counter()
    for _ in range(samples):
        every.judge(numbers.randrange(every.size - count + 1), count)
    return (time.perf_counter() - started) / (samples * count) * every.size


def read_entry(path: str | Path, context: Context) -> ReferenceEntry:
    """Look up one context in a reference file. For the owner only."""
    try:
        file = parquet.ParquetFile(path)
    except (OSError, pa.ArrowException):
        raise SourceError(f"{str(path)!r} cannot be read as a Parquet file") from None
    with file:
        about = file.schema_arrow.metadata or {}
        if about.get(b"format") != FORMAT.encode():
            raise SourceError(f"{str(path)!r} is no reference file; `pcor reference` writes one")
        if about[b"schema_sha256"] != context.schema.sha256.encode():
            raise ContextError(f"the context belongs to another schema than {str(path)!r}")
    bits = pack([context.mask], context.schema.width)[0].tolist()
    found = parquet.read_table(
        path,
        columns=["population", "outliers"],
        filters=[(f"mask_{number}", "==", word) for number, word in enumerate(bits)],
    ).to_pylist()
    if not found:
        raise ContextError("the context is not one of those that the schema allows")
    return ReferenceEntry(**found[0])


# -- one block ------------------------------------------------------------------------------------


def _block_size(every: EveryContext) -> int:
    usual = BLOCK if every.compiled else BLOCK_WITHOUT_KERNEL
    return max(1, min(usual, MOST_IN_LISTS // every.rows))


def _content(every: EveryContext, first: int, count: int, columns: pa.Schema) -> pa.Table:
    """Judge a block and return it as the file has it."""
    judged = every.judge(first, count)
    lists = pa.ListArray.from_arrays(
        pa.array(np.concatenate([[0], judged.ends]).astype(np.int32)),
        every.keys.take(pa.array(judged.places)),
        type=columns.field("outliers").type,
    )
    return pa.table(
        [*every.contexts.words(first, count).T, judged.populations, lists], schema=columns
    )


def _columns(table: Table, every: EveryContext) -> pa.Schema:
    """Return the file's columns, with everything that is needed to read it."""
    schema = table.schema
    about = {
        "format": FORMAT,
        "owner_only": OWNER_ONLY,
        "how_to_read": HOW_TO_READ,
        "values": _json({a.name: a.values for a in schema.attributes}),
        "dataset": schema.name,
        "metric": schema.metric.column,
        "schema_sha256": schema.sha256,
        "detector": _json(every.detector.describe()),
        "software": f"pcor {version('pcor')}",
    }
    words = [f"mask_{word}" for word in range(table.words([]).shape[1])]
    key = pa.field("element", every.keys.type, nullable=False)
    fields = [
        *(pa.field(word, pa.uint64(), nullable=False) for word in words),
        pa.field("population", pa.int64(), nullable=False),
        pa.field("outliers", pa.list_(key), nullable=False),
    ]
    return pa.schema(fields, metadata=about)


def _is_finished(part: Path, count: int) -> bool:
    """Tell whether a block is there; one that cannot be read is judged again."""
    try:
        return part.exists() and bool(parquet.read_metadata(part).num_rows == count)
    except (OSError, pa.ArrowException):
        return False


# -- the whole ------------------------------------------------------------------------------------


def _put_together(parts: list[Path], whole: Path, columns: pa.Schema) -> int:
    """Write all blocks to one file; return how many outliers are listed."""
    outliers = 0
    numbers = [name for name in columns.names if name != "outliers"]
    how: dict[str, Any] = {
        "compression": "zstd",
        # Neighbouring contexts have much the same outliers, which a larger window finds.
        "compression_level": 9,
        # Masks nearly count upwards; ids as numbers compress better than places in a dictionary.
        "column_encoding": dict.fromkeys(numbers, "DELTA_BINARY_PACKED"),
        "use_dictionary": [OUTLIERS]
        if columns.field("outliers").type.value_type == "string"
        else False,
    }

    def write(unfinished: Path) -> None:
        nonlocal outliers
        with parquet.ParquetWriter(unfinished, columns, **how) as writer:
            waiting: list[pa.Table] = []
            for part in parts:
                waiting.append(parquet.read_table(part))
                if sum(map(len, waiting)) >= BLOCK or part == parts[-1]:
                    group = pa.concat_tables(waiting).combine_chunks()
                    outliers += sum(len(chunk.flatten()) for chunk in group["outliers"].chunks)
                    writer.write_table(group, row_group_size=len(group))
                    waiting = []

    write_whole(whole, write)
    return outliers


# -- the folder of finished blocks ----------------------------------------------------------------


def _request(table: Table, every: EveryContext, block: int) -> dict[str, Any]:
    """Return all that the blocks depend on."""
    return {
        "owner_only": OWNER_ONLY,
        "software": f"{FORMAT}, pcor {version('pcor')}, {block} contexts a block",
        "schema": table.schema.sha256,
        "detector": every.detector.describe(),
        "table": every.fingerprint(),
    }


@contextmanager
def _folder_of_parts(target: Path, request: dict[str, Any]) -> Iterator[Path]:
    """Lend the folder of an output, to one run at a time; remove it once the output is there."""
    folder = target.with_name(f"{target.name}.parts")
    with _as_sentence(folder):
        folder.mkdir(mode=0o700, exist_ok=True)
        lock = (folder / LOCK).open("w")
    with lock:
        with _as_sentence(folder):
            ours = try_lock(lock.fileno())
        if not ours:
            raise WriteError(f"another run is at work in {str(folder)!r}; let it end")
        _check_request(folder, request)
        complete = False
        try:
            yield folder
            complete = True
        finally:
            if complete or not _any_finished(folder):
                _remove(folder, lock)


def _any_finished(folder: Path) -> bool:
    return any(folder.glob("[0-9]*.parquet"))


def _remove(folder: Path, lock: IO[str]) -> None:
    """Remove the folder with what is ours: blocks, note, lock, and what a killed run left."""
    with suppress(OSError):
        for pattern in ("*.parquet", f"*{NOTE}*"):
            for path in folder.glob(pattern):
                path.unlink(missing_ok=True)
        if not locks.OPEN_FILES_CAN_GO:
            lock.close()
        (folder / LOCK).unlink(missing_ok=True)
        folder.rmdir()


def _check_request(folder: Path, request: dict[str, Any]) -> None:
    """Refuse finished blocks of another request; where there are none, note this one."""
    asked, note = json.loads(_json(request)), folder / NOTE
    if not _any_finished(folder):
        write_text(note, _json(request))
        return
    try:
        noted = json.loads(note.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        noted = None
    noted = noted if isinstance(noted, dict) else {}
    if other := [key for key in asked if noted.get(key) != asked[key]]:
        raise WriteError(
            f"{str(folder)!r} holds finished blocks of another request (another "
            f"{', another '.join(other)}); name another output, or delete that folder"
        )


@contextmanager
def _as_sentence(path: Path) -> Iterator[None]:
    """Say that a path cannot be written, and no more."""
    try:
        yield
    except OSError:
        raise WriteError(f"cannot write {str(path)!r}") from None


def _json(content: object) -> str:
    return json.dumps(content, ensure_ascii=False)
