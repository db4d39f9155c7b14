"""DuckDB: files larger than memory, many files, Arrow datasets, and the user's own relations.

Private: the rows. Files are read by a connection of our own, in memory, that may spill into a
private folder (``spill_folder``); a relation is asked through the connection it came from. Files
and relations may change between two queries, so rows are marked.
"""

from __future__ import annotations

import glob
import os
import re
import secrets
import threading
import weakref
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from pcor.errors import ParameterError, SourceError
from pcor.public.source_format import SourceFormat
from pcor.rows.columns import column_names, csv_options
from pcor.rows.csv_hints import hint
from pcor.rows.engines.base import kind_of, translated_errors
from pcor.rows.engines.spill_folder import remove_folder, spill_folder
from pcor.rows.files import file_kind
from pcor.rows.queries.sql import DUCKDB

_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
_UNITS |= {f"{unit}i": 1 << 10 * power for power, unit in enumerate("kmgt", 1)}

# Python, Arrow and the kernels need room too, and DuckDB's limit is not to the byte.
_SHARE = 0.6
LEAST_MEMORY = 1 << 29

_SOURCE = "pcor_source"

# Rows handed over at a time, where they are counted here: a few megabytes.
_BATCH = 1 << 16


class DuckEngine:
    """Rows that DuckDB can read. ``engine.Engine`` describes the attributes.

    Args:
        source: what stands after FROM.
        connection: of our own, or ``None`` for a relation of the user's.
        relation: the user's relation, known as ``source``.
    """

    dialect = DUCKDB

    def __init__(self, source: str, connection: Any = None, relation: Any = None) -> None:
        import duckdb

        self._lock, self._salt = threading.Lock(), secrets.randbits(64)
        self.version = str(duckdb.__version__)
        self.source = source
        self.numbered: str | None = (
            f"(SELECT *, row_number() OVER () - 1 AS pcor_row FROM {source})"
        )
        self._connection, self._relation = connection, relation
        with translated_errors("duckdb"):
            schema = self.run(f"SELECT * FROM {source} LIMIT 0").schema
        self.kinds: Mapping[str, str] = {field.name: kind_of(field.type) for field in schema}

    def marks(self, column: str) -> tuple[str, ...]:
        """Write the marks of a column: two parts of a hash that nobody can foresee."""
        cell = f"s.{self.dialect.column(column)}"
        mixed = f"hash(xor(hash({cell}), CAST({self._salt} AS UBIGINT)))"
        if self.kinds[column] not in ("integer", "float"):
            # DuckDB's own hash has no key. It tells all numbers of 64 bits apart, but texts with
            # the same hash are easily made, and a salt that comes after it does not part them.
            mixed = f"md5_number_lower('{self._salt} ' || CAST({cell} AS VARCHAR))"
        low = (1 << 30) - 1
        return f"CAST({mixed} & {low} AS BIGINT)", f"CAST(({mixed} >> 30) & {low} AS BIGINT)"

    def run(self, query: str) -> pa.Table:
        """Return the answer to a query."""
        with self._lock:  # a connection carries one query at a time
            if self._relation is not None:
                return self._relation.query(_SOURCE, query).to_arrow_table()
            return self._connection.sql(query).to_arrow_table()

    def batches(self, query: str) -> Iterator[pa.RecordBatch]:
        """Yield the answer to a query in parts that are small, as the rows are read."""
        with self._lock:
            if self._relation is not None:
                answer = self._relation.query(_SOURCE, query)
            else:
                answer = self._connection.sql(query)
            # DuckDB before 1.4 has it under its older name only.
            reader = getattr(answer, "to_arrow_reader", None) or answer.fetch_arrow_reader
            yield from reader(_BATCH)


def relation_engine(relation: Any) -> DuckEngine:
    """Ask a DuckDB relation of the user's."""
    return DuckEngine(_SOURCE, relation=relation)


def dataset_engine(dataset: Any, memory: str | None = None) -> DuckEngine:
    """Ask an Arrow dataset."""
    connection = _connection(memory)
    connection.register(_SOURCE, dataset)
    return DuckEngine(_SOURCE, connection)


