"""COE as a Parquet file, written while it is found. For the owner only.

Private: everything here, and the file. A record can have millions of valid contexts; they go to the
file in batches, so memory is that of one batch however many there are. The file's own metadata says
how to read it, so that nobody needs this library for that.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from pcor.detectors import Detector, get_detector
from pcor.rows.table import Table
from pcor.search.blocks import ENUMERATION_LIMIT
from pcor.search.coe import (
    MatchingContexts,
    Progress,
    joined,
    matching_parts,
)
from pcor.support.files import check_target, write_whole

FORMAT = "pcor-contexts/1"
PRIVATE_FILE = "OWNER ONLY: this file is private and must not be released."
HOW_TO_READ = (
    "A row is a context in which the record is an outlier; population says how many rows of the "
    "table it covers. Bit i of mask_w (bit 0 is the lowest) stands for value number 64 * w + i, "
    "counted from 0, in the order of 'values' (attribute -> its values); set: it belongs to the "
    "context."
)

# Contexts in one row group: large enough to compress and scan well, 2 MiB where one word is enough.
BATCH = 1 << 17

# How many of the largest a tally keeps.
SHOWN = 20


class Tally:
    """How many valid contexts went by, and the largest of them. Private.

    Attributes:
        count: how many.
        largest: the twenty with the most rows, those first; fewer where there are fewer.
    """

    def __init__(self, table: Table) -> None:
        self.count = 0
        self.largest = MatchingContexts(table, table.words([]), np.zeros(0, dtype=np.int64))

    def watch(self, parts: Iterable[MatchingContexts]) -> Iterator[MatchingContexts]:
        """Hand on parts of a COE, counting them as they go by."""
        for part in parts:
            self.count += len(part)
            self.largest = joined([self.largest, part]).largest(SHOWN)
            yield part


def write_contexts(
    table: Table,
    record: int | str,
    detector: str | Detector | None = None,
    *,
    path: str | Path,
    limit: int = ENUMERATION_LIMIT,
    progress: Progress | None = None,
) -> Tally:
    """Write every context in which the record is an outlier to a Parquet file. For the owner only.

    The columns are ``mask_0``, ``mask_1``, ... (the 64-bit words of ``MatchingContexts.masks``) and
    ``population``, the rows in the order of ``matching_contexts``. The metadata has the order of
    the schema's values, the record, the detector and so on. The file is written whole or not at
    all. To read it:

    >>> from tempfile import TemporaryDirectory
    >>> from pcor import Grubbs, demo
    >>> table = Table(demo.ten_people(), demo.ten_people_schema())
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "coe.parquet"
    ...     tally = write_contexts(table, 8, Grubbs(min_population=3), path=path)
    ...     file = parquet.read_table(path)
    >>> masks = np.column_stack([file[c] for c in file.column_names if c.startswith("mask_")])
    >>> masks.shape, masks.dtype, file["population"].to_numpy().max()
    ((26, 1), dtype('uint64'), np.int64(8))
    >>> json.loads(file.schema.metadata[b"values"])["city"]
    ['Montreal', 'Ottawa', 'Toronto']

    or in DuckDB, for the largest and for the metadata::

        SELECT mask_0, population FROM 'coe.parquet' ORDER BY population DESC LIMIT 20;
        SELECT decode(key), decode(value) FROM parquet_kv_metadata('coe.parquet');

    Args:
        table: the rows.
        record: the record's id, or its 0-based row number where the schema has no id.
        detector: a detector or its name; by default that of the schema, or lof.
        path: the file, which ends in ``.parquet``.
        limit: the largest space to enumerate.
        progress: called with (contexts done, contexts in all) now and then.

    Returns:
        How many contexts there are, and the largest of them.

    Raises:
        RecordError: the record does not exist, or its id is not unique.
        TooLarge: the space is larger than the limit.
        WriteError: the file cannot be written.
    """
    check_target(Path(path), (".parquet",), "path=")
    rule = get_detector(detector, table.schema)
    parts = matching_parts(table, record, rule, limit=limit, progress=progress)
    columns = _columns(table, table.record(record).key, rule)
    tally = Tally(table)

    def write(unfinished: Path) -> None:
        # Hardly any mask comes twice, so a dictionary of them would only cost time.
        with parquet.ParquetWriter(
            unfinished, columns, compression="zstd", use_dictionary=False
        ) as writer:
            for batch in _batches(tally.watch(parts)):
                writer.write_table(pa.table([*batch.masks.T, batch.populations], schema=columns))

    write_whole(path, write)
    return tally


def _batches(parts: Iterable[MatchingContexts]) -> Iterator[MatchingContexts]:
    """Join parts until a batch is full; nothing comes of an empty COE."""
    waiting: list[MatchingContexts] = []
    count = 0
    for part in parts:
        if len(part):
            waiting.append(part)
            count += len(part)
        if count >= BATCH:
            yield joined(waiting)
            waiting, count = [], 0
    if waiting:
        yield joined(waiting)


def _columns(table: Table, key: int | str, detector: Detector) -> pa.Schema:
    """Return the file's columns, with everything that is needed to read it."""
    schema = table.schema
    masks = [f"mask_{word}" for word in range(table.words([]).shape[1])]
    fields = [pa.field(name, pa.uint64(), nullable=False) for name in masks]
    about = {
        "format": FORMAT,
        "owner_only": PRIVATE_FILE,
        "how_to_read": HOW_TO_READ,
        "values": _json({a.name: a.values for a in schema.attributes}),
        "dataset": schema.name,
        "metric": schema.metric.column,
        "schema_sha256": schema.sha256,
        "record": _json(key),
        "detector": _json(detector.describe()),
        "software": f"pcor {version('pcor')}",
    }
    return pa.schema([*fields, pa.field("population", pa.int64(), nullable=False)], metadata=about)


def _json(content: object) -> str:
    return json.dumps(content, ensure_ascii=False)
