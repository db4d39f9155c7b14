"""Which one-row changes change COE, and in which contexts? For the owner only.

Private: everything here. OCDP protects a person only against tables with the same COE, so these
changes are where its promise ends. V itself is public and never removed; rows of one cell with one
metric are alike, so each distinct (cell, metric) is tried once.

Why it is right: a context that does not cover the changed row has the same population as before, so
only contexts that cover its cell are judged again, by the detector itself on the changed rows. LOF
has a faster way to the same answers (``pcor.audit.lof_windows``).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from pcor.audit import lof_windows
from pcor.audit.changed import Row, cell_codes, changed_cells, verdicts
from pcor.audit.cubes import Cubes, Indices
from pcor.audit.owner_only import OwnerOnly
from pcor.errors import ParameterError, TooLarge, counted, others_code
from pcor.public.space import Space
from pcor.rows.cell_table import CellTable
from pcor.rows.encoding import LARGEST_METRIC
from pcor.rows.table import Record
from pcor.search.blocks import listed_size
from pcor.search.coe import Progress, patience
from pcor.search.validity import Validity

# The most verdicts that are asked for when nobody says otherwise; public. With a kernel that is a
# minute or two, without one each verdict is a call of Python.
VERDICT_LIMIT = 1 << 26
SLOW_VERDICT_LIMIT = 1 << 20

# To find the rows that some context looks at, every context looks through all rows: so many looks
# are a few seconds.
_MOST_LOOKS = 1 << 31


@dataclass(frozen=True, eq=False, repr=False)
class Neighbour(OwnerOnly):
    """A one-row change that changes COE. Private, and so its repr says nothing.

    Attributes:
        kind: ``"removed"`` or ``"added"``.
        places: the row's attribute values as places in their domains, one per attribute.
        value: the row's metric.
        rows: how many rows are alike, each of which can be the one removed; 1 for an added row.
        lost_cubes: the contexts that were valid and no longer are; its ``len`` is cheap.
        gained_cubes: the contexts that were not valid and now are.
    """

    kind: str
    places: tuple[int, ...]
    value: float
    rows: int
    lost_cubes: Cubes
    gained_cubes: Cubes

    @property
    def row(self) -> Row:
        """The row that is removed or added."""
        return Row(self.places, self.value)

    @property
    def lost(self) -> Indices:
        """The contexts that were valid and no longer are: rising indices in the record's Space.

        Listed anew each time, since there can be millions.
        """
        return self.lost_cubes.indices()

    @property
    def gained(self) -> Indices:
        """The contexts that were not valid and now are: rising indices in the record's Space."""
        return self.gained_cubes.indices()


def removals(
    validity: Validity,
    *,
    rows: Sequence[int | str] | None = None,
    limit: int | None = None,
    progress: Progress | None = None,
) -> list[Neighbour]:
    """Return every removal of one row that changes COE, by rising metric. For the owner only.

    Args:
        validity: the record, the detector and the table.
        rows: the keys of the rows to look at; by default all. V's own is passed over.
        limit: the most verdicts to ask for.
        progress: called with (parts done, parts in all) now and then.

    Raises:
        TooLarge: more verdicts are needed than the limit allows.
    """
    wanted = None if rows is None else _named(validity, rows)
    rule = lof_windows.walkable_rule(validity)
    if rule is not None:
        _check_verdicts(validity, "removed", [], limit)
        places = _cell_places(validity)
        return [
            _neighbour(validity, "removed", Row(places[cell], value), change.lost, change.gained)
            for cell, value, change in lof_windows.removal_changes(validity, rule, progress)
            if wanted is None or (places[cell], value) in wanted
        ]
    found = [row for row in _removable(validity) if wanted is None or row in wanted]
    return _judged_again(validity, "removed", found, limit, progress)