def files_engine(
    files: Sequence[str | Path], memory: str | None, written: SourceFormat
) -> DuckEngine:
    """Ask CSV or Parquet files: paths, patterns such as ``data/*.parquet``, or folders.

    A folder stands for all Parquet files in it, or all CSV files if it has none; folders inside it
    named like ``year=2020`` are columns.
    """
    kind, patterns = _patterns(files)
    if kind == "csv" and written.encoding != "utf-8":
        return _decoded(patterns, memory, written)
    listed = ", ".join(DUCKDB.literal(pattern) for pattern in patterns)
    if kind == "csv":
        # As in memory: all cells as text, and an empty one is missing.
        reader = (
            f"read_csv([{listed}], header = true, delim = {DUCKDB.literal(written.separator)}, "
            "quote = '\"', escape = '\"', all_varchar = true, nullstr = '', "
            "hive_partitioning = true, hive_types_autocast = false)"
        )
    else:
        reader = f"read_parquet([{listed}], hive_partitioning = true, hive_types_autocast = false)"
    connection = _connection(memory)
    try:
        return DuckEngine(reader, connection)
    except SourceError:
        _check_found(files)
        said = "not all of the files have the same columns, or one is damaged or written otherwise"
        if kind == "csv":
            said = hint(Path(_listed(patterns)[0]), written) or said
        raise SourceError(
            f"cannot read {', '.join(map(repr, map(str, files)))} as {kind.upper()}: {said}"
        ) from None


def _decoded(patterns: Sequence[str], memory: str | None, written: SourceFormat) -> DuckEngine:
    """Ask CSV files that are not UTF-8: DuckDB knows few encodings, so Arrow reads them for it."""
    from pyarrow import dataset  # takes a while, and pandas

    _check_found(patterns)
    found = _listed(patterns)
    options = csv_options(written, column_names(Path(found[0]), written))
    form = dataset.CsvFileFormat(
        options["parse_options"],
        convert_options=options["convert_options"],
        read_options=options["read_options"],
    )
    return dataset_engine(dataset.dataset(found, format=form, partitioning="hive"), memory)


def _listed(patterns: Sequence[str]) -> list[str]:
    """Return the files that patterns stand for."""
    return [file for one in patterns for file in sorted(glob.glob(one, recursive=True))]


def _check_found(files: Sequence[str | Path]) -> None:
    """Refuse a name, a pattern or a folder that no file answers to."""
    for file in map(str, files):
        if not glob.glob(file, recursive=True):
            pattern = set("*?[") & set(file)
            what = "no file matches the pattern" if pattern else "no such file:"
            raise SourceError(f"{what} {file!r}; check the folder and the ending") from None


def _patterns(files: Sequence[str | Path]) -> tuple[str, list[str]]:
    """Return what kind of files they are, and each as DuckDB finds it."""
    patterns = []
    for file in files:
        patterns.append(_inside(Path(file)) if os.path.isdir(file) else str(file))
    kinds = {file_kind(Path(pattern)) for pattern in patterns}
    zipped = any(pattern.lower().endswith(".zip") for pattern in patterns)
    if len(kinds) == 1 and kinds <= {"csv", "parquet"} and not zipped:
        return kinds.pop(), patterns
    raise SourceError(
        "give files of one kind, by their endings: .parquet (or .pq), or .csv (or .csv.gz); a .zip "
        "or .xlsx file is read into memory, alone and without --memory, and for other names there "
        "are DuckDB relations and Arrow datasets"
    )


def _inside(folder: Path) -> str:
    """Return the pattern of the files in a folder."""
    for ending in ("parquet", "csv", "csv.gz"):
        if next(folder.rglob(f"*.{ending}"), None) is not None:
            return str(folder / "**" / f"*.{ending}")
    raise SourceError(
        f"{str(folder)!r} is not a file, and as a folder holds no .parquet or .csv file; name the "
        "file, or the folder that the files are in"
    )


def _connection(memory: str | None) -> Any:
    try:
        import duckdb
    except ImportError:
        raise SourceError(
            "files larger than memory, patterns and folders are read by DuckDB, which is not "
            "installed: pip install 'pcor[duckdb]'"
        ) from None
    settings: dict[str, Any] = {"autoinstall_known_extensions": False}
    if memory is not None:
        settings["memory_limit"] = f"{int(_SHARE * memory_bytes(memory)) >> 20}MiB"
    folder = spill_folder()
    settings["temp_directory"] = str(folder)
    connection = duckdb.connect(config=settings)
    connection.execute("SET enable_progress_bar = false")
    weakref.finalize(connection, remove_folder, folder)
    return connection


def memory_bytes(text: str) -> int:
    """Read an amount of memory.

    >>> memory_bytes("4GiB") == 4 << 30
    True
    """
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]i?)?b?\s*", str(text).lower())
    amount = float(found[1]) * _UNITS[found[2] or ""] if found else 0
    if amount < LEAST_MEMORY:
        raise ParameterError(
            "memory (--memory) must be an amount of at least 512MiB, such as 4GiB or 800MB"
        )
    return int(amount)
