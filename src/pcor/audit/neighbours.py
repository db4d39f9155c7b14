"""Whose coming or going changes COE, and in which contexts? For the owner only.

Private: everything here. OCDP protects a person only against tables with the same COE, so these
changes are where its promise ends. V itself is public and never removed; rows of one cell with one
metric are alike, so each distinct (cell, metric) is tried once. Where the schema says whose rows
are whose, all rows of a person go at once (``pcor.audit.people``).

By any detector the contexts that cover a changed row are judged again (``pcor.audit.rejudged``);
LOF has a faster way to the same answers (``pcor.audit.lof_windows``).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product

from pcor.audit import lof_windows
from pcor.audit.changed import Row, cell_places
from pcor.audit.owner_only import OwnerOnly
from pcor.audit.people import PersonKind, kinds_of_people, newcomer_sizes
from pcor.audit.rejudged import check_verdicts, rejudged, visible_rows
from pcor.errors import ParameterError
from pcor.public.space import Indices
from pcor.rows.encoding import LARGEST_METRIC
from pcor.rows.table import Record
from pcor.search.boxes import Boxes
from pcor.search.coe import Progress
from pcor.search.validity import Validity


@dataclass(frozen=True, eq=False, repr=False)
class Neighbour(OwnerOnly):
    """A row, or a person, whose coming or going changes COE. Private; its repr says nothing.

    Attributes:
        kind: ``"removed"`` or ``"added"``.
        places: the row's attribute values as places in their domains, one per attribute.
        value: the row's metric.
        rows: how many rows are alike, each of which can be the one removed; 1 for an added row.
            Where the schema says whose rows are whose: how many people are alike.
        lost_boxes: the contexts that were valid and no longer are; its ``len`` is cheap.
        gained_boxes: the contexts that were not valid and now are.
        more: the person's other rows, which come or go with it.
        kept: those of the person's rows that stay, being queried.
        taken: where the rows of one such person are among the table's; empty for rows that come,
            and where each row is protected by itself.
        come: queried rows of the person that are counted only when the others went.
        back: where those are among the table's that are left out.
    """

    kind: str
    places: tuple[int, ...]
    value: float
    rows: int
    lost_boxes: Boxes
    gained_boxes: Boxes
    more: tuple[Row, ...] = ()
    kept: tuple[Row, ...] = ()
    taken: tuple[int, ...] = ()
    come: tuple[Row, ...] = ()
    back: tuple[int, ...] = ()

    @property
    def most_moved(self) -> int:
        """By how much it can move the count of a context, at most."""
        return len(self.changed) + len(self.come)

    @property
    def changed(self) -> tuple[Row, ...]:
        """The rows that are removed or added."""
        return (Row(self.places, self.value), *self.more)

    @property
    def lost(self) -> Indices:
        """The contexts that were valid and no longer are: rising indices in the record's Space.

        Listed anew each time, since there can be millions.
        """
        return self.lost_boxes.indices()

    @property
    def gained(self) -> Indices:
        """The contexts that were not valid and now are: rising indices in the record's Space."""
        return self.gained_boxes.indices()


def removals(
    validity: Validity,
    *,
    rows: Sequence[int | str] | None = None,
    public: Sequence[int | str] = (),
    limit: int | None = None,
    progress: Progress | None = None,
) -> list[Neighbour]:
    """Return every removal of one row that changes COE, by rising metric. For the owner only.

    Where the schema says whose rows are whose: every removal of all rows of one person; of the
    record's own person, all but the record.

    Args:
        validity: the record, the detector and the table.
        rows: the keys of the rows to look at; by default all. V's own is passed over. Where people
            go with all of their rows, everybody who has one of these.
        public: the keys of rows that stay when their person goes, being queried too.
        limit: the most verdicts to ask for.
        progress: called with (parts done, parts in all) now and then.

    Raises:
        TooLarge: more verdicts are needed than the limit allows.
        SourceError: people go with all of their rows, and the rows are not in memory.
    """
    if validity.table.schema.unit.is_person:
        people = kinds_of_people(validity.table, validity.record, public=public, some=rows)
        return list(_departures(validity, people, limit, progress))
    wanted = None if rows is None else _named(validity, rows)
    rule = lof_windows.walkable_rule(validity)
    if rule is not None:
        check_verdicts(validity, "removed", [], limit)
        places = cell_places(validity.table)
        return [
            _removal(validity, Row(places[cell], value), change.lost, change.gained)
            for cell, value, change in lof_windows.removal_changes(validity, rule, progress)
            if wanted is None or (places[cell], value) in wanted
        ]
    found = [row for row in _removable(validity) if wanted is None or row in wanted]
    changed = rejudged(validity, "removed", [(row,) for row in found], limit, progress)
    return [_removal(validity, found[place], lost, gained) for place, lost, gained in changed]