def insertions(
    validity: Validity,
    values: Sequence[float],
    *,
    limit: int | None = None,
    progress: Progress | None = None,
) -> list[Neighbour]:
    """Return every addition of one row with one of these metrics that changes COE.

    The row may have any attribute values of the schema, also such as no row has. For the owner
    only.

    Args:
        validity: the record, the detector and the table.
        values: the metrics to try.
        limit: the most verdicts to ask for.
        progress: called with (parts done, parts in all) now and then.

    Raises:
        ParameterError: a metric is not a number that a table could hold.
        TooLarge: more verdicts are needed than the limit allows.
    """
    metrics = checked_metrics(values, "values")
    schema, space = validity.table.schema, validity.record.space
    cells = list(product(*(range(len(attribute.values)) for attribute in schema.attributes)))
    rule = lof_windows.walkable_rule(validity)
    if rule is None:
        found = [Row(places, metric) for metric in metrics for places in cells]
        return _judged_again(validity, "added", found, limit, progress)
    _check_verdicts(validity, "added", [0] * len(metrics), limit)
    changed = []
    for number, lost, gained in lof_windows.insertion_changes(validity, rule, metrics, progress):
        for row in (Row(places, metrics[number]) for places in cells):
            required = row.required(schema, space)
            sets = lost.with_bits(required), gained.with_bits(required)
            if any(len(cubes.bases) for cubes in sets):
                changed.append(_neighbour(validity, "added", row, *sets))
    return changed


def checked_metrics(values: Sequence[float], what: str) -> list[float]:
    """Return the metrics of newcomers, rising, each once; none that no table could hold."""
    try:
        metrics = sorted({float(value) for value in values})
    except (TypeError, ValueError):
        metrics = [math.nan]
    if not all(abs(metric) <= LARGEST_METRIC for metric in metrics):
        raise ParameterError(
            f"{what} must be finite numbers up to {LARGEST_METRIC:g}, such as those of the metric"
        )
    return metrics


def _neighbour(validity: Validity, kind: str, row: Row, lost: Cubes, gained: Cubes) -> Neighbour:
    rows = _alike(validity, row) if kind == "removed" else 1
    return Neighbour(kind, row.places, row.value, rows, lost, gained)


# -- which rows -----------------------------------------------------------------------------------


def _cell_places(validity: Validity) -> list[tuple[int, ...]]:
    """Return the attribute values of each cell as places in their domains."""
    return list(map(tuple, cell_codes(validity.table).tolist()))


def _named(validity: Validity, rows: Iterable[int | str]) -> set[Row]:
    """Return the cell and metric of the rows with these keys; the record's own key names no row."""
    records = [validity.table.record(key) for key in rows]
    return {_row_of(validity, r) for r in records if r.key != validity.record.key}


def _removable(validity: Validity) -> list[Row]:
    """List what can be removed, by rising metric: not V itself, and nothing out of the window.

    Where a rule looks at the nearest rows only, a row with that many nearer ones in its own cell
    is seen in no context.
    """
    cells = _in_window(validity)
    places = _cell_places(validity)
    order = np.lexsort((cells.pair_cells, cells.values))
    pairs = zip(cells.pair_cells[order].tolist(), cells.values[order].tolist(), strict=True)
    listed = list(dict.fromkeys(Row(places[cell], value) for cell, value in pairs))
    own = _row_of(validity, validity.record)
    return [row for row in listed if row != own or _alike(validity, row)]


def _row_of(validity: Validity, record: Record) -> Row:
    return Row.of(validity.table.schema, record.space.fixed, record.value)


def _alike(validity: Validity, row: Row) -> int:
    """Return how many rows other than V are like this one."""
    table = validity.table
    cells = table.cells.in_memory()
    pairs = cells.alike(table.words([row.mask(table.schema)])[0], row.value)
    own = row == _row_of(validity, validity.record)
    return int(cells.counts[pairs].sum()) - own


# -- any detector ---------------------------------------------------------------------------------


