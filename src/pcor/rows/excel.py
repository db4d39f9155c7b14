"""Read a sheet of an Excel file, through an optional package.

Private: the cells. What each cell is, a number, a date or a text, is what the workbook says.
"""

from __future__ import annotations

from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa

from pcor.errors import SourceError, did_you_mean
from pcor.rows.snapshot import Snapshot


def read_sheet(path: Path | Snapshot, sheet: str) -> pa.Table:
    """Return a sheet whose first row has the names of the columns.

    Args:
        path: the file.
        sheet: its name; may be left out where there is only one.
    """
    try:
        from python_calamine import CalamineError, CalamineWorkbook
    except ImportError:
        raise SourceError(
            f"the file {str(path)!r} is read by python-calamine, which is not installed: "
            "pip install 'pcor[excel]'; or save the sheet as CSV"
        ) from None
    try:
        with path.open("rb") as stream:
            workbook = CalamineWorkbook.from_filelike(stream)
            rows = workbook.get_sheet_by_name(
                _chosen(path, workbook.sheet_names, sheet)
            ).to_python()
    except CalamineError:
        raise SourceError(
            f"the file {str(path)!r} cannot be read as an Excel file: it is damaged, protected by "
            "a password, or something else"
        ) from None
    names = [str(name) for name in rows[0]] if rows else []
    columns = zip(*rows[1:], strict=True) if len(rows) > 1 else ([] for _ in names)
    return pa.Table.from_arrays([_column(list(cells)) for cells in columns], names=names)


def _chosen(path: Path | Snapshot, sheets: list[str], wanted: str) -> str:
    """Return the sheet to read; the names of others are for the owner alone."""
    if wanted in sheets:
        return wanted
    if not wanted and len(sheets) == 1:
        return sheets[0]
    refused = SourceError(
        f"the file {str(path)!r} has no sheet {wanted!r}; correct sheet under [source], or --sheet"
        if wanted
        else f"the file {str(path)!r} has several sheets; say which one holds the rows with "
        "sheet = ... under [source] of the schema, or --sheet"
    )
    refused.add_note(f"it has: {', '.join(sheets)}{did_you_mean(wanted, sheets)}")
    raise refused


def _column(cells: list[Any]) -> pa.Array:
    """Return cells as one column: of numbers, dates or flags if all are that, else of texts."""
    cells = [None if cell == "" else _cell(cell) for cell in cells]
    kinds = {type(cell) for cell in cells if cell is not None}
    if kinds == {int, float}:
        return pa.array(cells, pa.float64())
    if kinds <= {str}:
        return pa.array(cells, pa.string())
    if len(kinds) == 1:
        return pa.array(cells)
    return pa.array([None if cell is None else str(cell) for cell in cells], pa.string())


def _cell(cell: Any) -> Any:
    """Return a cell as a file of texts would have it: 2019 and not 2019.0, a day without a time."""
    if isinstance(cell, float) and cell.is_integer() and abs(cell) < 1 << 53:
        return int(cell)
    if isinstance(cell, datetime):
        return cell.date() if cell.time() == datetime.min.time() else cell
    return cell if isinstance(cell, str | bool | int | float | date | timedelta) else str(cell)