def _departures(
    validity: Validity, people: list[PersonKind], limit: int | None, progress: Progress | None
) -> Iterator[Neighbour]:
    """Yield the people who change COE when they leave with all of their rows."""
    rule = lof_windows.walkable_rule(validity)
    if rule is None:
        changed = _rejudged_departures(validity, people, limit, progress)
    else:
        check_verdicts(validity, "removed", [], limit)
        # The walk takes rows away and puts none back: of whom some come, the contexts are judged.
        walked = [one for one in people if not one.come]
        others = [one for one in people if one.come]
        taken = [one.taken for one in walked]
        found = lof_windows.departure_changes(validity, rule, taken, progress)
        changed = [(walked[place], lost, gained) for place, lost, gained in found]
        changed += _rejudged_departures(validity, others, limit, None) if others else []
        rank = {one: place for place, one in enumerate(people)}
        changed.sort(key=lambda change: rank[change[0]])
    for one, lost, gained in changed:
        first, *more = one.rows
        yield Neighbour(
            *("removed", *first, one.people, lost, gained),
            more=tuple(more),
            kept=one.kept,
            taken=one.taken,
            come=one.come,
            back=one.back,
        )


def _rejudged_departures(
    validity: Validity, people: list[PersonKind], limit: int | None, progress: Progress | None
) -> list[tuple[PersonKind, Boxes, Boxes]]:
    """Return those of some people who change COE, by judging contexts again."""
    seen = set(visible_rows(validity))
    people = [one for one in people if one.come or not seen.isdisjoint(one.rows)]
    rows, come = [one.rows for one in people], [one.come for one in people]
    changed = rejudged(validity, "removed", rows, limit, progress, come)
    return [(people[place], lost, gained) for place, lost, gained in changed]


def insertions(
    validity: Validity,
    values: Sequence[float],
    *,
    limit: int | None = None,
    progress: Progress | None = None,
) -> list[Neighbour]:
    """Return every addition of one row with one of these metrics that changes COE.

    The row may have any attribute values of the schema, also such as no row has. Where the schema
    says whose rows are whose: of a new person with one such row; and of one with as many as a
    person may have, all alike (``people.newcomer_sizes``). For the owner only.

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
    sizes = newcomer_sizes(validity.table)
    found = []
    for number, copies in enumerate(sizes):
        step = None if progress is None else _part(progress, number, len(sizes))
        found += list(_arrivals(validity, metrics, copies, limit, step))
    return found


def _arrivals(
    validity: Validity,
    metrics: list[float],
    copies: int,
    limit: int | None,
    progress: Progress | None,
) -> Iterator[Neighbour]:
    """Yield the newcomers with so many rows alike who change COE."""
    schema, space = validity.table.schema, validity.record.space
    cells = list(product(*(range(len(attribute.values)) for attribute in schema.attributes)))
    rule = lof_windows.walkable_rule(validity)
    if rule is None:
        found = [Row(places, metric) for metric in metrics for places in cells]
        rows = [(row,) * copies for row in found]
        for place, lost, gained in rejudged(validity, "added", rows, limit, progress):
            row = found[place]
            yield Neighbour("added", *row, 1, lost, gained, (row,) * (copies - 1))
        return
    check_verdicts(validity, "added", [0] * len(metrics), limit)
    changes = lof_windows.insertion_changes(validity, rule, metrics, copies, progress)
    for number, lost, gained in changes:
        for row in (Row(places, metrics[number]) for places in cells):
            required = row.required(schema, space)
            sets = lost.covering(required), gained.covering(required)
            if any(len(boxes.bases) for boxes in sets):
                yield Neighbour("added", *row, 1, *sets, (row,) * (copies - 1))


def _part(progress: Progress, number: int, parts: int) -> Progress:
    """Return what reports one of several passes as a part of the whole."""
    return lambda done, total: progress(number * total + done, parts * total)


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


def _removal(validity: Validity, row: Row, lost: Boxes, gained: Boxes) -> Neighbour:
    return Neighbour("removed", *row, _alike(validity, row), lost, gained)


# -- which rows -----------------------------------------------------------------------------------


def _named(validity: Validity, rows: Iterable[int | str]) -> set[Row]:
    """Return the cell and metric of the rows with these keys; the record's own key names no row."""
    records = [validity.table.record(key) for key in rows]
    return {_row_of(validity, r) for r in records if r.key != validity.record.key}


def _removable(validity: Validity) -> list[Row]:
    """List what can be removed, by rising metric: not V itself, and nothing out of the window."""
    own = _row_of(validity, validity.record)
    return [row for row in visible_rows(validity) if row != own or _alike(validity, row)]


def _row_of(validity: Validity, record: Record) -> Row:
    return Row.of(validity.table.schema, record.space.fixed, record.value)


def _alike(validity: Validity, row: Row) -> int:
    """Return how many rows other than V are like this one."""
    table = validity.table
    cells = table.cells.in_memory()
    pairs = cells.alike(table.words([row.mask(table.schema)])[0], row.value)
    own = row == _row_of(validity, validity.record)
    return int(cells.counts[pairs].sum()) - own