def _judged_again(
    validity: Validity, kind: str, found: list[Row], limit: int | None, progress: Progress | None
) -> list[Neighbour]:
    """Try each row, and judge the contexts that cover it again."""
    schema, space = validity.table.schema, validity.record.space
    of_cell: dict[tuple[int, ...], list[int]] = {}
    for place, row in enumerate(found):
        of_cell.setdefault(row.places, []).append(place)
    required = {cell: found[rows[0]].required(schema, space) for cell, rows in of_cell.items()}
    _check_verdicts(validity, kind, [required[row.places] for row in found], limit)
    before = verdicts(validity)
    cells = _in_window(validity, spare=1)
    members = _members(space)
    changed, done = {}, 0
    for cell, places in of_cell.items():
        indices = members[space.covering(members, required[cell])]
        was = before[indices]
        quick = _quick_verdicts(validity, kind, [found[place].value for place in places], indices)
        for number, place in enumerate(places):
            row = found[place]
            if quick is not None and quick[1][number].all():
                now = quick[0][number]
            else:
                now = _verdicts(validity, changed_cells(cells, schema, kind, row), indices)
            lost, gained = indices[was & ~now], indices[now & ~was]
            if len(lost) or len(gained):
                changed[place] = _neighbour(validity, kind, row, Cubes.of(lost), Cubes.of(gained))
            done += 1
            if progress is not None:
                progress(done, len(found))
    return [changed[place] for place in sorted(changed)]


def _check_verdicts(validity: Validity, kind: str, required: list[int], limit: int | None) -> None:
    """Refuse more verdicts than the limit; how many rows there are is not said, being private."""
    if limit is None:
        limit = VERDICT_LIMIT if validity.detector.has_kernel else SLOW_VERDICT_LIMIT
    space = validity.record.space
    size = listed_size(space)
    times = Counter(required).items()
    if size + sum(n * min(size, space.count_covering(needed)) for needed, n in times) > limit:
        python, cli = patience(size, "raise limit="), patience(size, "raise --limit")
        if size <= limit:  # otherwise it does not help to try fewer rows
            removed = kind == "removed"
            python += (
                f", or give {'rows= to look at some rows only' if removed else 'fewer values'}"
            )
            cli += "" if removed else ", or --insert fewer metrics, or none"
        raise TooLarge(
            f"the record has {counted(size)} possible contexts, and judging them again for every "
            f"row {kind} takes more than the limit of {limit:,} verdicts",
            python=python,
            cli=cli,
            service="the page does not take so long; pcor audit on the command line has --limit",
        )


def _in_window(validity: Validity, spare: int = 0) -> CellTable:
    """Return the part of the table that the detector can see, and some rows more on each side.

    All of it, where the detector has to count more rows than it looks at.
    """
    whole, rows = validity.table.cells.in_memory(), validity.detector.window_rows
    if rows is None or validity.detector.min_population > rows:
        return whole
    near, space = whole.nearest(validity.record.value, rows + spare), validity.record.space
    size, pairs = listed_size(space), len(near.values)
    if size > pairs or size * pairs > _MOST_LOOKS:  # it would take longer than it saves
        return near
    members = _members(space)
    return near.nearest_in(space.words_of(members), validity.record.value, rows + spare)


def _members(space: Space) -> Indices:
    """Return the indices of all contexts of a space."""
    if space.members is not None:
        return space.members
    return np.flatnonzero(space.every_admitted()).astype(np.uint64)


def _quick_verdicts(
    validity: Validity, kind: str, metrics: list[float], indices: Indices
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]] | None:
    """Return the verdicts after changes in one cell, and which of them are sure, if that is quick.

    Without it each change needs a table of its own.
    """
    detector, value = validity.detector, validity.record.value
    if not detector.wants_moments:
        return None
    cells, words = validity.table.cells.in_memory(), validity.record.space.words_of(indices)
    moments = cells.several_totals(words, validity.cell_moments)
    return detector.changed_verdicts(
        cells, value, words, moments, np.array(metrics), 1 if kind == "added" else -1
    )


def _verdicts(validity: Validity, cells: CellTable, indices: Indices) -> NDArray[np.bool_]:
    """Ask the detector about contexts of a changed table."""
    detector, value = validity.detector, validity.record.value
    words = validity.record.space.words_of(indices)
    with others_code(f"the detector {detector.name!r}"):
        moments = None
        if detector.wants_moments:
            moments = cells.several_totals(words, detector.cell_moments(cells, value))
        return detector.batch(cells, value, words, moments)
