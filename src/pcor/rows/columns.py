"""Read the named columns of any frame or file as Arrow arrays.

Private: the columns. Errors name the file and the column, never a value: the readers' own messages
quote cells, so they are replaced, not passed on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import narwhals.stable.v2 as nw
import pyarrow as pa
from pyarrow import csv, parquet

from pcor.errors import SourceError, did_you_mean
from pcor.public.source_format import SourceFormat
from pcor.rows.csv_hints import guess_encoding, guess_separator, hint, ragged_lines
from pcor.rows.excel import read_sheet
from pcor.rows.files import DAMAGED, ENDINGS, file_kind, is_packed, unpacked
from pcor.rows.snapshot import Snapshot

USUAL = SourceFormat()
_SHOWN = 30  # columns that an owner is shown


def read_columns(
    source: Any,
    columns: Sequence[str] | Callable[[list[str]], Sequence[str]],
    written: SourceFormat = USUAL,
) -> pa.Table:
    """Return the named columns of a frame or a file, in the order of the rows.

    Args:
        source: a path to CSV, Parquet or Excel, a snapshot of such a file, or any frame that
            narwhals accepts (pandas, Polars, Arrow, DuckDB).
        columns: the names to read; a missing one is refused with the nearest that exists. Or what
            chooses them, given all names; it may choose none.
        written: how a file is written.
    """
    if isinstance(source, str | Path | Snapshot):
        path = Path(source) if isinstance(source, str) else source
        return _read_file(path, columns, written)
    names = column_names(source)
    wanted = _wanted(columns, names)
    if callable(columns) and not wanted:
        return pa.table({})
    check_columns("the table", names, wanted)
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


def column_names(source: Any, written: SourceFormat = USUAL) -> list[str]:
    """Return the names of all columns of a frame or a file."""
    if isinstance(source, str | Path | Snapshot):
        path = Path(source) if isinstance(source, str) else source
        _check_file(path)
        with _reading(path, written):
            return _names_in(path, written)
    try:
        return [str(name) for name in nw.from_native(source).collect_schema().names()]
    except nw.exceptions.DuplicateError:
        raise SourceError("the table has two columns of the same name") from None
    except Exception:
        raise SourceError(
            f"cannot read rows from a {type(source).__name__}; give a pandas, Polars, Arrow or "
            "DuckDB frame, or a path to a CSV, Parquet or Excel file"
        ) from None


def _check_file(path: Path | Snapshot) -> None:
    if not file_kind(path):
        raise SourceError(
            f"cannot tell what {str(path)!r} is by its ending; allowed: {', '.join(ENDINGS)}"
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
def _reading(path: Path | Snapshot, written: SourceFormat) -> Iterator[None]:
    """Replace what a reader says when it fails: it quotes cells."""
    try:
        yield
    except (pa.ArrowException, OSError, UnicodeError, *DAMAGED) as error:
        if file_kind(path) != "csv":
            raise SourceError(
                f"the file {str(path)!r} cannot be read as Parquet: it is damaged, or something "
                "else"
            ) from None
        if is_packed(path) and not isinstance(error, pa.ArrowException | UnicodeError):
            raise SourceError(
                f"the file {str(path)!r} cannot be unpacked: it is damaged, cut off, or protected "
                "by a password"
            ) from None
        raise _csv_trouble(path, written, decoded=not isinstance(error, UnicodeError)) from None


def _csv_trouble(path: Path | Snapshot, written: SourceFormat, *, decoded: bool) -> SourceError:
    """Return what is probably wrong with a CSV file that a reader gave up on."""
    said = ragged = ""
    with suppress(OSError, *DAMAGED):
        said = hint(path, written) or ("" if decoded else f"it is not text in {written.encoding}")
        ragged = "" if said else ragged_lines(path, written)
    usual = (
        f"it must be {written.encoding.upper()} text, separated by {written.separator!r}, with as "
        "many cells in each row as names"
    )
    trouble = SourceError(f"the file {str(path)!r} cannot be read as CSV: {said or usual}")
    if ragged:  # where the odd rows stand is not public: a note is for the owner alone
        trouble.add_note(ragged)
    return trouble


def check_separator(
    path: Path | Snapshot, names: Sequence[str], wanted: Sequence[str], written: SourceFormat
) -> None:
    """Refuse a CSV file that was read as one column because it is separated by something else."""
    if file_kind(path) == "csv" and not set(names) & set(wanted):
        with _reading(path, written):
            said = hint(path, written)
        if said:
            raise SourceError(f"the file {str(path)!r} cannot be read as CSV: {said}")


def guess_layout(path: Path, encoding: str | None = None) -> dict[str, str]:
    """Return the encoding that a CSV file seems to have, unless it is given, and the separator."""
    _check_file(path)
    with _reading(path, USUAL):
        found = guess_encoding(path) if encoding is None else encoding
        return {"encoding": found, "separator": guess_separator(path, found)}


def csv_options(written: SourceFormat, columns: Sequence[str]) -> dict[str, Any]:
    """Return how Arrow reads a CSV file.

    All cells as text: what a value means is the schema's to say ("007" may be a name), and an empty
    cell is missing. No other word is: "NA" may be Namibia.
    """
    return {
        "read_options": csv.ReadOptions(encoding=written.encoding),
        # A quoted cell may hold a line break; without this a long file with one cannot be read.
        "parse_options": csv.ParseOptions(delimiter=written.separator, newlines_in_values=True),
        "convert_options": csv.ConvertOptions(
            column_types={name: pa.string() for name in columns},
            strings_can_be_null=True,
            null_values=[""],
        ),
    }


def _names_in(path: Path | Snapshot, written: SourceFormat) -> list[str]:
    if file_kind(path) == "xlsx":
        return list(read_sheet(path, written.sheet).column_names)
    with _opened(path) as place:
        if file_kind(path) == "parquet":
            return list(parquet.read_schema(place).names)
        with csv.open_csv(place, **csv_options(written, ())) as reader:
            return list(reader.schema.names)


def _read_file(
    path: Path | Snapshot,
    columns: Sequence[str] | Callable[[list[str]], Sequence[str]],
    written: SourceFormat,
) -> pa.Table:
    _check_file(path)
    with _reading(path, written):
        # A workbook is unpacked as a whole, so only once.
        sheet = read_sheet(path, written.sheet) if file_kind(path) == "xlsx" else None
        names = _names_in(path, written) if sheet is None else list(sheet.column_names)
    wanted = _wanted(columns, names)
    if callable(columns) and not wanted:
        return pa.table({})
    check_separator(path, names, wanted, written)
    check_columns(f"the file {str(path)!r}", names, wanted)
    found = _read_rows(path, wanted, written) if sheet is None else sheet.select(wanted)
    if not found.num_rows:
        raise SourceError(f"the file {str(path)!r} has a header and no rows")
    return found


def _read_rows(path: Path | Snapshot, wanted: list[str], written: SourceFormat) -> pa.Table:
    with _reading(path, written), _opened(path) as place:
        if file_kind(path) == "parquet":
            # parquet.read_table would import Arrow's datasets, and with them pandas.
            with parquet.ParquetFile(place) as file:
                return file.read(columns=wanted).select(wanted)
        options = csv_options(written, wanted)
        options["convert_options"].include_columns = wanted
        return csv.read_csv(place, **options)


def _wanted(
    columns: Sequence[str] | Callable[[list[str]], Sequence[str]], names: list[str]
) -> list[str]:
    return list(dict.fromkeys(columns(names) if callable(columns) else columns))


@contextmanager
def _opened(path: Path | Snapshot) -> Iterator[Any]:
    """Give where Arrow reads from."""
    if is_packed(path):
        with unpacked(path) as stream:
            yield stream
    else:
        yield path.reader() if isinstance(path, Snapshot) else path


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
