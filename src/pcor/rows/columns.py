"""Read the named columns of any frame or file as Arrow arrays.

Private: the columns. Errors name the file and the column, never a value: the readers' own messages
quote cells, so they are replaced, not passed on.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import narwhals as nw
import pyarrow as pa
from pyarrow import csv, parquet

from pcor.errors import SourceError, did_you_mean
from pcor.rows.csv_hints import encoding_hint, ragged_lines, separator_hint
from pcor.rows.snapshot import Snapshot

SUFFIXES = (".csv", ".parquet", ".pq")
_SHOWN = 30  # columns that an owner is shown

# A quoted cell may hold a line break; without this a long file with one cannot be read.
_PARSE = csv.ParseOptions(newlines_in_values=True)


def read_columns(source: Any, columns: Sequence[str]) -> pa.Table:
    """Return the named columns of a frame or a file, in the order of the rows.

    Args:
        source: a path to CSV or Parquet, a snapshot of such a file, or any frame that narwhals
            accepts (pandas, Polars, Arrow, DuckDB).
        columns: the names to read; a missing one is refused with the nearest that exists.
    """
    wanted = list(dict.fromkeys(columns))
    if isinstance(source, str | Path | Snapshot):
        path = Path(source) if isinstance(source, str) else source
        names = column_names(path)
        check_separator(path, names, wanted)
        check_columns(f"the file {str(path)!r}", names, wanted)
        with _reading(path):
            return _read_file(path, wanted)
    check_columns("the table", column_names(source), wanted)
    try:
        return _columns_of(nw.from_native(source), wanted)
    except Exception:  # each library has its own errors, and they quote cells
        raise SourceError(
            f"cannot read the rows of this {type(source).__name__}: a column may mix several kinds "
            "of values, or a query behind it may fail"
        ) from None


def _columns_of(frame: Any, wanted: list[str]) -> pa.Table:
    if isinstance(frame, nw.LazyFrame):
        # Polars reads such a name as a pattern of names, so it is picked out afterwards.
        patterns = any(name == "*" or name.startswith("^") for name in wanted)
        frame = (frame if patterns else frame.select(wanted)).collect(backend="pyarrow")
    return pa.table({name: frame.get_column(name).to_arrow() for name in wanted})


def column_names(source: Any) -> list[str]:
    """Return the names of all columns of a frame or a file."""
    if isinstance(source, str | Path | Snapshot):
        path = Path(source) if isinstance(source, str) else source
        _check_file(path)
        with _reading(path):
            return _names_in(path)
    try:
        return [str(name) for name in nw.from_native(source).collect_schema().names()]
    except nw.exceptions.DuplicateError:
        raise SourceError("the table has two columns of the same name") from None
    except Exception:
        raise SourceError(
            f"cannot read rows from a {type(source).__name__}; give a pandas, Polars, Arrow or "
            "DuckDB frame, or a path to a CSV or Parquet file"
        ) from None


def _check_file(path: Path | Snapshot) -> None:
    if path.suffix.lower() not in SUFFIXES:
        raise SourceError(
            f"cannot tell what {str(path)!r} is by its ending; allowed: {', '.join(SUFFIXES)}. "
            "Save a spreadsheet as CSV, and unpack what is packed"
        )
    if isinstance(path, Snapshot):  # it was a file, and was read
        _check_content(path, len(path.content))
        return
    try:
        if not path.exists():
            raise SourceError(
                f"no such file: {str(path)!r}; check the name, and the folder you are in"
            )
        if not path.is_file():
            raise SourceError(f"{str(path)!r} is not a file; name a file in it")
        _check_content(path, path.stat().st_size)
        path.open("rb").close()
    except OSError:
        raise SourceError(
            f"the file {str(path)!r} may not be read by this user; check its permissions"
        ) from None


def _check_content(path: Path | Snapshot, size: int) -> None:
    if size == 0:
        raise SourceError(f"the file {str(path)!r} is empty; it needs a header and rows")


@contextmanager
def _reading(path: Path | Snapshot) -> Iterator[None]:
    """Replace what a reader says when it fails: it quotes cells."""
    try:
        yield
    except (pa.ArrowException, OSError, UnicodeDecodeError):
        if path.suffix.lower() == ".csv":
            raise _csv_trouble(path) from None
        raise SourceError(
            f"the file {str(path)!r} cannot be read as Parquet: it is damaged, or something else"
        ) from None


def _csv_trouble(path: Path | Snapshot) -> SourceError:
    """Return what is probably wrong with a CSV file that a reader gave up on."""
    hint = ragged = ""
    with suppress(OSError):
        hint = encoding_hint(path) or separator_hint(path)
        ragged = "" if hint else ragged_lines(path)
    usual = "it must be UTF-8 text, separated by commas, with as many cells in each row as names"
    trouble = SourceError(f"the file {str(path)!r} cannot be read as CSV: {hint or usual}")
    if ragged:  # where the odd rows stand is not public: a note is for the owner alone
        trouble.add_note(ragged)
    return trouble


def check_separator(path: Path | Snapshot, names: Sequence[str], wanted: Sequence[str]) -> None:
    """Refuse a CSV file that was read as one column because it is separated by something else."""
    if path.suffix.lower() == ".csv" and not set(names) & set(wanted):
        with _reading(path):
            hint = separator_hint(path)
        if hint:
            raise SourceError(f"the file {str(path)!r} cannot be read as CSV: {hint}")


def _names_in(path: Path | Snapshot) -> list[str]:
    if path.suffix.lower() != ".csv":
        return list(parquet.read_schema(_place(path)).names)
    with csv.open_csv(_place(path), parse_options=_PARSE) as reader:
        return list(reader.schema.names)


def _read_file(path: Path | Snapshot, columns: list[str]) -> pa.Table:
    if path.suffix.lower() != ".csv":
        return parquet.read_table(_place(path), columns=columns)
    # All cells as text: what a value means is the schema's to say ("007" may be a name), and an
    # empty cell is missing. No other word is: "NA" may be Namibia.
    convert = csv.ConvertOptions(
        include_columns=columns,
        column_types={name: pa.string() for name in columns},
        strings_can_be_null=True,
        null_values=[""],
    )
    return csv.read_csv(_place(path), parse_options=_PARSE, convert_options=convert)


def _place(path: Path | Snapshot) -> Any:
    """Return where Arrow reads from."""
    return path.reader() if isinstance(path, Snapshot) else path


def check_columns(where: str, names: Sequence[str], wanted: Sequence[str]) -> None:
    """Refuse a table without a declared column, with the nearest that it has."""
    if not _folded(names) & _folded(wanted):
        # The first line may be a row and not a header, so its words are not repeated.
        raise SourceError(
            f"{where} has none of the declared columns; is its first line a header? It needs a "
            f"header with: {', '.join(wanted)}"
        )
    for column in wanted:
        if column not in names:
            missing = SourceError(
                f"{where} has no column {column!r}; it needs the columns: {', '.join(wanted)}"
            )
            # Its own columns are not the schema's words: a note is for the owner alone.
            missing.add_note(f"it has: {_listed(names)}{did_you_mean(column, names)}")
            raise missing
        if list(names).count(column) > 1:
            raise SourceError(f"{where} has more than one column {column!r}; rename one of them")


def _folded(names: Sequence[str]) -> set[str]:
    """Return names as they are alike to a person: whatever their case, and blanks around them."""
    return {name.strip().casefold() for name in names}


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more
